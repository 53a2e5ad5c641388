/* SPDX-License-Identifier: MIT */
/*
 * The codec for AVX2 with F16C, which serves CPUs with AVX-512 too.
 *
 * Encoding looks at a span of blocks twice, the second time in the cache: first for the largest
 * magnitudes, which become scales a vector at a time, then to round. So no block's rounding waits
 * for its own scale, which would take longer than the rounding.
 *
 * Decoding keeps a block in registers from the loads to the stores. The code is for what blocks are
 * like almost always: finite, and far from the ends of the range. Whatever else turns up is left to
 * the portable functions, block by block, before anything of it is stored.
 *
 * MXFP8's elements are expanded by way of fp16. An E4M3 whose fields are put where fp16 has its own
 * is the same number, smaller by the difference of the biases (2^8), subnormals included, and for
 * fp16 to fp32 there is an instruction. MXINT8's are integers, for which there are instructions
 * both ways.
 *
 * @format and @dtype are constants wherever a function is inlined.
 */
#include "mx_isa.h"

#include "../host/vec.h"
#include "mxint8_def.h"

#include <assert.h>

#define N_VECS      (RX_MX_BLOCK * 4 / VEC_BYTES)
#define VEC_LANES   (VEC_BYTES / 4)
#define EACH_VECTOR _Pragma("GCC unroll 4") for (unsigned v = 0; v < N_VECS; v++)
#define EACH_BLOCK  _Pragma("GCC unroll 8") for (unsigned b = 0; b < GROUP; b++)

/* Blocks that are encoded together: a lane for each one's scale. */
#define GROUP VEC_LANES

/* Beyond these scales, a finite element may be larger than what the dtype holds. */
#define FP8_SCALE_MAX      (RX_MX_ESCAPE - 2)
#define FP8_SCALE_MAX_F16  134u
#define INT8_SCALE_MAX_F16 141u
/* From here on, bfloat16 has every element's last digit: 2^-9 of the scale, and 2^-133 of its own.
 */
#define FP8_SCALE_MIN_BF16 3u
/* From here on, an integer's unit is a normal number, 2^(scale - 133), ... */
#define INT8_SCALE_MIN 7u
/* ... and from here on, what values are divided by it with: biased exponents of the largest. */
#define INT8_SCALE_ENCODE 6u

struct values {
	vec_f32 v[N_VECS];
};

struct words {
	vec_u32 v[N_VECS];
};

/* Two vectors of 16-bit values: a block */
struct halves {
	__m256i v[2];
};

RX_INLINE uint32_t value_bytes(uint32_t dtype)
{
	return dtype == RX_FLOAT32 ? 4 : 2;
}

RX_INLINE __m256i load_bytes(const uint8_t *from)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

RX_INLINE struct halves load_halves(const uint8_t *from)
{
	return (struct halves){{load_bytes(from), load_bytes(from + VEC_BYTES)}};
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

RX_INLINE __m128i to_f16(vec_f32 v)
{
	return _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
}

RX_INLINE __m256i max4(struct words m)
{
	return _mm256_max_epu32(_mm256_max_epu32((__m256i)m.v[0], (__m256i)m.v[1]),
		_mm256_max_epu32((__m256i)m.v[2], (__m256i)m.v[3]));
}

RX_INLINE vec_u32 vec_max(vec_u32 a, uint32_t b)
{
	return (vec_u32)_mm256_max_epu32((__m256i)a, _mm256_set1_epi32((int32_t)b));
}

RX_INLINE uint32_t equal_bytes(__m256i a, __m256i b)
{
	return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b));
}

RX_INLINE bool any_above(struct words m, uint32_t limit)
{
	__m256i above = _mm256_cmpgt_epi32(max4(m), _mm256_set1_epi32((int32_t)limit));

	return !_mm256_testz_si256(above, above);
}

RX_INLINE struct values expand_int8(__m256i elems)
{
	struct values out;

	for (unsigned half = 0; half < 2; half++) {
		__m128i part =
			half ? _mm256_extracti128_si256(elems, 1) : _mm256_castsi256_si128(elems);

		out.v[2 * half] = (vec_f32)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(part));
		out.v[2 * half + 1] = (vec_f32)_mm256_cvtepi32_ps(
			_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(part, part)));
	}
	return out;
}

RX_INLINE struct values expand_fp8(__m256i elems)
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

RX_INLINE struct values load_floats(const float *from)
{
	struct values out;

	EACH_VECTOR out.v[v] = (vec_f32)vec_load((const uint8_t *)(from + v * VEC_LANES));
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
			store_halves(to + v * VEC_BYTES / 2, to_f16(in.v[v]));
	}
}

RX_INLINE struct words magnitudes_of(struct values in)
{
	struct words out;

	EACH_VECTOR out.v[v] = (vec_u32)in.v[v] & RX_MX_MAGNITUDE;
	return out;
}

/* ---- encoding: the largest magnitudes of a group ---- */

RX_INLINE __m256i max_of(__m256i a, __m256i b, uint32_t dtype)
{
	return dtype == RX_FLOAT32 ? _mm256_max_epu32(a, b) : _mm256_max_epu16(a, b);
}

/* Of a block, the larger of magnitudes that lie some lanes apart */
RX_INLINE __m256i block_max(const uint8_t *src, uint32_t dtype)
{
	const __m256i magnitude = _mm256_set1_epi16(0x7fff);

	if (dtype == RX_FLOAT32)
		return max4(magnitudes_of(load_floats((const float *)(const void *)src)));
	return _mm256_max_epu16(_mm256_and_si256(load_bytes(src), magnitude),
		_mm256_and_si256(load_bytes(src + VEC_BYTES), magnitude));
}

/* Lanes of 32 bits in pairs, or pairs of them, from @a and from @b: the larger ones */
RX_INLINE __m256i merge_lanes(__m256i a, __m256i b, uint32_t dtype)
{
	return max_of(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b), dtype);
}

RX_INLINE __m256i merge_pairs(__m256i a, __m256i b, uint32_t dtype)
{
	return max_of(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b), dtype);
}

/* The largest of each vector, a 32-bit lane for each */
RX_INLINE __m256i group_max(const __m256i m[GROUP], uint32_t dtype)
{
	__m256i low =
		merge_pairs(merge_lanes(m[0], m[1], dtype), merge_lanes(m[2], m[3], dtype), dtype);
	__m256i high =
		merge_pairs(merge_lanes(m[4], m[5], dtype), merge_lanes(m[6], m[7], dtype), dtype);

	return max_of(_mm256_permute2x128_si256(low, high, 0x20),
		_mm256_permute2x128_si256(low, high, 0x31), dtype);
}

/* Both halves of a lane hold magnitudes: the larger one, as fp32 */
RX_INLINE vec_u32 widen_max(__m256i max, uint32_t dtype)
{
	__m256i larger = _mm256_max_epu16(max, _mm256_slli_epi32(max, 16));

	if (dtype == RX_BFLOAT16)
		return (vec_u32)larger & 0xffff0000u;
	larger = _mm256_srli_epi32(larger, 16);
	larger = _mm256_permute4x64_epi64(_mm256_packus_epi32(larger, larger), 0x08);
	return (vec_u32)_mm256_cvtph_ps(_mm256_castsi256_si128(larger));
}

/* Of the @n blocks from @src on, at most a group; the other lanes are zero. */
RX_INLINE vec_u32 amax_of(const uint8_t *src, uint32_t n, uint32_t dtype)
{
	__m256i m[GROUP];

	EACH_BLOCK m[b] = b < n ? block_max(src + b * RX_MX_BLOCK * value_bytes(dtype), dtype)
				: _mm256_setzero_si256();
	if (dtype == RX_FLOAT32)
		return (vec_u32)group_max(m, dtype);
	return widen_max(group_max(m, dtype), dtype);
}

/* rx_mx_scale() and rx_mxint8_scale() of blocks that are not left to the portable functions */
RX_INLINE vec_u32 scales_of(enum rx_mx_format format, vec_u32 amax)
{
	if (format == RX_MX_INT8)
		return (amax + 0x1ffffu) >> 23;
	return vec_max((amax + 0x1fffffu) >> 23, 8) - 8;
}

/* What values are multiplied by */
RX_INLINE vec_u32 factors_of(enum rx_mx_format format, vec_u32 scales)
{
	/* A block of zeros has scale 0 in both. */
	if (format == RX_MX_INT8)
		return (260u - vec_max(scales, INT8_SCALE_ENCODE)) << 23;
	return (254u - scales) << 23;
}

RX_INLINE void store_scales(uint8_t *to, vec_u32 scales, uint32_t n)
{
	__m128i words = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)scales),
		_mm256_extracti128_si256((__m256i)scales, 1));
	int64_t bytes = _mm_cvtsi128_si64(_mm_packus_epi16(words, words));

	memcpy(to, &bytes, n);
}

/* ---- encoding: rounding a block ---- */

/* Types of 16 bits are unpacked within halves of registers, as packing puts them together again. */
RX_INLINE struct values load_values(const uint8_t *from, uint32_t dtype)
{
	struct values out;

	if (dtype == RX_FLOAT32)
		return load_floats((const float *)(const void *)from);
	for (unsigned half = 0; half < 2; half++) {
		__m256i in = load_bytes(from + half * VEC_BYTES);
		__m256i low;
		__m256i high;

		if (dtype == RX_BFLOAT16) {
			low = _mm256_unpacklo_epi16(_mm256_setzero_si256(), in);
			high = _mm256_unpackhi_epi16(_mm256_setzero_si256(), in);
		} else {
			in = _mm256_permute4x64_epi64(in, 0xd8);
			low = (__m256i)_mm256_cvtph_ps(_mm256_castsi256_si128(in));
			high = (__m256i)_mm256_cvtph_ps(_mm256_extracti128_si256(in, 1));
		}
		out.v[2 * half] = (vec_f32)low;
		out.v[2 * half + 1] = (vec_f32)high;
	}
	return out;
}

/* Bytes that were packed from load_values(), in order */
RX_INLINE __m256i in_order(__m256i packed, uint32_t dtype)
{
	if (dtype == RX_FLOAT32)
		return _mm256_permutevar8x32_epi32(
			packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
	return _mm256_permute4x64_epi64(packed, 0xd8);
}

/*
 * Bytes of the codes of magnitudes times @factor, not yet in order.
 *
 * They are rounded to E4M3 by adding a power of two so much larger that the last digit of the sum
 * is what has to be kept, three digits below a number's first one, but not below those of E4M3's
 * smallest normal number. The sum's lower half then is the number in units of that digit; the first
 * one comes in as 8, so the exponent field is what is above the smallest. The upper half is the
 * power, the last bit of its exponent worth 128 there and 8 in the code: with the lower half 16
 * times, the halves add up to 16 codes, and a constant.
 */
RX_INLINE __m256i codes_of(struct words magnitudes, vec_f32 factor)
{
	const uint32_t smallest = 121u << 23; /* 2^-6 */
	const uint32_t up = 20u << 23;
	const __m256i weights = _mm256_set1_epi32((1 << 16) + 16);
	const __m256i constant = _mm256_set1_epi16((up >> 16) + (smallest >> 16));
	__m256i codes[N_VECS];
	__m256i words[2];

	EACH_VECTOR
	{
		vec_f32 value = (vec_f32)magnitudes.v[v] * factor;
		vec_u32 power = vec_max((vec_u32)value & RX_MX_INF, smallest) + up;

		codes[v] = _mm256_madd_epi16((__m256i)(value + (vec_f32)power), weights);
	}
	for (unsigned i = 0; i < 2; i++) {
		words[i] = _mm256_packs_epi32(codes[2 * i], codes[2 * i + 1]);
		words[i] = _mm256_srli_epi16(_mm256_sub_epi16(words[i], constant), 4);
	}
	return _mm256_packus_epi16(words[0], words[1]);
}

/*
 * Bytes with the signs of the values, in the order of codes_of(). As integers, values saturate when
 * they are packed, and keep their signs.
 */
RX_INLINE __m256i signs_of(const uint8_t *src, uint32_t dtype)
{
	const __m256i sign = _mm256_set1_epi8((int8_t)0x80);
	__m256i low = load_bytes(src);
	__m256i high = load_bytes(src + VEC_BYTES);

	if (dtype == RX_FLOAT32) {
		low = _mm256_packs_epi32(low, high);
		high = _mm256_packs_epi32(
			load_bytes(src + 2 * VEC_BYTES), load_bytes(src + 3 * VEC_BYTES));
	}
	return _mm256_and_si256(_mm256_packs_epi16(low, high), sign);
}

/* Integers nearest to values times @factor, not yet in order */
RX_INLINE __m256i integers_of(struct values in, vec_f32 factor)
{
	__m256i words[N_VECS];

	EACH_VECTOR words[v] = _mm256_cvtps_epi32((__m256)(in.v[v] * factor));
	return _mm256_packs_epi16(
		_mm256_packs_epi32(words[0], words[1]), _mm256_packs_epi32(words[2], words[3]));
}

/* A finite block. Return: bytes that are zero where an element is, in no particular order. */
RX_INLINE __m256i encode_block(enum rx_mx_format format, uint8_t *elems, const uint8_t *src,
	uint32_t dtype, vec_f32 factor)
{
	struct values in = load_values(src, dtype);
	__m256i codes = format == RX_MX_INT8 ? integers_of(in, factor)
					     : codes_of(magnitudes_of(in), factor);
	__m256i bytes = format == RX_MX_INT8 ? codes : _mm256_or_si256(codes, signs_of(src, dtype));

	_mm256_storeu_si256((__m256i *)(void *)elems, in_order(bytes, dtype));
	return codes;
}

/* ---- encoding: spans ---- */

/* Blocks of which the scales are found first; the second look finds them in the first-level cache.
 */
#define SPAN 32u
/* Bytes of elements ahead of which their line is fetched: it often is another core's. */
#define AHEAD (SPAN * RX_MX_BLOCK)

struct span {
	const uint8_t *src;
	uint8_t *elems;
	uint8_t *scales;
	uint32_t n_blocks;    /* 1 .. SPAN */
	uint32_t n_saturated; /* blocks */
	uint32_t portable;    /* a bit for each block that is left to the portable functions */
	float factors[SPAN];
};

static_assert(SPAN <= 32 && SPAN % GROUP == 0, "a bit for each block, whole groups");

RX_INLINE uint32_t lanes_from(vec_u32 values, uint32_t limit)
{
	__m256i is = _mm256_cmpgt_epi32((__m256i)values, _mm256_set1_epi32((int32_t)limit - 1));

	return (uint32_t)_mm256_movemask_ps((__m256)is);
}

/* Which blocks are left to the portable functions, by their largest magnitude */
RX_INLINE uint32_t portable_lanes(enum rx_mx_format format, vec_u32 amax)
{
	if (format == RX_MX_FP8)
		return lanes_from(amax, RX_MX_INF);
	/* Not zero, and so small that the factor would be too large */
	return lanes_from(amax, RX_MXINT8_AMAX + 1) |
	       (lanes_from(amax, 1) & ~lanes_from(amax, INT8_SCALE_ENCODE << 23));
}

/* Largest magnitudes from here on are rounded to above the type's. */
RX_INLINE uint32_t saturating_from(enum rx_mx_format format, uint32_t dtype)
{
	if (format == RX_MX_FP8)
		return (dtype == RX_FLOAT16 ? 0x47800000u : RX_MX_INF) - 0x80000u;
	return dtype == RX_FLOAT16 ? 0x477e0001u : RX_MX_INF;
}

/* Of @n blocks from @at on; at most a group, all of whose factors there is room for */
RX_INLINE void find_scales(enum rx_mx_format format, struct span *span, uint32_t at, uint32_t n,
	vec_u32 amax, uint32_t dtype)
{
	uint32_t saturated = lanes_from(amax, saturating_from(format, dtype));
	uint32_t portable = portable_lanes(format, amax);
	vec_u32 scales = scales_of(format, amax);

	vec_store((uint8_t *)(span->factors + at), (vec_u8)factors_of(format, scales));
	store_scales(span->scales + at, scales, n);
	span->portable |= portable << at;
	span->n_saturated += (uint32_t)__builtin_popcount(saturated & ~portable);
}

RX_INLINE void look(enum rx_mx_format format, struct span *span, uint32_t dtype)
{
	const uint64_t step = RX_MX_BLOCK * value_bytes(dtype);
	uint32_t at = 0;

	span->portable = 0;
	span->n_saturated = 0;
	for (; at + GROUP <= span->n_blocks; at += GROUP)
		find_scales(format, span, at, GROUP, amax_of(span->src + at * step, GROUP, dtype),
			dtype);
	if (at < span->n_blocks)
		find_scales(format, span, at, span->n_blocks - at,
			amax_of(span->src + at * step, span->n_blocks - at, dtype), dtype);
}

/* Bytes of ones where values are zero, in the order of what encode_block() returns */
RX_INLINE __m256i zeros_of(const uint8_t *src, uint32_t dtype)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i halves[2];

	for (unsigned half = 0; half < 2; half++) {
		const uint8_t *from = src + half * RX_MX_BLOCK / 2 * value_bytes(dtype);
		__m256i low = load_bytes(from);

		if (dtype == RX_FLOAT32)
			halves[half] = _mm256_packs_epi32(
				_mm256_cmpeq_epi32(_mm256_slli_epi32(low, 1), zero),
				_mm256_cmpeq_epi32(
					_mm256_slli_epi32(load_bytes(from + VEC_BYTES), 1), zero));
		else
			halves[half] = _mm256_cmpeq_epi16(_mm256_slli_epi16(low, 1), zero);
	}
	return _mm256_packs_epi16(halves[0], halves[1]);
}

/* Did something of a block become zero that was not? @codes are what encode_block() returned. */
RX_INLINE bool is_flushed(const uint8_t *src, uint32_t dtype, __m256i codes)
{
	__m256i zeros = _mm256_cmpeq_epi8(codes, _mm256_setzero_si256());

	/* Ones in the second, zeros in the first */
	return !_mm256_testc_si256(zeros_of(src, dtype), zeros);
}

RX_INLINE void encode_span(
	enum rx_mx_format format, struct span *span, uint32_t dtype, struct rx_mx_stats *stats)
{
	const uint64_t step = RX_MX_BLOCK * value_bytes(dtype);
	uint32_t n_flushed = 0;

	look(format, span, dtype);
	for (uint32_t b = 0; b < span->n_blocks; b++) {
		const uint8_t *src = span->src + b * step;
		uint8_t *elems = span->elems + b * RX_MX_BLOCK;
		__m256i codes;

		for (uint64_t line = 0; line < step; line += RX_CACHE_LINE)
			__builtin_prefetch(src + SPAN * step + line);
		__builtin_prefetch(elems + AHEAD, 1);
		if (rx_unlikely(span->portable >> b & 1)) {
			rx_mx_portable[format].encode(
				elems, span->scales + b, src, dtype, RX_MX_BLOCK, stats);
			continue;
		}
		codes = encode_block(
			format, elems, src, dtype, VEC_SPLAT(vec_f32, span->factors[b]));
		/* Integers become zero in so many blocks that asking first costs more. */
		if (format == RX_MX_INT8 ||
			rx_unlikely(equal_bytes(codes, _mm256_setzero_si256()) != 0))
			n_flushed += is_flushed(src, dtype, codes);
	}
	if (!stats)
		return;
	stats->n_blocks += span->n_blocks - (uint32_t)__builtin_popcount(span->portable);
	stats->n_saturated += span->n_saturated;
	stats->n_flushed += n_flushed;
}

RX_INLINE void encode_as(enum rx_mx_format format, uint8_t *elems, uint8_t *scales,
	const uint8_t *src, uint32_t dtype, uint64_t count, struct rx_mx_stats *stats)
{
	struct span span = {.src = src, .elems = elems, .scales = scales};

	while (count >= RX_MX_BLOCK) {
		span.n_blocks = (uint32_t)rx_min_u64(count / RX_MX_BLOCK, SPAN);
		encode_span(format, &span, dtype, stats);
		span.elems += span.n_blocks * RX_MX_BLOCK;
		span.scales += span.n_blocks;
		span.src += span.n_blocks * RX_MX_BLOCK * value_bytes(dtype);
		count -= span.n_blocks * RX_MX_BLOCK;
	}
	if (count > 0)
		rx_mx_portable[format].encode(
			span.elems, span.scales, span.src, dtype, count, stats);
}

RX_INLINE void encode(enum rx_mx_format format, uint8_t *elems, uint8_t *scales, const void *src,
	uint32_t dtype, uint64_t count, struct rx_mx_stats *stats)
{
	if (dtype == RX_FLOAT32)
		encode_as(format, elems, scales, src, RX_FLOAT32, count, stats);
	else if (dtype == RX_BFLOAT16)
		encode_as(format, elems, scales, src, RX_BFLOAT16, count, stats);
	else
		encode_as(format, elems, scales, src, RX_FLOAT16, count, stats);
}

/* ---- decoding ---- */

/* Scales at which there are no values that are not wanted */
struct bounds {
	uint32_t min;
	uint32_t max;
};

RX_INLINE struct bounds bounds_of(enum rx_mx_format format, uint32_t dtype)
{
	if (format == RX_MX_INT8)
		return (struct bounds){INT8_SCALE_MIN,
			dtype == RX_FLOAT16 ? INT8_SCALE_MAX_F16 : RX_MX_ESCAPE - 1};
	return (struct bounds){dtype == RX_BFLOAT16 ? FP8_SCALE_MIN_BF16 : 0,
		dtype == RX_FLOAT16 ? FP8_SCALE_MAX_F16 : FP8_SCALE_MAX};
}

/* A block without NaN, infinity or values that are not wanted */
RX_INLINE bool is_plain(
	enum rx_mx_format format, __m256i elems, uint32_t scale, struct bounds bounds)
{
	const __m256i sign = _mm256_set1_epi8((int8_t)0x80);

	if (format == RX_MX_INT8)
		return scale <= bounds.max &&
		       (scale >= bounds.min || _mm256_testz_si256(elems, elems));
	return scale >= bounds.min && scale <= bounds.max &&
	       equal_bytes(_mm256_or_si256(elems, sign), _mm256_set1_epi8((int8_t)0xff)) == 0;
}

/* The values of a plain block; exact */
RX_INLINE struct values values_of(enum rx_mx_format format, __m256i elems, uint32_t scale)
{
	uint32_t field = scale + 8u;
	struct values out = format == RX_MX_INT8 ? expand_int8(elems) : expand_fp8(elems);
	vec_f32 factor;

	/* Below INT8_SCALE_MIN all of them are zero. */
	if (format == RX_MX_INT8)
		field = scale < INT8_SCALE_MIN ? 1u : scale - INT8_SCALE_MIN + 1u;
	factor = VEC_SPLAT(vec_f32, rx_mx_float(field << 23));
	EACH_VECTOR out.v[v] *= factor;
	return out;
}

/* How results are stored; past the cache they have to be aligned. */
enum how { HOW_CACHED, HOW_STREAM_16, HOW_STREAM_32 };

RX_INLINE void put(uint8_t *to, __m256i value, enum how how)
{
	__m128i *at = (__m128i *)(void *)to;

	if (how == HOW_STREAM_32) {
		_mm256_stream_si256((__m256i *)(void *)to, value);
	} else if (how == HOW_STREAM_16) {
		_mm_stream_si128(at, _mm256_castsi256_si128(value));
		_mm_stream_si128(at + 1, _mm256_extracti128_si256(value, 1));
	} else {
		_mm256_storeu_si256((__m256i *)(void *)to, value);
	}
}

/* All digits of an element are in the upper half of an fp32, so that no rounding is needed. */
RX_INLINE void put_bf16(
	enum rx_mx_format format, uint8_t *to, __m256i elems, uint32_t scale, enum how how)
{
	const __m256i even_first = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
	struct values in = values_of(format, _mm256_shuffle_epi8(elems, even_first), scale);

	for (unsigned half = 0; half < 2; half++) {
		__m256i even = _mm256_srli_epi32((__m256i)in.v[2 * half], 16);

		put(to + half * VEC_BYTES,
			_mm256_blend_epi16(even, (__m256i)in.v[2 * half + 1], 0xaa), how);
	}
}

RX_INLINE void put_block(enum rx_mx_format format, uint8_t *to, uint32_t dtype, __m256i elems,
	uint32_t scale, enum how how)
{
	struct values in;

	if (dtype == RX_BFLOAT16) {
		put_bf16(format, to, elems, scale, how);
		return;
	}
	in = values_of(format, elems, scale);
	if (dtype == RX_FLOAT32) {
		EACH_VECTOR put(to + v * VEC_BYTES, (__m256i)in.v[v], how);
		return;
	}
	for (unsigned half = 0; half < 2; half++)
		put(to + half * VEC_BYTES,
			_mm256_set_m128i(to_f16(in.v[2 * half + 1]), to_f16(in.v[2 * half])), how);
}

RX_INLINE void decode_as(enum rx_mx_format format, uint8_t *dst, uint32_t dtype,
	const uint8_t *elems, const uint8_t *scales, uint64_t count, enum how how)
{
	const uint64_t step = RX_MX_BLOCK * value_bytes(dtype);
	const struct bounds bounds = bounds_of(format, dtype);

	for (; count >= RX_MX_BLOCK; count -= RX_MX_BLOCK) {
		__m256i block = load_bytes(elems);

		if (rx_likely(is_plain(format, block, *scales, bounds)))
			put_block(format, dst, dtype, block, *scales, how);
		else
			rx_mx_portable[format].decode(
				dst, dtype, elems, scales, RX_MX_BLOCK, false);
		elems += RX_MX_BLOCK;
		scales++;
		dst += step;
	}
	if (count > 0)
		rx_mx_portable[format].decode(dst, dtype, elems, scales, count, false);
}

/* Unaligned destinations go through the cache. */
RX_INLINE void decode_how(enum rx_mx_format format, uint8_t *dst, uint32_t dtype,
	const uint8_t *elems, const uint8_t *scales, uint64_t count, bool stream)
{
	if (stream && (uintptr_t)dst % VEC_BYTES == 0)
		decode_as(format, dst, dtype, elems, scales, count, HOW_STREAM_32);
	else if (stream && (uintptr_t)dst % (VEC_BYTES / 2) == 0)
		decode_as(format, dst, dtype, elems, scales, count, HOW_STREAM_16);
	else
		decode_as(format, dst, dtype, elems, scales, count, HOW_CACHED);
}

RX_INLINE void decode(enum rx_mx_format format, void *dst, uint32_t dtype, const uint8_t *elems,
	const uint8_t *scales, uint64_t count, bool stream)
{
	if (dtype == RX_FLOAT32)
		decode_how(format, dst, RX_FLOAT32, elems, scales, count, stream);
	else if (dtype == RX_BFLOAT16)
		decode_how(format, dst, RX_BFLOAT16, elems, scales, count, stream);
	else
		decode_how(format, dst, RX_FLOAT16, elems, scales, count, stream);
}

/* ---- sums ---- */

/* Adds a plain block; false, and nothing stored, if a sum is not finite. */
RX_INLINE bool add_block(float *acc, struct values terms)
{
	struct values sums = load_floats(acc);

	EACH_VECTOR sums.v[v] += terms.v[v];
	if (rx_unlikely(any_above(magnitudes_of(sums), RX_MX_MAX_F32)))
		return false;
	store_values((uint8_t *)acc, RX_FLOAT32, sums);
	return true;
}

RX_INLINE void decode_add(enum rx_mx_format format, float *acc, const uint8_t *elems,
	const uint8_t *scales, uint64_t count, bool first)
{
	const struct bounds bounds = bounds_of(format, RX_FLOAT32);

	if (first) {
		decode_as(format, (uint8_t *)acc, RX_FLOAT32, elems, scales, count, HOW_CACHED);
		return;
	}
	for (; count >= RX_MX_BLOCK; count -= RX_MX_BLOCK) {
		__m256i block = load_bytes(elems);

		if (rx_unlikely(!is_plain(format, block, *scales, bounds) ||
				!add_block(acc, values_of(format, block, *scales))))
			rx_mx_portable[format].decode_add(acc, elems, scales, RX_MX_BLOCK, false);
		elems += RX_MX_BLOCK;
		scales++;
		acc += RX_MX_BLOCK;
	}
	if (count > 0)
		rx_mx_portable[format].decode_add(acc, elems, scales, count, false);
}

RX_INLINE void finish_as(uint8_t *dst, uint32_t dtype, const float *acc, uint64_t count,
	uint32_t op, uint32_t n_ranks)
{
	const uint64_t step = RX_MX_BLOCK * value_bytes(dtype);
	const uint32_t largest = dtype == RX_FLOAT32    ? RX_MX_MAX_F32
				 : dtype == RX_BFLOAT16 ? RX_MX_MAX_BF16
							: RX_MX_MAX_F16;

	for (; count >= RX_MX_BLOCK; count -= RX_MX_BLOCK) {
		struct values in = load_floats(acc);

		if (op == RX_AVG)
			EACH_VECTOR in.v[v] /= (float)n_ranks;
		if (rx_likely(!any_above(magnitudes_of(in), largest)))
			store_values(dst, dtype, in);
		else
			rx_mx_portable[RX_MX_FP8].finish(dst, dtype, acc, RX_MX_BLOCK, op, n_ranks);
		acc += RX_MX_BLOCK;
		dst += step;
	}
	if (count > 0)
		rx_mx_portable[RX_MX_FP8].finish(dst, dtype, acc, count, op, n_ranks);
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

/* ---- the tables ---- */

static void fp8_encode(uint8_t *elems, uint8_t *scales, const void *src, uint32_t dtype,
	uint64_t count, struct rx_mx_stats *stats)
{
	encode(RX_MX_FP8, elems, scales, src, dtype, count, stats);
}

static void fp8_decode(void *dst, uint32_t dtype, const uint8_t *elems, const uint8_t *scales,
	uint64_t count, bool stream)
{
	decode(RX_MX_FP8, dst, dtype, elems, scales, count, stream);
}

static void fp8_decode_add(
	float *acc, const uint8_t *elems, const uint8_t *scales, uint64_t count, bool first)
{
	decode_add(RX_MX_FP8, acc, elems, scales, count, first);
}

static void int8_encode(uint8_t *elems, uint8_t *scales, const void *src, uint32_t dtype,
	uint64_t count, struct rx_mx_stats *stats)
{
	encode(RX_MX_INT8, elems, scales, src, dtype, count, stats);
}

static void int8_decode(void *dst, uint32_t dtype, const uint8_t *elems, const uint8_t *scales,
	uint64_t count, bool stream)
{
	decode(RX_MX_INT8, dst, dtype, elems, scales, count, stream);
}

static void int8_decode_add(
	float *acc, const uint8_t *elems, const uint8_t *scales, uint64_t count, bool first)
{
	decode_add(RX_MX_INT8, acc, elems, scales, count, first);
}

const struct rx_mx_table rx_mx_avx2[RX_MX_FORMAT_N] = {
	[RX_MX_FP8] = {fp8_encode, fp8_decode, fp8_decode_add, finish},
	[RX_MX_INT8] = {int8_encode, int8_decode, int8_decode_add, finish},
};
