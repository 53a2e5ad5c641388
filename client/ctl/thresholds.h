/* SPDX-License-Identifier: MIT */
/* The thresholds in force, and where each comes from: the daemon's, or those compiled in. */
#ifndef CTL_THRESHOLDS_H
#define CTL_THRESHOLDS_H

#include "admin.h"
#include "explain.h"

struct thresholds {
	struct rx_tuning table;
	/* NULL: compiled default */
	char *from[RX_TUNING_COLLS][RX_TUNING_CLASSES][_EXPLAIN_THRESHOLD_N];
	char *dir; /* NULL: the daemon reads no files */
	bool of_daemon;
	uint32_t n_cores; /* of the node */
};

/** thresholds_get() - ask the daemon; compiled defaults where none answers */
RX_WARN_UNUSED enum ctl_exit thresholds_get(const char *socket, struct thresholds *thresholds);

/** thresholds_from() - where a threshold comes from: "compiled default", "FILE:LINE" */
const char *thresholds_from(const struct thresholds *thresholds, uint32_t coll, uint32_t n_ranks,
	enum explain_threshold threshold);

/** thresholds_deinit() - free what it owns */
void thresholds_deinit(struct thresholds *thresholds);

#endif
