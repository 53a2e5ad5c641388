/* SPDX-License-Identifier: MIT */
/* What one rank does: connect, form the communicator, measure size after size. */
#ifndef PERF_RANK_H
#define PERF_RANK_H

#include "options.h"
#include "place.h"

enum perf_exit {
	PERF_EXIT_OK = 0,
	PERF_EXIT_WRONG = 1, /* elements of results were wrong */
	PERF_EXIT_USAGE = 2,
	PERF_EXIT_FAILED = 3, /* it could not be measured; explained on stderr */
};

/** perf_rank_run() - be rank @place->rank, to the end */
enum perf_exit perf_rank_run(const struct perf_options *options, const struct perf_place *place);

#endif
