/* SPDX-License-Identifier: MIT */
#include "region.h"

#include "daemon.h"
#include "gpu_mem.h"
#include "session.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_memfd.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES  4096u
#define CHORE_BYTES (4u << 20) /* from here on a worker makes and frees it: a millisecond */

static void close_memory(struct exec_job *job)
{
	struct region *region = rx_container_of(job, struct region, job);

	rx_map_close(&region->map);
	rx_closep(&region->fd);
}

/* Only now are the bytes free for others. */
static void on_closed(struct exec_job *job)
{
	struct region *region = rx_container_of(job, struct region, job);

	charge_release(&region->fd_charge);
	charge_release(&region->bytes_charge);
	charge_release(&region->region_charge);
	free(region);
}

static void release(struct region *region)
{
	if (gpu_mem_is_known(region)) {
		gpu_mem_release(region, release);
		return;
	}
	region->job.run = close_memory;
	region->job.done = on_closed;
	if (region->bytes >= CHORE_BYTES && region->fd >= 0) {
		exec_submit(region->daemon->chores, &region->job, UINT64_MAX);
		return;
	}
	close_memory(&region->job);
	on_closed(&region->job);
}

static int charge(struct region *region, uid_t uid, uint64_t bytes)
{
	struct accounts *accounts = &region->daemon->accounts;
	int r = account_charge(accounts, uid, ACCOUNT_REGIONS, 1, &region->region_charge);

	/* Device memory is the client's own, and no descriptor is kept for it. */
	if (bytes == 0)
		return r;
	if (!r)
		r = account_charge(accounts, uid, ACCOUNT_BYTES, bytes, &region->bytes_charge);
	if (!r)
		r = account_charge(accounts, uid, ACCOUNT_FDS, 1, &region->fd_charge);
	return r;
}

/* Everything but the fd. @bytes: to charge */
static int region_new(struct session *session, uint64_t bytes, struct region **region_p)
{
	struct region *region = calloc(1, sizeof(*region));
	int r = 0;

	if (!region)
		return -ENOMEM;
	region->daemon = session->daemon;
	region->fd = -1;
	region->bytes = bytes;
	region->n_refs = 1;
	rx_list_init(&region->link);
	r = charge(region, session->uid, bytes);
	if (!r)
		r = rx_idmap_add(&session->daemon->regions, region, &region->id);
	if (r) {
		release(region);
		return r;
	}
	*region_p = region;
	return 0;
}

static void own(struct region *region, struct session *session)
{
	region->session = session;
	rx_list_push(&session->regions, &region->link);
	session->n_regions++;
	session->region_bytes += region->bytes;
}

static void drop_new(struct region *region)
{
	(void)rx_idmap_remove(&region->daemon->regions, region->id);
	release(region);
}

static void make_memory(struct exec_job *job)
{
	struct region *region = rx_container_of(job, struct region, job);

	region->alloc_result =
		rx_memfd_new("rcclx-memory", region->bytes, RX_MEMFD_SHARED, &region->fd);
}

static void on_made(struct exec_job *job)
{
	struct region *region = rx_container_of(job, struct region, job);
	struct session *session = rx_idmap_find(&region->daemon->sessions, region->waiting_session);
	uint32_t serial = region->waiting_serial;
	region_alloc_fn done = region->alloc_done;
	int r = region->alloc_result;

	if (r || !session) {
		drop_new(region);
		region = NULL;
	} else {
		own(region, session);
	}
	if (session)
		done(session, serial, r, region);
}

void region_alloc(struct session *session, uint32_t serial, uint64_t bytes, region_alloc_fn done)
{
	struct region *region = NULL;
	uint64_t most = UINT64_MAX - PAGE_BYTES;
	int r = region_new(session, rx_align_up(rx_min_u64(bytes, most), PAGE_BYTES), &region);

	if (r) {
		done(session, serial, r, NULL);
		return;
	}
	region->waiting_session = session->id;
	region->waiting_serial = serial;
	region->alloc_done = done;
	region->job.run = make_memory;
	region->job.done = on_made;
	if (region->bytes >= CHORE_BYTES) {
		exec_submit(session->daemon->chores, &region->job, UINT64_MAX);
		return;
	}
	make_memory(&region->job);
	on_made(&region->job);
}

int region_register(
	struct session *session, int *fd, uint64_t offset, uint64_t bytes, struct region **region_p)
{
	struct region *region = NULL;
	uint64_t file_bytes = 0;
	int r = rx_memfd_check(*fd, &file_bytes);

	if (r == -EINVAL)
		return REGION_E_SEALS;
	if (r)
		return r;
	if (bytes == 0 || offset % PAGE_BYTES != 0 || bytes % PAGE_BYTES != 0 ||
		!rx_range_ok(offset, bytes, file_bytes))
		return REGION_E_RANGE;
	r = region_new(session, bytes, &region);
	if (r)
		return r;
	region->offset = offset;
	region->fd = rx_steal_fd(fd);
	own(region, session);
	*region_p = region;
	return 0;
}

int region_adopt(
	struct session *session, struct gpu_mem *device, uint64_t bytes, struct region **region_p)
{
	struct region *region = NULL;
	int r = region_new(session, 0, &region);

	if (r)
		return r;
	region->bytes = bytes;
	region->device = device;
	own(region, session);
	*region_p = region;
	return 0;
}

struct region *region_find(struct session *session, uint32_t handle)
{
	struct region *region = rx_idmap_find_short(&session->daemon->regions, handle);

	return region && region->session == session ? region : NULL;
}

void region_close(struct region *region)
{
	struct session *session = region->session;

	assert(session);
	session->n_regions--;
	session->region_bytes -= region->bytes;
	rx_list_unlink(&region->link);
	region->session = NULL;
	(void)rx_idmap_remove(&region->daemon->regions, region->id);
	gpu_mem_freed(region);
	(void)region_unref(region);
}

struct region *region_ref(struct region *region)
{
	region->n_refs++;
	return region;
}

struct region *region_unref(struct region *region)
{
	if (region && --region->n_refs == 0)
		release(region);
	return NULL;
}

int region_map(struct region *region)
{
	if (region->map.addr || region->fd < 0)
		return 0;
	return rx_map_open(&region->map, region->fd, region->offset + region->bytes,
		RX_MAP_RW | RX_MAP_DONTFORK | RX_MAP_DONTDUMP);
}

void *region_at(const struct region *region, uint64_t offset)
{
	return (uint8_t *)region->map.addr + region->offset + offset;
}

void region_copy(const struct region *region, uint64_t offset, void *dst, size_t bytes)
{
	memcpy(dst, region_at(region, offset), bytes);
}

uint32_t region_handle(const struct region *region)
{
	return rx_idmap_short(region->id);
}
