/* SPDX-License-Identifier: MIT */
/*
 * Vectors of the instruction set that fold_isa.c is compiled for.
 *
 * Arithmetic is left to the compiler's vector extension; here is only what that lacks or what
 * compilers translate badly. Four vectors at a time, to keep the arithmetic units busy.
 */
#ifndef RX_VEC_H
#define RX_VEC_H

#include "../../shm/rx_base.h"

#include <string.h>

#if defined(RX_FOLD_AVX512)
#define VEC_BYTES 64
#elif defined(RX_FOLD_AVX2)
#define VEC_BYTES 32
#else
#define VEC_BYTES 16
#endif

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define RX_INLINE static inline __attribute__((always_inline, unused))

#define VEC_TYPE(type, name)                                                                       \
	typedef type vec_##name __attribute__((vector_size(VEC_BYTES)));                           \
	struct four_##name {                                                                       \
		vec_##name v0, v1, v2, v3;                                                         \
	}

VEC_TYPE(uint8_t, u8);
VEC_TYPE(int8_t, i8);
VEC_TYPE(uint32_t, u32);
VEC_TYPE(int32_t, i32);
VEC_TYPE(uint64_t, u64);
VEC_TYPE(int64_t, i64);
VEC_TYPE(float, f32);
VEC_TYPE(double, f64);

/* Memory of any alignment and type. */
typedef uint8_t vec_any __attribute__((vector_size(VEC_BYTES), aligned(1), may_alias));

/* The same value in every lane: adding to zeros would turn -0 into +0, subtracting zeros not. */
#define VEC_SPLAT(vec, value) ((value) - (vec){0})

RX_INLINE vec_u8 vec_load(const uint8_t *from)
{
	return (vec_u8)(*(const vec_any *)(const void *)from);
}

RX_INLINE void vec_store(uint8_t *to, vec_u8 v)
{
	*(vec_any *)(void *)to = (vec_any)v;
}

/* @to is aligned to the vector. */
RX_INLINE void vec_stream(uint8_t *to, vec_u8 v)
{
#if defined(RX_FOLD_AVX512)
	_mm512_stream_si512((void *)to, (__m512i)v);
#elif defined(RX_FOLD_AVX2)
	_mm256_stream_si256((__m256i *)(void *)to, (__m256i)v);
#elif defined(__SSE2__)
	_mm_stream_si128((__m128i *)(void *)to, (__m128i)v);
#else
	vec_store(to, v);
#endif
}

/* Lanes of @yes where @mask is all ones, of @no where it is zero. */
RX_INLINE vec_u32 vec_pick(vec_i32 mask, vec_u32 yes, vec_u32 no)
{
	return ((vec_u32)mask & yes) | (~(vec_u32)mask & no);
}

/*
 * Is there a NaN among them? Four vectors are asked at once because the answer is almost always
 * no; "perhaps" is a right answer too.
 */
RX_INLINE bool any_nan_f32(struct four_f32 a)
{
#if defined(RX_FOLD_AVX512)
	return (_mm512_cmp_ps_mask((__m512)a.v0, (__m512)a.v1, _CMP_UNORD_Q) |
		       _mm512_cmp_ps_mask((__m512)a.v2, (__m512)a.v3, _CMP_UNORD_Q)) != 0;
#elif defined(RX_FOLD_AVX2)
	__m256 low = _mm256_cmp_ps((__m256)a.v0, (__m256)a.v1, _CMP_UNORD_Q);
	__m256 high = _mm256_cmp_ps((__m256)a.v2, (__m256)a.v3, _CMP_UNORD_Q);

	return _mm256_movemask_ps(_mm256_or_ps(low, high)) != 0;
#elif defined(__SSE2__)
	__m128 low = _mm_cmpunord_ps((__m128)a.v0, (__m128)a.v1);
	__m128 high = _mm_cmpunord_ps((__m128)a.v2, (__m128)a.v3);

	return _mm_movemask_ps(_mm_or_ps(low, high)) != 0;
#else
	(void)a;
	return true;
#endif
}

RX_INLINE bool any_nan_f64(struct four_f64 a)
{
#if defined(RX_FOLD_AVX512)
	return (_mm512_cmp_pd_mask((__m512d)a.v0, (__m512d)a.v1, _CMP_UNORD_Q) |
		       _mm512_cmp_pd_mask((__m512d)a.v2, (__m512d)a.v3, _CMP_UNORD_Q)) != 0;
#elif defined(RX_FOLD_AVX2)
	__m256d low = _mm256_cmp_pd((__m256d)a.v0, (__m256d)a.v1, _CMP_UNORD_Q);
	__m256d high = _mm256_cmp_pd((__m256d)a.v2, (__m256d)a.v3, _CMP_UNORD_Q);

	return _mm256_movemask_pd(_mm256_or_pd(low, high)) != 0;
#elif defined(__SSE2__)
	__m128d low = _mm_cmpunord_pd((__m128d)a.v0, (__m128d)a.v1);
	__m128d high = _mm_cmpunord_pd((__m128d)a.v2, (__m128d)a.v3);

	return _mm_movemask_pd(_mm_or_pd(low, high)) != 0;
#else
	(void)a;
	return true;
#endif
}

RX_INLINE vec_f32 quiet_f32(vec_f32 v)
{
	return (vec_f32)vec_pick((vec_i32)(v != v), VEC_SPLAT(vec_u32, 0x7fc00000u), (vec_u32)v);
}

RX_INLINE vec_f64 quiet_f64(vec_f64 v)
{
	vec_u64 mask = (vec_u64)(v != v);

	return (vec_f64)((mask & 0x7ff8000000000000u) | (~mask & (vec_u64)v));
}

/* NaNs made canonical */
RX_INLINE struct four_f32 quiet4_f32(struct four_f32 a)
{
	if (rx_likely(!any_nan_f32(a)))
		return a;
	return (struct four_f32){
		quiet_f32(a.v0), quiet_f32(a.v1), quiet_f32(a.v2), quiet_f32(a.v3)};
}

RX_INLINE struct four_f64 quiet4_f64(struct four_f64 a)
{
	if (rx_likely(!any_nan_f64(a)))
		return a;
	return (struct four_f64){
		quiet_f64(a.v0), quiet_f64(a.v1), quiet_f64(a.v2), quiet_f64(a.v3)};
}

#if defined(RX_FOLD_AVX512)
/* Ones for the first @n bytes of a vector, at most all. */
RX_INLINE __mmask64 first_bytes(uint64_t n)
{
	return n >= VEC_BYTES ? UINT64_MAX : (1ull << n) - 1;
}
#endif

/*
 * Copies the last, incomplete block in: @bytes, of at most @n_vecs vectors. The rest of @to is zero
 * before and stays zero.
 */
RX_INLINE void stage_in(vec_u8 *to, const uint8_t *from, uint64_t bytes, unsigned n_vecs)
{
#if defined(RX_FOLD_AVX512)
	for (unsigned i = 0; i < n_vecs && i * VEC_BYTES < bytes; i++)
		to[i] = (vec_u8)_mm512_maskz_loadu_epi8(
			first_bytes(bytes - i * VEC_BYTES), from + i * VEC_BYTES);
#else
	(void)n_vecs;
	memcpy(to, from, bytes);
#endif
}

RX_INLINE void stage_out(uint8_t *to, const vec_u8 *from, uint64_t bytes, unsigned n_vecs)
{
#if defined(RX_FOLD_AVX512)
	for (unsigned i = 0; i < n_vecs && i * VEC_BYTES < bytes; i++)
		_mm512_mask_storeu_epi8(
			to + i * VEC_BYTES, first_bytes(bytes - i * VEC_BYTES), (__m512i)from[i]);
#else
	(void)n_vecs;
	memcpy(to, from, bytes);
#endif
}

#endif
