/* SPDX-License-Identifier: MIT */
/*
 * Regions do not overlap, so the one with the highest address not above a pointer is the only one
 * that can contain it.
 */
#include "mem.h"

#include "err.h"
#include "session.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_memfd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The daemon allocates the pages of a region before it answers. */
#define ALLOC_TIMEOUT_NS (60 * RX_NS_PER_SEC)
#define FREE_TIMEOUT_NS  (1 * RX_NS_PER_SEC)
#define TABLE_FIRST      16u

struct rcclx_mem {
	struct rcclx_client *client;
	uintptr_t start;
	uint64_t bytes;
	bool allocated;           /* by rcclx_mem_alloc(); else registered */
	struct mem_region region; /* its map: only if allocated */
};

/* ---- the table ---- */

int mem_table_init(struct mem_table *table)
{
	*table = (struct mem_table){0};
	return -pthread_rwlock_init(&table->lock, NULL);
}

void mem_table_deinit(struct mem_table *table)
{
	free(table->regions);
	(void)pthread_rwlock_destroy(&table->lock);
}

static uint32_t count(const struct mem_table *table)
{
	return atomic_load_explicit(&table->n_regions, memory_order_relaxed);
}

static void set_count(struct mem_table *table, uint32_t n)
{
	atomic_store_explicit(&table->n_regions, n, memory_order_relaxed);
}

/* Index of the first region that starts above @at. */
static uint32_t first_above(const struct mem_table *table, uintptr_t at)
{
	uint32_t low = 0;
	uint32_t high = count(table);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->regions[middle]->start > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int grow(struct mem_table *table)
{
	uint32_t n = table->n_allocated ? 2 * table->n_allocated : TABLE_FIRST;
	struct rcclx_mem **regions = reallocarray(table->regions, n, sizeof(*regions));

	if (!regions)
		return -ENOMEM;
	table->regions = regions;
	table->n_allocated = n;
	return 0;
}

/* The region that shares addresses with [start, start + bytes), or NULL. */
static struct rcclx_mem *overlapping(const struct mem_table *table, uintptr_t start, uint64_t bytes)
{
	uint32_t above = first_above(table, start);

	if (above > 0) {
		struct rcclx_mem *below = table->regions[above - 1];

		if (start - below->start < below->bytes)
			return below;
	}
	if (above < count(table) && table->regions[above]->start - start < bytes)
		return table->regions[above];
	return NULL;
}

static rcclx_result overlap_error(uintptr_t start, uint64_t bytes, const struct rcclx_mem *other)
{
	return err_set(RCCLX_ERR_INVALID,
		"the %llu bytes at %p overlap the %llu bytes at %p, which are registered already; "
		"deregister those first",
		(unsigned long long)bytes, (void *)start, (unsigned long long)other->bytes,
		(void *)other->start);
}

static rcclx_result insert(struct mem_table *table, struct rcclx_mem *mem)
{
	const struct rcclx_mem *other = overlapping(table, mem->start, mem->bytes);
	uint32_t n = count(table);
	uint32_t at = first_above(table, mem->start);

	if (other)
		return overlap_error(mem->start, mem->bytes, other);
	if (n == table->n_allocated && grow(table) < 0)
		return err_set(RCCLX_ERR_NO_MEMORY, "no memory for the table of %u regions", n);
	memmove(&table->regions[at + 1], &table->regions[at], (n - at) * sizeof(*table->regions));
	table->regions[at] = mem;
	set_count(table, n + 1);
	return RCCLX_OK;
}

static rcclx_result table_add(struct mem_table *table, struct rcclx_mem *mem)
{
	rcclx_result r = RCCLX_OK;

	(void)pthread_rwlock_wrlock(&table->lock);
	r = insert(table, mem);
	(void)pthread_rwlock_unlock(&table->lock);
	return r;
}

static void remove_at(struct mem_table *table, uint32_t at)
{
	uint32_t n = count(table);

	memmove(&table->regions[at], &table->regions[at + 1],
		(n - at - 1) * sizeof(*table->regions));
	set_count(table, n - 1);
}

/* Takes the region that starts at @start out of the table, or returns NULL. */
static struct rcclx_mem *table_take(struct mem_table *table, uintptr_t start, bool allocated)
{
	struct rcclx_mem *mem = NULL;
	uint32_t above = 0;

	(void)pthread_rwlock_wrlock(&table->lock);
	above = first_above(table, start);
	if (above > 0 && table->regions[above - 1]->start == start &&
		table->regions[above - 1]->allocated == allocated) {
		mem = table->regions[above - 1];
		remove_at(table, above - 1);
	}
	(void)pthread_rwlock_unlock(&table->lock);
	return mem;
}

bool mem_find(struct rcclx_client *client, const void *ptr, uint64_t bytes, struct mem_ref *ref_p)
{
	struct mem_table *table = &client->mem;
	uint32_t above = 0;
	bool found = false;

	/* Programs that register nothing pay nothing. Who has just registered sees his own. */
	if (count(table) == 0)
		return false;
	(void)pthread_rwlock_rdlock(&table->lock);
	above = first_above(table, (uintptr_t)ptr);
	if (above > 0) {
		const struct rcclx_mem *mem = table->regions[above - 1];
		uint64_t offset = (uintptr_t)ptr - mem->start;

		found = rx_range_ok(offset, bytes, mem->bytes);
		if (found)
			*ref_p = (struct mem_ref){
				.region_id = mem->region.region_id,
				.handle = mem->region.handle,
				.offset = offset,
			};
	}
	(void)pthread_rwlock_unlock(&table->lock);
	return found;
}

void *mem_address(struct rcclx_client *client, uint64_t region_id, uint64_t offset, uint64_t bytes)
{
	struct mem_table *table = &client->mem;
	void *addr = NULL;

	(void)pthread_rwlock_rdlock(&table->lock);
	for (uint32_t i = 0; i < count(table); i++) {
		const struct rcclx_mem *mem = table->regions[i];

		if (mem->region.region_id != region_id)
			continue;
		if (rx_range_ok(offset, bytes, mem->bytes))
			addr = (char *)mem->start + offset;
		break;
	}
	(void)pthread_rwlock_unlock(&table->lock);
	return addr;
}

/* ---- the daemon's side of it ---- */

rcclx_result mem_region_open(
	struct rcclx_client *client, uint64_t bytes, struct mem_region *region_p)
{
	struct rx_msg request = {.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = bytes}};
	struct conn_wait wait = {.deadline_ns = rx_deadline_ns(ALLOC_TIMEOUT_NS)};
	struct rx_map map = RX_MAP_INIT;
	struct conn_reply reply;
	rcclx_result r = conn_call(&client->conn, &request, -1, RX_MSG_MEM_REPLY, &wait, &reply);

	if (r != RCCLX_OK)
		return r;

	RX_CLOSE int fd = rx_fdset_take(&reply.fds, 0);
	struct rx_msg_mem_reply answer = reply.msg.mem_reply;

	conn_reply_deinit(&reply);
	if (fd < 0 || answer.bytes < bytes) {
		conn_forget_memory(&client->conn, answer.handle);
		return err_set(RCCLX_ERR_INTERNAL,
			"rcclxd answered a request for %llu bytes of memory with %llu bytes%s",
			(unsigned long long)bytes, (unsigned long long)answer.bytes,
			fd < 0 ? " and no file" : "");
	}
	int mapped = rx_map_open(&map, fd, answer.bytes, RX_MAP_RW);

	if (mapped < 0) {
		conn_forget_memory(&client->conn, answer.handle);
		return err_errno(mapped, "mapping memory that rcclxd allocated");
	}
	*region_p = (struct mem_region){
		.region_id = answer.region_id,
		.handle = answer.handle,
		.map = map,
	};
	return RCCLX_OK;
}

/* Waits for the answer, so that the amount is free again when the caller asks for the next. */
static void give_back(struct rcclx_client *client, uint32_t handle)
{
	struct rx_msg request = {.type = RX_MSG_MEM_FREE, .mem_free = {.handle = handle}};
	struct conn_wait wait = {.deadline_ns = rx_deadline_ns(FREE_TIMEOUT_NS)};
	struct conn_reply reply;

	if (conn_call(&client->conn, &request, -1, RX_MSG_OK, &wait, &reply) == RCCLX_OK)
		conn_reply_deinit(&reply);
}

void mem_region_close(struct rcclx_client *client, struct mem_region *region)
{
	give_back(client, region->handle);
	rx_map_close(&region->map);
}

/* ---- public ---- */

rcclx_result rcclx_mem_alloc(struct rcclx_client *client, uint64_t bytes, void **ptr_p)
{
	rcclx_result r = RCCLX_OK;

	if (!client || !ptr_p)
		return err_set(RCCLX_ERR_INVALID, "rcclx_mem_alloc: %s is NULL",
			client ? "ptr_p" : "client");
	r = session_usable(client);
	if (r != RCCLX_OK)
		return r;
	if (bytes == 0)
		return err_set(
			RCCLX_ERR_INVALID, "rcclx_mem_alloc: bytes is 0, expected at least 1");

	RX_FREE struct rcclx_mem *mem = calloc(1, sizeof(*mem));

	if (!mem)
		return err_set(RCCLX_ERR_NO_MEMORY, "rcclx_mem_alloc: out of memory");
	r = mem_region_open(client, bytes, &mem->region);
	if (r != RCCLX_OK)
		return r;
	mem->client = client;
	mem->allocated = true;
	mem->start = (uintptr_t)mem->region.map.addr;
	mem->bytes = mem->region.map.bytes;
	r = table_add(&client->mem, mem);
	if (r != RCCLX_OK) {
		mem_region_close(client, &mem->region);
		return r;
	}
	*ptr_p = rx_steal(mem)->region.map.addr;
	return RCCLX_OK;
}

rcclx_result rcclx_mem_free(struct rcclx_client *client, void *ptr)
{
	struct rcclx_mem *mem = NULL;
	rcclx_result r = RCCLX_OK;

	if (!client)
		return err_set(RCCLX_ERR_INVALID, "rcclx_mem_free: client is NULL");
	r = session_usable(client);
	if (r != RCCLX_OK || !ptr)
		return r;
	mem = table_take(&client->mem, (uintptr_t)ptr, true);
	if (!mem)
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_mem_free: %p is no address that rcclx_mem_alloc() returned with this "
			"client, or it was freed already",
			ptr);
	mem_region_close(client, &mem->region);
	free(mem);
	return RCCLX_OK;
}

static rcclx_result check_file(int fd, uint64_t offset, uint64_t bytes)
{
	uint64_t size = 0;
	int r = rx_memfd_check(fd, &size);

	if (r == -EBADF)
		return err_set(
			RCCLX_ERR_INVALID, "rcclx_mem_register: %d is no open file descriptor", fd);
	if (r < 0)
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_mem_register: fd %d is no memfd with F_SEAL_SHRINK; make it with "
			"memfd_create(MFD_ALLOW_SEALING), size it, and add the seal with "
			"fcntl(F_ADD_SEALS), or use rcclx_mem_alloc()",
			fd);
	if (!rx_range_ok(offset, bytes, size))
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_mem_register: %llu bytes from %llu are beyond the file's end at %llu",
			(unsigned long long)bytes, (unsigned long long)offset,
			(unsigned long long)size);
	return RCCLX_OK;
}

static rcclx_result check_registration(const void *ptr, uint64_t bytes, int fd, uint64_t offset)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t end = 0;

	if (!ptr || (uintptr_t)ptr % page != 0)
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_mem_register: ptr is %p, expected the start of a page of %llu bytes",
			ptr, (unsigned long long)page);
	if (bytes == 0 || bytes % page != 0 || !rx_add_u64((uintptr_t)ptr, bytes, &end))
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_mem_register: bytes is %llu, expected whole pages of %llu, at least "
			"one",
			(unsigned long long)bytes, (unsigned long long)page);
	if (offset % page != 0)
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_mem_register: offset is %llu, expected whole pages of %llu",
			(unsigned long long)offset, (unsigned long long)page);
	return check_file(fd, offset, bytes);
}

static rcclx_result register_region(
	struct rcclx_client *client, int fd, uint64_t offset, struct rcclx_mem *mem)
{
	struct rx_msg request = {
		.type = RX_MSG_MEM_REGISTER,
		.mem_register = {.bytes = mem->bytes, .offset = offset},
	};
	struct conn_wait wait = {
		.deadline_ns = rx_deadline_ns(CONN_TIMEOUT_NS),
	};
	struct conn_reply reply;
	rcclx_result r = conn_call(&client->conn, &request, fd, RX_MSG_MEM_REPLY, &wait, &reply);

	if (r != RCCLX_OK)
		return r;
	mem->region.region_id = reply.msg.mem_reply.region_id;
	mem->region.handle = reply.msg.mem_reply.handle;
	conn_reply_deinit(&reply);
	return RCCLX_OK;
}

rcclx_result rcclx_mem_register(struct rcclx_client *client, void *ptr, uint64_t bytes, int fd,
	uint64_t offset, struct rcclx_mem **mem_p)
{
	rcclx_result r = RCCLX_OK;

	if (!client || !mem_p)
		return err_set(RCCLX_ERR_INVALID, "rcclx_mem_register: %s is NULL",
			client ? "mem_p" : "client");
	r = session_usable(client);
	if (r == RCCLX_OK)
		r = check_registration(ptr, bytes, fd, offset);
	if (r != RCCLX_OK)
		return r;

	RX_FREE struct rcclx_mem *mem = calloc(1, sizeof(*mem));

	if (!mem)
		return err_set(RCCLX_ERR_NO_MEMORY, "rcclx_mem_register: out of memory");
	mem->client = client;
	mem->start = (uintptr_t)ptr;
	mem->bytes = bytes;
	r = register_region(client, fd, offset, mem);
	if (r != RCCLX_OK)
		return r;
	/* Only now are its numbers known, which mem_find() hands out. */
	r = table_add(&client->mem, mem);
	if (r != RCCLX_OK) {
		give_back(client, mem->region.handle);
		return r;
	}
	*mem_p = rx_steal(mem);
	return RCCLX_OK;
}

rcclx_result rcclx_mem_deregister(struct rcclx_mem *mem)
{
	rcclx_result r = RCCLX_OK;

	if (!mem)
		return RCCLX_OK;
	r = session_usable(mem->client);
	if (r != RCCLX_OK)
		return r;
	if (table_take(&mem->client->mem, mem->start, false) != mem)
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_mem_deregister: no such registration, or it ended already");
	give_back(mem->client, mem->region.handle);
	free(mem);
	return RCCLX_OK;
}
