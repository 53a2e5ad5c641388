/* SPDX-License-Identifier: MIT */
#include "gpu_host.h"

#include <stdio.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u

int gpu_host_make(struct gpu *gpu, struct gpu_host *host, uint64_t bytes, const char *what,
	struct rx_gpu_error *error)
{
	uint64_t whole = rx_align_up(bytes, PAGE_BYTES);
	void *memory = NULL;
	int r = 0;

	if (host->memory)
		return 0;
	memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		(void)snprintf(error->text, sizeof(error->text), "no memory for %s", what);
		return RX_GPU_E_MEMORY;
	}
	r = gpu_ops(gpu)->host_register(gpu_runtime(gpu), memory, whole, &host->address, error);
	if (r) {
		(void)munmap(memory, whole);
		return r;
	}
	host->memory = memory;
	host->bytes = whole;
	return 0;
}

void gpu_host_deinit(struct gpu *gpu, struct gpu_host *host)
{
	if (!host->memory)
		return;
	(void)gpu_ops(gpu)->host_unregister(gpu_runtime(gpu), host->memory, NULL);
	(void)munmap(host->memory, host->bytes);
	host->memory = NULL;
}
