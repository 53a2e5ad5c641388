/* SPDX-License-Identifier: MIT */
/* Collectives that copy, and words in stream order. */
#include "dev_copy.h"

/* All takers of one rank's block, or a rank for each. */
DEV_FN bool copy_is_uniform(dev_args a)
{
	return a->coll == RX_ALL_GATHER || a->coll == RX_BROADCAST || a->coll == RX_GATHER;
}

DEV_FN struct dev_range copy_share(dev_args a, uint64_t count)
{
	return dev_own_share(count, DEV_SHARE_BYTES / a->elem_bytes);
}

/* What @from has for those of @takers, straight from send to recv. */
DEV_FN void copy_from(dev_args a, uint32_t from, uint64_t takers)
{
	bool uniform = copy_is_uniform(a);

	for (uint32_t i = 0; i < (uniform ? 1 : a->n_ranks); i++) {
		uint32_t to = uniform ? a->root : dev_rotate(a, from, i);
		struct rx_dev_block block = dev_block_of(a, from, to);
		struct dev_range share = copy_share(a, block.count);
		uint64_t ranks = uniform ? takers : takers & 1ull << to;

		if (a->coll == RX_GATHER)
			ranks &= 1ull << a->root;
		if (share.count == 0 || ranks == 0)
			continue;
		dev_copy((const uint8_t *)a->send[from] +
				 (block.send_at + share.first) * a->elem_bytes,
			dev_each(dev_recvs(a), (block.recv_at + share.first) * a->elem_bytes),
			ranks, share.count * a->elem_bytes);
	}
}

DEV_FN void copy_direct(dev_args a)
{
	bool push = a->flags & RX_DEV_PUSH;

	for (uint32_t i = 0; i < a->n_ranks; i++) {
		uint32_t from = dev_rotate(a, dev_lowest_bit(a->local), i);

		if (!push)
			copy_from(a, from, a->local);
		else if (dev_is_local(a, from))
			copy_from(a, from, dev_all_ranks(a));
	}
}

/* A round of @from's block for @to, into lane @lane of the slot of @rank. */
DEV_FN void copy_put_one(dev_args a, const struct dev_lanes *lanes, uint64_t region, uint64_t round,
	uint32_t from, uint32_t to, uint32_t rank, uint32_t lane)
{
	struct rx_dev_block block = dev_block_of(a, from, to);
	struct dev_range piece = dev_piece(copy_share(a, block.count), lanes->piece, round);

	if (piece.count > 0)
		dev_copy((const uint8_t *)a->send[from] +
				 (block.send_at + piece.first) * a->elem_bytes,
			dev_parts(dev_slots(a), rank, region + lane * lanes->bytes, 0), 1,
			piece.count * a->elem_bytes);
}

DEV_FN void copy_put(dev_args a, const struct dev_lanes *lanes, uint64_t region, uint64_t round)
{
	bool push = a->flags & RX_DEV_PUSH;

	for (uint64_t left = a->local; left; left &= left - 1) {
		uint32_t from = dev_lowest_bit(left);

		for (uint32_t i = 0; i < lanes->n; i++) {
			/* For a gather, the only taker. */
			uint32_t to = lanes->n == 1 ? a->root : dev_rotate(a, from, i);

			if (push)
				copy_put_one(a, lanes, region, round, from, to, to, from);
			else
				copy_put_one(a, lanes, region, round, from, to, from,
					lanes->n == 1 ? 0 : to);
		}
	}
}

DEV_FN void copy_take(dev_args a, const struct dev_lanes *lanes, uint64_t region, uint64_t round)
{
	bool push = a->flags & RX_DEV_PUSH;

	for (uint64_t left = a->local; left; left &= left - 1) {
		uint32_t to = dev_lowest_bit(left);

		for (uint32_t i = 0; i < a->n_ranks; i++) {
			uint32_t from = dev_rotate(a, to, i);
			uint32_t lane = push ? from : lanes->n == 1 ? 0 : to;
			struct rx_dev_block block = dev_block_of(a, from, to);
			struct dev_range piece =
				dev_piece(copy_share(a, block.count), lanes->piece, round);
			const uint8_t *src = (const uint8_t *)a->slot[push ? to : from];

			if (piece.count > 0)
				dev_copy(src + region + lane * lanes->bytes,
					dev_each(dev_recvs(a),
						(block.recv_at + piece.first) * a->elem_bytes),
					1ull << to, piece.count * a->elem_bytes);
		}
	}
}

DEV_FN void copy_flat(struct dev_run *run)
{
	dev_args a = run->a;
	bool apart = (a->flags & RX_DEV_PUSH) || dev_is_personal(a);
	struct dev_lanes lanes = dev_lanes_of(a, apart ? a->n_ranks : 1);
	/* The first share is as long as any; all blocks do as many rounds. */
	uint64_t longest =
		dev_share(a->count, DEV_SHARE_BYTES / a->elem_bytes, dev_n_blocks(), 0).count;

	for (uint64_t round = 0; round * lanes.piece < longest; round++) {
		uint64_t region = dev_region(run);

		copy_put(a, &lanes, region, round);
		if (!dev_meet(run))
			return;
		copy_take(a, &lanes, region, round);
	}
}

DEV_KERNEL(rx_copy, struct rx_dev_args)
{
	DEV_SHARED(shared);
	dev_args a = DEV_ARGS(struct rx_dev_args);
	struct dev_run run = dev_begin(a, shared, a->dtype);

	if (dev_is_ok(&run) && (a->flags & RX_DEV_ENTRY))
		(void)dev_meet(&run);
	if (dev_is_ok(&run) && a->algorithm == RX_DEV_FLAT)
		copy_flat(&run);
	else if (dev_is_ok(&run))
		copy_direct(a);
	dev_end(&run);
}

DEV_KERNEL(rx_words, struct rx_dev_words)
{
	dev_words w = DEV_ARGS(struct rx_dev_words);
	uint32_t status = RX_DEV_OK;

	if (dev_thread() != 0 || dev_block() != 0)
		return;
	if (w->first)
		dev_store_release(w->first, w->first_value);
	if (w->wait)
		status = dev_wait(w->wait, w->wait_value, false, w->abort, w->wait_ticks);
	if (status && w->status)
		dev_store_word(w->status, status);
	if (w->last)
		dev_store_release(w->last, w->last_value);
}
