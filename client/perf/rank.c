/* SPDX-License-Identifier: MIT */
#include "rank.h"

#include "colls.h"
#include "id_file.h"
#include "sweep.h"
#include "watchdog.h"
#include "../../shm/rx_clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ID_TIMEOUT_NS (60 * RX_NS_PER_SEC)
#define COLLS_MAX     16u

struct rank {
	const struct perf_options *options;
	int core; /* -1: not pinned */
	struct perf_session session;
	struct perf_id_file id_file;
};

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
	if (rank->session.place->rank > 0)
		return perf_id_file_read(&rank->id_file, ID_TIMEOUT_NS, id_p);
	result = rcclx_unique_id_create(rank->session.client, id_p);
	if (result != RCCLX_OK)
		return perf_session_fail(&rank->session, "unique id", result);
	return perf_id_file_write(&rank->id_file, id_p);
}

/* Not in the configuration: it is for benchmarks alone. */
static void set_link_rate(uint64_t rate)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, rate);
	if (rate > 0)
		(void)setenv("RCCLX_LINK_RATE", text, 1);
}

static bool form(struct rank *rank)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct perf_session *session = &rank->session;
	struct rcclx_unique_id id = {{0}};
	rcclx_result result = rcclx_connect(rank->options->socket, NULL, &session->client);

	if (result != RCCLX_OK)
		return perf_session_fail(session, "connect", result);
	if (!take_id(rank, &id))
		return false;
	config.name = "rcclx-perf";
	set_link_rate(rank->options->link_rate);
	result = rcclx_comm_create(session->client, &id, session->place->n_ranks,
		session->place->rank, &config, &session->comm);
	/* All ranks have read it now, or will not. */
	perf_id_file_remove(&rank->id_file);
	return result == RCCLX_OK || perf_session_fail(session, "communicator", result);
}

static void leave(struct rank *rank)
{
	perf_id_file_remove(&rank->id_file);
	if (rcclx_comm_destroy(rank->session.comm) != RCCLX_OK ||
		rcclx_disconnect(rank->session.client) != RCCLX_OK)
		fprintf(stderr, "rcclx-perf: rank %u: %s\n", rank->session.place->rank,
			rcclx_last_error());
}

static bool find_seats(struct rank *rank)
{
	struct perf_session *session = &rank->session;
	uint64_t words[2 * RX_MAX_RANKS] = {0};
	uint32_t n_ranks = session->place->n_ranks;

	words[2 * session->place->rank] = (uint32_t)getpid();
	words[2 * session->place->rank + 1] = (uint64_t)(rank->core + 1);
	if (!perf_session_sum(session, words, 2 * n_ranks))
		return false;
	for (uint32_t r = 0; r < n_ranks; r++)
		session->seats[r] =
			(struct perf_seat){(uint32_t)words[2 * r], (int)words[2 * r + 1] - 1};
	if (session->place->rank == 0)
		perf_choice_ask(rank->options->socket, &session->choice);
	return true;
}

static enum perf_exit measure_one(struct rank *rank)
{
	struct perf_total total;

	if (!perf_sweep(&rank->session, rank->options, &total))
		return PERF_EXIT_FAILED;
	return total.n_wrong ? PERF_EXIT_WRONG : PERF_EXIT_OK;
}

static enum perf_exit measure_all(struct rank *rank)
{
	const struct perf_place *place = rank->session.place;
	struct perf_total totals[COLLS_MAX];
	enum perf_exit status = PERF_EXIT_OK;
	uint32_t n = 0;

	for (; n < COLLS_MAX && perf_coll_at(n); n++) {
		struct perf_options options = perf_options_for(rank->options, perf_coll_at(n));

		if (!perf_sweep(&rank->session, &options, &totals[n]))
			return PERF_EXIT_FAILED;
		if (totals[n].n_wrong)
			status = PERF_EXIT_WRONG;
	}
	if (place->rank == 0)
		perf_print_summary(rank->options, totals, n, place->n_ranks);
	return status;
}

enum perf_exit perf_rank_run(const struct perf_options *options, const struct perf_place *place)
{
	struct rank rank = {.options = options, .core = -1, .session = {.place = place}};
	enum perf_exit status = PERF_EXIT_FAILED;

	if (options->pin)
		rank.core = perf_place_pin(place);
	perf_watchdog_start(options->timeout_s, place->rank, 0);
	if (form(&rank) && find_seats(&rank))
		status = options->all ? measure_all(&rank) : measure_one(&rank);
	perf_watchdog_stop();
	leave(&rank);
	return status;
}
