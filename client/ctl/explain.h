/* SPDX-License-Identifier: MIT */
/*
 * Why an operation gets the plan that it gets. The plan is rx_plan_make()'s; what is added here is
 * which threshold was decisive, which tests/unit/test_explain.c compares with the plan.
 */
#ifndef CTL_EXPLAIN_H
#define CTL_EXPLAIN_H

#include "../../kernels/coll_plan.h"
#include "../../kernels/precision.h"

enum explain_threshold {
	EXPLAIN_NONE, /* no threshold: it cannot be otherwise */
	EXPLAIN_FLAT_MAX,
	EXPLAIN_FLAT_MAX_SHARED,
	EXPLAIN_CHUNK,
	EXPLAIN_DIRECT_MIN,
	EXPLAIN_STREAM_MIN,
	EXPLAIN_LOW_PRECISION_MIN,
	EXPLAIN_SINGLE_MIN,
	_EXPLAIN_THRESHOLD_N
};

/** explain_threshold_name() - as in tuning files */
const char *explain_threshold_name(enum explain_threshold threshold);

/** explain_value() - of a threshold */
uint64_t explain_value(const struct rx_tuning_entry *entry, enum explain_threshold threshold);

struct explanation {
	struct rx_plan plan;
	bool by_daemon; /* there is no inline form */
	uint64_t bytes; /* what thresholds are compared with */
	enum explain_threshold decided_by;
	const char *relation; /* of bytes to the threshold: "<=", ">", ">=", "<" */
	const char *reason;   /* EXPLAIN_NONE: why */
	bool low;             /* in low precision */
	enum rx_mx_format format;
	enum rx_precision_why why_precision;
	uint64_t precision_bytes; /* what low_precision_min is compared with */
};

/* What the communicator and the call say about low precision. */
struct explain_precision {
	bool on;          /* the communicator has it switched on */
	bool int8;        /* and would use INT8 */
	uint32_t request; /* of the call: enum rx_precision_request */
};

/** explain() - @query->copied is not looked at: memory is registered on all ranks or on none */
struct explanation explain(const struct rx_plan_query *query,
	const struct explain_precision *precision, const struct rx_tuning_entry *thresholds);

/** explain_why() - a precision's reason, for people; empty when a threshold is the reason */
const char *explain_why(enum rx_precision_why why);

/** explain_query_ok() - do type and number of elements fit into what can be counted? */
bool explain_query_ok(const struct rx_plan_query *query);

struct explain_range {
	uint64_t first; /* counts */
	uint64_t last;
	struct explanation what; /* of the first */
};

#define EXPLAIN_RANGES_MAX 8u

/** explain_ranges() - counts from 1 to @last in as few ranges of equal plans as possible */
size_t explain_ranges(const struct rx_plan_query *query, const struct explain_precision *precision,
	const struct rx_tuning_entry *thresholds, uint64_t last,
	struct explain_range ranges[EXPLAIN_RANGES_MAX]);

#endif
