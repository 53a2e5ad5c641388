/* SPDX-License-Identifier: MIT */
#include "rx_idmap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS      16u
#define SHORT_INDEX_BITS 20u
#define SHORT_INDEX_MASK ((1u << SHORT_INDEX_BITS) - 1)
#define SHORT_GEN_MASK   ((1u << (32 - SHORT_INDEX_BITS)) - 1)

struct rx_idmap_slot {
	void *object; /* NULL: free */
	/* Grows with each removal: ids handed out before then match no more. */
	uint32_t generation;
	uint32_t next_free;
};

void rx_idmap_init(struct rx_idmap *map, uint32_t limit)
{
	assert(limit <= RX_IDMAP_MAX_ENTRIES);
	*map = (struct rx_idmap){.limit = limit};
}

void rx_idmap_deinit(struct rx_idmap *map)
{
	assert(map->n_used == 0);
	free(map->slots);
	*map = (struct rx_idmap){.limit = map->limit};
}

/* Only while no slot is free: free slots then never hold an end mark of before the growth. */
static int grow(struct rx_idmap *map)
{
	uint32_t n = map->n_slots > 0 ? 2 * map->n_slots : FIRST_SLOTS;
	struct rx_idmap_slot *slots = NULL;

	if (map->n_slots >= map->limit)
		return -ENOSPC;
	n = n > map->limit ? map->limit : n;
	slots = reallocarray(map->slots, n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = map->n_slots; i < n; i++)
		slots[i] = (struct rx_idmap_slot){.generation = 1, .next_free = i + 1};
	map->free_head = map->n_slots;
	map->slots = slots;
	map->n_slots = n;
	return 0;
}

static uint64_t id_of(const struct rx_idmap *map, uint32_t index)
{
	return (uint64_t)map->slots[index].generation << 32 | (index + 1);
}

int rx_idmap_add(struct rx_idmap *map, void *object, uint64_t *id_p)
{
	uint32_t index = 0;

	assert(object);
	if (map->free_head >= map->n_slots) {
		int r = grow(map);

		if (r < 0)
			return r;
	}
	index = map->free_head;
	map->free_head = map->slots[index].next_free;
	map->slots[index].object = object;
	map->n_used++;
	*id_p = id_of(map, index);
	return 0;
}

/* Slot in use with this index + 1, or NULL. */
static struct rx_idmap_slot *used_slot(const struct rx_idmap *map, uint32_t index_plus_1)
{
	struct rx_idmap_slot *slot = NULL;

	if (index_plus_1 == 0 || index_plus_1 > map->n_slots)
		return NULL;
	slot = &map->slots[index_plus_1 - 1];
	return slot->object ? slot : NULL;
}

static struct rx_idmap_slot *find_slot(const struct rx_idmap *map, uint64_t id)
{
	struct rx_idmap_slot *slot = used_slot(map, (uint32_t)id);

	return slot && slot->generation == id >> 32 ? slot : NULL;
}

void *rx_idmap_find(const struct rx_idmap *map, uint64_t id)
{
	const struct rx_idmap_slot *slot = find_slot(map, id);

	return slot ? slot->object : NULL;
}

void *rx_idmap_remove(struct rx_idmap *map, uint64_t id)
{
	struct rx_idmap_slot *slot = find_slot(map, id);
	void *object = NULL;

	if (!slot)
		return NULL;
	object = slot->object;
	slot->object = NULL;
	slot->generation++;
	slot->next_free = map->free_head;
	map->free_head = (uint32_t)(slot - map->slots);
	map->n_used--;
	return object;
}

void *rx_idmap_next(const struct rx_idmap *map, uint64_t after, uint64_t *id_p)
{
	/* An id's low half is its index + 1: where to go on. */
	for (uint32_t i = (uint32_t)after; i < map->n_slots; i++) {
		if (map->slots[i].object) {
			*id_p = id_of(map, i);
			return map->slots[i].object;
		}
	}
	return NULL;
}

uint32_t rx_idmap_short(uint64_t id)
{
	uint32_t generation = (uint32_t)(id >> 32) & SHORT_GEN_MASK;

	return generation << SHORT_INDEX_BITS | ((uint32_t)id & SHORT_INDEX_MASK);
}

void *rx_idmap_find_short(const struct rx_idmap *map, uint32_t id)
{
	const struct rx_idmap_slot *slot = used_slot(map, id & SHORT_INDEX_MASK);

	if (!slot || (slot->generation & SHORT_GEN_MASK) != id >> SHORT_INDEX_BITS)
		return NULL;
	return slot->object;
}
