/* SPDX-License-Identifier: MIT */
/*
 * Where the blocks of a variable collective lie, as the kernels want it: a table in host memory
 * that all devices read. A communicator runs one collective at a time, and so has one. Worker only.
 */
#ifndef DAEMON_GPU_BLOCKS_H
#define DAEMON_GPU_BLOCKS_H

#include "gpu.h"
#include "../kernels/coll_counts.h"

struct gpu_blocks {
	struct rx_dev_block *blocks; /* [from * n_ranks + to]; NULL: none yet */
	uint64_t address;            /* as devices see it */
	uint64_t bytes;
};

/**
 * gpu_blocks_fill() - what the ranks' calls say; no device uses the table
 * @counts: by rank; they agree
 * @most_p: receives the largest count
 * Return: 0 or an enum rx_gpu_result, with a text
 */
RX_WARN_UNUSED int gpu_blocks_fill(struct gpu *gpu, struct gpu_blocks *table, uint32_t coll,
	const struct rx_counts *counts, uint32_t n_ranks, uint64_t *most_p,
	struct rx_gpu_error *error);

/** gpu_blocks_deinit() - no device uses the table; it may be empty */
void gpu_blocks_deinit(struct gpu *gpu, struct gpu_blocks *table);

#endif
