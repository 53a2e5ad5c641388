/* SPDX-License-Identifier: MIT */
/*
 * How kernels of ours have failed. They say so in their cell, once, and nobody waits for them: the
 * next look at the communicator finds it.
 */
#include "rank_kernels.h"

#include "comm.h"
#include "err.h"
#include "session.h"
#include "../shm/rx_gate.h"

#include <stdio.h>

/* What the last kernel that began does; the failed one, as later ones do not begin. */
static struct rx_op_sig sig_of(const struct rx_cell *cell)
{
	uint32_t what = (uint32_t)rx_cell_what(cell);

	return (struct rx_op_sig){
		.coll = (uint8_t)RX_INL_WHAT_COLL(what),
		.dtype = (uint8_t)RX_INL_WHAT_DTYPE(what),
		.op = (uint8_t)RX_INL_WHAT_OP(what),
		.root = RX_INL_WHAT_ROOT(what),
		.count = (uint32_t)rx_cell_count(cell),
	};
}

/* "rank 1 (pid 12), rank 3 (pid 14)" */
static void name_ranks(const struct rcclx_comm *comm, uint32_t ranks, char *text, size_t bytes)
{
	size_t at = 0;

	(void)snprintf(text, bytes, "another rank");
	for (uint32_t rank = 0; rank < comm->n_ranks && at < bytes; rank++)
		if (ranks >> rank & 1)
			at += (size_t)snprintf(text + at, bytes - at, "%srank %u (pid %u)",
				at > 0 ? ", " : "", rank, comm->fabric.ctl->pid[rank]);
}

/* What the control page says: of all, of these ranks, of those that died. RCCLX_OK: nothing. */
static rcclx_result known_cause(
	struct rcclx_comm *comm, uint32_t ranks, const struct rx_op_sig *sig)
{
	rcclx_result r = comm_fault(comm, UINT32_MAX, sig);

	for (uint32_t rank = 0; rank < comm->n_ranks && r == RCCLX_OK; rank++)
		if (ranks >> rank & 1 || atomic_load_explicit(&comm->fabric.ctl->status[rank],
						 memory_order_acquire) == RX_MEMBER_DEAD)
			r = comm_fault(comm, rank, sig);
	if (r == RCCLX_OK && comm_daemon_lost(comm))
		r = session_lost_error(comm->client);
	return r;
}

static rcclx_result aborted(struct rcclx_comm *comm, uint32_t ranks, const struct rx_op_sig *sig)
{
	char who[512];
	char op[96];
	rcclx_result r = known_cause(comm, ranks, sig);

	if (r != RCCLX_OK)
		return r;
	name_ranks(comm, ranks, who, sizeof(who));
	comm_describe(sig, op, sizeof(op));
	return err_set(RCCLX_ERR_ABORTED,
		"%s was aborted while rank %u waited for %s, whose own error says why", op,
		comm->rank, who);
}

static rcclx_result timed_out(struct rcclx_comm *comm, uint32_t ranks, const struct rx_op_sig *sig)
{
	char who[512];
	char op[96];
	rcclx_result r = known_cause(comm, ranks, sig);

	if (r != RCCLX_OK)
		return r;
	name_ranks(comm, ranks, who, sizeof(who));
	comm_describe(sig, op, sizeof(op));
	return err_set(RCCLX_ERR_TIMEOUT,
		"%s did not come to %s of rank %u within the communicator's op_timeout_ns; the "
		"communicator is aborted",
		who, op, comm->rank);
}

static rcclx_result disagree(struct rcclx_comm *comm, uint32_t ranks, const struct rx_op_sig *sig)
{
	char who[512];
	char op[96];

	/* The daemon has seen both sides. */
	if (comm_fault(comm, UINT32_MAX, NULL) == RCCLX_ERR_MISMATCH)
		return RCCLX_ERR_MISMATCH;
	name_ranks(comm, ranks, who, sizeof(who));
	comm_describe(sig, op, sizeof(op));
	return err_set(RCCLX_ERR_MISMATCH,
		"the ranks disagree: rank %u called %s, and %s something else; nothing was moved. "
		"All ranks must make the same calls in the same order",
		comm->rank, op, who);
}

static rcclx_result translate(struct rcclx_comm *comm, uint32_t status)
{
	const struct rx_op_sig sig = sig_of(comm->kernels.cell);
	uint32_t ranks = RX_INL_STATUS_RANKS(status);

	switch (RX_INL_STATUS_CODE(status)) {
	case RX_INL_E_ABORTED:
	case RX_INL_E_PEER:
		return aborted(comm, ranks, &sig);
	case RX_INL_E_TIMEOUT:
		return timed_out(comm, ranks, &sig);
	case RX_INL_E_MISMATCH:
		return disagree(comm, ranks, &sig);
	case RX_INL_E_OVERLAP:
		return err_set(RCCLX_ERR_INVALID,
			"two streams of rank %u were in calls of one communicator at the same time: "
			"the second stream has to wait for the first, for which there are events, "
			"or needs a communicator of its own",
			comm->rank);
	default:
		return err_set(RCCLX_ERR_SYSTEM, "a kernel of rank %u gave up with status %#x",
			comm->rank, status);
	}
}

rcclx_result rank_kernels_fault(struct rcclx_comm *comm)
{
	uint32_t status = rx_cell_status(comm->kernels.cell);
	rcclx_result r = RCCLX_OK;

	if (rx_likely(status == RX_INL_OK))
		return RCCLX_OK;
	r = translate(comm, status);
	comm_give_up(comm, r == RCCLX_ERR_TIMEOUT ? RX_ABORT_DEADLINE : RX_ABORT_ERROR);
	return comm_fail(comm, r);
}
