/* SPDX-License-Identifier: MIT */
/*
 * Values of all types: between memory and what they are accumulated in, and
 * what operations make of them.
 */
#ifndef RX_DEV_VALUE_H
#define RX_DEV_VALUE_H

#include "dev_convert.h"
#include "dev_core.h"

/* What a sum is divided by when it is complete. */
struct dev_average {
	uint32_t n;
	bool is;    /* is it divided at all? */
	bool times; /* the divisor is a power of two, so its inverse is exact */
};

DEV_FN struct dev_average dev_average_of(uint32_t op, uint32_t n)
{
	struct dev_average average;

	average.n = n;
	average.is = op == RX_AVG;
	average.times = n <= 64 && (n & (n - 1)) == 0;
	return average;
}

/* ---- values that are accumulated in their own type ---- */

#define DIRECT(T, ACC, WORD, LANES, FROM_WORDS, TO_WORDS, FROM_BITS, OUT)                          \
	DEV_FN ACC dev_load_##T(const uint8_t *p)                                                  \
	{                                                                                          \
		return FROM_BITS(*DEV_AS_GLOBAL(const WORD, p));                                   \
	}                                                                                          \
	DEV_FN void dev_store_##T(uint8_t *p, ACC v)                                               \
	{                                                                                          \
		*DEV_AS_GLOBAL(WORD, p) = OUT(v);                                                  \
	}                                                                                          \
	DEV_FN ACC dev_factor_##T(uint64_t bits)                                                   \
	{                                                                                          \
		return FROM_BITS((WORD)bits);                                                      \
	}                                                                                          \
	DEV_FN void dev_unpack_##T(struct dev_vec16 raw, ACC *v)                                   \
	{                                                                                          \
		DEV_UNROLL                                                                         \
		for (uint32_t k = 0; k < (LANES); k++)                                             \
			v[k] = FROM_BITS(FROM_WORDS(WORD, raw.w, k));                              \
	}                                                                                          \
	DEV_FN struct dev_vec16 dev_pack_##T(const ACC *v) {                                       \
		struct dev_vec16 out = {{0, 0, 0, 0}};                                             \
                                                                                                   \
		DEV_UNROLL                                                                         \
		for (uint32_t k = 0; k < (LANES); k++)                                             \
			TO_WORDS(out.w, k, OUT(v[k]));                                             \
		return out;                                                                        \
	} DEV_FN ACC dev_load_##T(const uint8_t *p)

#define BYTE_OF(WORD, w, k) ((WORD)((w)[(k) / 4] >> (k) % 4 * 8))
#define WORD_OF(WORD, w, k) ((WORD)(w)[k])
#define PAIR_OF(WORD, w, k) ((WORD)((uint64_t)(w)[(k)*2 + 1] << 32 | (w)[(k)*2]))
#define BYTE_TO(w, k, v)    ((w)[(k) / 4] |= (uint32_t)(v) << (k) % 4 * 8)
#define WORD_TO(w, k, v)    ((w)[k] = (uint32_t)(v))
#define PAIR_TO(w, k, v)                                                                           \
	((w)[(k)*2] = (uint32_t)(v), (w)[(k)*2 + 1] = (uint32_t)((uint64_t)(v) >> 32))

/* A signed byte is kept with its sign in front, so that values compare. */
#define OF_I8(bits) ((uint32_t)(int32_t)(int8_t)(bits))
#define OF_U8(bits) ((uint32_t)(bits))
#define AS_IT_IS(v) (v)
#define TO_BYTE(v)  ((uint8_t)(v))

DEV_FN uint32_t dev_quiet_f32(float v)
{
	return v != v ? DEV_F32_NAN : dev_bits(v);
}

DEV_FN uint64_t dev_quiet_f64(double v)
{
	return v != v ? 0x7ff8000000000000ull : dev_bits64(v);
}

DIRECT(i8, uint32_t, uint8_t, 16, BYTE_OF, BYTE_TO, OF_I8, TO_BYTE);
DIRECT(u8, uint32_t, uint8_t, 16, BYTE_OF, BYTE_TO, OF_U8, TO_BYTE);
DIRECT(i32, uint32_t, uint32_t, 4, WORD_OF, WORD_TO, AS_IT_IS, AS_IT_IS);
DIRECT(u32, uint32_t, uint32_t, 4, WORD_OF, WORD_TO, AS_IT_IS, AS_IT_IS);
DIRECT(i64, uint64_t, uint64_t, 2, PAIR_OF, PAIR_TO, AS_IT_IS, AS_IT_IS);
DIRECT(u64, uint64_t, uint64_t, 2, PAIR_OF, PAIR_TO, AS_IT_IS, AS_IT_IS);
DIRECT(f32, float, uint32_t, 4, WORD_OF, WORD_TO, dev_float, dev_quiet_f32);
DIRECT(f64, double, uint64_t, 2, PAIR_OF, PAIR_TO, dev_double, dev_quiet_f64);

/* What an accumulator holds, as a value of the type: it divides as that. */
DEV_FN uint32_t dev_wrap_i8(uint32_t v)
{
	return OF_I8(v);
}

DEV_FN uint32_t dev_wrap_u8(uint32_t v)
{
	return v & 0xffu;
}

#define dev_wrap_i32(v) (v)
#define dev_wrap_u32(v) (v)
#define dev_wrap_i64(v) (v)
#define dev_wrap_u64(v) (v)

/* ---- values that are accumulated in fp32 ---- */

#define SMALL16(T)                                                                                 \
	DEV_FN float dev_load_##T(const uint8_t *p)                                                \
	{                                                                                          \
		return dev_widen_##T(*DEV_AS_GLOBAL(const uint16_t, p));                           \
	}                                                                                          \
	DEV_FN void dev_store_##T(uint8_t *p, float v)                                             \
	{                                                                                          \
		*DEV_AS_GLOBAL(uint16_t, p) = (uint16_t)dev_narrow_##T(v);                         \
	}                                                                                          \
	DEV_FN float dev_factor_##T(uint64_t bits)                                                 \
	{                                                                                          \
		return dev_widen_##T((uint16_t)bits);                                              \
	}                                                                                          \
	DEV_FN void dev_unpack_##T(struct dev_vec16 raw, float *v)                                 \
	{                                                                                          \
		DEV_UNROLL                                                                         \
		for (uint32_t k = 0; k < 8; k++)                                                   \
			v[k] = dev_widen_##T(raw.w[k / 2] >> k % 2 * 16 & 0xffffu);                \
	}                                                                                          \
	DEV_FN struct dev_vec16 dev_pack_##T(const float *v) {                                     \
		struct dev_vec16 out;                                                              \
                                                                                                   \
		DEV_UNROLL                                                                         \
		for (uint32_t k = 0; k < 4; k++)                                                   \
			out.w[k] = dev_narrow2_##T(v[2 * k], v[2 * k + 1]);                        \
		return out;                                                                        \
	} DEV_FN float dev_load_##T(const uint8_t *p)

#define SMALL8(T)                                                                                  \
	DEV_FN float dev_load_##T(const uint8_t *p)                                                \
	{                                                                                          \
		return dev_widen_##T(*DEV_AS_GLOBAL(const uint8_t, p));                            \
	}                                                                                          \
	DEV_FN void dev_store_##T(uint8_t *p, float v)                                             \
	{                                                                                          \
		*DEV_AS_GLOBAL(uint8_t, p) = (uint8_t)dev_narrow2_##T(v, v);                       \
	}                                                                                          \
	DEV_FN float dev_factor_##T(uint64_t bits)                                                 \
	{                                                                                          \
		return dev_widen_##T((uint8_t)bits);                                               \
	}                                                                                          \
	DEV_FN void dev_unpack_##T(struct dev_vec16 raw, float *v)                                 \
	{                                                                                          \
		DEV_UNROLL                                                                         \
		for (uint32_t k = 0; k < 16; k++)                                                  \
			v[k] = dev_widen_##T(raw.w[k / 4] >> k % 4 * 8 & 0xffu);                   \
	}                                                                                          \
	DEV_FN struct dev_vec16 dev_pack_##T(const float *v) {                                     \
		struct dev_vec16 out;                                                              \
                                                                                                   \
		DEV_UNROLL                                                                         \
		for (uint32_t k = 0; k < 4; k++)                                                   \
			out.w[k] = dev_narrow2_##T(v[4 * k], v[4 * k + 1]) |                       \
				   dev_narrow2_##T(v[4 * k + 2], v[4 * k + 3]) << 16;              \
		return out;                                                                        \
	} DEV_FN float dev_load_##T(const uint8_t *p)

SMALL16(f16);
SMALL16(bf16);
SMALL8(e4m3);
SMALL8(e5m2);

/* ---- what operations do ---- */

#define DEV_TYPE_FILE "dev_value_type.h"
#include "dev_types.h"
#undef DEV_TYPE_FILE

#endif
