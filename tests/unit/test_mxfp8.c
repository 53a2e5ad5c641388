/* SPDX-License-Identifier: MIT */
/*
 * The low-precision codec's bits, in every instruction set, against a slow reference.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../oracle/oracle.h"
#include "mxfp8_ref.h"

#define N_CODES  256u
#define N_SCALES 256u

/* The functions of the next instruction set from *@isa on, or NULL */
static const struct rx_mx_table *next_table(enum rx_mx_format format, int *isa)
{
	while (*isa < RX_ISA_N) {
		const struct rx_mx_table *table = rx_mx_table_of(format, (enum rx_isa)(*isa)++);

		if (table)
			return table;
	}
	return NULL;
}

#define for_each_table(table, format)                                                              \
	for (int isa_ = 0; ((table) = next_table(format, &isa_)) != NULL;)

static uint64_t load(const void *from, uint32_t dtype, uint64_t i)
{
	uint32_t size = rx_dtype_size(dtype);
	uint64_t bits = 0;

	memcpy(&bits, (const uint8_t *)from + i * size, size);
	return bits;
}

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(rx_mx_scales(0), 0);
	assert_int_equal(rx_mx_scales(1), 1);
	assert_int_equal(rx_mx_scales(32), 1);
	assert_int_equal(rx_mx_scales(33), 2);
	assert_true(rx_mx_scales(UINT64_MAX) == UINT64_MAX / 32 + 1);
	assert_int_equal(rx_mx_bytes(0), 0);
	assert_int_equal(rx_mx_bytes(1), 2);
	assert_int_equal(rx_mx_bytes(4200000), 4200000 + 131250);
	for (uint32_t dtype = 0; dtype < RX_DTYPE_N + 1; dtype++)
		assert_int_equal(rx_mx_takes(dtype),
			dtype == RX_FLOAT32 || dtype == RX_BFLOAT16 || dtype == RX_FLOAT16);
}

/* Each scale with a run of all elements, in an order that gives each position every element. */
static void decode_everything(enum rx_mx_format format)
{
	static uint8_t elems[N_CODES];
	static uint8_t out[N_CODES * sizeof(float)];
	const struct rx_mx_table *table = NULL;
	uint8_t scales[N_CODES / RX_MX_BLOCK];

	for (unsigned scale = 0; scale < N_SCALES; scale++) {
		memset(scales, (int)scale, sizeof(scales));
		for (unsigned turn = 0; turn < RX_MX_BLOCK; turn++) {
			for (unsigned i = 0; i < N_CODES; i++)
				elems[i] = (uint8_t)(i + turn);
			for (size_t t = 0; t < RX_ARRAY_SIZE(mx_dtypes); t++) {
				uint64_t expected[N_CODES];

				for (unsigned i = 0; i < N_CODES; i++)
					expected[i] = mx_ref_decode(
						format, mx_dtypes[t], elems[i], (uint8_t)scale);
				for_each_table(table, format)
				{
					table->decode(
						out, mx_dtypes[t], elems, scales, N_CODES, false);
					for (unsigned i = 0; i < N_CODES; i++)
						assert_int_equal(
							load(out, mx_dtypes[t], i), expected[i]);
				}
			}
		}
	}
}

static void test_decode_everything(void **state)
{
	(void)state;
	for_each_format(format) decode_everything(format);
}

/* @n values, at most a block, in every instruction set */
static void encode_in(enum rx_mx_format format, const void *src, uint32_t dtype, uint32_t n)
{
	const struct rx_mx_table *table = NULL;
	uint8_t expected[RX_MX_BLOCK];
	uint8_t expected_scale = 0;
	struct rx_mx_stats expected_stats = {0};

	mx_ref_encode(format, expected, &expected_scale, src, dtype, n, &expected_stats);
	for_each_table(table, format)
	{
		uint8_t elems[RX_MX_BLOCK];
		uint8_t scale = 0;
		struct rx_mx_stats stats = {0};

		table->encode(elems, &scale, src, dtype, n, &stats);
		assert_int_equal(scale, expected_scale);
		assert_memory_equal(elems, expected, n);
		assert_memory_equal(&stats, &expected_stats, sizeof(stats));
	}
}

static void encode_and_compare(const void *src, uint32_t dtype, uint32_t n)
{
	for_each_format(format) encode_in(format, src, dtype, n);
}

/* Alone, and in a block of which all else is zero: the fast paths take whole blocks only. */
static void test_encode_every_16_bit_value(void **state)
{
	uint16_t block[RX_MX_BLOCK] = {0};

	(void)state;
	for (uint32_t bits = 0; bits < 65536; bits++) {
		uint16_t value = (uint16_t)bits;

		encode_and_compare(&value, RX_BFLOAT16, 1);
		encode_and_compare(&value, RX_FLOAT16, 1);
		block[bits % RX_MX_BLOCK] = value;
		encode_and_compare(block, RX_BFLOAT16, RX_MX_BLOCK);
		encode_and_compare(block, RX_FLOAT16, RX_MX_BLOCK);
		block[bits % RX_MX_BLOCK] = 0;
	}
}

/* Blocks of every magnitude, and of several in one block. */
static void test_encode_random_blocks(void **state)
{
	float values[RX_MX_BLOCK];

	(void)state;
	for (uint64_t block = 0; block < 20000; block++) {
		int exponent = (int)(mx_random(1, block) % 278) - 149;
		int spread = (int)(mx_random(2, block) % 24);
		uint32_t n = block % 4 ? RX_MX_BLOCK : 1 + (uint32_t)(mx_random(3, block) % 32);

		for (uint32_t i = 0; i < n; i++) {
			uint64_t r = mx_random(4, block * RX_MX_BLOCK + i);
			int down = spread > 0 ? (int)(r % (unsigned)spread) : 0;

			values[i] = (float)ldexp(
				(double)(1 + (r >> 40)) * 0x1p-24 * (r & 0x100000 ? -1 : 1),
				exponent - down);
		}
		encode_and_compare(values, RX_FLOAT32, n);
	}
}

/* ---- many blocks at a time: each one's scale is its own, whatever its neighbours are ---- */

#define MANY 75u

/* Of any magnitude that the type has, near its ends more often than data is, or not finite. */
static void fill_any(uint8_t *block, uint32_t dtype, uint64_t number)
{
	uint64_t kind = mx_random(11, number);
	int exponent =
		kind % 3 == 0 ? -149 + (int)(kind >> 8) % 24 : (int)((kind >> 8) % 278) - 149;

	if (dtype == RX_FLOAT16)
		exponent = (int)((kind >> 8) % 42) - 25;
	for (uint32_t i = 0; i < RX_MX_BLOCK; i++) {
		uint64_t r = mx_random(12, number * RX_MX_BLOCK + i);
		float value = (float)ldexp(
			(double)(1 + (r >> 40)) * 0x1p-24 * (r & 1 ? -1 : 1), exponent);

		if (kind % 7 == 1 && r % 5 == 0)
			value = 0;
		if (kind % 11 == 2 && r % 13 == 0)
			value = r & 32 ? NAN : INFINITY;
		rx_mx_finish(block + i * rx_dtype_size(dtype), dtype, &value, 1, RX_SUM, 1);
	}
}

static void compare_many(
	enum rx_mx_format format, const uint8_t *src, uint32_t dtype, uint32_t n_blocks)
{
	const uint64_t count = n_blocks * RX_MX_BLOCK;
	const struct rx_mx_table *table = NULL;
	uint8_t expected[MANY * RX_MX_BLOCK], expected_scales[MANY];
	struct rx_mx_stats expected_stats = {0};

	for (uint32_t b = 0; b < n_blocks; b++)
		mx_ref_encode(format, expected + b * RX_MX_BLOCK, expected_scales + b,
			src + b * RX_MX_BLOCK * rx_dtype_size(dtype), dtype, RX_MX_BLOCK,
			&expected_stats);
	for_each_table(table, format)
	{
		uint8_t elems[MANY * RX_MX_BLOCK], scales[MANY];
		uint8_t out[MANY * RX_MX_BLOCK * sizeof(float)];
		struct rx_mx_stats stats = {0};

		table->encode(elems, scales, src, dtype, count, &stats);
		assert_memory_equal(scales, expected_scales, n_blocks);
		assert_memory_equal(elems, expected, count);
		assert_memory_equal(&stats, &expected_stats, sizeof(stats));
		table->decode(out, dtype, elems, scales, count, false);
		for (uint64_t i = 0; i < count; i++)
			assert_int_equal(load(out, dtype, i),
				mx_ref_decode(format, dtype, elems[i], scales[i / RX_MX_BLOCK]));
	}
}

static void test_many_blocks(void **state)
{
	static uint8_t values[MANY * RX_MX_BLOCK * sizeof(float)];

	(void)state;
	for (uint64_t turn = 0; turn < 60; turn++) {
		for (size_t t = 0; t < RX_ARRAY_SIZE(mx_dtypes); t++) {
			uint32_t n_blocks = 1 + (uint32_t)(mx_random(13, turn) % MANY);

			for (uint32_t b = 0; b < n_blocks; b++)
				fill_any(values + b * RX_MX_BLOCK * rx_dtype_size(mx_dtypes[t]),
					mx_dtypes[t], turn * MANY + b);
			for_each_format(format)
				compare_many(format, values, mx_dtypes[t], n_blocks);
		}
	}
}

/* Where the scale changes, and a hair on both sides of that; @fraction as bits of fp32. */
static void scale_boundaries(uint32_t fraction)
{
	for (uint32_t exponent = 0; exponent < 256; exponent++) {
		for (int hair = -1; hair <= 1; hair++) {
			uint32_t block[RX_MX_BLOCK] = {0};

			block[exponent % RX_MX_BLOCK] =
				(exponent << 23 | fraction) + (uint32_t)hair;
			encode_and_compare(block, RX_FLOAT32, RX_MX_BLOCK);
			encode_and_compare(block + exponent % RX_MX_BLOCK, RX_FLOAT32, 1);
			block[(exponent + 1) % RX_MX_BLOCK] = 0xff800000u;
			encode_and_compare(block, RX_FLOAT32, RX_MX_BLOCK);
		}
	}
}

static void test_scale_boundaries(void **state)
{
	(void)state;
	scale_boundaries(0x600000); /* 448 and 57344 are 1.75 times a power of two */
	scale_boundaries(0x7e0000); /* 127 */
	scale_boundaries(0x7f0000); /* and where fp32 is subnormal */
}

/* Sums of every pair of decoded extremes, with accumulators that overflow with them. */
static void add_everything(enum rx_mx_format format)
{
	static const uint32_t accs[] = {0, 0x80000000u, 1, 0x3f800001u, 0x7f7fffffu, 0xff7fffffu,
		0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f000000u};
	static const uint8_t scales[] = {0, 1, 6, 7, 100, 127, 200, 246, 247, 248, 250, 255};
	const struct rx_mx_table *table = NULL;

	for (size_t s = 0; s < RX_ARRAY_SIZE(scales) * RX_ARRAY_SIZE(accs); s++) {
		uint8_t scale = scales[s % RX_ARRAY_SIZE(scales)];
		uint32_t start = accs[s / RX_ARRAY_SIZE(scales)];

		for_each_table(table, format)
		{
			for (unsigned first = 0; first < N_CODES; first += RX_MX_BLOCK) {
				uint8_t elems[RX_MX_BLOCK];
				float acc[RX_MX_BLOCK];

				for (unsigned i = 0; i < RX_MX_BLOCK; i++) {
					elems[i] = (uint8_t)(first + i);
					memcpy(&acc[i], &start, sizeof(start));
				}
				table->decode_add(acc, elems, &scale, RX_MX_BLOCK, false);
				for (unsigned i = 0; i < RX_MX_BLOCK; i++)
					assert_int_equal(load(acc, RX_FLOAT32, i),
						mx_ref_add(start,
							(uint32_t)mx_ref_decode(format, RX_FLOAT32,
								elems[i], scale)));
			}
		}
	}
}

static void test_add(void **state)
{
	(void)state;
	for_each_format(format) add_everything(format);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_decode_everything),
		cmocka_unit_test(test_encode_every_16_bit_value),
		cmocka_unit_test(test_encode_random_blocks),
		cmocka_unit_test(test_many_blocks),
		cmocka_unit_test(test_scale_boundaries),
		cmocka_unit_test(test_add),
	};

	return cmocka_run_group_tests_name("mxfp8", tests, NULL, NULL);
}
