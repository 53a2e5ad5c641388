/* SPDX-License-Identifier: MIT */
/*
 * What rcclx-perf can measure: one row per collective.
 *
 * The row says how a size becomes a count (layout.h), how to call the collective, what the result
 * must be, and the factor from algorithm to bus bandwidth. The factors are those of nccl-tests:
 *what the busiest link must carry for each byte of the size, whatever the algorithm, for n ranks:
 *
 *	all_reduce                                      2 (n - 1) / n
 *	all_gather, reduce_scatter, all_to_all,
 *	gather, scatter, and the variable ones          (n - 1) / n
 *	broadcast, reduce, send_recv                    1
 */
#ifndef PERF_COLLS_H
#define PERF_COLLS_H

#include "layout.h"
#include "../rcclx.h"
#include "../../kernels/coll_types.h"
#include "../../shm/rx_base.h"

/* Everything that one call needs. */
struct perf_call {
	struct rcclx_comm *comm;
	void *send;
	void *recv;
	const struct perf_layout *layout;
	uint32_t dtype;
	uint32_t op;
	bool touch; /* between timed calls: write what is sent, read what was received */
	struct rcclx_call_config config;
};

struct perf_fold;

struct perf_coll {
	const char *name;
	uint32_t coll; /* enum rx_coll; a send and a receive: RX_SEND */
	enum perf_shape shape;
	bool in_place; /* may send and receive buffer be one? */
	rcclx_result (*run)(const struct perf_call *call);
	/* Elements [first, first + count) of this rank's result into @out; NULL without data. */
	void (*expect)(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);
	double (*bus_factor)(uint32_t n_ranks);
};

/** perf_coll_find() - by name ("all_reduce", "allreduce"); NULL: unknown */
const struct perf_coll *perf_coll_find(const char *name);

/** perf_coll_at() - row @i, for lists; NULL after the last */
const struct perf_coll *perf_coll_at(size_t i);

/** perf_coll_has_data() - has it sizes and a type? */
static inline bool perf_coll_has_data(const struct perf_coll *coll)
{
	return coll->shape != PERF_NONE;
}

/** perf_coll_by_daemon() - is it executed by the daemon whatever is asked for? */
static inline bool perf_coll_by_daemon(const struct perf_coll *coll)
{
	return coll->coll == RX_SEND;
}

#endif
