/* SPDX-License-Identifier: MIT */
/* The process's GPU runtime, for gpu_mem.c: calls of the backend with texts for errors. */
#ifndef CLIENT_GPU_RUNTIME_H
#define CLIENT_GPU_RUNTIME_H

#include "rcclx.h"
#include "../kernels/rx_backend.h"

/** gpu_describe() - what is behind @address. Return: enum rx_gpu_result, without a text. */
RX_WARN_UNUSED int gpu_describe(const void *address, struct rx_gpu_memory *memory_p);

/** gpu_export() - RCCLX_OK with *n_p 0: this memory cannot be shared */
rcclx_result gpu_export(const void *address, uint64_t bytes, struct rx_gpu_export *exports,
	int *fds, uint32_t max, uint32_t *n_p);

/** gpu_sample() - the rows of @sample, RX_GPU_SAMPLE_BYTES; nothing else works on them; blocks */
rcclx_result gpu_sample(uint64_t base, const struct rx_gpu_sample *sample, void *rows);

#endif
