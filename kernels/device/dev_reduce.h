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
#include "dev_value.h"

/* Inputs of which a thread has a vector in flight. */
#define DEV_FOLD_INPUTS 4u

struct dev_fold {
	dev_args a;
	struct dev_many src;
	struct dev_many dst;
	uint64_t outputs; /* ranks whose dst is written */
	uint64_t count;   /* elements */
};

/* Where a launch is; all else follows from its arguments, rather than being kept in registers. */
struct dev_reduce {
	uint64_t region; /* of the slots in this round */
	uint64_t round;
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

/* Do inputs come through slots? */
DEV_FN bool dev_by_slots(dev_args a)
{
	return a->algorithm == RX_DEV_FLAT ||
	       (a->algorithm == RX_DEV_TREE && (a->flags & RX_DEV_PUSH));
}

/* Is there one segment, for several takers? */
DEV_FN bool dev_is_whole(dev_args a)
{
	return a->algorithm == RX_DEV_FLAT && !dev_is_reduce_scatter(a);
}

DEV_FN uint32_t dev_n_segments(dev_args a)
{
	return dev_is_whole(a) ? 1 : a->n_ranks;
}

DEV_FN struct dev_lanes dev_reduce_lanes(dev_args a)
{
	return dev_lanes_of(a, (a->flags & RX_DEV_PUSH) ? a->n_ranks : dev_n_segments(a));
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

/* Where the parts end of local rank @s and of those that follow it without a gap. */
DEV_FN uint64_t dev_local_end(dev_args a, uint32_t s)
{
	uint32_t last = s + dev_lowest_bit(~(a->local >> s >> 1));
	struct dev_range part = dev_share(a->count, dev_share_unit(a), a->n_ranks, last);

	return part.first + part.count;
}

DEV_FN struct dev_segment dev_segment_of(dev_args a, uint32_t s)
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
	} else if (dev_is_whole(a)) {
		segment.outputs = a->local & dev_takers(a);
	} else {
		struct dev_range part = dev_share(a->count, dev_share_unit(a), a->n_ranks, s);

		segment.count = part.count;
		segment.send_at = part.first;
		segment.recv_at = part.first;
		segment.outputs = dev_is_local(a, s) ? dev_takers(a) : 0;
		/* The first of several local parts in a row stands for them: one fold. */
		if (a->algorithm == RX_DEV_DIRECT && s > 0 && dev_is_local(a, s - 1))
			segment.outputs = 0;
		else if (a->algorithm == RX_DEV_DIRECT && segment.outputs)
			segment.count = dev_local_end(a, s) - part.first;
		if (a->algorithm == RX_DEV_TREE && a->coll == RX_ALL_REDUCE &&
			!(a->flags & RX_DEV_PUSH))
			segment.outputs &= a->local; /* the others fetch it: dev_reduce_gather() */
	}
	return segment;
}

DEV_FN struct dev_range dev_reduce_piece(dev_args a, uint64_t round, uint64_t count)
{
	struct dev_range share = dev_own_share(count, dev_share_unit(a));

	return dev_by_slots(a) ? dev_piece(share, dev_reduce_lanes(a).piece, round) : share;
}

/* A local rank's input of segment @s into lane @lane of the slot of @rank. */
DEV_FN void dev_reduce_put_one(dev_args a, const struct dev_reduce *reduce, uint32_t from,
	uint32_t s, uint32_t rank, uint32_t lane)
{
	struct dev_segment segment = dev_segment_of(a, s);
	struct dev_range piece = dev_reduce_piece(a, reduce->round, segment.count);
	uint64_t at = reduce->region + lane * dev_reduce_lanes(a).bytes;

	if (piece.count == 0)
		return;
	dev_copy((const uint8_t *)a->send[from] + (segment.send_at + piece.first) * a->elem_bytes,
		dev_parts(dev_slots(a), rank, at, 0), 1, piece.count * a->elem_bytes);
}

DEV_FN void dev_reduce_put(dev_args a, const struct dev_reduce *reduce)
{
	uint32_t n = (a->flags & RX_DEV_PUSH) ? a->n_ranks : dev_n_segments(a);

	for (uint64_t left = a->local; left; left &= left - 1) {
		uint32_t from = dev_lowest_bit(left);

		for (uint32_t i = 0; i < n; i++) {
			bool push = false;
			uint32_t to = i;
			uint32_t s = 0;

			a = dev_fresh(a);
			push = a->flags & RX_DEV_PUSH;
			if (push)
				to = dev_rotate(a, from, i);
			s = dev_is_whole(a) ? 0 : to;
			if (push && dev_is_whole(a) && !(dev_takers(a) >> to & 1))
				continue;
			dev_reduce_put_one(a, reduce, from, s, push ? to : from, push ? from : s);
		}
	}
}

/* Elements of the longest share of a segment: all blocks do as many rounds. */
DEV_FN uint64_t dev_longest(dev_args a)
{
	struct dev_range part;

	part.count = a->count;
	/* The first share of the first segment is as long as any. */
	if (!dev_is_whole(a) && !dev_is_reduce_scatter(a))
		part = dev_share(a->count, dev_share_unit(a), a->n_ranks, 0);
	return dev_share(part.count, dev_share_unit(a), dev_n_blocks(), 0).count;
}

DEV_FN bool dev_reduce_begin(struct dev_run *run, struct dev_reduce *reduce)
{
	reduce->round = 0;
	reduce->region = 0;
	if (dev_is_ok(run) && (run->a->flags & RX_DEV_ENTRY))
		(void)dev_meet(run);
	return dev_is_ok(run);
}

/* For what is folded next; false when there is nothing, or to give up. */
DEV_FN bool dev_reduce_round(struct dev_run *run, struct dev_reduce *reduce)
{
	dev_args a = dev_fresh(run->a);

	if (!dev_by_slots(a))
		return reduce->round == 0;
	if (reduce->round * dev_reduce_lanes(a).piece >= dev_longest(a))
		return false;
	reduce->region = dev_region(run);
	dev_reduce_put(a, reduce);
	return dev_meet(run);
}

/* What to fold of segment @s in this round; no outputs: nothing. */
DEV_FN struct dev_fold dev_reduce_next(
	const struct dev_run *run, const struct dev_reduce *reduce, uint32_t s)
{
	dev_args a = dev_fresh(run->a);
	struct dev_segment segment = dev_segment_of(a, s);
	struct dev_range piece = dev_reduce_piece(a, reduce->round, segment.count);
	struct dev_fold fold;

	fold.a = a;
	fold.src = dev_each(dev_sends(a), (segment.send_at + piece.first) * a->elem_bytes);
	if (dev_by_slots(a)) {
		uint64_t lane_bytes = dev_reduce_lanes(a).bytes;
		/* Of several takers, any. */
		uint32_t owner = dev_is_whole(a) ? dev_lowest_bit(segment.outputs | 1ull << 63) : s;

		fold.src = dev_each(dev_slots(a), reduce->region + s * lane_bytes);
		if (a->flags & RX_DEV_PUSH)
			fold.src = dev_parts(dev_slots(a), owner, reduce->region, lane_bytes);
	}
	fold.dst = dev_each(dev_recvs(a), (segment.recv_at + piece.first) * a->elem_bytes);
	fold.outputs = piece.count ? segment.outputs : 0;
	fold.count = piece.count;
	return fold;
}

/* Tree, pulling: the parts that other launches have folded, from their owners' recv. */
DEV_FN void dev_reduce_gather(struct dev_run *run)
{
	dev_args a = dev_fresh(run->a);

	if (!dev_is_ok(run) || a->algorithm != RX_DEV_TREE || (a->flags & RX_DEV_PUSH) ||
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
