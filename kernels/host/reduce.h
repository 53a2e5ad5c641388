/* SPDX-License-Identifier: MIT */
/*
 * Host reduction: the one definition of a sum (doc/algorithms.md, invariant 2), in the fastest
 * instruction set of the CPU, with the same bits in each.
 *
 * For element i the ranks' values are folded in rank order 0 .. n-1, starting from rank 0's value
 * (not from zero). fp16, bf16 and fp8 are widened to fp32, folded there and rounded once, to
 * nearest even; fp32 and fp64 are folded in their own type, never contracted into an fma; integers
 * wrap. AVG divides after the fold: integers by C's truncating division, floats by a division in
 * the accumulation type, before the final rounding. PREMUL_SUM multiplies each rank's value by
 * that rank's scalar in the accumulation type (one rounding), then adds.
 *
 * MIN and MAX ignore NaN, as NCCL's kernels do: acc = (v < acc || acc is NaN) ? v : acc (MAX: >),
 * so that equal values, +0 and -0 too, keep the lower rank's bits. A float result that is NaN is
 * the canonical quiet NaN of its type, positive with zero payload (fp8: 0x7f), so that the bits do
 * not depend on the hardware. Overflow: to infinity where the type has one (fp8-e5m2 too); fp8-e4m3
 * saturates at +-448, as NCCL's conversions do. Subnormals are kept everywhere.
 */
#ifndef RX_REDUCE_H
#define RX_REDUCE_H

#include "../coll_types.h"
#include "copy.h"

enum rx_isa { RX_ISA_SCALAR, RX_ISA_AVX2, RX_ISA_AVX512, RX_ISA_NEON, RX_ISA_N };

/** rx_isa_best() - best instruction set that this CPU and this build have */
enum rx_isa rx_isa_best(void);
/** rx_isa_name() - "scalar", "avx2", ... */
const char *rx_isa_name(enum rx_isa isa);
/** rx_isa_available() - may rx_reduce_with() be called with it? */
bool rx_isa_available(enum rx_isa isa);

struct rx_reduce_args {
	const void *const *src; /* n_src inputs, in rank order; each aligned to its element size */
	uint32_t n_src;         /* 1 .. RX_MAX_RANKS */
	void *const *dst; /* n_dst outputs, each gets the same bits; dst[k] may equal any src[j]
			     exactly (in place), but must not overlap one partially */
	uint32_t n_dst;   /* 1 .. RX_MAX_RANKS */
	uint64_t count;   /* elements */
	uint8_t dtype;    /* enum rx_dtype */
	uint8_t op;       /* enum rx_redop */
	bool stream;      /* outputs will not be read soon: use non-temporal stores */
	uint32_t n_avg;   /* AVG: the divisor, the communicator's size */
	const uint64_t *scalars; /* PREMUL_SUM: n_src scalars, bits in the low bytes, in @dtype
				    (integers: the integer); else NULL */
};

/**
 * rx_reduce() - fold n_src inputs into n_dst outputs
 *
 * Threads: reentrant. Unaligned (to SIMD width) pointers are fine. Inputs may be written by nobody
 * meanwhile. Algorithm: blocks of a few KiB stay in registers/L1 across sources, so that each
 * input is read once and each output written once.
 */
void rx_reduce(const struct rx_reduce_args *args);

/** rx_reduce_with() - the same with a given instruction set, for tests and benchmarks */
void rx_reduce_with(enum rx_isa isa, const struct rx_reduce_args *args);

#endif
