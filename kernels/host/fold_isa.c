/* SPDX-License-Identifier: MIT */
/*
 * All folds, for the instruction set given by RX_FOLD_AVX2, RX_FOLD_AVX512, RX_FOLD_NEON or, with
 * none of them, for whatever the architecture has at least (x86-64: SSE2). RX_FOLD_TABLE is the
 * name of the table to define.
 *
 * Inputs are read once, outputs written once: a block is as many elements as four vectors
 * accumulate, and stays in registers from the first source to the last destination.
 */
#include "fold.h"

#include "vec.h"
#include "vec_float.h"

#define DIRECT(name, acc, quiet4)                                                                  \
	RX_INLINE struct four_##acc widen4_##name(const uint8_t *from)                             \
	{                                                                                          \
		return (struct four_##acc){(vec_##acc)vec_load(from),                              \
			(vec_##acc)vec_load(from + VEC_BYTES),                                     \
			(vec_##acc)vec_load(from + VEC_BYTES * 2),                                 \
			(vec_##acc)vec_load(from + VEC_BYTES * 3)};                                \
	}                                                                                          \
	RX_INLINE struct four_u8 narrow4_##name(struct four_##acc a)                               \
	{                                                                                          \
		a = quiet4(a);                                                                     \
		return (struct four_u8){(vec_u8)a.v0, (vec_u8)a.v1, (vec_u8)a.v2, (vec_u8)a.v3};   \
	}                                                                                          \
	struct four_##acc

#define AS_IT_IS(a) (a)

DIRECT(i8, u8, AS_IT_IS);
DIRECT(u8, u8, AS_IT_IS);
DIRECT(i32, u32, AS_IT_IS);
DIRECT(u32, u32, AS_IT_IS);
DIRECT(i64, u64, AS_IT_IS);
DIRECT(u64, u64, AS_IT_IS);
DIRECT(f32, f32, quiet4_f32);
DIRECT(f64, f64, quiet4_f64);

/* Signed values are added and multiplied as unsigned ones, which wrap. */
#define T        i8
#define ACC      u8
#define LANE     uint8_t
#define LANE_CMP int8_t
#define MASK     vec_i8
#define CMP      vec_i8
#define N_RAW    4
#define IS_FLOAT 0
#include "fold_type.h"

#define T        u8
#define ACC      u8
#define LANE     uint8_t
#define LANE_CMP uint8_t
#define MASK     vec_i8
#define CMP      vec_u8
#define N_RAW    4
#define IS_FLOAT 0
#include "fold_type.h"

#define T        i32
#define ACC      u32
#define LANE     uint32_t
#define LANE_CMP int32_t
#define MASK     vec_i32
#define CMP      vec_i32
#define N_RAW    4
#define IS_FLOAT 0
#include "fold_type.h"

#define T        u32
#define ACC      u32
#define LANE     uint32_t
#define LANE_CMP uint32_t
#define MASK     vec_i32
#define CMP      vec_u32
#define N_RAW    4
#define IS_FLOAT 0
#include "fold_type.h"

#define T        i64
#define ACC      u64
#define LANE     uint64_t
#define LANE_CMP int64_t
#define MASK     vec_i64
#define CMP      vec_i64
#define N_RAW    4
#define IS_FLOAT 0
#include "fold_type.h"

#define T        u64
#define ACC      u64
#define LANE     uint64_t
#define LANE_CMP uint64_t
#define MASK     vec_i64
#define CMP      vec_u64
#define N_RAW    4
#define IS_FLOAT 0
#include "fold_type.h"

#define T        f64
#define ACC      f64
#define LANE     double
#define LANE_CMP double
#define MASK     vec_i64
#define CMP      vec_f64
#define N_RAW    4
#define IS_FLOAT 1
#include "fold_type.h"

/* What accumulates in fp32 differs in its name and in how much memory four vectors take. */
#define T        f32
#define ACC      f32
#define LANE     float
#define LANE_CMP float
#define MASK     vec_i32
#define CMP      vec_f32
#define N_RAW    4
#define IS_FLOAT 1
#include "fold_type.h"

#define T        f16
#define ACC      f32
#define LANE     float
#define LANE_CMP float
#define MASK     vec_i32
#define CMP      vec_f32
#define N_RAW    2
#define IS_FLOAT 1
#include "fold_type.h"

#define T        bf16
#define ACC      f32
#define LANE     float
#define LANE_CMP float
#define MASK     vec_i32
#define CMP      vec_f32
#define N_RAW    2
#define IS_FLOAT 1
#include "fold_type.h"

#define T        e4m3
#define ACC      f32
#define LANE     float
#define LANE_CMP float
#define MASK     vec_i32
#define CMP      vec_f32
#define N_RAW    1
#define IS_FLOAT 1
#include "fold_type.h"

#define T        e5m2
#define ACC      f32
#define LANE     float
#define LANE_CMP float
#define MASK     vec_i32
#define CMP      vec_f32
#define N_RAW    1
#define IS_FLOAT 1
#include "fold_type.h"

#define FOLDS(name)                                                                                \
	{                                                                                          \
		[RX_SUM] = sum_##name, [RX_PROD] = prod_##name, [RX_MAX] = max_##name,             \
		[RX_MIN] = min_##name, [RX_AVG] = avg_##name, [RX_PREMUL_SUM] = premul_##name,     \
	}

const struct rx_fold_table RX_FOLD_TABLE = {
	.fn =
		{
			[RX_INT8] = FOLDS(i8),
			[RX_UINT8] = FOLDS(u8),
			[RX_INT32] = FOLDS(i32),
			[RX_UINT32] = FOLDS(u32),
			[RX_INT64] = FOLDS(i64),
			[RX_UINT64] = FOLDS(u64),
			[RX_FLOAT16] = FOLDS(f16),
			[RX_FLOAT32] = FOLDS(f32),
			[RX_FLOAT64] = FOLDS(f64),
			[RX_BFLOAT16] = FOLDS(bf16),
			[RX_FLOAT8E4M3] = FOLDS(e4m3),
			[RX_FLOAT8E5M2] = FOLDS(e5m2),
		},
};
