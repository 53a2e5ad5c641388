/* SPDX-License-Identifier: MIT */
/*
 * Device memory of the daemon's that clients map: one slab for each device and user, made when it
 * is first wanted, with parts for the ranks of communicators. It goes when nobody has a part of it
 * and no session that could have mapped it is left. Loop thread, but for the jobs.
 *
 * By user, because whoever maps it can write all of it.
 */
#ifndef DAEMON_SLAB_H
#define DAEMON_SLAB_H

#include "gpu.h"

#include <sys/types.h>

struct session;
struct slab;
struct slabs;

struct slab_part {
	struct rx_list link; /* of its slab, by offset */
	struct slab *slab;
	uint64_t offset;
	uint64_t bytes;
	uint32_t max_blocks; /* of kernels that use it; its taker's to set */
	struct gpu_job job;  /* that clears it before somebody else has it */
};

/* What a client needs to map a slab, and where in it the part is that it asked for. */
struct slab_export {
	struct rx_gpu_export export;
	uint8_t rows[RX_SLAB_ROWS];
	uint64_t part_offset;
	uint64_t part_bytes;
	uint32_t max_blocks; /* as the part was told */
};

/** @export: NULL: the slab could not be made, @why says so */
typedef void (*slab_fn)(struct session *session, uint32_t serial, const struct slab_export *export,
	const char *why);

/** slabs_new() - none yet; NULL: out of memory */
struct slabs *slabs_new(void);

/** slabs_free() - when all parts and sessions are gone. Returns NULL; NULL is allowed. */
struct slabs *slabs_free(struct slabs *slabs);

/**
 * slab_take() - a part of the slab of @device and @uid, which need not exist yet; GPU_READY
 * @slab_bytes: of the slab, if it is a new one
 * Return: 0; -ENOSPC: the slab is full; -ENOMEM.
 */
RX_WARN_UNUSED int slab_take(struct slabs *slabs, struct gpu *gpu, uint32_t device, uid_t uid,
	uint64_t slab_bytes, uint64_t bytes, struct slab_part **part_p);

/** slab_put() - nobody uses @part any more. Returns NULL; NULL is allowed. */
struct slab_part *slab_put(struct slab_part *part);

/** slab_device() - that @part is on */
uint32_t slab_device(const struct slab_part *part);

/**
 * slab_share() - let @session map the slab of @part; @done is called now or later, or not at all
 * when the session has ended
 */
void slab_share(struct slab_part *part, struct session *session, uint32_t serial, slab_fn done);

/** slab_session_gone() - @session has unmapped what it had, or cannot any more */
void slab_session_gone(struct session *session);

/** slab_usage() - of all users, on @device */
void slab_usage(const struct slabs *slabs, uint32_t device, uint64_t *bytes_p, uint64_t *used_p);

#endif
