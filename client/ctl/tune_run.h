/* SPDX-License-Identifier: MIT */
/*
 * Measurements for rcclxctl tune: rcclx-perf as a child process, with a daemon of its own that
 * reads thresholds from a folder of ours.
 */
#ifndef CTL_TUNE_RUN_H
#define CTL_TUNE_RUN_H

#include "ctl.h"
#include "../../shm/rx_tuning_abi.h"

#include <limits.h>

#define TUNE_SIZES_MAX 24u

struct tune_run {
	char perf[PATH_MAX]; /* the program */
	char dir[64];        /* ours: everything temporary is in it */
};

/* A setting and what to measure with it. */
struct tune_case {
	uint32_t coll;
	uint32_t n_ranks;
	bool registered;
	uint64_t min_bytes; /* as rcclx-perf counts them, times the factor up to max_bytes */
	uint64_t max_bytes;
	uint32_t factor;
	uint32_t n_iterations;
	bool single_copy; /* private memory: peers may read it where it is */
	uint64_t end_ns;  /* when there is no more time, CLOCK_MONOTONIC */
	struct rx_tuning_entry entry;
};

struct tune_times {
	uint32_t n;                     /* 0: there was no time left */
	uint64_t bytes[TUNE_SIZES_MAX]; /* as thresholds count them */
	double us[TUNE_SIZES_MAX];      /* median of the calls */
};

/** tune_run_init() - find rcclx-perf, make the folder, catch SIGINT and SIGTERM */
RX_WARN_UNUSED enum ctl_exit tune_run_init(struct tune_run *run);

/** tune_run_deinit() - remove the folder with all that is in it */
void tune_run_deinit(struct tune_run *run);

/** tune_interrupted() - has a signal come? */
bool tune_interrupted(void);

/**
 * tune_measure() - run one case
 *
 * Return: CTL_EXIT_OK; CTL_EXIT_INTERRUPTED; CTL_EXIT_USAGE: rcclx-perf does not know this
 * collective; CTL_EXIT_FAILED, explained on stderr.
 */
RX_WARN_UNUSED enum ctl_exit tune_measure(
	const struct tune_run *run, const struct tune_case *c, struct tune_times *times_p);

#endif
