/* SPDX-License-Identifier: MIT */
/* Calls that are recorded in graphs, and made by the worker with every replay. Loop thread only. */
#ifndef DAEMON_CAPTURED_H
#define DAEMON_CAPTURED_H

#include "comm.h"
#include "gate.h"

struct region;

/** captured_post() - @member has recorded a call; see op_post(). It is answered here. */
void captured_post(struct member *member, const struct rx_sqe *sqe, struct region *send,
	struct region *recv, const uint64_t *words, bool bad, const struct gate *gate);

/** captured_account() - add what its replays did in low precision to @sum */
void captured_account(const struct comm *comm, struct rx_precision_counts *sum);

/** captured_fail_all() - the communicator has been aborted: replays end at once */
void captured_fail_all(struct comm *comm);

/** captured_member_gone() - the same, and @member looks after its own bells from now on */
void captured_member_gone(struct member *member);

#endif
