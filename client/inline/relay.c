/* SPDX-License-Identifier: MIT */
/*
 * Relay: data passes through the arena once. Each rank copies what it has for others into its own
 * staging, and takes from the peers' staging what is for it, folding where the collective reduces.
 *
 * Small (tiny, flat; one-shot): the data lies in the arena when the op is announced. Double buffers
 * replace the exit barrier: a rank overwrites what it sent for op s at op s + 2, and nobody
 * announces s + 1 before having read s.
 *
 * Staged: in round k a rank copies slice k of every block into its staging, announces a step, and
 * takes slice k - 1 from the peers. Four buffers need no further waiting: copying slice k replaces
 * slice k - 4; in round k - 1 the rank has seen everybody's copy of slice k - 2, before which they
 * took slice k - 4.
 */
#include "link.h"
#include "shape.h"
#include "../../kernels/host/reduce_small.h"

#define RELAY_DEPTH 4u

static_assert(RELAY_DEPTH <= RX_STAGE_IN + RX_STAGE_OUT, "staging chunks");

/* One slice of every block: elements [first, first + count) of each. */
struct slice {
	uint64_t first;
	uint64_t count;
	uint64_t stride; /* bytes between the blocks of different takers in a slot */
};

static struct block cut(struct block block, const struct slice *slice, uint32_t size)
{
	if (block.count <= slice->first)
		return (struct block){0};
	block.at += slice->first * size;
	block.count = rx_min_u64(block.count - slice->first, slice->count);
	return block;
}

static void slice_put(const struct inline_run *run, const struct slice *slice, uint8_t *slot)
{
	const struct rcclx_comm *comm = run->comm;
	const struct rx_op_sig *sig = &run->call->sig;
	struct block block;

	if (!shape_gives(sig, comm->rank))
		return;
	if (!rx_coll_personal(sig->coll)) {
		block = cut(shape_out(run, comm->rank), slice, run->size);
		rx_copy(slot, block.at, block.count * run->size, false);
		return;
	}
	for (uint32_t peer = 0; peer < comm->n_ranks; peer++) {
		if (peer == comm->rank)
			continue;
		block = cut(shape_out(run, peer), slice, run->size);
		rx_copy(slot + peer * slice->stride, block.at, block.count * run->size, false);
	}
}

static uint64_t offset_for_me(const struct inline_run *run, const struct slice *slice)
{
	return rx_coll_personal(run->call->sig.coll) ? run->comm->rank * slice->stride : 0;
}

static void slice_fold(
	const struct inline_run *run, const struct slice *slice, uint8_t *const slots[])
{
	struct rx_reduce_args args = run_reduce_args(run);
	struct block to = cut(shape_in(run, run->comm->rank), slice, run->size);
	uint64_t offset = offset_for_me(run, slice);
	const void *src[RX_MAX_RANKS];
	void *dst[1] = {to.at};

	if (to.count == 0)
		return;
	for (uint32_t rank = 0; rank < run->comm->n_ranks; rank++)
		src[rank] = slots[rank] + offset;
	src[run->comm->rank] = cut(shape_out(run, run->comm->rank), slice, run->size).at;
	link_moved(run->comm, (run->comm->n_ranks - 1) * to.count * run->size);
	args.src = src;
	args.dst = dst;
	args.n_dst = 1;
	args.count = to.count;
	args.stream = run->plan.stream;
	if (to.count * run->size > RX_SMALL_BYTES || !rx_reduce_small(&args))
		rx_reduce(&args);
}

static void slice_take(
	const struct inline_run *run, const struct slice *slice, uint8_t *const slots[])
{
	struct rcclx_comm *comm = run->comm;
	const struct rx_op_sig *sig = &run->call->sig;
	uint64_t offset = offset_for_me(run, slice);

	if (!shape_takes(sig, comm->rank))
		return;
	if (rx_coll_reduces(sig->coll)) {
		slice_fold(run, slice, slots);
		return;
	}
	for (uint32_t i = 1; i < comm->n_ranks; i++) {
		/* Start behind the own rank, so that not all read from one peer at once. */
		uint32_t peer = (comm->rank + i) % comm->n_ranks;
		struct block to = cut(shape_in(run, peer), slice, run->size);

		if (!shape_gives(sig, peer) || to.count == 0)
			continue;
		link_moved(comm, to.count * run->size);
		rx_copy(to.at, slots[peer] + offset, to.count * run->size, run->plan.stream);
	}
}

static uint32_t n_blocks(const struct inline_run *run)
{
	return rx_coll_personal(run->call->sig.coll) ? run->comm->n_ranks : 1;
}

static struct slice whole(const struct inline_run *run)
{
	return (struct slice){.count = run->max_count, .stride = run->max_count * run->size};
}

void relay_fill(const struct inline_run *run, uint8_t *slot)
{
	struct slice slice = whole(run);

	slice_put(run, &slice, slot);
}

void relay_small(struct inline_run *run)
{
	const struct rcclx_comm *comm = run->comm;
	struct slice slice = whole(run);
	uint8_t *slots[RX_MAX_RANKS];

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		slots[rank] = run->plan.algorithm == RX_ALG_TINY
				      ? comm->fabric.lines[rank].entry[comm->seq & 1].payload
				      : rx_fabric_flat(&comm->fabric, rank, comm->seq);
	slice_take(run, &slice, slots);
	shape_copy_own(run);
}

static struct slice slice_of(const struct inline_run *run, uint64_t k)
{
	uint64_t bytes = run->plan.chunk_count * run->size / n_blocks(run);
	struct slice slice = {0};

	/* Whole cache lines for every block, so that no line has two readers. */
	slice.stride = rx_max_u64(bytes / RX_CACHE_LINE, 1) * RX_CACHE_LINE;
	slice.count = slice.stride / run->size;
	slice.first = k * slice.count;
	return slice;
}

static void slots_of(const struct inline_run *run, uint64_t k, uint8_t *slots[])
{
	for (uint32_t rank = 0; rank < run->comm->n_ranks; rank++)
		slots[rank] =
			rx_fabric_chunk(&run->comm->fabric, rank, (uint32_t)(k % RELAY_DEPTH));
}

rcclx_result relay_staged(struct inline_run *run)
{
	uint64_t per_round = slice_of(run, 0).count;
	uint64_t n_rounds = (run->max_count + per_round - 1) / per_round;
	uint32_t first_step = run->comm->step;
	uint8_t *slots[RX_MAX_RANKS];

	for (uint64_t k = 0; k <= n_rounds; k++) {
		struct slice slice = slice_of(run, k);
		rcclx_result r = RCCLX_OK;

		if (k < n_rounds) {
			slots_of(run, k, slots);
			slice_put(run, &slice, slots[run->comm->rank]);
			run_step(run);
		}
		if (k == 0)
			continue;
		r = wait_all(&run->wait, RX_WAIT_STEP, first_step + (uint32_t)k);
		if (r != RCCLX_OK)
			return r;
		slice = slice_of(run, k - 1);
		slots_of(run, k - 1, slots);
		slice_take(run, &slice, slots);
	}
	shape_copy_own(run);
	return RCCLX_OK;
}
