/* SPDX-License-Identifier: MIT */
/*
 * What kernels in low precision count: a table in host memory, which each block of each device
 * writes its part of. Worker, but for gpu_counts_account().
 */
#ifndef DAEMON_GPU_COUNTS_H
#define DAEMON_GPU_COUNTS_H

#include "gpu_host.h"
#include "../kernels/precision_check.h"

#include <stdatomic.h>

/* Of one operation, or of the replays of a recorded one: one writer, relaxed; others look. */
struct gpu_counts {
	_Atomic uint64_t n_ops;
	_Atomic uint64_t n_blocks;
	_Atomic uint64_t n_saturated;
	_Atomic uint64_t n_flushed;
	_Atomic uint64_t n_special;
};

/** gpu_counts_make() - the table of all devices. Return: 0 or enum rx_gpu_result. */
RX_WARN_UNUSED int gpu_counts_make(
	struct gpu *gpu, struct gpu_host *table, struct rx_gpu_error *error);

/** gpu_counts_begin() - clear what belongs to @device, which does not run. Return: its address. */
uint64_t gpu_counts_begin(struct gpu_host *table, uint32_t device);

/** gpu_counts_add() - kernels on @devices, which have ended */
void gpu_counts_add(
	struct gpu_counts *counts, const struct gpu_host *table, struct gpu *gpu, uint64_t devices);

/** gpu_counts_op() - those were all of an operation */
void gpu_counts_op(struct gpu_counts *counts);

/** gpu_counts_account() - add them to @sum; @work is what one operation moves */
void gpu_counts_account(const struct gpu_counts *counts, const struct rx_precision_work *work,
	struct rx_precision_counts *sum);

#endif
