/* SPDX-License-Identifier: MIT */
/* One collective over all sizes, on one rank of a communicator. */
#ifndef PERF_SWEEP_H
#define PERF_SWEEP_H

#include "options.h"
#include "place.h"
#include "print.h"
#include "../rcclx.h"

struct perf_session {
	const struct perf_place *place;
	struct rcclx_client *client;
	struct rcclx_comm *comm;
	struct perf_seat seats[RCCLX_MAX_RANKS];
	struct perf_choice choice; /* known on rank 0 only */
	uint32_t n_data;           /* sets of data made so far: no two are alike */
};

/**
 * perf_sweep() - measure and, on rank 0, print
 * @options: of the collective
 *
 * Return: false when it could not be measured; explained on stderr.
 */
RX_WARN_UNUSED bool perf_sweep(struct perf_session *session, const struct perf_options *options,
	struct perf_total *total_p);

/** perf_session_fail() - say what failed and why; false */
bool perf_session_fail(const struct perf_session *session, const char *what, rcclx_result result);

/** perf_session_sum() - @values summed over the ranks, in place */
RX_WARN_UNUSED bool perf_session_sum(
	const struct perf_session *session, uint64_t *values, uint32_t n);

#endif
