/* SPDX-License-Identifier: MIT */
/*
 * Kernels on the first device that a plugin finds, with the code that is built into it.
 *
 *	RCCLX_GPU_PLUGIN  the plugin; without it, those of the build folder are tried
 *	RCCLX_GPU_CODE    a file of code instead of what is built in
 *
 * The host's memory has a twin on the device, and what in arguments points into one is made to
 * point into the other.
 */
#include "../../kernels/rx_backend.h"
#include "../gpu-cpu/gpu_runner.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define POOL_BYTES (256u << 20)
#define MAX_PIECES 256u

static const struct gpu_runner_size real_size = {
	.max_blocks = 8, .max_threads = RX_DEV_MAX_THREADS, .scale = 16, .is_coherent = false};

static const struct rx_backend_v1 *ops;
static struct rx_gpu *gpu;
static struct rx_gpu_device *device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the device */
static void *copies;                                     /* stream */

static uint8_t *pool;
static uint64_t twin;
static size_t top;

/* In the order of their addresses. */
static struct piece {
	uint8_t *at;
	bool in_use;
} pieces[MAX_PIECES];
static uint32_t n_pieces;

static void give_up(const char *what, const struct rx_gpu_error *error)
{
	(void)fprintf(stderr, "%s: %s\n", what, error ? error->text : "no room");
	_exit(1);
}

static void check(int result, const char *what, const struct rx_gpu_error *error)
{
	if (result != RX_GPU_OK)
		give_up(what, error);
}

/* False, having said why, if there is no device for it. */
static bool open_plugin(const char *path)
{
	struct rx_gpu_config config = {
		.size = sizeof(config), .code_file = getenv("RCCLX_GPU_CODE")};
	struct rx_gpu_error error = {0};
	struct rx_gpu_device_info info = {0};
	void *plugin = dlopen(path, RTLD_NOW);
	int result = RX_GPU_OK;

	ops = plugin ? dlsym(plugin, RX_BACKEND_SYMBOL) : NULL;
	if (!ops) {
		(void)printf("skipped: %s\n", dlerror());
		return false;
	}
	result = ops->open(&config, &gpu, &error);
	if (result == RX_GPU_OK && ops->device_count(gpu) == 0) {
		result = RX_GPU_E_ABSENT;
		(void)snprintf(error.text, sizeof(error.text), "no device");
	}
	if (result == RX_GPU_OK)
		result = ops->device_open(gpu, 0, &device, &error);
	if (result != RX_GPU_OK) {
		(void)printf("skipped: %s: %s\n", ops->name, error.text);
		return false;
	}
	check(ops->device_info(gpu, 0, &info, &error), "device_info", &error);
	(void)printf("%s: %s, %s\n", ops->name, info.name, info.arch);
	return true;
}

static bool open_any(void)
{
	static const char *const names[] = {"hip", "cuda"};
	const char *named = getenv("RCCLX_GPU_PLUGIN");
	const char *build = getenv("RCCLX_BUILDDIR");
	char path[4096];

	if (named)
		return open_plugin(named);
	for (size_t i = 0; i < RX_ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/.libs/rcclx_backend_%s.so",
			build ? build : ".", names[i]);
		if (open_plugin(path))
			return true;
	}
	return false;
}

const struct gpu_runner_size *gpu_runner_begin(void)
{
	struct rx_gpu_error error = {0};
	uint64_t address = 0;

	/* Launches that wait for each other need a hardware queue each. */
	(void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	if (!open_any())
		return NULL;
	pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pool == MAP_FAILED)
		give_up("memory", NULL);
	check(ops->host_register(gpu, pool, POOL_BYTES, &address, &error), "registering", &error);
	check(ops->alloc(device, POOL_BYTES, &twin, &error), "device memory", &error);
	check(ops->stream_open(device, false, &copies, &error), "stream", &error);
	return &real_size;
}

void gpu_runner_end(void)
{
	ops->stream_close(device, copies);
	ops->free(device, twin);
	(void)ops->host_unregister(gpu, pool, NULL);
	if (ops->device_close(device) == RX_GPU_OK)
		ops->close(gpu);
}

void *gpu_runner_alloc(size_t bytes)
{
	size_t rounded = (bytes + 63) / 64 * 64 + 64;
	uint8_t *p = pool + top;

	if (n_pieces == MAX_PIECES || top + rounded > POOL_BYTES)
		give_up("gpu_runner_alloc", NULL);
	pieces[n_pieces++] = (struct piece){p, true};
	top += rounded;
	return memset(p, 0, bytes);
}

/* What is given back on top of the pool can be had again. */
void gpu_runner_free(void *p)
{
	for (uint32_t i = 0; i < n_pieces; i++) {
		if (pieces[i].at == p)
			pieces[i].in_use = false;
	}
	while (n_pieces > 0 && !pieces[n_pieces - 1].in_use)
		top = (size_t)(pieces[--n_pieces].at - pool);
}

static void wait_for(void *stream)
{
	struct rx_gpu_error error = {0};
	struct timespec nap = {0, 10000};
	int result = RX_GPU_BUSY;

	while (result == RX_GPU_BUSY) {
		(void)pthread_mutex_lock(&lock);
		result = ops->stream_query(device, stream, &error);
		(void)pthread_mutex_unlock(&lock);
		if (result == RX_GPU_BUSY)
			(void)nanosleep(&nap, NULL);
	}
	check(result, "waiting for a kernel", &error);
}

static void copy(uint64_t to, uint64_t from)
{
	struct rx_gpu_error error = {0};

	check(ops->copy(device, copies, to, from, top, &error), "copying", &error);
	wait_for(copies);
}

void gpu_runner_upload(void)
{
	copy(twin, (uintptr_t)pool);
}

void gpu_runner_download(void)
{
	copy((uintptr_t)pool, twin);
}

void gpu_runner_run(const char *name, const void *args, uint32_t args_bytes, uint32_t n_blocks,
	uint32_t n_threads)
{
	static _Thread_local uint64_t words[sizeof(struct rx_dev_args) / 8];
	struct rx_gpu_launch launch = {name, words, args_bytes, n_blocks, n_threads, 0};
	struct rx_gpu_error error = {0};
	void *stream = NULL;

	memcpy(words, args, args_bytes);
	for (uint32_t i = 0; i < args_bytes / 8; i++) {
		if (words[i] - (uintptr_t)pool < POOL_BYTES)
			words[i] += twin - (uintptr_t)pool;
	}
	(void)pthread_mutex_lock(&lock);
	check(ops->stream_open(device, false, &stream, &error), "stream", &error);
	check(ops->launch(device, stream, &launch, &error), name, &error);
	(void)pthread_mutex_unlock(&lock);
	wait_for(stream);
	(void)pthread_mutex_lock(&lock);
	ops->stream_close(device, stream);
	(void)pthread_mutex_unlock(&lock);
}
