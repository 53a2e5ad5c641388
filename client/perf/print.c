/* SPDX-License-Identifier: MIT */
#include "print.h"

#include "../../kernels/coll_extent.h"
#include "../../kernels/coll_plan.h"
#include "../../kernels/coll_types.h"
#include "../../kernels/precision.h"

#include <inttypes.h>
#include <stdio.h>

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
	const struct perf_options *options, const struct perf_row *row, uint32_t n_ranks)
{
	const struct perf_choice *choice = row->choice;
	struct rx_plan_query query = {
		.coll = options->coll->coll,
		.dtype = options->dtype,
		.op = options->op,
		.n_ranks = n_ranks,
		.count = row->largest,
		.registered = options->registered,
		.copied = !options->registered,
	};

	if (options->executor == RCCLX_EXECUTOR_DAEMON)
		return "daemon";
	if (perf_in_low_precision(options, n_ranks))
		return rx_algorithm_name(RX_ALG_STAGED);
	if (!choice || !choice->known)
		return "?";
	query.cores_shared = choice->cores_shared;
	return rx_algorithm_name(
		rx_plan_make(&query, rx_tuning_for(&choice->table, query.coll, n_ranks)).algorithm);
}

bool perf_in_low_precision(const struct perf_options *options, uint32_t n_ranks)
{
	const struct rx_precision_query query = {
		.coll = options->coll->coll,
		.dtype = options->dtype,
		.op = options->op,
		.n_ranks = n_ranks,
		.request = options->precision,
	};

	return rx_precision_flags(&query, &(struct rx_precision){0}, 0, NULL) != 0;
}

const char *perf_precision_name(const struct perf_options *options, uint32_t n_ranks)
{
	if (!perf_in_low_precision(options, n_ranks))
		return "exact";
	return options->precision == RCCLX_PRECISION_INT8 ? "int8" : "fp8";
}

static void print_columns(bool errors)
{
	printf("#%11s %12s %8s %10s %10s %10s %10s %8s %8s %8s%s\n", "size", "count", "type",
		"redop", "time", "p50", "p99", "algbw", "busbw", "#wrong",
		errors ? "     relL2     maxerr" : "");
	printf("#%11s %12s %8s %10s %10s %10s %10s %8s %8s %8s\n", "(B)", "(elements)", "", "",
		"(us)", "(us)", "(us)", "(GB/s)", "(GB/s)", "");
}

void perf_print_header(
	const struct perf_options *options, const struct perf_seat *seats, uint32_t n_ranks)
{
	if (options->json)
		return;
	printf("# rcclx-perf %d.%d.%d %s: nRanks %u minBytes %" PRIu64 " maxBytes %" PRIu64
	       " factor %" PRIu64 " warmup %u executor %s memory %s%s%s",
		RCCLX_VERSION_MAJOR, RCCLX_VERSION_MINOR, RCCLX_VERSION_PATCH, options->coll->name,
		n_ranks, options->min_bytes, options->max_bytes, options->factor, options->n_warmup,
		perf_executor_name(options), options->registered ? "registered" : "private",
		options->in_place ? " in-place" : "", options->touch ? " touched" : "");
	if (rx_coll_has_root(options->coll->coll))
		printf(" root %u", options->root);
	if (options->show_error)
		printf(" precision %s", perf_precision_name(options, n_ranks));
	if (options->link_rate > 0)
		printf(" link %" PRIu64 " B/s", options->link_rate);
	printf("\n#\n# Using cores\n");
	for (uint32_t r = 0; r < n_ranks; r++) {
		printf("#  Rank %2u Pid %7u on core ", r, seats[r].pid);
		if (seats[r].core < 0)
			printf("any\n");
		else
			printf("%d\n", seats[r].core);
	}
	printf("#\n# Bandwidths are those of the median call (p50)\n#\n");
	print_columns(options->show_error);
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
		perf_coll_has_data(coll) ? rx_dtype_name(options->dtype) : "none",
		rx_coll_reduces(coll->coll) ? rx_redop_name(options->op) : "none", n_ranks,
		perf_executor_name(options), perf_algorithm_name(options, row, n_ranks),
		options->registered ? "registered" : "private");
	printf("\"in_place\": %s, \"touch\": %s, \"root\": ", options->in_place ? "true" : "false",
		options->touch ? "true" : "false");
	if (rx_coll_has_root(coll->coll))
		printf("%u, ", options->root);
	else
		printf("null, ");
	printf("\"time_us_p50\": %.3f, \"time_us_p99\": %.3f, \"algbw_gbs\": %.4f, \"busbw_gbs\": "
	       "%.4f, ",
		row->times.p50_us, row->times.p99_us, perf_algbw(row), busbw);
	printf("\"precision\": \"%s\", \"link_rate\": %" PRIu64 ", ",
		perf_precision_name(options, n_ranks), options->link_rate);
	if (row->has_error)
		printf("\"error_l2\": %.3e, \"error_max\": %.3e, ", perf_error_l2(&row->error),
			row->error.worst);
	if (row->checked)
		printf("\"wrong\": %" PRIu64 "}\n", row->n_wrong);
	else
		printf("\"wrong\": null}\n");
}

static void print_line(const struct perf_options *options, const struct perf_row *row, double busbw)
{
	const struct perf_coll *coll = options->coll;

	printf("%12" PRIu64 " %12" PRIu64 " %8s %10s %10.2f %10.2f %10.2f %8.2f %8.2f ", row->bytes,
		row->count, perf_coll_has_data(coll) ? rx_dtype_name(options->dtype) : "none",
		rx_coll_reduces(coll->coll) ? rx_redop_name(options->op) : "none",
		row->times.mean_us, row->times.p50_us, row->times.p99_us, perf_algbw(row), busbw);
	if (row->checked)
		printf("%8" PRIu64, row->n_wrong);
	else
		printf("%8s", "N/A");
	if (row->has_error)
		printf(" %9.2e %10.2e\n", perf_error_l2(&row->error), row->error.worst);
	else
		printf("%s\n", options->show_error ? "       N/A        N/A" : "");
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

void perf_total_add(struct perf_total *total, const struct perf_row *row, uint32_t n_ranks)
{
	double busbw = perf_algbw(row) * total->coll->bus_factor(n_ranks);

	if (total->n_rows++ == 0) {
		total->smallest_bytes = row->bytes;
		total->smallest_us = row->times.p50_us;
	}
	total->busbw_sum += busbw;
	if (busbw > total->busbw_best)
		total->busbw_best = busbw;
	total->n_wrong += row->n_wrong;
}

void perf_print_footer(const struct perf_options *options, const struct perf_total *total)
{
	if (options->json || !perf_coll_has_data(total->coll))
		return;
	if (options->check)
		printf("# Wrong elements    : %" PRIu64 " %s\n", total->n_wrong,
			total->n_wrong ? "FAILED" : "OK");
	printf("# Avg bus bandwidth : %.4f GB/s\n", total->busbw_sum / total->n_rows);
	(void)fflush(stdout);
}

static void print_total(const struct perf_total *total, bool checked)
{
	printf("#%19s ", total->coll->name);
	if (perf_coll_has_data(total->coll))
		printf("%12.2f ", total->busbw_best);
	else
		printf("%12s ", "-");
	printf("%12" PRIu64 " %10.2f ", total->smallest_bytes, total->smallest_us);
	/* Nothing is compared where there is no data. */
	if (checked && perf_coll_has_data(total->coll))
		printf("%8" PRIu64 "\n", total->n_wrong);
	else
		printf("%8s\n", "N/A");
}

void perf_print_summary(const struct perf_options *options, const struct perf_total *totals,
	uint32_t n, uint32_t n_ranks)
{
	if (options->json)
		return;
	printf("#\n# Summary: %u ranks, %s memory\n#%19s %12s %12s %10s %8s\n#%19s %12s %12s %10s "
	       "%8s\n",
		n_ranks, options->registered ? "registered" : "private", "collective", "best busbw",
		"smallest", "p50", "#wrong", "", "(GB/s)", "(B)", "(us)", "");
	for (uint32_t i = 0; i < n; i++)
		print_total(&totals[i], options->check);
	(void)fflush(stdout);
}
