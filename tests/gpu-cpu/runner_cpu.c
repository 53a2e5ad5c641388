/* SPDX-License-Identifier: MIT */
/* Kernels on threads of the CPU, in the host's own memory. */
#include "gpu_cpu.h"
#include "gpu_runner.h"

#include <stdlib.h>
#include <string.h>

static const struct gpu_runner_size cpu_size = {
	.max_blocks = 3, .max_threads = 3, .scale = 1, .is_coherent = true};

const struct gpu_runner_size *gpu_runner_begin(void)
{
	return &cpu_size;
}

void gpu_runner_end(void)
{
}

void *gpu_runner_alloc(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);

	if (!p)
		abort();
	return memset(p, 0, bytes);
}

void gpu_runner_free(void *p)
{
	free(p);
}

void gpu_runner_upload(void)
{
}

void gpu_runner_download(void)
{
}

void gpu_runner_run(const char *name, const void *args, uint32_t args_bytes, uint32_t n_blocks,
	uint32_t n_threads)
{
	(void)args_bytes;
	gpu_cpu_run(gpu_cpu_find(name), args, n_blocks, n_threads);
}
