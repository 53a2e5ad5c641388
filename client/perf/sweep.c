/* SPDX-License-Identifier: MIT */
#include "sweep.h"

#include "check.h"
#include "colls.h"
#include "layout.h"
#include "measure.h"
#include "watchdog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_ROUNDS 2u
#define POISON       0xa5
#define PAGE         4096u

struct sweep {
	struct perf_session *session;
	const struct perf_options *options;
	uint32_t elem_bytes; /* no data: 1 */
	void *send_buffer;   /* NULL: no data */
	void *recv_buffer;   /* in place: the same */
	/* Of the size that is measured now. */
	struct perf_layout layout;
	struct perf_call call;
	uint64_t scalar;
};

bool perf_session_fail(const struct perf_session *session, const char *what, rcclx_result result)
{
	const char *why = rcclx_last_error();

	fprintf(stderr, "rcclx-perf: rank %u: %s: %s%s%s\n", session->place->rank, what,
		rcclx_strerror(result), *why ? ": " : "", why);
	return false;
}

bool perf_session_sum(const struct perf_session *session, uint64_t *values, uint32_t n)
{
	rcclx_result result =
		rcclx_all_reduce(session->comm, values, values, n, RCCLX_UINT64, RCCLX_SUM, NULL);

	return result == RCCLX_OK || perf_session_fail(session, "sum over ranks", result);
}

static bool new_buffer(const struct sweep *sweep, uint64_t bytes, void **buffer_p)
{
	rcclx_result result = RCCLX_OK;

	/* Whole pages, and never none, so that there is an address for a count of 0. */
	bytes = rx_align_up(rx_max_u64(bytes, 1), PAGE);
	if (!sweep->options->registered) {
		*buffer_p = aligned_alloc(PAGE, bytes);
		if (!*buffer_p)
			fprintf(stderr, "rcclx-perf: rank %u: no memory for %" PRIu64 " bytes\n",
				sweep->session->place->rank, bytes);
		return *buffer_p;
	}
	result = rcclx_mem_alloc(sweep->session->client, bytes, buffer_p);
	return result == RCCLX_OK || perf_session_fail(sweep->session, "registered memory", result);
}

static struct perf_layout layout_of(const struct sweep *sweep, uint64_t bytes)
{
	const struct perf_place *place = sweep->session->place;

	return perf_layout_make(sweep->options->coll, bytes / sweep->elem_bytes, place->n_ranks,
		place->rank, sweep->options->root);
}

static bool new_buffers(struct sweep *sweep)
{
	const struct perf_options *options = sweep->options;
	uint64_t send = 0, recv = 0, bytes = 0;

	if (!perf_coll_has_data(options->coll))
		return true;
	for (uint32_t i = 0; perf_size_at(options, i, &bytes); i++) {
		struct perf_layout layout = layout_of(sweep, bytes);

		send = rx_max_u64(send, layout.send * sweep->elem_bytes);
		recv = rx_max_u64(recv, layout.recv * sweep->elem_bytes);
	}
	if (options->in_place)
		send = rx_max_u64(send, recv);
	if (!new_buffer(sweep, send, &sweep->send_buffer))
		return false;
	if (!options->in_place)
		return new_buffer(sweep, recv, &sweep->recv_buffer);
	sweep->recv_buffer = sweep->send_buffer;
	return true;
}

static void free_buffer(const struct sweep *sweep, void *buffer)
{
	rcclx_result result = RCCLX_OK;

	if (!sweep->options->registered)
		free(buffer);
	else if (buffer)
		result = rcclx_mem_free(sweep->session->client, buffer);
	if (result != RCCLX_OK)
		(void)perf_session_fail(sweep->session, "free memory", result);
}

static void free_buffers(struct sweep *sweep)
{
	if (sweep->recv_buffer != sweep->send_buffer)
		free_buffer(sweep, sweep->recv_buffer);
	free_buffer(sweep, sweep->send_buffer);
}

static void prepare(struct sweep *sweep, uint64_t bytes)
{
	const struct perf_options *options = sweep->options;
	uint64_t send_at = 0, recv_at = 0;

	sweep->layout = layout_of(sweep, bytes);
	if (options->in_place) {
		send_at = sweep->layout.send_at * sweep->elem_bytes;
		recv_at = sweep->layout.recv_at * sweep->elem_bytes;
	}
	sweep->call = (struct perf_call){
		.comm = sweep->session->comm,
		.send = sweep->send_buffer ? (uint8_t *)sweep->send_buffer + send_at : NULL,
		.recv = sweep->recv_buffer ? (uint8_t *)sweep->recv_buffer + recv_at : NULL,
		.layout = &sweep->layout,
		.dtype = options->dtype,
		.op = options->op,
		.touch = options->touch,
		.config = RCCLX_CALL_CONFIG_INIT,
	};
	sweep->call.config.executor = options->executor;
	sweep->call.config.precision = options->precision;
	if (options->op == RX_PREMUL_SUM && rx_coll_reduces(options->coll->coll))
		sweep->call.config.scalar = &sweep->scalar;
}

/* Something else where the result goes, then new data to send, which in place may lie there. */
static struct perf_data renew_data(struct sweep *sweep)
{
	uint32_t rank = sweep->session->place->rank;
	struct perf_data data = {
		.seed = sweep->options->seed,
		.iteration = sweep->session->n_data++,
		.dtype = sweep->options->dtype,
	};

	memset(sweep->call.recv, POISON, sweep->layout.recv * sweep->elem_bytes);
	perf_data_fill(&data, rank, 0, sweep->layout.send, sweep->call.send);
	sweep->scalar = perf_data_scalar(&data, rank);
	return data;
}

/* As the library does, which the ranks' environment tells about this one thing. */
static bool gather_bf16(void)
{
	const char *text = secure_getenv("RCCL_LOW_PRECISION_GATHER_BF16");

	return text && strcmp(text, "1") == 0;
}

static bool compare(const struct sweep *sweep, const struct perf_data *data, struct perf_row *row)
{
	const struct perf_options *options = sweep->options;
	struct perf_fold fold;

	if (!perf_fold_init(
		    &fold, data, sweep->options->op, sweep->options->coll, &sweep->layout)) {
		fprintf(stderr, "rcclx-perf: rank %u: no memory to check\n",
			sweep->session->place->rank);
		return false;
	}
	fold.in_low_precision = perf_in_low_precision(options, sweep->layout.n_ranks);
	fold.format = options->precision == RCCLX_PRECISION_INT8 ? RX_MX_INT8 : RX_MX_FP8;
	fold.gather_bf16 = gather_bf16();
	row->n_wrong += perf_count_wrong(&fold, sweep->call.recv);
	if (row->has_error)
		perf_error_add(&row->error, &fold, sweep->call.recv);
	perf_fold_deinit(&fold);
	return true;
}

/* Calls with new data each: what the timed calls, all alike, would not show. */
static bool check_rounds(struct sweep *sweep, struct perf_row *row)
{
	const struct perf_coll *coll = sweep->options->coll;

	for (uint32_t i = 0; i < CHECK_ROUNDS; i++) {
		struct perf_data data = renew_data(sweep);
		rcclx_result result = coll->run(&sweep->call);

		if (result != RCCLX_OK)
			return perf_session_fail(sweep->session, coll->name, result);
		if (!compare(sweep, &data, row))
			return false;
	}
	return true;
}

static bool measure_size(struct sweep *sweep, uint64_t bytes, struct perf_row *row_p)
{
	const struct perf_options *options = sweep->options;
	bool check = (options->check || options->show_error) && options->coll->expect;
	struct perf_row row = {
		.checked = check,
		.has_error = options->show_error &&
			     perf_error_known(options->coll, options->dtype, options->op),
	};
	struct perf_data data = {0};
	rcclx_result result = RCCLX_OK;

	prepare(sweep, bytes);
	row.bytes = sweep->layout.size * sweep->elem_bytes;
	row.count = sweep->layout.count;
	row.largest = sweep->layout.largest;
	row.choice = &sweep->session->choice;
	if (perf_coll_has_data(options->coll))
		data = renew_data(sweep);
	result = perf_measure(
		options->coll, &sweep->call, options->n_warmup, options->n_iterations, &row.times);
	if (result != RCCLX_OK)
		return perf_session_fail(sweep->session, options->coll->name, result);
	/* In place the timed calls have reduced their own results. */
	if (check && !options->in_place && !compare(sweep, &data, &row))
		return false;
	if (check && !check_rounds(sweep, &row))
		return false;
	*row_p = row;
	return true;
}

static bool sum_errors(const struct perf_session *session, struct perf_error *error)
{
	double sums[] = {error->error2, error->exact2};
	rcclx_result result = rcclx_all_reduce(
		session->comm, sums, sums, RX_ARRAY_SIZE(sums), RCCLX_FLOAT64, RCCLX_SUM, NULL);

	if (result == RCCLX_OK)
		result = rcclx_all_reduce(session->comm, &error->worst, &error->worst, 1,
			RCCLX_FLOAT64, RCCLX_MAX, NULL);
	if (result != RCCLX_OK)
		return perf_session_fail(session, "errors of all ranks", result);
	error->error2 = sums[0];
	error->exact2 = sums[1];
	return true;
}

static bool measure_sizes(struct sweep *sweep, struct perf_total *total)
{
	const struct perf_options *options = sweep->options;
	const struct perf_session *session = sweep->session;
	uint32_t n_ranks = session->place->n_ranks;
	uint64_t bytes = 0;

	for (uint32_t i = 0; perf_size_at(options, i, &bytes); i++) {
		struct perf_row row;
		uint64_t n_mine = 0;

		perf_watchdog_start(options->timeout_s, session->place->rank, bytes);
		if (!measure_size(sweep, bytes, &row))
			return false;
		n_mine = row.n_wrong;
		if (!perf_session_sum(session, &row.n_wrong, 1))
			return false;
		if (row.has_error && !sum_errors(session, &row.error))
			return false;
		/* Own errors count even if the sum over the ranks is wrong too. */
		row.n_wrong = rx_max_u64(row.n_wrong, n_mine);
		perf_total_add(total, &row, n_ranks);
		if (session->place->rank == 0)
			perf_print_row(options, &row, n_ranks);
	}
	return true;
}

bool perf_sweep(struct perf_session *session, const struct perf_options *options,
	struct perf_total *total_p)
{
	struct sweep sweep = {
		.session = session,
		.options = options,
		.elem_bytes = perf_coll_has_data(options->coll) ? rx_dtype_size(options->dtype) : 1,
	};
	struct perf_total total = {.coll = options->coll};
	bool ok = false;

	perf_watchdog_start(options->timeout_s, session->place->rank, 0);
	ok = new_buffers(&sweep);
	if (ok && session->place->rank == 0)
		perf_print_header(options, session->seats, session->place->n_ranks);
	ok = ok && measure_sizes(&sweep, &total);
	perf_watchdog_stop();
	free_buffers(&sweep);
	if (ok && session->place->rank == 0)
		perf_print_footer(options, &total);
	if (ok)
		*total_p = total;
	return ok;
}
