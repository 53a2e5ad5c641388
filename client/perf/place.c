/* SPDX-License-Identifier: MIT */
#include "place.h"

#include "../rcclx.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct launcher {
	const char *name;
	const char *rank;
	const char *size;
	const char *local_rank;
	const char *local_size; /* NULL: it has no such variable */
};

/* In the order of looking: the innermost launcher first, as Slurm sets its own for all others. */
static const struct launcher launchers[] = {
	{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
		"OMPI_COMM_WORLD_LOCAL_SIZE"},
	{"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
	{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL},
};

/* A variable that may be absent; false when it is there and no number in [min, max]. */
static bool read_optional(const char *name, uint64_t min, uint64_t max, uint32_t *value)
{
	const char *text = name ? getenv(name) : NULL;
	uint64_t number = 0;

	if (!text)
		return true;
	if (!perf_parse_number(text, min, max, &number)) {
		fprintf(stderr,
			"rcclx-perf: %s=\"%s\": expected a number from %llu to %llu; use "
			"--ranks to start ranks without a launcher\n",
			name, text, (unsigned long long)min, (unsigned long long)max);
		return false;
	}
	*value = (uint32_t)number;
	return true;
}

static enum perf_place_found take(const struct launcher *launcher, struct perf_place *place_p)
{
	struct perf_place place = {.launcher = launcher->name};
	uint32_t local_size = 0;

	if (!read_optional(launcher->size, 1, RCCLX_MAX_RANKS, &place.n_ranks) ||
		!read_optional(launcher->rank, 0, place.n_ranks - 1, &place.rank))
		return PERF_PLACE_BAD;
	place.local_rank = place.rank;
	local_size = place.n_ranks;
	if (!read_optional(launcher->local_rank, 0, RCCLX_MAX_RANKS - 1, &place.local_rank) ||
		!read_optional(launcher->local_size, 1, RCCLX_MAX_RANKS, &local_size))
		return PERF_PLACE_BAD;
	if (local_size != place.n_ranks) {
		fprintf(stderr,
			"rcclx-perf: %s started %u of %u ranks on this node; a communicator "
			"needs all of them on one node\n",
			launcher->name, local_size, place.n_ranks);
		return PERF_PLACE_BAD;
	}
	*place_p = place;
	return PERF_PLACE_FOUND;
}

enum perf_place_found perf_place_from_env(struct perf_place *place_p)
{
	for (size_t i = 0; i < RX_ARRAY_SIZE(launchers); i++)
		if (getenv(launchers[i].rank) && getenv(launchers[i].size))
			return take(&launchers[i], place_p);
	return PERF_PLACE_NONE;
}

int perf_place_pin(const struct perf_place *place)
{
	cpu_set_t allowed, mine;
	unsigned int skip = 0;

	CPU_ZERO(&allowed);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) || CPU_COUNT(&allowed) == 0)
		return -1;
	skip = place->local_rank % (unsigned int)CPU_COUNT(&allowed);
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET((size_t)core, &allowed) || skip-- > 0)
			continue;
		CPU_ZERO(&mine);
		CPU_SET((size_t)core, &mine);
		return sched_setaffinity(0, sizeof(mine), &mine) ? -1 : core;
	}
	return -1;
}
