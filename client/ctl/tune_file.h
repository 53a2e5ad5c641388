/* SPDX-License-Identifier: MIT */
/* Tuning files, written: see rcclx-tuning(5). */
#ifndef CTL_TUNE_FILE_H
#define CTL_TUNE_FILE_H

#include "explain.h"

/* What a file says. A threshold that is not set is not mentioned. */
struct tune_result {
	struct rx_tuning table;
	bool set[RX_TUNING_COLLS][RX_TUNING_CLASSES][_EXPLAIN_THRESHOLD_N];
};

/** tune_file_case() - all thresholds of one collective and class; false: explained on stderr */
RX_WARN_UNUSED bool tune_file_case(
	const char *path, uint32_t coll, uint32_t n_ranks, const struct rx_tuning_entry *entry);

/**
 * tune_file_write() - the whole result, complete or not at all
 * @heading: a line of comment
 */
RX_WARN_UNUSED bool tune_file_write(
	const char *path, const char *heading, const struct tune_result *result);

/** tune_file_set() - a threshold of an entry */
void tune_file_set(struct rx_tuning_entry *entry, enum explain_threshold threshold, uint64_t value);

#endif
