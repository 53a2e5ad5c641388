/* SPDX-License-Identifier: MIT */
/*
 * The sleeper words lie in the lines that a publisher has in its cache anyway, and there are as
 * many as there are kinds of words to wait for, so that a publisher of one kind never pays for
 * sleepers of another. A word that a hostile peer leaves set costs its communicators one futex
 * call an op.
 */
#include "rx_fabric.h"

#include <errno.h>
#include <string.h>

#ifdef RX_FABRIC_TSAN
#include <sanitizer/tsan_interface.h>

/* One address per rank, whatever the communicator: orders more than need be, hides little. */
static char tsan_words[RX_MAX_RANKS];

void rx_fabric_tsan_announced(uint32_t rank)
{
	__tsan_release(&tsan_words[rank]);
}

void rx_fabric_tsan_seen(uint32_t rank)
{
	__tsan_acquire(&tsan_words[rank]);
}
#endif

#define PAGE_BYTES 4096u

static bool n_ranks_ok(uint32_t n_ranks)
{
	return n_ranks >= 1 && n_ranks <= RX_MAX_RANKS;
}

uint64_t rx_fabric_lines_bytes(uint32_t n_ranks)
{
	return rx_align_up((uint64_t)n_ranks * sizeof(struct rx_line), PAGE_BYTES);
}

uint64_t rx_fabric_arena_bytes(uint32_t n_ranks)
{
	return rx_fabric_lines_bytes(n_ranks) + (uint64_t)n_ranks * RX_STAGE_RANK_SIZE;
}

int rx_fabric_init(struct rx_fabric *fabric, const struct rx_map *ctl, const struct rx_map *arena,
	uint32_t n_ranks)
{
	const struct rx_fabric_ctl *page = rx_map_at(ctl, 0, sizeof(*page));
	uint64_t staging_bytes = (uint64_t)n_ranks * RX_STAGE_RANK_SIZE;
	void *lines = NULL;

	if (!page || !n_ranks_ok(n_ranks))
		return -EINVAL;
	lines = rx_map_at(arena, 0, rx_fabric_lines_bytes(n_ranks));
	if (!lines)
		return -EINVAL;
	*fabric = (struct rx_fabric){
		.ctl = page,
		.lines = lines,
		.staging = rx_map_at(arena, rx_fabric_lines_bytes(n_ranks), staging_bytes),
		.n_ranks = n_ranks,
	};
	return 0;
}

void rx_fabric_wake_all(const struct rx_fabric *fabric)
{
	/* Whoever is about to sleep looks at the abort word again after at most RX_SLEEP_NS. */
	for (uint32_t rank = 0; rank < fabric->n_ranks; rank++) {
		const struct rx_line *line = &fabric->lines[rank];

		rx_futex_wake(&line->entry[0].seq);
		rx_futex_wake(&line->entry[1].seq);
		rx_futex_wake(&line->progress.step);
	}
}

void rx_fabric_sleep(const struct rx_fabric *fabric, uint32_t me, enum rx_wait_what what,
	uint32_t peer, uint32_t target, uint64_t timeout_ns)
{
	const _Atomic uint32_t *word = rx_fabric_word(fabric, what, peer, target);
	_Atomic uint32_t *sleeper = rx_fabric_sleeper(fabric, what, me, target);
	uint32_t now = 0;

	/* Both seq_cst, against word store and sleeper load of rx_fabric_announce(). */
	atomic_store_explicit(sleeper, 1, memory_order_seq_cst);
	now = atomic_load_explicit(word, memory_order_seq_cst);
	if (!rx_seq_reached(now, target))
		(void)rx_futex_wait(word, now, timeout_ns);
	/* No pair: a publisher that still sees 1 makes one futex call for nothing. */
	atomic_store_explicit(sleeper, 0, memory_order_relaxed);
}

struct rx_line_view rx_fabric_view(const struct rx_fabric *fabric, uint32_t rank)
{
	const struct rx_line *line = &fabric->lines[rank];
	/* Acquire, with the stores of rx_fabric_announce(): the entry is at least that new. */
	uint32_t seq[2] = {
		atomic_load_explicit(&line->entry[0].seq, memory_order_acquire),
		atomic_load_explicit(&line->entry[1].seq, memory_order_acquire),
	};
	uint32_t newer = rx_seq_reached(seq[1], seq[0]);
	struct rx_line_view view = {
		.seq = seq[newer],
		.step = atomic_load_explicit(&line->progress.step, memory_order_acquire),
	};

	memcpy(&view.sig, &line->entry[newer].sig, sizeof(view.sig));
	return view;
}

void rx_fabric_count(
	const struct rx_fabric *fabric, uint32_t rank, const struct rx_precision_counts *counts)
{
	struct rx_line_counts *line = &fabric->lines[rank].precision;
	uint64_t words[RX_PRECISION_N_COUNTS];

	memcpy(words, counts, sizeof(words));
	/* No pair: whoever reads them wants numbers, not an order of things. */
	for (size_t i = 0; i < RX_PRECISION_N_COUNTS; i++)
		atomic_store_explicit(&line->words[i], words[i], memory_order_relaxed);
}

struct rx_precision_counts rx_fabric_counts(const struct rx_fabric *fabric, uint32_t rank)
{
	const struct rx_line_counts *line = &fabric->lines[rank].precision;
	struct rx_precision_counts counts;
	uint64_t words[RX_PRECISION_N_COUNTS];

	for (size_t i = 0; i < RX_PRECISION_N_COUNTS; i++)
		words[i] = atomic_load_explicit(&line->words[i], memory_order_relaxed);
	memcpy(&counts, words, sizeof(counts));
	return counts;
}

bool rx_fabric_ctl_abort(struct rx_fabric_ctl *ctl, enum rx_abort_reason reason, uint32_t rank,
	uint32_t other, const struct rx_op_sig sig[2])
{
	/* One writer, which reads its own word. */
	if (atomic_load_explicit(&ctl->abort, memory_order_relaxed) != RX_ABORT_NONE)
		return false;
	ctl->abort_rank = rank;
	ctl->abort_other = other;
	if (sig)
		memcpy(ctl->abort_sig, sig, sizeof(ctl->abort_sig));
	/* Release: a member that loads the word (acquire) sees the reason's details. */
	atomic_store_explicit(&ctl->abort, (uint32_t)reason, memory_order_release);
	return true;
}
