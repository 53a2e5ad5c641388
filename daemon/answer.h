/* SPDX-License-Identifier: MIT */
/* How operations end, as the ranks are told. Loop thread only. */
#ifndef DAEMON_ANSWER_H
#define DAEMON_ANSWER_H

#include "comm.h"
#include "../kernels/coll_counts.h"
#include "../shm/rx_fabric_abi.h"
#include "../shm/rx_result.h"

/*
 * Entries that were refused are answered at once, so the submitter's ring does not bound how many
 * of them wait for their counterpart. A rank with more of them than this ends its communicator.
 */
#define ANSWER_MOST_BAD 64u

struct outcome {
	enum rx_result result;
	uint32_t peer_rank;           /* UINT32_MAX: nobody */
	const struct rx_op_sig *sig;  /* RX_ERR_MISMATCH: the peer's */
	const struct rx_clash *clash; /* the same: only numbers differ, these; else NULL */
};

/** outcome_of_abort() - what ops of an aborted communicator return */
struct outcome outcome_of_abort(const struct comm *comm);

/** outcome_of_run() - what an op returns whose worker has ended with @run_result (0, -errno) */
struct outcome outcome_of_run(const struct comm *comm, int run_result);

/**
 * answer() - complete the entry @user_data of @member
 *
 * The member may have left already: its session is told all the same, because it may not use the
 * entry's memory before. Nothing happens when the session is gone.
 */
void answer(const struct member *member, uint64_t user_data, uint32_t opno, struct outcome outcome);

#endif
