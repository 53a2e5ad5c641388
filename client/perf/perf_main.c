/* SPDX-License-Identifier: MIT */
/*
 * rcclx-perf: how fast collectives are on this node. See rcclx-perf(1).
 *
 * One program in two roles. Started by a user it is the parent (spawn.c): it finds or starts the
 * daemon, and runs itself once per rank. Started by the parent, by mpirun, torchrun or srun, it is
 * a rank (rank.c). Rank 0 prints.
 */
#include "options.h"
#include "place.h"
#include "rank.h"
#include "spawn.h"

#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_RANKS 2u

static bool root_exists(const struct perf_options *options, uint32_t n_ranks)
{
	if (options->root < n_ranks)
		return true;
	fprintf(stderr, "rcclx-perf: --root %u: there are %u ranks, from 0 on\n", options->root,
		n_ranks);
	return false;
}

static int run_under_launcher(const struct perf_options *options, const struct perf_place *place)
{
	if (!root_exists(options, place->n_ranks))
		return PERF_EXIT_USAGE;
	if (!options->private_daemon)
		return (int)perf_rank_run(options, place);
	fprintf(stderr,
		"rcclx-perf: --private does not work under %s, whose ranks would each start a "
		"daemon: start one before, or let rcclx-perf start the ranks (--ranks)\n",
		place->launcher);
	return PERF_EXIT_USAGE;
}

static int run(int argc, char **argv, struct perf_options *options)
{
	struct perf_place place = {
		.rank = options->rank,
		.n_ranks = options->n_ranks,
		.local_rank = options->rank,
	};

	if (options->n_ranks == 0) {
		enum perf_place_found found =
			options->spawned ? PERF_PLACE_NONE : perf_place_from_env(&place);

		if (found == PERF_PLACE_BAD)
			return PERF_EXIT_USAGE;
		if (found == PERF_PLACE_FOUND)
			return run_under_launcher(options, &place);
		options->n_ranks = DEFAULT_RANKS;
		place.n_ranks = DEFAULT_RANKS;
	}
	if (!root_exists(options, options->n_ranks))
		return PERF_EXIT_USAGE;
	return options->spawned ? (int)perf_rank_run(options, &place)
				: perf_spawn(argc, argv, options);
}

int main(int argc, char **argv)
{
	struct perf_options options;
	int status = 0;

	switch (perf_options_parse(argc, argv, &options)) {
	case PERF_PARSED_DONE:
		return EXIT_SUCCESS;
	case PERF_PARSED_BAD:
		return PERF_EXIT_USAGE;
	case PERF_PARSED_RUN:
		break;
	}
	status = run(argc, argv, &options);
	/* The parent tells wrong results and failures apart in its ranks; users need not. */
	return status == PERF_EXIT_FAILED && !options.spawned ? EXIT_FAILURE : status;
}
