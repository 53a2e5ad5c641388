/* SPDX-License-Identifier: MIT */
/*
 * Sends and receives that the daemon executes: matched in order per pair of source and destination,
 * apart from collectives and from other pairs, each on a worker. Loop thread only.
 */
#ifndef DAEMON_P2P_H
#define DAEMON_P2P_H

#include "comm.h"
#include "gate.h"
#include "../shm/rx_ring_abi.h"

struct p2p;
struct region;

/**
 * p2p_post() - @member submits a send or a receive, whose root is the peer
 * @send, @recv: the mapped region, NULL when the entry moves no data; a reference is taken
 * @bad: the entry is not to be executed: it fails, for this rank at once, for the peer's
 *       counterpart when it comes
 * @gate: of a call in the order of a stream; a reference is taken
 */
void p2p_post(struct member *member, const struct rx_sqe *sqe, struct region *send,
	struct region *recv, bool bad, const struct gate *gate);

/** p2p_fail_all() - the communicator has been aborted: complete what waits, cancel what runs */
void p2p_fail_all(struct comm *comm);

/** p2p_member_gone() - @member will post nothing more: fail what waits for it, and its own */
void p2p_member_gone(struct member *member);

/** p2p_is_running() - does a worker run one? */
bool p2p_is_running(const struct comm *comm);

/** p2p_waiting() - bitmap of the ranks with an entry that waits; @sigs: each one's oldest */
uint64_t p2p_waiting(const struct comm *comm, struct rx_op_sig sigs[RX_MAX_RANKS]);

/** p2p_late() - bitmap of the ranks that others wait for too long; 0: none
 * @waited_ns_p: receives the longest wait, 0 when there is none
 */
uint64_t p2p_late(const struct comm *comm, uint64_t *waited_ns_p);

/** p2p_free() - nothing waits or runs any more. NULL is allowed. Returns NULL. */
struct p2p *p2p_free(struct p2p *p2p);

#endif
