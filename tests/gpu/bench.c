/* SPDX-License-Identifier: MIT */
/*
 * How fast the kernels are on the first device of a plugin: fused allreduce of several ranks.
 *
 *	bench PLUGIN [CODE [MOST_THREADS]]
 *
 * CODE is a file of code instead of what is built in, MOST_THREADS the largest block that its
 *kernels allow.
 *
 * Bytes are those that must move: every input read once, every output written once. Compared with
 * the runtime's own copy within the device, which reads and writes each byte once.
 */
#include "../../kernels/device/device_abi.h"
#include "../../kernels/rx_backend.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BIG_BYTES (256u << 20)
#define MAX_RANKS 8u
#define N_BATCH   10
#define N_TIMES   5
#define N_SMALL   1000

#define SMALL_THREADS 256u
#define CHECKED       4096u

static const struct rx_backend_v1 *ops;
static struct rx_gpu *gpu;
static struct rx_gpu_device *device;
static struct rx_gpu_error error;
static void *stream;
/* The host's, and where the device finds it. */
static struct page {
	_Atomic uint64_t done;
	_Atomic uint32_t status;
} * page;
static uint64_t page_at;
static uint64_t send[MAX_RANKS];
static uint64_t recv[MAX_RANKS];

static void check(int result, const char *what)
{
	if (result == RX_GPU_OK)
		return;
	(void)fprintf(stderr, "%s: %s\n", what, error.text);
	exit(1);
}

static double now_us(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void wait_idle(void)
{
	int result = RX_GPU_BUSY;

	while (result == RX_GPU_BUSY)
		result = ops->stream_query(device, stream, &error);
	check(result, "waiting");
	if (page->status) {
		(void)fprintf(stderr, "a kernel gave up: status %#x\n", page->status);
		exit(1);
	}
}

struct shape {
	const char *kernel;
	uint8_t coll;
	uint8_t dtype;
	uint8_t elem_bytes;
	uint32_t n_ranks;
	uint64_t bytes; /* per rank */
	uint32_t n_blocks;
	uint32_t n_threads;
};

static void launch(const struct shape *shape, uint64_t sync, uint64_t done, uint64_t value)
{
	struct rx_dev_args args = {.abi = RX_DEV_ABI,
		.coll = shape->coll,
		.dtype = shape->dtype,
		.op = RX_SUM,
		.algorithm = RX_DEV_DIRECT,
		.n_ranks = shape->n_ranks,
		.n_launches = 1,
		.n_avg = shape->n_ranks,
		.elem_bytes = shape->elem_bytes,
		.count = shape->bytes / shape->elem_bytes,
		.local = (1ull << shape->n_ranks) - 1,
		.done_value = value};
	struct rx_gpu_launch what = {
		shape->kernel, &args, sizeof(args), shape->n_blocks, shape->n_threads, 0};

	args.sync[0] = (struct rx_dev_sync *)(uintptr_t)sync;
	for (uint32_t r = 0; r < shape->n_ranks; r++) {
		args.send[r] = (const void *)(uintptr_t)send[r];
		args.recv[r] = (void *)(uintptr_t)recv[r];
	}
	args.done[0] = (uint64_t *)(uintptr_t)done;
	args.status = (uint32_t *)(uintptr_t)(page_at + offsetof(struct page, status));
	check(ops->launch(device, stream, &what, &error), shape->kernel);
}

static double bandwidth(double bytes, double us)
{
	return bytes / us / 1e6; /* TB/s */
}

static double time_copy(void)
{
	double times[N_TIMES];

	for (int i = -1; i < N_TIMES; i++) {
		double start = now_us();

		for (uint32_t k = 0; k < N_BATCH; k++)
			check(ops->copy(device, stream, recv[k % MAX_RANKS], send[k % MAX_RANKS],
				      BIG_BYTES, &error),
				"copy");
		wait_idle();
		if (i >= 0)
			times[i] = (now_us() - start) / N_BATCH;
	}
	qsort(times, N_TIMES, sizeof(times[0]), compare);
	return times[N_TIMES / 2];
}

static double time_big(const struct shape *shape)
{
	double times[N_TIMES];

	for (int i = -1; i < N_TIMES; i++) {
		double start = now_us();

		for (uint32_t k = 0; k < N_BATCH; k++)
			launch(shape, 0, 0, 0);
		wait_idle();
		if (i >= 0)
			times[i] = (now_us() - start) / N_BATCH;
	}
	qsort(times, N_TIMES, sizeof(times[0]), compare);
	return times[N_TIMES / 2];
}

static void show_big(double copy_us, struct shape shape)
{
	double reads = shape.coll == RX_BROADCAST ? 1 : shape.n_ranks;
	double us = time_big(&shape);
	double rate = bandwidth((double)shape.bytes * (reads + shape.n_ranks), us);

	(void)printf("%-15s R=%u %4u MiB %4u x %3u  %8.1f us  %.2f TB/s  %3.0f %% of copy\n",
		shape.kernel, shape.n_ranks, (unsigned)(shape.bytes >> 20), shape.n_blocks,
		shape.n_threads, us, rate, 100 * rate / bandwidth(2.0 * BIG_BYTES, copy_us));
	(void)fflush(stdout);
}

/* Of a float32 allreduce of two ranks: some of the sums. */
static void check_sums(void)
{
	static float in[2][CHECKED];
	static float out[2][CHECKED];

	for (uint64_t at = 0; at < BIG_BYTES; at += BIG_BYTES / 16) {
		for (uint32_t r = 0; r < 2; r++) {
			check(ops->copy(device, stream, (uintptr_t)in[r], send[r] + at,
				      sizeof(in[r]), &error),
				"copy");
			check(ops->copy(device, stream, (uintptr_t)out[r], recv[r] + at,
				      sizeof(out[r]), &error),
				"copy");
		}
		wait_idle();
		for (uint32_t i = 0; i < CHECKED; i++) {
			float sum = in[0][i] + in[1][i];

			if (out[0][i] == sum && out[1][i] == sum)
				continue;
			(void)fprintf(stderr, "wrong: %g + %g = %g, %g\n", (double)in[0][i],
				(double)in[1][i], (double)out[0][i], (double)out[1][i]);
			exit(1);
		}
	}
}

/* From the call to the done word that the host sees. */
static void show_small(struct shape shape, uint64_t sync)
{
	static double times[N_SMALL];
	static uint64_t value;

	for (int i = 0; i < N_SMALL; i++) {
		double start = now_us();

		launch(&shape, sync, page_at, ++value);
		while (page->done != value) {
			if (now_us() - start > 2e6)
				check(RX_GPU_E_FAILED, "no done word");
		}
		times[i] = now_us() - start;
	}
	qsort(times, N_SMALL, sizeof(times[0]), compare);
	(void)printf("%-15s R=%u %7u B   %4u x %3u  p50 %6.1f us  p99 %6.1f us\n", shape.kernel,
		shape.n_ranks, (unsigned)shape.bytes, shape.n_blocks, shape.n_threads,
		times[N_SMALL / 2], times[N_SMALL * 99 / 100]);
	(void)fflush(stdout);
}

/* Other values everywhere: zeros may be faster than what users have. */
static void fill(void)
{
	uint32_t *words = malloc(BIG_BYTES);
	uint32_t x = 1;

	if (!words)
		exit(2);
	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		for (uint32_t i = 0; i < BIG_BYTES / 4; i++) {
			x = x * 1664525u + 1013904223u;
			words[i] = (x & 0xbfffffffu) ^ 0x3f000000u;
		}
		check(ops->copy(device, stream, send[r], (uintptr_t)words, BIG_BYTES, &error),
			"filling");
		wait_idle();
	}
	free(words);
}

static void bench_small(uint32_t n_units)
{
	static const uint32_t sizes[] = {1 << 10, 16 << 10, 128 << 10, 1 << 20, 16 << 20};
	static const uint32_t ranks[] = {1, 2, 4, 8};
	uint64_t sync = 0;
	uint32_t *zeros = calloc(1, sizeof(struct rx_dev_sync));

	if (!zeros)
		exit(2);
	check(ops->alloc(device, sizeof(struct rx_dev_sync), &sync, &error), "memory");
	check(ops->copy(device, stream, sync, (uintptr_t)zeros, sizeof(struct rx_dev_sync), &error),
		"clearing");
	wait_idle();
	free(zeros);
	for (size_t s = 0; s < RX_ARRAY_SIZE(sizes); s++) {
		for (size_t r = 0; r < RX_ARRAY_SIZE(ranks); r++) {
			struct shape shape = {"rx_reduce_f32", RX_ALL_REDUCE, RX_FLOAT32, 4,
				ranks[r], sizes[s], 0, SMALL_THREADS};
			uint32_t blocks = sizes[s] / (SMALL_THREADS * 64) + 1;

			shape.n_blocks = blocks > 2 * n_units ? 2 * n_units : blocks;
			show_small(shape, sync);
		}
	}
}

struct type {
	const char *kernel;
	uint8_t dtype;
	uint8_t bytes;
};

static struct shape big(struct type type, uint32_t n_ranks, uint32_t n_blocks, uint32_t n_threads)
{
	return (struct shape){type.kernel, RX_ALL_REDUCE, type.dtype, type.bytes, n_ranks,
		BIG_BYTES, n_blocks, n_threads};
}

static void bench_big(uint32_t n_units, uint32_t most_threads)
{
	static const struct type types[] = {{"rx_reduce_f32", RX_FLOAT32, 4},
		{"rx_reduce_bf16", RX_BFLOAT16, 2}, {"rx_reduce_e4m3", RX_FLOAT8E4M3, 1},
		{"rx_reduce_i64", RX_INT64, 8}, {"rx_reduce_f16", RX_FLOAT16, 2},
		{"rx_reduce_i8", RX_INT8, 1}, {"rx_reduce_f64", RX_FLOAT64, 8}};
	static const struct {
		uint32_t per_unit;
		uint32_t threads;
	} grids[] = {{1, 256}, {2, 256}, {4, 256}, {1, 384}, {2, 384}, {2, 192}, {4, 192}, {4, 128},
		{1, 512}, {2, 512}};
	double copy_us = time_copy();

	(void)printf("the runtime's copy  %4u MiB %25.1f us  %.2f TB/s\n", BIG_BYTES >> 20, copy_us,
		bandwidth(2.0 * BIG_BYTES, copy_us));
	(void)time_big(&(struct shape){
		types[0].kernel, RX_ALL_REDUCE, RX_FLOAT32, 4, 2, BIG_BYTES, 2 * n_units, 256});
	check_sums();
	for (size_t t = 0; t < 4; t++) {
		for (size_t g = 0; g < RX_ARRAY_SIZE(grids); g++) {
			if (grids[g].threads <= most_threads)
				show_big(copy_us, big(types[t], 2, grids[g].per_unit * n_units,
							  grids[g].threads));
		}
	}
	for (size_t t = 0; t < RX_ARRAY_SIZE(types); t++)
		show_big(copy_us, big(types[t], 2, 2 * n_units, 256));
	for (uint32_t n = 1; n <= MAX_RANKS; n *= 2)
		show_big(copy_us, big(types[0], n, 2 * n_units, 256));
	for (size_t g = 0; g < RX_ARRAY_SIZE(grids); g++)
		show_big(
			copy_us, (struct shape){"rx_copy", RX_BROADCAST, RX_FLOAT32, 4, 2,
					 BIG_BYTES, grids[g].per_unit * n_units, grids[g].threads});
}

int main(int argc, char **argv)
{
	struct rx_gpu_config config = {.size = sizeof(config)};
	struct rx_gpu_device_info info = {0};
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	if (!plugin || !(ops = dlsym(plugin, RX_BACKEND_SYMBOL))) {
		(void)fprintf(stderr, "usage: bench PLUGIN [CODE [MOST_THREADS]]: %s\n",
			argc > 1 ? dlerror() : "");
		return 2;
	}
	config.code_file = argc > 2 && *argv[2] ? argv[2] : NULL;
	check(ops->open(&config, &gpu, &error), "open");
	check(ops->device_open(gpu, 0, &device, &error), "device");
	check(ops->device_info(gpu, 0, &info, &error), "device");
	check(ops->stream_open(device, true, &stream, &error), "stream");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 2;
	check(ops->host_register(gpu, page, 4096, &page_at, &error), "registering");
	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		check(ops->alloc(device, BIG_BYTES, &send[r], &error), "memory");
		check(ops->alloc(device, BIG_BYTES, &recv[r], &error), "memory");
	}
	fill();
	(void)printf("%s, %s, %u units\n", info.name, info.arch, info.n_units);
	bench_big(info.n_units, argc > 3 ? (uint32_t)atoi(argv[3]) : RX_DEV_MAX_THREADS);
	bench_small(info.n_units);
	wait_idle();
	return 0;
}
