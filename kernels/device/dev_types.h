/* SPDX-License-Identifier: MIT */
/*
 * All types: includes DEV_TYPE_FILE once for each. With it come macros: T is the type's short name
 * (dev_value.h has dev_load_T() and so on), DTYPE its number, SIZE the bytes of an element, and
 * IS_FLOAT 0 or 1. ACC is the type in which values are accumulated, unsigned for integers, which
 * wrap; CMP is the same or signed, so that it compares and divides right. UNROLL is how many
 * vectors of each input a thread has in flight.
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
