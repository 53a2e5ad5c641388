/* SPDX-License-Identifier: MIT */
/*
 * Registered memory. Belongs to a session; queued and running ops hold references, so that memory
 * which its owner frees in the middle stays mapped until nobody uses it. Loop thread only.
 */
#ifndef DAEMON_REGION_H
#define DAEMON_REGION_H

#include "account.h"
#include "exec.h"
#include "../shm/rx_list.h"
#include "../shm/rx_map.h"

struct daemon;
struct gpu_mem;
struct region;
struct session;

/** @r: 0 and @region; or ACCOUNT_E_*, -errno */
typedef void (*region_alloc_fn)(
	struct session *session, uint32_t serial, int r, const struct region *region);

struct region {
	struct daemon *daemon;
	struct session *session; /* NULL: freed by its owner, or the owner is gone */
	struct rx_list link;     /* of session->regions */
	uint64_t id;             /* in daemon->regions; its short form is the session's handle */
	uint32_t n_refs;
	struct gpu_mem *device; /* NULL: no device knows it */
	int fd;                 /* -1: device memory */
	uint64_t offset;        /* where it starts in the file */
	uint64_t bytes;
	struct rx_map map;   /* of the file's [0, offset + bytes), on first use */
	struct exec_job job; /* while large memory is made or freed by a worker */
	int alloc_result;
	uint64_t waiting_session; /* of the alloc, by id: it may have ended meanwhile */
	uint32_t waiting_serial;
	region_alloc_fn alloc_done;
	struct charge region_charge;
	struct charge bytes_charge;
	struct charge fd_charge;
};

/**
 * region_alloc() - new shared memory of @bytes > 0, rounded up to whole pages
 * @done: called with the result, now or, when the memory is large, later; not at all when the
 *        session has ended
 *
 * The kernel clears all pages at once, a second for a few GiB: that is a worker's job.
 */
void region_alloc(struct session *session, uint32_t serial, uint64_t bytes, region_alloc_fn done);

enum {
	REGION_E_SEALS = 16, /* not a memory file sealed against shrinking */
	REGION_E_RANGE,      /* not whole pages inside the file */
};

/** region_register() - take over a client's @fd (on success only)
 * Return: 0; ACCOUNT_E_*; REGION_E_*; -errno.
 */
RX_WARN_UNUSED int region_register(struct session *session, int *fd, uint64_t offset,
	uint64_t bytes, struct region **region_p);

/** region_adopt() - device memory of @bytes; takes over @device on success. Return: as above. */
RX_WARN_UNUSED int region_adopt(
	struct session *session, struct gpu_mem *device, uint64_t bytes, struct region **region_p);

/** region_find() - the session's own region by its handle, or NULL */
struct region *region_find(struct session *session, uint32_t handle);

/** region_close() - the session gives it up; memory goes with the last reference */
void region_close(struct region *region);

struct region *region_ref(struct region *region);
/** region_unref() - NULL is allowed. Returns NULL. */
struct region *region_unref(struct region *region);

/** region_map() - make region_at() work; -errno when the memory cannot be mapped writable */
RX_WARN_UNUSED int region_map(struct region *region);

/** region_at() - address of @offset; mapped, and the range checked already */
void *region_at(const struct region *region, uint64_t offset);

/** region_copy() - what another process may be writing, into private memory: mapped and checked */
void region_copy(const struct region *region, uint64_t offset, void *dst, size_t bytes);

/** region_handle() - the session-local handle */
uint32_t region_handle(const struct region *region);

#endif
