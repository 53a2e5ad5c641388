/* SPDX-License-Identifier: MIT */
/* Memory of this process that all devices see. Worker only. */
#ifndef DAEMON_GPU_HOST_H
#define DAEMON_GPU_HOST_H

#include "gpu.h"

struct gpu_host {
	void *memory;     /* zeroed when made; NULL: none yet */
	uint64_t address; /* as devices see it */
	uint64_t bytes;
};

/**
 * gpu_host_make() - at least @bytes, unless there is some already
 * @what: for the text of a failure, "a table"
 * Return: 0 or enum rx_gpu_result
 */
RX_WARN_UNUSED int gpu_host_make(struct gpu *gpu, struct gpu_host *host, uint64_t bytes,
	const char *what, struct rx_gpu_error *error);

/** gpu_host_deinit() - no device uses it; there may be none */
void gpu_host_deinit(struct gpu *gpu, struct gpu_host *host);

#endif
