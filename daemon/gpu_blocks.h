/* SPDX-License-Identifier: MIT */
/*
 * Where the blocks of a variable collective lie, as the kernels want it: a table in host memory
 * that all devices read, [from * n_ranks + to]. A communicator runs one collective at a time, and
 * so has one. Worker only.
 */
#ifndef DAEMON_GPU_BLOCKS_H
#define DAEMON_GPU_BLOCKS_H

#include "gpu_host.h"
#include "../kernels/coll_counts.h"
#include "../kernels/device/device_abi.h"

/** gpu_blocks_of() - what @from has for @to */
struct rx_dev_block gpu_blocks_of(
	uint32_t coll, const struct rx_counts *counts, uint32_t from, uint32_t to);

/**
 * gpu_blocks_fill() - what the ranks' calls say; no device uses the table
 * @counts: by rank; they agree
 * @most_p: receives the largest count
 * Return: 0 or an enum rx_gpu_result, with a text
 */
RX_WARN_UNUSED int gpu_blocks_fill(struct gpu *gpu, struct gpu_host *table, uint32_t coll,
	const struct rx_counts *counts, uint32_t n_ranks, uint64_t *most_p,
	struct rx_gpu_error *error);

#endif
