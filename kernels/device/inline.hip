/* SPDX-License-Identifier: MIT */
/* Inline kernels: one for what copies, and one for each type for what reduces.
 */
#include "dev_inline.h"
#include "dev_value.h"

/* ---- copies ---- */

/*
 * Vector @t of several parts of @n_vectors each, which threads go through as if
 * they were one: so short messages of many ranks are on their way at the same
 * time.
 */
struct dev_inl_item {
	uint32_t which;
	uint32_t i;
};

DEV_FN struct dev_inl_item dev_inl_item(uint32_t t, uint32_t n_vectors)
{
	struct dev_inl_item item;

	item.which = t / n_vectors;
	item.i = t - item.which * n_vectors;
	return item;
}

DEV_FN void dev_inl_push_personal(const struct dev_inl *run, uint32_t me)
{
	dev_inl_args a = run->a;
	struct dev_range piece = dev_inl_piece(run, run->bytes);
	uint32_t bytes = (uint32_t)piece.count;
	uint32_t n = (bytes + 15) / 16;
	bool words = dev_inl_is_words(run);

	for (uint32_t t = dev_thread(); t < n * (a->n_ranks - 1); t += dev_n_threads()) {
		struct dev_inl_item item = dev_inl_item(t, n);
		uint32_t to = me + 1 + item.which;
		uint64_t at = item.i * 16;

		to = to < a->n_ranks ? to : to - a->n_ranks;
		dev_inl_put(run, dev_inl_region(run, to, me, run->round), item.i,
			dev_inl_load((const uint8_t *)a->send[me] + (uint64_t)to * run->bytes +
					     piece.first + at,
				bytes - (uint32_t)at),
			words);
	}
}

DEV_FN void dev_inl_copy_push(const struct dev_inl *run, uint32_t me)
{
	dev_inl_args a = run->a;
	struct dev_range piece = dev_inl_piece(run, run->bytes);

	if (a->coll == RX_ALL_TO_ALL)
		dev_inl_push_personal(run, me);
	else if (a->coll == RX_ALL_GATHER || a->root == me)
		dev_inl_push(run, me, (const uint8_t *)a->send[me] + piece.first,
			(uint32_t)piece.count, ~0u);
}

DEV_FN void dev_inl_copy_own(const struct dev_inl *run, uint32_t me)
{
	dev_inl_args a = run->a;
	struct dev_range piece = dev_inl_piece(run, run->bytes);
	uint64_t own_at = (uint64_t)me * run->bytes;
	const uint8_t *from = (const uint8_t *)a->send[me] + piece.first;
	uint8_t *to = (uint8_t *)a->recv[me] + piece.first;

	if (a->coll == RX_BROADCAST && a->root != me)
		return;
	from += a->coll == RX_ALL_TO_ALL ? own_at : 0;
	to += a->coll == RX_BROADCAST ? 0 : own_at;
	if (from == to)
		return;
	for (uint32_t i = dev_thread(); i * 16 < piece.count; i += dev_n_threads()) {
		uint32_t left = (uint32_t)piece.count - i * 16;

		dev_inl_store(to + i * 16, dev_inl_load(from + i * 16, left), left);
	}
}

DEV_FN void dev_inl_copy_take(const struct dev_inl *run, uint32_t me)
{
	dev_inl_args a = run->a;
	bool broadcast = a->coll == RX_BROADCAST;
	struct dev_range piece = dev_inl_piece(run, run->bytes);
	uint32_t bytes = (uint32_t)piece.count;
	uint32_t n = (bytes + 15) / 16;
	uint32_t n_from = broadcast ? (a->root == me ? 0 : 1) : a->n_ranks - 1;

	for (uint32_t t = dev_thread(); t < n * n_from; t += dev_n_threads()) {
		struct dev_inl_item item = dev_inl_item(t, n);
		uint32_t from = me + 1 + item.which;
		const uint8_t *region = 0;
		uint8_t *to = (uint8_t *)a->recv[me] + piece.first + item.i * 16;
		struct dev_vec16 v;

		from = broadcast ? a->root : from < a->n_ranks ? from : from - a->n_ranks;
		region = dev_inl_region(run, me, from, run->round);
		to += broadcast ? 0 : (uint64_t)from * run->bytes;
		if (!dev_inl_is_words(run))
			v = dev_load16(region + item.i * 16);
		else if (!dev_inl_await_words(run, me, from, region, item.i, &v))
			return;
		dev_inl_store(to, v, bytes - item.i * 16);
	}
}

DEV_KERNEL(rx_inl_copy, struct rx_inl_args)
{
	DEV_SHARED_MORE(struct dev_inl_shared, shared);
	dev_inl_args a = DEV_ARGS(struct rx_inl_args);
	struct dev_inl run = dev_inl_begin(a, shared, a->dtype);

	if (run.ok) {
		do {
			for (uint32_t left = a->local; left; left &= left - 1)
				dev_inl_copy_push(&run, dev_lowest_bit(left));
			for (uint32_t left = a->local; left; left &= left - 1)
				dev_inl_copy_own(&run, dev_lowest_bit(left));
			if (!dev_inl_meet(&run))
				break;
			for (uint32_t left = a->local; left; left &= left - 1)
				dev_inl_copy_take(&run, dev_lowest_bit(left));
		} while (dev_inl_more(&run));
	}
	dev_inl_end(&run);
}

/* ---- folds ---- */

DEV_FN bool dev_inl_scatters(dev_inl_args a)
{
	return a->coll == RX_REDUCE_SCATTER || a->algorithm == RX_INL_TWO_SHOT;
}

/* Bytes of the message that @rank folds. */
DEV_FN struct dev_range dev_inl_own(const struct dev_inl *run, uint32_t rank)
{
	struct dev_range range;

	if (run->a->algorithm == RX_INL_TWO_SHOT)
		return dev_share(run->bytes, DEV_SHARE_BYTES, run->a->n_ranks, rank);
	range.first = run->a->coll == RX_REDUCE_SCATTER ? (uint64_t)rank * run->bytes : 0;
	range.count = run->bytes;
	return range;
}

/* Inputs of @me to whoever folds them. */
DEV_FN void dev_inl_fold_push(const struct dev_inl *run, uint32_t me)
{
	dev_inl_args a = run->a;

	for (uint32_t k = 1; k < (dev_inl_scatters(a) ? a->n_ranks : 2); k++) {
		uint32_t to = me + k < a->n_ranks ? me + k : me + k - a->n_ranks;
		struct dev_range own = dev_inl_own(run, to);
		struct dev_range piece = dev_inl_piece(run, own.count);

		dev_inl_push(run, me, (const uint8_t *)a->send[me] + own.first + piece.first,
			(uint32_t)piece.count, dev_inl_scatters(a) ? 1u << to : ~0u);
	}
}

/* Two shots: the parts that others have folded. */
DEV_FN void dev_inl_gather(const struct dev_inl *run, uint32_t me)
{
	dev_inl_args a = run->a;

	for (uint32_t k = 1; k < a->n_ranks; k++) {
		uint32_t from = me + k < a->n_ranks ? me + k : me + k - a->n_ranks;
		struct dev_range part = dev_inl_own(run, from);
		struct dev_range piece = dev_inl_piece(run, part.count);
		const uint8_t *region = dev_inl_region(run, me, from, run->round);
		uint8_t *to = (uint8_t *)a->recv[me] + part.first + piece.first;

		for (uint32_t i = dev_thread(); i * 16 < piece.count; i += dev_n_threads())
			dev_inl_store(to + i * 16, dev_load16(region + i * 16),
				(uint32_t)piece.count - i * 16);
	}
}

/* What one rank folds of one piece. */
struct dev_inl_fold {
	const struct dev_inl *run;
	struct dev_average average;
	const uint8_t *own; /* in send */
	uint8_t *to;        /* in recv */
	uint32_t me;
	uint32_t bytes;
	bool push; /* results go to all others too, in the next round */
};

DEV_FN struct dev_inl_fold dev_inl_fold_of(const struct dev_inl *run, uint32_t me)
{
	dev_inl_args a = run->a;
	struct dev_range own = dev_inl_own(run, me);
	struct dev_range piece = dev_inl_piece(run, own.count);
	struct dev_inl_fold fold;

	fold.run = run;
	fold.average = dev_average_of(a->op, a->n_ranks);
	fold.own = (const uint8_t *)a->send[me] + own.first + piece.first;
	fold.to = (uint8_t *)a->recv[me] + piece.first;
	fold.to += a->coll == RX_REDUCE_SCATTER ? 0 : own.first;
	fold.me = me;
	fold.bytes = (uint32_t)piece.count;
	fold.push = a->algorithm == RX_INL_TWO_SHOT;
	return fold;
}

/* A result of vector @i. */
DEV_FN void dev_inl_result(const struct dev_inl_fold *fold, uint32_t i, struct dev_vec16 v)
{
	const struct dev_inl *run = fold->run;

	dev_inl_store(fold->to + i * 16, v, fold->bytes - i * 16);
	if (!fold->push)
		return;
	for (uint32_t k = 1; k < run->a->n_ranks; k++) {
		uint32_t to = fold->me + k;

		to = to < run->a->n_ranks ? to : to - run->a->n_ranks;
		dev_store16(dev_inl_region(run, to, fold->me, run->round + 1) + i * 16, v);
	}
}

/* Inputs are pushed, and those of the peers have come. */
DEV_FN bool dev_inl_fold_round(struct dev_inl *run)
{
	for (uint32_t left = run->a->local; left; left &= left - 1)
		dev_inl_fold_push(run, dev_lowest_bit(left));
	return dev_inl_meet(run);
}

/* Results are pushed: a second round, with two shots. */
DEV_FN bool dev_inl_results_round(struct dev_inl *run)
{
	if (run->a->algorithm != RX_INL_TWO_SHOT)
		return true;
	run->round++;
	if (!dev_inl_meet(run))
		return false;
	for (uint32_t left = run->a->local; left; left &= left - 1)
		dev_inl_gather(run, dev_lowest_bit(left));
	return true;
}

/* Inputs that a thread has in flight. */
#define DEV_INL_BATCH 4u

/* Vector @i of up to DEV_INL_BATCH inputs from rank @first on. False to give up. */
DEV_FN bool dev_inl_inputs(const struct dev_inl_fold *fold, uint32_t first, uint32_t i,
	struct dev_vec16 own, struct dev_vec16 *raw)
{
	const struct dev_inl *run = fold->run;
	uint32_t n = run->a->n_ranks - first;
	uint64_t since = 0;

	if (!dev_inl_is_words(run)) {
		DEV_UNROLL
		for (uint32_t k = 0; k < DEV_INL_BATCH; k++) {
			if (k < n && first + k != fold->me)
				raw[k] = dev_load16(
					dev_inl_region(run, fold->me, first + k, run->round) +
					i * 16);
			else
				raw[k] = own;
		}
		return true;
	}
	for (uint32_t spins = 1;; spins++) {
		struct dev_inl_words words[DEV_INL_BATCH] = {{{{0}}, {{0}}}};
		uint32_t missing = RX_INL_MAX_RANKS;

		DEV_UNROLL
		for (uint32_t k = 0; k < DEV_INL_BATCH; k++) {
			if (k < n && first + k != fold->me)
				words[k] = dev_inl_look_at(
					dev_inl_region(run, fold->me, first + k, run->round), i);
		}
		DEV_UNROLL
		for (uint32_t k = 0; k < DEV_INL_BATCH; k++) {
			raw[k] = own;
			if (k >= n || first + k == fold->me)
				continue;
			raw[k] = dev_inl_data(&words[k]);
			if (!dev_inl_arrived(&words[k], run->round))
				missing = first + k;
		}
		if (missing == RX_INL_MAX_RANKS)
			return true;
		dev_pause();
		if (spins % DEV_SPINS == 0 && !dev_inl_go_on(run, fold->me, missing, &since))
			return false;
	}
}

#define DEV_TYPE_FILE "dev_inline_type.h"
#include "dev_types.h"
#undef DEV_TYPE_FILE
