/* SPDX-License-Identifier: MIT */
/*
 * all_to_all_v: a rank knows only its own row and column of the matrix of counts. Each puts both
 * into its flat slot when it announces the op; then every rank checks the whole matrix, so that
 * all of them find the same disagreement, and the same largest block.
 */
#include "run.h"

#include "../err.h"

#include <string.h>

struct counts_row {
	uint64_t send_counts[RX_MAX_RANKS];
	uint64_t recv_counts[RX_MAX_RANKS];
	uint64_t send_displs[RX_MAX_RANKS];
};

static_assert(sizeof(struct counts_row) <= RX_FLAT_BYTES, "fits the flat slot");

void counts_fill(const struct inline_run *run, uint8_t *slot)
{
	struct counts_row *row = (struct counts_row *)(void *)slot;
	const struct rx_counts *v = &run->call->v;
	size_t bytes = run->comm->n_ranks * sizeof(uint64_t);

	memcpy(row->send_counts, v->send_counts, bytes);
	memcpy(row->recv_counts, v->recv_counts, bytes);
	memcpy(row->send_displs, v->send_displs, bytes);
}

static const struct counts_row *row_of(const struct inline_run *run, uint32_t rank)
{
	const struct rcclx_comm *comm = run->comm;

	return (const struct counts_row *)(const void *)rx_fabric_flat(
		&comm->fabric, rank, comm->seq);
}

static rcclx_result disagree(uint32_t from, uint32_t to, uint64_t sent, uint64_t expected)
{
	return err_set(RCCLX_ERR_MISMATCH,
		"all_to_all_v: rank %u sends %llu elements to rank %u, which expects %llu", from,
		(unsigned long long)sent, to, (unsigned long long)expected);
}

uint64_t counts_most_sent(const struct inline_run *run)
{
	uint32_t n = run->comm->n_ranks;
	uint64_t most = 0;

	for (uint32_t from = 0; from < n; from++) {
		const struct counts_row *row = row_of(run, from);
		uint64_t sum = 0;

		for (uint32_t to = 0; to < n; to++)
			if (!rx_add_u64(sum, row->send_counts[to], &sum))
				return UINT64_MAX;
		most = rx_max_u64(most, sum);
	}
	return most;
}

rcclx_result counts_agree(struct inline_run *run)
{
	uint32_t n = run->comm->n_ranks;
	uint64_t max = 0;

	for (uint32_t from = 0; from < n; from++) {
		const struct counts_row *row = row_of(run, from);

		run->first_for_me[from] = row->send_displs[run->comm->rank];
		for (uint32_t to = 0; to < n; to++) {
			uint64_t sent = row->send_counts[to];
			uint64_t expected = row_of(run, to)->recv_counts[from];

			if (sent != expected)
				return disagree(from, to, sent, expected);
			max = rx_max_u64(max, sent);
		}
	}
	run->max_count = max;
	return RCCLX_OK;
}
