/* SPDX-License-Identifier: MIT */
/*
 * All types: includes DEV_TYPE_FILE once for each, with
 *
 *   T         its short name; dev_load_T(), dev_store_T(), dev_unpack_T(),
 * dev_pack_T(), dev_factor_T() exist (dev_value.h) DTYPE     its number SIZE
 * bytes of an element ACC       the type in which values are accumulated;
 * unsigned for integers, which wrap CMP       the same, or signed, so that it
 * compares and divides right IS_FLOAT  0 or 1 UNROLL    vectors of each input
 * that a thread has in flight
 */
#define T        i8
#define DTYPE    RX_INT8
#define SIZE     1
#define ACC      uint32_t
#define CMP      int32_t
#define IS_FLOAT 0
#define UNROLL   1
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        u8
#define DTYPE    RX_UINT8
#define SIZE     1
#define ACC      uint32_t
#define CMP      uint32_t
#define IS_FLOAT 0
#define UNROLL   1
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        i32
#define DTYPE    RX_INT32
#define SIZE     4
#define ACC      uint32_t
#define CMP      int32_t
#define IS_FLOAT 0
#define UNROLL   4
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        u32
#define DTYPE    RX_UINT32
#define SIZE     4
#define ACC      uint32_t
#define CMP      uint32_t
#define IS_FLOAT 0
#define UNROLL   4
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        i64
#define DTYPE    RX_INT64
#define SIZE     8
#define ACC      uint64_t
#define CMP      int64_t
#define IS_FLOAT 0
#define UNROLL   4
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        u64
#define DTYPE    RX_UINT64
#define SIZE     8
#define ACC      uint64_t
#define CMP      uint64_t
#define IS_FLOAT 0
#define UNROLL   4
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        f32
#define DTYPE    RX_FLOAT32
#define SIZE     4
#define ACC      float
#define CMP      float
#define IS_FLOAT 1
#define UNROLL   4
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        f64
#define DTYPE    RX_FLOAT64
#define SIZE     8
#define ACC      double
#define CMP      double
#define IS_FLOAT 1
#define UNROLL   4
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        f16
#define DTYPE    RX_FLOAT16
#define SIZE     2
#define ACC      float
#define CMP      float
#define IS_FLOAT 1
#define UNROLL   2
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        bf16
#define DTYPE    RX_BFLOAT16
#define SIZE     2
#define ACC      float
#define CMP      float
#define IS_FLOAT 1
#define UNROLL   2
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        e4m3
#define DTYPE    RX_FLOAT8E4M3
#define SIZE     1
#define ACC      float
#define CMP      float
#define IS_FLOAT 1
#define UNROLL   1
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T

#define T        e5m2
#define DTYPE    RX_FLOAT8E5M2
#define SIZE     1
#define ACC      float
#define CMP      float
#define IS_FLOAT 1
#define UNROLL   1
#include DEV_TYPE_FILE
#undef UNROLL
#undef IS_FLOAT
#undef CMP
#undef ACC
#undef SIZE
#undef DTYPE
#undef T
