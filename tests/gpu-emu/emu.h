/* SPDX-License-Identifier: MIT */
/*
 * A test double of the GPU runtimes: the functions that kernels/gpu calls, under the symbols of HIP
 * or CUDA, without a GPU. Not a simulator: timing, caches and scopes are those of the host.
 *
 * Eight devices. Device memory is a memfd, so that other processes can map it: a handle names the
 * process and its descriptor, virtual memory is the descriptor. Its addresses cannot be touched by
 * the processor: whoever takes it for host memory crashes. Registered host memory has
 * other addresses for devices than for the host. A stream is a thread that works off a queue.
 * Kernels are those of kernels/device, on threads of the CPU; what they are given must be memory
 * that their device reaches, or the device is lost.
 *
 * Faults, a comma-separated list in RX_GPU_EMU, or in the file of which the path follows an "@",
 * which is read again and again. With "=1" behind, most concern device 1 only.
 *	no-device        no devices
 *	devices=N        so many, instead of 8
 *	island=N         device N and the others do not reach each other
 *	apart            no device reaches another; apart=A-B+C-D: A and B not each other, nor C and
 *D no-code          code cannot be loaded import-fails     other processes' memory cannot be mapped
 *	import-wrong     shows memory of zeros instead
 *	import-previous  shows what was mapped before instead
 *	no-capture       writes of words are done while they should be recorded
 *	no-words         streams cannot write and wait for words
 *	launch-fails     kernels cannot be launched
 *	lost             the first kernel loses the device
 *	stuck            kernels never end
 *	slow             kernels take 300 ms
 *	args             kernels get arguments of another version, which they refuse
 *	units            so many units on each device
 *	jitter           all that streams do takes up to 2 ms more
 *	mps              CUDA only: the kernels of several processes do not take turns
 */
#ifndef RX_GPU_EMU_H
#define RX_GPU_EMU_H

#include "../../kernels/gpu/gpu_api.h"

#include <pthread.h>
#include <stdatomic.h>

#define EMU_N_DEVICES 8
#define EMU_EXPORT    __attribute__((visibility("default")))

#define EMU_DECLARE(member, needed, cuda, hip, parameters)                                         \
	EMU_EXPORT int emu_##member parameters __asm__(GPU_PICK(cuda, hip));
GPU_SYMBOLS(EMU_DECLARE)

/* Results that the plugins need no name for. */
enum emu_native {
	EMU_INVALID_IMAGE = 200,
	EMU_INVALID_CONTEXT = 201,
	EMU_ILLEGAL_ADDRESS = 700,
	EMU_LAUNCH_FAILED = 719,
	EMU_CAPTURE_UNSUPPORTED = 900,
	EMU_CAPTURE_INVALIDATED = 901,
	EMU_CAPTURE_UNMATCHED = 903,
	EMU_CAPTURE_UNJOINED = 904,
};

/* ---- emu_device.c ---- */

/** emu_fault() - is @name among the faults, for @device or for all? -1: whatever device */
bool emu_fault(const char *name, int device);
/** emu_fault_value() - the number behind "@name=", or @otherwise */
int emu_fault_value(const char *name, int otherwise);
/** emu_set_faults() - instead of the environment's; NULL: the environment's again */
void emu_set_faults(const char *faults);
/** emu_current() - the calling thread's device */
int emu_current(void);
/** emu_set_current() - what @user's functions do around calls; returns what was */
int emu_set_current(int device);
/** emu_lose() - @native is what every call on @device says from now on */
void emu_lose(int device, int native);
/** emu_lost() - 0, or what lost @device */
int emu_lost(int device);
/** emu_can_reach() - may access be enabled? */
bool emu_can_reach(int from, int to);
/** emu_reaches() - has @from access to memory of @to, and was it enabled? */
bool emu_reaches(int from, int to);

/* ---- emu_memory.c ---- */

/**
 * emu_reach() - where we find what @device calls @address
 *
 * Return: NULL where that is no memory that @device reaches, or less than @bytes of it.
 */
void *emu_reach(uint64_t address, uint64_t bytes, int device);
/** emu_reach_any() - the same for copies, which take host memory of any kind */
void *emu_reach_any(uint64_t address, uint64_t bytes, int device);
/** emu_is_pageable() - host memory that is not registered */
bool emu_is_pageable(uint64_t address);
uint64_t emu_alloc_pieces(int device, uint64_t piece_bytes, uint32_t n);
int emu_free_pieces(uint64_t address, uint64_t piece_bytes, uint32_t n);

/* ---- emu_stream.c ---- */

enum emu_work_kind {
	WORK_COPY,
	WORK_ROWS,
	WORK_SET,
	WORK_WRITE,
	WORK_WAIT,
	WORK_KERNEL,
	WORK_NAP,
	WORK_RECORD, /* an event */
	WORK_AWAIT,
	WORK_JOIN, /* within a graph: until another lane is so far */
	WORK_GRAPH,
};

struct emu_event {
	_Atomic uint64_t n_recorded;
	_Atomic uint64_t n_done;
	/* Recorded in a capture: where. */
	uint64_t capture_id;
	uint32_t lane;
	size_t index;
};

struct emu_work {
	struct emu_work *next;
	enum emu_work_kind kind;
	uint64_t to;
	uint64_t from;
	uint64_t value;
	uint64_t bytes; /* of words: 4 or 8 */
	uint64_t to_pitch;
	uint64_t from_pitch;
	uint64_t height;
	int compare;
	uint32_t lane;
	void *object; /* kernel, event, graph */
	uint32_t n_blocks;
	uint32_t n_threads;
	size_t args_bytes;
	unsigned char args[4096];
};

struct emu_capture;

struct emu_stream {
	struct emu_stream *next; /* all streams of the process */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct emu_work *first;
	struct emu_work **last_p;
	int device;
	bool running;
	bool closing; /* nobody knows it any more: ends when its work is done */
	struct emu_capture *capture;
	uint32_t lane;
};

/** emu_stream_of() - the stream itself, or the process's default stream for NULL */
struct emu_stream *emu_stream_of(void *native);
/** emu_put() - to the end of @native, or into the graph that it is recorded in */
int emu_put(void *native, const struct emu_work *work);
/** emu_run() - do it, in the thread of a stream of @device */
void emu_run(const struct emu_work *work, int device);
/** emu_drain() - wait until all streams of @device have nothing to do, as freeing memory does */
void emu_drain(int device);
int emu_put_word(void *stream, enum emu_work_kind kind, uint64_t address, uint64_t value,
	uint64_t bytes, unsigned int flags);

/* ---- emu_graph.c ---- */

/** emu_record() - @work becomes a node; with @stream's lock held */
int emu_record(struct emu_stream *stream, const struct emu_work *work);
/** emu_forbid() - calls that wait for devices are not allowed while somebody captures */
int emu_forbid(void);
/** emu_break() - what is asked of @stream would need what was only recorded */
int emu_break(struct emu_stream *stream);
int emu_event_record(struct emu_event *event, void *stream);
int emu_event_wait(struct emu_event *event, void *stream);
/** emu_graph_launch() - while @stream is captured: becomes a node of that graph */
int emu_graph_launch(void *graph, void *stream);
void emu_graph_run(void *graph, int device);
void emu_graph_put(void *graph);

/* ---- emu_kernel.c ---- */

void emu_kernel_run(const struct emu_work *work, int device);

#endif
