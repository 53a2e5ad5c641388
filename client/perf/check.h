/* SPDX-License-Identifier: MIT */
/*
 * Test data and the results that it must give, computed without the library's communication: every
 * rank can make every rank's data, and folds it in rank order with the scalar arithmetic.
 */
#ifndef PERF_CHECK_H
#define PERF_CHECK_H

#include "../../shm/rx_base.h"

#define PERF_FOLD_BLOCK 2048u /* elements folded at a time */

/* Identifies the data of all ranks at one iteration. */
struct perf_data {
	uint64_t seed;
	uint32_t iteration;
	uint32_t dtype;
};

struct perf_fold {
	struct perf_data data;
	uint32_t op;
	uint32_t n_ranks;
	uint32_t rank;                  /* whose result is expected */
	uint64_t scalars[RX_MAX_RANKS]; /* PREMUL_SUM: bits of each rank's scalar */
	uint8_t *blocks;                /* n_ranks * PERF_FOLD_BLOCK elements of 8 bytes */
};

/**
 * perf_data_fill() - elements [first, first + count) of @rank into @buf
 *
 * Integers of all bits; floats of both signs, magnitudes from 1/4 to just below 4, all mantissa
 * bits: neighbours, ranks and iterations differ.
 */
void perf_data_fill(
	const struct perf_data *data, uint32_t rank, uint64_t first, uint64_t count, void *buf);

/** perf_data_scalar() - bits of @rank's scalar for PREMUL_SUM */
uint64_t perf_data_scalar(const struct perf_data *data, uint32_t rank);

/** perf_fold_init() - for results of @op over @data; false: out of memory */
RX_WARN_UNUSED bool perf_fold_init(struct perf_fold *fold, const struct perf_data *data,
	uint32_t op, uint32_t n_ranks, uint32_t rank);

/** perf_fold_deinit() - free what it owns */
void perf_fold_deinit(struct perf_fold *fold);

/** perf_fold_all() - the fold over all ranks, count <= PERF_FOLD_BLOCK */
void perf_fold_all(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);

typedef void (*perf_expect_fn)(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);

/** perf_count_wrong() - elements of @result that differ from what is expected, in any bit */
uint64_t perf_count_wrong(
	struct perf_fold *fold, perf_expect_fn expect, const void *result, uint64_t count);

#endif
