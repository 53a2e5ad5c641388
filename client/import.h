/* SPDX-License-Identifier: MIT */
/* Peers' registered memory, mapped into this process on first use. */
#ifndef CLIENT_IMPORT_H
#define CLIENT_IMPORT_H

#include "rcclx.h"
#include "../shm/rx_map.h"

struct rcclx_comm;
struct import_entry;

struct import_table {
	struct import_entry *entries;
	uint32_t n_entries;
	uint32_t n_allocated;
	uint64_t generation; /* rx_fabric_ctl.mem_generation at which the entries were good */
};

/**
 * import_find() - address of [offset, offset + bytes) of a peer's region in this process
 * @region_id: as copied from the peer's entry; not trusted
 *
 * Memory of this process's own session is found without importing. Otherwise one round trip to
 * the daemon on first use; the mapping stays until the owner frees memory (mem_generation) or the
 * communicator ends.
 *
 * Return: RCCLX_OK; RCCLX_ERR_INVALID the range does not exist; RCCLX_ERR_NO_MEMORY; ...
 */
rcclx_result import_find(struct rcclx_comm *comm, uint64_t region_id, uint64_t offset,
	uint64_t bytes, void **addr_p);

/** import_clear() - unmap everything */
void import_clear(struct import_table *table);

#endif
