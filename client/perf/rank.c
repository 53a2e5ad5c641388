/* SPDX-License-Identifier: MIT */
#include "rank.h"

#include "check.h"
#include "colls.h"
#include "id_file.h"
#include "measure.h"
#include "print.h"
#include "watchdog.h"
#include "../../kernels/coll_types.h"
#include "../../shm/rx_clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID_TIMEOUT_NS (60 * RX_NS_PER_SEC)
#define CHECK_ROUNDS  2u
#define POISON        0xa5
#define PAGE          4096u

struct rank {
	const struct perf_options *options;
	const struct perf_place *place;
	int core; /* -1: not pinned */
	struct rcclx_client *client;
	struct rcclx_comm *comm;
	struct perf_id_file id_file;
	void *send; /* NULL: no data */
	void *recv;
	uint32_t n_data; /* sets of data made so far: no two are alike */
	uint64_t scalar;
};

static bool fail(const struct rank *rank, const char *what, rcclx_result result)
{
	const char *why = rcclx_last_error();

	fprintf(stderr, "rcclx-perf: rank %u: %s: %s%s%s\n", rank->place->rank, what,
		rcclx_strerror(result), *why ? ": " : "", why);
	return false;
}

static bool take_spawned_id(const struct rank *rank, struct rcclx_unique_id *id_p)
{
	if (pread(rank->options->id_fd, id_p->bytes, sizeof(id_p->bytes), 0) == sizeof(id_p->bytes))
		return true;
	fprintf(stderr, "rcclx-perf: --spawned is for rcclx-perf itself: use --ranks\n");
	return false;
}

static bool take_id(struct rank *rank, struct rcclx_unique_id *id_p)
{
	rcclx_result result = RCCLX_OK;

	if (rank->options->spawned)
		return take_spawned_id(rank, id_p);
	if (!perf_id_file_init(&rank->id_file, rank->options->id_file))
		return false;
	if (rank->place->rank > 0)
		return perf_id_file_read(&rank->id_file, ID_TIMEOUT_NS, id_p);
	result = rcclx_unique_id_create(rank->client, id_p);
	if (result != RCCLX_OK)
		return fail(rank, "unique id", result);
	return perf_id_file_write(&rank->id_file, id_p);
}

static bool form(struct rank *rank)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_unique_id id = {{0}};
	rcclx_result result = rcclx_connect(rank->options->socket, NULL, &rank->client);

	if (result != RCCLX_OK)
		return fail(rank, "connect", result);
	if (!take_id(rank, &id))
		return false;
	config.name = "rcclx-perf";
	result = rcclx_comm_create(
		rank->client, &id, rank->place->n_ranks, rank->place->rank, &config, &rank->comm);
	/* All ranks have read it now, or will not. */
	perf_id_file_remove(&rank->id_file);
	return result == RCCLX_OK || fail(rank, "communicator", result);
}

static bool new_buffer(const struct rank *rank, uint64_t bytes, void **buffer_p)
{
	rcclx_result result = RCCLX_OK;

	/* Whole pages, and never none, so that there is an address for a count of 0. */
	bytes = rx_align_up(rx_max_u64(bytes, 1), PAGE);
	if (!rank->options->registered) {
		*buffer_p = aligned_alloc(PAGE, bytes);
		if (!*buffer_p)
			fprintf(stderr, "rcclx-perf: rank %u: no memory for %" PRIu64 " bytes\n",
				rank->place->rank, bytes);
		return *buffer_p;
	}
	result = rcclx_mem_alloc(rank->client, bytes, buffer_p);
	return result == RCCLX_OK || fail(rank, "registered memory", result);
}

static bool new_buffers(struct rank *rank)
{
	uint64_t bytes = rank->options->max_bytes;

	if (!rank->options->coll->has_data)
		return true;
	if (!new_buffer(rank, bytes, &rank->send))
		return false;
	if (!rank->options->in_place)
		return new_buffer(rank, bytes, &rank->recv);
	rank->recv = rank->send;
	return true;
}

static void free_buffer(const struct rank *rank, void *buffer)
{
	rcclx_result result = RCCLX_OK;

	if (!rank->options->registered)
		free(buffer);
	else if (buffer)
		result = rcclx_mem_free(rank->client, buffer);
	if (result != RCCLX_OK)
		(void)fail(rank, "free memory", result);
}

static void leave(struct rank *rank)
{
	perf_id_file_remove(&rank->id_file);
	if (rank->recv != rank->send)
		free_buffer(rank, rank->recv);
	free_buffer(rank, rank->send);
	if (rcclx_comm_destroy(rank->comm) != RCCLX_OK ||
		rcclx_disconnect(rank->client) != RCCLX_OK)
		fprintf(stderr, "rcclx-perf: rank %u: %s\n", rank->place->rank, rcclx_last_error());
}

/* New data in the send buffer, and something else where the result goes. */
static struct perf_data renew_data(struct rank *rank, uint64_t count)
{
	struct perf_data data = {
		.seed = rank->options->seed,
		.iteration = rank->n_data++,
		.dtype = rank->options->dtype,
	};

	perf_data_fill(&data, rank->place->rank, 0, count, rank->send);
	rank->scalar = perf_data_scalar(&data, rank->place->rank);
	if (rank->recv != rank->send)
		memset(rank->recv, POISON, count * rx_dtype_size(data.dtype));
	return data;
}

static bool compare(
	const struct rank *rank, const struct perf_data *data, uint64_t count, uint64_t *n_wrong)
{
	struct perf_fold fold;

	if (!perf_fold_init(
		    &fold, data, rank->options->op, rank->place->n_ranks, rank->place->rank)) {
		fprintf(stderr, "rcclx-perf: rank %u: no memory to check\n", rank->place->rank);
		return false;
	}
	*n_wrong += perf_count_wrong(&fold, rank->options->coll->expect, rank->recv, count);
	perf_fold_deinit(&fold);
	return true;
}

/* Calls with new data each: what the timed calls, all alike, would not show. */
static bool check_rounds(struct rank *rank, const struct perf_call *call, uint64_t *n_wrong)
{
	for (uint32_t i = 0; i < CHECK_ROUNDS; i++) {
		struct perf_data data = renew_data(rank, call->count);
		rcclx_result result = rank->options->coll->run(call);

		if (result != RCCLX_OK)
			return fail(rank, rank->options->coll->name, result);
		if (!compare(rank, &data, call->count, n_wrong))
			return false;
	}
	return true;
}

static bool sum_over_ranks(const struct rank *rank, uint64_t *values, uint32_t n)
{
	rcclx_result result =
		rcclx_all_reduce(rank->comm, values, values, n, RCCLX_UINT64, RCCLX_SUM, NULL);

	return result == RCCLX_OK || fail(rank, "sum over ranks", result);
}

static bool measure_size(struct rank *rank, uint64_t count, struct perf_row *row)
{
	const struct perf_options *options = rank->options;
	bool check = options->check && options->coll->expect;
	struct perf_data data = {0};
	struct perf_call call = {
		.comm = rank->comm,
		.send = rank->send,
		.recv = rank->recv,
		.count = count,
		.dtype = options->dtype,
		.op = options->op,
		.config = RCCLX_CALL_CONFIG_INIT,
	};
	rcclx_result result = RCCLX_OK;

	call.config.executor = options->executor;
	if (options->op == RX_PREMUL_SUM)
		call.config.scalar = &rank->scalar;
	if (options->coll->has_data)
		data = renew_data(rank, count);
	result = perf_measure(
		options->coll, &call, options->n_warmup, options->n_iterations, &row->times);
	if (result != RCCLX_OK)
		return fail(rank, options->coll->name, result);
	row->checked = check;
	/* In place the timed calls have reduced their own results. */
	if (check && !options->in_place && !compare(rank, &data, count, &row->n_wrong))
		return false;
	if (check && !check_rounds(rank, &call, &row->n_wrong))
		return false;
	return true;
}

static bool print_header(const struct rank *rank)
{
	struct perf_seat seats[RX_MAX_RANKS] = {{0}};
	uint64_t words[2 * RX_MAX_RANKS] = {0};
	uint32_t n_ranks = rank->place->n_ranks;

	words[2 * rank->place->rank] = (uint32_t)getpid();
	words[2 * rank->place->rank + 1] = (uint64_t)(rank->core + 1);
	if (!sum_over_ranks(rank, words, 2 * n_ranks))
		return false;
	for (uint32_t r = 0; r < n_ranks; r++)
		seats[r] = (struct perf_seat){(uint32_t)words[2 * r], (int)words[2 * r + 1] - 1};
	if (rank->place->rank == 0)
		perf_print_header(rank->options, seats, n_ranks);
	return true;
}

static enum perf_exit measure_all(struct rank *rank)
{
	const struct perf_options *options = rank->options;
	uint32_t size = options->coll->has_data ? rx_dtype_size(options->dtype) : 1;
	uint64_t bytes = options->min_bytes, n_wrong = 0, n_local_wrong = 0;
	uint32_t n_rows = 0;
	double busbw = 0;

	do {
		struct perf_row row = {.bytes = bytes - bytes % size, .count = bytes / size};

		perf_watchdog_start(options->timeout_s, rank->place->rank, row.bytes);
		if (!measure_size(rank, row.count, &row))
			return PERF_EXIT_FAILED;
		/* Own errors count even if the sum over the ranks were wrong too. */
		n_local_wrong += row.n_wrong;
		if (!sum_over_ranks(rank, &row.n_wrong, 1))
			return PERF_EXIT_FAILED;
		n_wrong += row.n_wrong;
		n_rows++;
		busbw += perf_algbw(&row) * options->coll->bus_factor(rank->place->n_ranks);
		if (rank->place->rank == 0)
			perf_print_row(options, &row, rank->place->n_ranks);
		bytes = perf_next_bytes(options, bytes);
	} while (options->coll->has_data && bytes <= options->max_bytes);
	perf_watchdog_stop();
	if (rank->place->rank == 0)
		perf_print_footer(options, n_wrong, busbw / n_rows);
	return n_wrong || n_local_wrong ? PERF_EXIT_WRONG : PERF_EXIT_OK;
}

enum perf_exit perf_rank_run(const struct perf_options *options, const struct perf_place *place)
{
	struct rank rank = {.options = options, .place = place, .core = -1};
	enum perf_exit status = PERF_EXIT_FAILED;

	if (options->pin)
		rank.core = perf_place_pin(place);
	perf_watchdog_start(options->timeout_s, place->rank, 0);
	if (form(&rank) && new_buffers(&rank) && print_header(&rank))
		status = measure_all(&rank);
	perf_watchdog_stop();
	leave(&rank);
	return status;
}
