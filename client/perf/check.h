/* SPDX-License-Identifier: MIT */
/*
 * Test data and the results that it must give, computed without the library's communication: every
 * rank can make every rank's data, and folds it in rank order with the scalar arithmetic.
 */
#ifndef PERF_CHECK_H
#define PERF_CHECK_H

#include "layout.h"
#include "../../kernels/codec/mxfp8.h"
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
	const struct perf_coll *coll;
	const struct perf_layout *layout; /* of the rank whose result is expected */
	uint64_t scalars[RX_MAX_RANKS];   /* PREMUL_SUM: bits of each rank's scalar */
	bool in_low_precision; /* as the library defines that, see doc/low-precision.md */
	enum rx_mx_format format;
	bool gather_bf16; /* and so, sums of allreduce */
	uint8_t *blocks;  /* n_ranks * PERF_FOLD_BLOCK elements of 8 bytes */
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

/** perf_fold_init() - for results of @coll with @op over @data; false: out of memory */
RX_WARN_UNUSED bool perf_fold_init(struct perf_fold *fold, const struct perf_data *data,
	uint32_t op, const struct perf_coll *coll, const struct perf_layout *layout);

/** perf_fold_deinit() - free what it owns */
void perf_fold_deinit(struct perf_fold *fold);

/** perf_fold_all() - the fold over all ranks, count <= PERF_FOLD_BLOCK */
void perf_fold_all(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);

/* Expected elements, as perf_fold_all() gives them: */

/** perf_expect_folded_block() - this rank's block of the fold */
void perf_expect_folded_block(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);

/** perf_expect_gathered() - the ranks' blocks behind each other */
void perf_expect_gathered(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);

/** perf_expect_exchanged() - from each rank, its block for this one */
void perf_expect_exchanged(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);

/** perf_expect_roots() - the root's message */
void perf_expect_roots(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);

/** perf_expect_roots_block() - the root's block for this rank */
void perf_expect_roots_block(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);

/** perf_expect_neighbours() - the message of the rank before this one */
void perf_expect_neighbours(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);

/** perf_count_wrong() - of the layout's elements at @result, those with any bit wrong */
uint64_t perf_count_wrong(struct perf_fold *fold, const void *result);

#endif
