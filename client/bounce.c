/* SPDX-License-Identifier: MIT */
/*
 * Blocks have sizes that are powers of two, so that those of one operation serve most others, too.
 * Small ones share a slab: a region of their own for each would cost the daemon a descriptor for
 * every operation in flight. Above BOUNCE_IDLE_MAX nothing can be kept anyway, and rounding up
 * would only waste memory.
 */
#include "bounce.h"

#include "err.h"
#include "session.h"

#include <stdlib.h>

#define BLOCK_MIN  (4ull << 10)
#define SLAB_MIN   (256ull << 10)
#define BLOCKS_MAX (SLAB_MIN / BLOCK_MIN)

static_assert(BLOCKS_MAX <= 64, "the blocks in use fit one word");

struct bounce_slab {
	struct rx_list link;
	struct mem_region region;
	uint64_t block_bytes;
	uint32_t n_blocks;
	uint64_t used; /* one bit per block */
};

static struct bounce_slab *slab_of(struct rx_list *link)
{
	return rx_list_entry(link, struct bounce_slab, link);
}

static uint64_t slab_bytes(const struct bounce_slab *slab)
{
	return slab->block_bytes * slab->n_blocks;
}

static uint64_t block_bytes_for(uint64_t bytes)
{
	uint64_t block = BLOCK_MIN;

	if (bytes > BOUNCE_IDLE_MAX)
		return bytes;
	while (block < bytes)
		block *= 2;
	return block;
}

int bounce_cache_init(struct bounce_cache *cache)
{
	rx_list_init(&cache->slabs);
	cache->idle_bytes = 0;
	return -pthread_mutex_init(&cache->lock, NULL);
}

void bounce_cache_deinit(struct bounce_cache *cache)
{
	rx_list_for_each_safe (link, &cache->slabs) {
		struct bounce_slab *slab = slab_of(link);

		/* Without a word to the daemon, which forgets all of a session's memory. */
		rx_list_unlink(link);
		rx_map_close(&slab->region.map);
		free(slab);
	}
	(void)pthread_mutex_destroy(&cache->lock);
}

static void take_block(struct bounce_slab *slab, struct bounce *bounce_p)
{
	uint32_t index = (uint32_t)__builtin_ctzll(~slab->used);
	uint64_t offset = index * slab->block_bytes;

	slab->used |= 1ull << index;
	*bounce_p = (struct bounce){
		.slab = slab,
		.index = index,
		.handle = slab->region.handle,
		.offset = offset,
		.addr = (char *)slab->region.map.addr + offset,
	};
}

static bool has_room(const struct bounce_slab *slab)
{
	return (uint32_t)__builtin_popcountll(slab->used) < slab->n_blocks;
}

static bool take_cached(struct bounce_cache *cache, uint64_t block_bytes, struct bounce *bounce_p)
{
	rx_list_for_each (link, &cache->slabs) {
		struct bounce_slab *slab = slab_of(link);

		if (slab->block_bytes != block_bytes || !has_room(slab))
			continue;
		if (slab->used == 0)
			cache->idle_bytes -= slab_bytes(slab);
		take_block(slab, bounce_p);
		return true;
	}
	return false;
}

static rcclx_result slab_new(
	struct rcclx_client *client, uint64_t block_bytes, struct bounce_slab **slab_p)
{
	struct bounce_slab *slab = calloc(1, sizeof(*slab));
	rcclx_result r = RCCLX_OK;

	if (!slab)
		return err_set(RCCLX_ERR_NO_MEMORY, "no memory for an operation's buffers");
	slab->block_bytes = block_bytes;
	slab->n_blocks = (uint32_t)rx_max_u64(1, SLAB_MIN / block_bytes);
	r = mem_region_open(client, slab_bytes(slab), &slab->region);
	if (r != RCCLX_OK) {
		free(slab);
		return r;
	}
	*slab_p = slab;
	return RCCLX_OK;
}

rcclx_result bounce_get(struct rcclx_client *client, uint64_t bytes, struct bounce *bounce_p)
{
	struct bounce_cache *cache = &client->bounce;
	uint64_t block_bytes = block_bytes_for(bytes);
	struct bounce_slab *slab = NULL;
	bool found = false;
	rcclx_result r = RCCLX_OK;

	(void)pthread_mutex_lock(&cache->lock);
	found = take_cached(cache, block_bytes, bounce_p);
	(void)pthread_mutex_unlock(&cache->lock);
	if (found)
		return RCCLX_OK;
	/* Not under the lock: it takes a round trip to the daemon. */
	r = slab_new(client, block_bytes, &slab);
	if (r != RCCLX_OK)
		return r;
	(void)pthread_mutex_lock(&cache->lock);
	rx_list_push(&cache->slabs, &slab->link);
	take_block(slab, bounce_p);
	(void)pthread_mutex_unlock(&cache->lock);
	return RCCLX_OK;
}

void bounce_put(struct rcclx_client *client, struct bounce *bounce)
{
	struct bounce_cache *cache = &client->bounce;
	struct bounce_slab *slab = bounce->slab;
	bool surplus = false;

	if (!slab)
		return;
	(void)pthread_mutex_lock(&cache->lock);
	slab->used &= ~(1ull << bounce->index);
	if (slab->used == 0) {
		surplus = slab_bytes(slab) > BOUNCE_IDLE_MAX - cache->idle_bytes;
		if (surplus)
			rx_list_unlink(&slab->link);
		else
			cache->idle_bytes += slab_bytes(slab);
	}
	(void)pthread_mutex_unlock(&cache->lock);
	if (surplus) {
		mem_region_close(client, &slab->region);
		free(slab);
	}
	*bounce = BOUNCE_INIT;
}
