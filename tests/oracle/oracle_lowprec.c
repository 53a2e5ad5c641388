/* SPDX-License-Identifier: MIT */
#include "oracle_lowprec.h"

#include <math.h>
#include <string.h>

static double largest_of(uint32_t dtype)
{
	if (dtype == RX_FLOAT16)
		return 65504;
	return dtype == RX_BFLOAT16 ? 0x1.fep127 : 0x1.fffffep127;
}

/* Nearest number of the type; a finite one stays finite. */
static uint64_t narrow(uint32_t dtype, double value)
{
	if (isfinite(value) && fabs(value) > largest_of(dtype))
		value = copysign(largest_of(dtype), value);
	return oracle_encode(dtype, value);
}

static double through(uint32_t dtype, double value)
{
	return oracle_decode(dtype, narrow(dtype, value));
}

/* Smallest power of two of those at hand by which @amax is at most @most. */
static double unit_for(double amax, double most, int lowest, int step)
{
	int exponent = lowest;

	while (amax > ldexp(most, exponent))
		exponent += step;
	return ldexp(1, exponent);
}

/* The nearest integer, of two the even; never -0. */
static double integer(double value)
{
	return nearbyint(value) + 0.0;
}

void oracle_quantise(enum oracle_format format, double *values, uint32_t n)
{
	double amax = 0;
	bool special = false;
	double unit = 0;
	uint32_t kind = RX_FLOAT8E4M3;

	for (uint32_t i = 0; i < n; i++) {
		special |= !isfinite(values[i]);
		amax = isfinite(values[i]) ? fmax(amax, fabs(values[i])) : amax;
	}
	special |= format == ORACLE_INT8 && amax > ldexp(127, 247 - 133);
	if (special)
		kind = RX_FLOAT8E5M2;
	if (special)
		unit = unit_for(amax, 57344, -55, 24);
	else if (format == ORACLE_INT8)
		unit = unit_for(amax, 127, -133, 1);
	else
		unit = unit_for(amax, 448, -127, 1);
	for (uint32_t i = 0; i < n; i++)
		if (isfinite(values[i]) && format == ORACLE_INT8 && !special)
			values[i] = unit * integer(values[i] / unit);
		else if (isfinite(values[i]))
			values[i] =
				unit * oracle_decode(kind, oracle_encode(kind, values[i] / unit));
}

static void load(uint32_t dtype, const void *src, uint32_t n, double *values)
{
	uint32_t size = rx_dtype_size(dtype);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t bits = 0;

		memcpy(&bits, (const uint8_t *)src + (size_t)i * size, size);
		values[i] = oracle_decode(dtype, bits);
	}
}

static void store(uint32_t dtype, const double *values, uint32_t n, void *out)
{
	uint32_t size = rx_dtype_size(dtype);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t bits = narrow(dtype, values[i]);

		memcpy((uint8_t *)out + (size_t)i * size, &bits, size);
	}
}

void oracle_lowprec_copy(
	enum oracle_format format, uint32_t dtype, const void *src, uint32_t n, void *out)
{
	double values[ORACLE_BLOCK];

	load(dtype, src, n, values);
	oracle_quantise(format, values, n);
	store(dtype, values, n, out);
}

void oracle_lowprec_fold(enum oracle_format format, uint32_t dtype, uint32_t op, uint32_t n_ranks,
	const void *const *src, uint32_t n, enum oracle_gather gather, void *out)
{
	double sums[ORACLE_BLOCK] = {0};
	double values[ORACLE_BLOCK];

	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		load(dtype, src[rank], n, values);
		oracle_quantise(format, values, n);
		for (uint32_t i = 0; i < n; i++) {
			double value = through(RX_FLOAT32, values[i]);

			sums[i] = rank == 0 ? value : through(RX_FLOAT32, sums[i] + value);
		}
	}
	for (uint32_t i = 0; op == RX_AVG && i < n; i++)
		sums[i] = through(RX_FLOAT32, sums[i] / n_ranks);
	if (gather == ORACLE_GATHER_CODED)
		oracle_quantise(format, sums, n);
	for (uint32_t i = 0; gather == ORACLE_GATHER_BF16 && i < n; i++)
		sums[i] = through(RX_BFLOAT16, sums[i]);
	store(dtype, sums, n, out);
}
