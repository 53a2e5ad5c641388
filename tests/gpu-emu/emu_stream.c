/* SPDX-License-Identifier: MIT */
/* Streams of the test double: queues with a thread each; kernels, graphs. */
#include "emu.h"
#include "../../kernels/device/device_abi.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum work_kind { WORK_COPY, WORK_ROWS, WORK_SET, WORK_WRITE, WORK_WAIT, WORK_KERNEL };

struct work {
	struct work *next;
	enum work_kind kind;
	uint64_t to;
	uint64_t from;
	uint64_t value;
	uint64_t bytes;
	uint64_t to_pitch;
	uint64_t from_pitch;
	uint64_t height;
	int compare;
	int kernel;
	unsigned char args[4096];
};

struct stream {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct work *first;
	struct work **last_p;
	bool running;
	_Atomic bool stop;
	bool capturing;
	struct work *recorded;
	size_t n_recorded;
};

struct graph {
	struct work *works;
	size_t n;
};

/* One error loses all devices of the process: good enough for a process with one device. */
static _Atomic int lost;

static const char *const kernels[] = {RX_DEV_WORDS_NAME, "emu_stuck", "emu_crash"};
enum { KERNEL_WORDS, KERNEL_STUCK, KERNEL_CRASH };

static bool is_set(const char *name)
{
	const char *faults = getenv("RX_GPU_EMU");

	return faults && strstr(faults, name);
}

static _Atomic uint64_t *word_at(uint64_t address)
{
	return (_Atomic uint64_t *)(uintptr_t)address;
}

static void wait_for(struct stream *stream, uint64_t address, uint64_t value, int compare)
{
	while (!atomic_load(&stream->stop)) {
		uint64_t now = atomic_load_explicit(word_at(address), memory_order_acquire);

		if (compare == GPU_WAIT_EQ ? now == value : now >= value)
			return;
		sched_yield();
	}
}

static void run_kernel(struct stream *stream, const struct work *work)
{
	struct rx_dev_words words;

	memcpy(&words, work->args, sizeof(words));
	if (work->kernel == KERNEL_CRASH) {
		atomic_store(&lost, 700);
	} else if (work->kernel == KERNEL_STUCK) {
		/* Until the word is not 0. */
		wait_for(stream, (uintptr_t)words.wait, 1, GPU_WAIT_GEQ);
	} else {
		if (words.first)
			atomic_store_explicit(word_at((uintptr_t)words.first), words.first_value,
				memory_order_release);
		if (words.wait)
			wait_for(stream, (uintptr_t)words.wait, words.wait_value, GPU_WAIT_EQ);
		if (words.last)
			atomic_store_explicit(word_at((uintptr_t)words.last), words.last_value,
				memory_order_release);
	}
}

static void run(struct stream *stream, const struct work *work)
{
	unsigned char *to = (unsigned char *)(uintptr_t)work->to;
	const unsigned char *from = (const unsigned char *)(uintptr_t)work->from;

	switch (work->kind) {
	case WORK_COPY:
		memmove(to, from, work->bytes);
		break;
	case WORK_ROWS:
		for (uint64_t i = 0; i < work->height; i++)
			memmove(to + i * work->to_pitch, from + i * work->from_pitch, work->bytes);
		break;
	case WORK_SET:
		memset(to, (int)work->value, work->bytes);
		break;
	case WORK_WRITE:
		atomic_store_explicit(word_at(work->to), work->value, memory_order_release);
		break;
	case WORK_WAIT:
		wait_for(stream, work->to, work->value, work->compare);
		break;
	case WORK_KERNEL:
		run_kernel(stream, work);
		break;
	}
}

static void *work_off(void *data)
{
	struct stream *stream = data;

	pthread_mutex_lock(&stream->lock);
	while (!atomic_load(&stream->stop)) {
		struct work *work = stream->first;

		if (!work) {
			pthread_cond_wait(&stream->changed, &stream->lock);
			continue;
		}
		stream->first = work->next;
		if (!stream->first)
			stream->last_p = &stream->first;
		stream->running = true;
		pthread_mutex_unlock(&stream->lock);
		run(stream, work);
		free(work);
		pthread_mutex_lock(&stream->lock);
		stream->running = false;
		pthread_cond_broadcast(&stream->changed);
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

static int put(void *native, const struct work *given)
{
	struct stream *stream = native;
	struct work *work = NULL;
	bool at_once = given->kind == WORK_WRITE && is_set("no-capture");

	if (atomic_load(&lost))
		return atomic_load(&lost);
	if (!stream) {
		struct stream none = {0};

		run(&none, given);
		return GPU_SUCCESS;
	}
	work = malloc(sizeof(*work));
	if (!work)
		return GPU_OUT_OF_MEMORY;
	*work = *given;
	work->next = NULL;
	pthread_mutex_lock(&stream->lock);
	if (stream->capturing && !at_once) {
		work->next = stream->recorded; /* counted and freed, never run */
		stream->recorded = work;
		stream->n_recorded++;
	} else {
		*stream->last_p = work;
		stream->last_p = &work->next;
		pthread_cond_broadcast(&stream->changed);
	}
	pthread_mutex_unlock(&stream->lock);
	return GPU_SUCCESS;
}

static void free_works(struct work *work)
{
	while (work) {
		struct work *next = work->next;

		free(work);
		work = next;
	}
}

/* ---- streams ---- */

int emu_stream_range(int *least_p, int *greatest_p)
{
	*least_p = 0;
	*greatest_p = -5;
	return GPU_SUCCESS;
}

int emu_stream_create(void **stream_p, unsigned int flags, int priority)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	(void)flags;
	(void)priority;
	if (!stream)
		return GPU_OUT_OF_MEMORY;
	stream->last_p = &stream->first;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->changed, NULL);
	if (pthread_create(&stream->thread, NULL, work_off, stream) != 0) {
		free(stream);
		return GPU_OUT_OF_MEMORY;
	}
	*stream_p = stream;
	return GPU_SUCCESS;
}

int emu_stream_destroy(void *native)
{
	struct stream *stream = native;

	pthread_mutex_lock(&stream->lock);
	atomic_store(&stream->stop, true);
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	pthread_join(stream->thread, NULL);
	free_works(stream->first);
	free_works(stream->recorded);
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->changed);
	free(stream);
	return GPU_SUCCESS;
}

int emu_stream_query(void *native)
{
	struct stream *stream = native;
	bool busy = false;

	if (atomic_load(&lost))
		return atomic_load(&lost);
	pthread_mutex_lock(&stream->lock);
	busy = stream->first || stream->running;
	pthread_mutex_unlock(&stream->lock);
	return busy ? GPU_NOT_READY : GPU_SUCCESS;
}

int emu_stream_sync(void *native)
{
	struct stream *stream = native;

	if (!stream)
		return atomic_load(&lost);
	pthread_mutex_lock(&stream->lock);
	while (stream->first || stream->running)
		pthread_cond_wait(&stream->changed, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	return atomic_load(&lost);
}

int emu_stream_write64(void *stream, uint64_t address, uint64_t value, unsigned int flags)
{
	(void)flags;
	return put(stream, &(struct work){.kind = WORK_WRITE, .to = address, .value = value});
}

int emu_mem_set(uint64_t address, unsigned char value, size_t bytes, void *stream)
{
	return put(stream,
		&(struct work){.kind = WORK_SET, .to = address, .value = value, .bytes = bytes});
}

/* ---- capture ---- */

int emu_capture_begin(void *native, int mode)
{
	struct stream *stream = native;

	(void)mode;
	pthread_mutex_lock(&stream->lock);
	stream->capturing = true;
	pthread_mutex_unlock(&stream->lock);
	return GPU_SUCCESS;
}

int emu_capture_end(void *native, void **graph_p)
{
	struct stream *stream = native;
	struct graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return GPU_OUT_OF_MEMORY;
	pthread_mutex_lock(&stream->lock);
	stream->capturing = false;
	graph->works = stream->recorded;
	graph->n = stream->n_recorded;
	stream->recorded = NULL;
	stream->n_recorded = 0;
	pthread_mutex_unlock(&stream->lock);
	*graph_p = graph;
	return GPU_SUCCESS;
}

int emu_stream_capturing(void *native, int *status_p)
{
	struct stream *stream = native;

	*status_p = 0;
	if (!stream)
		return GPU_SUCCESS;
	pthread_mutex_lock(&stream->lock);
	*status_p = stream->capturing;
	pthread_mutex_unlock(&stream->lock);
	return GPU_SUCCESS;
}

int emu_capture_info(void *stream, int *status_p, unsigned long long *id_p, void **graph_p,
	const void **nodes_p, size_t *n_nodes_p)
{
	(void)graph_p;
	(void)nodes_p;
	(void)n_nodes_p;
	*id_p = 1;
	return emu_stream_capturing(stream, status_p);
}

int emu_graph_nodes(void *graph, void **nodes, size_t *n_p)
{
	(void)nodes;
	*n_p = ((struct graph *)graph)->n;
	return GPU_SUCCESS;
}

int emu_graph_destroy(void *graph)
{
	free_works(((struct graph *)graph)->works);
	free(graph);
	return GPU_SUCCESS;
}

/* ---- kernels ---- */

int emu_module_load(void **module_p, const void *image)
{
	if (!image)
		return 200;
	*module_p = (void *)kernels;
	return GPU_SUCCESS;
}

int emu_module_unload(void *module)
{
	return module == (void *)kernels ? GPU_SUCCESS : GPU_INVALID_VALUE;
}

int emu_module_function(void **function_p, void *module, const char *name)
{
	(void)module;
	for (uintptr_t i = 0; i < RX_ARRAY_SIZE(kernels); i++) {
		if (strcmp(kernels[i], name) == 0) {
			*function_p = (void *)(i + 1);
			return GPU_SUCCESS;
		}
	}
	return GPU_NOT_FOUND;
}

int emu_launch(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
	void *stream, void **args, void **extra)
{
	struct work work = {.kind = WORK_KERNEL, .kernel = (int)(uintptr_t)function - 1};
	size_t bytes = 0;

	(void)shared_bytes;
	if (args || !grid_x || !block_x || grid_y * grid_z * block_y * block_z != 1 ||
		extra[0] != (void *)GPU_LAUNCH_ARGS || extra[2] != (void *)GPU_LAUNCH_ARGS_BYTES ||
		extra[4] != (void *)GPU_LAUNCH_END)
		return GPU_INVALID_VALUE;
	bytes = *(size_t *)extra[3];
	if (bytes > sizeof(work.args))
		return GPU_INVALID_VALUE;
	memcpy(work.args, extra[1], bytes);
	return put(stream, &work);
}

/* ---- copies ---- */

#if defined(RX_GPU_CUDA)

int emu_copy(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	return put(
		stream, &(struct work){.kind = WORK_COPY, .to = to, .from = from, .bytes = bytes});
}

int emu_copy_rows(const struct gpu_rows_cuda *rows, void *stream)
{
	return put(stream,
		&(struct work){.kind = WORK_ROWS,
			.to = rows->to_type == 1 ? (uintptr_t)rows->to_host : rows->to_device,
			.from = rows->from_type == 1 ? (uintptr_t)rows->from_host
						     : rows->from_device,
			.bytes = rows->width,
			.to_pitch = rows->to_pitch,
			.from_pitch = rows->from_pitch,
			.height = rows->height});
}

int emu_stream_wait64(void *stream, uint64_t address, uint64_t value, unsigned int flags)
{
	return put(stream,
		&(struct work){
			.kind = WORK_WAIT, .to = address, .value = value, .compare = (int)flags});
}

#else

int emu_copy(uint64_t to, uint64_t from, size_t bytes, int kind, void *stream)
{
	(void)kind;
	return put(
		stream, &(struct work){.kind = WORK_COPY, .to = to, .from = from, .bytes = bytes});
}

int emu_copy_rows(uint64_t to, size_t to_pitch, uint64_t from, size_t from_pitch, size_t width,
	size_t height, int kind, void *stream)
{
	(void)kind;
	return put(stream, &(struct work){.kind = WORK_ROWS,
				   .to = to,
				   .from = from,
				   .bytes = width,
				   .to_pitch = to_pitch,
				   .from_pitch = from_pitch,
				   .height = height});
}

int emu_stream_wait64(
	void *stream, uint64_t address, uint64_t value, unsigned int flags, uint64_t mask)
{
	(void)mask;
	return put(stream,
		&(struct work){
			.kind = WORK_WAIT, .to = address, .value = value, .compare = (int)flags});
}

#endif
