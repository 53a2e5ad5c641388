/* SPDX-License-Identifier: MIT */
/*
 * An allocation is imported for every device that can reach it, and every mapping is proven with
 * the same rows: then it can be used by any communicator, and no operation has to ask. If one of
 * them cannot be proven the client copies through host memory instead, and tries again later.
 *
 * The worker learns in order of the loop thread's jobs that an allocation was freed and that
 * another one came at its place.
 */
#include "gpu_mem.h"

#include "account.h"
#include "daemon.h"
#include "region.h"
#include "session.h"
#include "../shm/rx_cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each holds a few KiB and descriptors. One after the other is what the library does. */
#define REGISTERING_MAX 4u

struct gpu_mem {
	struct gpu *gpu;
	struct gpu_job freed;
	struct gpu_job release;
	struct region *region;
	void (*done)(struct region *region);
	uint64_t owner;
	uint64_t base;
	uint32_t device; /* UINT32_MAX: host memory */
	struct rx_gpu_map *maps[RX_GPU_DEVICES_MAX];
	uint64_t address; /* worker: of host memory, once a device needed it; 0: not yet */
};

struct registration {
	struct gpu_job job;
	struct daemon *daemon;
	uint64_t session_id;
	uint32_t serial;
	gpu_mem_fn done;
	struct charge fd_charge;
	struct rx_gpu_export exports[RX_GPU_PIECES_MAX];
	int fds[RX_GPU_PIECES_MAX];
	uint32_t n;
	uint64_t bytes; /* of all pieces */
	struct rx_gpu_sample sample;
	uint32_t flags; /* enum rx_gpu_prove_flags */
	uint8_t rows[RX_GPU_ROWS_MAX];
	struct gpu_mem *mem;
	bool good;
	uint32_t why;
};

static_assert(RX_GPU_ROWS_MAX == RX_GPU_SAMPLE_BYTES, "rows as they travel");
static_assert(RX_GPU_HANDLE_MAX == RX_GPU_HANDLE_BYTES, "handles as they travel");

/* ---- importing: in the worker ---- */

static uint32_t why_not_imported(int result)
{
	if (result == RX_GPU_E_LIMIT)
		return RX_GPU_WHY_LIMIT;
	return result == RX_GPU_E_UNSUPPORTED ? RX_GPU_WHY_KIND : RX_GPU_WHY_REFUSED;
}

/* Import and prove it for one opened device. False: copy instead. */
static bool import_on(struct registration *reg, struct gpu *gpu, uint32_t device)
{
	const struct rx_backend_v1 *ops = gpu_ops(gpu);
	struct rx_gpu_device *opened = gpu_opened(gpu, device);
	struct rx_gpu_map *map = NULL;
	struct rx_gpu_error error = {0};
	uint32_t verdict = RX_GPU_OPEN;
	int r = ops->import(opened, reg->mem->owner, reg->exports, reg->fds, reg->n, &map, &error);

	if (r) {
		reg->why = why_not_imported(r);
		ops->count_copied(opened, reg->why);
		gpu_note(gpu, device, &error);
		return false;
	}
	r = ops->prove(map, &reg->sample, reg->rows, reg->flags, &verdict, &error);
	if (r || verdict != RX_GPU_PROVEN) {
		struct rx_gpu_map_info info = {.why = RX_GPU_WHY_REFUSED};

		ops->map_info(map, &info);
		reg->why = info.why;
		ops->count_copied(opened, reg->why);
		ops->map_release(map);
		gpu_note(gpu, device, r ? &error : NULL);
		return false;
	}
	reg->mem->maps[device] = map;
	return true;
}

static void release_maps(struct gpu_mem *mem, struct gpu *gpu)
{
	for (uint32_t i = 0; i < gpu_n_devices(gpu); i++) {
		if (!mem->maps[i])
			continue;
		gpu_ops(gpu)->map_release(mem->maps[i]);
		mem->maps[i] = NULL;
		gpu_note(gpu, i, NULL);
	}
	gpu_reap_later(gpu);
}

static bool import_everywhere(struct gpu_job *job, struct gpu *gpu)
{
	struct registration *reg = rx_container_of(job, struct registration, job);
	uint32_t own = reg->mem->device;

	reg->why = RX_GPU_WHY_REFUSED;
	reg->good = gpu_open(gpu, own) && import_on(reg, gpu, own);
	for (uint32_t i = 0; i < gpu_n_devices(gpu) && reg->good; i++)
		if (i != own && gpu_peers(gpu, i) >> own & 1 && gpu_open(gpu, i))
			reg->good = import_on(reg, gpu, i);
	if (reg->good)
		gpu_note(gpu, own, NULL);
	else
		release_maps(reg->mem, gpu);
	return true;
}

/* ---- registering: in the loop thread ---- */

static void registration_free(struct registration *reg)
{
	for (uint32_t i = 0; i < reg->n; i++)
		rx_closep(&reg->fds[i]);
	charge_release(&reg->fd_charge);
	free(reg->mem);
	free(reg);
}

/* Nobody wants what was imported. */
static void drop_mem(struct region *region)
{
	(void)region;
}

static void forget(struct gpu_mem *mem);

static void on_imported(struct gpu_job *job)
{
	struct registration *reg = rx_container_of(job, struct registration, job);
	struct session *session = rx_idmap_find(&reg->daemon->sessions, reg->session_id);
	struct region *region = NULL;
	int r = 0;

	if (session)
		session->n_registering--;
	if (reg->good && session)
		r = region_adopt(session, reg->mem, reg->bytes, &region);
	if (region)
		reg->mem = NULL;
	else if (reg->good)
		forget(rx_steal(reg->mem));
	if (session)
		reg->done(session, reg->serial, r, region, reg->why);
	registration_free(reg);
}

static int read_message(struct registration *reg, const struct rx_msg_gpu_register *msg,
	uint32_t device, struct rx_fdset *fds)
{
	reg->n = (uint32_t)msg->n_pieces;
	for (uint32_t i = 0; i < reg->n; i++)
		reg->fds[i] = -1;
	for (uint32_t i = 0; i < reg->n; i++) {
		const struct rx_gpu_piece *piece = &msg->pieces[i];
		struct rx_gpu_memory *memory = &reg->exports[i].memory;

		memory->base = piece->start;
		memory->bytes = piece->bytes;
		memory->id = piece->id;
		memory->kind = piece->kind;
		memory->device = device;
		memcpy(memory->uuid, piece->uuid.data, sizeof(memory->uuid));
		if (piece->handle.len > 0)
			memcpy(reg->exports[i].handle, piece->handle.data, piece->handle.len);
		if (memcmp(piece->uuid.data, msg->pieces[0].uuid.data, piece->uuid.len) != 0 ||
			piece->start != msg->pieces[0].start + reg->bytes ||
			!rx_add_u64(reg->bytes, piece->bytes, &reg->bytes) ||
			!rx_range_ok(piece->start, piece->bytes, UINT64_MAX))
			return -EINVAL;
		reg->fds[i] = rx_fdset_take(fds, i);
	}
	reg->sample = (struct rx_gpu_sample){
		.offset = msg->sample_offset,
		.bytes = msg->sample_bytes,
		.seed = msg->sample_seed,
	};
	reg->flags = msg->flags & (RX_GPU_PROVE_STABLE | RX_GPU_PROVE_NONCE);
	if (msg->rows.len > 0)
		memcpy(reg->rows, msg->rows.data, msg->rows.len);
	return rx_range_ok(msg->sample_offset, msg->sample_bytes, reg->bytes) ? 0 : -EINVAL;
}

static int registration_new(struct session *session, const struct rx_msg_gpu_register *msg,
	uint32_t device, struct rx_fdset *fds, struct registration **reg_p)
{
	struct registration *reg = calloc(1, sizeof(*reg));
	int r = reg ? read_message(reg, msg, device, fds) : -ENOMEM;

	if (!r) {
		reg->mem = calloc(1, sizeof(*reg->mem));
		r = reg->mem ? 0 : -ENOMEM;
	}
	if (!r)
		r = account_charge(&session->daemon->accounts, session->uid, ACCOUNT_FDS, reg->n,
			&reg->fd_charge);
	if (r) {
		if (reg)
			registration_free(reg);
		return r;
	}
	reg->mem->gpu = session->daemon->gpu;
	reg->mem->owner = session->id;
	reg->mem->base = msg->pieces[0].start;
	reg->mem->device = device;
	*reg_p = reg;
	return 0;
}

void gpu_mem_register(struct session *session, uint32_t serial,
	const struct rx_msg_gpu_register *msg, struct rx_fdset *fds, gpu_mem_fn done)
{
	struct gpu *gpu = session->daemon->gpu;
	uint32_t device =
		gpu_state(gpu) == GPU_READY ? gpu_find(gpu, msg->pieces[0].uuid.data) : UINT32_MAX;
	struct registration *reg = NULL;
	int r = 0;

	if (device == UINT32_MAX) {
		done(session, serial, 0, NULL, RX_GPU_WHY_KIND);
		return;
	}
	r = session->n_registering < REGISTERING_MAX
		    ? registration_new(session, msg, device, fds, &reg)
		    : -EBUSY;
	if (r) {
		done(session, serial, r, NULL, 0);
		return;
	}
	reg->daemon = session->daemon;
	reg->session_id = session->id;
	reg->serial = serial;
	reg->done = done;
	reg->job.run = import_everywhere;
	reg->job.done = on_imported;
	session->n_registering++;
	session->has_exported = true;
	gpu_submit(gpu, &reg->job);
}

/* ---- the end ---- */

static bool tell_freed(struct gpu_job *job, struct gpu *gpu)
{
	struct gpu_mem *mem = rx_container_of(job, struct gpu_mem, freed);

	for (uint32_t i = 0; i < gpu_n_devices(gpu); i++)
		if (mem->maps[i])
			gpu_ops(gpu)->owner_freed(gpu_opened(gpu, i), mem->owner, mem->base);
	return true;
}

/* The job that follows it in the queue ends with the memory. */
static void on_told(struct gpu_job *job)
{
	(void)job;
}

void gpu_mem_freed(struct region *region)
{
	struct gpu_mem *mem = region->device;

	if (!mem || mem->device == UINT32_MAX)
		return;
	mem->freed.run = tell_freed;
	mem->freed.done = on_told;
	gpu_submit(mem->gpu, &mem->freed);
}

static bool release(struct gpu_job *job, struct gpu *gpu)
{
	struct gpu_mem *mem = rx_container_of(job, struct gpu_mem, release);

	if (mem->address)
		(void)gpu_ops(gpu)->host_unregister(gpu_runtime(gpu), mem->region->map.addr, NULL);
	release_maps(mem, gpu);
	return true;
}

static void on_released(struct gpu_job *job)
{
	struct gpu_mem *mem = rx_container_of(job, struct gpu_mem, release);
	void (*done)(struct region * region) = mem->done;
	struct region *region = mem->region;

	if (region)
		region->device = NULL;
	free(mem);
	done(region);
}

static void start_release(struct gpu_mem *mem)
{
	mem->release.run = release;
	mem->release.done = on_released;
	gpu_submit(mem->gpu, &mem->release);
}

static void forget(struct gpu_mem *mem)
{
	mem->done = drop_mem;
	start_release(mem);
}

bool gpu_mem_is_known(const struct region *region)
{
	return region->device != NULL;
}

void gpu_mem_release(struct region *region, void (*done)(struct region *region))
{
	region->device->region = region;
	region->device->done = done;
	start_release(region->device);
}

struct farewell {
	struct gpu_job job;
	uint64_t owner;
};

static bool tell_gone(struct gpu_job *job, struct gpu *gpu)
{
	struct farewell *farewell = rx_container_of(job, struct farewell, job);

	for (uint32_t i = 0; i < gpu_n_devices(gpu); i++)
		if (gpu_opened(gpu, i))
			gpu_ops(gpu)->owner_gone(gpu_opened(gpu, i), farewell->owner);
	gpu_reap_later(gpu);
	return true;
}

static void on_farewell(struct gpu_job *job)
{
	free(rx_container_of(job, struct farewell, job));
}

void gpu_mem_session_gone(struct session *session)
{
	struct farewell *farewell = NULL;

	if (!session->has_exported)
		return;
	farewell = calloc(1, sizeof(*farewell));
	/* Without memory for it: mappings that nobody refers to go when their room is needed. */
	if (!farewell)
		return;
	farewell->owner = session->id;
	farewell->job.run = tell_gone;
	farewell->job.done = on_farewell;
	gpu_submit(session->daemon->gpu, &farewell->job);
}

/* ---- use ---- */

int gpu_mem_prepare(struct region *region)
{
	struct gpu_mem *mem = NULL;

	if (region->device)
		return 0;
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	mem->gpu = region->daemon->gpu;
	mem->device = UINT32_MAX;
	mem->region = region;
	region->device = mem;
	return 0;
}

int gpu_mem_address(struct gpu *gpu, struct region *region, uint32_t device, uint64_t offset,
	uint64_t bytes, uint64_t *address_p, struct rx_gpu_error *error)
{
	const struct rx_backend_v1 *ops = gpu_ops(gpu);
	struct gpu_mem *mem = region->device;
	int r = 0;

	if (mem->device != UINT32_MAX) {
		assert(mem->maps[device]);
		return ops->map_address(mem->maps[device], offset, bytes, address_p, error);
	}
	if (!mem->address)
		r = ops->host_register(gpu_runtime(gpu), region->map.addr, region->map.bytes,
			&mem->address, error);
	if (r == 0)
		*address_p = mem->address + region->offset + offset;
	return r;
}

uint32_t gpu_mem_device(const struct region *region)
{
	return region && region->device ? region->device->device : UINT32_MAX;
}
