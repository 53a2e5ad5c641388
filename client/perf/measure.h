/* SPDX-License-Identifier: MIT */
/*
 * Timing of one size. Every call is timed on every rank, and the slowest rank's time counts for
 * each call: a collective is done when the last rank has its result.
 */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "colls.h"

struct perf_times {
	uint32_t n; /* calls */
	double mean_us;
	double p50_us;
	double p99_us;
};

/**
 * perf_measure() - warm up, then time calls
 * @n_iterations: 0: as many as fit 80 ms, 20 to 20000; the ranks agree on one number
 *
 * Return: what the first failing call returned.
 */
rcclx_result perf_measure(const struct perf_coll *coll, const struct perf_call *call,
	uint32_t n_warmup, uint32_t n_iterations, struct perf_times *times_p);

/** perf_times_from() - statistics of @n > 0 durations, which it sorts */
struct perf_times perf_times_from(double *us, uint32_t n);

/** perf_iterations() - calls that fit the time for one size */
uint32_t perf_iterations(double us_per_call);

#endif
