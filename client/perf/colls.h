/* SPDX-License-Identifier: MIT */
/*
 * What rcclx-perf can measure: one row per collective.
 *
 * A collective is measured with @count elements per rank, as nccl-tests defines it for each; the
 * row says how to call it, what the result must be, and how its bus bandwidth is computed.
 */
#ifndef PERF_COLLS_H
#define PERF_COLLS_H

#include "../rcclx.h"
#include "../../shm/rx_base.h"

/* Everything that one call needs. */
struct perf_call {
	struct rcclx_comm *comm;
	const void *send;
	void *recv;
	uint64_t count;
	uint32_t dtype;
	uint32_t op;
	struct rcclx_call_config config;
};

struct perf_fold;

struct perf_coll {
	const char *name;
	uint32_t coll; /* enum rx_coll */
	bool has_data; /* takes sizes and a type */
	bool has_op;   /* takes a reduction */
	rcclx_result (*run)(const struct perf_call *call);
	/* Elements [first, first + count) of this rank's result into @out; NULL without data. */
	void (*expect)(struct perf_fold *fold, uint64_t first, uint64_t count, void *out);
	/* Bus over algorithm bandwidth: what the busiest link carries, for each byte of the size.
	 */
	double (*bus_factor)(uint32_t n_ranks);
};

/** perf_coll_find() - by name ("all_reduce", "allreduce"); NULL: unknown */
const struct perf_coll *perf_coll_find(const char *name);

/** perf_coll_at() - row @i, for lists; NULL after the last */
const struct perf_coll *perf_coll_at(size_t i);

#endif
