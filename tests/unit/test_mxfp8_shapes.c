/* SPDX-License-Identifier: MIT */
/*
 * The low-precision codec through all shapes of buffers: counts around the block, alignments, bytes
 * beside the buffers, pieces against the whole, other floating point environments. What is right
 * bit by bit is in test_mxfp8.c; here everything is compared with the portable functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mxfp8_ref.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#define MAX_COUNT  4097u
#define ALIGNMENTS 32u
#define GUARD      64u
#define FILLER     0xa5
#define ROOM       (MAX_COUNT * 4 + ALIGNMENTS + 2 * GUARD)
#define MAX_SCALES (MAX_COUNT / RX_MX_BLOCK + 1)

static const uint64_t counts[] = {0, 1, 31, 32, 33, 63, 64, 127, 1000, 4095, 4096, MAX_COUNT};

/* What one message becomes */
struct outcome {
	uint8_t elems[MAX_COUNT];
	uint8_t scales[MAX_SCALES];
	uint8_t decoded[MAX_COUNT * 4];
	uint8_t streamed[MAX_COUNT * 4];
	uint8_t finished[MAX_COUNT * 4];
	float sum[MAX_COUNT];
	struct rx_mx_stats stats;
};

/* Mostly plain values, with whatever is special strewn in. */
static void fill(uint8_t *to, uint32_t dtype, uint64_t count, uint64_t seed)
{
	uint32_t size = rx_dtype_size(dtype);

	for (uint64_t i = 0; i < count; i++) {
		float value = (float)mx_normal(seed, i);
		uint64_t bits = mx_random(seed + 1, i);

		if (bits % 301 == 0)
			memcpy(to + i * size, (uint8_t *)&bits + 1, size);
		else if (bits % 307 == 0)
			memset(to + i * size, 0xff, size); /* a NaN */
		else
			rx_mx_finish(to + i * size, dtype, &value, 1, RX_SUM, 1);
	}
}

/* Copies @bytes out of guarded room, and checks the guards. */
static void take(void *to, const uint8_t *room, unsigned alignment, uint64_t bytes)
{
	const uint8_t *at = room + GUARD + alignment;

	for (unsigned i = 0; i < GUARD; i++) {
		assert_int_equal(at[-1 - (int)i], FILLER);
		assert_int_equal(at[bytes + i], FILLER);
	}
	memcpy(to, at, bytes);
}

/* With every buffer of another alignment than the next, and guards around what is written. */
static void run(const struct rx_mx_table *table, const uint8_t *values, uint32_t dtype,
	uint64_t count, unsigned alignment, struct outcome *out)
{
	static uint8_t src[ROOM], elems[ROOM], scales[ROOM], dst[ROOM], again[ROOM];
	uint64_t bytes = count * rx_dtype_size(dtype);
	unsigned other = (alignment * 7 + 3) % ALIGNMENTS;

	memset(out, 0, sizeof(*out));
	memset(elems, FILLER, ROOM);
	memset(scales, FILLER, ROOM);
	memset(dst, FILLER, ROOM);
	memset(again, FILLER, ROOM);
	memcpy(src + alignment, values, bytes);
	table->encode(elems + GUARD + other, scales + GUARD + alignment, src + alignment, dtype,
		count, &out->stats);
	take(out->elems, elems, other, count);
	take(out->scales, scales, alignment, rx_mx_scales(count));
	table->decode(dst + GUARD + alignment, dtype, elems + GUARD + other,
		scales + GUARD + alignment, count, false);
	take(out->decoded, dst, alignment, bytes);
	memset(dst, FILLER, ROOM);
	table->decode(dst + GUARD + alignment, dtype, elems + GUARD + other,
		scales + GUARD + alignment, count, true);
	rx_stream_fence();
	take(out->streamed, dst, alignment, bytes);
	assert_memory_equal(out->streamed, out->decoded, bytes);
	for (unsigned n = 0; n < 3; n++)
		table->decode_add(
			out->sum, elems + GUARD + other, scales + GUARD + alignment, count, n == 0);
	table->finish(again + GUARD + other, dtype, out->sum, count, RX_AVG, 3);
	take(out->finished, again, other, bytes);
}

static void counts_and_alignments(enum rx_mx_format format)
{
	static uint8_t values[MAX_COUNT * 4];
	static struct outcome expected, got;

	for (size_t t = 0; t < RX_ARRAY_SIZE(mx_dtypes); t++) {
		fill(values, mx_dtypes[t], MAX_COUNT, 17 * t);
		for (size_t c = 0; c < RX_ARRAY_SIZE(counts); c++) {
			run(rx_mx_table_of(format, RX_ISA_SCALAR), values, mx_dtypes[t], counts[c],
				0, &expected);
			assert_int_equal(expected.stats.n_blocks, rx_mx_scales(counts[c]));
			for (unsigned i = 0; i < RX_ISA_N * ALIGNMENTS; i++) {
				const struct rx_mx_table *table =
					rx_mx_table_of(format, (enum rx_isa)(i / ALIGNMENTS));

				if (!table)
					continue;
				run(table, values, mx_dtypes[t], counts[c], i % ALIGNMENTS, &got);
				assert_memory_equal(&got, &expected, sizeof(got));
			}
		}
		assert_true(expected.stats.n_special > 0);
		/* float16 has no values so far apart among these. */
		assert_true(mx_dtypes[t] == RX_FLOAT16 || expected.stats.n_flushed > 0);
	}
}

static void test_counts_and_alignments(void **state)
{
	(void)state;
	for_each_format(format) counts_and_alignments(format);
}

/* Any cut at a multiple of the block gives what the whole gives; counts of real messages. */
static void pieces_of(enum rx_mx_format format)
{
	static const uint64_t sizes[] = {525000, 4200000};

	for (size_t s = 0; s < RX_ARRAY_SIZE(sizes); s++) {
		uint64_t n = sizes[s];
		uint64_t bytes = rx_mx_bytes(n);
		uint8_t *values = malloc(n * 2);
		uint8_t *whole = malloc(bytes);
		uint8_t *pieces = malloc(bytes);

		assert_true(values && whole && pieces);
		fill(values, RX_BFLOAT16, n, 5);
		rx_mx_table_of(format, RX_ISA_SCALAR)
			->encode(whole, whole + n, values, RX_BFLOAT16, n, NULL);
		for (uint64_t at = 0, piece = 0; at < n; at += piece) {
			piece = RX_MX_BLOCK * (1 + mx_random(6, at) % 3000);
			piece = rx_min_u64(piece, n - at);
			rx_mx_codec_of(format)->encode(pieces + at, pieces + n + at / RX_MX_BLOCK,
				values + 2 * at, RX_BFLOAT16, piece, NULL);
		}
		assert_memory_equal(pieces, whole, bytes);
		free(values);
		free(whole);
		free(pieces);
	}
}

static void test_pieces(void **state)
{
	(void)state;
	for_each_format(format) pieces_of(format);
}

static void test_finish_in_place(void **state)
{
	static float sums[MAX_COUNT];
	static float expected[MAX_COUNT];

	(void)state;
	fill((uint8_t *)sums, RX_FLOAT32, MAX_COUNT, 9);
	rx_mx_finish(expected, RX_FLOAT32, sums, MAX_COUNT, RX_AVG, 7);
	rx_mx_finish(sums, RX_FLOAT32, sums, MAX_COUNT, RX_AVG, 7);
	assert_memory_equal(sums, expected, sizeof(sums));
}

#if defined(__SSE2__)
/* What a process has done to its floating point unit must not reach the result, nor be undone. */
static void float_environment(enum rx_mx_format format)
{
	const uint32_t odd_bits = 0x8040 | 0x4000; /* flush to zero, both ways; round up */
	const struct rx_mx_codec *codec = rx_mx_codec_of(format);
	const struct rx_mx_table usual = {
		codec->encode, codec->decode, codec->decode_add, rx_mx_finish};
	static uint8_t values[MAX_COUNT * 4];
	static struct outcome expected, got;
	uint32_t before = _mm_getcsr();
	uint32_t odd = (before & ~0x3fu) | odd_bits;

	for (size_t t = 0; t < RX_ARRAY_SIZE(mx_dtypes); t++) {
		fill(values, mx_dtypes[t], MAX_COUNT, 3);
		for (uint32_t i = 0; mx_dtypes[t] == RX_FLOAT32 && i < 320; i++) {
			uint32_t subnormal = (uint32_t)mx_random(7, i) & 0x807fffffu;

			memcpy(values + 4 * i, &subnormal, 4);
		}
		run(rx_mx_table_of(format, RX_ISA_SCALAR), values, mx_dtypes[t], MAX_COUNT, 0,
			&expected);
		_mm_setcsr(odd);
		run(&usual, values, mx_dtypes[t], MAX_COUNT, 1, &got);
		assert_int_equal(_mm_getcsr() & ~0x3fu, odd);
		_mm_setcsr(before);
		assert_memory_equal(&got, &expected, sizeof(got));
	}
}

static void test_float_environment(void **state)
{
	(void)state;
	for_each_format(format) float_environment(format);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_and_alignments),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_finish_in_place),
#if defined(__SSE2__)
		cmocka_unit_test(test_float_environment),
#endif
	};

	return cmocka_run_group_tests_name("mxfp8_shapes", tests, NULL, NULL);
}
