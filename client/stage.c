/* SPDX-License-Identifier: MIT */
/*
 * The memory is ours, so it is proven by what we wrote into it. Pieces of a stream are kept for its
 * next calls; one that is too small is replaced by one twice as large, and stays until the end, as
 * freeing it would wait for streams that may wait for us.
 */
#include "stage.h"

#include "err.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>

#define STAGE_MIN (1ull << 20)

struct stage {
	struct stage *next;
	const void *stream;
	pthread_t thread; /* some handles stand for another stream in each thread */
	uint32_t device;
	uint32_t slot;
	bool captured;
	uint64_t address;
	uint64_t bytes;
	uint32_t handle;
};

int stages_init(struct stages *stages)
{
	stages->first = NULL;
	return -pthread_mutex_init(&stages->lock, NULL);
}

void stages_deinit(struct stages *stages)
{
	while (stages->first) {
		struct stage *stage = stages->first;

		stages->first = stage->next;
		if (!stage->captured)
			gpu_free(stage->device, stage->address);
		free(stage);
	}
	(void)pthread_mutex_destroy(&stages->lock);
}

/* With the lock held: the largest of the stream. */
static struct stage *find(const struct stages *stages, const struct stage *like)
{
	struct stage *best = NULL;

	for (struct stage *stage = stages->first; stage; stage = stage->next) {
		if (!stage->captured && stage->stream == like->stream &&
			stage->device == like->device && stage->slot == like->slot &&
			pthread_equal(stage->thread, like->thread) &&
			(!best || stage->bytes > best->bytes))
			best = stage;
	}
	return best;
}

static rcclx_result make(struct rcclx_client *client, const struct stage *like, uint64_t bytes,
	struct stage **stage_p)
{
	struct stage *stage = malloc(sizeof(*stage));
	rcclx_result r = RCCLX_OK;

	if (!stage)
		return err_set(RCCLX_ERR_NO_MEMORY, "out of memory for a call in a stream");
	*stage = *like;
	stage->bytes = bytes;
	r = gpu_mem_make(client, like->device, bytes, &stage->address, &stage->handle);
	if (r != RCCLX_OK) {
		free(stage);
		return r;
	}
	stage->next = client->stages.first;
	client->stages.first = stage;
	*stage_p = stage;
	return RCCLX_OK;
}

rcclx_result stage_get(struct rcclx_client *client, const struct gpu_stream *stream, uint32_t slot,
	uint64_t bytes, uint64_t *address_p, struct mem_ref *ref_p)
{
	struct stages *stages = &client->stages;
	const struct stage like = {
		.stream = stream->native,
		.thread = pthread_self(),
		.device = stream->device,
		.slot = slot,
		.captured = stream->captured,
	};
	struct stage *stage = NULL;
	rcclx_result r = RCCLX_OK;

	(void)pthread_mutex_lock(&stages->lock);
	if (!stream->captured)
		stage = find(stages, &like);
	if (!stage || stage->bytes < bytes) {
		uint64_t size = stream->captured ? 256 : STAGE_MIN;

		while (size < bytes)
			size *= 2;
		r = make(client, &like, size, &stage);
	}
	if (r == RCCLX_OK) {
		*address_p = stage->address;
		*ref_p = (struct mem_ref){.handle = stage->handle};
	}
	(void)pthread_mutex_unlock(&stages->lock);
	return r;
}
