/* SPDX-License-Identifier: MIT */
#include "device_plan.h"

/*
 * Reasoned, not measured (doc/algorithms.md): an exact operation moves no byte less with a barrier
 * than without, since all ranks are there before the first kernel starts. In low precision what
 * travels through slots is a quarter or half of the bytes; a megabyte takes about as long as the
 * barriers.
 */
#define THRESHOLDS                                                                                 \
	{                                                                                          \
		{                                                                                  \
			[RX_DEVICE_FLAT_MAX] = 0, [RX_DEVICE_TREE_MIN] = RX_DEVICE_NEVER,          \
			[RX_DEVICE_SLOTS_MIN] = 1u << 20, [RX_DEVICE_PUSH_MIN] = RX_DEVICE_NEVER   \
		}                                                                                  \
	}
#define ROW                                                                                        \
	{                                                                                          \
		THRESHOLDS, THRESHOLDS, THRESHOLDS, THRESHOLDS, THRESHOLDS                         \
	}

const struct rx_device_tuning *rx_device_tuning_default(void)
{
	static const struct rx_device_tuning tuning = {
		.entries = {ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW},
	};

	static_assert(RX_TUNING_COLLS == 14 && RX_TUNING_CLASSES == 5, "a place for each");
	return &tuning;
}

const struct rx_device_tuning_entry *rx_device_tuning_for(
	const struct rx_device_tuning *tuning, uint32_t coll, uint32_t n_ranks)
{
	return &tuning->entries[coll < RX_COLL_N ? coll : RX_BARRIER][rx_tuning_class(n_ranks)];
}

const char *rx_device_threshold_name(enum rx_device_threshold threshold)
{
	static const char *const names[RX_DEVICE_THRESHOLD_N] = {
		[RX_DEVICE_FLAT_MAX] = "device_flat_max",
		[RX_DEVICE_TREE_MIN] = "device_tree_min",
		[RX_DEVICE_SLOTS_MIN] = "device_slots_min",
		[RX_DEVICE_PUSH_MIN] = "device_push_min",
	};

	return (uint32_t)threshold < RX_DEVICE_THRESHOLD_N ? names[threshold] : "?";
}

uint64_t rx_device_bytes(uint32_t coll, uint32_t dtype, uint32_t n_ranks, uint64_t count)
{
	bool whole = coll == RX_ALL_REDUCE || coll == RX_REDUCE || coll == RX_BROADCAST ||
		     coll == RX_SEND || coll == RX_RECV;
	uint64_t bytes = 0;

	if (!rx_mul_u64(count, rx_dtype_size(dtype), &bytes) ||
		!rx_mul_u64(bytes, whole ? 1 : n_ranks, &bytes))
		return UINT64_MAX;
	return bytes;
}

static void decide(struct rx_device_plan *plan, const struct rx_device_query *query,
	const struct rx_device_tuning_entry *thresholds, enum rx_device_threshold by)
{
	plan->why = RX_DEVICE_WHY_THRESHOLD;
	plan->decided_by = by;
	plan->above = by == RX_DEVICE_FLAT_MAX ? query->bytes > thresholds->values[by]
					       : query->bytes >= thresholds->values[by];
}

/*
 * Of an allreduce with L ranks on each of D devices, a device is sent (D - 1) * L messages in one
 * shot. In two steps it folds 1 / D of the ranks' parts, of (D - 1) * L messages, and is sent
 * (D - 1) / D of the sums: in messages (1 - 1 / D) * (L + 1) instead of (1 - 1 / D) * L * D.
 */
static bool two_steps_are_less(const struct rx_device_query *query)
{
	return query->n_ranks > query->n_ranks / query->n_devices + 1;
}

static void plan_low(struct rx_device_plan *plan, const struct rx_device_query *query,
	const struct rx_device_tuning_entry *thresholds)
{
	decide(plan, query, thresholds, RX_DEVICE_SLOTS_MIN);
	if (!plan->above)
		return;
	plan->algorithm = query->coll == RX_ALL_REDUCE && two_steps_are_less(query) ? RX_DEV_TREE
										    : RX_DEV_FLAT;
	plan->slots = true;
}

static void plan_exact(struct rx_device_plan *plan, const struct rx_device_query *query,
	const struct rx_device_tuning_entry *thresholds)
{
	decide(plan, query, thresholds, RX_DEVICE_FLAT_MAX);
	if (!plan->above && query->bytes > 0) {
		plan->algorithm = RX_DEV_FLAT;
		plan->slots = true;
		return;
	}
	if (query->coll != RX_ALL_REDUCE)
		return;
	decide(plan, query, thresholds, RX_DEVICE_TREE_MIN);
	if (!plan->above)
		return;
	plan->algorithm = RX_DEV_TREE;
	plan->slots = plan->push;
}

struct rx_device_plan rx_device_plan_make(
	const struct rx_device_query *query, const struct rx_device_tuning_entry *thresholds)
{
	struct rx_device_plan plan = {.algorithm = RX_DEV_DIRECT};

	if (query->coll == RX_SEND || query->coll == RX_RECV) {
		plan.why = RX_DEVICE_WHY_TRANSFER;
		return plan;
	}
	if (query->n_devices < 2) {
		plan.why = RX_DEVICE_WHY_ONE_DEVICE;
		return plan;
	}
	plan.push = query->bytes >= thresholds->values[RX_DEVICE_PUSH_MIN];
	if (query->low)
		plan_low(&plan, query, thresholds);
	else
		plan_exact(&plan, query, thresholds);
	plan.meets = plan.algorithm != RX_DEV_DIRECT;
	return plan;
}

const char *rx_device_algorithm_name(uint32_t algorithm)
{
	static const char *const names[RX_DEV_ALGORITHM_N] = {
		[RX_DEV_DIRECT] = "direct",
		[RX_DEV_FLAT] = "flat",
		[RX_DEV_TREE] = "tree",
	};

	return algorithm < RX_DEV_ALGORITHM_N ? names[algorithm] : "?";
}
