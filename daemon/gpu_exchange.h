/* SPDX-License-Identifier: MIT */
/*
 * Device memory in which kernels of several devices meet: a mailbox for barriers on each, and slots
 * for what its ranks have for others. The daemon's own; bounded for each device; made when an
 * operation first needs it, passed on from one communicator to the next, and freed when nobody has
 * any. Worker only, but for gpu_exchange_view().
 *
 * A kernel that waits for another device needs all of its blocks to run, and so do the kernels that
 * it waits for. One thread launches, all kernels of an operation before anything else; and blocks
 * that wait are counted, on each device, and never more than it can run at once, of all operations
 * together. So in whatever order a device takes its streams, what it runs besides ends by itself,
 * and then all that wait run. An operation for which there is no room is not made to wait: it goes
 * straight between the buffers, where nothing waits, with the same result.
 */
#ifndef DAEMON_GPU_EXCHANGE_H
#define DAEMON_GPU_EXCHANGE_H

#include "gpu.h"

struct config;
struct gpu_exchange;

/* What an operation's kernels are given on each of its devices. */
struct gpu_set {
	struct rx_list link; /* of those that no communicator has */
	uint64_t devices;    /* bitmap */
	uint32_t n_blocks;   /* that there is room for */
	bool broken;         /* a kernel gave up: its numbers do not fit any more */
	struct {
		uint64_t sync;
		uint64_t slots; /* 0: none */
		uint32_t n_slots;
		uint64_t bytes; /* of both */
	} on[RX_GPU_DEVICES_MAX];
};

/* Why an operation went straight between the buffers that was to go otherwise. */
enum gpu_why_direct {
	GPU_WAITS = 0,     /* it did not: kernels wait for each other */
	GPU_DIRECT_OFF,    /* by configuration */
	GPU_DIRECT_LIMIT,  /* more than exchange_bytes */
	GPU_DIRECT_MEMORY, /* a device has no memory left, or could not be opened */
	GPU_DIRECT_BUSY,   /* others have the blocks */
	_GPU_WHY_DIRECT_N
};

/** gpu_exchange_new() - NULL: no memory */
struct gpu_exchange *gpu_exchange_new(const struct config *config);

/** gpu_exchange_free() - devices are closed, with all their memory. Returns NULL; NULL is allowed.
 */
struct gpu_exchange *gpu_exchange_free(struct gpu_exchange *exchange);

struct gpu_exchange_need {
	uint64_t devices;
	uint32_t n_blocks;                   /* at most gpu_exchange_blocks() */
	uint8_t n_slots[RX_GPU_DEVICES_MAX]; /* by device; 0: none */
};

/** gpu_exchange_blocks() - most blocks for one operation on @devices */
uint32_t gpu_exchange_blocks(struct gpu *gpu, uint64_t devices);

/**
 * gpu_exchange_take() - for an operation on devices that reach each other: memory, and blocks until
 * gpu_exchange_put()
 * @set_p: the communicator's set, or NULL; another one when it does not fit
 * Return: GPU_WAITS, or why not; counted.
 */
enum gpu_why_direct gpu_exchange_take(
	struct gpu *gpu, const struct gpu_exchange_need *need, struct gpu_set **set_p);

/** gpu_exchange_put() - all kernels of it have ended */
void gpu_exchange_put(struct gpu *gpu, uint64_t devices, uint32_t n_blocks);

/** gpu_exchange_leave() - the communicator ends, nothing uses @set; NULL is allowed */
void gpu_exchange_leave(struct gpu *gpu, struct gpu_set *set);

/** gpu_exchange_begin(), gpu_exchange_end() - around whatever runs on devices: nothing is freed */
void gpu_exchange_begin(struct gpu *gpu);
void gpu_exchange_end(struct gpu *gpu);

uint64_t gpu_exchange_slot_bytes(const struct gpu *gpu);

/** gpu_exchange_ticks() - how long a kernel on @device waits, by its clock */
uint64_t gpu_exchange_ticks(const struct gpu *gpu, uint32_t device);

struct gpu_exchange_view {
	uint64_t bytes; /* on the device, now */
	uint64_t n_ops; /* with kernels that waited for other devices */
	uint64_t n_direct[_GPU_WHY_DIRECT_N];
};

/** gpu_exchange_view() - in any thread */
void gpu_exchange_view(const struct gpu *gpu, uint32_t device, struct gpu_exchange_view *view_p);

#endif
