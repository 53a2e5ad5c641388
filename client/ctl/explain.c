/* SPDX-License-Identifier: MIT */
#include "explain.h"

#include "../../shm/rx_fabric_abi.h"

#include <stdlib.h>

const char *explain_threshold_name(enum explain_threshold threshold)
{
	static const char *const names[_EXPLAIN_THRESHOLD_N] = {
		[EXPLAIN_NONE] = "",
		[EXPLAIN_FLAT_MAX] = "flat_max",
		[EXPLAIN_FLAT_MAX_SHARED] = "flat_max_shared",
		[EXPLAIN_CHUNK] = "chunk",
		[EXPLAIN_DIRECT_MIN] = "direct_min",
		[EXPLAIN_STREAM_MIN] = "stream_min",
		[EXPLAIN_LOW_PRECISION_MIN] = "low_precision_min",
		[EXPLAIN_SINGLE_MIN] = "single_min",
	};

	return names[threshold];
}

uint64_t explain_value(const struct rx_tuning_entry *entry, enum explain_threshold threshold)
{
	switch (threshold) {
	case EXPLAIN_FLAT_MAX:
		return entry->flat_max;
	case EXPLAIN_FLAT_MAX_SHARED:
		return entry->flat_max_shared;
	case EXPLAIN_CHUNK:
		return entry->chunk;
	case EXPLAIN_DIRECT_MIN:
		return entry->direct_min;
	case EXPLAIN_STREAM_MIN:
		return entry->stream_min;
	case EXPLAIN_LOW_PRECISION_MIN:
		return entry->low_precision_min;
	case EXPLAIN_SINGLE_MIN:
		return entry->single_min;
	case EXPLAIN_NONE:
	case _EXPLAIN_THRESHOLD_N:
		break;
	}
	return 0;
}

/* Bytes that one rank has for others, for each element of the count. */
static uint64_t unit_of(const struct rx_plan_query *query)
{
	uint64_t unit = rx_dtype_size(query->dtype);

	return rx_coll_personal(query->coll) ? unit * query->n_ranks : unit;
}

bool explain_query_ok(const struct rx_plan_query *query)
{
	uint64_t bytes = 0;

	return rx_dtype_size(query->dtype) > 0 && rx_mul_u64(query->count, unit_of(query), &bytes);
}

static enum explain_threshold flat_threshold(const struct rx_plan_query *query)
{
	return query->cores_shared ? EXPLAIN_FLAT_MAX_SHARED : EXPLAIN_FLAT_MAX;
}

static void explain_staged(const struct rx_plan_query *query,
	const struct rx_tuning_entry *thresholds, struct explanation *what)
{
	if (query->registered && what->bytes < thresholds->direct_min) {
		what->decided_by = EXPLAIN_DIRECT_MIN;
		what->relation = "<";
	} else if (query->coll == RX_ALL_TO_ALL_V) {
		what->reason = "ranks learn the sizes from each other first, memory is private";
	} else {
		what->decided_by = flat_threshold(query);
		what->relation = ">";
	}
}

static void explain_plan(const struct rx_plan_query *query,
	const struct rx_tuning_entry *thresholds, struct explanation *what)
{
	switch (what->plan.algorithm) {
	case RX_ALG_TINY:
		what->reason = "up to 96 bytes travel in the rank's control line";
		break;
	case RX_ALG_FLAT:
		what->decided_by = flat_threshold(query);
		what->relation = "<=";
		break;
	case RX_ALG_DIRECT:
		what->decided_by = EXPLAIN_DIRECT_MIN;
		what->relation = ">=";
		break;
	case RX_ALG_SINGLE:
		what->decided_by = EXPLAIN_SINGLE_MIN;
		what->relation = ">=";
		break;
	case RX_ALG_STAGED:
	case RX_ALG_N:
		explain_staged(query, thresholds, what);
		break;
	}
}

static_assert(RX_ENTRY_PAYLOAD == 96, "the text above names it");

const char *explain_why(enum rx_precision_why why)
{
	static const char *const texts[RX_WHY_N] = {
		[RX_WHY_REQUESTED] = "the call asks for it",
		[RX_WHY_LARGE] = "",
		[RX_WHY_IF_LARGE] = "if a rank sends enough, which they learn from each other",
		[RX_WHY_EXACT] = "the call asks for exact results",
		[RX_WHY_COLL] = "this collective has no form in low precision",
		[RX_WHY_DTYPE] = "low precision is for float32, bfloat16 and float16",
		[RX_WHY_OP] = "low precision is for sum and avg",
		[RX_WHY_ONE_RANK] = "with one rank nothing travels",
		[RX_WHY_OFF] = "low precision is not switched on",
		[RX_WHY_SMALL] = "",
		[RX_WHY_OVER_BUDGET] = "errors were above the budget",
	};

	return texts[why];
}

/* What is in low precision goes through staging. */
static void explain_low(const struct rx_plan_query *query,
	const struct explain_precision *precision, const struct rx_tuning_entry *thresholds,
	struct explanation *what)
{
	const struct rx_precision settings = {
		.flags = (precision->on ? RX_PRECISION_ON_FLAGS : 0) |
			 (precision->int8 ? RX_PRECISION_AS_INT8 : 0),
	};
	const struct rx_precision_query ask = {
		.coll = query->coll,
		.dtype = query->dtype,
		.op = query->op,
		.n_ranks = query->n_ranks,
		.elements = rx_precision_elements(query->coll, query->count, query->n_ranks),
		.request = precision->request,
	};
	uint8_t flags = 0;

	what->precision_bytes = ask.elements * rx_dtype_size(query->dtype);
	flags = rx_precision_flags(
		&ask, &settings, thresholds->low_precision_min, &what->why_precision);
	what->format = rx_precision_format(flags);
	what->low = flags != 0 && !(flags & RX_SIG_IF_LARGE);
	if (!what->low)
		return;
	what->plan = (struct rx_plan){.algorithm = RX_ALG_STAGED};
	what->decided_by = EXPLAIN_NONE;
	what->relation = "";
	what->reason = "low precision goes through staging, whatever the memory";
}

struct explanation explain(const struct rx_plan_query *query,
	const struct explain_precision *precision, const struct rx_tuning_entry *thresholds)
{
	struct rx_plan_query whole = *query;
	struct explanation what = {
		.by_daemon = query->coll == RX_SEND || query->coll == RX_RECV,
		.bytes = query->count * unit_of(query),
		.relation = "",
		.reason = "",
	};

	whole.copied = !query->registered;
	what.plan = rx_plan_make(&whole, thresholds);
	if (what.by_daemon)
		what.reason = "send and recv are executed by the daemon";
	else
		explain_plan(query, thresholds, &what);
	explain_low(query, precision, thresholds, &what);
	return what;
}

static bool same_plan(const struct explanation *a, const struct explanation *b)
{
	if (a->by_daemon && b->by_daemon)
		return true;
	return a->low == b->low && a->plan.algorithm == b->plan.algorithm &&
	       a->plan.stream == b->plan.stream && a->decided_by == b->decided_by;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The first count in low precision, if the threshold decides; 0: it is the same for all. */
static uint64_t first_large(
	const struct rx_plan_query *query, const struct rx_tuning_entry *thresholds)
{
	uint64_t unit =
		rx_precision_elements(query->coll, 1, query->n_ranks) * rx_dtype_size(query->dtype);

	return thresholds->low_precision_min / unit + (thresholds->low_precision_min % unit != 0);
}

size_t explain_ranges(const struct rx_plan_query *query, const struct explain_precision *precision,
	const struct rx_tuning_entry *thresholds, uint64_t last,
	struct explain_range ranges[EXPLAIN_RANGES_MAX])
{
	/* A plan can change only behind these numbers of bytes. */
	const uint64_t borders[] = {RX_ENTRY_PAYLOAD, RX_FLAT_BYTES,
		explain_value(thresholds, flat_threshold(query)), thresholds->direct_min - 1,
		thresholds->stream_min - 1, (uint64_t)thresholds->single_min - 1};
	uint64_t starts[RX_ARRAY_SIZE(borders) + 2] = {1, first_large(query, thresholds)};
	size_t n = 0;

	static_assert(RX_ARRAY_SIZE(starts) <= EXPLAIN_RANGES_MAX, "a range for each start");
	for (size_t i = 0; i < RX_ARRAY_SIZE(borders); i++)
		/* The border of a threshold of 0 is UINT64_MAX: behind the last count. */
		starts[i + 2] = borders[i] / unit_of(query) + 1;
	qsort(starts, RX_ARRAY_SIZE(starts), sizeof(starts[0]), by_value);
	for (size_t i = 0; i < RX_ARRAY_SIZE(starts) && starts[i] <= last; i++) {
		struct rx_plan_query at = *query;
		struct explanation what;

		if (starts[i] == 0)
			continue;
		at.count = starts[i];
		what = explain(&at, precision, thresholds);
		if (n > 0 && same_plan(&ranges[n - 1].what, &what))
			continue;
		if (n > 0)
			ranges[n - 1].last = starts[i] - 1;
		ranges[n++] =
			(struct explain_range){.first = starts[i], .last = last, .what = what};
	}
	return n;
}
