/* SPDX-License-Identifier: MIT */
/* Output: the table that users of nccl-tests know, or JSON, one object per line. */
#ifndef PERF_PRINT_H
#define PERF_PRINT_H

#include "choice.h"
#include "error.h"
#include "measure.h"
#include "options.h"

struct perf_row {
	uint64_t bytes;
	uint64_t count;
	uint64_t largest; /* block or message, elements */
	const struct perf_choice *choice;
	struct perf_times times;
	bool checked;
	uint64_t n_wrong; /* elements, on all ranks together */
	bool has_error;   /* against fp64, of all ranks together: */
	struct perf_error error;
};

/* Where a rank runs. */
struct perf_seat {
	uint32_t pid;
	int core; /* -1: not pinned */
};

/**
 * perf_algbw() - GB/s: bytes over the median time; 0 when there are no bytes
 *
 * Not over the mean, which on a machine with other work says more about that work.
 */
double perf_algbw(const struct perf_row *row);

/** perf_executor_name() - who does the work of the measured, blocking calls */
const char *perf_executor_name(const struct perf_options *options);

/** perf_algorithm_name() - what the library chooses for @row; "?" when the daemon did not tell */
const char *perf_algorithm_name(
	const struct perf_options *options, const struct perf_row *row, uint32_t n_ranks);

/** perf_precision_name() - of the measured calls: "exact", "fp8" or "int8" */
const char *perf_precision_name(const struct perf_options *options, uint32_t n_ranks);

/** perf_in_low_precision() - are the measured calls, so that they are compared with that? */
bool perf_in_low_precision(const struct perf_options *options, uint32_t n_ranks);

/** perf_print_header() - lines before the table; nothing for JSON */
void perf_print_header(
	const struct perf_options *options, const struct perf_seat *seats, uint32_t n_ranks);

/** perf_print_row() - one size, at once */
void perf_print_row(
	const struct perf_options *options, const struct perf_row *row, uint32_t n_ranks);

/* What one collective's sizes amount to. */
struct perf_total {
	const struct perf_coll *coll;
	uint32_t n_rows;
	double busbw_sum;
	double busbw_best;
	uint64_t smallest_bytes;
	double smallest_us; /* p50 */
	uint64_t n_wrong;
};

/** perf_total_add() - one more size */
void perf_total_add(struct perf_total *total, const struct perf_row *row, uint32_t n_ranks);

/** perf_print_footer() - wrong elements and mean bus bandwidth; nothing for JSON */
void perf_print_footer(const struct perf_options *options, const struct perf_total *total);

/** perf_print_summary() - one line per collective; nothing for JSON */
void perf_print_summary(const struct perf_options *options, const struct perf_total *totals,
	uint32_t n, uint32_t n_ranks);

#endif
