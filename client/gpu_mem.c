/* SPDX-License-Identifier: MIT */
/*
 * Allocations that the daemon knows, sorted by nothing: there are few, allocators take large ones.
 *
 * The runtime numbers its allocations: one that was freed and made again at the same place is
 * another one, and what the daemon has mapped is the old one. So each call asks the runtime anew,
 * and what has changed is given back before the new is registered. Where the runtime does not
 * number them memory is copied, as a stale mapping would give wrong results without a word.
 *
 * A fresh allocation may hold nothing but zeros, which prove nothing. The daemon then says "copy",
 * and is asked again after 1, 2, 4, ... uses.
 */
#include "gpu.h"

#include "err.h"
#include "gpu_runtime.h"
#include "session.h"
#include "../shm/rx_clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MAX 64u

struct gpu_entry {
	uint64_t base;
	uint64_t bytes;  /* of all pieces */
	uint64_t id;     /* of the first */
	uint32_t kind;   /* of the first */
	uint32_t handle; /* RX_REGION_NONE: copied */
	uint32_t n_uses; /* since the daemon was asked */
	uint32_t patience;
};

int gpu_table_init(struct gpu_table *table)
{
	*table = (struct gpu_table){0};
	return -pthread_mutex_init(&table->lock, NULL);
}

void gpu_table_deinit(struct gpu_table *table)
{
	free(table->entries);
	(void)pthread_mutex_destroy(&table->lock);
}

/* ---- the table, with its lock held ---- */

static struct gpu_entry *find(struct gpu_table *table, uint64_t address, uint64_t bytes)
{
	for (uint32_t i = 0; i < table->n_entries; i++) {
		struct gpu_entry *entry = &table->entries[i];

		if (address >= entry->base &&
			rx_range_ok(address - entry->base, bytes, entry->bytes))
			return entry;
	}
	return NULL;
}

static void give_back(struct rcclx_client *client, const struct gpu_entry *entry)
{
	if (entry->handle != RX_REGION_NONE)
		conn_forget_memory(&client->conn, entry->handle);
}

static bool is_same(const struct gpu_entry *entry)
{
	struct rx_gpu_memory memory = {0};

	/* No two allocations have the same number; a piece may be mapped elsewhere, too. */
	if (entry->kind != RX_GPU_MEM_VIRTUAL)
		return gpu_identify(entry->base, entry->kind) == entry->id;
	return gpu_describe((const void *)(uintptr_t)entry->base, &memory) == RX_GPU_OK &&
	       memory.base == entry->base && memory.id == entry->id;
}

/* Of those that are freed the daemon still holds the memory. */
static void sweep(
	struct rcclx_client *client, struct gpu_table *table, uint64_t base, uint64_t bytes)
{
	uint32_t n_kept = 0;

	for (uint32_t i = 0; i < table->n_entries; i++) {
		struct gpu_entry *entry = &table->entries[i];
		bool overlaps = entry->base < base + bytes && base < entry->base + entry->bytes;

		if (!overlaps && is_same(entry))
			table->entries[n_kept++] = *entry;
		else
			give_back(client, entry);
	}
	table->n_entries = n_kept;
}

static int add(struct gpu_table *table, const struct gpu_entry *entry)
{
	if (table->n_entries == table->n_allocated) {
		uint32_t n = table->n_allocated ? 2 * table->n_allocated : 16;
		struct gpu_entry *entries = reallocarray(table->entries, n, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		table->entries = entries;
		table->n_allocated = n;
	}
	table->entries[table->n_entries++] = *entry;
	return 0;
}

/* ---- registering ---- */

struct exported {
	struct rx_gpu_export exports[RX_GPU_PIECES_MAX];
	int fds[RX_GPU_PIECES_MAX];
	uint32_t n;
};

static void close_exported(struct exported *exported)
{
	for (uint32_t i = 0; i < exported->n; i++)
		if (exported->fds[i] >= 0)
			(void)close(exported->fds[i]);
}

static void fill_pieces(const struct exported *exported, struct rx_gpu_piece *pieces)
{
	for (uint32_t i = 0; i < exported->n; i++) {
		const struct rx_gpu_export *e = &exported->exports[i];

		pieces[i] = (struct rx_gpu_piece){
			.start = e->memory.base,
			.bytes = e->memory.bytes,
			.id = e->memory.id,
			.uuid = {.data = e->memory.uuid, .len = sizeof(e->memory.uuid)},
			.kind = e->memory.kind,
		};
		if (exported->fds[i] < 0)
			pieces[i].handle =
				(struct rx_bytes){.data = e->handle, .len = sizeof(e->handle)};
	}
}

static rcclx_result ask(struct rcclx_client *client, const struct exported *exported,
	const struct rx_gpu_sample *sample, const uint8_t *rows, uint32_t flags, uint32_t *handle_p)
{
	struct rx_gpu_piece pieces[RX_GPU_PIECES_MAX];
	struct rx_msg request = {
		.type = RX_MSG_GPU_REGISTER,
		.gpu_register =
			{
				.pieces = pieces,
				.n_pieces = exported->n,
				.sample_offset = sample->offset,
				.sample_bytes = sample->bytes,
				.sample_seed = sample->seed,
				.rows = {.data = rows, .len = RX_GPU_ROWS_MAX},
				.flags = flags,
			},
	};
	struct conn_wait wait = {.deadline_ns = rx_deadline_ns(CONN_TIMEOUT_NS)};
	struct conn_reply reply;
	rcclx_result r = RCCLX_OK;

	fill_pieces(exported, pieces);
	r = conn_call_fds(&client->conn, &request, exported->fds,
		exported->fds[0] < 0 ? 0 : exported->n, RX_MSG_GPU_REPLY, &wait, &reply);
	if (r != RCCLX_OK)
		return r;
	*handle_p = reply.msg.gpu_reply.handle;
	conn_reply_deinit(&reply);
	return RCCLX_OK;
}

/*
 * The rows are of the call's own buffer, which nobody else writes until the call is over; unless
 * the call comes later in a stream, whose work may write it now.
 */
static rcclx_result register_exported(struct rcclx_client *client, const struct exported *exported,
	uint64_t address, uint64_t bytes, bool idle, uint32_t *handle_p)
{
	uint64_t base = exported->exports[0].memory.base;
	struct rx_gpu_sample sample = {
		.offset = address - base,
		.bytes = bytes,
		.seed = rx_now_ns(),
	};
	uint8_t rows[RX_GPU_ROWS_MAX] = {0};
	rcclx_result r = gpu_sample(&exported->exports[0].memory, &sample, idle, rows);

	return r != RCCLX_OK ? r
			     : ask(client, exported, &sample, rows, idle ? RX_GPU_PROVE_STABLE : 0,
				       handle_p);
}

static rcclx_result try_register(struct rcclx_client *client, const struct rx_gpu_memory *memory,
	uint64_t address, uint64_t bytes, bool idle, struct gpu_entry *entry)
{
	struct exported exported;
	rcclx_result r = RCCLX_OK;

	/* May fail for memory that has no handle: that is copied. */
	*entry = (struct gpu_entry){
		.base = memory->base,
		.bytes = memory->bytes,
		.id = memory->id,
		.kind = memory->kind,
	};
	if (memory->id == 0)
		return RCCLX_OK;
	r = gpu_export((const void *)(uintptr_t)address, bytes, exported.exports, exported.fds,
		RX_GPU_PIECES_MAX, &exported.n);
	if (r != RCCLX_OK || exported.n == 0)
		return r;
	entry->base = exported.exports[0].memory.base;
	entry->id = exported.exports[0].memory.id;
	entry->kind = exported.exports[0].memory.kind;
	entry->bytes = 0;
	for (uint32_t i = 0; i < exported.n; i++)
		entry->bytes += exported.exports[i].memory.bytes;
	r = register_exported(client, &exported, address, bytes, idle, &entry->handle);
	close_exported(&exported);
	return r;
}

/* With the lock held. */
static rcclx_result learn(struct rcclx_client *client, const struct rx_gpu_memory *memory,
	uint64_t address, uint64_t bytes, bool idle, struct gpu_entry *entry)
{
	struct gpu_table *table = &client->gpu;
	uint32_t patience = entry->patience;
	rcclx_result r = RCCLX_OK;

	/* Before the daemon hears of what is there now. */
	sweep(client, table, address, bytes);
	r = try_register(client, memory, address, bytes, idle, entry);
	if (r != RCCLX_OK)
		return r;
	entry->patience = patience;
	if (!find(table, entry->base, entry->bytes) && add(table, entry) < 0) {
		give_back(client, entry);
		return err_set(RCCLX_ERR_NO_MEMORY, "out of memory for registered device memory");
	}
	return RCCLX_OK;
}

bool gpu_mem_known(
	struct rcclx_client *client, const void *ptr, uint64_t bytes, struct mem_ref *ref_p)
{
	struct gpu_table *table = &client->gpu;
	uint64_t address = (uint64_t)(uintptr_t)ptr;
	const struct gpu_entry *known = NULL;

	(void)pthread_mutex_lock(&table->lock);
	known = find(table, address, bytes);
	if (known && (known->handle == RX_REGION_NONE || !is_same(known)))
		known = NULL;
	if (known)
		*ref_p = (struct mem_ref){
			.handle = known->handle,
			.offset = address - known->base,
		};
	(void)pthread_mutex_unlock(&table->lock);
	return known;
}

rcclx_result gpu_mem_find(struct rcclx_client *client, const void *ptr, uint64_t bytes, bool idle,
	struct mem_ref *ref_p)
{
	struct gpu_table *table = &client->gpu;
	uint64_t address = (uint64_t)(uintptr_t)ptr;
	struct rx_gpu_memory memory = {0};
	struct gpu_entry *known = NULL;
	struct gpu_entry entry = {.patience = 1};
	rcclx_result r = RCCLX_OK;

	if (gpu_describe(ptr, &memory) != RX_GPU_OK)
		return err_set(RCCLX_ERR_INVALID,
			"%p is device memory that the GPU runtime does not know any more", ptr);
	(void)pthread_mutex_lock(&table->lock);
	known = find(table, address, bytes);
	if (known && !is_same(known))
		known = NULL;
	if (known && known->handle == RX_REGION_NONE && ++known->n_uses >= known->patience) {
		entry.patience = (uint32_t)rx_min_u64(PATIENCE_MAX, 2 * (uint64_t)known->patience);
		known = NULL;
	}
	if (known)
		entry = *known;
	else
		r = learn(client, &memory, address, bytes, idle, &entry);
	(void)pthread_mutex_unlock(&table->lock);
	if (r == RCCLX_OK)
		*ref_p = (struct mem_ref){
			.handle = entry.handle,
			.offset = address - entry.base,
		};
	return r;
}

rcclx_result gpu_mem_make(struct rcclx_client *client, uint32_t device, uint64_t bytes,
	uint64_t *address_p, uint32_t *handle_p)
{
	struct exported exported;
	struct rx_gpu_sample sample;
	uint8_t rows[RX_GPU_ROWS_MAX] = {0};
	uint64_t address = 0;
	uint32_t handle = RX_REGION_NONE;
	rcclx_result r = gpu_alloc_marked(device, bytes, &sample, rows, &address);

	if (r != RCCLX_OK)
		return r;
	r = gpu_export((const void *)(uintptr_t)address, bytes, exported.exports, exported.fds,
		RX_GPU_PIECES_MAX, &exported.n);
	if (r == RCCLX_OK && exported.n > 0) {
		*address_p = address;
		r = ask(client, &exported, &sample, rows, RX_GPU_PROVE_NONCE, &handle);
		close_exported(&exported);
	}
	if (r == RCCLX_OK && handle == RX_REGION_NONE)
		r = err_set(RCCLX_ERR_SYSTEM,
			"the daemon cannot use memory of device %u of this process, so nothing can "
			"be done in the order of its streams: rcclxctl devices says why",
			device);
	if (r != RCCLX_OK)
		gpu_free(device, address);
	else
		*handle_p = handle;
	return r;
}
