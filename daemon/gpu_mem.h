/* SPDX-License-Identifier: MIT */
/* Memory as devices see it: allocations that clients export, and host memory for mixed calls. */
#ifndef DAEMON_GPU_MEM_H
#define DAEMON_GPU_MEM_H

#include "gpu.h"
#include "../proto/rx_msg.h"
#include "../proto/rx_fdset.h"

struct region;
struct session;

/** @r: 0, and @region or NULL with the reason not to use it; or ACCOUNT_E_*, -errno */
typedef void (*gpu_mem_fn)(
	struct session *session, uint32_t serial, int r, const struct region *region, uint32_t why);

/**
 * gpu_mem_register() - import a client's allocation on all devices that reach it, and prove it
 * @fds:  what the message brought
 * @done: called with the result, later or now; not at all when the session has ended
 */
void gpu_mem_register(struct session *session, uint32_t serial,
	const struct rx_msg_gpu_register *msg, struct rx_fdset *fds, gpu_mem_fn done);

/** gpu_mem_freed() - the owner freed it: used for nothing new */
void gpu_mem_freed(struct region *region);

/**
 * gpu_mem_release() - nobody uses it any more: unmap it, or forget the host memory's address
 * @done: afterwards, in the loop thread
 */
void gpu_mem_release(struct region *region, void (*done)(struct region *region));

/** gpu_mem_is_known() - do devices know @region? Then gpu_mem_release() has to be called. */
bool gpu_mem_is_known(const struct region *region);

/** gpu_mem_session_gone() - forget what is cached of its exports */
void gpu_mem_session_gone(struct session *session);

/** gpu_mem_prepare() - host memory that is going to be used by devices. Return: 0 or -ENOMEM. */
RX_WARN_UNUSED int gpu_mem_prepare(struct region *region);

/**
 * gpu_mem_address() - in the worker: where @device sees the range of @region
 * Return: 0 or enum rx_gpu_result with @error filled.
 */
RX_WARN_UNUSED int gpu_mem_address(struct gpu *gpu, struct region *region, uint32_t device,
	uint64_t offset, uint64_t bytes, uint64_t *address_p, struct rx_gpu_error *error);

/** gpu_mem_device() - the device that @region is memory of; UINT32_MAX for host memory, NULL */
uint32_t gpu_mem_device(const struct region *region);

#endif
