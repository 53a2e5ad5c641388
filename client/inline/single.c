/* SPDX-License-Identifier: MIT */
/*
 * Single copy: every rank reads what is for it straight from the peers' private memory, with the
 * kernel's help (reach.c). For collectives that only move data. One barrier at the end, since
 * peers read this rank's input.
 *
 * The kernel may refuse in the middle: memory of a device, credentials that a thread has changed,
 * a process that has ended. No input has been overwritten then, so the rank says so before it
 * comes to the barrier, and all ranks do the operation once more, through staging, and every later
 * one. That somebody is dead they learn there, as always.
 */
#include "link.h"
#include "shape.h"

/* Between pieces a rank looks whether the communicator is aborted. */
#define PIECE_BYTES (4ull << 20)

static bool read_block(const struct inline_run *run, uint32_t peer, struct block to, uint64_t first)
{
	/* The peer wrote the base: the sum may be anything, and the kernel checks it. */
	uint64_t from = run->bufs[peer].send_at + first * run->size;
	uint64_t bytes = to.count * run->size;

	for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
		uint64_t piece = rx_min_u64(bytes - at, PIECE_BYTES);

		if (at > 0 && comm_fault(run->comm, UINT32_MAX, &run->call->sig) != RCCLX_OK)
			return false;
		if (!reach_read(run->comm, peer, to.at + at, from + at, piece))
			return false;
		link_moved(run->comm, piece);
	}
	return true;
}

static bool read_blocks(const struct inline_run *run)
{
	const struct rcclx_comm *comm = run->comm;

	if (!shape_takes(&run->call->sig, comm->rank))
		return true;
	for (uint32_t i = 1; i < comm->n_ranks; i++) {
		/* Start behind the own rank, so that not all read from one peer at once. */
		uint32_t peer = (comm->rank + i) % comm->n_ranks;
		struct block to = shape_in(run, peer);

		if (shape_gives(&run->call->sig, peer) && to.count > 0 &&
			!read_block(run, peer, to, shape_first_for_me(run, peer)))
			return false;
	}
	return true;
}

static bool somebody_refused(const struct rcclx_comm *comm)
{
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		if (comm->fabric.lines[rank].progress.refused == comm->seq)
			return true;
	return false;
}

rcclx_result single_run(struct inline_run *run)
{
	struct rcclx_comm *comm = run->comm;
	rcclx_result r = RCCLX_OK;

	if (!read_blocks(run))
		comm->fabric.lines[comm->rank].progress.refused = comm->seq;
	run_step(run);
	shape_copy_own(run);
	r = wait_all(&run->wait, RX_WAIT_STEP, comm->step);
	if (r != RCCLX_OK || !somebody_refused(comm))
		return r;
	reach_give_up(comm);
	return relay_staged(run);
}
