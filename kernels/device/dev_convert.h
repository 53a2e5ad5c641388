/* SPDX-License-Identifier: MIT */
/*
 * 16 and 8 bit floats to fp32 and back, to nearest even, with the rules of kernels/host: NaN
 * becomes the canonical one, fp8-e4m3 saturates, the others overflow to infinity, subnormals are
 * kept.
 *
 * By instruction where the device has one that can be made to give these bits, else by integers.
 */
#ifndef RX_DEV_CONVERT_H
#define RX_DEV_CONVERT_H

#include "device.h"

/* fp8 conversions by hardware: OCP, or FNUZ, whose codes mean half as much (dev_e4m3_*). */
#if defined(DEV_CUDA) && __CUDA_ARCH__ >= 890
#define DEV_HAS_FP8 1
#elif defined(__gfx950__)
#define DEV_HAS_FP8 1
#elif defined(__gfx942__)
#define DEV_HAS_FP8     1
#define DEV_FP8_IS_FNUZ 1
#endif

#define DEV_F32_SIGN 0x80000000u
#define DEV_F32_INF  0x7f800000u
#define DEV_F32_NAN  0x7fc00000u

/* ---- bf16 ---- */

DEV_FN float dev_widen_bf16(uint32_t code)
{
	return dev_float(code << 16);
}

DEV_FN uint32_t dev_narrow_bf16(float v)
{
	uint32_t bits = dev_bits(v);
	uint32_t code = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;

	return (bits & ~DEV_F32_SIGN) > DEV_F32_INF ? 0x7fc0u : code;
}

/* ---- by integers ---- */

/*
 * Magnitude of a finite or infinite fp32 to a format of @mantissa stored bits whose exponents are
 * @rebias lower. Below its normal numbers, adding a number whose last bit is worth the format's
 * last one makes the hardware round there.
 */
DEV_FN uint32_t dev_narrow_magnitude(uint32_t magnitude, uint32_t mantissa, uint32_t rebias)
{
	uint32_t down = 23 - mantissa;
	uint32_t rounder = rebias + ((down + 1) << 23);

	if (magnitude < rebias + (1u << 23))
		return dev_bits(dev_float(magnitude) + dev_float(rounder)) - rounder;
	return (magnitude - rebias + ((1u << (down - 1)) - 1) + ((magnitude >> down) & 1)) >> down;
}

/* fp16 or e5m2: the same range, and infinity. */
DEV_FN uint32_t dev_narrow_ieee(float v, uint32_t mantissa, uint32_t infinity)
{
	uint32_t magnitude = dev_bits(v) & ~DEV_F32_SIGN;

	if (magnitude >= 0x47800000u) /* 65536 */
		return infinity;
	return dev_narrow_magnitude(magnitude, mantissa, 112u << 23);
}

/* ---- fp16 ---- */

#if defined(DEV_CUDA)
DEV_FN float dev_widen_f16(uint32_t code)
{
	float v;

	asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"((uint16_t)code));
	return v;
}

DEV_FN uint32_t dev_narrow_f16(float v)
{
	uint16_t code;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(v));
	return v != v ? 0x7e00u : code;
}
#elif defined(DEV_AMD)
DEV_FN float dev_widen_f16(uint32_t code)
{
	return (float)__builtin_bit_cast(_Float16, (uint16_t)code);
}

DEV_FN uint32_t dev_narrow_f16(float v)
{
	return v != v ? 0x7e00u : __builtin_bit_cast(uint16_t, (_Float16)v);
}
#else
DEV_FN float dev_widen_f16(uint32_t code)
{
	uint32_t magnitude = code & 0x7fffu;
	uint32_t sign = (code & 0x8000u) << 16;

	if (magnitude >= 0x7c00u)
		return dev_float(sign | DEV_F32_INF | (magnitude & 0x3ffu) << 13);
	if (magnitude < 0x400u) /* magnitude * 2^-24 */
		return dev_float(sign | dev_bits((float)magnitude * 0x1p-24f));
	return dev_float(sign | ((magnitude << 13) + (112u << 23)));
}

DEV_FN uint32_t dev_narrow_f16(float v)
{
	return v != v ? 0x7e00u
		      : (dev_bits(v) & DEV_F32_SIGN) >> 16 | dev_narrow_ieee(v, 10, 0x7c00u);
}
#endif

/* ---- fp8-e5m2: the upper half of fp16 ---- */

DEV_FN float dev_widen_e5m2(uint32_t code)
{
	return dev_widen_f16(code << 8);
}

DEV_FN uint32_t dev_narrow_e5m2(float v)
{
	return v != v ? 0x7fu : (dev_bits(v) & DEV_F32_SIGN) >> 24 | dev_narrow_ieee(v, 2, 0x7cu);
}

/* ---- fp8-e4m3 ---- */

/* As fp16, a code is worth 2^-8 of what it is as e4m3; NaN apart. */
DEV_FN float dev_widen_e4m3(uint32_t code)
{
	float v = dev_widen_f16((code & 0x80u) << 8 | (code & 0x7fu) << 7) * 256.0f;

	return (code & 0x7fu) == 0x7fu ? dev_float(DEV_F32_NAN) : v;
}

/* Codes of values that are finite and at most 448, two of them with the first in the low byte. */
#if !defined(DEV_HAS_FP8)
DEV_FN uint32_t dev_fit_e4m3(float v)
{
	uint32_t bits = dev_bits(v);

	return (bits & DEV_F32_SIGN) >> 24 |
	       dev_narrow_magnitude(bits & ~DEV_F32_SIGN, 3, 120u << 23);
}

DEV_FN uint32_t dev_fit2_e4m3(float a, float b)
{
	return dev_fit_e4m3(a) | dev_fit_e4m3(b) << 8;
}
#elif defined(DEV_CUDA)
DEV_FN uint32_t dev_fit2_e4m3(float a, float b)
{
	uint16_t codes;

	/* What is larger becomes 448, and a NaN 0x7f. */
	asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(b), "f"(a));
	return codes;
}
#elif defined(DEV_FP8_IS_FNUZ)
DEV_FN uint32_t dev_fit2_e4m3(float a, float b)
{
	/* There is no -0 there: the signs are put back. */
	return ((uint32_t)__builtin_amdgcn_cvt_pk_fp8_f32(a * 0.5f, b * 0.5f, 0, false) & 0xffffu) |
	       (dev_bits(a) & DEV_F32_SIGN) >> 24 | (dev_bits(b) & DEV_F32_SIGN) >> 16;
}
#else
DEV_FN uint32_t dev_fit2_e4m3(float a, float b)
{
	return (uint32_t)__builtin_amdgcn_cvt_pk_fp8_f32(a, b, 0, false) & 0xffffu;
}
#endif

/* Two of any value. */
#if defined(DEV_CUDA) && defined(DEV_HAS_FP8)
DEV_FN uint32_t dev_narrow2_e4m3(float a, float b)
{
	return dev_fit2_e4m3(a, b);
}
#else
DEV_FN float dev_clamp_e4m3(float v)
{
	uint32_t bits = dev_bits(v);

	return (bits & ~DEV_F32_SIGN) > 0x43e00000u /* 448 */
		       ? dev_float((bits & DEV_F32_SIGN) | 0x43e00000u)
		       : v;
}

DEV_FN uint32_t dev_narrow2_e4m3(float a, float b)
{
	uint32_t codes = dev_fit2_e4m3(dev_clamp_e4m3(a), dev_clamp_e4m3(b));

	codes = a != a ? (codes & 0xff00u) | 0x7fu : codes;
	return b != b ? (codes & 0xffu) | 0x7f00u : codes;
}
#endif

/* What four codes, none of them NaN, stand for. */
DEV_FN void dev_widen4_e4m3(uint32_t codes, float *v)
{
#if defined(DEV_CUDA) && defined(DEV_HAS_FP8)
	uint32_t pairs[2];

	asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pairs[0]) : "h"((uint16_t)codes));
	asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pairs[1]) : "h"((uint16_t)(codes >> 16)));
	DEV_UNROLL
	for (uint32_t k = 0; k < 4; k++)
		v[k] = dev_widen_f16(pairs[k / 2] >> k % 2 * 16 & 0xffffu);
#else
	/* As fp16, a code is worth 2^-8 of what it is as e4m3. */
	DEV_UNROLL
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t code = codes >> k * 8;

		v[k] = dev_widen_f16((code & 0x80u) << 8 | (code & 0x7fu) << 7) * 256.0f;
	}
#endif
}

DEV_FN uint32_t dev_narrow2_e5m2(float a, float b)
{
	return dev_narrow_e5m2(a) | dev_narrow_e5m2(b) << 8;
}

DEV_FN uint32_t dev_narrow2_f16(float a, float b)
{
	return dev_narrow_f16(a) | dev_narrow_f16(b) << 16;
}

DEV_FN uint32_t dev_narrow2_bf16(float a, float b)
{
	return dev_narrow_bf16(a) | dev_narrow_bf16(b) << 16;
}

#endif
