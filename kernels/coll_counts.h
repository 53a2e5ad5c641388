/* SPDX-License-Identifier: MIT */
/*
 * Counts and displacements of the variable collectives: what a rank's call says, how it travels to
 * the daemon, and on what the ranks have to agree. Library and daemon share these rules.
 */
#ifndef RX_COLL_COUNTS_H
#define RX_COLL_COUNTS_H

#include "coll_extent.h"

#include <stddef.h>

/* In elements, one number per rank; NULL where the collective has none. */
struct rx_counts {
	const uint64_t *send_counts; /* all_to_all_v; reduce_scatter_v: the blocks' counts */
	const uint64_t *send_displs; /* all_to_all_v */
	const uint64_t *recv_counts; /* all_gather_v, all_to_all_v */
	const uint64_t *recv_displs; /* all_gather_v, all_to_all_v */
};

/* The ranks' numbers differ: what each of two of them says. */
struct rx_clash {
	uint32_t rank[2];  /* all_to_all_v: who sends, who receives */
	uint32_t block;    /* the others: the rank whose count it is */
	uint64_t count[2]; /* what rank[0] and rank[1] say it is */
};

/* Words of the block that is handed to the daemon: the scalar, then the arrays in this order. */
#define RX_COUNTS_ARRAYS_MAX 4u
#define RX_COUNTS_WORDS_MAX  (1u + RX_COUNTS_ARRAYS_MAX * RX_MAX_RANKS)

/** rx_counts_words() - words of the block of @coll; 0: it is no variable collective */
uint32_t rx_counts_words(uint32_t coll, uint32_t n_ranks);

/** rx_counts_pack() - fill a block of rx_counts_words() */
void rx_counts_pack(uint32_t coll, uint32_t n_ranks, uint64_t scalar,
	const struct rx_counts *counts, uint64_t *words);

/** rx_counts_of() - the arrays in a block of rx_counts_words(), which the result points into */
struct rx_counts rx_counts_of(uint32_t coll, uint32_t n_ranks, const uint64_t *words);

/**
 * rx_counts_extent() - how far @rank's buffers reach, in elements: to the end of the last block
 * Return: false when a block's end does not fit 64 bits. in_place_ok and so on are not set.
 */
RX_WARN_UNUSED bool rx_counts_extent(uint32_t coll, const struct rx_counts *counts,
	uint32_t n_ranks, uint32_t rank, struct rx_extent *extent_p);

/** rx_counts_sum() - of the first @n; saturates */
uint64_t rx_counts_sum(const uint64_t *counts, uint32_t n);

/**
 * rx_counts_agree() - do the calls of all ranks fit each other?
 * @counts: by rank
 * @rank: who asks. If it is not one of those who disagree with rank 0, it is told of one who is.
 * @clash_p: receives a disagreement when not; the same for all ranks in all_to_all_v
 */
RX_WARN_UNUSED bool rx_counts_agree(uint32_t coll, const struct rx_counts *counts, uint32_t n_ranks,
	uint32_t rank, struct rx_clash *clash_p);

#endif
