/* SPDX-License-Identifier: MIT */
/*
 * What every kernel does around its work: check its arguments, meet the other launches, end; and
 * how work is shared out.
 *
 * Shares. Which block does which elements follows from counts alone, never from a launch's own
 * pointers: block b of a launch touches only what block b of others prepared, so that a barrier
 * between blocks of the same number is enough.
 */
#ifndef RX_DEV_CORE_H
#define RX_DEV_CORE_H

#include "device.h"

/* Shares are cut at multiples of this. */
#define DEV_SHARE_BYTES 256u
/* Spins between looks at the abort word and the clock, which are far away. */
#define DEV_SPINS 64u

struct dev_run {
	dev_args a;
	struct dev_shared *shared;
	uint64_t number; /* of the last barrier that this block has passed */
};

struct dev_range {
	uint64_t first;
	uint64_t count;
};

DEV_FN uint64_t dev_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A 64-bit division takes a GPU a hundred instructions. */
DEV_FN uint64_t dev_div_up(uint64_t a, uint32_t b)
{
	if ((a >> 32) == 0)
		return ((uint32_t)a / b) + ((uint32_t)a % b != 0);
	return (a - 1) / b + 1;
}

/* Share @i of @n of [0, @count), cut at multiples of @unit, a power of two. */
DEV_FN struct dev_range dev_share(uint64_t count, uint32_t unit, uint32_t n, uint32_t i)
{
	uint64_t units = (count + unit - 1) / unit;
	uint64_t each = dev_div_up(units, n) * unit;
	struct dev_range share;

	share.first = dev_min(i * each, count);
	share.count = dev_min(count - share.first, each);
	return share;
}

/* This block's share. */
DEV_FN struct dev_range dev_own_share(uint64_t count, uint32_t unit)
{
	return dev_share(count, unit, dev_n_blocks(), dev_block());
}

/* The n-th piece of @share; empty beyond its end. */
DEV_FN struct dev_range dev_piece(struct dev_range share, uint64_t size, uint64_t n)
{
	struct dev_range piece;
	uint64_t at = dev_min(n * size, share.count);

	piece.first = share.first + at;
	piece.count = dev_min(share.count - at, size);
	return piece;
}

DEV_FN bool dev_is_local(dev_args a, uint32_t rank)
{
	return a->local >> rank & 1;
}

DEV_FN uint64_t dev_all_ranks(dev_args a)
{
	return ~0ull >> (64 - a->n_ranks);
}

DEV_FN bool dev_args_ok(dev_args a, uint32_t dtype)
{
	return a->abi == RX_DEV_ABI && a->dtype == dtype && a->n_ranks - 1 < RX_DEV_MAX_RANKS &&
	       a->n_launches - 1 < RX_DEV_MAX_LAUNCHES && a->launch < a->n_launches &&
	       a->elem_bytes - 1 < 8;
}

/* Behind a barrier of the block the same for all of its threads. */
DEV_FN bool dev_is_ok(const struct dev_run *run)
{
	return dev_uniform(dev_failed(run->shared)) == RX_DEV_OK;
}

DEV_FN struct dev_run dev_begin(dev_args a, struct dev_shared *shared, uint32_t dtype)
{
	bool ok = dev_args_ok(a, dtype);
	struct rx_dev_sync *own = ok ? a->sync[a->launch] : (struct rx_dev_sync *)0;
	struct dev_run run;

	run.a = a;
	run.shared = shared;
	run.number = 0;
	if (own && dev_block() < RX_DEV_MAX_BLOCKS)
		run.number = *DEV_AS_GLOBAL(uint64_t, &own->passed[dev_block()]);
	if (dev_is_first())
		dev_fail(shared, ok ? RX_DEV_OK : RX_DEV_E_ARGS);
	dev_meet_block();
	return run;
}

/* Until *@word is @value, or with @or_more has passed it; else why not. */
DEV_FN uint32_t dev_wait(const uint64_t *word, uint64_t value, bool or_more,
	const uint32_t *abort_word, uint64_t wait_ticks)
{
	uint64_t since = 0;

	for (uint32_t spins = 1;; spins++) {
		int64_t ahead = (int64_t)(dev_load_acquire(word) - value);

		if (ahead == 0 || (or_more && ahead > 0))
			return RX_DEV_OK;
		dev_pause();
		if (spins % DEV_SPINS)
			continue;
		if (abort_word && dev_load_word(abort_word))
			return RX_DEV_E_ABORTED;
		if (since == 0)
			since = dev_clock();
		else if (wait_ticks && dev_clock() - since > wait_ticks)
			return RX_DEV_E_TIMEOUT;
	}
}

/*
 * The barrier: with what this block did before, for what it does next. False when it is to give
 * up.
 */
DEV_FN bool dev_meet(struct dev_run *run)
{
	dev_args a = dev_fresh(run->a);
	uint32_t block = dev_block();

	run->number++;
	if (a->n_launches == 1) {
		dev_meet_block();
		return dev_is_ok(run);
	}
	dev_drain();
	dev_meet_block();
	for (uint32_t l = dev_thread(); l < a->n_launches; l += dev_n_threads()) {
		if (l != a->launch)
			dev_store_release(&a->sync[l]->arrived[block][a->launch], run->number);
	}
	for (uint32_t l = dev_thread(); l < a->n_launches; l += dev_n_threads()) {
		const uint64_t *word = &a->sync[a->launch]->arrived[block][l];
		uint32_t status = RX_DEV_OK;

		if (l != a->launch)
			status = dev_wait(word, run->number, true, a->abort, a->wait_ticks);
		if (status)
			dev_fail(run->shared, status | l << 8);
	}
	dev_meet_block();
	dev_refresh();
	return dev_is_ok(run);
}

/* By one thread, when all blocks are done. */
DEV_FN void dev_tell(dev_args a)
{
	for (uint64_t left = a->local; left; left &= left - 1) {
		uint64_t *done = a->done[dev_lowest_bit(left)];

		if (done)
			dev_store_release(done, a->done_value);
	}
}

DEV_FN void dev_end(struct dev_run *run)
{
	dev_args a = dev_fresh(run->a);
	struct rx_dev_sync *own =
		a->launch < RX_DEV_MAX_LAUNCHES ? a->sync[a->launch] : (struct rx_dev_sync *)0;
	uint32_t status = 0;

#ifndef RX_DEV_MUTATE_NO_EXIT
	if (dev_is_ok(run) && (a->flags & RX_DEV_EXIT))
		(void)dev_meet(run);
#endif
	dev_drain();
	dev_meet_block();
	if (!dev_is_first())
		return;
	status = dev_failed(run->shared);
	if (status && a->status)
		dev_store_word(a->status, status);
	if (!own)
		return;
	if (dev_block() < RX_DEV_MAX_BLOCKS)
		*DEV_AS_GLOBAL(uint64_t, &own->passed[dev_block()]) = run->number;
	if (dev_count_up(&own->n_ended) + 1 < dev_n_blocks())
		return;
	dev_store_word(&own->n_ended, 0);
	dev_tell(a);
}

#endif
