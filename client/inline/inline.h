/* SPDX-License-Identifier: MIT */
/* The inline executor: the calling rank does its part of a blocking operation in the arena. */
#ifndef CLIENT_INLINE_H
#define CLIENT_INLINE_H

#include "../comm.h"
#include "../../kernels/coll_counts.h"

struct inline_call {
	struct rx_op_sig sig;
	const void *send;
	void *recv;
	uint64_t imm;         /* RX_PREMUL_SUM: the scalar's bits in the low bytes */
	uint64_t deadline_ns; /* RX_FOREVER: none */
	struct rx_counts v;   /* variable collectives only */
};

/**
 * inline_run() - do one blocking operation; arguments are checked already
 *
 * sig.count is the collective's count (of a block, where every rank has one); for the variable
 * collectives a hash of the counts that all ranks share (0 for all_to_all_v).
 *
 * Return: RCCLX_OK, RCCLX_ERR_MISMATCH (communicator stays good), or a fatal error that
 *         comm_fail() has remembered. Text is set.
 */
rcclx_result inline_run(struct rcclx_comm *comm, const struct inline_call *call);

#endif
