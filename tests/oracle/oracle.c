/* SPDX-License-Identifier: MIT */
/*
 * Why fp64 is enough to compute in fp32: a product of two fp32 is exact in fp64, and for sums and
 * quotients rounding first to 53 and then to 24 bits gives the same as rounding once, since
 * 53 >= 2 * 24 + 2; where fp32 is subnormal, sums are exact, and a quotient by a small integer is
 * not near enough to a midpoint to matter.
 */
#include "oracle.h"

#include <math.h>
#include <string.h>

struct format {
	int precision;    /* bits of the significand, with the implicit one */
	int min_exponent; /* of the smallest normal number */
	int max_exponent; /* of the largest finite number */
	bool infinite;    /* has infinities; else too large saturates */
	double largest;
	uint64_t nan;
};

static const struct format *format_of(uint32_t dtype)
{
	static const struct format formats[RX_DTYPE_N] = {
		[RX_FLOAT16] = {11, -14, 15, true, 65504.0, 0x7e00},
		[RX_BFLOAT16] = {8, -126, 127, true, 0x1.fep127, 0x7fc0},
		[RX_FLOAT32] = {24, -126, 127, true, 0x1.fffffep127, 0x7fc00000},
		[RX_FLOAT64] = {53, -1022, 1023, true, 0x1.fffffffffffffp1023, 0x7ff8000000000000},
		[RX_FLOAT8E4M3] = {4, -6, 8, false, 448.0, 0x7f},
		[RX_FLOAT8E5M2] = {3, -14, 15, true, 57344.0, 0x7f},
	};

	return &formats[dtype];
}

static unsigned bits_of(uint32_t dtype)
{
	return rx_dtype_size(dtype) * 8;
}

static uint64_t load(const void *src, uint32_t size)
{
	uint64_t bits = 0;

	memcpy(&bits, src, size); /* little-endian */
	return bits;
}

/* @value in units of @f, to the nearest unit, ties to even; no overflow looked at */
static double round_to(const struct format *f, double value)
{
	int exponent = 0;
	int unit = 0;
	double scaled = 0;
	double below = 0;

	(void)frexp(value, &exponent);
	unit = exponent - f->precision;
	if (unit < f->min_exponent - f->precision + 1)
		unit = f->min_exponent - f->precision + 1;
	scaled = ldexp(fabs(value), -unit);
	below = floor(scaled);
	if (scaled - below > 0.5 || (scaled - below == 0.5 && fmod(below, 2) == 1))
		below += 1;
	return copysign(ldexp(below, unit), value);
}

static double round_value(uint32_t dtype, double value)
{
	const struct format *f = format_of(dtype);

	if (dtype == RX_FLOAT64 || isnan(value) || value == 0)
		return value;
	if (!isinf(value))
		value = round_to(f, value);
	if (fabs(value) > f->largest)
		value = copysign(f->infinite ? INFINITY : f->largest, value);
	return value;
}

uint64_t oracle_encode(uint32_t dtype, double value)
{
	const struct format *f = format_of(dtype);
	uint64_t sign = signbit(value) ? 1ull << (bits_of(dtype) - 1) : 0;
	uint64_t hidden = 1ull << (f->precision - 1);
	uint64_t significand = 0;
	int exponent = 0;

	if (isnan(value))
		return f->nan;
	value = fabs(round_value(dtype, value));
	if (isinf(value))
		return sign | (uint64_t)(f->max_exponent - f->min_exponent + 2)
				      << (f->precision - 1);
	(void)frexp(value, &exponent);
	exponent -= 1;
	if (value == 0 || exponent < f->min_exponent)
		exponent = f->min_exponent;
	significand = (uint64_t)ldexp(value, f->precision - 1 - exponent);
	if (significand < hidden)
		return sign | significand;
	return sign | (uint64_t)(exponent - f->min_exponent + 1) << (f->precision - 1) |
	       (significand - hidden);
}

double oracle_decode(uint32_t dtype, uint64_t bits)
{
	const struct format *f = format_of(dtype);
	uint64_t sign = 1ull << (bits_of(dtype) - 1);
	uint64_t magnitude = bits & (sign - 1);
	uint64_t hidden = 1ull << (f->precision - 1);
	uint64_t significand = magnitude & (hidden - 1);
	int exponent = (int)(magnitude >> (f->precision - 1)) + f->min_exponent - 1;
	double value = 0;

	if (exponent < f->min_exponent)
		value = ldexp((double)significand, f->min_exponent - f->precision + 1);
	else
		value = ldexp((double)(significand + hidden), exponent - f->precision + 1);
	if (f->infinite && exponent > f->max_exponent)
		value = significand == 0 ? INFINITY : NAN;
	if (!f->infinite && magnitude == f->nan)
		value = NAN;
	return bits & sign ? -value : value;
}

/* One step in the type that values are accumulated in. */
static double step(uint32_t accumulator, uint32_t op, double acc, double v)
{
	switch (op) {
	case RX_PROD:
		return round_value(accumulator, acc * v);
	case RX_MAX:
		return v > acc || isnan(acc) ? v : acc;
	case RX_MIN:
		return v < acc || isnan(acc) ? v : acc;
	default:
		return round_value(accumulator, acc + v);
	}
}

static uint64_t fold_floats(uint32_t dtype, uint32_t op, uint32_t n_ranks, const uint64_t *bits,
	const uint64_t *scalars)
{
	uint32_t accumulator = dtype == RX_FLOAT64 ? RX_FLOAT64 : RX_FLOAT32;
	double acc = 0;

	for (uint32_t r = 0; r < n_ranks; r++) {
		double v = oracle_decode(dtype, bits[r]);

		if (op == RX_PREMUL_SUM)
			v = round_value(accumulator, v * oracle_decode(dtype, scalars[r]));
		acc = r == 0 ? v : step(accumulator, op, acc, v);
	}
	if (op == RX_AVG)
		acc = round_value(accumulator, acc / n_ranks);
	return oracle_encode(dtype, acc);
}

/* The low bits as a number; wide enough for a sum of two, while products are taken modulo 2^64. */
static __int128 integer_of(uint32_t dtype, uint64_t bits)
{
	unsigned n_bits = bits_of(dtype);
	bool is_signed = dtype == RX_INT8 || dtype == RX_INT32 || dtype == RX_INT64;
	__int128 span = (__int128)1 << n_bits;
	__int128 value = (__int128)bits % span;

	return is_signed && value >= span / 2 ? value - span : value;
}

static uint64_t fold_integers(uint32_t dtype, uint32_t op, uint32_t n_ranks, const uint64_t *bits,
	const uint64_t *scalars)
{
	__int128 acc = 0;

	for (uint32_t r = 0; r < n_ranks; r++) {
		__int128 v = integer_of(dtype, bits[r]);

		if (op == RX_PREMUL_SUM)
			v = integer_of(
				dtype, (uint64_t)v * (uint64_t)integer_of(dtype, scalars[r]));
		if (r == 0)
			acc = v;
		else if (op == RX_PROD)
			acc = (__int128)((uint64_t)acc * (uint64_t)v);
		else if (op == RX_MAX)
			acc = v > acc ? v : acc;
		else if (op == RX_MIN)
			acc = v < acc ? v : acc;
		else
			acc += v;
		acc = integer_of(dtype, (uint64_t)acc);
	}
	if (op == RX_AVG)
		acc /= n_ranks;
	return (uint64_t)acc;
}

void oracle_fold(uint32_t dtype, uint32_t op, uint32_t n_ranks, const void *const *src,
	uint64_t index, const uint64_t *scalars, void *out_element)
{
	uint32_t size = rx_dtype_size(dtype);
	uint64_t bits[RX_MAX_RANKS];
	uint64_t result = 0;

	for (uint32_t r = 0; r < n_ranks; r++)
		bits[r] = load((const uint8_t *)src[r] + index * size, size);
	if (rx_dtype_is_float(dtype))
		result = fold_floats(dtype, op, n_ranks, bits, scalars);
	else
		result = fold_integers(dtype, op, n_ranks, bits, scalars);
	memcpy(out_element, &result, size);
}

/* A well-mixed function of the counter. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	x = (x ^ (x >> 29)) * 0xa0761d6478bd642fu;
	return x ^ (x >> 32);
}

static uint64_t normal_float(uint32_t dtype, uint64_t random)
{
	int spread = dtype == RX_FLOAT64 || dtype == RX_FLOAT32 ? 6 : 3;
	double fraction = ldexp((double)(random >> 11), -53) + 1;
	double value = ldexp(fraction, (int)(random % (unsigned)(2 * spread + 1)) - spread);

	if ((random >> 4 & 31) == 0)
		value = 0;
	return oracle_encode(dtype, random >> 9 & 1 ? -value : value);
}

/* One of the values at which something changes; the neighbours of each are wanted too. */
static uint64_t special_float(uint32_t dtype, uint64_t random)
{
	const struct format *f = format_of(dtype);
	uint64_t sign = 1ull << (bits_of(dtype) - 1);
	uint64_t hidden = 1ull << (f->precision - 1);
	uint64_t infinity = oracle_encode(dtype, INFINITY);
	uint64_t largest = oracle_encode(dtype, f->largest);
	uint64_t specials[] = {0, 1, hidden - 1, hidden, hidden + 1, infinity, largest, largest - 1,
		f->nan, infinity + 1, oracle_encode(dtype, 1), random % hidden};
	uint64_t code = specials[random / hidden % RX_ARRAY_SIZE(specials)];

	return random >> 60 & 1 ? code | sign : code;
}

static uint64_t special_integer(uint32_t dtype, uint64_t random)
{
	uint64_t top = 1ull << (bits_of(dtype) - 1);
	uint64_t specials[] = {0, 1, 2, UINT64_MAX, UINT64_MAX - 1, top, top - 1, top + 1};

	return specials[random % RX_ARRAY_SIZE(specials)];
}

static uint64_t element(uint32_t dtype, uint64_t random, enum oracle_data kind)
{
	bool is_float = rx_dtype_is_float(dtype);
	uint64_t choice = mix(random);

	if (kind == ORACLE_NORMAL)
		return is_float ? normal_float(dtype, random) : random % 100;
	if (choice % 3 == 0)
		return random;
	if (choice % 3 == 1)
		return is_float ? normal_float(dtype, random) : random % 100;
	return is_float ? special_float(dtype, random) : special_integer(dtype, random);
}

void oracle_fill(void *buf, uint32_t dtype, uint64_t first, uint64_t count, uint32_t rank,
	uint64_t seed, enum oracle_data kind)
{
	uint32_t size = rx_dtype_size(dtype);
	uint64_t stream = mix(seed ^ mix((uint64_t)rank << 8 | dtype));

	for (uint64_t i = 0; i < count; i++) {
		uint64_t bits = element(dtype, mix(stream + first + i), kind);

		memcpy((uint8_t *)buf + i * size, &bits, size);
	}
}
