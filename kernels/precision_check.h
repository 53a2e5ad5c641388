/* SPDX-License-Identifier: MIT */
/*
 * Checking results in low precision against exact ones: which blocks, and what error that makes.
 *
 * An operation is checked in the codec's blocks whose number, from the start of the message, leaves
 * the remainder "phase" when divided by "every"; the phase changes from operation to operation.
 */
#ifndef RX_PRECISION_CHECK_H
#define RX_PRECISION_CHECK_H

#include "coll_counts.h"
#include "codec/mxfp8.h"
#include "../shm/rx_precision_abi.h"

struct rx_precision_check {
	uint32_t every; /* 0: nothing is checked */
	uint32_t phase;
	uint64_t n_blocks;
	double error2; /* sums of squares */
	double exact2;
};

/** rx_precision_check_init() - @number of the operation: the same on all ranks */
void rx_precision_check_init(struct rx_precision_check *check, uint32_t every, uint64_t number);

/** rx_precision_check_next() - first block from @block on that is checked; UINT64_MAX: none */
uint64_t rx_precision_check_next(const struct rx_precision_check *check, uint64_t block);

/** rx_precision_check_add() - one block of @n values; those that are not finite do not count */
void rx_precision_check_add(
	struct rx_precision_check *check, const double *exact, const float *got, uint32_t n);

/** rx_precision_check_ppm() - relative L2 error so far, in millionths; saturates */
uint64_t rx_precision_check_ppm(const struct rx_precision_check *check);

/* What one operation did and found, in one process. */
struct rx_precision_work {
	struct rx_precision_check check;
	struct rx_mx_stats stats;
	uint64_t wire_bytes;  /* read from peers, or that ranks would have read from each other */
	uint64_t exact_bytes; /* and otherwise */
};

/** rx_precision_account() - add an operation to @sum. Return: its error, as _check_ppm(). */
uint64_t rx_precision_account(
	struct rx_precision_counts *sum, const struct rx_precision_work *work);

/* What an operation moves. */
struct rx_precision_message {
	uint32_t coll;
	uint32_t dtype;
	uint32_t n_ranks;
	uint64_t count;
	const struct rx_counts *counts; /* by rank; variable collectives, instead of count */
	bool bf16;                      /* allreduce: the sums travel so */
};

/** rx_precision_traffic() - add what ranks read from each other to wire_bytes and exact_bytes */
void rx_precision_traffic(
	struct rx_precision_work *work, const struct rx_precision_message *message);

/** rx_precision_widen() - @n elements of a type that low precision has, as fp32 */
void rx_precision_widen(float *dst, const void *src, uint32_t dtype, uint32_t n);

#endif
