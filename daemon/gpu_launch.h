/* SPDX-License-Identifier: MIT */
/* The part of one device in an operation: which kernel, and what it is told. Worker only. */
#ifndef DAEMON_GPU_LAUNCH_H
#define DAEMON_GPU_LAUNCH_H

#include "gpu_run.h"

/** gpu_launch_devices() - bitmap of those that take part: every one that somebody's buffer is on */
uint64_t gpu_launch_devices(const struct gpu_run *run);

/** gpu_launch_first() - the first one, which serves ranks without device memory */
uint32_t gpu_launch_first(const struct gpu_run *run);

/** gpu_launch_ranks() - bitmap of those that @device serves */
uint64_t gpu_launch_ranks(const struct gpu_run *run, uint32_t device);

/** gpu_launch_blocks() - as many as there is work for on @device, within what it runs at once */
uint32_t gpu_launch_blocks(const struct gpu_run *run, uint32_t device);

/** gpu_launch_bytes() - of the buffers of the ranks that @device serves */
uint64_t gpu_launch_bytes(const struct gpu_run *run, uint32_t device);

/** gpu_launch() - in @stream of @device. Return: 0 or enum rx_gpu_result. */
RX_WARN_UNUSED int gpu_launch(
	struct gpu_run *run, uint32_t device, void *stream, struct rx_gpu_error *error);

#endif
