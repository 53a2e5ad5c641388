/* SPDX-License-Identifier: MIT */
/*
 * A communicator's arena and control page: sizes, accessors, publishing and waiting.
 *
 * Ordering. A rank fills its entry (plain stores), then stores entry.seq with seq_cst; a peer
 * that loads seq (acquire) sees the fill. The sleep handshake: a sleeper stores its sleeper word
 * (seq_cst) and looks at seq once more before the futex; a publisher stores seq (seq_cst) and
 * then loads the peers' sleeper words: one of the two sees the other (tests/model/sleep.pml).
 *
 * What an op does for each message is inline: publishing and one look take 4.7 ns instead of 5.4
 * (gcc 12, uncontended), of some 60 ns that an 8-byte allreduce takes, and a spin loop makes many
 * looks.
 */
#ifndef RX_FABRIC_H
#define RX_FABRIC_H

#include "rx_fabric_abi.h"
#include "rx_map.h"
#include "rx_wake.h"

#include <string.h>

/* Local view of a communicator's memory; the same on clients and daemon. */
struct rx_fabric {
	const struct rx_fabric_ctl *ctl;
	struct rx_line *lines;
	uint8_t *staging; /* NULL in the daemon, which maps the lines only */
	uint32_t n_ranks;
};

/** rx_fabric_arena_bytes() - size of the arena for @n_ranks; rx_fabric_lines_bytes(): its lines */
uint64_t rx_fabric_arena_bytes(uint32_t n_ranks);
uint64_t rx_fabric_lines_bytes(uint32_t n_ranks);

/**
 * rx_fabric_init() - attach to mapped memory
 * @arena: whole arena (members) or at least the lines (daemon)
 * Return: 0, or -EINVAL when a map is too small or @n_ranks not in [1, RX_MAX_RANKS].
 */
RX_WARN_UNUSED int rx_fabric_init(struct rx_fabric *fabric, const struct rx_map *ctl,
	const struct rx_map *arena, uint32_t n_ranks);

/** rx_fabric_flat() - staging of small messages of @rank for op @seq, RX_FLAT_BYTES */
static inline uint8_t *rx_fabric_flat(const struct rx_fabric *fabric, uint32_t rank, uint32_t seq)
{
	return fabric->staging + (size_t)rank * RX_STAGE_RANK_SIZE + (seq & 1) * RX_FLAT_BYTES;
}

/** rx_fabric_chunk() - staging chunk @index (0 .. RX_STAGE_IN + RX_STAGE_OUT - 1) of @rank */
static inline uint8_t *rx_fabric_chunk(
	const struct rx_fabric *fabric, uint32_t rank, uint32_t index)
{
	return fabric->staging + (size_t)rank * RX_STAGE_RANK_SIZE + 2u * RX_FLAT_BYTES +
	       (size_t)index * RX_CHUNK_BYTES;
}

/** rx_sig_equal() - the same call? */
static inline bool rx_sig_equal(const struct rx_op_sig *a, const struct rx_op_sig *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/** rx_seq_reached() - has a free-running 32-bit counter @now come to @target? */
static inline bool rx_seq_reached(uint32_t now, uint32_t target)
{
	return (int32_t)(now - target) >= 0;
}

enum rx_wait_what { RX_WAIT_ENTRY, RX_WAIT_STEP };

/* The counter of @rank that announces @target, and the sleeper word that belongs to it. */
static inline _Atomic uint32_t *rx_fabric_word(
	const struct rx_fabric *fabric, enum rx_wait_what what, uint32_t rank, uint32_t target)
{
	struct rx_line *line = &fabric->lines[rank];

	return what == RX_WAIT_ENTRY ? &line->entry[target & 1].seq : &line->progress.step;
}

static inline _Atomic uint32_t *rx_fabric_sleeper(
	const struct rx_fabric *fabric, enum rx_wait_what what, uint32_t rank, uint32_t target)
{
	struct rx_line *line = &fabric->lines[rank];

	return what == RX_WAIT_ENTRY ? &line->entry[target & 1].sleeper : &line->progress.sleeper;
}

/*
 * Ranks of one process map the arena each for themselves, so that ThreadSanitizer sees different
 * words and nothing that orders the use of the ranks' buffers. It is told here: what a rank did
 * before it announced comes before what a peer does that has seen it.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RX_FABRIC_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define RX_FABRIC_TSAN 1
#endif

#ifdef RX_FABRIC_TSAN
void rx_fabric_tsan_announced(uint32_t rank);
void rx_fabric_tsan_seen(uint32_t rank);
#else
static inline void rx_fabric_tsan_announced(uint32_t rank)
{
	(void)rank;
}

static inline void rx_fabric_tsan_seen(uint32_t rank)
{
	(void)rank;
}
#endif

/** rx_fabric_announce() - common part of rx_fabric_publish() and rx_fabric_step() */
static inline void rx_fabric_announce(
	const struct rx_fabric *fabric, enum rx_wait_what what, uint32_t rank, uint32_t value)
{
	_Atomic uint32_t *word = rx_fabric_word(fabric, what, rank, value);
	uint32_t any = 0;

	rx_fabric_tsan_announced(rank);
	/* Release half: pairs with the acquire of rx_fabric_reached(). */
	atomic_store_explicit(word, value, memory_order_seq_cst);
	/* seq_cst against the sleeper store and word load of rx_fabric_sleep(). */
	for (uint32_t peer = 0; peer < fabric->n_ranks; peer++) {
		if (peer != rank)
			any |= atomic_load_explicit(
				rx_fabric_sleeper(fabric, what, peer, value), memory_order_seq_cst);
	}
	if (rx_unlikely(any != 0))
		rx_futex_wake(word);
}

/**
 * rx_fabric_publish() - announce op @seq of @rank; its entry's other fields are filled already
 *
 * Wakes sleeping peers.
 */
static inline void rx_fabric_publish(const struct rx_fabric *fabric, uint32_t rank, uint32_t seq)
{
	rx_fabric_announce(fabric, RX_WAIT_ENTRY, rank, seq);
}

/** rx_fabric_step() - announce that @rank came to @step; wakes sleeping peers */
static inline void rx_fabric_step(const struct rx_fabric *fabric, uint32_t rank, uint32_t step)
{
	rx_fabric_announce(fabric, RX_WAIT_STEP, rank, step);
}

/** rx_fabric_wake_all() - wake every sleeper of the communicator (daemon: after abort, status) */
void rx_fabric_wake_all(const struct rx_fabric *fabric);

/**
 * rx_fabric_reached() - has @peer published op (or step) @target?
 *
 * Acquire: pairs with the store of rx_fabric_publish(), rx_fabric_step().
 */
static inline bool rx_fabric_reached(
	const struct rx_fabric *fabric, enum rx_wait_what what, uint32_t peer, uint32_t target)
{
	const _Atomic uint32_t *word = rx_fabric_word(fabric, what, peer, target);

	if (!rx_seq_reached(atomic_load_explicit(word, memory_order_acquire), target))
		return false;
	rx_fabric_tsan_seen(peer);
	return true;
}

/**
 * rx_fabric_sleep() - sleep until @peer comes to @target, or something else happens
 * @me:         own rank; its sleeper word is set meanwhile
 * @timeout_ns: at most this long; callers use RX_SLEEP_NS
 *
 * Returns early whenever woken: look again at the target, the abort word and the status.
 */
void rx_fabric_sleep(const struct rx_fabric *fabric, uint32_t me, enum rx_wait_what what,
	uint32_t peer, uint32_t target, uint64_t timeout_ns);

/** What a rank last announced, copied for reports: the newer of its two entries. */
struct rx_line_view {
	uint32_t seq;
	uint32_t step;
	struct rx_op_sig sig;
};

/** rx_fabric_view() - snapshot of @rank's line; consistent enough for a report */
struct rx_line_view rx_fabric_view(const struct rx_fabric *fabric, uint32_t rank);

/** rx_fabric_count() - tell the daemon what this rank has counted; the rank itself */
void rx_fabric_count(
	const struct rx_fabric *fabric, uint32_t rank, const struct rx_precision_counts *counts);

/** rx_fabric_counts() - what @rank says that it has counted: numbers for people */
struct rx_precision_counts rx_fabric_counts(const struct rx_fabric *fabric, uint32_t rank);

/* ---- control page, daemon side: @ctl is the writable mapping ---- */

/** rx_fabric_ctl_abort() - set the abort word once; later reasons are ignored. False if set. */
bool rx_fabric_ctl_abort(struct rx_fabric_ctl *ctl, enum rx_abort_reason reason, uint32_t rank,
	uint32_t other, const struct rx_op_sig sig[2]);

#endif
