/* SPDX-License-Identifier: MIT */
/*
 * Between rx_reduce() and the loops: one table of loops per instruction set.
 *
 * Every table comes from the same source, fold_isa.c, compiled with the flags of its instruction
 * set and with RX_FOLD_TABLE naming the table; so there is one definition of each operation.
 */
#ifndef RX_FOLD_H
#define RX_FOLD_H

#include "../coll_types.h"

/* A factor in the type in which values are accumulated. */
union rx_factor {
	uint8_t u8;
	uint32_t u32;
	uint64_t u64;
	float f32;
	double f64;
};

struct rx_fold {
	const void *const *src;
	void *const *dst;
	uint32_t n_src;
	uint32_t n_dst;
	bool stream;    /* every dst + at, where whole blocks begin, is on a cache line boundary */
	uint32_t n_avg; /* AVG: divisor, at least 1 */
	bool avg_times; /* n_avg is a power of two, so that there is no need to divide: multiply
			   floats by avg_factor, shift integers; never for a divisor above 64 */
	union rx_factor avg_factor;          /* the divisor, or its exact reciprocal */
	union rx_factor scale[RX_MAX_RANKS]; /* PREMUL_SUM: by source */
};

/**
 * rx_fold_fn - fold bytes [at, end) of every source into the same bytes of every destination
 *
 * Both are whole elements. All sources are read up to some byte before any destination is
 * written up to there.
 */
typedef void (*rx_fold_fn)(const struct rx_fold *fold, uint64_t at, uint64_t end);

struct rx_fold_table {
	rx_fold_fn fn[RX_DTYPE_N][RX_REDOP_N];
};

extern const struct rx_fold_table rx_fold_scalar;
extern const struct rx_fold_table rx_fold_avx2;
extern const struct rx_fold_table rx_fold_avx512;
extern const struct rx_fold_table rx_fold_neon;

#endif
