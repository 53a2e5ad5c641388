/* SPDX-License-Identifier: MIT */
#include "explain_devices.h"

#include <inttypes.h>
#include <stdio.h>

struct choice {
	uint64_t bytes;
	struct rx_device_plan plan;
	bool low;
	uint64_t value; /* of the threshold */
	const char *relation;
	const char *from;
};

/* Devices have no INT8. */
static struct choice choice_of(const struct rx_plan_query *query, uint32_t n_devices,
	const struct explanation *what, const struct thresholds *thresholds)
{
	const struct rx_device_tuning_entry *entry =
		rx_device_tuning_for(&thresholds->devices, query->coll, query->n_ranks);
	struct rx_device_query ask = {
		.coll = query->coll,
		.n_ranks = query->n_ranks,
		.n_devices = n_devices,
		.bytes = rx_device_bytes(query->coll, query->dtype, query->n_ranks, query->count),
		.low = what->low && what->format != RX_MX_INT8,
	};
	struct choice choice = {.bytes = ask.bytes, .low = ask.low};

	choice.plan = rx_device_plan_make(&ask, entry);
	choice.value = entry->values[choice.plan.decided_by];
	choice.from = thresholds_device_from(
		thresholds, query->coll, query->n_ranks, choice.plan.decided_by);
	if (choice.plan.decided_by == RX_DEVICE_FLAT_MAX)
		choice.relation = choice.plan.above ? ">" : "<=";
	else
		choice.relation = choice.plan.above ? ">=" : "<";
	return choice;
}

static const char *reason(const struct choice *choice)
{
	return choice->plan.why == RX_DEVICE_WHY_ONE_DEVICE
		       ? "all memory is on one GPU, nothing travels between them"
		       : "one GPU copies from one rank to the other";
}

void explain_devices_show(const struct rx_plan_query *query, uint32_t n_devices,
	const struct explanation *what, const struct thresholds *thresholds)
{
	struct choice choice = choice_of(query, n_devices, what, thresholds);

	printf("on %u GPU%s  %s%s, %s%s\n", n_devices, n_devices > 1 ? "s" : " ",
		rx_device_algorithm_name(choice.plan.algorithm), choice.plan.push ? ", pushed" : "",
		choice.low ? "fp8" : "exact",
		choice.low ? (choice.plan.slots ? ", encoded between GPUs" : ", in whole values")
			   : "");
	if (choice.plan.why == RX_DEVICE_WHY_THRESHOLD)
		printf("  because  %" PRIu64 " bytes in the larger buffer %s %s %" PRIu64
		       "  [%s]\n",
			choice.bytes, choice.relation,
			rx_device_threshold_name(choice.plan.decided_by), choice.value,
			choice.from);
	else
		printf("  because  %s  [fixed]\n", reason(&choice));
	if (n_devices > 1)
		printf("  but      through host memory where GPUs do not reach each other: rcclxctl "
		       "devices\n");
	if (choice.plan.meets)
		printf("  but      direct while GPUs have no room for it: rcclxctl devices\n");
}

json_t *explain_devices_json(const struct rx_plan_query *query, uint32_t n_devices,
	const struct explanation *what, const struct thresholds *thresholds)
{
	struct choice choice = choice_of(query, n_devices, what, thresholds);
	json_t *rule = NULL;

	if (choice.plan.why == RX_DEVICE_WHY_THRESHOLD)
		rule = json_pack("{s:s, s:s, s:I, s:s}", "threshold",
			rx_device_threshold_name(choice.plan.decided_by), "relation",
			choice.relation, "value", (json_int_t)choice.value, "from", choice.from);
	else
		rule = json_pack("{s:s, s:s}", "text", reason(&choice), "from", "fixed");
	return json_pack("{s:i, s:s, s:b, s:b, s:b, s:I, s:o}", "count", (int)n_devices,
		"algorithm", rx_device_algorithm_name(choice.plan.algorithm), "push",
		choice.plan.push, "low_precision", choice.low, "encoded",
		choice.plan.slots && choice.low, "bytes", (json_int_t)choice.bytes, "rule", rule);
}
