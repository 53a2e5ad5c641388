/* SPDX-License-Identifier: MIT */
/*
 * One algorithm over a description of the format. These serve single values; the folds convert
 * vectors in their own way (vec_float.h), and a test holds the two against each other.
 */
#include "convert.h"

#include <string.h>

#define F32_MANTISSA 23
#define F32_BIAS     127
#define F32_INF      0x7f800000u
#define F32_NAN      0x7fc00000u

struct format {
	uint32_t bits;     /* width */
	uint32_t mantissa; /* bits of it that are stored */
	int32_t bias;
	uint32_t largest; /* code of the largest finite value */
	uint32_t over;    /* code of what is larger */
	uint32_t nan;
};

static const struct format f16 = {16, 10, 15, 0x7bff, 0x7c00, 0x7e00};
static const struct format bf16 = {16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0};
static const struct format e4m3 = {8, 3, 7, 0x7e, 0x7e, 0x7f};
static const struct format e5m2 = {8, 2, 15, 0x7b, 0x7c, 0x7f};

static uint32_t bits_of(float value)
{
	uint32_t bits = 0;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float float_of(uint32_t bits)
{
	float value = 0;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Bits of the fp32 with the value of @magnitude, a finite code without its sign. */
static uint32_t widen_finite(const struct format *f, uint32_t magnitude)
{
	uint32_t exponent = magnitude >> f->mantissa;
	uint32_t fraction = magnitude & ((1u << f->mantissa) - 1);
	uint32_t up = 0;

	if (f->bias == F32_BIAS || magnitude == 0)
		return magnitude << (F32_MANTISSA - f->mantissa);
	if (exponent == 0) {
		/* A subnormal here is a normal number there: shift its leading one into place. */
		up = (uint32_t)__builtin_clz(fraction) - (31 - f->mantissa);
		fraction = (fraction << up) & ((1u << f->mantissa) - 1);
		exponent = 1;
	}
	exponent += (uint32_t)(F32_BIAS - f->bias) - up;
	return exponent << F32_MANTISSA | fraction << (F32_MANTISSA - f->mantissa);
}

static float widen(const struct format *f, uint32_t code)
{
	uint32_t sign_bit = 1u << (f->bits - 1);
	uint32_t sign = code & sign_bit ? 1u << 31 : 0;
	uint32_t magnitude = code & (sign_bit - 1);

	if (magnitude <= f->largest)
		return float_of(sign | widen_finite(f, magnitude));
	return float_of(f->over != f->largest && magnitude == f->over ? sign | F32_INF : F32_NAN);
}

/* @value / 2^shift, to nearest even */
static uint32_t shift_round(uint32_t value, uint32_t shift)
{
	uint32_t kept = 0;
	uint32_t lost = 0;
	uint32_t half = 0;

	if (shift == 0)
		return value;
	if (shift > 31)
		return 0; /* callers' values are below 2^30: less than a half remains */
	kept = value >> shift;
	lost = value & ((1u << shift) - 1);
	half = 1u << (shift - 1);
	return kept + (lost > half || (lost == half && (kept & 1)));
}

static uint32_t narrow(const struct format *f, float value)
{
	uint32_t bits = bits_of(value);
	uint32_t sign = bits >> 31 << (f->bits - 1);
	uint32_t magnitude = bits & ~(1u << 31);
	uint32_t fraction = magnitude & ((1u << F32_MANTISSA) - 1);
	uint32_t drop = F32_MANTISSA - f->mantissa;
	int32_t exponent = (int32_t)(magnitude >> F32_MANTISSA) - F32_BIAS + f->bias;
	uint32_t code = 0;

	if (magnitude > F32_INF)
		return f->nan;
	if (exponent >= 1 || f->bias == F32_BIAS) {
		/* A carry out of the fraction goes up into the exponent, where it belongs. */
		if (exponent > 255)
			return sign | f->over;
		code = shift_round((uint32_t)exponent << F32_MANTISSA | fraction, drop);
	} else {
		code = shift_round(fraction | 1u << F32_MANTISSA, drop + (uint32_t)(1 - exponent));
	}
	return sign | (code > f->largest ? f->over : code);
}

float rx_widen_f16(uint16_t code)
{
	return widen(&f16, code);
}

float rx_widen_bf16(uint16_t code)
{
	return widen(&bf16, code);
}

float rx_widen_e4m3(uint8_t code)
{
	return widen(&e4m3, code);
}

float rx_widen_e5m2(uint8_t code)
{
	return widen(&e5m2, code);
}

uint16_t rx_narrow_f16(float value)
{
	return (uint16_t)narrow(&f16, value);
}

uint16_t rx_narrow_bf16(float value)
{
	return (uint16_t)narrow(&bf16, value);
}

uint8_t rx_narrow_e4m3(float value)
{
	return (uint8_t)narrow(&e4m3, value);
}

uint8_t rx_narrow_e5m2(float value)
{
	return (uint8_t)narrow(&e5m2, value);
}
