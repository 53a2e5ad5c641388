/* SPDX-License-Identifier: MIT */
/* Registered memory of this process: address to region. */
#ifndef CLIENT_MEM_H
#define CLIENT_MEM_H

#include "rcclx.h"
#include "../shm/rx_map.h"

#include <pthread.h>
#include <stdatomic.h>

/* Where an address range lies. */
struct mem_ref {
	uint64_t region_id; /* 0: private memory */
	uint32_t handle;    /* of this session, for ring entries */
	uint64_t offset;
};

/* Memory that the daemon made for this session. */
struct mem_region {
	uint64_t region_id;
	uint32_t handle;
	struct rx_map map;
};

/* The regions that callers know, sorted by address. Each belongs to the table. */
struct mem_table {
	pthread_rwlock_t lock;
	struct rcclx_mem **regions;
	uint32_t n_allocated;
	_Atomic uint32_t n_regions; /* changed under the lock; 0 is looked at without it */
};

/** mem_table_init() - empty table. Return: 0 or -errno. */
RX_WARN_UNUSED int mem_table_init(struct mem_table *table);

/** mem_table_deinit() - free it; it is empty */
void mem_table_deinit(struct mem_table *table);

/**
 * mem_find() - is [ptr, ptr + bytes) inside one registered region?
 *
 * Fast: no system call; a read lock and a search among few regions.
 * Return: true and *ref_p filled, or false (private, or only partly inside).
 */
bool mem_find(struct rcclx_client *client, const void *ptr, uint64_t bytes, struct mem_ref *ref_p);

/** mem_address() - own region by its daemon-wide id: address of the range, or NULL */
void *mem_address(struct rcclx_client *client, uint64_t region_id, uint64_t offset, uint64_t bytes);

/** mem_region_open() - memory of the daemon's, at least @bytes, mapped; known to no table */
rcclx_result mem_region_open(
	struct rcclx_client *client, uint64_t bytes, struct mem_region *region_p);

/** mem_region_close() - unmap and give back; works with the daemon gone, too */
void mem_region_close(struct rcclx_client *client, struct mem_region *region);

#endif
