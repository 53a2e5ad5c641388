/* SPDX-License-Identifier: MIT */
/*
 * Copying, and where blocks lie. One source is read once for all of its destinations.
 */
#ifndef RX_DEV_COPY_H
#define RX_DEV_COPY_H

#include "dev_core.h"

/* Loads in flight per thread. */
#define DEV_COPY_UNROLL 4u

/*
 * A pointer for each rank: table[first + rank * step] + at + rank * stride. Ranks' own buffers
 * (step 1, stride 0), or parts of one buffer (step 0).
 */
struct dev_many {
	dev_table table;
	uint64_t at;
	uint64_t stride;
	uint32_t first;
	uint32_t step;
};

DEV_FN uint8_t *dev_pointer(struct dev_many many, uint32_t rank)
{
	const void *base = many.table[many.first + rank * many.step];

	return (uint8_t *)(uintptr_t)base + many.at + rank * many.stride;
}

/* Of each rank's own buffer, from byte @at on. */
DEV_FN struct dev_many dev_each(dev_table table, uint64_t at)
{
	struct dev_many many;

	many.table = table;
	many.at = at;
	many.stride = 0;
	many.first = 0;
	many.step = 1;
	return many;
}

/* Of the buffer of @rank, a part for each rank. */
DEV_FN struct dev_many dev_parts(dev_table table, uint32_t rank, uint64_t at, uint64_t stride)
{
	struct dev_many many;

	many.table = table;
	many.at = at;
	many.stride = stride;
	many.first = rank;
	many.step = 0;
	return many;
}

DEV_FN dev_table dev_sends(dev_args a)
{
	return (dev_table)a->send;
}

DEV_FN dev_table dev_recvs(dev_args a)
{
	return (dev_table)a->recv;
}

DEV_FN dev_table dev_slots(dev_args a)
{
	return (dev_table)a->slot;
}

/* Bits in which any of the pointers differs from @base. */
DEV_FN uint64_t dev_differ(struct dev_many many, uint64_t ranks, const uint8_t *base)
{
	uint64_t bits = 0;

	for (; ranks; ranks &= ranks - 1)
		bits |= (uint64_t)(uintptr_t)dev_pointer(many, dev_lowest_bit(ranks)) ^
			(uint64_t)(uintptr_t)base;
	return bits;
}

DEV_FN void dev_copy_vectors(
	const uint8_t *src, struct dev_many dst, uint64_t ranks, uint64_t at, uint64_t n)
{
	uint64_t stride = dev_n_threads();

	for (uint64_t i = dev_thread(); i < n; i += stride * DEV_COPY_UNROLL) {
		struct dev_vec16 v[DEV_COPY_UNROLL] = {{{0}}};

		DEV_UNROLL
		for (uint32_t u = 0; u < DEV_COPY_UNROLL; u++) {
			if (i + u * stride < n)
				v[u] = dev_load16(src + at + (i + u * stride) * 16);
		}
		for (uint64_t left = ranks; left; left &= left - 1) {
			uint8_t *to = dev_pointer(dst, dev_lowest_bit(left));

			if (to == src)
				continue;
			DEV_UNROLL
			for (uint32_t u = 0; u < DEV_COPY_UNROLL; u++) {
				if (i + u * stride < n)
					dev_store16(to + at + (i + u * stride) * 16, v[u]);
			}
		}
	}
}

/* Units of 4 bytes or of 1. */
DEV_FN void dev_copy_units(const uint8_t *src, struct dev_many dst, uint64_t ranks, uint64_t at,
	uint64_t n, bool words)
{
	for (uint64_t i = dev_thread(); i < n; i += dev_n_threads()) {
		uint64_t byte = at + (words ? i * 4 : i);
		uint32_t v = words ? *DEV_AS_GLOBAL(const uint32_t, src + byte)
				   : *DEV_AS_GLOBAL(const uint8_t, src + byte);

		for (uint64_t left = ranks; left; left &= left - 1) {
			uint8_t *to = dev_pointer(dst, dev_lowest_bit(left));

			if (to == src)
				continue;
			if (words)
				*DEV_AS_GLOBAL(uint32_t, to + byte) = v;
			else
				*DEV_AS_GLOBAL(uint8_t, to + byte) = (uint8_t)v;
		}
	}
}

/*
 * @bytes of @src to the same place of all @ranks' destinations, by all threads of the block. A
 * destination that is the source has it already.
 */
DEV_FN void dev_copy(const uint8_t *src, struct dev_many dst, uint64_t ranks, uint64_t bytes)
{
	uint64_t differ = dev_differ(dst, ranks, src);
	uint32_t unit = (differ & 15) == 0 ? 16 : (differ & 3) == 0 ? 4 : 1;
	uint64_t head = dev_min((0 - (uint64_t)(uintptr_t)src) & (unit - 1), bytes);
	uint64_t n = (bytes - head) / unit;
	uint64_t tail = head + n * unit;

	if (unit == 16)
		dev_copy_vectors(src, dst, ranks, head, n);
	else
		dev_copy_units(src, dst, ranks, head, n, unit == 4);
	if (unit == 1)
		return;
	dev_copy_units(src, dst, ranks, 0, head, false);
	dev_copy_units(src, dst, ranks, tail, bytes - tail, false);
}

/* ---- where blocks lie ---- */

DEV_FN bool dev_is_v(dev_args a)
{
	return a->coll == RX_ALL_GATHER_V || a->coll == RX_REDUCE_SCATTER_V ||
	       a->coll == RX_ALL_TO_ALL_V;
}

DEV_FN struct rx_dev_block dev_block_at(uint64_t count, uint64_t send_at, uint64_t recv_at)
{
	struct rx_dev_block block;

	block.count = count;
	block.send_at = send_at;
	block.recv_at = recv_at;
	return block;
}

DEV_FN struct rx_dev_block dev_block_listed(dev_args a, uint32_t from, uint32_t to)
{
	const struct rx_dev_block *entry = &a->blocks[(uint64_t)from * a->n_ranks + to];

	return dev_block_at(*DEV_AS_GLOBAL(const uint64_t, &entry->count),
		*DEV_AS_GLOBAL(const uint64_t, &entry->send_at),
		*DEV_AS_GLOBAL(const uint64_t, &entry->recv_at));
}

/* What @from has for @to; nothing, where the collective has nothing for it. */
DEV_FN struct rx_dev_block dev_block_of(dev_args a, uint32_t from, uint32_t to)
{
	uint64_t count = a->count;

	switch (a->coll) {
	case RX_ALL_GATHER:
		return dev_block_at(count, 0, from * count);
	case RX_ALL_TO_ALL:
		return dev_block_at(count, to * count, from * count);
	case RX_REDUCE_SCATTER:
		return dev_block_at(count, to * count, 0);
	case RX_BROADCAST:
		return dev_block_at(from == a->root ? count : 0, 0, 0);
	case RX_GATHER:
		return dev_block_at(to == a->root ? count : 0, 0, from * count);
	case RX_SCATTER:
		return dev_block_at(from == a->root ? count : 0, to * count, 0);
	case RX_SEND:
		return dev_block_at(from == a->root && to == a->peer ? count : 0, 0, 0);
	default:
		return dev_block_listed(a, from, to);
	}
}

/* Has a rank something else for each taker? Otherwise all get the same part of its send. */
DEV_FN bool dev_is_personal(dev_args a)
{
	return a->coll != RX_ALL_GATHER && a->coll != RX_ALL_GATHER_V && a->coll != RX_BROADCAST &&
	       a->coll != RX_GATHER;
}

/* ---- slots ---- */

/* How a block's region of a slot is divided. */
struct dev_lanes {
	uint32_t n;
	uint64_t bytes; /* of one */
	uint64_t piece; /* elements that one takes in a round */
};

DEV_FN struct dev_lanes dev_lanes_of(dev_args a, uint32_t n)
{
	struct dev_lanes lanes;

	lanes.n = n;
	lanes.bytes = a->slot_bytes / n & ~127ull;
	lanes.piece = lanes.bytes / a->elem_bytes;
	return lanes;
}

/*
 * Offset, in any slot, of this block's region for what is written before the next barrier and read
 * after it. Barriers alternate, so that a region is not written again before a barrier has shown
 * that it was read.
 */
DEV_FN uint64_t dev_region(const struct dev_run *run)
{
	uint32_t turn = (run->number + 1) & 1;

#ifdef RX_DEV_MUTATE_ONE_REGION
	turn = 0;
#endif
	return (uint64_t)(2 * dev_block() + turn) * run->a->slot_bytes;
}

/* Rank that comes @i-th, so that neither launches nor blocks all begin with the same peer. */
DEV_FN uint32_t dev_rotate(dev_args a, uint32_t start, uint32_t i)
{
	return (start + 1 + dev_block() % a->n_ranks + i) % a->n_ranks;
}

#endif
