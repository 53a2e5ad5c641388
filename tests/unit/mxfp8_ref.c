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

/* What the element bytes of a block are: an enum rx_dtype. */
static uint32_t kind_of(enum rx_mx_format format, unsigned scale)
{
	if (scale >= 248)
		return RX_FLOAT8E5M2;
	return format == RX_MX_INT8 ? RX_INT8 : RX_FLOAT8E4M3;
}

/* What elements of a block with @scale are multiplied by. */
static double unit_of(enum rx_mx_format format, unsigned scale)
{
	if (scale >= 248)
		return ldexp(1, ((int)scale - 248) * 24 - 55);
	return ldexp(1, (int)scale - (format == RX_MX_INT8 ? 133 : 127));
}

static double element_of(uint32_t kind, uint8_t element)
{
	return kind == RX_INT8 ? (int8_t)element : oracle_decode(kind, element);
}

/* The largest that is written */
static double most_of(uint32_t kind)
{
	return kind == RX_INT8 ? 127 : kind == RX_FLOAT8E4M3 ? 448 : 57344;
}

double mx_ref_value(enum rx_mx_format format, uint8_t element, uint8_t scale)
{
	return element_of(kind_of(format, scale), element) * unit_of(format, scale);
}

/* fp32, bf16 or fp16, where a finite value stays finite. */
static uint64_t narrow(uint32_t dtype, double value)
{
	double largest = largest_of(dtype);

	if (isfinite(value) && fabs(value) > largest)
		value = copysign(largest, value);
	return oracle_encode(dtype, value);
}

uint64_t mx_ref_decode(enum rx_mx_format format, uint32_t dtype, uint8_t element, uint8_t scale)
{
	return narrow(dtype, mx_ref_value(format, element, scale));
}

/* The nearest finite code of @kind; of two equally near ones the even. */
static uint8_t nearest(uint32_t kind, double value)
{
	unsigned best = 0;
	double least = INFINITY;

	for (unsigned code = 0; code < 128; code++) {
		double distance = fabs(fabs(value) - element_of(kind, (uint8_t)code));

		if (!isfinite(distance))
			continue;
		if (distance < least || (distance == least && code % 2 == 0)) {
			best = code;
			least = distance;
		}
	}
	if (kind == RX_INT8)
		return (uint8_t)(signbit(value) ? 0 - best : best);
	return (uint8_t)(best | (signbit(value) ? 0x80u : 0));
}

static uint8_t encode_one(enum rx_mx_format format, double value, unsigned scale)
{
	if (isnan(value))
		return 0x7f;
	if (isinf(value))
		return signbit(value) ? 0xfc : 0x7c;
	return nearest(kind_of(format, scale), value / unit_of(format, scale));
}

void mx_ref_encode(enum rx_mx_format format, uint8_t *elems, uint8_t *scale_p, const void *src,
	uint32_t dtype, uint32_t n, struct rx_mx_stats *stats)
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
	/* Escapes come last: what no scale before them has room for is one, too. */
	for (scale = special ? 248 : 0;
		amax > most_of(kind_of(format, scale)) * unit_of(format, scale);)
		scale++;
	for (uint32_t i = 0; i < n; i++) {
		elems[i] = encode_one(format, values[i], scale);
		flushed |= values[i] != 0 && mx_ref_value(format, elems[i], (uint8_t)scale) == 0;
		saturated |= isfinite(values[i]) && fabs(mx_ref_value(format, elems[i],
							    (uint8_t)scale)) > largest_of(dtype);
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
