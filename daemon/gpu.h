/* SPDX-License-Identifier: MIT */
/*
 * The node's GPUs, and the thread that drives them: the only one that calls a backend. It launches
 * and looks, and never waits for a device, so one thread serves all of them. A job belongs to the
 * loop thread before gpu_submit() and again from its done() on.
 */
#ifndef DAEMON_GPU_H
#define DAEMON_GPU_H

#include "../kernels/rx_backend.h"
#include "../proto/rx_proto.h"
#include "../shm/rx_list.h"

#include <uv.h>

struct config;
struct gpu;
struct gpu_bells;
struct gpu_exchange;
struct gpu_words;

enum gpu_state {
	GPU_OFF,     /* by configuration, or no backend is installed */
	GPU_LOOKING, /* the runtime starts */
	GPU_ABSENT,  /* no device that can be used */
	GPU_READY,
	_GPU_STATE_N
};

/* Embedded in what the job is about. */
struct gpu_job {
	struct rx_list link;
	/* In the worker. True: over; false: it goes on, poll() is called until it says true. */
	bool (*run)(struct gpu_job *job, struct gpu *gpu);
	/* @give_up: the daemon ends; say true now. NULL where run() always says true. */
	bool (*poll)(struct gpu_job *job, struct gpu *gpu, bool give_up);
	/* In the loop thread, afterwards. NULL: nobody waits for it; see gpu_begin(). */
	void (*done)(struct gpu_job *job);
	bool unasked; /* gpu_tell() */
	bool waits;   /* for others that run, see gpu_is_quiet() */
};

/** gpu_new() - load the backend that @config wants, and let it look for devices */
RX_WARN_UNUSED int gpu_new(uv_loop_t *loop, const struct config *config, struct gpu **gpu_p);

/**
 * gpu_free() - when gpu_is_idle(): end the thread, close the devices
 *
 * Returns NULL; NULL is allowed. The memory goes when the loop has closed its handle.
 */
struct gpu *gpu_free(struct gpu *gpu);

/** gpu_give_up() - the daemon ends: jobs that still run after a second are let go */
void gpu_give_up(struct gpu *gpu);

/** gpu_is_idle() - no job is queued or running */
bool gpu_is_idle(const struct gpu *gpu);

/* ---- in the loop thread ---- */

/**
 * gpu_take_done() - hand back what is done now, not when the loop comes to it
 * Return: whether there was anything.
 */
bool gpu_take_done(struct gpu *gpu);

/**
 * gpu_watch() - from now on somebody calls gpu_take_done() all the time, so the loop need not be
 * woken; false: not any more
 */
void gpu_watch(struct gpu *gpu, bool watched);

/** gpu_submit() - have @job done, whose functions are filled; not while GPU_OFF */
void gpu_submit(struct gpu *gpu, struct gpu_job *job);

enum gpu_state gpu_state(const struct gpu *gpu);
const char *gpu_state_name(enum gpu_state state);
/** gpu_reason() - why there are no devices; "" when there are */
const char *gpu_reason(const struct gpu *gpu);
/** gpu_backend_name() - "" when there is none */
const char *gpu_backend_name(const struct gpu *gpu);

/* ---- anywhere, once GPU_READY ---- */

uint32_t gpu_n_devices(const struct gpu *gpu);
/** gpu_find() - index of the device with @uuid, or UINT32_MAX */
uint32_t gpu_find(const struct gpu *gpu, const uint8_t uuid[RX_GPU_UUID_BYTES]);
const struct rx_gpu_device_info *gpu_info(const struct gpu *gpu, uint32_t device);
/** gpu_peers() - bitmap of the devices whose memory @device reaches; itself among them */
uint64_t gpu_peers(const struct gpu *gpu, uint32_t device);

enum gpu_device_state { GPU_CLOSED, GPU_OPEN, GPU_FAILED, _GPU_DEVICE_STATE_N };

struct gpu_device_view {
	enum gpu_device_state state;
	char error[RX_DEVICE_TEXT_MAX];
	struct rx_gpu_stats stats;
	uint64_t n_ops;      /* that it took part in */
	uint64_t n_op_bytes; /* of the buffers of the ranks that it served in them */
	uint64_t n_staged;   /* of those operations: through host memory, gpu_stage.h */
	uint64_t n_failures; /* that gpu_note() was told of */
};

/** gpu_view() - what was last known of @device */
void gpu_view(struct gpu *gpu, uint32_t device, struct gpu_device_view *view_p);

/* ---- in the worker ---- */

const struct rx_backend_v1 *gpu_ops(const struct gpu *gpu);
struct rx_gpu *gpu_runtime(const struct gpu *gpu);

/** gpu_words() - that devices write */
struct gpu_words *gpu_words(const struct gpu *gpu);

/** gpu_exchange() - memory in which kernels of several devices meet */
struct gpu_exchange *gpu_exchange(const struct gpu *gpu);

/** gpu_open() - @device, opened on first use; NULL: it cannot be, see gpu_view() */
struct rx_gpu_device *gpu_open(struct gpu *gpu, uint32_t device);

/** gpu_opened() - the same, without opening it */
struct rx_gpu_device *gpu_opened(const struct gpu *gpu, uint32_t device);

/** gpu_note() - refresh what gpu_view() says; @error: of the backend, where one was reported */
void gpu_note(struct gpu *gpu, uint32_t device, const struct rx_gpu_error *error);

/** gpu_count() - @device has done its part of an operation, for ranks with @bytes in buffers */
void gpu_count(struct gpu *gpu, uint32_t device, uint64_t bytes, bool staged);

/** gpu_stage_bytes() - most host memory of a communicator for gpu_stage.h */
uint64_t gpu_stage_bytes(const struct gpu *gpu);

/** gpu_bells() - of recorded graphs */
struct gpu_bells *gpu_bells(const struct gpu *gpu);

/** gpu_begin() - poll @job, which the loop thread did not submit, until it says true */
void gpu_begin(struct gpu *gpu, struct gpu_job *job);

/** gpu_is_quiet() - does no job run, but those that wait for that? */
bool gpu_is_quiet(const struct gpu *gpu);

/** gpu_tell() - have @job's done() called in the loop thread, without its having been submitted */
void gpu_tell(struct gpu *gpu, struct gpu_job *job);

/** gpu_reap_later() - there may be something in quarantine */
void gpu_reap_later(struct gpu *gpu);

#endif
