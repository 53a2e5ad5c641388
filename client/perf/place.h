/* SPDX-License-Identifier: MIT */
/* Which rank this process is: said by rcclx-perf's own launching process, or by a launcher. */
#ifndef PERF_PLACE_H
#define PERF_PLACE_H

#include "options.h"

struct perf_place {
	uint32_t rank;
	uint32_t n_ranks;
	uint32_t local_rank;  /* on this node */
	const char *launcher; /* its name; NULL: started by rcclx-perf */
};

enum perf_place_found {
	PERF_PLACE_NONE, /* no launcher's variables are set */
	PERF_PLACE_FOUND,
	PERF_PLACE_BAD, /* they make no sense here; explained on stderr */
};

/**
 * perf_place_from_env() - rank and size as torchrun, Open MPI, PMI (MPICH) or Slurm give them
 *
 * @place_p is written only for PERF_PLACE_FOUND.
 */
enum perf_place_found perf_place_from_env(struct perf_place *place_p);

/** perf_place_pin() - pin to one of the cores this process may use; the core, -1: not pinned */
int perf_place_pin(const struct perf_place *place);

#endif
