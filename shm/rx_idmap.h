/* SPDX-License-Identifier: MIT */
/*
 * Handle table: id = generation << 32 | index + 1 (64 bits), or generation << 20 | index + 1 for
 * the 32-bit ids of ring entries. A stale id finds nothing.
 */
#ifndef RX_IDMAP_H
#define RX_IDMAP_H

#include "rx_base.h"

#define RX_IDMAP_MAX_ENTRIES ((1u << 20) - 2)

struct rx_idmap_slot;

struct rx_idmap {
	struct rx_idmap_slot *slots;
	uint32_t n_slots;
	uint32_t n_used;
	uint32_t free_head; /* index of the first free slot; n_slots when none */
	uint32_t limit;     /* most entries */
};

/** rx_idmap_init() - empty table for at most @limit entries (<= RX_IDMAP_MAX_ENTRIES) */
void rx_idmap_init(struct rx_idmap *map, uint32_t limit);

/** rx_idmap_deinit() - free the table; asserts that it is empty */
void rx_idmap_deinit(struct rx_idmap *map);

/**
 * rx_idmap_add() - enter @object (not NULL), id into *id_p (never 0)
 * Return: 0, -ENOSPC at the limit, -ENOMEM.
 */
RX_WARN_UNUSED int rx_idmap_add(struct rx_idmap *map, void *object, uint64_t *id_p);

/** rx_idmap_find() - object of @id, or NULL when stale or unknown */
void *rx_idmap_find(const struct rx_idmap *map, uint64_t id);

/** rx_idmap_remove() - forget @id, return its object, or NULL when there was none */
void *rx_idmap_remove(struct rx_idmap *map, uint64_t id);

/** rx_idmap_next() - iterate: entry with the lowest index above that of @after (0 to start) */
void *rx_idmap_next(const struct rx_idmap *map, uint64_t after, uint64_t *id_p);

/* Short form of an id for 32-bit fields: 12 bits of generation, 20 of index. */
uint32_t rx_idmap_short(uint64_t id);
/** rx_idmap_find_short() - object of a short id, or NULL */
void *rx_idmap_find_short(const struct rx_idmap *map, uint32_t id);

#endif
