/* SPDX-License-Identifier: MIT */
/*
 * The definition of the other format, MXINT8, value by value: blocks of RX_MX_BLOCK integers of
 * OCP's INT8 with one scale byte (doc/low-precision.md). In the manner of mxfp8_def.h, whose
 * escapes it shares.
 *
 * Scale bytes 0 .. 247: value = integer * 2^-6 * 2^(scale - 127), with the smallest scale at which
 * the largest magnitude of the block is at most 127 integers. That is an OCP MXINT8 block. -128 is
 * never written, so that negation changes no magnitude; it is read as OCP has it.
 *
 * Scale bytes 248 .. 255 escape, with the elements and exponents of MXFP8's: the block holds a NaN
 * or an infinity, or a magnitude that is too large for scale 247, above 127 * 2^114.
 */
#ifndef RX_MXINT8_DEF_H
#define RX_MXINT8_DEF_H

#include "mxfp8_def.h"

/* The largest magnitude outside of escapes, as bits of fp32: 127 * 2^114 */
#define RX_MXINT8_AMAX 0x7bfe0000u

/* As rx_mx_scale(). */
RX_MX_FN uint32_t rx_mxint8_scale(uint32_t amax, int special)
{
	if (special || amax > RX_MXINT8_AMAX)
		return rx_mx_scale(amax, 1);
	/* 127 * 2^-133, which is subnormal */
	if (amax <= 0x7f0000u)
		return 0u;
	/* Biased exponent of the smallest 127 * 2^n that amax does not exceed: a fraction above
	 * 127/64 carries. */
	return (amax + 0x1ffffu) >> 23;
}

/* Rounds magnitude * 2^-exponent, the magnitude in bits of fp32, to the nearest integer, even. */
RX_MX_FN uint32_t rx_mxint8_round(uint32_t magnitude, int32_t exponent)
{
	uint32_t field = magnitude >> 23;
	uint32_t digits = magnitude & 0x7fffffu;
	uint32_t code = 0;
	uint32_t lost = 0;
	uint32_t half = 0;
	int32_t shift = 0;

	if (field > 0u)
		digits |= 0x800000u;
	else
		field = 1u;
	/* digits * 2^(field - 150 - exponent), at most 127: shift is 16 or more. */
	shift = 150 + exponent - (int32_t)field;
	if (shift > 24)
		return 0u; /* below half */
	code = digits >> shift;
	lost = digits & ((1u << shift) - 1u);
	half = 1u << (shift - 1);
	if (lost > half || (lost == half && (code & 1u) != 0u))
		code++;
	return code;
}

/* Bits of an fp32 to an element of a block with @scale, which comes from rx_mxint8_scale(). */
RX_MX_FN uint8_t rx_mxint8_encode_one(uint32_t bits, uint32_t scale)
{
	uint32_t code = 0;

	if (scale >= RX_MX_ESCAPE)
		return rx_mx_encode_one(bits, scale);
	code = rx_mxint8_round(bits & RX_MX_MAGNITUDE, (int32_t)scale - 133);
	return (uint8_t)((bits & RX_MX_SIGN) != 0u ? 0u - code : code);
}

/* Any element and scale byte to bits of fp32: exact, but for finite values that fp32 has not. */
RX_MX_FN uint32_t rx_mxint8_decode_one(uint8_t element, uint32_t scale)
{
	uint32_t sign = (uint32_t)(element & 0x80u) << 24;
	uint32_t code = sign != 0u ? 256u - element : element;
	uint32_t bits = 0;
	int32_t biased = 0;

	if (scale >= RX_MX_ESCAPE)
		return rx_mx_decode_one(element, scale);
	if (code == 0u)
		return 0u;
	bits = rx_mx_bits((float)code);
	biased = (int32_t)(bits >> 23) + (int32_t)scale - 133;
	bits &= 0x7fffffu;
	if (biased > 0)
		return sign | (uint32_t)biased << 23 | bits;
	/* Subnormal, and exact: an integer is worth 2^-133 or more. */
	return sign | (bits | 0x800000u) >> (1 - biased);
}

#endif
