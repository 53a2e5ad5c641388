/* SPDX-License-Identifier: MIT */
#include "gpu_blocks.h"

struct rx_dev_block gpu_blocks_of(
	uint32_t coll, const struct rx_counts *counts, uint32_t from, uint32_t to)
{
	switch (coll) {
	case RX_ALL_GATHER_V:
		return (struct rx_dev_block){
			.count = counts[to].recv_counts[from],
			.recv_at = counts[to].recv_displs[from],
		};
	case RX_REDUCE_SCATTER_V:
		return (struct rx_dev_block){
			.count = counts[from].send_counts[to],
			.send_at = rx_counts_sum(counts[from].send_counts, to),
		};
	default:
		return (struct rx_dev_block){
			.count = counts[from].send_counts[to],
			.send_at = counts[from].send_displs[to],
			.recv_at = counts[to].recv_displs[from],
		};
	}
}

int gpu_blocks_fill(struct gpu *gpu, struct gpu_host *table, uint32_t coll,
	const struct rx_counts *counts, uint32_t n_ranks, uint64_t *most_p,
	struct rx_gpu_error *error)
{
	struct rx_dev_block *blocks = NULL;
	uint64_t bytes = (uint64_t)n_ranks * n_ranks * sizeof(*blocks);
	int r = gpu_host_make(gpu, table, bytes, "the table of a variable collective", error);

	*most_p = 0;
	blocks = table->memory;
	for (uint32_t i = 0; i < n_ranks * n_ranks && r == 0; i++) {
		blocks[i] = gpu_blocks_of(coll, counts, i / n_ranks, i % n_ranks);
		*most_p = rx_max_u64(*most_p, blocks[i].count);
	}
	return r;
}
