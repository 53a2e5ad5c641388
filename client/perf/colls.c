/* SPDX-License-Identifier: MIT */
#include "colls.h"

#include "check.h"
#include "../../kernels/coll_types.h"

static rcclx_result run_all_reduce(const struct perf_call *call)
{
	return rcclx_all_reduce(call->comm, call->send, call->recv, call->count, call->dtype,
		call->op, &call->config);
}

static rcclx_result run_barrier(const struct perf_call *call)
{
	return rcclx_barrier(call->comm, &call->config);
}

/* Every element leaves and enters each rank once to be reduced and once as a result. */
static double bus_all_reduce(uint32_t n_ranks)
{
	return 2.0 * (n_ranks - 1) / n_ranks;
}

static double bus_none(uint32_t n_ranks RX_UNUSED)
{
	return 0;
}

static const struct perf_coll colls[] = {
	{"all_reduce", RX_ALL_REDUCE, true, true, run_all_reduce, perf_fold_all, bus_all_reduce},
	{"barrier", RX_BARRIER, false, false, run_barrier, NULL, bus_none},
};

const struct perf_coll *perf_coll_find(const char *name)
{
	int coll = rx_coll_parse(name);

	for (size_t i = 0; i < RX_ARRAY_SIZE(colls); i++)
		if (coll >= 0 && colls[i].coll == (uint32_t)coll)
			return &colls[i];
	return NULL;
}

const struct perf_coll *perf_coll_at(size_t i)
{
	return i < RX_ARRAY_SIZE(colls) ? &colls[i] : NULL;
}
