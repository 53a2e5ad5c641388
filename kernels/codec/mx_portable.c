/* SPDX-License-Identifier: MIT */
/*
 * The definitions in a loop over blocks: for CPUs without anything better, for blocks that the
 * vector code leaves out, and for tests to compare that with.
 */
#include "mx_isa.h"

#include "../host/convert.h"
#include "mxint8_def.h"

#include <string.h>

/* How large a magnitude the dtype has, and where rounding reaches what is above it. */
static uint32_t largest_of(uint32_t dtype)
{
	switch (dtype) {
	case RX_FLOAT16:
		return RX_MX_MAX_F16;
	case RX_BFLOAT16:
		return RX_MX_MAX_BF16;
	default:
		return RX_MX_MAX_F32;
	}
}

/* ---- the formats ---- */

static uint32_t scale_of(enum rx_mx_format format, uint32_t amax, bool special)
{
	return format == RX_MX_INT8 ? rx_mxint8_scale(amax, special) : rx_mx_scale(amax, special);
}

static uint8_t encode_one(enum rx_mx_format format, uint32_t bits, uint32_t scale)
{
	return format == RX_MX_INT8 ? rx_mxint8_encode_one(bits, scale)
				    : rx_mx_encode_one(bits, scale);
}

static uint32_t decode_one(enum rx_mx_format format, uint8_t elem, uint32_t scale)
{
	return format == RX_MX_INT8 ? rx_mxint8_decode_one(elem, scale)
				    : rx_mx_decode_one(elem, scale);
}

static bool is_zero(enum rx_mx_format format, uint8_t elem, uint32_t scale)
{
	return (format == RX_MX_INT8 && scale < RX_MX_ESCAPE ? elem : elem & 0x7fu) == 0;
}

/* Is the largest value rounded to above the type's largest finite one? */
static bool saturates(enum rx_mx_format format, uint32_t dtype, uint32_t amax, uint32_t scale)
{
	uint32_t above = dtype == RX_FLOAT16 ? 0x47800000u : RX_MX_INF;

	/* Half of the last digit, of three or two, below the power of two above that. */
	if (scale >= RX_MX_ESCAPE)
		return amax >= above - 0x100000u;
	if (format == RX_MX_FP8)
		return amax >= above - 0x80000u;
	/* Above 127 * 512, integers are 1024 apart. */
	return dtype == RX_FLOAT16 && amax > 0x477e0000u;
}

/* ---- blocks ---- */

/* @n values, as fp32 bits */
static void load(uint32_t *bits, const uint8_t *src, uint32_t dtype, uint32_t n)
{
	uint16_t narrow[RX_MX_BLOCK];

	if (dtype == RX_FLOAT32) {
		memcpy(bits, src, n * sizeof(*bits));
		return;
	}
	memcpy(narrow, src, n * sizeof(*narrow));
	for (uint32_t i = 0; i < n; i++)
		bits[i] = dtype == RX_BFLOAT16 ? (uint32_t)narrow[i] << 16
					       : rx_mx_bits(rx_widen_f16(narrow[i]));
}

/* The reverse: rounded, and what is finite stays so */
static void store(uint8_t *dst, uint32_t dtype, const uint32_t *bits, uint32_t n)
{
	uint32_t wide[RX_MX_BLOCK];
	uint16_t narrow[RX_MX_BLOCK];

	for (uint32_t i = 0; i < n; i++)
		wide[i] = rx_mx_clamp(bits[i], largest_of(dtype));
	if (dtype == RX_FLOAT32) {
		memcpy(dst, wide, n * sizeof(*wide));
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		narrow[i] = dtype == RX_BFLOAT16 ? rx_narrow_bf16(rx_mx_float(wide[i]))
						 : rx_narrow_f16(rx_mx_float(wide[i]));
	memcpy(dst, narrow, n * sizeof(*narrow));
}

static void encode_block(enum rx_mx_format format, uint8_t *elems, uint8_t *scale_p,
	const uint32_t *bits, uint32_t dtype, uint32_t n, struct rx_mx_stats *stats)
{
	uint32_t amax = 0;
	uint32_t scale = 0;
	bool special = false;
	bool flushed = false;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t magnitude = bits[i] & RX_MX_MAGNITUDE;

		if (magnitude >= RX_MX_INF)
			special = true;
		else if (magnitude > amax)
			amax = magnitude;
	}
	scale = scale_of(format, amax, special);
	for (uint32_t i = 0; i < n; i++) {
		elems[i] = encode_one(format, bits[i], scale);
		flushed |= is_zero(format, elems[i], scale) && (bits[i] & RX_MX_MAGNITUDE) != 0;
	}
	*scale_p = (uint8_t)scale;
	if (!stats)
		return;
	stats->n_blocks++;
	stats->n_saturated += saturates(format, dtype, amax, scale);
	stats->n_flushed += flushed;
	stats->n_special += special;
}

static uint32_t block_at(uint64_t at, uint64_t count)
{
	return (uint32_t)rx_min_u64(count - at, RX_MX_BLOCK);
}

static void encode_as(enum rx_mx_format format, uint8_t *elems, uint8_t *scales, const void *src,
	uint32_t dtype, uint64_t count, struct rx_mx_stats *stats)
{
	const uint8_t *from = src;
	uint32_t bits[RX_MX_BLOCK];

	for (uint64_t at = 0; at < count; at += RX_MX_BLOCK) {
		uint32_t n = block_at(at, count);

		load(bits, from + at * rx_dtype_size(dtype), dtype, n);
		encode_block(format, elems + at, scales + at / RX_MX_BLOCK, bits, dtype, n, stats);
	}
}

static void decode_as(enum rx_mx_format format, void *dst, uint32_t dtype, const uint8_t *elems,
	const uint8_t *scales, uint64_t count)
{
	uint8_t *to = dst;
	uint32_t bits[RX_MX_BLOCK];

	for (uint64_t at = 0; at < count; at += RX_MX_BLOCK) {
		uint32_t n = block_at(at, count);

		for (uint32_t i = 0; i < n; i++)
			bits[i] = decode_one(format, elems[at + i], scales[at / RX_MX_BLOCK]);
		store(to + at * rx_dtype_size(dtype), dtype, bits, n);
	}
}

static void decode_add_as(enum rx_mx_format format, float *acc, const uint8_t *elems,
	const uint8_t *scales, uint64_t count, bool first)
{
	for (uint64_t i = 0; i < count; i++) {
		float value = rx_mx_float(decode_one(format, elems[i], scales[i / RX_MX_BLOCK]));

		acc[i] = first ? value : rx_mx_add(acc[i], value);
	}
}

/* ---- the tables ---- */

static void fp8_encode(uint8_t *elems, uint8_t *scales, const void *src, uint32_t dtype,
	uint64_t count, struct rx_mx_stats *stats)
{
	encode_as(RX_MX_FP8, elems, scales, src, dtype, count, stats);
}

static void fp8_decode(void *dst, uint32_t dtype, const uint8_t *elems, const uint8_t *scales,
	uint64_t count, bool stream RX_UNUSED)
{
	decode_as(RX_MX_FP8, dst, dtype, elems, scales, count);
}

static void fp8_decode_add(
	float *acc, const uint8_t *elems, const uint8_t *scales, uint64_t count, bool first)
{
	decode_add_as(RX_MX_FP8, acc, elems, scales, count, first);
}

static void int8_encode(uint8_t *elems, uint8_t *scales, const void *src, uint32_t dtype,
	uint64_t count, struct rx_mx_stats *stats)
{
	encode_as(RX_MX_INT8, elems, scales, src, dtype, count, stats);
}

static void int8_decode(void *dst, uint32_t dtype, const uint8_t *elems, const uint8_t *scales,
	uint64_t count, bool stream RX_UNUSED)
{
	decode_as(RX_MX_INT8, dst, dtype, elems, scales, count);
}

static void int8_decode_add(
	float *acc, const uint8_t *elems, const uint8_t *scales, uint64_t count, bool first)
{
	decode_add_as(RX_MX_INT8, acc, elems, scales, count, first);
}

static void finish(
	void *dst, uint32_t dtype, const float *acc, uint64_t count, uint32_t op, uint32_t n_ranks)
{
	uint8_t *to = dst;
	uint32_t bits[RX_MX_BLOCK];

	for (uint64_t at = 0; at < count; at += RX_MX_BLOCK) {
		uint32_t n = block_at(at, count);

		for (uint32_t i = 0; i < n; i++) {
			float value = acc[at + i];

			bits[i] = rx_mx_bits(op == RX_AVG ? value / (float)n_ranks : value);
		}
		store(to + at * rx_dtype_size(dtype), dtype, bits, n);
	}
}

const struct rx_mx_table rx_mx_portable[RX_MX_FORMAT_N] = {
	[RX_MX_FP8] = {fp8_encode, fp8_decode, fp8_decode_add, finish},
	[RX_MX_INT8] = {int8_encode, int8_decode, int8_decode_add, finish},
};
