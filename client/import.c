/* SPDX-License-Identifier: MIT */
/*
 * One mapping per region of a peer, made when an operation first needs it. When the daemon says
 * that a member freed memory (mem_generation), mappings are dropped, but not those that the
 * operation in progress has asked for already: it uses their addresses.
 */
#include "import.h"

#include "comm.h"
#include "err.h"
#include "session.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_memfd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Beyond that, what the current operation does not use is dropped. */
#define ENTRIES_MAX   1024u
#define ENTRIES_FIRST 16u

struct import_entry {
	uint64_t region_id;
	uint64_t offset; /* of the region in its file */
	uint64_t bytes;
	struct rx_map map;
	uint32_t seq; /* op in which it was last asked for */
};

void import_clear(struct import_table *table)
{
	for (uint32_t i = 0; i < table->n_entries; i++)
		rx_map_close(&table->entries[i].map);
	free(table->entries);
	*table = (struct import_table){0};
}

/* Index of the first entry whose id is not below @region_id. */
static uint32_t lower_bound(const struct import_table *table, uint64_t region_id)
{
	uint32_t low = 0;
	uint32_t high = table->n_entries;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->entries[middle].region_id < region_id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* True when nothing had to be kept. */
static bool drop_unused(struct import_table *table, uint32_t seq)
{
	uint32_t n_kept = 0;

	for (uint32_t i = 0; i < table->n_entries; i++) {
		if (table->entries[i].seq == seq)
			table->entries[n_kept++] = table->entries[i];
		else
			rx_map_close(&table->entries[i].map);
	}
	table->n_entries = n_kept;
	return n_kept == 0;
}

static void drop_freed(struct rcclx_comm *comm)
{
	struct import_table *table = &comm->imports;
	/* Only a hint that memory can be given back: ids of freed regions are never used again. */
	uint64_t generation =
		atomic_load_explicit(&comm->fabric.ctl->mem_generation, memory_order_relaxed);

	if (generation != table->generation && drop_unused(table, comm->seq))
		table->generation = generation;
}

static rcclx_result make_room(struct rcclx_comm *comm)
{
	struct import_table *table = &comm->imports;
	uint32_t n = table->n_allocated ? 2 * table->n_allocated : ENTRIES_FIRST;
	struct import_entry *entries = NULL;

	if (table->n_entries >= ENTRIES_MAX)
		(void)drop_unused(table, comm->seq);
	if (table->n_entries < table->n_allocated)
		return RCCLX_OK;
	entries = reallocarray(table->entries, n, sizeof(*entries));
	if (!entries)
		return err_set(
			RCCLX_ERR_NO_MEMORY, "no memory for the table of peers' memory (%u)", n);
	table->entries = entries;
	table->n_allocated = n;
	return RCCLX_OK;
}

static int map_region(int fd, const struct rx_msg_mem_import_reply *reply, struct rx_map *map)
{
	uint64_t size = 0;
	uint64_t end = 0;
	int r = rx_memfd_check(fd, &size);

	if (r < 0)
		return r;
	if (!rx_add_u64(reply->offset, reply->bytes, &end) || end > size)
		return -ERANGE;
	return rx_map_open(map, fd, end, RX_MAP_RW | RX_MAP_DONTFORK | RX_MAP_DONTDUMP);
}

static rcclx_result fetch(struct rcclx_comm *comm, uint64_t region_id, struct import_entry *entry_p)
{
	struct rx_msg request = {
		.type = RX_MSG_MEM_IMPORT,
		.mem_import = {.member = comm->member, .region_id = region_id},
	};
	struct conn_wait wait = {
		.deadline_ns = rx_deadline_ns(CONN_TIMEOUT_NS),
		.cancel = &comm->abort_called,
	};
	struct rx_map map = RX_MAP_INIT;
	struct conn_reply reply;
	rcclx_result r = conn_call(
		&comm->client->conn, &request, -1, RX_MSG_MEM_IMPORT_REPLY, &wait, &reply);
	int mapped = 0;

	if (r != RCCLX_OK)
		return r;

	RX_CLOSE int fd = rx_fdset_take(&reply.fds, 0);

	conn_reply_deinit(&reply);
	mapped = map_region(fd, &reply.msg.mem_import_reply, &map);
	if (mapped < 0)
		return err_errno(mapped, "mapping memory of another rank");
	*entry_p = (struct import_entry){
		.region_id = region_id,
		.offset = reply.msg.mem_import_reply.offset,
		.bytes = reply.msg.mem_import_reply.bytes,
		.map = map,
	};
	return RCCLX_OK;
}

static rcclx_result import(
	struct rcclx_comm *comm, uint64_t region_id, struct import_entry **entry_p)
{
	struct import_table *table = &comm->imports;
	struct import_entry entry = {0};
	rcclx_result r = make_room(comm);
	uint32_t at = 0;

	if (r == RCCLX_OK)
		r = fetch(comm, region_id, &entry);
	if (r != RCCLX_OK)
		return r;
	at = lower_bound(table, region_id);
	memmove(&table->entries[at + 1], &table->entries[at],
		(table->n_entries - at) * sizeof(*table->entries));
	table->entries[at] = entry;
	table->n_entries++;
	*entry_p = &table->entries[at];
	return RCCLX_OK;
}

rcclx_result import_find(
	struct rcclx_comm *comm, uint64_t region_id, uint64_t offset, uint64_t bytes, void **addr_p)
{
	struct import_table *table = &comm->imports;
	struct import_entry *entry = NULL;
	void *own = mem_address(comm->client, region_id, offset, bytes);
	uint32_t at = 0;

	if (own) {
		*addr_p = own;
		return RCCLX_OK;
	}
	drop_freed(comm);
	at = lower_bound(table, region_id);
	if (at < table->n_entries && table->entries[at].region_id == region_id) {
		entry = &table->entries[at];
	} else {
		rcclx_result r = import(comm, region_id, &entry);

		if (r != RCCLX_OK)
			return r;
	}
	entry->seq = comm->seq;
	if (!rx_range_ok(offset, bytes, entry->bytes))
		return err_set(RCCLX_ERR_INVALID,
			"a rank announced %llu bytes at %llu of a region of %llu bytes",
			(unsigned long long)bytes, (unsigned long long)offset,
			(unsigned long long)entry->bytes);
	*addr_p = (char *)entry->map.addr + entry->offset + offset;
	return RCCLX_OK;
}
