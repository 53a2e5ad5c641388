/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include "../kernels/host/host_lowprec.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define ALIGN RX_CACHE_LINE

struct scratch {
	pthread_mutex_t lock; /* of free and n_free */
	uint32_t n_pieces;
	uint64_t piece_bytes;
	uint8_t *memory; /* NULL: not allocated yet; written by the loop thread alone */
	uint32_t n_free;
	void *free[];
};

int scratch_new(uint32_t n_threads, uint64_t most_bytes, struct scratch **scratch_p)
{
	struct scratch *scratch =
		calloc(1, sizeof(*scratch) + n_threads * sizeof(scratch->free[0]));
	uint64_t each = most_bytes / n_threads / ALIGN * ALIGN;

	assert(each >= HOST_LOWPREC_SCRATCH_MIN);
	if (!scratch)
		return -ENOMEM;
	(void)pthread_mutex_init(&scratch->lock, NULL);
	scratch->n_pieces = n_threads;
	scratch->piece_bytes = rx_min_u64(each, HOST_LOWPREC_SCRATCH_MAX);
	*scratch_p = scratch;
	return 0;
}

struct scratch *scratch_free(struct scratch *scratch)
{
	if (!scratch)
		return NULL;
	assert(!scratch->memory || scratch->n_free == scratch->n_pieces);
	free(scratch->memory);
	(void)pthread_mutex_destroy(&scratch->lock);
	free(scratch);
	return NULL;
}

int scratch_ready(struct scratch *scratch)
{
	uint8_t *memory = scratch->memory;

	if (memory)
		return 0;
	memory = aligned_alloc(ALIGN, scratch->n_pieces * scratch->piece_bytes);
	if (!memory)
		return -ENOMEM;
	/* Nobody takes any before the loop thread has submitted a job. */
	scratch->memory = memory;
	for (uint32_t i = 0; i < scratch->n_pieces; i++)
		scratch->free[i] = memory + i * scratch->piece_bytes;
	scratch->n_free = scratch->n_pieces;
	return 0;
}

void *scratch_take(struct scratch *scratch, uint64_t *bytes_p)
{
	void *piece = NULL;

	(void)pthread_mutex_lock(&scratch->lock);
	/* One for each thread. */
	assert(scratch->n_free > 0);
	piece = scratch->free[--scratch->n_free];
	(void)pthread_mutex_unlock(&scratch->lock);
	*bytes_p = scratch->piece_bytes;
	return piece;
}

void scratch_put(struct scratch *scratch, void *piece)
{
	(void)pthread_mutex_lock(&scratch->lock);
	scratch->free[scratch->n_free++] = piece;
	(void)pthread_mutex_unlock(&scratch->lock);
}

uint64_t scratch_bytes(const struct scratch *scratch)
{
	return scratch->memory ? scratch->n_pieces * scratch->piece_bytes : 0;
}
