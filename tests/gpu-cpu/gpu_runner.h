/* SPDX-License-Identifier: MIT */
/*
 * Where test_gpu_kernels.c runs kernels: on threads of the CPU (runner_cpu.c), or on the first
 * device of a plugin (tests/gpu/runner_real.c).
 */
#ifndef GPU_RUNNER_H
#define GPU_RUNNER_H

#include "../../kernels/device/device_abi.h"

struct gpu_runner_size {
	uint32_t max_blocks; /* with which 8 launches fit at the same time */
	uint32_t max_threads;
	uint32_t scale;   /* how much longer messages may be than what a CPU can do */
	bool is_coherent; /* does the host see what kernels do while they run? */
};

/** gpu_runner_begin() - find the device; NULL, having said why, where there is none */
const struct gpu_runner_size *gpu_runner_begin(void);
void gpu_runner_end(void);

/**
 * gpu_runner_alloc() - memory that kernels reach, cleared; 64-byte aligned
 *
 * The host uses it directly, between download() and upload().
 */
void *gpu_runner_alloc(size_t bytes);
void gpu_runner_free(void *p);

/** gpu_runner_upload() - what the host wrote there, for kernels; download(): and back */
void gpu_runner_upload(void);
void gpu_runner_download(void);

/** gpu_runner_run() - run a kernel by its name and wait for it; from any thread */
void gpu_runner_run(const char *name, const void *args, uint32_t args_bytes, uint32_t n_blocks,
	uint32_t n_threads);

#endif
