/* SPDX-License-Identifier: MIT */
/*
 * How far results are from the truth, in fp64: relative L2 errors of one quantisation and of an
 * allreduce, over sigma and the number of ranks, and what a plain cast to E4M3 would have done.
 * What it prints is the data of doc/low-precision.svg (tests/perf/plot_mxfp8.sh).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "../oracle/oracle.h"
#include "mxfp8_ref.h"

#define COUNT            16384u
#define MAX_RANKS        8u
#define LIMIT_ONCE       0.028
#define LIMIT_WHOLE      0.040
#define LIMIT_INT8_ONCE  0.0088
#define LIMIT_INT8_WHOLE 0.0130

static uint8_t inputs[MAX_RANKS][COUNT * 4];
static double truth[COUNT];
static double got[COUNT];

static double value_at(const void *from, uint32_t dtype, uint32_t i)
{
	uint32_t size = rx_dtype_size(dtype);
	uint64_t bits = 0;

	memcpy(&bits, (const uint8_t *)from + (size_t)i * size, size);
	return oracle_decode(dtype, bits);
}

static void put_value(void *to, uint32_t dtype, uint32_t i, double value)
{
	uint64_t bits = oracle_encode(dtype, value);
	uint32_t size = rx_dtype_size(dtype);

	memcpy((uint8_t *)to + (size_t)i * size, &bits, size);
}

static void fill_normal(uint32_t dtype, uint32_t rank, double sigma)
{
	for (uint32_t i = 0; i < COUNT; i++)
		put_value(inputs[rank], dtype, i, sigma * mx_normal(100 + rank, i));
}

/* Of got[] against truth[]; both are scaled first, for their squares would leave fp64. */
static double relative_error(void)
{
	double largest = 0;
	double error = 0;
	double whole = 0;

	for (uint32_t i = 0; i < COUNT; i++) {
		assert_true(isfinite(got[i]));
		largest = fmax(largest, fabs(truth[i]));
	}
	if (largest == 0)
		return 0;
	for (uint32_t i = 0; i < COUNT; i++) {
		error += pow((got[i] - truth[i]) / largest, 2);
		whole += pow(truth[i] / largest, 2);
	}
	return sqrt(error / whole);
}

static double error_of_once(enum rx_mx_format mx, uint32_t dtype)
{
	static uint8_t elems[COUNT];
	static uint8_t scales[COUNT / RX_MX_BLOCK];
	static uint8_t out[COUNT * 4];

	rx_mx_codec_of(mx)->encode(elems, scales, inputs[0], dtype, COUNT, NULL);
	rx_mx_codec_of(mx)->decode(out, dtype, elems, scales, COUNT, false);
	for (uint32_t i = 0; i < COUNT; i++) {
		truth[i] = value_at(inputs[0], dtype, i);
		got[i] = value_at(out, dtype, i);
	}
	return relative_error();
}

/* The definition of the low-precision allreduce: quantise, add in fp32, quantise the sum. */
static double error_of_sum(enum rx_mx_format mx, uint32_t dtype, uint32_t n_ranks, uint32_t op)
{
	const struct rx_mx_codec *codec = rx_mx_codec_of(mx);
	static uint8_t elems[COUNT];
	static uint8_t scales[COUNT / RX_MX_BLOCK];
	static float acc[COUNT];
	static uint8_t out[COUNT * 4];

	memset(truth, 0, sizeof(truth));
	for (uint32_t r = 0; r < n_ranks; r++) {
		codec->encode(elems, scales, inputs[r], dtype, COUNT, NULL);
		codec->decode_add(acc, elems, scales, COUNT, r == 0);
		for (uint32_t i = 0; i < COUNT; i++)
			truth[i] += value_at(inputs[r], dtype, i) / (op == RX_AVG ? n_ranks : 1);
	}
	rx_mx_finish(acc, RX_FLOAT32, acc, COUNT, op, n_ranks);
	codec->encode(elems, scales, acc, RX_FLOAT32, COUNT, NULL);
	codec->decode(out, dtype, elems, scales, COUNT, false);
	for (uint32_t i = 0; i < COUNT; i++)
		got[i] = value_at(out, dtype, i);
	return relative_error();
}

static double error_of_plain_cast(uint32_t dtype)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		truth[i] = value_at(inputs[0], dtype, i);
		got[i] = oracle_decode(RX_FLOAT8E4M3, oracle_encode(RX_FLOAT8E4M3, truth[i]));
	}
	return relative_error();
}

/* ---- other elements under the same scales ---- */

enum format { FORMAT_E4M3, FORMAT_E5M2, FORMAT_INT8, FORMAT_N };

static const char *const format_names[] = {"e4m3", "e5m2", "int8"};
static const double format_max[] = {448, 57344, 127};

static double element_of(enum format format, double value)
{
	if (format == FORMAT_INT8)
		return nearbyint(value);
	return oracle_decode(format == FORMAT_E4M3 ? RX_FLOAT8E4M3 : RX_FLOAT8E5M2,
		oracle_encode(format == FORMAT_E4M3 ? RX_FLOAT8E4M3 : RX_FLOAT8E5M2, value));
}

/* What values become; for each block the smallest power of two that clips nothing. */
static void quantise(double *values, enum format format)
{
	for (uint32_t block = 0; block < COUNT; block += RX_MX_BLOCK) {
		double amax = 0;
		int exponent = 0;

		for (uint32_t i = block; i < block + RX_MX_BLOCK; i++)
			amax = fmax(amax, fabs(values[i]));
		(void)frexp(amax / format_max[format], &exponent);
		if (amax <= ldexp(format_max[format], exponent - 1))
			exponent--;
		for (uint32_t i = block; i < block + RX_MX_BLOCK; i++)
			values[i] =
				ldexp(element_of(format, ldexp(values[i], -exponent)), exponent);
	}
}

static double error_of_format(uint32_t dtype, enum format format)
{
	for (uint32_t i = 0; i < COUNT; i++)
		got[i] = truth[i] = value_at(inputs[0], dtype, i);
	quantise(got, format);
	return relative_error();
}

/* An allreduce of two ranks, fp32 */
static double sum_error_of_format(enum format format)
{
	static double term[COUNT];

	memset(truth, 0, sizeof(truth));
	memset(got, 0, sizeof(got));
	for (uint32_t r = 0; r < 2; r++) {
		for (uint32_t i = 0; i < COUNT; i++)
			truth[i] += term[i] = value_at(inputs[r], RX_FLOAT32, i);
		quantise(term, format);
		for (uint32_t i = 0; i < COUNT; i++)
			got[i] += term[i];
	}
	quantise(got, format);
	return relative_error();
}

static void test_normal_data(void **state)
{
	static const int lowest[] = {-30, -30, -2};
	static const int highest[] = {30, 30, 3};

	(void)state;
	printf("# dtype sigma once plain_e4m3 int8_scaled 2 3 4 5 6 7 8 ranks\n");
	for (size_t t = 0; t < RX_ARRAY_SIZE(mx_dtypes); t++) {
		uint32_t dtype = mx_dtypes[t];

		for (int e = lowest[t]; e <= highest[t]; e += t == 2 ? 1 : 2) {
			double once = 0;

			for (uint32_t r = 0; r < MAX_RANKS; r++)
				fill_normal(dtype, r, pow(10, e));
			once = error_of_once(RX_MX_FP8, dtype);
			printf("%s 1e%d %.4f %.4f %.4f", rx_dtype_name(dtype), e, once,
				error_of_plain_cast(dtype), error_of_format(dtype, FORMAT_INT8));
			assert_true(once > 0 && once <= LIMIT_ONCE);
			for (uint32_t n = 2; n <= MAX_RANKS; n++) {
				double whole =
					error_of_sum(RX_MX_FP8, dtype, n, n % 2 ? RX_AVG : RX_SUM);

				printf(" %.4f", whole);
				assert_true(whole > 0 && whole <= LIMIT_WHOLE);
			}
			printf("\n");
		}
	}
}

/* The integers' errors; all data that is printed for the plot is above. */
static void test_normal_int8(void **state)
{
	static const int exponents[] = {-30, -10, -2, 0, 3, 10, 30};

	(void)state;
	printf("# int8: dtype sigma once 2 3 4 5 6 7 8 ranks\n");
	for (size_t k = 0; k < RX_ARRAY_SIZE(mx_dtypes) * RX_ARRAY_SIZE(exponents); k++) {
		uint32_t dtype = mx_dtypes[k % RX_ARRAY_SIZE(mx_dtypes)];
		int e = exponents[k / RX_ARRAY_SIZE(mx_dtypes)];
		double error = 0;

		if (dtype == RX_FLOAT16 && (e < -2 || e > 3))
			continue;
		for (uint32_t r = 0; r < MAX_RANKS; r++)
			fill_normal(dtype, r, pow(10, e));
		error = error_of_once(RX_MX_INT8, dtype);
		printf("# int8: %s 1e%d %.4f", rx_dtype_name(dtype), e, error);
		assert_true(error > 0 && error <= LIMIT_INT8_ONCE);
		for (uint32_t n = 2; n <= MAX_RANKS; n++) {
			error = error_of_sum(RX_MX_INT8, dtype, n, n % 2 ? RX_AVG : RX_SUM);
			printf(" %.4f", error);
			assert_true(error > 0 && error <= LIMIT_INT8_WHOLE);
		}
		printf("\n");
	}
}

static bool is_outlier(uint32_t i)
{
	return i % 1000 == 7;
}

/* Leaves of truth[] and got[] only what shares a block with an outlier, without the outlier. */
static void only_neighbours(void)
{
	for (uint32_t block = 0; block < COUNT; block += RX_MX_BLOCK) {
		bool has_outlier = false;

		for (uint32_t i = block; i < block + RX_MX_BLOCK; i++)
			has_outlier |= is_outlier(i);
		for (uint32_t i = block; i < block + RX_MX_BLOCK; i++) {
			if (!has_outlier || is_outlier(i))
				truth[i] = got[i] = 0;
		}
	}
}

/* One value in a thousand is so many sigma: what becomes of those in the same block? */
static void test_outliers(void **state)
{
	static const double sizes[] = {1e1, 1e2, 1e3, 1e4};

	(void)state;
	printf("# outlier all neighbours int8_neighbours\n");
	for (size_t s = 0; s < RX_ARRAY_SIZE(sizes); s++) {
		double all = 0;
		double near = 0;
		double near_int8 = 0;

		for (uint32_t i = 0; i < COUNT; i++)
			put_value(inputs[0], RX_FLOAT32, i,
				mx_normal(2, i) * (is_outlier(i) ? sizes[s] : 1));
		all = error_of_once(RX_MX_FP8, RX_FLOAT32);
		only_neighbours();
		near = relative_error();
		(void)error_of_format(RX_FLOAT32, FORMAT_INT8);
		only_neighbours();
		near_int8 = relative_error();
		printf("# %g %.4f %.4f %.4f\n", sizes[s], all, near, near_int8);
		assert_true(all <= LIMIT_WHOLE);
		if (sizes[s] >= 1e2)
			assert_true(near < near_int8);
		if (sizes[s] <= 1e3)
			assert_true(near <= LIMIT_WHOLE);
	}
}

/* ---- why E4M3 ---- */

enum data { DATA_NORMAL, DATA_LAPLACE, DATA_OUTLIERS, DATA_LOGNORMAL, DATA_N };

static const char *const data_names[] = {
	"normal", "laplace", "normal,_0.1_%_times_100", "lognormal,_s_3"};

static double data_at(enum data data, uint32_t rank, uint32_t i)
{
	double normal = mx_normal(20 + rank, i);
	uint64_t random = mx_random(40 + rank, i);

	switch (data) {
	case DATA_LAPLACE:
		return (random & 1 ? 1 : -1) * -log(((double)(random >> 12) + 0.5) * 0x1p-52);
	case DATA_OUTLIERS:
		return is_outlier(i) ? 100 * normal : normal;
	case DATA_LOGNORMAL:
		return (random & 1 ? 1 : -1) * exp(3 * normal);
	default:
		return normal;
	}
}

/* Share of got[] that is zero, of values that are not */
static double lost(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < COUNT; i++)
		n += got[i] == 0 && truth[i] != 0;
	return (double)n / COUNT;
}

/* Of each format: the error once, of an allreduce of 2 ranks, and the share of values that vanish
 */
static void test_formats(void **state)
{
	double once[DATA_N][FORMAT_N], gone[DATA_N][FORMAT_N];

	(void)state;
	printf("# data format once allreduce_of_2 lost\n");
	for (uint32_t d = 0; d < DATA_N; d++) {
		for (uint32_t r = 0; r < 2; r++)
			for (uint32_t i = 0; i < COUNT; i++)
				put_value(inputs[r], RX_FLOAT32, i, data_at(d, r, i));
		for (uint32_t f = 0; f < FORMAT_N; f++) {
			once[d][f] = error_of_format(RX_FLOAT32, f);
			gone[d][f] = lost();
			printf("# %s %s %.4f %.4f %.4f\n", data_names[d], format_names[f],
				once[d][f], sum_error_of_format(f), gone[d][f]);
		}
		/* The simulations are the codecs. */
		assert_true(
			fabs(error_of_once(RX_MX_FP8, RX_FLOAT32) - once[d][FORMAT_E4M3]) < 1e-6);
		assert_true(
			fabs(error_of_once(RX_MX_INT8, RX_FLOAT32) - once[d][FORMAT_INT8]) < 1e-6);
		assert_true(once[d][FORMAT_E5M2] > 1.8 * once[d][FORMAT_E4M3]);
	}
	assert_true(once[DATA_NORMAL][FORMAT_INT8] < once[DATA_NORMAL][FORMAT_E4M3] / 2);
	assert_true(gone[DATA_OUTLIERS][FORMAT_INT8] > 10 * gone[DATA_OUTLIERS][FORMAT_E4M3]);
	assert_true(gone[DATA_LOGNORMAL][FORMAT_INT8] > 0.3);
	assert_true(gone[DATA_LOGNORMAL][FORMAT_E4M3] < 0.1);
}

/* Data for which one scale for all would be wrong, or that is special in another way. */
static void test_other_data(void **state)
{
	double error = 0;

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) /* each block at a magnitude of its own */
		put_value(inputs[0], RX_FLOAT32, i,
			mx_normal(1, i) * pow(10, (int)(i / RX_MX_BLOCK % 61) - 30));
	error = error_of_once(RX_MX_FP8, RX_FLOAT32);
	printf("# magnitudes from 1e-30 to 1e30 by block: %.4f\n", error);
	assert_true(error <= LIMIT_ONCE);

	for (uint32_t i = 0; i < COUNT; i++)
		put_value(inputs[0], RX_FLOAT32, i, 0.3);
	error = error_of_once(RX_MX_FP8, RX_FLOAT32);
	printf("# constant 0.3: %.4f\n", error);
	assert_true(error <= 1.0 / 16);

	fill_normal(RX_FLOAT32, 0, 1);
	memset(inputs[1], 0, sizeof(inputs[1]));
	error = error_of_sum(RX_MX_FP8, RX_FLOAT32, 2, RX_SUM);
	printf("# one of two ranks all zeros: %.4f\n", error);
	assert_true(error <= LIMIT_ONCE); /* quantising twice changes nothing */

	memset(inputs[0], 0, sizeof(inputs[0]));
	assert_true(error_of_sum(RX_MX_FP8, RX_FLOAT32, 2, RX_SUM) == 0);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_true(got[i] == 0);
}

/* Eight ranks of the largest values: the sum is what it can be at most, and never infinite. */
static void finite_stays_finite(enum rx_mx_format format)
{
	for (size_t t = 0; t < RX_ARRAY_SIZE(mx_dtypes); t++) {
		uint32_t dtype = mx_dtypes[t];
		double largest = dtype == RX_FLOAT16    ? 65504
				 : dtype == RX_BFLOAT16 ? 0x1.fep127
							: 0x1.fffffep127;

		for (uint32_t r = 0; r < MAX_RANKS; r++)
			for (uint32_t i = 0; i < COUNT; i++)
				put_value(inputs[r], dtype, i,
					largest * (i % 2 ? -1 : 1) / (double)(1 + i % 5));
		(void)error_of_sum(
			format, dtype, MAX_RANKS, RX_SUM); /* asserts that it is finite */
		assert_true(got[0] == largest && got[5] == -largest);
	}
}

static void test_finite_stays_finite(void **state)
{
	(void)state;
	for_each_format(format) finite_stays_finite(format);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normal_data),
		cmocka_unit_test(test_normal_int8),
		cmocka_unit_test(test_outliers),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_other_data),
		cmocka_unit_test(test_finite_stays_finite),
	};

	return cmocka_run_group_tests_name("mxfp8_error", tests, NULL, NULL);
}
