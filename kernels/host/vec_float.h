/* SPDX-License-Identifier: MIT */
/*
 * Vectors of 16 and 8 bit floats to four vectors of fp32 and back.
 *
 * Which lane a value travels in does not matter, as long as it comes back from there. So a 32-bit
 * lane is cut into its two halves or four bytes in place (the lowest is the first in memory on the
 * little-endian machines that this is for), and nothing is shuffled across lanes. Only the
 * conversions that the hardware has for fp16 want their values side by side.
 */
#ifndef RX_VEC_FLOAT_H
#define RX_VEC_FLOAT_H

#include "vec.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lanes are cut lowest byte first");

#define F32_MANTISSA 23
#define F32_SIGN     0x80000000u
#define F32_INF      0x7f800000u

/* What widening and narrowing need to know of a format; always a constant. */
struct small_format {
	int width;
	int mantissa;
	uint32_t rebias;   /* difference of the exponent biases, as an exponent of fp32 */
	uint32_t clamp;    /* fp32 bits: magnitudes are cut to this, 0 = not */
	uint32_t overflow; /* fp32 bits: from here on infinity; 0 = no infinity */
	uint32_t infinity;
	uint32_t nan;
};

static const struct small_format f16_format RX_UNUSED = {
	.width = 16,
	.mantissa = 10,
	.rebias = 112u << F32_MANTISSA,
	.overflow = 0x47800000u, /* 65536 */
	.infinity = 0x7c00u,
	.nan = 0x7e00u,
};

static const struct small_format e4m3_format RX_UNUSED = {
	.width = 8,
	.mantissa = 3,
	.rebias = 120u << F32_MANTISSA,
	.clamp = 0x43e00000u, /* 448 */
	.nan = 0x7fu,
};

static const struct small_format e5m2_format RX_UNUSED = {
	.width = 8,
	.mantissa = 2,
	.rebias = 112u << F32_MANTISSA,
	.overflow = 0x47800000u,
	.infinity = 0x7cu,
	.nan = 0x7fu,
};

/* @code: the format's bits, at the low end of each lane, zeros above */
RX_INLINE vec_f32 widen_small(vec_u32 code, const struct small_format *f)
{
	int up = F32_MANTISSA - f->mantissa;
	uint32_t sign_bit = 1u << (f->width - 1);
	uint32_t one_ulp = 1u << F32_MANTISSA; /* of an exponent */
	vec_u32 sign = (code & sign_bit) << (32 - f->width);
	vec_u32 magnitude = code & (sign_bit - 1);
	vec_u32 normal = (magnitude << up) + f->rebias;
	/* A subnormal gets the smallest exponent and an implicit one, which is then taken off. */
	vec_u32 with_one = normal + one_ulp;
	vec_f32 one = (vec_f32)VEC_SPLAT(vec_u32, f->rebias + one_ulp);
	vec_u32 tiny = (vec_u32)((vec_f32)with_one - one);
	vec_i32 is_tiny = (vec_i32)magnitude < (int32_t)(1 << f->mantissa);
	vec_u32 bits = vec_pick(is_tiny, tiny, normal);

	if (f->infinity) {
		vec_i32 special = (vec_i32)magnitude >= (int32_t)f->infinity;

		bits = vec_pick(special, normal + f->rebias, bits);
	} else {
		bits |= (vec_u32)((vec_i32)magnitude == (int32_t)f->nan) & F32_INF;
	}
	return (vec_f32)(bits | sign);
}

/*
 * The value of a bit just below the subnormals' last one is half of the last bit of this float, so
 * that adding it makes the hardware round there.
 */
RX_INLINE uint32_t rounder_bits(const struct small_format *f)
{
	return f->rebias + ((uint32_t)(F32_MANTISSA - f->mantissa + 1) << F32_MANTISSA);
}

/* The inverse: code at the low end of each lane, zeros above */
RX_INLINE vec_u32 narrow_small(vec_f32 v, const struct small_format *f)
{
	int down = F32_MANTISSA - f->mantissa;
	uint32_t below_half = (1u << (down - 1)) - 1;
	vec_u32 bits = (vec_u32)v;
	vec_u32 sign = (bits & F32_SIGN) >> (32 - f->width);
	vec_u32 exact = bits & ~F32_SIGN;
	vec_u32 magnitude = exact;
	vec_u32 rounder = VEC_SPLAT(vec_u32, rounder_bits(f));
	vec_u32 tiny = {0};
	vec_u32 code = {0};

	if (f->clamp)
		magnitude = vec_pick(
			(vec_i32)exact > (int32_t)f->clamp, VEC_SPLAT(vec_u32, f->clamp), exact);
	code = (magnitude + (below_half - f->rebias) + ((magnitude >> down) & 1)) >> down;
	tiny = (vec_u32)((vec_f32)magnitude + (vec_f32)rounder) - rounder;
	code = vec_pick(
		(vec_i32)magnitude < (int32_t)(f->rebias + (1u << F32_MANTISSA)), tiny, code);
	if (f->overflow)
		code = vec_pick((vec_i32)magnitude >= (int32_t)f->overflow,
			VEC_SPLAT(vec_u32, f->infinity), code);
	return vec_pick((vec_i32)exact > (int32_t)F32_INF, VEC_SPLAT(vec_u32, f->nan), code | sign);
}

RX_INLINE struct four_f32 widen4_bf16(const uint8_t *from)
{
	vec_u32 low = (vec_u32)vec_load(from);
	vec_u32 high = (vec_u32)vec_load(from + VEC_BYTES);

	return (struct four_f32){(vec_f32)(low << 16), (vec_f32)(low & 0xffff0000u),
		(vec_f32)(high << 16), (vec_f32)(high & 0xffff0000u)};
}

/* Rounded, in the upper half of each lane; no NaN, or the canonical one, which survives */
RX_INLINE vec_u32 round_bf16(vec_f32 v)
{
	vec_u32 bits = (vec_u32)v;

	return bits + 0x7fffu + ((bits >> 16) & 1);
}

#if defined(RX_FOLD_AVX512)
/*
 * Even values from @low, odd ones from @high. The kept halves are put together first, the lost ones
 * as well, so that one comparison of 16-bit lanes decides on both: up if the lost half is more than
 * a half, where the last bit of the kept one, if set, tips a tie. The carry may run through all of
 * the fraction into the exponent, but not into the sign: that would be a NaN, and the canonical
 * one has lost nothing.
 */
RX_INLINE vec_u8 join_bf16(vec_f32 low, vec_f32 high)
{
	const __m512i upper = _mm512_set1_epi32((int32_t)0xffff0000u);
	__m512i low_kept = _mm512_srli_epi32((__m512i)low, 16);
	__m512i high_lost = _mm512_slli_epi32((__m512i)high, 16);
	/* 0xea: (a & b) | c; 0xf2: a | (~b & c); 0xf8: a | (b & c) */
	__m512i kept = _mm512_ternarylogic_epi32((__m512i)high, upper, low_kept, 0xea);
	__m512i lost = _mm512_ternarylogic_epi32(high_lost, upper, (__m512i)low, 0xf2);
	__m512i tipped = _mm512_ternarylogic_epi32(lost, kept, _mm512_set1_epi16(1), 0xf8);
	__mmask32 up = _mm512_cmpgt_epu16_mask(tipped, _mm512_set1_epi16(INT16_MIN));

	return (vec_u8)_mm512_mask_sub_epi16(kept, up, kept, _mm512_set1_epi16(-1));
}

RX_INLINE struct four_u8 narrow4_bf16(struct four_f32 a)
{
	a = quiet4_f32(a);
	return (struct four_u8){.v0 = join_bf16(a.v0, a.v1), .v1 = join_bf16(a.v2, a.v3)};
}
#else
RX_INLINE struct four_u8 narrow4_bf16(struct four_f32 a)
{
	a = quiet4_f32(a);
	return (struct four_u8){
		.v0 = (vec_u8)((round_bf16(a.v0) >> 16) | (round_bf16(a.v1) & 0xffff0000u)),
		.v1 = (vec_u8)((round_bf16(a.v2) >> 16) | (round_bf16(a.v3) & 0xffff0000u)),
	};
}

#endif

#if defined(RX_FOLD_AVX512)
RX_INLINE vec_f32 widen_f16(const uint8_t *from)
{
	return (vec_f32)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

RX_INLINE vec_u8 narrow_f16(vec_f32 first, vec_f32 second)
{
	__m256i low = _mm512_cvtps_ph((__m512)first, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
	__m256i high =
		_mm512_cvtps_ph((__m512)second, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);

	return (vec_u8)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
#elif defined(RX_FOLD_AVX2)
RX_INLINE vec_f32 widen_f16(const uint8_t *from)
{
	return (vec_f32)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

RX_INLINE vec_u8 narrow_f16(vec_f32 first, vec_f32 second)
{
	__m128i low = _mm256_cvtps_ph((__m256)first, _MM_FROUND_TO_NEAREST_INT);
	__m128i high = _mm256_cvtps_ph((__m256)second, _MM_FROUND_TO_NEAREST_INT);

	return (vec_u8)_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
#endif

#if defined(RX_FOLD_AVX512) || defined(RX_FOLD_AVX2)
RX_INLINE struct four_f32 widen4_f16(const uint8_t *from)
{
	return (struct four_f32){widen_f16(from), widen_f16(from + VEC_BYTES / 2),
		widen_f16(from + VEC_BYTES), widen_f16(from + VEC_BYTES / 2 * 3)};
}

RX_INLINE struct four_u8 narrow4_f16(struct four_f32 a)
{
	a = quiet4_f32(a);
	return (struct four_u8){.v0 = narrow_f16(a.v0, a.v1), .v1 = narrow_f16(a.v2, a.v3)};
}
#else
RX_INLINE struct four_f32 widen4_f16(const uint8_t *from)
{
	vec_u32 low = (vec_u32)vec_load(from);
	vec_u32 high = (vec_u32)vec_load(from + VEC_BYTES);

	return (struct four_f32){widen_small(low & 0xffffu, &f16_format),
		widen_small(low >> 16, &f16_format), widen_small(high & 0xffffu, &f16_format),
		widen_small(high >> 16, &f16_format)};
}

RX_INLINE struct four_u8 narrow4_f16(struct four_f32 a)
{
	return (struct four_u8){
		.v0 = (vec_u8)(narrow_small(a.v0, &f16_format) | narrow_small(a.v1, &f16_format)
									 << 16),
		.v1 = (vec_u8)(narrow_small(a.v2, &f16_format) | narrow_small(a.v3, &f16_format)
									 << 16),
	};
}
#endif

RX_INLINE struct four_f32 widen4_fp8(const uint8_t *from, const struct small_format *f)
{
	vec_u32 codes = (vec_u32)vec_load(from);

	return (struct four_f32){widen_small(codes & 0xffu, f),
		widen_small((codes >> 8) & 0xffu, f), widen_small((codes >> 16) & 0xffu, f),
		widen_small(codes >> 24, f)};
}

RX_INLINE struct four_u8 narrow4_fp8(struct four_f32 a, const struct small_format *f)
{
	return (struct four_u8){
		.v0 = (vec_u8)(narrow_small(a.v0, f) | narrow_small(a.v1, f) << 8 |
			       narrow_small(a.v2, f) << 16 | narrow_small(a.v3, f) << 24),
	};
}

RX_INLINE struct four_f32 widen4_e4m3(const uint8_t *from)
{
	return widen4_fp8(from, &e4m3_format);
}

RX_INLINE struct four_u8 narrow4_e4m3(struct four_f32 a)
{
	return narrow4_fp8(a, &e4m3_format);
}

RX_INLINE struct four_f32 widen4_e5m2(const uint8_t *from)
{
	return widen4_fp8(from, &e5m2_format);
}

RX_INLINE struct four_u8 narrow4_e5m2(struct four_f32 a)
{
	return narrow4_fp8(a, &e5m2_format);
}

#endif
