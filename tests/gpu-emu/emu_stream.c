/* SPDX-License-Identifier: MIT */
/* Streams of the test double: queues with a thread each. */
#include "emu.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_stream *all_streams;

static void nap_ns(uint64_t ns)
{
	struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		continue;
}

/* ---- work ---- */

static uint64_t load_word(const void *at, uint64_t bytes)
{
	return bytes == 4
		       ? atomic_load_explicit((const _Atomic uint32_t *)at, memory_order_acquire)
		       : atomic_load_explicit((const _Atomic uint64_t *)at, memory_order_acquire);
}

static void store_word(void *at, uint64_t value, uint64_t bytes)
{
	if (bytes == 4)
		atomic_store_explicit(
			(_Atomic uint32_t *)at, (uint32_t)value, memory_order_release);
	else
		atomic_store_explicit((_Atomic uint64_t *)at, value, memory_order_release);
}

/* Whether the word is not behind, as a signed difference; or equal. */
static bool is_reached(uint64_t now, const struct emu_work *work)
{
	if (work->compare == GPU_WAIT_EQ)
		return now == work->value;
	return work->bytes == 4 ? (int32_t)((uint32_t)now - (uint32_t)work->value) >= 0
				: (int64_t)(now - work->value) >= 0;
}

/* A word that is not there any more loses the device, as an address that is illegal. */
static void wait_for_word(const struct emu_work *work, int device)
{
	for (uint32_t n = 0; !emu_lost(device); n++) {
		const void *at = emu_reach(work->to, work->bytes, device);

		if (!at) {
			emu_lose(device, EMU_ILLEGAL_ADDRESS);
			return;
		}
		if (is_reached(load_word(at, work->bytes), work))
			return;
		if (n < 100)
			(void)sched_yield();
		else
			nap_ns(20000);
	}
}

static void write_word(const struct emu_work *work, int device)
{
	void *at = emu_reach(work->to, work->bytes, device);

	if (at)
		store_word(at, work->value, work->bytes);
	else
		emu_lose(device, EMU_ILLEGAL_ADDRESS);
}

static void copy_rows(const struct emu_work *work, int device)
{
	for (uint64_t i = 0; i < work->height; i++) {
		void *to = emu_reach_any(work->to + i * work->to_pitch, work->bytes, device);
		void *from = emu_reach_any(work->from + i * work->from_pitch, work->bytes, device);

		if (!to || !from) {
			emu_lose(device, EMU_ILLEGAL_ADDRESS);
			return;
		}
		memmove(to, from, work->bytes);
	}
}

static void set(const struct emu_work *work, int device)
{
	void *to = emu_reach(work->to, work->bytes, device);

	if (to)
		memset(to, (int)work->value, work->bytes);
	else
		emu_lose(device, EMU_ILLEGAL_ADDRESS);
}

static void await_event(const struct emu_work *work, int device)
{
	const struct emu_event *event = work->object;

	while (atomic_load(&event->n_done) < work->value && !emu_lost(device))
		nap_ns(20000);
}

static void jitter(void)
{
	static _Atomic uint32_t state = 1;
	uint32_t x = atomic_fetch_add(&state, 2654435761u);

	nap_ns((x >> 8) % 2000000);
}

/* A lost device does nothing any more. */
void emu_run(const struct emu_work *work, int device)
{
	if (emu_lost(device))
		return;
	if (emu_fault("jitter", device))
		jitter();
	switch (work->kind) {
	case WORK_COPY:
	case WORK_ROWS:
		copy_rows(work, device);
		break;
	case WORK_SET:
		set(work, device);
		break;
	case WORK_WRITE:
		write_word(work, device);
		break;
	case WORK_WAIT:
		wait_for_word(work, device);
		break;
	case WORK_KERNEL:
		emu_kernel_run(work, device);
		break;
	case WORK_NAP:
		nap_ns(work->value);
		break;
	case WORK_RECORD:
		atomic_store(&((struct emu_event *)work->object)->n_done, work->value);
		break;
	case WORK_AWAIT:
		await_event(work, device);
		break;
	case WORK_GRAPH:
		emu_graph_run(work->object, device);
		break;
	case WORK_JOIN: /* only in graphs, which look at it themselves */
		break;
	}
}

static void forget_work(struct emu_work *work)
{
	if (work->kind == WORK_GRAPH)
		emu_graph_put(work->object);
	free(work);
}

/* ---- streams ---- */

static void free_stream(struct emu_stream *stream)
{
	struct emu_stream **link = &all_streams;

	pthread_mutex_lock(&all_lock);
	while (*link && *link != stream)
		link = &(*link)->next;
	if (*link)
		*link = stream->next;
	pthread_mutex_unlock(&all_lock);
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->changed);
	free(stream);
}

static void *work_off(void *data)
{
	struct emu_stream *stream = data;

	pthread_mutex_lock(&stream->lock);
	for (;;) {
		struct emu_work *work = stream->first;

		if (!work && stream->closing)
			break;
		if (!work) {
			pthread_cond_wait(&stream->changed, &stream->lock);
			continue;
		}
		stream->first = work->next;
		if (!stream->first)
			stream->last_p = &stream->first;
		stream->running = true;
		pthread_mutex_unlock(&stream->lock);
		emu_run(work, stream->device);
		forget_work(work);
		pthread_mutex_lock(&stream->lock);
		stream->running = false;
		pthread_cond_broadcast(&stream->changed);
	}
	pthread_mutex_unlock(&stream->lock);
	free_stream(stream);
	return NULL;
}

static struct emu_stream *make_stream(int device)
{
	struct emu_stream *stream = calloc(1, sizeof(*stream));
	pthread_attr_t attr;
	int r = 0;

	if (!stream)
		return NULL;
	stream->device = device;
	stream->last_p = &stream->first;
	(void)pthread_mutex_init(&stream->lock, NULL);
	(void)pthread_cond_init(&stream->changed, NULL);
	pthread_mutex_lock(&all_lock);
	stream->next = all_streams;
	all_streams = stream;
	pthread_mutex_unlock(&all_lock);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&stream->thread, &attr, work_off, stream);
	(void)pthread_attr_destroy(&attr);
	if (r != 0) {
		free_stream(stream);
		return NULL;
	}
	return stream;
}

/* One for each device, and for each process: a thread does not survive a fork. */
struct emu_stream *emu_stream_of(void *native)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct emu_stream *streams[EMU_N_DEVICES];
	static pid_t pid;
	struct emu_stream *stream = native;

	if (stream)
		return stream;
	pthread_mutex_lock(&lock);
	if (pid != getpid())
		memset(streams, 0, sizeof(streams));
	pid = getpid();
	if (!streams[emu_current()])
		streams[emu_current()] = make_stream(emu_current());
	stream = streams[emu_current()];
	pthread_mutex_unlock(&lock);
	if (!stream)
		abort();
	return stream;
}

static bool is_busy(const struct emu_stream *stream)
{
	return stream->first || stream->running;
}

void emu_drain(int device)
{
	bool busy = true;

	while (busy && !emu_lost(device)) {
		busy = false;
		pthread_mutex_lock(&all_lock);
		for (struct emu_stream *stream = all_streams; stream; stream = stream->next) {
			pthread_mutex_lock(&stream->lock);
			busy |= stream->device == device && is_busy(stream);
			pthread_mutex_unlock(&stream->lock);
		}
		pthread_mutex_unlock(&all_lock);
		if (busy)
			nap_ns(50000);
	}
}

int emu_put(void *native, const struct emu_work *given)
{
	struct emu_stream *stream = emu_stream_of(native);
	bool at_once = given->kind == WORK_WRITE && emu_fault("no-capture", stream->device);
	struct emu_work *work = NULL;
	int result = emu_lost(stream->device);

	if (result)
		return result;
	pthread_mutex_lock(&stream->lock);
	if (stream->capture && !at_once) {
		result = emu_record(stream, given);
		pthread_mutex_unlock(&stream->lock);
		return result;
	}
	work = malloc(sizeof(*work));
	if (work) {
		*work = *given;
		work->next = NULL;
		*stream->last_p = work;
		stream->last_p = &work->next;
		pthread_cond_broadcast(&stream->changed);
	}
	pthread_mutex_unlock(&stream->lock);
	return work ? GPU_SUCCESS : GPU_OUT_OF_MEMORY;
}

int emu_stream_range(int *least_p, int *greatest_p)
{
	*least_p = 0;
	*greatest_p = -5;
	return GPU_SUCCESS;
}

int emu_stream_create(void **stream_p, unsigned int flags, int priority)
{
	struct emu_stream *stream = NULL;

	(void)flags;
	(void)priority;
	if (emu_lost(emu_current()))
		return emu_lost(emu_current());
	stream = make_stream(emu_current());
	if (!stream)
		return GPU_OUT_OF_MEMORY;
	*stream_p = stream;
	return GPU_SUCCESS;
}

/* At once for the caller; what was put into it is done. */
int emu_stream_destroy(void *native)
{
	struct emu_stream *stream = native;

	if (!stream)
		return GPU_INVALID_VALUE;
	pthread_mutex_lock(&stream->lock);
	stream->closing = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return GPU_SUCCESS;
}

int emu_stream_query(void *native)
{
	struct emu_stream *stream = emu_stream_of(native);
	bool busy = false;
	int result = emu_break(stream);

	if (result != GPU_SUCCESS)
		return result;
	pthread_mutex_lock(&stream->lock);
	busy = is_busy(stream);
	pthread_mutex_unlock(&stream->lock);
	if (emu_lost(stream->device))
		return emu_lost(stream->device);
	return busy ? GPU_NOT_READY : GPU_SUCCESS;
}

int emu_stream_sync(void *native)
{
	struct emu_stream *stream = emu_stream_of(native);
	int result = emu_break(stream);

	if (result != GPU_SUCCESS)
		return result;
	pthread_mutex_lock(&stream->lock);
	while (is_busy(stream))
		pthread_cond_wait(&stream->changed, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	return emu_lost(stream->device);
}

/* ---- words ---- */

int emu_put_word(void *stream, enum emu_work_kind kind, uint64_t address, uint64_t value,
	uint64_t bytes, unsigned int flags)
{
	int device = emu_stream_of(stream)->device;

	if (emu_fault("no-words", device))
		return GPU_NOT_SUPPORTED;
	if (address % bytes != 0 || !emu_reach(address, bytes, device))
		return GPU_INVALID_VALUE;
	return emu_put(stream, &(struct emu_work){.kind = kind,
				       .to = address,
				       .value = value,
				       .bytes = bytes,
				       .compare = (int)flags});
}

int emu_stream_write64(void *stream, uint64_t address, uint64_t value, unsigned int flags)
{
	return emu_put_word(stream, WORK_WRITE, address, value, 8, flags);
}

int emu_mem_set(uint64_t address, unsigned char value, size_t bytes, void *stream)
{
	if (!emu_reach(address, bytes, emu_stream_of(stream)->device))
		return GPU_INVALID_VALUE;
	return emu_put(
		stream, &(struct emu_work){
				.kind = WORK_SET, .to = address, .value = value, .bytes = bytes});
}

/* ---- copies ---- */

/* Of host memory that is not registered nothing is left to do when the call returns. */
static int put_copy(void *native, const struct emu_work *work)
{
	struct emu_stream *stream = emu_stream_of(native);
	bool recorded = false;
	int result = emu_put(stream, work);

	if (result != GPU_SUCCESS || (!emu_is_pageable(work->to) && !emu_is_pageable(work->from)))
		return result;
	pthread_mutex_lock(&stream->lock);
	recorded = stream->capture;
	pthread_mutex_unlock(&stream->lock);
	return recorded ? GPU_SUCCESS : emu_stream_sync(stream);
}

static int copy_bytes(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	return put_copy(stream,
		&(struct emu_work){
			.kind = WORK_COPY, .to = to, .from = from, .bytes = bytes, .height = 1});
}

#if defined(RX_GPU_CUDA)

int emu_copy(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	return copy_bytes(to, from, bytes, stream);
}

int emu_copy_rows(const struct gpu_rows_cuda *rows, void *stream)
{
	return put_copy(stream,
		&(struct emu_work){
			.kind = WORK_ROWS,
			.to = rows->to_type == 1 ? (uintptr_t)rows->to_host : rows->to_device,
			.from = rows->from_type == 1 ? (uintptr_t)rows->from_host
						     : rows->from_device,
			.bytes = rows->width,
			.to_pitch = rows->to_pitch,
			.from_pitch = rows->from_pitch,
			.height = rows->height,
		});
}

int emu_stream_wait64(void *stream, uint64_t address, uint64_t value, unsigned int flags)
{
	return emu_put_word(stream, WORK_WAIT, address, value, 8, flags);
}

#else

int emu_copy(uint64_t to, uint64_t from, size_t bytes, int kind, void *stream)
{
	(void)kind;
	return copy_bytes(to, from, bytes, stream);
}

int emu_copy_rows(uint64_t to, size_t to_pitch, uint64_t from, size_t from_pitch, size_t width,
	size_t height, int kind, void *stream)
{
	(void)kind;
	return put_copy(stream, &(struct emu_work){
					.kind = WORK_ROWS,
					.to = to,
					.from = from,
					.bytes = width,
					.to_pitch = to_pitch,
					.from_pitch = from_pitch,
					.height = height,
				});
}

int emu_stream_wait64(
	void *stream, uint64_t address, uint64_t value, unsigned int flags, uint64_t mask)
{
	return mask == UINT64_MAX ? emu_put_word(stream, WORK_WAIT, address, value, 8, flags)
				  : GPU_NOT_SUPPORTED;
}

#endif

/* ---- whose they are ---- */

#if defined(RX_GPU_CUDA)

int emu_stream_context(void *stream, void **context_p)
{
	*context_p = (void *)(uintptr_t)(emu_stream_of(stream)->device + 1);
	return GPU_SUCCESS;
}

int emu_context_device(int *dev_p)
{
	*dev_p = emu_current();
	return GPU_SUCCESS;
}

#else

int emu_stream_device(void *stream, int *dev_p)
{
	*dev_p = emu_stream_of(stream)->device;
	return GPU_SUCCESS;
}

#endif
