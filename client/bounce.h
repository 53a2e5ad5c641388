/* SPDX-License-Identifier: MIT */
/*
 * Registered memory through which asynchronous operations on private memory pass, kept for the
 * next one.
 */
#ifndef CLIENT_BOUNCE_H
#define CLIENT_BOUNCE_H

#include "mem.h"
#include "../shm/rx_list.h"

#define BOUNCE_IDLE_MAX (64ull << 20) /* unused memory that is kept, bytes */

struct bounce_cache {
	pthread_mutex_t lock;
	struct rx_list slabs; /* of struct bounce_slab */
	uint64_t idle_bytes;  /* of slabs of which no block is in use */
};

struct bounce_slab;

struct bounce {
	struct bounce_slab *slab; /* NULL: none */
	uint32_t index;
	uint32_t handle; /* for ring entries */
	uint64_t offset;
	void *addr;
};

#define BOUNCE_INIT ((struct bounce){0})

/** bounce_cache_init() - empty. Return: 0 or -errno. */
RX_WARN_UNUSED int bounce_cache_init(struct bounce_cache *cache);

/** bounce_cache_deinit() - unmap all memory, also what is in use: the session ends */
void bounce_cache_deinit(struct bounce_cache *cache);

/** bounce_get() - @bytes > 0 of registered memory, page-aligned */
rcclx_result bounce_get(struct rcclx_client *client, uint64_t bytes, struct bounce *bounce_p);

/** bounce_put() - give it back: the daemon does not touch it any more. Leaves BOUNCE_INIT. */
void bounce_put(struct rcclx_client *client, struct bounce *bounce);

#endif
