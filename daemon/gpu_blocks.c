/* SPDX-License-Identifier: MIT */
#include "gpu_blocks.h"

#include "../kernels/device/device_abi.h"

#include <stdio.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u

static int make(
	struct gpu *gpu, struct gpu_blocks *table, uint32_t n_ranks, struct rx_gpu_error *error)
{
	uint64_t bytes =
		rx_align_up((uint64_t)n_ranks * n_ranks * sizeof(*table->blocks), PAGE_BYTES);
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r = 0;

	if (memory == MAP_FAILED) {
		(void)snprintf(error->text, sizeof(error->text),
			"no memory for the table of a variable collective");
		return RX_GPU_E_MEMORY;
	}
	r = gpu_ops(gpu)->host_register(gpu_runtime(gpu), memory, bytes, &table->address, error);
	if (r) {
		(void)munmap(memory, bytes);
		return r;
	}
	table->blocks = memory;
	table->bytes = bytes;
	return 0;
}

static struct rx_dev_block block_of(
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

int gpu_blocks_fill(struct gpu *gpu, struct gpu_blocks *table, uint32_t coll,
	const struct rx_counts *counts, uint32_t n_ranks, uint64_t *most_p,
	struct rx_gpu_error *error)
{
	int r = table->blocks ? 0 : make(gpu, table, n_ranks, error);

	*most_p = 0;
	for (uint32_t i = 0; i < n_ranks * n_ranks && r == 0; i++) {
		table->blocks[i] = block_of(coll, counts, i / n_ranks, i % n_ranks);
		*most_p = rx_max_u64(*most_p, table->blocks[i].count);
	}
	return r;
}

void gpu_blocks_deinit(struct gpu *gpu, struct gpu_blocks *table)
{
	if (!table->blocks)
		return;
	(void)gpu_ops(gpu)->host_unregister(gpu_runtime(gpu), table->blocks, NULL);
	(void)munmap(table->blocks, table->bytes);
	table->blocks = NULL;
}
