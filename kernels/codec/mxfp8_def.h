/* SPDX-License-Identifier: MIT */
/*
 * The low-precision codec's definition, value by value: MXFP8, blocks of RX_MX_BLOCK elements of
 * OCP E4M3 with one scale byte (doc/low-precision.md).
 *
 * Everything that encodes or decodes has to give these bits: the portable loops and the GPU kernels
 * are made of these functions, the vector code of the CPU is held against them by tests. So this is
 * C and C++, needs no library, and works on the bits of fp32 by integer operations alone: no
 * rounding mode, flushing of subnormals or contraction changes anything.
 *
 * Scale bytes 0 .. 247: value = E4M3 * 2^(scale - 127), with the smallest scale at which the
 * largest magnitude of the block is at most 448, E4M3's largest. That is an OCP MXFP8 block; all
 * blocks of finite values are. Scale bytes 248 + k, k = 0 .. 7, "escape": the block holds a NaN or
 * an infinity, which E4M3 has not, and its elements are E5M2: value = E5M2 * 2^(24 k - 55), with
 * the smallest k at which the largest finite magnitude is at most 57344. The windows of two k
 * overlap, so that the finite neighbours are well inside E5M2's range, at whatever magnitude.
 */
#ifndef RX_MXFP8_DEF_H
#define RX_MXFP8_DEF_H

#include <stdint.h>

#define RX_MX_BLOCK  32u
#define RX_MX_ESCAPE 248u

#define RX_MX_SIGN      0x80000000u
#define RX_MX_MAGNITUDE 0x7fffffffu
#define RX_MX_INF       0x7f800000u
#define RX_MX_NAN       0x7fc00000u

/* The largest finite values, as bits of fp32. */
#define RX_MX_MAX_F32  0x7f7fffffu
#define RX_MX_MAX_BF16 0x7f7f0000u
#define RX_MX_MAX_F16  0x477fe000u

#define RX_MX_E4M3_MAX 0x7eu /* 448 */
#define RX_MX_E4M3_NAN 0x7fu
#define RX_MX_E5M2_MAX 0x7bu /* 57344 */
#define RX_MX_E5M2_INF 0x7cu
#define RX_MX_E5M2_NAN 0x7fu

/* A GPU's compiler wants its own words here. */
#ifndef RX_MX_FN
#define RX_MX_FN static inline __attribute__((unused))
#endif

RX_MX_FN uint32_t rx_mx_bits(float value)
{
	union {
		float value;
		uint32_t bits;
	} u;

	u.value = value;
	return u.bits;
}

RX_MX_FN float rx_mx_float(uint32_t bits)
{
	union {
		float value;
		uint32_t bits;
	} u;

	u.bits = bits;
	return u.value;
}

/*
 * The scale byte of a block. @amax: bits of its largest finite magnitude, 0 if it has none;
 * @special: it has a NaN or an infinity.
 */
RX_MX_FN uint32_t rx_mx_scale(uint32_t amax, int special)
{
	/* Biased exponent of the smallest 1.75 * 2^n that amax does not exceed: 448 and 57344 are
	 * such numbers, and a fraction above .75 carries. */
	uint32_t top = (amax + 0x1fffffu) >> 23;

	if (special)
		return RX_MX_ESCAPE + (top > 87u ? (top - 87u + 23u) / 24u : 0u);
	return top > 8u ? top - 8u : 0u;
}

/* Exponent of what the elements of a block are multiplied by. */
RX_MX_FN int32_t rx_mx_exponent(uint32_t scale)
{
	if (scale < RX_MX_ESCAPE)
		return (int32_t)scale - 127;
	return 24 * (int32_t)(scale - RX_MX_ESCAPE) - 55;
}

/*
 * Rounds magnitude * 2^-exponent, the magnitude in bits of fp32 and finite, to nearest even in a
 * format of @mantissa stored bits, smallest normal exponent @smallest and largest code @largest.
 */
RX_MX_FN uint32_t rx_mx_round(
	uint32_t magnitude, int32_t exponent, uint32_t mantissa, int32_t smallest, uint32_t largest)
{
	uint32_t shift = 23u - mantissa;
	uint32_t code = 0;
	uint32_t lost = 0;
	uint32_t half = 0;
	int32_t above = 0; /* exponents above the smallest normal one */

	if (magnitude < 0x800000u) {
		/* A subnormal is an integer times 2^-149, and that integer has an exact fp32. */
		if (magnitude == 0u)
			return 0u;
		magnitude = rx_mx_bits((float)magnitude);
		exponent += 149;
	}
	above = (int32_t)(magnitude >> 23) - 127 - exponent - smallest;
	magnitude = (magnitude & 0x7fffffu) | 0x800000u;
	if (above < 0) {
		if (above < -4)
			return 0u; /* below half of the smallest */
		shift += (uint32_t)-above;
		above = 0;
	}
	code = magnitude >> shift;
	lost = magnitude & ((1u << shift) - 1u);
	half = 1u << (shift - 1u);
	if (lost > half || (lost == half && (code & 1u) != 0u))
		code++;
	/* The implicit one, or a carry, adds to the exponent what belongs there. */
	code += (uint32_t)above << mantissa;
	return code > largest ? largest : code;
}

/* Magnitude bits of fp32 with the value code * 2^exponent, @code finite; at most the largest. */
RX_MX_FN uint32_t rx_mx_expand(uint32_t code, int32_t exponent, uint32_t mantissa, int32_t smallest)
{
	uint32_t field = code >> mantissa;
	uint32_t digits = code & ((1u << mantissa) - 1u);
	uint32_t bits = 0;
	int32_t biased = 0;

	if (code == 0u)
		return 0u;
	if (field > 0u) {
		digits |= 1u << mantissa;
		exponent += (int32_t)field - 1;
	}
	/* digits * 2^(exponent + smallest - mantissa) */
	bits = rx_mx_bits((float)digits);
	biased = (int32_t)(bits >> 23) + exponent + smallest - (int32_t)mantissa;
	bits &= 0x7fffffu;
	if (biased > 254)
		return RX_MX_MAX_F32;
	if (biased > 0)
		return (uint32_t)biased << 23 | bits;
	/* Subnormal, and exact: the last digit of any block is worth 2^-136 or more. */
	return (bits | 0x800000u) >> (1 - biased);
}

/* Bits of an fp32 to an element of a block with @scale, which comes from rx_mx_scale(). */
RX_MX_FN uint8_t rx_mx_encode_one(uint32_t bits, uint32_t scale)
{
	uint32_t sign = bits >> 24 & 0x80u;
	uint32_t magnitude = bits & RX_MX_MAGNITUDE;
	int32_t exponent = rx_mx_exponent(scale);

	if (scale < RX_MX_ESCAPE)
		return (uint8_t)(sign | rx_mx_round(magnitude, exponent, 3, -6, RX_MX_E4M3_MAX));
	if (magnitude > RX_MX_INF)
		return RX_MX_E5M2_NAN;
	if (magnitude == RX_MX_INF)
		return (uint8_t)(sign | RX_MX_E5M2_INF);
	return (uint8_t)(sign | rx_mx_round(magnitude, exponent, 2, -14, RX_MX_E5M2_MAX));
}

/* Any element and scale byte to bits of fp32: exact, but for finite values that fp32 has not. */
RX_MX_FN uint32_t rx_mx_decode_one(uint8_t element, uint32_t scale)
{
	uint32_t sign = (uint32_t)(element & 0x80u) << 24;
	uint32_t code = element & 0x7fu;
	int32_t exponent = rx_mx_exponent(scale);

	if (scale < RX_MX_ESCAPE) {
		if (code == RX_MX_E4M3_NAN)
			return RX_MX_NAN; /* the encoder never writes it */
		return sign | rx_mx_expand(code, exponent, 3, -6);
	}
	if (code > RX_MX_E5M2_INF)
		return RX_MX_NAN;
	if (code == RX_MX_E5M2_INF)
		return sign | RX_MX_INF;
	return sign | rx_mx_expand(code, exponent, 2, -14);
}

/* Before fp32 is rounded to a narrower type: what is finite stays below its largest, RX_MX_MAX_*.
 */
RX_MX_FN uint32_t rx_mx_clamp(uint32_t bits, uint32_t largest)
{
	uint32_t magnitude = bits & RX_MX_MAGNITUDE;

	if (magnitude > RX_MX_INF)
		return RX_MX_NAN;
	return magnitude > largest && magnitude < RX_MX_INF ? (bits & RX_MX_SIGN) | largest : bits;
}

/*
 * One step of a sum, in fp32 rounded to nearest even (the caller's floating point environment is
 * the default one): infinite only if a term is.
 */
RX_MX_FN float rx_mx_add(float acc, float value)
{
	float sum = acc + value;
	uint32_t bits = rx_mx_bits(sum);
	uint32_t magnitude = bits & RX_MX_MAGNITUDE;

	if (magnitude < RX_MX_INF)
		return sum;
	if (magnitude > RX_MX_INF)
		return rx_mx_float(RX_MX_NAN);
	if ((rx_mx_bits(acc) & RX_MX_MAGNITUDE) < RX_MX_INF &&
		(rx_mx_bits(value) & RX_MX_MAGNITUDE) < RX_MX_INF)
		return rx_mx_float((bits & RX_MX_SIGN) | RX_MX_MAX_F32);
	return sum;
}

#endif
