/* SPDX-License-Identifier: MIT */
/*
 * The choosing between devices: how an operation travels whose ranks have memory on several.
 *
 * Pure, as coll_plan.h. Only the daemon chooses, once for all launches of an operation; rcclxctl
 * explains it with the same functions.
 */
#ifndef RX_DEVICE_PLAN_H
#define RX_DEVICE_PLAN_H

#include "coll_plan.h"
#include "device/device_abi.h"

/* In bytes of the larger of a rank's two buffers. */
enum rx_device_threshold {
	RX_DEVICE_FLAT_MAX,  /* exact: up to here in one shot, through slots */
	RX_DEVICE_TREE_MIN,  /* exact allreduce: from here on in two steps */
	RX_DEVICE_SLOTS_MIN, /* low precision: from here on encoded through slots */
	RX_DEVICE_PUSH_MIN,  /* from here on devices write to others rather than read from them */
	RX_DEVICE_THRESHOLD_N
};

#define RX_DEVICE_NEVER ((uint64_t)INT64_MAX)

struct rx_device_tuning_entry {
	uint64_t values[RX_DEVICE_THRESHOLD_N];
};

struct rx_device_tuning {
	struct rx_device_tuning_entry entries[RX_TUNING_COLLS][RX_TUNING_CLASSES];
};

/** rx_device_tuning_default() - compiled-in thresholds */
const struct rx_device_tuning *rx_device_tuning_default(void);

/** rx_device_tuning_for() - thresholds of a collective; any @coll and @n_ranks */
const struct rx_device_tuning_entry *rx_device_tuning_for(
	const struct rx_device_tuning *tuning, uint32_t coll, uint32_t n_ranks);

/** rx_device_threshold_name() - as in tuning files: "device_flat_max", ... */
const char *rx_device_threshold_name(enum rx_device_threshold threshold);

struct rx_device_query {
	uint32_t coll;
	uint32_t n_ranks;
	uint32_t n_devices; /* that their memory is on */
	uint64_t bytes;     /* rx_device_bytes() */
	bool low;           /* in low precision */
};

enum rx_device_why {
	RX_DEVICE_WHY_THRESHOLD,  /* decided_by says which */
	RX_DEVICE_WHY_ONE_DEVICE, /* nothing travels between devices */
	RX_DEVICE_WHY_TRANSFER,   /* one rank to another: one device copies */
	RX_DEVICE_WHY_N
};

struct rx_device_plan {
	uint32_t algorithm; /* enum rx_dev_algorithm */
	bool push;
	bool meets; /* devices wait for each other */
	bool slots; /* and use slots */
	enum rx_device_why why;
	enum rx_device_threshold decided_by;
	bool above; /* bytes are not less than that threshold; of the _MAX one: more */
};

/** rx_device_bytes() - of the larger buffer of any rank; UINT64_MAX: more than that */
uint64_t rx_device_bytes(uint32_t coll, uint32_t dtype, uint32_t n_ranks, uint64_t count);

/** rx_device_plan_make() - what serves @query, if there is the memory for it */
struct rx_device_plan rx_device_plan_make(
	const struct rx_device_query *query, const struct rx_device_tuning_entry *thresholds);

/** rx_device_algorithm_name() - enum rx_dev_algorithm: "direct", "flat", "tree" */
const char *rx_device_algorithm_name(uint32_t algorithm);

#endif
