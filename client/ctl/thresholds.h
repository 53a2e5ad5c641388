/* SPDX-License-Identifier: MIT */
/* The thresholds in force, and where each comes from: the daemon's, or those compiled in. */
#ifndef CTL_THRESHOLDS_H
#define CTL_THRESHOLDS_H

#include "admin.h"
#include "explain.h"
#include "../../kernels/device_plan.h"

struct thresholds {
	struct rx_tuning table;
	struct rx_device_tuning devices;
	/* NULL: compiled default */
	char *from[RX_TUNING_COLLS][RX_TUNING_CLASSES][_EXPLAIN_THRESHOLD_N];
	char *device_from[RX_TUNING_COLLS][RX_TUNING_CLASSES][RX_DEVICE_THRESHOLD_N];
	char *dir; /* NULL: the daemon reads no files */
	bool of_daemon;
	uint32_t n_cores; /* of the node */
};

/** thresholds_get() - ask the daemon; compiled defaults where none answers */
RX_WARN_UNUSED enum ctl_exit thresholds_get(const char *socket, struct thresholds *thresholds);

/** thresholds_from() - where a threshold comes from: "compiled default", "FILE:LINE" */
const char *thresholds_from(const struct thresholds *thresholds, uint32_t coll, uint32_t n_ranks,
	enum explain_threshold threshold);

/** thresholds_device_from() - the same of a threshold between devices */
const char *thresholds_device_from(const struct thresholds *thresholds, uint32_t coll,
	uint32_t n_ranks, enum rx_device_threshold threshold);

/** thresholds_deinit() - free what it owns */
void thresholds_deinit(struct thresholds *thresholds);

#endif
