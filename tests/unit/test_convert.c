/* SPDX-License-Identifier: MIT */
/*
 * Small floating point formats, exhaustively: every code there and back, every boundary at which
 * rounding goes the other way, every pair of 8-bit values.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../kernels/host/convert.h"
#include "../../kernels/host/reduce.h"
#include "../oracle/oracle.h"

#define N_CODES 65536u

static const uint32_t small_dtypes[] = {RX_FLOAT16, RX_BFLOAT16, RX_FLOAT8E4M3, RX_FLOAT8E5M2};

static uint8_t a_values[N_CODES * 2];
static uint8_t b_values[N_CODES * 2];
static uint8_t c_values[N_CODES * 2];
static uint8_t result[N_CODES * 2];

static uint32_t n_codes(uint32_t dtype)
{
	return 1u << (rx_dtype_size(dtype) * 8);
}

static float widen(uint32_t dtype, uint32_t code)
{
	switch (dtype) {
	case RX_FLOAT16:
		return rx_widen_f16((uint16_t)code);
	case RX_BFLOAT16:
		return rx_widen_bf16((uint16_t)code);
	case RX_FLOAT8E4M3:
		return rx_widen_e4m3((uint8_t)code);
	default:
		return rx_widen_e5m2((uint8_t)code);
	}
}

static uint32_t narrow(uint32_t dtype, float value)
{
	switch (dtype) {
	case RX_FLOAT16:
		return rx_narrow_f16(value);
	case RX_BFLOAT16:
		return rx_narrow_bf16(value);
	case RX_FLOAT8E4M3:
		return rx_narrow_e4m3(value);
	default:
		return rx_narrow_e5m2(value);
	}
}

static void put(uint8_t *values, uint32_t dtype, uint32_t i, uint64_t code)
{
	memcpy(values + i * rx_dtype_size(dtype), &code, rx_dtype_size(dtype));
}

static void test_widen_and_back(void **state)
{
	(void)state;
	for (size_t t = 0; t < RX_ARRAY_SIZE(small_dtypes); t++) {
		uint32_t dtype = small_dtypes[t];
		uint32_t nan_code = (uint32_t)oracle_encode(dtype, NAN);

		for (uint32_t code = 0; code < n_codes(dtype); code++) {
			float value = widen(dtype, code);
			double exact = oracle_decode(dtype, code);

			if (isnan(exact)) {
				assert_true(isnan(value));
				assert_int_equal(narrow(dtype, value), nan_code);
				continue;
			}
			assert_true(value == exact && !signbit(value) == !signbit(exact));
			assert_int_equal(narrow(dtype, value), code);
		}
	}
}

/* Around the middle between each finite code and the next, what is beyond the last included. */
static void test_narrow_at_boundaries(void **state)
{
	(void)state;
	for (size_t t = 0; t < RX_ARRAY_SIZE(small_dtypes); t++) {
		uint32_t dtype = small_dtypes[t];

		for (uint32_t code = 0; code < n_codes(dtype); code++) {
			double low = oracle_decode(dtype, code);
			double high = oracle_decode(dtype, (code + 1) % n_codes(dtype));
			float middle = (float)(low / 2 + high / 2);
			float values[] = {middle, nextafterf(middle, INFINITY),
				nextafterf(middle, -INFINITY), nextafterf((float)low, INFINITY),
				nextafterf((float)low, -INFINITY), (float)low * 1.0625f};

			for (size_t v = 0; v < RX_ARRAY_SIZE(values); v++)
				assert_int_equal(narrow(dtype, values[v]),
					oracle_encode(dtype, (double)values[v]));
		}
	}
}

static void test_narrow_extremes(void **state)
{
	static const float values[] = {0.0f, -0.0f, INFINITY, -INFINITY, 0x1.fffffep127f,
		-0x1.fffffep127f, 0x1p-149f, -0x1p-149f, 0x1.fffffcp-127f, 0x1p-126f, 448.0f,
		463.9999f, 464.0f, 464.0001f, 57344.0f, 61439.99f, 61440.0f, 65504.0f, 65519.99f,
		65520.0f, 65536.0f, 0x1p-10f, 0x1.000002p-10f, 0x1p-17f, 0x1p-25f, 0x1p-24f};

	(void)state;
	for (size_t t = 0; t < RX_ARRAY_SIZE(small_dtypes); t++) {
		for (size_t v = 0; v < RX_ARRAY_SIZE(values); v++)
			assert_int_equal(narrow(small_dtypes[t], values[v]),
				oracle_encode(small_dtypes[t], (double)values[v]));
	}
	/* Some by hand, lest both are wrong. */
	assert_int_equal(rx_narrow_e4m3(448.0f), 0x7e);
	assert_int_equal(rx_narrow_e4m3(-INFINITY), 0xfe);
	assert_int_equal(rx_narrow_e4m3(-NAN), 0x7f);
	assert_int_equal(rx_narrow_e5m2(61439.0f), 0x7b);
	assert_int_equal(rx_narrow_e5m2(61440.0f), 0x7c);
	assert_int_equal(rx_narrow_f16(1.0f), 0x3c00);
	assert_int_equal(rx_narrow_f16(65519.0f), 0x7bff);
	assert_int_equal(rx_narrow_f16(65520.0f), 0x7c00);
	assert_int_equal(rx_narrow_f16(0x1p-24f), 1);
	assert_int_equal(rx_narrow_bf16(1.0f), 0x3f80);
	assert_int_equal(rx_narrow_bf16(0x1.01p0f), 0x3f80);
	assert_int_equal(rx_narrow_bf16(0x1.03p0f), 0x3f82);
}

/* Folds @n sources with every instruction set and compares with the oracle. */
static void fold_and_compare(
	uint32_t dtype, uint32_t op, uint32_t n_src, uint32_t count, const uint64_t *scalars)
{
	static uint8_t expected[N_CODES * 2];
	uint32_t size = rx_dtype_size(dtype);
	const void *src[] = {a_values, b_values, c_values};
	void *dst[] = {result};
	struct rx_reduce_args args = {
		.src = src,
		.n_src = n_src,
		.dst = dst,
		.n_dst = 1,
		.count = count,
		.dtype = (uint8_t)dtype,
		.op = (uint8_t)op,
		.n_avg = n_src,
		.scalars = scalars,
	};

	for (uint32_t i = 0; i < count; i++)
		oracle_fold(dtype, op, n_src, src, i, scalars, expected + i * size);
	for (int isa = 0; isa < RX_ISA_N; isa++) {
		if (!rx_isa_available((enum rx_isa)isa))
			continue;
		memset(result, 0x5a, sizeof(result));
		rx_reduce_with((enum rx_isa)isa, &args);
		assert_memory_equal(result, expected, count * size);
	}
}

static void test_all_pairs_of_8_bits(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < N_CODES; i++) {
		a_values[i] = (uint8_t)(i >> 8);
		b_values[i] = (uint8_t)i;
	}
	for (uint32_t op = RX_SUM; op <= RX_AVG; op++) {
		fold_and_compare(RX_FLOAT8E4M3, op, 2, N_CODES, NULL);
		fold_and_compare(RX_FLOAT8E5M2, op, 2, N_CODES, NULL);
	}
}

static void test_all_codes_alone(void **state)
{
	(void)state;
	for (size_t t = 0; t < RX_ARRAY_SIZE(small_dtypes); t++) {
		uint32_t dtype = small_dtypes[t];

		for (uint32_t i = 0; i < n_codes(dtype); i++)
			put(a_values, dtype, i, i);
		for (uint32_t op = RX_SUM; op <= RX_AVG; op++)
			fold_and_compare(dtype, op, 1, n_codes(dtype), NULL);
	}
}

/*
 * The folds' own narrowing at the same boundaries: a code, plus half of its distance to the next,
 * plus or minus (or neither) a small part of that.
 */
static void test_folds_at_boundaries(void **state)
{
	static const double thirds[] = {1, 0, -1};

	(void)state;
	for (size_t t = 0; t < RX_ARRAY_SIZE(small_dtypes); t++) {
		uint32_t dtype = small_dtypes[t];
		uint64_t scalars[] = {oracle_encode(dtype, 1), oracle_encode(dtype, 0.5),
			oracle_encode(dtype, 0x1p-7)};

		for (size_t k = 0; k < RX_ARRAY_SIZE(thirds); k++) {
			for (uint32_t i = 0; i < n_codes(dtype); i++) {
				uint32_t next = (i + 1) % n_codes(dtype);
				double step = oracle_decode(dtype, next) - oracle_decode(dtype, i);

				put(a_values, dtype, i, i);
				put(b_values, dtype, i, oracle_encode(dtype, step));
				put(c_values, dtype, i, oracle_encode(dtype, step * thirds[k]));
			}
			fold_and_compare(dtype, RX_PREMUL_SUM, 3, n_codes(dtype), scalars);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_widen_and_back),
		cmocka_unit_test(test_narrow_at_boundaries),
		cmocka_unit_test(test_narrow_extremes),
		cmocka_unit_test(test_all_pairs_of_8_bits),
		cmocka_unit_test(test_all_codes_alone),
		cmocka_unit_test(test_folds_at_boundaries),
	};

	return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
