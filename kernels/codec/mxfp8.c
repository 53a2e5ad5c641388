/* SPDX-License-Identifier: MIT */
/*
 * Sizes, and which instruction set. The vector code wants a default floating point environment.
 */
#include "mxfp8.h"

#include "../host/float_env.h"
#include "mx_isa.h"

/* By format, for each. */
static const struct rx_mx_table *const tables[RX_ISA_N] = {
	[RX_ISA_SCALAR] = rx_mx_portable,
#if defined(__x86_64__)
	[RX_ISA_AVX2] = rx_mx_avx2,
	[RX_ISA_AVX512] = rx_mx_avx2,
#endif
};

uint64_t rx_mx_scales(uint64_t count)
{
	return count / RX_MX_BLOCK + (count % RX_MX_BLOCK != 0);
}

uint64_t rx_mx_bytes(uint64_t count)
{
	return count + rx_mx_scales(count);
}

bool rx_mx_takes(uint32_t dtype)
{
	return dtype == RX_FLOAT32 || dtype == RX_BFLOAT16 || dtype == RX_FLOAT16;
}

const struct rx_mx_table *rx_mx_table_of(enum rx_mx_format format, enum rx_isa isa)
{
	return rx_isa_available(isa) && tables[isa] ? &tables[isa][format] : NULL;
}

static const struct rx_mx_table *best(enum rx_mx_format format)
{
	const struct rx_mx_table *of_isa = tables[rx_isa_best()];

	return of_isa ? &of_isa[format] : &rx_mx_portable[format];
}

static void encode_as(enum rx_mx_format format, uint8_t *elems, uint8_t *scales, const void *src,
	uint32_t dtype, uint64_t count, struct rx_mx_stats *stats)
{
	rx_float_env before = rx_float_env_enter();

	best(format)->encode(elems, scales, src, dtype, count, stats);
	rx_float_env_leave(before);
}

static void decode_as(enum rx_mx_format format, void *dst, uint32_t dtype, const uint8_t *elems,
	const uint8_t *scales, uint64_t count, bool stream)
{
	rx_float_env before = rx_float_env_enter();

	best(format)->decode(dst, dtype, elems, scales, count, stream);
	if (stream)
		rx_stream_fence();
	rx_float_env_leave(before);
}

static void decode_add_as(enum rx_mx_format format, float *acc, const uint8_t *elems,
	const uint8_t *scales, uint64_t count, bool first)
{
	rx_float_env before = rx_float_env_enter();

	best(format)->decode_add(acc, elems, scales, count, first);
	rx_float_env_leave(before);
}

void rx_mx_encode(uint8_t *elems, uint8_t *scales, const void *src, uint32_t dtype, uint64_t count,
	struct rx_mx_stats *stats)
{
	encode_as(RX_MX_FP8, elems, scales, src, dtype, count, stats);
}

void rx_mx_decode(void *dst, uint32_t dtype, const uint8_t *elems, const uint8_t *scales,
	uint64_t count, bool stream)
{
	decode_as(RX_MX_FP8, dst, dtype, elems, scales, count, stream);
}

void rx_mx_decode_add(
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
	uint64_t count, bool stream)
{
	decode_as(RX_MX_INT8, dst, dtype, elems, scales, count, stream);
}

static void int8_decode_add(
	float *acc, const uint8_t *elems, const uint8_t *scales, uint64_t count, bool first)
{
	decode_add_as(RX_MX_INT8, acc, elems, scales, count, first);
}

const struct rx_mx_codec *rx_mx_codec_of(enum rx_mx_format format)
{
	static const struct rx_mx_codec codecs[RX_MX_FORMAT_N] = {
		[RX_MX_FP8] = {"fp8", rx_mx_encode, rx_mx_decode, rx_mx_decode_add},
		[RX_MX_INT8] = {"int8", int8_encode, int8_decode, int8_decode_add},
	};

	return &codecs[format];
}

void rx_mx_finish(
	void *dst, uint32_t dtype, const float *acc, uint64_t count, uint32_t op, uint32_t n_ranks)
{
	rx_float_env before = rx_float_env_enter();

	/* The same in both. */
	best(RX_MX_FP8)->finish(dst, dtype, acc, count, op, n_ranks);
	rx_float_env_leave(before);
}
