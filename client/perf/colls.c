/* SPDX-License-Identifier: MIT */
#include "colls.h"

#include "check.h"

#include <string.h>

static rcclx_result run_all_reduce(const struct perf_call *call)
{
	return rcclx_all_reduce(call->comm, call->send, call->recv, call->layout->count,
		call->dtype, call->op, &call->config);
}

static rcclx_result run_all_gather(const struct perf_call *call)
{
	return rcclx_all_gather(call->comm, call->send, call->recv, call->layout->count,
		call->dtype, &call->config);
}

static rcclx_result run_reduce_scatter(const struct perf_call *call)
{
	return rcclx_reduce_scatter(call->comm, call->send, call->recv, call->layout->count,
		call->dtype, call->op, &call->config);
}

static rcclx_result run_all_to_all(const struct perf_call *call)
{
	return rcclx_all_to_all(call->comm, call->send, call->recv, call->layout->count,
		call->dtype, &call->config);
}

static rcclx_result run_broadcast(const struct perf_call *call)
{
	return rcclx_broadcast(call->comm, call->send, call->recv, call->layout->count, call->dtype,
		call->layout->root, &call->config);
}

static rcclx_result run_reduce(const struct perf_call *call)
{
	return rcclx_reduce(call->comm, call->send, call->recv, call->layout->count, call->dtype,
		call->op, call->layout->root, &call->config);
}

static rcclx_result run_gather(const struct perf_call *call)
{
	return rcclx_gather(call->comm, call->send, call->recv, call->layout->count, call->dtype,
		call->layout->root, &call->config);
}

static rcclx_result run_scatter(const struct perf_call *call)
{
	return rcclx_scatter(call->comm, call->send, call->recv, call->layout->count, call->dtype,
		call->layout->root, &call->config);
}

static rcclx_result run_all_gather_v(const struct perf_call *call)
{
	return rcclx_all_gather_v(call->comm, call->send, call->recv, call->layout->counts,
		call->layout->displs, call->dtype, &call->config);
}

static rcclx_result run_reduce_scatter_v(const struct perf_call *call)
{
	return rcclx_reduce_scatter_v(call->comm, call->send, call->recv, call->layout->counts,
		call->dtype, call->op, &call->config);
}

static rcclx_result run_all_to_all_v(const struct perf_call *call)
{
	const struct perf_layout *layout = call->layout;

	return rcclx_all_to_all_v(call->comm, call->send, layout->counts, layout->displs,
		call->recv, layout->counts, layout->displs, call->dtype, &call->config);
}

/* A ring: to the next rank, from the one before. The group ends whatever was refused in it. */
static rcclx_result run_send_recv(const struct perf_call *call)
{
	const struct perf_layout *layout = call->layout;
	uint32_t n = layout->n_ranks;
	rcclx_result result = rcclx_group_start(), end = RCCLX_OK;

	if (result != RCCLX_OK)
		return result;
	result = rcclx_send(call->comm, call->send, layout->count, call->dtype,
		(layout->rank + 1) % n, &call->config);
	if (result == RCCLX_OK)
		result = rcclx_recv(call->comm, call->recv, layout->count, call->dtype,
			(layout->rank + n - 1) % n, &call->config);
	end = rcclx_group_end();
	return result == RCCLX_OK ? end : result;
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

/* All blocks but the own one. */
static double bus_blocks(uint32_t n_ranks)
{
	return 1.0 * (n_ranks - 1) / n_ranks;
}

static double bus_whole(uint32_t n_ranks RX_UNUSED)
{
	return 1;
}

static double bus_none(uint32_t n_ranks RX_UNUSED)
{
	return 0;
}

/* clang-format off */
static const struct perf_coll colls[] = {
	{"all_reduce", RX_ALL_REDUCE, PERF_WHOLE, true,
		run_all_reduce, perf_fold_all, bus_all_reduce},
	{"all_gather", RX_ALL_GATHER, PERF_BLOCKS, true,
		run_all_gather, perf_expect_gathered, bus_blocks},
	{"reduce_scatter", RX_REDUCE_SCATTER, PERF_BLOCKS, true,
		run_reduce_scatter, perf_expect_folded_block, bus_blocks},
	{"all_to_all", RX_ALL_TO_ALL, PERF_BLOCKS, false,
		run_all_to_all, perf_expect_exchanged, bus_blocks},
	{"broadcast", RX_BROADCAST, PERF_WHOLE, true,
		run_broadcast, perf_expect_roots, bus_whole},
	{"reduce", RX_REDUCE, PERF_WHOLE, true,
		run_reduce, perf_fold_all, bus_whole},
	{"gather", RX_GATHER, PERF_BLOCKS, true,
		run_gather, perf_expect_gathered, bus_blocks},
	{"scatter", RX_SCATTER, PERF_BLOCKS, true,
		run_scatter, perf_expect_roots_block, bus_blocks},
	{"send_recv", RX_SEND, PERF_WHOLE, false,
		run_send_recv, perf_expect_neighbours, bus_whole},
	{"all_gather_v", RX_ALL_GATHER_V, PERF_UNEVEN, true,
		run_all_gather_v, perf_expect_gathered, bus_blocks},
	{"reduce_scatter_v", RX_REDUCE_SCATTER_V, PERF_UNEVEN, true,
		run_reduce_scatter_v, perf_expect_folded_block, bus_blocks},
	{"all_to_all_v", RX_ALL_TO_ALL_V, PERF_UNEVEN, false,
		run_all_to_all_v, perf_expect_exchanged, bus_blocks},
	{"barrier", RX_BARRIER, PERF_NONE, false, run_barrier, NULL, bus_none},
};
/* clang-format on */

const struct perf_coll *perf_coll_find(const char *name)
{
	int coll = rx_coll_parse(name);

	for (size_t i = 0; i < RX_ARRAY_SIZE(colls); i++) {
		if (strcmp(colls[i].name, name) == 0)
			return &colls[i];
		/* Aliases; a send alone is not measured. */
		if (coll >= 0 && colls[i].coll == (uint32_t)coll && coll != RX_SEND)
			return &colls[i];
	}
	return NULL;
}

const struct perf_coll *perf_coll_at(size_t i)
{
	return i < RX_ARRAY_SIZE(colls) ? &colls[i] : NULL;
}
