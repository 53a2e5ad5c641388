/* SPDX-License-Identifier: MIT */
#include "mxfp8_ref.h"

#include "../oracle/oracle.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

uint64_t mx_random(uint64_t seed, uint64_t index)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + index;

	for (int round = 0; round < 3; round++) {
		x ^= x >> 31;
		x *= 0xd6e8feb86659fd93u;
		x ^= x >> 29;
		x += 0x632be59bd9b4e019u;
	}
	return x;
}

double mx_normal(uint64_t seed, uint64_t index)
{
	double u = ((double)(mx_random(seed, 2 * index) >> 11) + 1) * 0x1p-53;
	double v = (double)(mx_random(seed, 2 * index + 1) >> 11) * 0x1p-53;

	return sqrt(-2 * log(u)) * cos(2 * PI * v);
}

static double largest_of(uint32_t dtype)
{
	if (dtype == RX_FLOAT16)
		return 65504;
	return dtype == RX_BFLOAT16 ? 0x1.fep127 : 0x1.fffffep127;
}

/* What elements of a block with @scale are multiplied by. */
static double unit_of(unsigned scale)
{
	return ldexp(1, scale < 248 ? (int)scale - 127 : ((int)scale - 248) * 24 - 55);
}

static uint32_t kind_of(unsigned scale)
{
	return scale < 248 ? RX_FLOAT8E4M3 : RX_FLOAT8E5M2;
}

double mx_ref_value(uint8_t element, uint8_t scale)
{
	return oracle_decode(kind_of(scale), element) * unit_of(scale);
}

/* fp32, bf16 or fp16, where a finite value stays finite. */
static uint64_t narrow(uint32_t dtype, double value)
{
	double largest = largest_of(dtype);

	if (isfinite(value) && fabs(value) > largest)
		value = copysign(largest, value);
	return oracle_encode(dtype, value);
}

uint64_t mx_ref_decode(uint32_t dtype, uint8_t element, uint8_t scale)
{
	return narrow(dtype, mx_ref_value(element, scale));
}

/* The nearest finite code of @kind; of two equally near ones the even. */
static uint8_t nearest(uint32_t kind, double value)
{
	unsigned best = 0;
	double least = INFINITY;

	for (unsigned code = 0; code < 128; code++) {
		double distance = fabs(fabs(value) - oracle_decode(kind, code));

		if (!isfinite(distance))
			continue;
		if (distance < least || (distance == least && code % 2 == 0)) {
			best = code;
			least = distance;
		}
	}
	return (uint8_t)(best | (signbit(value) ? 0x80u : 0));
}

static uint8_t encode_one(double value, unsigned scale)
{
	if (isnan(value))
		return 0x7f;
	if (isinf(value))
		return signbit(value) ? 0xfc : 0x7c;
	return nearest(kind_of(scale), value / unit_of(scale));
}

void mx_ref_encode(uint8_t *elems, uint8_t *scale_p, const void *src, uint32_t dtype, uint32_t n,
	struct rx_mx_stats *stats)
{
	uint32_t size = rx_dtype_size(dtype);
	double values[RX_MX_BLOCK];
	double amax = 0;
	unsigned scale = 0;
	bool special = false;
	bool flushed = false;
	bool saturated = false;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t bits = 0;

		memcpy(&bits, (const uint8_t *)src + (size_t)i * size, size);
		values[i] = oracle_decode(dtype, bits);
		special |= !isfinite(values[i]);
		if (isfinite(values[i]))
			amax = fmax(amax, fabs(values[i]));
	}
	for (scale = special ? 248 : 0; amax > (special ? 57344 : 448) * unit_of(scale);)
		scale++;
	for (uint32_t i = 0; i < n; i++) {
		elems[i] = encode_one(values[i], scale);
		flushed |= values[i] != 0 && (elems[i] & 0x7f) == 0;
		saturated |= isfinite(values[i]) &&
			     fabs(mx_ref_value(elems[i], (uint8_t)scale)) > largest_of(dtype);
	}
	*scale_p = (uint8_t)scale;
	stats->n_blocks++;
	stats->n_special += special;
	stats->n_flushed += flushed;
	stats->n_saturated += saturated;
}

uint32_t mx_ref_add(uint32_t acc, uint32_t value)
{
	double a = oracle_decode(RX_FLOAT32, acc);
	double b = oracle_decode(RX_FLOAT32, value);

	/* In fp64 two finite ones do not overflow; rounded twice it is the same (oracle.c). */
	return (uint32_t)narrow(RX_FLOAT32, a + b);
}
