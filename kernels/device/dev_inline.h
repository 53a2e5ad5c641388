/* SPDX-License-Identifier: MIT */
/*
 * What every inline kernel does around its values (inline_abi.h has the protocol): take its turn,
 * push, mark, wait, and end. Everything is cut at 16 bytes from the start of what travels, whatever
 * the alignment of the buffers, so that slots are always read and written in whole vectors; only
 * send and recv are touched in smaller units, where they have to.
 *
 * Words. A word of data and its round are one store of 8 bytes, which arrives whole: whoever sees
 * the round has the data. Nothing orders them, and nothing needs to. Their marks are only looked at
 * for what the operation is, and order launches: nothing that has to be seen with a mark was stored
 * before it in its launch, and the end of the launch before that was a fence.
 */
#ifndef RX_DEV_INLINE_H
#define RX_DEV_INLINE_H

#include "dev_core.h"
#include "inline_abi.h"

struct dev_inl_shared {
	struct dev_shared base;           /* failed: a code */
	uint32_t ranks;                   /* that it is about */
	uint32_t dead[RX_INL_MAX_RANKS];  /* local ranks: status before this launch */
	bool overlaps[RX_INL_MAX_RANKS];  /* local ranks: is another launch running? */
	uint64_t round[RX_INL_MAX_RANKS]; /* local ranks: last one before this launch */
	uint64_t next[RX_INL_MAX_RANKS];  /* local ranks: ticket of the next launch */
	uint32_t turn[RX_INL_MAX_RANKS];  /* local ranks: which record is the next
					     launch's */
};

struct dev_inl {
	dev_inl_args a;
	struct dev_inl_shared *shared;
	uint32_t first;   /* round before this launch */
	uint32_t round;   /* the present one */
	uint32_t piece;   /* bytes that go through a region in a round */
	uint32_t n_piece; /* the present one's number */
	uint32_t n_pieces;
	uint32_t lane_bytes;
	uint32_t region_bytes;
	uint32_t bytes; /* count * elem_bytes */
	bool ok;        /* the same for all threads of the block */
	bool dead;      /* it was so before this launch: say nothing */
};

DEV_FN bool dev_inl_is_local(dev_inl_args a, uint32_t rank)
{
	return a->local >> rank & 1;
}

DEV_FN bool dev_inl_is_words(const struct dev_inl *run)
{
	return run->a->algorithm == RX_INL_WORDS;
}

/* ---- vectors anywhere ---- */

/* The first @bytes of what is at @p, up to 16, and zeros. */
DEV_FN struct dev_vec16 dev_inl_load(const uint8_t *p, uint32_t bytes)
{
	struct dev_vec16 v = {{0, 0, 0, 0}};

	if (bytes >= 16 && ((uintptr_t)p & 15) == 0)
		return dev_load16(p);
	if ((((uintptr_t)p | bytes) & 3) == 0) {
		DEV_UNROLL
		for (uint32_t k = 0; k < 4; k++) {
			if (k * 4 < bytes)
				v.w[k] = *DEV_AS_GLOBAL(const uint32_t, p + k * 4);
		}
		return v;
	}
	DEV_UNROLL
	for (uint32_t k = 0; k < 16; k++) {
		if (k < bytes)
			v.w[k / 4] |= (uint32_t)*DEV_AS_GLOBAL(const uint8_t, p + k) << k % 4 * 8;
	}
	return v;
}

DEV_FN void dev_inl_store(uint8_t *p, struct dev_vec16 v, uint32_t bytes)
{
	if (bytes >= 16 && ((uintptr_t)p & 15) == 0) {
		dev_store16(p, v);
		return;
	}
	if ((((uintptr_t)p | bytes) & 3) == 0) {
		DEV_UNROLL
		for (uint32_t k = 0; k < 4; k++) {
			if (k * 4 < bytes)
				*DEV_AS_GLOBAL(uint32_t, p + k * 4) = v.w[k];
		}
		return;
	}
	DEV_UNROLL
	for (uint32_t k = 0; k < 16; k++) {
		if (k < bytes)
			*DEV_AS_GLOBAL(uint8_t, p + k) = (uint8_t)(v.w[k / 4] >> k % 4 * 8);
	}
}

/* ---- slots ---- */

/* Where this block of @from writes in round @round of @to. */
DEV_FN uint8_t *dev_inl_region(
	const struct dev_inl *run, uint32_t to, uint32_t from, uint32_t round)
{
	uint32_t turn = round & 1;

#ifdef RX_DEV_MUTATE_ONE_REGION
	turn = 0;
#endif
	return (uint8_t *)(run->a->mem[to] + 1) + (uint64_t)turn * run->a->slot_bytes +
	       from * run->lane_bytes + dev_block() * run->region_bytes;
}

DEV_FN struct dev_pair dev_inl_word_pair(uint32_t a, uint32_t b, uint32_t round)
{
	struct dev_pair pair;

	pair.v[0] = a | (uint64_t)round << 32;
	pair.v[1] = b | (uint64_t)round << 32;
	return pair;
}

/* Vector @i of a region. */
DEV_FN void dev_inl_put(
	const struct dev_inl *run, uint8_t *region, uint32_t i, struct dev_vec16 v, bool words)
{
	if (!words) {
		dev_store16(region + i * 16, v);
		return;
	}
	dev_store_pair(region + i * 32, dev_inl_word_pair(v.w[0], v.w[1], run->round));
	dev_store_pair(region + i * 32 + 16, dev_inl_word_pair(v.w[2], v.w[3], run->round));
}

/* A vector as words, as it is on its way. */
struct dev_inl_words {
	struct dev_pair lo;
	struct dev_pair hi;
};

DEV_FN struct dev_inl_words dev_inl_look_at(const uint8_t *region, uint32_t i)
{
	struct dev_inl_words words;

	words.lo = dev_load_pair(region + i * 32);
	words.hi = dev_load_pair(region + i * 32 + 16);
	return words;
}

DEV_FN bool dev_inl_arrived(const struct dev_inl_words *words, uint32_t round)
{
	return (uint32_t)(words->lo.v[0] >> 32) == round &&
	       (uint32_t)(words->lo.v[1] >> 32) == round &&
	       (uint32_t)(words->hi.v[0] >> 32) == round &&
	       (uint32_t)(words->hi.v[1] >> 32) == round;
}

DEV_FN struct dev_vec16 dev_inl_data(const struct dev_inl_words *words)
{
	struct dev_vec16 v;

	v.w[0] = (uint32_t)words->lo.v[0];
	v.w[1] = (uint32_t)words->lo.v[1];
	v.w[2] = (uint32_t)words->hi.v[0];
	v.w[3] = (uint32_t)words->hi.v[1];
	return v;
}

/* ---- waiting ---- */

DEV_FN void dev_inl_fail(const struct dev_inl *run, uint32_t code, uint32_t rank)
{
	dev_shared_or(&run->shared->ranks, 1u << rank);
	dev_fail(&run->shared->base, code);
}

/*
 * Between spins of @me for @from: why not to go on. @since is the time of the
 * first look.
 */
DEV_FN uint32_t dev_inl_look(const struct dev_inl *run, uint32_t me, uint32_t from, uint64_t *since)
{
	const struct rx_inl_page *page = run->a->page;
	const struct rx_inl_mem *mem = run->a->mem[me];
	uint32_t own = dev_load_word(&mem->failed);
	uint64_t now = dev_clock();
	uint64_t limit = 0;

	if (own)
		return RX_INL_STATUS_CODE(own);
	if (dev_load_word(&mem->from[from].failed))
		return RX_INL_E_PEER;
	if (!page)
		return RX_INL_OK;
	if (dev_load_word(&page->abort) || dev_load_word(&page->epoch) != run->a->epoch)
		return RX_INL_E_ABORTED;
	limit = dev_load_word64(&page->wait_ticks);
	if (*since == 0)
		*since = now;
	return limit && now - *since > limit ? RX_INL_E_TIMEOUT : RX_INL_OK;
}

/* The same, for a spin of one thread. */
DEV_FN bool dev_inl_go_on(const struct dev_inl *run, uint32_t me, uint32_t from, uint64_t *since)
{
	uint32_t code = dev_inl_look(run, me, from, since);

	if (code)
		dev_inl_fail(run, code, from);
	return code == RX_INL_OK;
}

/* A vector of words, when it is there. False to give up. */
DEV_FN bool dev_inl_await_words(const struct dev_inl *run, uint32_t me, uint32_t from,
	const uint8_t *region, uint32_t i, struct dev_vec16 *v)
{
	uint64_t since = 0;

	for (uint32_t spins = 1;; spins++) {
		struct dev_inl_words words = dev_inl_look_at(region, i);

		if (dev_inl_arrived(&words, run->round)) {
			*v = dev_inl_data(&words);
			return true;
		}
		dev_pause();
		if (spins % DEV_SPINS == 0 && !dev_inl_go_on(run, me, from, &since))
			return false;
	}
}

DEV_FN uint32_t dev_inl_what(dev_inl_args a)
{
	return RX_INL_WHAT(a->coll, a->dtype, a->op, a->algorithm, a->root, dev_n_blocks());
}

DEV_FN const struct rx_inl_mark *dev_inl_mark_of(
	const struct dev_inl *run, uint32_t to, uint32_t from)
{
	return &run->a->mem[to]->from[from].mark[run->round & 1][dev_block()];
}

/* The mark of @from, until it is there: a code. */
DEV_FN uint32_t dev_inl_await_mark(const struct dev_inl *run, uint32_t me, uint32_t from)
{
	const struct rx_inl_mark *mark = dev_inl_mark_of(run, me, from);
	uint64_t since = 0;

	for (uint32_t spins = 1;; spins++) {
		uint64_t what = dev_load_word64(&mark->what);
		uint64_t count = dev_load_acquire(&mark->count);

		/* The two words of an early mark come in any order. */
		if ((uint32_t)(count >> 32) == run->round && (uint32_t)(what >> 32) == run->round)
			return (uint32_t)what == dev_inl_what(run->a) &&
					       (uint32_t)count == run->a->count
				       ? RX_INL_OK
				       : RX_INL_E_MISMATCH;
		dev_pause();
		if (spins % DEV_SPINS == 0) {
			uint32_t code = dev_inl_look(run, me, from, &since);

			if (code)
				return code;
		}
	}
}

/* The marks of all peers of @me for this round, as far as this thread looks. */
DEV_FN void dev_inl_await_marks(const struct dev_inl *run, uint32_t me)
{
	dev_inl_args a = run->a;
	uint32_t n = a->n_ranks;

#ifdef RX_DEV_MUTATE_NO_MARK
	n -= 1;
#endif
	for (uint32_t r = dev_thread(); r < n; r += dev_n_threads()) {
		uint32_t code = r == me ? RX_INL_OK : dev_inl_await_mark(run, me, r);

		if (code)
			dev_inl_fail(run, code, r);
	}
}

/*
 * Tells all peers that this block has pushed what it has in this round, or for
 * words is about to.
 */
DEV_FN void dev_inl_push_marks(const struct dev_inl *run, uint32_t me)
{
	dev_inl_args a = run->a;
	uint64_t round = (uint64_t)run->round << 32;
	bool early = dev_inl_is_words(run) && run->n_piece == 0;

	for (uint32_t r = dev_thread(); r < a->n_ranks; r += dev_n_threads()) {
		struct rx_inl_mark *mark = (struct rx_inl_mark *)dev_inl_mark_of(run, r, me);

		if (r == me)
			continue;
		dev_store_word64(&mark->what, round | dev_inl_what(a));
		if (a->op == RX_PREMUL_SUM)
			dev_store_word64(&mark->scalar, a->scalar[me]);
		if (early)
			dev_store_early(&mark->count, round | a->count);
		else
			dev_store_release(&mark->count, round | a->count);
	}
}

/* ---- pushing ---- */

/* @bytes from @src to the regions of all @ranks but @me. */
DEV_FN void dev_inl_push(
	const struct dev_inl *run, uint32_t me, const uint8_t *src, uint32_t bytes, uint32_t ranks)
{
	dev_inl_args a = run->a;
	bool words = dev_inl_is_words(run);

	for (uint32_t i = dev_thread(); i * 16 < bytes; i += dev_n_threads()) {
		struct dev_vec16 v = dev_inl_load(src + i * 16, bytes - i * 16);

		for (uint32_t k = 1; k < a->n_ranks; k++) {
			uint32_t to = me + k < a->n_ranks ? me + k : me + k - a->n_ranks;

			if (ranks >> to & 1)
				dev_inl_put(
					run, dev_inl_region(run, to, me, run->round), i, v, words);
		}
	}
}

/* This block's piece of @count bytes in the present round. */
DEV_FN struct dev_range dev_inl_piece(const struct dev_inl *run, uint64_t bytes)
{
	return dev_piece(dev_own_share(bytes, DEV_SHARE_BYTES), run->piece, run->n_piece);
}

/*
 * This block has pushed: tell all peers, and wait for them. False to give up.
 *
 * Threads have to agree whether to go on. So between two looks at whether one has failed, and
 * before one can, the block meets.
 */
DEV_FN bool dev_inl_meet(struct dev_inl *run)
{
	dev_inl_args a = run->a;
	bool words = dev_inl_is_words(run);

	if (!words)
		dev_drain();
	dev_meet_block();
	for (uint32_t left = a->local; left; left &= left - 1)
		dev_inl_push_marks(run, dev_lowest_bit(left));
	for (uint32_t left = a->local; left; left &= left - 1)
		dev_inl_await_marks(run, dev_lowest_bit(left));
	dev_meet_block();
	dev_refresh();
	run->ok = dev_failed(&run->shared->base) == RX_INL_OK;
	/* Words are waited for after this; behind the last of them the block only meets to end. */
	if (words && run->n_pieces > 1)
		dev_meet_block();
	return run->ok;
}

/* ---- a launch's turn ---- */

/* Of local rank @r, by one thread. */
DEV_FN void dev_inl_take_turn(const struct dev_inl *run, uint32_t r)
{
	dev_inl_args a = run->a;
	struct rx_inl_mem *mem = a->mem[r];
	struct dev_inl_shared *shared = run->shared;
	uint64_t ticket = dev_count_up64(&mem->ticket);
	struct dev_pair turn0 = dev_load_pair(&mem->turn[0]);
	struct dev_pair turn1 = dev_load_pair(&mem->turn[1]);
	uint64_t ended = dev_load_word64(&mem->ended);
	uint32_t dead = dev_load_word(&mem->failed);
	bool second = turn0.v[0] > ticket || (turn1.v[0] <= ticket && turn1.v[0] > turn0.v[0]);
	struct dev_pair turn = second ? turn1 : turn0;

	shared->round[r] = turn.v[1];
	shared->next[r] = turn.v[0] + dev_n_blocks();
	shared->turn[r] = second ? 0 : 1;
	shared->dead[r] = dead;
	shared->overlaps[r] = ticket - turn.v[0] >= dev_n_blocks() || ended < turn.v[0];
	if (dead || dev_block() != 0 || !a->line[r])
		return;
	dev_store_pair(&a->line[r]->what,
		dev_inl_word_pair(dev_inl_what(a), a->count, (uint32_t)turn.v[1] + 1));
}

DEV_FN bool dev_inl_args_ok(dev_inl_args a, uint32_t dtype)
{
	return a->abi == RX_INL_ABI && a->dtype == dtype && a->n_ranks - 1 < RX_INL_MAX_RANKS &&
	       a->algorithm < RX_INL_ALGORITHM_N && a->elem_bytes - 1 < 8 && a->local != 0 &&
	       a->local >> (a->n_ranks - 1) <= 1 && a->root < a->n_ranks &&
	       dev_n_blocks() <= RX_INL_MAX_BLOCKS &&
	       a->slot_bytes >= RX_INL_SLOT_MIN(a->n_ranks) && a->slot_bytes % 256 == 0;
}

/* How the message is cut: the longest share tells all blocks how many pieces
 * there are. */
DEV_FN void dev_inl_cut(struct dev_inl *run)
{
	dev_inl_args a = run->a;
	uint64_t longest = run->bytes;

	run->lane_bytes = a->slot_bytes / a->n_ranks & ~127u;
	run->region_bytes = run->lane_bytes / dev_n_blocks() & ~127u;
	run->piece = dev_inl_is_words(run) ? run->region_bytes / 2 : run->region_bytes;
	if (a->algorithm == RX_INL_TWO_SHOT)
		longest = dev_share(longest, DEV_SHARE_BYTES, a->n_ranks, 0).count;
	longest = dev_share(longest, DEV_SHARE_BYTES, dev_n_blocks(), 0).count;
	run->n_pieces = longest == 0 ? 1 : (uint32_t)dev_div_up(longest, run->piece);
	run->n_piece = 0;
}

DEV_FN struct dev_inl dev_inl_begin(dev_inl_args a, struct dev_inl_shared *shared, uint32_t dtype)
{
	uint32_t lowest = 0;
	struct dev_inl run;

	run.a = a;
	run.shared = shared;
	run.ok = dev_inl_args_ok(a, dtype);
	run.dead = false;
	run.bytes = a->count * a->elem_bytes;
	if (dev_thread() == 0) {
		shared->ranks = 0;
		dev_fail(&shared->base, run.ok ? RX_INL_OK : RX_INL_E_ARGS);
	}
	if (!run.ok) {
		dev_meet_block();
		return run;
	}
	for (uint32_t r = dev_thread(); r < a->n_ranks; r += dev_n_threads()) {
		if (dev_inl_is_local(a, r))
			dev_inl_take_turn(&run, r);
	}
	dev_meet_block();
	lowest = dev_lowest_bit(a->local);
	run.first = (uint32_t)shared->round[lowest];
	run.round = run.first + 1;
	for (uint32_t left = a->local; left; left &= left - 1) {
		uint32_t r = dev_lowest_bit(left);

		run.dead |= shared->dead[r] != 0;
		if (shared->overlaps[r])
			dev_inl_fail(&run, RX_INL_E_OVERLAP, r);
		else if (shared->round[r] != shared->round[lowest])
			dev_inl_fail(&run, RX_INL_E_MISMATCH, r);
	}
	run.ok = !run.dead && dev_failed(&shared->base) == RX_INL_OK;
	dev_inl_cut(&run);
	return run;
}

/* ---- its end ---- */

/* Is there another piece? */
DEV_FN bool dev_inl_more(struct dev_inl *run)
{
	if (!run->ok || run->n_piece + 1 == run->n_pieces)
		return false;
	/* Nobody pushes words of the next round before all threads have read those of
	 * this one. */
	dev_meet_block();
	run->ok = dev_failed(&run->shared->base) == RX_INL_OK;
	run->n_piece++;
	run->round++;
	return run->ok;
}

/* By one thread. */
DEV_FN void dev_inl_give_up(const struct dev_inl *run, uint32_t status)
{
	dev_inl_args a = run->a;

	for (uint32_t left = a->local; left; left &= left - 1) {
		uint32_t me = dev_lowest_bit(left);

		dev_store_word(&a->mem[me]->failed, status);
		for (uint32_t r = 0; r < a->n_ranks; r++)
			dev_store_word(&a->mem[r]->from[me].failed, status);
		if (a->line[me])
			dev_store_word(&a->line[me]->status, status);
	}
}

DEV_FN void dev_inl_end(const struct dev_inl *run)
{
	dev_inl_args a = run->a;
	struct dev_inl_shared *shared = run->shared;
	uint32_t code = 0;

	if (run->dead)
		return;
	dev_meet_block();
	code = dev_failed(&shared->base);
	if (code == RX_INL_E_ARGS)
		return;
	if (code) {
		if (dev_thread() == 0)
			dev_inl_give_up(run, code | shared->ranks << 16);
		return;
	}
	for (uint32_t r = dev_thread(); r < a->n_ranks; r += dev_n_threads()) {
		struct dev_pair turn;

		if (!dev_inl_is_local(a, r))
			continue;
		turn.v[0] = shared->next[r];
		turn.v[1] = shared->round[r] + (run->round - run->first);
		if (dev_block() == 0)
			dev_store_pair(&a->mem[r]->turn[shared->turn[r]], turn);
		dev_note_up64(&a->mem[r]->ended);
	}
}

#endif
