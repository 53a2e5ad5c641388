/* SPDX-License-Identifier: MIT */
/*
 * Collectives, data types and reduction operations: numbers (shared with the public API, the
 * protocol and the GPU kernels), names, sizes, and which combinations exist.
 *
 * The numbers of data types and operations are those of NCCL's ABI.
 */
#ifndef RX_COLL_TYPES_H
#define RX_COLL_TYPES_H

#include "../shm/rx_base.h"

enum rx_dtype {
	RX_INT8 = 0,
	RX_UINT8 = 1,
	RX_INT32 = 2,
	RX_UINT32 = 3,
	RX_INT64 = 4,
	RX_UINT64 = 5,
	RX_FLOAT16 = 6,
	RX_FLOAT32 = 7,
	RX_FLOAT64 = 8,
	RX_BFLOAT16 = 9,
	RX_FLOAT8E4M3 = 10, /* OCP, bias 7, no infinity, NaN 0x7f/0xff, largest 448 */
	RX_FLOAT8E5M2 = 11, /* OCP, bias 15, IEEE-like, largest 57344 */
	RX_DTYPE_N
};

enum rx_redop {
	RX_SUM = 0,
	RX_PROD = 1,
	RX_MAX = 2,
	RX_MIN = 3,
	RX_AVG = 4,
	RX_PREMUL_SUM = 5, /* each rank's values times that rank's scalar, then summed */
	RX_REDOP_N
};

enum rx_coll {
	RX_BARRIER = 0,
	RX_ALL_REDUCE = 1,
	RX_ALL_GATHER = 2,
	RX_REDUCE_SCATTER = 3,
	RX_ALL_TO_ALL = 4,
	RX_BROADCAST = 5,
	RX_REDUCE = 6,
	RX_GATHER = 7,
	RX_SCATTER = 8,
	RX_SEND = 9,
	RX_RECV = 10,
	RX_ALL_GATHER_V = 11,
	RX_REDUCE_SCATTER_V = 12,
	RX_ALL_TO_ALL_V = 13,
	RX_COLL_N
};

/** rx_dtype_size() - bytes per element; 0 for an unknown type */
uint32_t rx_dtype_size(uint32_t dtype);

/** rx_dtype_name(), rx_redop_name(), rx_coll_name() - "float32", "sum", "all_reduce", or "?" */
const char *rx_dtype_name(uint32_t dtype);
const char *rx_redop_name(uint32_t op);
const char *rx_coll_name(uint32_t coll);

/** rx_dtype_suffix() - of the names of GPU kernels: "f32" */
const char *rx_dtype_suffix(uint32_t dtype);

/**
 * rx_dtype_parse() - name or usual alias ("float", "half", "bf16", "int", "fp8_e4m3", ...)
 * Return: enum value, or -1. rx_redop_parse(), rx_coll_parse() likewise ("all_reduce" and
 * "allreduce").
 */
int rx_dtype_parse(const char *name);
int rx_redop_parse(const char *name);
int rx_coll_parse(const char *name);

/** rx_dtype_is_float() - floating point of any width */
bool rx_dtype_is_float(uint32_t dtype);

/** rx_coll_reduces() - does the collective combine values? */
bool rx_coll_reduces(uint32_t coll);

#endif
