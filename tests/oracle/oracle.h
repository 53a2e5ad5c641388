/* SPDX-License-Identifier: MIT */
/*
 * What a reduction has to give, element by element, and inputs to try it with.
 *
 * Shares no code with kernels/: formats are described by their exponent range and precision,
 * values are decoded into fp64, which holds them exactly, and every rounding is a scaling to
 * integers. For tests only, and slow.
 */
#ifndef RX_ORACLE_H
#define RX_ORACLE_H

#include "../../kernels/coll_types.h"

enum oracle_data {
	ORACLE_NORMAL, /* values of moderate size, zeros among them; products neither vanish nor
			  overflow early */
	ORACLE_WILD,   /* any bits, and often: NaN, infinities, -0, subnormals, largest, smallest */
	ORACLE_DATA_N
};

/**
 * oracle_fill() - elements [first, first + count) of what @rank contributes
 * @buf: receives them from its start on; any alignment
 *
 * An element depends on its index, @rank, @seed, @dtype and @kind alone, so that parts of a buffer
 * can be made apart from each other.
 */
void oracle_fill(void *buf, uint32_t dtype, uint64_t first, uint64_t count, uint32_t rank,
	uint64_t seed, enum oracle_data kind);

/**
 * oracle_fold() - the bits that element @index of the result must have
 * @src: inputs by rank; AVG divides by @n_ranks
 * @scalars: PREMUL_SUM: by rank, bits in the low bytes; else not looked at
 * @out_element: receives one element
 */
void oracle_fold(uint32_t dtype, uint32_t op, uint32_t n_ranks, const void *const *src,
	uint64_t index, const uint64_t *scalars, void *out_element);

/** oracle_decode() - value of an element of a floating type; exact */
double oracle_decode(uint32_t dtype, uint64_t bits);

/** oracle_encode() - element of a floating type nearest to @value, ties to even */
uint64_t oracle_encode(uint32_t dtype, double value);

#endif
