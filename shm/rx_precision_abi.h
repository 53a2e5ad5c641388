/* SPDX-License-Identifier: MIT */
/*
 * Layout of what the ranks of a communicator agree on about low precision, and of what each of
 * them counts. No functions. See doc/low-precision.md.
 */
#ifndef RX_PRECISION_ABI_H
#define RX_PRECISION_ABI_H

#include "rx_base.h"

#include <assert.h>
#include <stdatomic.h>

enum rx_precision_flags {
	RX_PRECISION_ALL_REDUCE = 1,     /* these collectives in low precision ... */
	RX_PRECISION_ALL_GATHER = 2,     /* ... with their variable forms, */
	RX_PRECISION_REDUCE_SCATTER = 4, /* from min_bytes on */
	RX_PRECISION_ALL_TO_ALL = 8,
	RX_PRECISION_GATHER_BF16 = 16, /* allreduce: the sum travels as bfloat16 */
	RX_PRECISION_ON_FLAGS = 31,
	/* 32 is RCCLX_LOW_PRECISION_NONE. */
	RX_PRECISION_AS_INT8 = 64, /* elements are INT8, and not FP8 */
	RX_PRECISION_FLAGS = RX_PRECISION_ON_FLAGS | RX_PRECISION_AS_INT8
};

/* A checked block's exact values travel beside the others': there is room for so many. */
#define RX_PRECISION_SAMPLE_MIN 128u

/* The same on all ranks, or the communicator is not formed. Part of the control page. */
struct rx_precision {
	uint32_t flags;        /* enum rx_precision_flags */
	uint32_t sample_every; /* one block in so many is checked against the exact result; 0: none
				*/
	uint32_t
		budget_ppm; /* relative error, in millionths, above which all goes exact; 0: none */
	uint32_t reserved;
	uint64_t min_bytes; /* 0: the threshold of the tuning table */
	uint64_t link_rate; /* benchmarks: bytes per second between two ranks; 0: as fast as it goes
			     */
};

/* What a rank has done in low precision; the daemon keeps the same for what it does itself. */
struct rx_precision_counts {
	uint64_t n_ops;
	uint64_t exact_bytes; /* that would have gone between ranks */
	uint64_t wire_bytes;  /* that went */
	uint64_t n_blocks;    /* encoded */
	uint64_t n_saturated; /* of them: a value was clipped */
	uint64_t n_flushed;   /* of them: a value became zero */
	uint64_t n_special;   /* of them: with NaN or infinity */
	uint64_t n_sampled;   /* results that were checked, in blocks */
	uint64_t error_ppm;   /* relative error of the last operation that was checked */
	uint64_t worst_ppm;   /* and of the worst */
};

#define RX_PRECISION_N_COUNTS 10u

/* In a rank's line: one writer, relaxed; the daemon reads them for people and nothing else. */
struct rx_line_counts {
	_Atomic uint64_t words[RX_PRECISION_N_COUNTS]; /* struct rx_precision_counts, in order */
};

static_assert(sizeof(struct rx_precision) == 32, "shared layout");
static_assert(sizeof(struct rx_precision_counts) == RX_PRECISION_N_COUNTS * sizeof(uint64_t),
	"one word each");

#endif
