/* SPDX-License-Identifier: MIT */
/* Operations on device memory: launched by the worker on every device that takes part. */
#ifndef DAEMON_GPU_RUN_H
#define DAEMON_GPU_RUN_H

#include "gpu.h"
#include "../kernels/coll_counts.h"

#include <stdatomic.h>

struct region;

/* A rank's buffer. */
struct gpu_buffer {
	struct region *region; /* NULL: it has none; a reference of the caller's */
	uint64_t offset;
	uint64_t bytes;
};

/* A communicator's stream on each device that it has used. */
struct gpu_streams;

struct gpu_run {
	struct gpu_job job;
	/* Filled by the caller. */
	void (*over)(struct gpu_run *run); /* in the loop thread */
	void *owner;
	struct gpu_streams *streams;
	uint8_t coll; /* RX_SEND: root to peer; else as host_coll.h has them */
	uint8_t dtype;
	uint8_t op;
	uint32_t root;
	uint32_t peer;
	uint64_t count;
	const uint64_t *scalars;        /* by rank */
	const struct rx_counts *counts; /* by rank; variable collectives, instead of count */
	_Atomic uint32_t *cancelled;
	/* Result. */
	int result; /* 0, -ECANCELED, -EIO */
	char error[RX_DEVICE_TEXT_MAX];
	/* The worker's. */
	struct gpu *gpu;
	uint64_t devices; /* bitmap */
	uint64_t waiting; /* those that have not finished */
	uint32_t n_looks;
	uint32_t slot; /* of its done words; UINT32_MAX: none */
	uint32_t n_ranks;
	struct gpu_buffer *recv; /* by rank */
	struct gpu_buffer send[];
};

/** gpu_run_new() - for buffers of @n_ranks, all empty. NULL: no memory. */
struct gpu_run *gpu_run_new(struct gpu *gpu, uint32_t n_ranks);

/** gpu_run_free() - NULL is allowed. Returns NULL. */
struct gpu_run *gpu_run_free(struct gpu_run *run);

/**
 * gpu_run_submit() - do it; over() is called in any case
 *
 * At least one buffer is device memory, host memory is prepared (gpu_mem_prepare()).
 */
void gpu_run_submit(struct gpu_run *run);

/** gpu_streams_new() - none is opened yet. NULL: no memory. */
struct gpu_streams *gpu_streams_new(struct gpu *gpu);

/** gpu_streams_free() - nothing runs in them; later, by the worker. NULL is allowed. */
struct gpu_streams *gpu_streams_free(struct gpu_streams *streams);

#endif
