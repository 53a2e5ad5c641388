/* SPDX-License-Identifier: MIT */
/*
 * GPU kernels on threads of the CPU: the very sources of kernels/device, a thread for each thread
 * of the device, so that sanitizers see what they do. Scopes and caches do not exist here.
 */
#ifndef GPU_CPU_H
#define GPU_CPU_H

#include "../../kernels/device/device_abi.h"

typedef void (*gpu_cpu_fn)(const void *args);

/** gpu_cpu_find() - the kernel of that name (device_abi.h), or NULL */
gpu_cpu_fn gpu_cpu_find(const char *name);

/** gpu_cpu_run() - run a grid, all blocks at the same time, and wait for it */
void gpu_cpu_run(gpu_cpu_fn kernel, const void *args, uint32_t n_blocks, uint32_t n_threads);

#endif
