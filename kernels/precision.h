/* SPDX-License-Identifier: MIT */
/*
 * The choosing of low precision. Pure, as coll_plan.h: from values that are the same on every rank,
 * so that all of them choose the same.
 */
#ifndef RX_PRECISION_H
#define RX_PRECISION_H

#include "coll_types.h"
#include "codec/mxfp8.h"
#include "../shm/rx_precision_abi.h"
#include "../shm/rx_tuning_abi.h"

/* What a call asks for; the numbers are those of RCCLX_PRECISION_*. */
enum rx_precision_request {
	RX_PRECISION_AUTO = 0,  /* what the communicator has, from its threshold on */
	RX_PRECISION_EXACT = 1, /* not this time */
	RX_PRECISION_FP8 = 2,   /* this time, whatever the size */
	RX_PRECISION_INT8 = 3,  /* so, too */
	RX_PRECISION_N
};

/* rx_op_sig.flags, rx_sqe.flags: what the ranks compare. */
enum rx_sig_flags {
	RX_SIG_FP8 = 1, /* in low precision, one of these */
	/* all_to_all_v: if somebody sends enough, which the ranks learn from each other's counts */
	RX_SIG_FP8_IF_LARGE = 2,
	RX_SIG_INT8 = 4,
	RX_SIG_INT8_IF_LARGE = 8,
	RX_SIG_IF_LARGE = RX_SIG_FP8_IF_LARGE | RX_SIG_INT8_IF_LARGE,
	RX_SIG_FLAGS = 15
};

/* Why an operation is, or is not, in low precision. */
enum rx_precision_why {
	RX_WHY_REQUESTED,   /* yes: the call asks for it */
	RX_WHY_LARGE,       /* yes: switched on, and the message is large enough */
	RX_WHY_IF_LARGE,    /* perhaps: switched on, the size is known later */
	RX_WHY_EXACT,       /* no: the call asks for exact results */
	RX_WHY_COLL,        /* no: this collective has no such form */
	RX_WHY_DTYPE,       /* no: ... this type ... */
	RX_WHY_OP,          /* no: ... this reduction ... */
	RX_WHY_ONE_RANK,    /* no: nothing travels */
	RX_WHY_OFF,         /* no: not switched on for this collective */
	RX_WHY_SMALL,       /* no: less than the threshold */
	RX_WHY_OVER_BUDGET, /* no: the errors found were above the communicator's budget */
	RX_WHY_N
};

struct rx_precision_query {
	uint32_t coll;
	uint32_t dtype;
	uint32_t op;
	uint32_t n_ranks;
	uint64_t elements; /* rx_precision_elements(); all_to_all_v: not looked at */
	uint32_t request;  /* enum rx_precision_request */
	bool over_budget;
};

/**
 * rx_precision_elements() - size of a message, for comparing with the threshold
 *
 * The larger of a rank's two buffers: @count for allreduce, @count times @n_ranks for all-gather,
 * reduce-scatter and all-to-all. Saturates. The variable ones: the caller adds up the counts.
 */
uint64_t rx_precision_elements(uint32_t coll, uint64_t count, uint32_t n_ranks);

/** rx_precision_min() - threshold in bytes: the communicator's own, or the table's */
uint64_t rx_precision_min(const struct rx_precision *precision, const struct rx_tuning *tuning,
	uint32_t coll, uint32_t n_ranks);

/**
 * rx_precision_flags() - flags of an operation's description
 * @min_bytes: from rx_precision_min()
 * @why_p:     NULL is allowed
 */
uint8_t rx_precision_flags(const struct rx_precision_query *query,
	const struct rx_precision *precision, uint64_t min_bytes, enum rx_precision_why *why_p);

/** rx_precision_flags_ok() - can a description have these flags? For what comes from others. */
bool rx_precision_flags_ok(uint32_t flags, uint32_t coll, uint32_t dtype, uint32_t op);

/** rx_precision_words() - for descriptions: ", in low precision (fp8)", or nothing where exact */
const char *rx_precision_words(uint32_t flags, uint32_t coll, uint32_t dtype, uint32_t op);

/** rx_precision_format() - of flags that ask for low precision */
enum rx_mx_format rx_precision_format(uint32_t flags);

/** rx_precision_large() - RX_SIG_IF_LARGE: is a message of @elements large enough? */
bool rx_precision_large(uint64_t elements, uint32_t dtype, uint64_t min_bytes);

/** rx_precision_ok() - settings that came from others. Return: NULL, or what is wrong. */
const char *rx_precision_ok(const struct rx_precision *precision);

/** rx_precision_add() - @add onto @sum; saturates, takes the larger of errors */
void rx_precision_add(struct rx_precision_counts *sum, const struct rx_precision_counts *add);

#define RX_PRECISION_TEXT 224u

/** rx_precision_describe() - "all_reduce, all_gather from 16777216 bytes, ..." or "off" */
void rx_precision_describe(const struct rx_precision *precision, char text[RX_PRECISION_TEXT]);

#endif
