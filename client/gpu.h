/* SPDX-License-Identifier: MIT */
/*
 * Device memory of this process, through the GPU runtime that it has loaded itself. A process
 * without one pays a relaxed load for each call.
 */
#ifndef CLIENT_GPU_H
#define CLIENT_GPU_H

#include "mem.h"

#include <stdatomic.h>

extern _Atomic uint32_t gpu_found;

/** gpu_look() - has the process a GPU runtime by now? Called when it makes a communicator. */
void gpu_look(void);

/** gpu_is_there() - after gpu_look() found one */
static inline bool gpu_is_there(void)
{
	return rx_unlikely(atomic_load_explicit(&gpu_found, memory_order_relaxed) != 0);
}

/** gpu_is_device() - is @address device memory? */
bool gpu_is_device(const void *address);

/* What a session has registered of device memory. */
struct gpu_table {
	pthread_mutex_t lock;
	struct gpu_entry *entries;
	uint32_t n_entries;
	uint32_t n_allocated;
};

/** gpu_table_init() - empty. Return: 0 or -errno. */
RX_WARN_UNUSED int gpu_table_init(struct gpu_table *table);

/** gpu_table_deinit() - without a word to the daemon, which forgets all of a session's memory */
void gpu_table_deinit(struct gpu_table *table);

/**
 * gpu_mem_known() - what gpu_mem_find() would find, if that is memory which is used in place, by
 * fewer questions to the runtime
 */
bool gpu_mem_known(
	struct rcclx_client *client, const void *address, uint64_t bytes, struct mem_ref *ref_p);

/**
 * gpu_mem_find() - register device memory with the daemon, once for each allocation
 * @idle: nothing works on it now; else it is proven only by contents that agree all the same
 *
 * Return: RCCLX_OK and *ref_p, whose handle is RX_REGION_NONE when the daemon cannot use the memory
 * in place, so that it has to be copied; an error.
 */
rcclx_result gpu_mem_find(struct rcclx_client *client, const void *address, uint64_t bytes,
	bool idle, struct mem_ref *ref_p);

/** gpu_mem_make() - memory of @device that the daemon can use. RCCLX_ERR_SYSTEM: it cannot. */
rcclx_result gpu_mem_make(struct rcclx_client *client, uint32_t device, uint64_t bytes,
	uint64_t *address_p, uint32_t *handle_p);

/** gpu_copy() - from or to device memory, which nothing else works on; blocks */
rcclx_result gpu_copy(void *to, const void *from, uint64_t bytes);

#endif
