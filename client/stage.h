/* SPDX-License-Identifier: MIT */
/*
 * Device memory through which calls in the order of a stream pass whose own memory the daemon
 * cannot use in place: copied in and out by the stream, so nothing is waited for.
 */
#ifndef CLIENT_STAGE_H
#define CLIENT_STAGE_H

#include "gpu_runtime.h"
#include "mem.h"

#include <pthread.h>

struct stage;

struct stages {
	pthread_mutex_t lock;
	struct stage *first;
};

/** stages_init() - none yet. Return: 0 or -errno. */
RX_WARN_UNUSED int stages_init(struct stages *stages);

/** stages_deinit() - free all but what graphs may use; streams have passed the others */
void stages_deinit(struct stages *stages);

/**
 * stage_get() - @bytes of device memory for a call in @stream
 * @slot: calls that are made at once need different ones
 *
 * What comes later in the same stream may have the same memory. What is recorded keeps its own.
 */
rcclx_result stage_get(struct rcclx_client *client, const struct gpu_stream *stream, uint32_t slot,
	uint64_t bytes, uint64_t *address_p, struct mem_ref *ref_p);

#endif
