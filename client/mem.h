/* SPDX-License-Identifier: MIT */
/* Registered memory of this process: address to region. */
#ifndef CLIENT_MEM_H
#define CLIENT_MEM_H

#include "rcclx.h"
#include "../shm/rx_base.h"

/* Where an address range lies. */
struct mem_ref {
	uint64_t region_id; /* 0: private memory */
	uint32_t handle;    /* of this session, for ring entries */
	uint64_t offset;
};

/**
 * mem_find() - is [ptr, ptr + bytes) inside one registered region?
 *
 * Fast: no system call; a read lock and a search among few regions.
 * Return: true and *ref_p filled, or false (private, or only partly inside).
 */
bool mem_find(struct rcclx_client *client, const void *ptr, uint64_t bytes, struct mem_ref *ref_p);

/** mem_address() - own region by its daemon-wide id: address of the range, or NULL */
void *mem_address(struct rcclx_client *client, uint64_t region_id, uint64_t offset, uint64_t bytes);

#endif
