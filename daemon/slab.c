/* SPDX-License-Identifier: MIT */
/*
 * Parts are handed out first fit, in whole pages, behind one page with the bytes that prove a
 * mapping. That is bookkeeping; the memory itself is the worker's, and a session that asks for it
 * waits until it is there.
 *
 * A part that comes back is cleared before it is free again, so that what one communicator left
 * does not look like the flags of the next.
 */
#include "slab.h"

#include "daemon.h"
#include "session.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096u

enum slab_state {
	SLAB_PLANNED, /* parts were handed out, nobody has mapped it */
	SLAB_MAKING,
	SLAB_READY,
	SLAB_FAILED, /* it cannot be made, or not be cleared: no new parts */
};

struct slab {
	struct rx_list link;
	struct gpu *gpu;
	uint32_t device;
	uid_t uid;
	enum slab_state state;
	uint64_t bytes;
	uint64_t used_bytes;
	struct rx_list parts;
	struct rx_list waiting; /* struct waiter */
	uint32_t n_holds;       /* of sessions that may have mapped it */
	struct gpu_job job;     /* that makes it, or gives the memory back */
	/* The worker's until it is ready. */
	uint64_t address;
	struct slab_export shared;
	char why[RX_DEVICE_TEXT_MAX];
};

struct slabs {
	struct rx_list list;
};

struct waiter {
	struct rx_list link;
	struct daemon *daemon;
	uint64_t session_id;
	uint32_t serial;
	slab_fn done;
	uint64_t part_offset;
	uint64_t part_bytes;
	uint32_t max_blocks;
};

/* A session that was told how to map it. */
struct slab_hold {
	struct rx_list link; /* of session->slabs */
	struct slab *slab;
};

struct slabs *slabs_new(void)
{
	struct slabs *slabs = malloc(sizeof(*slabs));

	if (slabs)
		rx_list_init(&slabs->list);
	return slabs;
}

struct slabs *slabs_free(struct slabs *slabs)
{
	assert(!slabs || rx_list_empty(&slabs->list));
	free(slabs);
	return NULL;
}

/* ---- in the worker ---- */

static void fail(struct slab *slab, const struct rx_gpu_error *error)
{
	size_t i = 0;

	/* Texts travel to people's terminals. */
	for (; i + 1 < sizeof(slab->why) && error->text[i]; i++)
		slab->why[i] =
			error->text[i] < 0x20 || error->text[i] > 0x7e ? '?' : error->text[i];
	slab->why[i] = '\0';
}

static int mark_and_export(struct slab *slab, struct gpu *gpu, struct rx_gpu_error *error)
{
	const struct rx_backend_v1 *ops = gpu_ops(gpu);
	const struct rx_gpu_sample sample = {.bytes = RX_SLAB_ROWS};
	uint8_t rows[RX_GPU_SAMPLE_BYTES] = {0};
	uint32_t n = 0;
	int fd = -1;
	int r = ops->sample_fill(gpu_runtime(gpu), slab->address, &sample, error);

	if (r == 0)
		r = ops->sample(gpu_runtime(gpu), slab->address, &sample, NULL, rows, error);
	if (r == 0)
		r = ops->export_memory(gpu_runtime(gpu), slab->address, slab->bytes,
			&slab->shared.export, &fd, 1, &n, error);
	if (fd >= 0)
		(void)close(fd);
	memcpy(slab->shared.rows, rows, sizeof(slab->shared.rows));
	return r;
}

static bool make(struct gpu_job *job, struct gpu *gpu)
{
	struct slab *slab = rx_container_of(job, struct slab, job);
	struct rx_gpu_device *opened = gpu_open(gpu, slab->device);
	struct rx_gpu_error error = {0};
	int r = RX_GPU_E_DEVICE;

	if (!opened)
		(void)snprintf(error.text, sizeof(error.text), "it could not be opened");
	else
		r = gpu_ops(gpu)->alloc_words(opened, slab->bytes, &slab->address, &error);
	if (r == 0)
		r = mark_and_export(slab, gpu, &error);
	if (r && slab->address) {
		gpu_ops(gpu)->free(opened, slab->address);
		slab->address = 0;
	}
	if (r)
		fail(slab, &error);
	if (opened)
		gpu_note(gpu, slab->device, r ? &error : NULL);
	return true;
}

static bool clear(struct gpu_job *job, struct gpu *gpu)
{
	struct slab_part *part = rx_container_of(job, struct slab_part, job);
	struct slab *slab = part->slab;
	struct rx_gpu_error error = {0};

	if (gpu_ops(gpu)->clear(gpu_opened(gpu, slab->device), slab->address + part->offset,
		    part->bytes, &error))
		fail(slab, &error);
	return true;
}

/* Waits until no operation runs: the runtime does so, too, and would keep us meanwhile. */
static bool unmake(struct gpu_job *job, struct gpu *gpu)
{
	struct slab *slab = rx_container_of(job, struct slab, job);

	if (!gpu_is_quiet(gpu))
		return false;
	gpu_ops(gpu)->free(gpu_opened(gpu, slab->device), slab->address);
	return true;
}

static bool poll_unmake(struct gpu_job *job, struct gpu *gpu, bool give_up)
{
	/* The end of the process gives it back. */
	return give_up || unmake(job, gpu);
}

/* ---- life ---- */

static void on_unmade(struct gpu_job *job)
{
	free(rx_container_of(job, struct slab, job));
}

static void release(struct slab *slab)
{
	if (!rx_list_empty(&slab->parts) || !rx_list_empty(&slab->waiting) || slab->n_holds > 0 ||
		slab->state == SLAB_MAKING)
		return;
	rx_list_unlink(&slab->link);
	if (!slab->address) {
		free(slab);
		return;
	}
	slab->job = (struct gpu_job){
		.run = unmake, .poll = poll_unmake, .done = on_unmade, .waits = true};
	gpu_submit(slab->gpu, &slab->job);
}

static struct slab *find(const struct slabs *slabs, uint32_t device, uid_t uid)
{
	rx_list_for_each (pos, &slabs->list) {
		struct slab *slab = rx_list_entry(pos, struct slab, link);

		if (slab->device == device && slab->uid == uid)
			return slab;
	}
	return NULL;
}

static struct slab *slab_new(
	struct slabs *slabs, struct gpu *gpu, uint32_t device, uid_t uid, uint64_t bytes)
{
	struct slab *slab = calloc(1, sizeof(*slab));

	if (!slab)
		return NULL;
	slab->gpu = gpu;
	slab->device = device;
	slab->uid = uid;
	slab->bytes = rx_align_up(bytes, PAGE_BYTES);
	rx_list_init(&slab->parts);
	rx_list_init(&slab->waiting);
	rx_list_push(&slabs->list, &slab->link);
	return slab;
}

/* Where @bytes fit, and before which part. False: nowhere. */
static bool find_room(
	struct slab *slab, uint64_t bytes, uint64_t *offset_p, struct rx_list **before_p)
{
	uint64_t at = PAGE_BYTES;

	rx_list_for_each (pos, &slab->parts) {
		const struct slab_part *part = rx_list_entry(pos, struct slab_part, link);

		*before_p = pos;
		*offset_p = at;
		if (part->offset - at >= bytes)
			return true;
		at = part->offset + part->bytes;
	}
	*before_p = &slab->parts;
	*offset_p = at;
	return rx_range_ok(at, bytes, slab->bytes);
}

int slab_take(struct slabs *slabs, struct gpu *gpu, uint32_t device, uid_t uid, uint64_t slab_bytes,
	uint64_t bytes, struct slab_part **part_p)
{
	struct slab *slab = find(slabs, device, uid);
	struct slab_part *part = calloc(1, sizeof(*part));
	struct rx_list *before = NULL;
	int r = 0;

	if (!slab)
		slab = slab_new(slabs, gpu, device, uid, slab_bytes);
	if (!slab || !part) {
		free(part);
		if (slab)
			release(slab);
		return -ENOMEM;
	}
	part->slab = slab;
	part->bytes = rx_align_up(bytes, PAGE_BYTES);
	if (slab->state == SLAB_FAILED || !find_room(slab, part->bytes, &part->offset, &before))
		r = -ENOSPC;
	if (r) {
		free(part);
		release(slab);
		return r;
	}
	rx_list_push(before, &part->link);
	slab->used_bytes += part->bytes;
	*part_p = part;
	return 0;
}

static void free_part(struct slab_part *part)
{
	struct slab *slab = part->slab;

	rx_list_unlink(&part->link);
	slab->used_bytes -= part->bytes;
	free(part);
	release(slab);
}

static void on_cleared(struct gpu_job *job)
{
	struct slab_part *part = rx_container_of(job, struct slab_part, job);

	if (part->slab->why[0])
		part->slab->state = SLAB_FAILED;
	free_part(part);
}

struct slab_part *slab_put(struct slab_part *part)
{
	if (!part)
		return NULL;
	if (part->slab->state != SLAB_READY) {
		/* Nobody has mapped it; or nobody gets it again. */
		free_part(part);
		return NULL;
	}
	part->job = (struct gpu_job){.run = clear, .done = on_cleared};
	gpu_submit(part->slab->gpu, &part->job);
	return NULL;
}

uint32_t slab_device(const struct slab_part *part)
{
	return part->slab->device;
}

/* ---- sharing ---- */

static bool holds(const struct session *session, const struct slab *slab)
{
	rx_list_for_each (pos, &session->slabs)
		if (rx_list_entry(pos, struct slab_hold, link)->slab == slab)
			return true;
	return false;
}

static bool hold(struct session *session, struct slab *slab)
{
	struct slab_hold *hold = NULL;

	if (holds(session, slab))
		return true;
	hold = calloc(1, sizeof(*hold));
	if (!hold)
		return false;
	hold->slab = slab;
	rx_list_push(&session->slabs, &hold->link);
	slab->n_holds++;
	return true;
}

static void tell(struct slab *slab, const struct waiter *waiter)
{
	struct session *session = rx_idmap_find(&waiter->daemon->sessions, waiter->session_id);
	struct slab_export shared = slab->shared;

	shared.part_offset = waiter->part_offset;
	shared.part_bytes = waiter->part_bytes;
	shared.max_blocks = waiter->max_blocks;
	if (!session)
		return;
	if (slab->state != SLAB_READY)
		waiter->done(session, waiter->serial, NULL, slab->why);
	else if (!hold(session, slab))
		waiter->done(session, waiter->serial, NULL, "out of memory");
	else
		waiter->done(session, waiter->serial, &shared, NULL);
}

static void on_made(struct gpu_job *job)
{
	struct slab *slab = rx_container_of(job, struct slab, job);

	slab->state = slab->address ? SLAB_READY : SLAB_FAILED;
	while (!rx_list_empty(&slab->waiting)) {
		struct waiter *waiter = rx_list_entry(slab->waiting.next, struct waiter, link);

		rx_list_unlink(&waiter->link);
		tell(slab, waiter);
		free(waiter);
	}
	release(slab);
}

static int wait_for(struct slab *slab, const struct waiter *like)
{
	struct waiter *waiter = malloc(sizeof(*waiter));

	if (!waiter)
		return -ENOMEM;
	*waiter = *like;
	rx_list_init(&waiter->link);
	rx_list_push(&slab->waiting, &waiter->link);
	if (slab->state == SLAB_MAKING)
		return 0;
	slab->state = SLAB_MAKING;
	slab->job = (struct gpu_job){.run = make, .done = on_made};
	gpu_submit(slab->gpu, &slab->job);
	return 0;
}

void slab_share(struct slab_part *part, struct session *session, uint32_t serial, slab_fn done)
{
	struct slab *slab = part->slab;
	const struct waiter waiter = {
		.daemon = session->daemon,
		.session_id = session->id,
		.serial = serial,
		.done = done,
		.part_offset = part->offset,
		.part_bytes = part->bytes,
		.max_blocks = part->max_blocks,
	};

	if (slab->state == SLAB_READY || slab->state == SLAB_FAILED)
		tell(slab, &waiter);
	else if (wait_for(slab, &waiter))
		done(session, serial, NULL, "out of memory");
}

void slab_session_gone(struct session *session)
{
	while (!rx_list_empty(&session->slabs)) {
		struct slab_hold *hold = rx_list_entry(session->slabs.next, struct slab_hold, link);
		struct slab *slab = hold->slab;

		rx_list_unlink(&hold->link);
		free(hold);
		slab->n_holds--;
		release(slab);
	}
}

void slab_usage(const struct slabs *slabs, uint32_t device, uint64_t *bytes_p, uint64_t *used_p)
{
	*bytes_p = *used_p = 0;
	rx_list_for_each (pos, &slabs->list) {
		const struct slab *slab = rx_list_entry(pos, struct slab, link);

		if (slab->device != device || slab->state != SLAB_READY)
			continue;
		*bytes_p += slab->bytes;
		*used_p += slab->used_bytes;
	}
}
