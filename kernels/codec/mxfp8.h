/* SPDX-License-Identifier: MIT */
/*
 * Low-precision codec: vectors of fp32, bf16 or fp16 to a quarter or half of their size and back,
 * in the fastest instruction set of the CPU, with the same bits in each. There are two formats,
 * MXFP8, which the functions that are not of a table stand for, and MXINT8. What the bits are is in
 * mxfp8_def.h and mxint8_def.h; why, and how good they are, in doc/low-precision.md.
 *
 * @count elements become @count element bytes and one scale byte for each RX_MX_BLOCK elements or
 * part of that. The two may lie anywhere. A message may be coded in pieces that begin at multiples
 * of RX_MX_BLOCK: the pieces have the bits that the whole has.
 *
 * Encoding chooses a scale at which the largest magnitude of a block is not clipped. NaN and
 * infinities are kept. What is finite is finite again after any of these functions, at any sum.
 * A thread's rounding mode and flushing of subnormals have no influence and are left as they were.
 *
 * @dtype is one of RX_FLOAT32, RX_BFLOAT16, RX_FLOAT16. Pointers to elements, scales and values of
 * a dtype may have any alignment; accumulators are floats. Exactly @count values, @count elements
 * and rx_mx_scales(count) scales are read or written. Nothing may overlap, but for rx_mx_finish().
 */
#ifndef RX_MXFP8_H
#define RX_MXFP8_H

#include "../host/reduce.h"
#include "mxfp8_def.h"

enum rx_mx_format { RX_MX_FP8, RX_MX_INT8, RX_MX_FORMAT_N };

/** rx_mx_scales() - scale bytes of @count elements */
uint64_t rx_mx_scales(uint64_t count);

/** rx_mx_bytes() - element and scale bytes of @count elements */
uint64_t rx_mx_bytes(uint64_t count);

/** rx_mx_takes() - is @dtype one that the codec takes? */
bool rx_mx_takes(uint32_t dtype);

struct rx_mx_stats {
	uint64_t n_blocks;
	uint64_t n_saturated; /* blocks with a finite value that was rounded to above the dtype's
				 largest, and comes back as that */
	uint64_t n_flushed;   /* blocks with a value that was not zero and became zero */
	uint64_t n_special;   /* blocks with a NaN or an infinity */
};

/**
 * rx_mx_encode() - values to elements and scales
 * @stats: counts of these blocks are added to it; may be NULL
 */
void rx_mx_encode(uint8_t *elems, uint8_t *scales, const void *src, uint32_t dtype, uint64_t count,
	struct rx_mx_stats *stats);

/**
 * rx_mx_decode() - elements and scales to values
 * @stream: they will not be read soon, and bypass the cache (fenced before return)
 *
 * Any bytes are taken. Values are rounded to nearest even where @dtype lacks their bits, which
 * happens only near its smallest, and finite ones are clamped to its largest.
 */
void rx_mx_decode(void *dst, uint32_t dtype, const uint8_t *elems, const uint8_t *scales,
	uint64_t count, bool stream);

/**
 * rx_mx_decode_add() - a term of a sum
 * @first: set @acc to the decoded values instead of adding them
 *
 * Rounded to fp32 by each addition; a sum of finite terms is clamped to the largest finite value.
 */
void rx_mx_decode_add(
	float *acc, const uint8_t *elems, const uint8_t *scales, uint64_t count, bool first);

/**
 * rx_mx_finish() - from sums to results
 * @dst: may be @acc itself, with RX_FLOAT32; else they do not overlap
 * @op: RX_SUM, or RX_AVG, which divides by @n_ranks first, in fp32
 *
 * Rounded to nearest even; finite values are clamped to the largest of @dtype.
 */
void rx_mx_finish(
	void *dst, uint32_t dtype, const float *acc, uint64_t count, uint32_t op, uint32_t n_ranks);

/* What differs between formats: functions as those above. Messages are equally long in both. */
struct rx_mx_codec {
	const char *name; /* "fp8", "int8" */
	void (*encode)(uint8_t *elems, uint8_t *scales, const void *src, uint32_t dtype,
		uint64_t count, struct rx_mx_stats *stats);
	void (*decode)(void *dst, uint32_t dtype, const uint8_t *elems, const uint8_t *scales,
		uint64_t count, bool stream);
	void (*decode_add)(float *acc, const uint8_t *elems, const uint8_t *scales, uint64_t count,
		bool first);
};

/** rx_mx_codec_of() - of a format, in the fastest instruction set */
const struct rx_mx_codec *rx_mx_codec_of(enum rx_mx_format format);

/* The same functions in one instruction set, for tests and benchmarks. They need the default
 * floating point environment, and do not fence what they stream.
 */
struct rx_mx_table {
	void (*encode)(uint8_t *elems, uint8_t *scales, const void *src, uint32_t dtype,
		uint64_t count, struct rx_mx_stats *stats);
	void (*decode)(void *dst, uint32_t dtype, const uint8_t *elems, const uint8_t *scales,
		uint64_t count, bool stream);
	void (*decode_add)(float *acc, const uint8_t *elems, const uint8_t *scales, uint64_t count,
		bool first);
	void (*finish)(void *dst, uint32_t dtype, const float *acc, uint64_t count, uint32_t op,
		uint32_t n_ranks);
};

/** rx_mx_table_of() - NULL if this CPU or this build lacks @isa or there is nothing special for it
 */
const struct rx_mx_table *rx_mx_table_of(enum rx_mx_format format, enum rx_isa isa);

#endif
