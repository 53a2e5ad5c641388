/* SPDX-License-Identifier: MIT */
/* What a communicator has on devices: its stream on each, and tables in host memory. */
#ifndef DAEMON_GPU_STREAMS_H
#define DAEMON_GPU_STREAMS_H

#include "gpu_host.h"

struct gpu_run;
struct gpu_set;

struct gpu_streams {
	struct gpu_job job;
	struct gpu *gpu;
	/* The worker's. */
	void *streams[RX_GPU_DEVICES_MAX];
	struct gpu_host blocks;     /* gpu_blocks.h */
	struct gpu_host counts;     /* gpu_counts.h */
	struct gpu_host stage;      /* gpu_stage.h */
	struct gpu_set *set;        /* gpu_exchange.h; NULL: none */
	const struct gpu_run *user; /* of the tables, the stage and the set; NULL: nobody */
	bool stuck;                 /* an operation did not end: devices may still use the tables */
};

/** gpu_streams_new() - none is opened yet. NULL: no memory. */
struct gpu_streams *gpu_streams_new(struct gpu *gpu);

/** gpu_streams_free() - nothing runs in them; later, by the worker. NULL is allowed. */
struct gpu_streams *gpu_streams_free(struct gpu_streams *streams);

/** gpu_streams_open() - in the worker: that on @device. Return: 0 or enum rx_gpu_result. */
RX_WARN_UNUSED int gpu_streams_open(
	struct gpu_streams *streams, uint32_t device, void **stream_p, struct rx_gpu_error *error);

#endif
