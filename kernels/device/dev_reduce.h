/* SPDX-License-Identifier: MIT */
/*
 * Reducing collectives, but for the folds themselves: which segments this launch folds from where
 * to where, and what travels through slots before or through recv afterwards.
 *
 * A segment is what is folded alike: the whole message (flat), a rank's part of it (direct, tree),
 * or a rank's block (reduce-scatter).
 */
#ifndef RX_DEV_REDUCE_H
#define RX_DEV_REDUCE_H

#include "dev_copy.h"

struct dev_fold {
	dev_args a;
	struct dev_many src;
	struct dev_many dst;
	uint64_t outputs; /* ranks whose dst is written */
	uint64_t count;   /* elements */
	uint32_t n_avg;
	bool average;
	bool average_times; /* the divisor is a power of two, so its inverse is exact */
};

struct dev_reduce {
	struct dev_lanes lanes;
	uint64_t region;  /* of the slots in this round */
	uint64_t longest; /* elements of the longest share of a segment */
	uint64_t round;
	uint32_t n_segments;
	bool slots; /* inputs come through slots */
	bool push;
	bool whole; /* one segment, for several takers */
};

struct dev_segment {
	uint64_t count;
	uint64_t send_at;
	uint64_t recv_at;
	uint64_t outputs; /* ranks that this launch writes it to; 0: it is not folded here */
};

DEV_FN bool dev_is_reduce_scatter(dev_args a)
{
	return a->coll == RX_REDUCE_SCATTER || a->coll == RX_REDUCE_SCATTER_V;
}

DEV_FN uint32_t dev_share_unit(dev_args a)
{
	return DEV_SHARE_BYTES / a->elem_bytes;
}

/* Ranks that get a result. */
DEV_FN uint64_t dev_takers(dev_args a)
{
	return a->coll == RX_REDUCE ? 1ull << a->root : dev_all_ranks(a);
}

DEV_FN struct dev_segment dev_segment_of(dev_args a, const struct dev_reduce *reduce, uint32_t s)
{
	struct dev_segment segment;

	segment.count = a->count;
	segment.send_at = 0;
	segment.recv_at = 0;
	if (dev_is_reduce_scatter(a)) {
		struct rx_dev_block block = dev_block_of(a, 0, s);

		segment.count = block.count;
		segment.send_at = block.send_at;
		segment.outputs = a->local & 1ull << s;
	} else if (reduce->whole) {
		segment.outputs = a->local & dev_takers(a);
	} else {
		struct dev_range part = dev_share(a->count, dev_share_unit(a), a->n_ranks, s);

		segment.count = part.count;
		segment.send_at = part.first;
		segment.recv_at = part.first;
		segment.outputs = dev_is_local(a, s) ? dev_takers(a) : 0;
		if (a->algorithm == RX_DEV_TREE && a->coll == RX_ALL_REDUCE && !reduce->push)
			segment.outputs &= a->local; /* the others fetch it: dev_reduce_gather() */
	}
	return segment;
}

DEV_FN struct dev_range dev_reduce_piece(
	dev_args a, const struct dev_reduce *reduce, uint64_t count)
{
	struct dev_range share = dev_own_share(count, dev_share_unit(a));

	return reduce->slots ? dev_piece(share, reduce->lanes.piece, reduce->round) : share;
}

/* A local rank's input of segment @s into lane @lane of the slot of @rank. */
DEV_FN void dev_reduce_put_one(dev_args a, const struct dev_reduce *reduce, uint32_t from,
	uint32_t s, uint32_t rank, uint32_t lane)
{
	struct dev_segment segment = dev_segment_of(a, reduce, s);
	struct dev_range piece = dev_reduce_piece(a, reduce, segment.count);
	uint64_t at = reduce->region + lane * reduce->lanes.bytes;

	if (piece.count == 0)
		return;
	dev_copy((const uint8_t *)a->send[from] + (segment.send_at + piece.first) * a->elem_bytes,
		dev_parts(dev_slots(a), rank, at, 0), 1, piece.count * a->elem_bytes);
}

DEV_FN void dev_reduce_put(dev_args a, const struct dev_reduce *reduce)
{
	uint32_t n = reduce->push ? a->n_ranks : reduce->n_segments;

	for (uint64_t left = a->local; left; left &= left - 1) {
		uint32_t from = dev_lowest_bit(left);

		for (uint32_t i = 0; i < n; i++) {
			uint32_t to = reduce->push ? dev_rotate(a, from, i) : i;
			uint32_t s = reduce->whole ? 0 : to;

			if (!reduce->push)
				dev_reduce_put_one(a, reduce, from, s, from, s);
			else if (!reduce->whole || (dev_takers(a) >> to & 1))
				dev_reduce_put_one(a, reduce, from, s, to, from);
		}
	}
}

/* Inputs of the next round into the slots; false when there is none, or to give up. */
DEV_FN bool dev_reduce_round(struct dev_run *run, struct dev_reduce *reduce)
{
	if (reduce->round * reduce->lanes.piece >= reduce->longest)
		return false;
	reduce->region = dev_region(run);
	dev_reduce_put(run->a, reduce);
	return dev_meet(run);
}

/* False when there is nothing to fold. */
DEV_FN bool dev_reduce_begin(struct dev_run *run, struct dev_reduce *reduce)
{
	dev_args a = run->a;
	struct dev_range part;

	if (!run->ok)
		return false;
	reduce->push = a->flags & RX_DEV_PUSH;
	reduce->slots =
		a->algorithm == RX_DEV_FLAT || (a->algorithm == RX_DEV_TREE && reduce->push);
	reduce->whole = a->algorithm == RX_DEV_FLAT && !dev_is_reduce_scatter(a);
	reduce->n_segments = reduce->whole ? 1 : a->n_ranks;
	reduce->round = 0;
	reduce->region = 0;
	reduce->longest = 0;
	if ((a->flags & RX_DEV_ENTRY) && !dev_meet(run))
		return false;
	if (!reduce->slots)
		return true;
	reduce->lanes = dev_lanes_of(a, reduce->push ? a->n_ranks : reduce->n_segments);
	part.count = a->count;
	if (!reduce->whole && !dev_is_reduce_scatter(a))
		part = dev_share(a->count, dev_share_unit(a), a->n_ranks, 0);
	/* The first share of the first segment is as long as any; all blocks do as many rounds. */
	reduce->longest = dev_share(part.count, dev_share_unit(a), dev_n_blocks(), 0).count;
	return dev_reduce_round(run, reduce);
}

DEV_FN bool dev_reduce_more(struct dev_run *run, struct dev_reduce *reduce)
{
	if (!reduce->slots)
		return false;
	reduce->round++;
	return dev_reduce_round(run, reduce);
}

/* What to fold of segment @s in this round; false if nothing. */
DEV_FN bool dev_reduce_next(const struct dev_run *run, const struct dev_reduce *reduce, uint32_t s,
	struct dev_fold *fold)
{
	dev_args a = run->a;
	struct dev_segment segment = dev_segment_of(a, reduce, s);
	struct dev_range piece = dev_reduce_piece(a, reduce, segment.count);
	uint32_t owner = reduce->whole && segment.outputs ? dev_lowest_bit(segment.outputs) : s;

	if (segment.outputs == 0 || piece.count == 0)
		return false;
	fold->a = a;
	if (!reduce->slots)
		fold->src = dev_each(dev_sends(a), (segment.send_at + piece.first) * a->elem_bytes);
	else if (reduce->push)
		fold->src = dev_parts(dev_slots(a), owner, reduce->region, reduce->lanes.bytes);
	else
		fold->src = dev_each(dev_slots(a), reduce->region + s * reduce->lanes.bytes);
	fold->dst = dev_each(dev_recvs(a), (segment.recv_at + piece.first) * a->elem_bytes);
	fold->outputs = segment.outputs;
	fold->count = piece.count;
	fold->n_avg = a->n_avg;
	fold->average = a->op == RX_AVG;
	fold->average_times = a->n_avg <= 64 && (a->n_avg & (a->n_avg - 1)) == 0;
	return true;
}

/* Tree, pulling: the parts that other launches have folded, from their owners' recv. */
DEV_FN void dev_reduce_gather(struct dev_run *run)
{
	dev_args a = run->a;

	if (!run->ok || a->algorithm != RX_DEV_TREE || (a->flags & RX_DEV_PUSH) ||
		a->coll != RX_ALL_REDUCE || a->n_launches == 1)
		return;
	if (!dev_meet(run))
		return;
	for (uint32_t i = 0; i < a->n_ranks; i++) {
		uint32_t owner = dev_rotate(a, dev_lowest_bit(a->local), i);
		struct dev_range part = dev_share(a->count, dev_share_unit(a), a->n_ranks, owner);
		struct dev_range share = dev_own_share(part.count, dev_share_unit(a));
		uint64_t at = (part.first + share.first) * a->elem_bytes;

		if (dev_is_local(a, owner) || share.count == 0)
			continue;
		dev_copy((const uint8_t *)a->recv[owner] + at, dev_each(dev_recvs(a), at), a->local,
			share.count * a->elem_bytes);
	}
}

#endif
