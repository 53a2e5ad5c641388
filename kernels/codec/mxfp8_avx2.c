/* SPDX-License-Identifier: MIT */
/*
 * The codec for AVX2 with F16C, which serves CPUs with AVX-512 too.
 *
 * A block stays in registers from the loads to the stores. The code is for what blocks are like
 * almost always: finite, and far from the ends of the range. Whatever else turns up is left to the
 * portable functions, block by block, before anything of it is stored.
 *
 * Elements are expanded by way of fp16. An E4M3 whose fields are put where fp16 has its own is the
 * same number, smaller by the difference of the biases (2^8), subnormals included, and for fp16 to
 * fp32 there is an instruction.
 */
#include "mxfp8_isa.h"

#include "../host/vec.h"

#define N_VECS      (RX_MX_BLOCK * 4 / VEC_BYTES)
#define VEC_LANES   (VEC_BYTES / 4)
#define EACH_VECTOR _Pragma("GCC unroll 4") for (unsigned v = 0; v < N_VECS; v++)

/* Beyond these scales, a finite element may be larger than what the dtype holds. */
#define SCALE_MAX     (RX_MX_ESCAPE - 2)
#define SCALE_MAX_F16 134u

struct values {
	vec_f32 v[N_VECS];
};

struct words {
	vec_u32 v[N_VECS];
};

RX_INLINE __m128i load_halves(const uint8_t *from)
{
	return _mm_loadu_si128((const __m128i *)(const void *)from);
}

RX_INLINE vec_f32 widen_bf16(const uint8_t *from)
{
	return (vec_f32)((vec_u32)_mm256_cvtepu16_epi32(load_halves(from)) << 16);
}

RX_INLINE vec_f32 widen_f16(const uint8_t *from)
{
	return (vec_f32)_mm256_cvtph_ps(load_halves(from));
}

RX_INLINE void store_halves(uint8_t *to, __m128i halves)
{
	_mm_storeu_si128((__m128i *)(void *)to, halves);
}

RX_INLINE void store_upper(uint8_t *to, vec_u32 v)
{
	__m256i upper = (__m256i)(v >> 16);

	store_halves(to, _mm_packus_epi32(_mm256_castsi256_si128(upper),
				 _mm256_extracti128_si256(upper, 1)));
}

RX_INLINE void store_f16(uint8_t *to, vec_f32 v)
{
	store_halves(to, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}

RX_INLINE __m256i max4(struct words m)
{
	return _mm256_max_epu32(_mm256_max_epu32((__m256i)m.v[0], (__m256i)m.v[1]),
		_mm256_max_epu32((__m256i)m.v[2], (__m256i)m.v[3]));
}

RX_INLINE uint32_t max_of(struct words m)
{
	__m256i max = max4(m);
	__m128i half = _mm_max_epu32(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));

	half = _mm_max_epu32(half, _mm_shuffle_epi32(half, _MM_SHUFFLE(1, 0, 3, 2)));
	half = _mm_max_epu32(half, _mm_shuffle_epi32(half, _MM_SHUFFLE(2, 3, 0, 1)));
	return (uint32_t)_mm_cvtsi128_si32(half);
}

RX_INLINE vec_u32 vec_max(vec_u32 a, uint32_t b)
{
	return (vec_u32)_mm256_max_epu32((__m256i)a, _mm256_set1_epi32((int32_t)b));
}

/* Packing works in halves of registers, so it leaves groups of four out of order. */
RX_INLINE __m256i in_order(__m256i packed)
{
	return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/*
 * Bytes of the codes, with the signs of the values, in order. As integers, values saturate when
 * they are packed, and keep their signs: all negative ones are far below the smallest byte.
 */
RX_INLINE __m256i bytes_of(struct words codes, struct values signs)
{
	__m256i code =
		_mm256_packus_epi16(_mm256_packus_epi32((__m256i)codes.v[0], (__m256i)codes.v[1]),
			_mm256_packus_epi32((__m256i)codes.v[2], (__m256i)codes.v[3]));
	__m256i sign =
		_mm256_packs_epi16(_mm256_packs_epi32((__m256i)signs.v[0], (__m256i)signs.v[1]),
			_mm256_packs_epi32((__m256i)signs.v[2], (__m256i)signs.v[3]));

	sign = _mm256_and_si256(sign, _mm256_set1_epi8((int8_t)0x80));
	return in_order(_mm256_or_si256(code, sign));
}

RX_INLINE uint32_t equal_bytes(__m256i a, __m256i b)
{
	return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b));
}

RX_INLINE uint32_t zeros_of(struct words w)
{
	struct words zero;

	EACH_VECTOR zero.v[v] = (vec_u32)(w.v[v] == 0);
	return (uint32_t)_mm256_movemask_epi8(in_order(
		_mm256_packs_epi16(_mm256_packs_epi32((__m256i)zero.v[0], (__m256i)zero.v[1]),
			_mm256_packs_epi32((__m256i)zero.v[2], (__m256i)zero.v[3]))));
}

RX_INLINE bool any_above(struct words m, uint32_t limit)
{
	__m256i above = _mm256_cmpgt_epi32(max4(m), _mm256_set1_epi32((int32_t)limit));

	return !_mm256_testz_si256(above, above);
}

RX_INLINE struct values expand(__m256i elems)
{
	struct values out;

	for (unsigned half = 0; half < 2; half++) {
		__m128i part =
			half ? _mm256_extracti128_si256(elems, 1) : _mm256_castsi256_si128(elems);
		__m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(part), 7);
		__m256i f16 = _mm256_and_si256(wide, _mm256_set1_epi16((int16_t)0xbfff));

		out.v[2 * half] = (vec_f32)_mm256_cvtph_ps(_mm256_castsi256_si128(f16));
		out.v[2 * half + 1] = (vec_f32)_mm256_cvtph_ps(_mm256_extracti128_si256(f16, 1));
	}
	return out;
}
RX_INLINE __m256i load_elems(const uint8_t *elems)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)elems);
}

RX_INLINE struct values load_values(const uint8_t *from, uint32_t dtype)
{
	struct values out;

	EACH_VECTOR
	{
		if (dtype == RX_FLOAT32)
			out.v[v] = (vec_f32)vec_load(from + v * VEC_BYTES);
		else if (dtype == RX_BFLOAT16)
			out.v[v] = widen_bf16(from + v * VEC_BYTES / 2);
		else
			out.v[v] = widen_f16(from + v * VEC_BYTES / 2);
	}
	return out;
}

/* Rounds to nearest even; no magnitude is above the largest of @dtype, and nothing is a NaN. */
RX_INLINE void store_values(uint8_t *to, uint32_t dtype, struct values in)
{
	EACH_VECTOR
	{
		vec_u32 bits = (vec_u32)in.v[v];

		if (dtype == RX_FLOAT32)
			vec_store(to + v * VEC_BYTES, (vec_u8)bits);
		else if (dtype == RX_BFLOAT16)
			store_upper(to + v * VEC_BYTES / 2, bits + 0x7fffu + ((bits >> 16) & 1));
		else
			store_f16(to + v * VEC_BYTES / 2, in.v[v]);
	}
}

RX_INLINE struct words magnitudes_of(struct values in)
{
	struct words out;

	EACH_VECTOR out.v[v] = (vec_u32)in.v[v] & RX_MX_MAGNITUDE;
	return out;
}

/*
 * Rounds the magnitudes, times 2^-exponent, to E4M3: by adding a power of two so much larger that
 * the last digit of the sum is what has to be kept, three digits below a number's first one, but
 * not below those of E4M3's smallest normal number. What the sum has more than that power is the
 * number in units of that digit; the first one comes in as 8, so the exponent field is what is
 * above the smallest.
 */
RX_INLINE struct words round_to_e4m3(struct words magnitudes, uint32_t scale)
{
	const uint32_t smallest = 121u << 23; /* 2^-6 */
	const uint32_t up = 20u << 23;
	vec_f32 factor = VEC_SPLAT(vec_f32, rx_mx_float((254u - scale) << 23));
	struct words out;

	EACH_VECTOR
	{
		vec_f32 value = (vec_f32)magnitudes.v[v] * factor;
		vec_u32 power = vec_max((vec_u32)value & RX_MX_INF, smallest);
		vec_u32 sum = (vec_u32)(value + (vec_f32)(power + up));

		out.v[v] = sum - power + ((power >> 20) - (up + (smallest >> 20)));
	}
	return out;
}

RX_INLINE void count_block(struct rx_mx_stats *stats, uint32_t dtype, uint32_t amax,
	struct words magnitudes, __m256i elems)
{
	const __m256i sign = _mm256_set1_epi8((int8_t)0x80);
	uint32_t saturating = (dtype == RX_FLOAT16 ? 0x47800000u : RX_MX_INF) - 0x80000u;
	uint32_t zeros = equal_bytes(_mm256_or_si256(elems, sign), sign);

	stats->n_blocks++;
	stats->n_saturated += amax >= saturating;
	if (rx_unlikely(zeros != 0))
		stats->n_flushed += (zeros & ~zeros_of(magnitudes)) != 0;
}

RX_INLINE void encode_as(uint8_t *elems, uint8_t *scales, const uint8_t *src, uint32_t dtype,
	uint64_t count, struct rx_mx_stats *stats)
{
	const uint64_t step = RX_MX_BLOCK * (dtype == RX_FLOAT32 ? 4u : 2u);

	for (; count >= RX_MX_BLOCK; count -= RX_MX_BLOCK) {
		struct values in = load_values(src, dtype);
		struct words magnitudes = magnitudes_of(in);
		uint32_t amax = max_of(magnitudes);

		if (rx_likely(amax < RX_MX_INF)) {
			uint32_t scale = rx_mx_scale(amax, 0);
			__m256i packed = bytes_of(round_to_e4m3(magnitudes, scale), in);

			_mm256_storeu_si256((__m256i *)(void *)elems, packed);
			*scales = (uint8_t)scale;
			if (stats)
				count_block(stats, dtype, amax, magnitudes, packed);
		} else {
			rx_mx_portable.encode(elems, scales, src, dtype, RX_MX_BLOCK, stats);
		}
		elems += RX_MX_BLOCK;
		scales++;
		src += step;
	}
	if (count > 0)
		rx_mx_portable.encode(elems, scales, src, dtype, count, stats);
}

static void encode(uint8_t *elems, uint8_t *scales, const void *src, uint32_t dtype, uint64_t count,
	struct rx_mx_stats *stats)
{
	if (dtype == RX_FLOAT32)
		encode_as(elems, scales, src, RX_FLOAT32, count, stats);
	else if (dtype == RX_BFLOAT16)
		encode_as(elems, scales, src, RX_BFLOAT16, count, stats);
	else
		encode_as(elems, scales, src, RX_FLOAT16, count, stats);
}

/* A block without NaN, infinity or values larger than what is wanted */
RX_INLINE bool is_plain(__m256i elems, uint32_t scale, uint32_t scale_max)
{
	const __m256i sign = _mm256_set1_epi8((int8_t)0x80);

	return scale <= scale_max &&
	       equal_bytes(_mm256_or_si256(elems, sign), _mm256_set1_epi8((int8_t)0xff)) == 0;
}

/* The values of a plain block; exact */
RX_INLINE struct values values_of(__m256i elems, uint32_t scale)
{
	vec_f32 factor = VEC_SPLAT(vec_f32, rx_mx_float((scale + 8u) << 23));
	struct values out = expand(elems);

	EACH_VECTOR out.v[v] *= factor;
	return out;
}

RX_INLINE void decode_as(
	uint8_t *dst, uint32_t dtype, const uint8_t *elems, const uint8_t *scales, uint64_t count)
{
	const uint64_t step = RX_MX_BLOCK * (dtype == RX_FLOAT32 ? 4u : 2u);
	const uint32_t scale_max = dtype == RX_FLOAT16 ? SCALE_MAX_F16 : SCALE_MAX;

	for (; count >= RX_MX_BLOCK; count -= RX_MX_BLOCK) {
		__m256i block = load_elems(elems);

		if (rx_likely(is_plain(block, *scales, scale_max)))
			store_values(dst, dtype, values_of(block, *scales));
		else
			rx_mx_portable.decode(dst, dtype, elems, scales, RX_MX_BLOCK);
		elems += RX_MX_BLOCK;
		scales++;
		dst += step;
	}
	if (count > 0)
		rx_mx_portable.decode(dst, dtype, elems, scales, count);
}

static void decode(
	void *dst, uint32_t dtype, const uint8_t *elems, const uint8_t *scales, uint64_t count)
{
	if (dtype == RX_FLOAT32)
		decode_as(dst, RX_FLOAT32, elems, scales, count);
	else if (dtype == RX_BFLOAT16)
		decode_as(dst, RX_BFLOAT16, elems, scales, count);
	else
		decode_as(dst, RX_FLOAT16, elems, scales, count);
}

/* Adds a plain block; false, and nothing stored, if a sum is not finite. */
RX_INLINE bool add_block(float *acc, struct values terms)
{
	struct values sums = load_values((const uint8_t *)acc, RX_FLOAT32);

	EACH_VECTOR sums.v[v] += terms.v[v];
	if (rx_unlikely(any_above(magnitudes_of(sums), RX_MX_MAX_F32)))
		return false;
	store_values((uint8_t *)acc, RX_FLOAT32, sums);
	return true;
}

static void decode_add(
	float *acc, const uint8_t *elems, const uint8_t *scales, uint64_t count, bool first)
{
	if (first) {
		decode_as((uint8_t *)acc, RX_FLOAT32, elems, scales, count);
		return;
	}
	for (; count >= RX_MX_BLOCK; count -= RX_MX_BLOCK) {
		__m256i block = load_elems(elems);

		if (rx_unlikely(!is_plain(block, *scales, SCALE_MAX) ||
				!add_block(acc, values_of(block, *scales))))
			rx_mx_portable.decode_add(acc, elems, scales, RX_MX_BLOCK, false);
		elems += RX_MX_BLOCK;
		scales++;
		acc += RX_MX_BLOCK;
	}
	if (count > 0)
		rx_mx_portable.decode_add(acc, elems, scales, count, false);
}

RX_INLINE void finish_as(uint8_t *dst, uint32_t dtype, const float *acc, uint64_t count,
	uint32_t op, uint32_t n_ranks)
{
	const uint64_t step = RX_MX_BLOCK * (dtype == RX_FLOAT32 ? 4u : 2u);
	const uint32_t largest = dtype == RX_FLOAT32    ? RX_MX_MAX_F32
				 : dtype == RX_BFLOAT16 ? RX_MX_MAX_BF16
							: RX_MX_MAX_F16;

	for (; count >= RX_MX_BLOCK; count -= RX_MX_BLOCK) {
		struct values in = load_values((const uint8_t *)acc, RX_FLOAT32);

		if (op == RX_AVG)
			EACH_VECTOR in.v[v] /= (float)n_ranks;
		if (rx_likely(!any_above(magnitudes_of(in), largest)))
			store_values(dst, dtype, in);
		else
			rx_mx_portable.finish(dst, dtype, acc, RX_MX_BLOCK, op, n_ranks);
		acc += RX_MX_BLOCK;
		dst += step;
	}
	if (count > 0)
		rx_mx_portable.finish(dst, dtype, acc, count, op, n_ranks);
}

static void finish(
	void *dst, uint32_t dtype, const float *acc, uint64_t count, uint32_t op, uint32_t n_ranks)
{
	if (dtype == RX_FLOAT32)
		finish_as(dst, RX_FLOAT32, acc, count, op, n_ranks);
	else if (dtype == RX_BFLOAT16)
		finish_as(dst, RX_BFLOAT16, acc, count, op, n_ranks);
	else
		finish_as(dst, RX_FLOAT16, acc, count, op, n_ranks);
}

const struct rx_mx_table rx_mx_avx2 = {
	.encode = encode,
	.decode = decode,
	.decode_add = decode_add,
	.finish = finish,
};
