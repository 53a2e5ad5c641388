/* SPDX-License-Identifier: MIT */
/*
 * The search for the thresholds of one collective and number of ranks.
 *
 * Each threshold is a step. In a step candidate settings take turns, round after round, so that
 * whatever else the machine does meets all of them. The best one is measured against the present
 * one in the same way, once more, and is kept only if it wins by more than the noise.
 */
#ifndef CTL_TUNE_SWEEP_H
#define CTL_TUNE_SWEEP_H

#include "explain.h"
#include "tune_run.h"

struct tune_gain {
	enum explain_threshold threshold;
	bool measured;
	bool no_time; /* there was too little for it */
	bool kept;
	uint64_t old_value;
	uint64_t new_value;
	double ratio; /* old time / new time, geometric mean of the sizes it matters for */
	double noise; /* what the ratio must be above 1 by */
	/* Where the gain was largest. */
	uint64_t best_bytes;
	double best_old_us;
	double best_new_us;
};

struct tune_job {
	const struct tune_run *run;
	uint32_t coll;
	uint32_t n_ranks;
	bool cores_shared;
	uint64_t max_bytes;           /* largest message to try */
	uint64_t budget_ns;           /* time to spend, about */
	uint64_t end_ns;              /* not to be exceeded, CLOCK_MONOTONIC; RX_FOREVER: none */
	struct rx_tuning_entry entry; /* in: the present one; out: the best */
	/* Told of the progress: done steps, part of the step in [0, 1]. */
	void (*progress)(void *ctx, uint32_t step, double part, const char *threshold);
	void *ctx;
};

#define TUNE_STEPS 5u

/** tune_job_run() - all steps; return as tune_measure() */
RX_WARN_UNUSED enum ctl_exit tune_job_run(struct tune_job *job, struct tune_gain gains[TUNE_STEPS]);

/** tune_crossing() - how many of the first sizes the first setting should serve, by the logarithms
 * of times; the present number @now wins if it is as good. */
uint32_t tune_crossing(const double *first_us, const double *second_us, uint32_t n, uint32_t now);

/** tune_median() - of @n > 0 values, which it sorts */
double tune_median(double *values, uint32_t n);

#endif
