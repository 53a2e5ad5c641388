/* SPDX-License-Identifier: MIT */
#include "shape.h"

bool shape_gives(const struct rx_op_sig *sig, uint32_t rank)
{
	if (sig->coll == RX_BROADCAST || sig->coll == RX_SCATTER)
		return rank == sig->root;
	return true;
}

bool shape_takes(const struct rx_op_sig *sig, uint32_t rank)
{
	if (sig->coll == RX_GATHER || sig->coll == RX_REDUCE)
		return rank == sig->root;
	return true;
}

static struct block block_at(const void *base, uint64_t first, uint64_t count, uint32_t size)
{
	if (count == 0)
		return (struct block){0};
	return (struct block){(uint8_t *)(uintptr_t)base + first * size, count};
}

uint64_t shape_sum_before(const uint64_t *counts, uint32_t rank)
{
	uint64_t sum = 0;

	for (uint32_t r = 0; r < rank; r++)
		sum += counts[r];
	return sum;
}

struct block shape_out(const struct inline_run *run, uint32_t peer)
{
	const struct inline_call *call = run->call;
	uint64_t count = call->sig.count;

	switch (call->sig.coll) {
	case RX_ALL_TO_ALL:
	case RX_REDUCE_SCATTER:
	case RX_SCATTER:
		return block_at(call->send, peer * count, count, run->size);
	case RX_REDUCE_SCATTER_V:
		return block_at(call->send, shape_sum_before(call->v.send_counts, peer),
			call->v.send_counts[peer], run->size);
	case RX_ALL_TO_ALL_V:
		return block_at(call->send, call->v.send_displs[peer], call->v.send_counts[peer],
			run->size);
	case RX_ALL_GATHER_V:
		return block_at(call->send, 0, call->v.recv_counts[run->comm->rank], run->size);
	default:
		return block_at(call->send, 0, count, run->size);
	}
}

struct block shape_in(const struct inline_run *run, uint32_t peer)
{
	const struct inline_call *call = run->call;
	uint64_t count = call->sig.count;

	switch (call->sig.coll) {
	case RX_ALL_GATHER:
	case RX_GATHER:
	case RX_ALL_TO_ALL:
		return block_at(call->recv, peer * count, count, run->size);
	case RX_ALL_GATHER_V:
	case RX_ALL_TO_ALL_V:
		return block_at(call->recv, call->v.recv_displs[peer], call->v.recv_counts[peer],
			run->size);
	case RX_REDUCE_SCATTER_V:
		return block_at(call->recv, 0, call->v.send_counts[run->comm->rank], run->size);
	default:
		return block_at(call->recv, 0, count, run->size);
	}
}

uint64_t shape_first_for_me(const struct inline_run *run, uint32_t peer)
{
	uint32_t me = run->comm->rank;

	switch (run->call->sig.coll) {
	case RX_ALL_TO_ALL:
	case RX_REDUCE_SCATTER:
	case RX_SCATTER:
		return me * run->call->sig.count;
	case RX_REDUCE_SCATTER_V:
		return shape_sum_before(run->call->v.send_counts, me);
	case RX_ALL_TO_ALL_V:
		return run->first_for_me[peer];
	default:
		return 0;
	}
}

static uint64_t max_of(const uint64_t *counts, uint32_t n_ranks)
{
	uint64_t max = 0;

	for (uint32_t r = 0; r < n_ranks; r++)
		max = rx_max_u64(max, counts[r]);
	return max;
}

uint64_t shape_max_count(const struct inline_call *call, uint32_t n_ranks)
{
	switch (call->sig.coll) {
	case RX_ALL_GATHER_V:
		return max_of(call->v.recv_counts, n_ranks);
	case RX_REDUCE_SCATTER_V:
	case RX_ALL_TO_ALL_V:
		return max_of(call->v.send_counts, n_ranks);
	default:
		return call->sig.count;
	}
}

void shape_copy_own(const struct inline_run *run)
{
	uint32_t me = run->comm->rank;
	const struct rx_op_sig *sig = &run->call->sig;
	struct block from;
	struct block to;

	if (rx_coll_reduces(sig->coll) || !shape_gives(sig, me) || !shape_takes(sig, me))
		return;
	from = shape_out(run, me);
	to = shape_in(run, me);
	if (from.at != to.at)
		rx_copy(to.at, from.at, from.count * run->size, run->plan.stream);
}
