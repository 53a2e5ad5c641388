/* SPDX-License-Identifier: MIT */
/* Operations on device memory: launched by the worker on every device that takes part. */
#ifndef DAEMON_GPU_RUN_H
#define DAEMON_GPU_RUN_H

#include "gate.h"
#include "gpu.h"
#include "gpu_counts.h"
#include "gpu_stage.h"
#include "../kernels/coll_counts.h"
#include "../kernels/device_plan.h"

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
	/* There, before it: some kernels have failed, others may never end. Standing ones: over().
	 */
	void (*trouble)(struct gpu_run *run);
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
	bool low;                       /* in low precision, */
	bool sums_bf16;                 /* of an allreduce, the sums as bfloat16 */
	struct rx_precision_work work;  /* what that moves */
	struct rx_device_tuning_entry thresholds;
	_Atomic uint32_t *cancelled;
	/* Result. */
	int result; /* 0, -ECANCELED, -EIO */
	bool gone;  /* -EIO: because memory was freed, or its owner has died */
	char error[RX_DEVICE_TEXT_MAX];
	struct gpu_counts found; /* in low precision */
	/* The worker's. */
	struct gpu *gpu;
	uint64_t devices; /* bitmap */
	uint64_t waiting; /* those that have not finished */
	uint32_t n_looks;
	uint32_t slot; /* of its done words; UINT32_MAX: none */
	bool launched;
	struct rx_device_plan plan;
	uint32_t n_blocks; /* of kernels that wait for each other */
	struct gpu_stage stage;
	struct gpu_job alarm;
	bool told; /* by alarm */
	_Atomic uint64_t
		closed; /* bitmap of the gates whose stream has not come yet; others look */
	/* Recorded in a graph: made with every replay, and over when its owner says so. */
	bool standing;
	bool complete;   /* filled: all ranks have recorded it */
	bool failed;     /* replays end at once */
	bool active;     /* a replay is made at the moment */
	uint64_t needed; /* bitmap of the gates that there will be */
	_Atomic uint64_t n_replays;
	uint32_t n_ranks;
	uint32_t n_gates;
	struct gate *gates; /* by rank; RX_SEND: the source's, the destination's; no references */
	struct gpu_buffer *recv; /* by rank */
	struct gpu_buffer send[];
};

/** gpu_run_new() - for buffers of @n_ranks, all empty. NULL: no memory. */
struct gpu_run *gpu_run_new(struct gpu *gpu, uint32_t n_ranks);

/** gpu_run_free() - NULL is allowed. Returns NULL. */
struct gpu_run *gpu_run_free(struct gpu_run *run);

/**
 * gpu_run_submit() - do it when all gates are open; over() is called in any case
 *
 * Host memory is prepared (gpu_mem_prepare()). Without device memory there is nothing to do but to
 * wait for the gates.
 */
void gpu_run_submit(struct gpu_run *run);

/** gpu_run_missing() - bitmap of the gates whose streams have not come to it; in any thread */
static inline uint64_t gpu_run_missing(const struct gpu_run *run)
{
	return atomic_load_explicit(&run->closed, memory_order_relaxed);
}

/* ---- recorded ones: in the worker ---- */

/**
 * gpu_run_rung() - a replay has come to its gate number @i
 *
 * Return: true when all have: gpu_job.poll() makes it, from now on until it is true.
 */
RX_WARN_UNUSED bool gpu_run_rung(struct gpu_run *run, uint32_t i);

/** gpu_run_complete() - its buffers are filled. Return: as gpu_run_rung(). */
RX_WARN_UNUSED bool gpu_run_complete(struct gpu_run *run);

/** gpu_run_fail() - replays that wait are released, and later ones at once */
void gpu_run_fail(struct gpu_run *run);

#endif
