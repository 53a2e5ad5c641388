/* SPDX-License-Identifier: MIT */
#include "print.h"

#include "../../kernels/coll_plan.h"
#include "../../kernels/coll_types.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

double perf_algbw(const struct perf_row *row)
{
	if (row->bytes == 0 || row->times.p50_us <= 0)
		return 0;
	return (double)row->bytes / row->times.p50_us / 1e3;
}

const char *perf_executor_name(const struct perf_options *options)
{
	return options->executor == RCCLX_EXECUTOR_DAEMON ? "daemon" : "inline";
}

const char *perf_algorithm_name(
	const struct perf_options *options, uint32_t n_ranks, uint64_t count)
{
	struct rx_plan_query query = {
		.coll = options->coll->coll,
		.dtype = options->dtype,
		.op = options->op,
		.n_ranks = n_ranks,
		.count = count,
		.registered = options->registered,
		.cores_shared = (long)n_ranks > sysconf(_SC_NPROCESSORS_ONLN),
	};
	const struct rx_tuning_entry *thresholds = NULL;

	if (options->executor == RCCLX_EXECUTOR_DAEMON)
		return "daemon";
	/* The compiled-in thresholds, which the daemon gives to every communicator. */
	thresholds = rx_tuning_for(rx_tuning_default(), query.coll, n_ranks);
	return rx_algorithm_name(rx_plan_make(&query, thresholds).algorithm);
}

void perf_print_header(
	const struct perf_options *options, const struct perf_seat *seats, uint32_t n_ranks)
{
	if (options->json)
		return;
	printf("# rcclx-perf %d.%d.%d %s: nRanks %u minBytes %" PRIu64 " maxBytes %" PRIu64
	       " factor %" PRIu64 " warmup %u executor %s memory %s%s\n#\n# Using cores\n",
		RCCLX_VERSION_MAJOR, RCCLX_VERSION_MINOR, RCCLX_VERSION_PATCH, options->coll->name,
		n_ranks, options->min_bytes, options->max_bytes, options->factor, options->n_warmup,
		perf_executor_name(options), options->registered ? "registered" : "private",
		options->in_place ? " in-place" : "");
	for (uint32_t r = 0; r < n_ranks; r++) {
		printf("#  Rank %2u Pid %7u on core ", r, seats[r].pid);
		if (seats[r].core < 0)
			printf("any\n");
		else
			printf("%d\n", seats[r].core);
	}
	printf("#\n# Bandwidths are those of the median call (p50)\n#\n#%11s %12s %8s %10s %10s %10s %10s %8s %8s %8s\n",
		"size", "count", "type", "redop", "time", "p50", "p99", "algbw", "busbw", "#wrong");
	printf("#%11s %12s %8s %10s %10s %10s %10s %8s %8s %8s\n", "(B)", "(elements)", "", "",
		"(us)", "(us)", "(us)", "(GB/s)", "(GB/s)", "");
	(void)fflush(stdout);
}

static void print_json(const struct perf_options *options, const struct perf_row *row,
	uint32_t n_ranks, double busbw)
{
	const struct perf_coll *coll = options->coll;

	printf("{\"collective\": \"%s\", \"bytes\": %" PRIu64 ", \"count\": %" PRIu64
	       ", \"dtype\": \"%s\", \"op\": \"%s\", \"ranks\": %u, \"executor\": \"%s\", "
	       "\"algorithm\": \"%s\", \"memory\": \"%s\", ",
		coll->name, row->bytes, row->count,
		coll->has_data ? rx_dtype_name(options->dtype) : "none",
		coll->has_op ? rx_redop_name(options->op) : "none", n_ranks,
		perf_executor_name(options), perf_algorithm_name(options, n_ranks, row->count),
		options->registered ? "registered" : "private");
	printf("\"time_us_p50\": %.2f, \"time_us_p99\": %.2f, \"algbw_gbs\": %.4f, \"busbw_gbs\": "
	       "%.4f, ",
		row->times.p50_us, row->times.p99_us, perf_algbw(row), busbw);
	if (row->checked)
		printf("\"wrong\": %" PRIu64 "}\n", row->n_wrong);
	else
		printf("\"wrong\": null}\n");
}

static void print_line(const struct perf_options *options, const struct perf_row *row, double busbw)
{
	const struct perf_coll *coll = options->coll;

	printf("%12" PRIu64 " %12" PRIu64 " %8s %10s %10.2f %10.2f %10.2f %8.2f %8.2f ", row->bytes,
		row->count, coll->has_data ? rx_dtype_name(options->dtype) : "none",
		coll->has_op ? rx_redop_name(options->op) : "none", row->times.mean_us,
		row->times.p50_us, row->times.p99_us, perf_algbw(row), busbw);
	if (row->checked)
		printf("%8" PRIu64 "\n", row->n_wrong);
	else
		printf("%8s\n", "N/A");
}

void perf_print_row(
	const struct perf_options *options, const struct perf_row *row, uint32_t n_ranks)
{
	double busbw = perf_algbw(row) * options->coll->bus_factor(n_ranks);

	if (options->json)
		print_json(options, row, n_ranks, busbw);
	else
		print_line(options, row, busbw);
	(void)fflush(stdout);
}

void perf_print_footer(const struct perf_options *options, uint64_t n_wrong, double mean_busbw)
{
	if (options->json)
		return;
	if (options->check)
		printf("# Wrong elements    : %" PRIu64 " %s\n", n_wrong,
			n_wrong ? "FAILED" : "OK");
	if (options->coll->has_data)
		printf("# Avg bus bandwidth : %.4f GB/s\n", mean_busbw);
	(void)fflush(stdout);
}
