/* SPDX-License-Identifier: MIT */
/*
 * Operations on devices that do not all reach each other's memory: through host memory that all of
 * them reach. First each device copies what its ranks send into it, then the kernels run there, as
 * for ranks with host memory, then each device copies to its ranks what is theirs. What does not
 * fit into that memory at once is done in parts, each of some elements of every block, so it needs
 * no more memory the longer an operation is. An element's bits depend on no other one's but, in low
 * precision, on those of its block of 32, which is never divided: they are the same as ever.
 *
 * All ranks' buffers go this way, also those that everybody reaches. Worker only.
 */
#ifndef DAEMON_GPU_STAGE_H
#define DAEMON_GPU_STAGE_H

#include "gpu.h"

struct gpu_run;

enum gpu_stage_phase {
	GPU_STAGE_NONE, /* straight between the buffers */
	GPU_STAGE_IN,
	GPU_STAGE_RUN,
	GPU_STAGE_OUT,
};

struct gpu_stage {
	enum gpu_stage_phase phase;
	uint64_t devices; /* bitmap: those that have a buffer, or run kernels; 0: not needed */
	uint64_t first;   /* of each block: where the part begins, */
	uint64_t count;   /* its elements, */
	uint64_t most;    /* and those of the longest part */
};

/** gpu_stage_devices() - bitmap of the devices that have to copy; 0: all reach what they need */
uint64_t gpu_stage_devices(const struct gpu_run *run);

/**
 * gpu_stage_begin() - @run, of which gpu_stage.devices is not 0, uses the communicator's tables
 * alone
 * @most: bytes of host memory
 *
 * Return: 0, and the first phase is there; enum rx_gpu_result with @error filled.
 */
RX_WARN_UNUSED int gpu_stage_begin(struct gpu_run *run, uint64_t most, struct rx_gpu_error *error);

/** gpu_stage_next() - nothing runs: the next phase. False: that was the last one. */
RX_WARN_UNUSED bool gpu_stage_next(struct gpu_run *run);

/** gpu_stage_ends() - is it not staged, or in the last phase? */
bool gpu_stage_ends(const struct gpu_run *run);

/** gpu_stage_copy() - in @stream, what @device copies in this phase. 0 or enum rx_gpu_result. */
RX_WARN_UNUSED int gpu_stage_copy(
	struct gpu_run *run, uint32_t device, void *stream, struct rx_gpu_error *error);

/** gpu_stage_address() - where kernels find what @rank sends or receives; 0: it has no buffer */
uint64_t gpu_stage_address(const struct gpu_run *run, uint32_t rank, bool recv);

#endif
