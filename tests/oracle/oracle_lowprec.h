/* SPDX-License-Identifier: MIT */
/*
 * What collectives in low precision have to give, block by block. In fp64, from the definition in
 * doc/low-precision.md; shares no code with kernels/. For tests only, and slow.
 */
#ifndef RX_ORACLE_LOWPREC_H
#define RX_ORACLE_LOWPREC_H

#include "oracle.h"

#define ORACLE_BLOCK 32u

/* What elements are under their scales. */
enum oracle_format { ORACLE_FP8, ORACLE_INT8 };

/** oracle_quantise() - up to ORACLE_BLOCK values of one block: encode and decode */
void oracle_quantise(enum oracle_format format, double *values, uint32_t n);

/** oracle_lowprec_copy() - one block as takers get it; at most ORACLE_BLOCK elements */
void oracle_lowprec_copy(
	enum oracle_format format, uint32_t dtype, const void *src, uint32_t n, void *out);

/* How a sum reaches the ranks. */
enum oracle_gather {
	ORACLE_GATHER_NONE, /* reduce-scatter: it stays where it is */
	ORACLE_GATHER_CODED,
	ORACLE_GATHER_BF16,
};

/**
 * oracle_lowprec_fold() - one block of a sum or average
 * @src: by rank, the block's first element
 */
void oracle_lowprec_fold(enum oracle_format format, uint32_t dtype, uint32_t op, uint32_t n_ranks,
	const void *const *src, uint32_t n, enum oracle_gather gather, void *out);

#endif
