/* SPDX-License-Identifier: MIT */
/*
 * Times of allreduces of several processes that share one NVIDIA GPU: blocking, in a stream, in
 * graphs; beside the same kernel, launched by one process for as many buffers of its own. Prints a
 * table; results are checked. tests/gpu/run.sh has the surroundings.
 *
 *	times SOCKET CODE
 */
#include "../../client/rcclx.h"
#include "../../kernels/coll_types.h"
#include "../../kernels/device/device_abi.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_RANKS 8u
#define WARM       20u
#define GRAPH_OPS  64u

enum kind { BLOCKING, IN_STREAM, QUEUED, GRAPH, ALONE, N_KINDS };

static const char *const names[N_KINDS] = {
	"blocking call",
	"in a stream, then synchronize",
	"in a stream, 50 queued, each",
	"graph of 64, each",
	"one process, no daemon: launch, synchronize",
};

struct shared {
	_Atomic uint32_t arrived;
	_Atomic uint32_t has_id;
	struct rcclx_unique_id id;
};

static struct shared *shared;
static uint32_t rank;
static uint32_t n_ranks;

static void die(const char *what, const char *more)
{
	(void)fprintf(stderr, "rank %u of %u: %s: %s\n", rank, n_ranks, what, more);
	_exit(1);
}

static void cuda(CUresult r, const char *what)
{
	const char *name = "?";

	if (r == CUDA_SUCCESS)
		return;
	(void)cuGetErrorName(r, &name);
	die(what, name);
}

static void ours(rcclx_result r, const char *what)
{
	if (r != RCCLX_OK)
		die(what, rcclx_last_error());
}

#define CU(call) cuda(call, #call)
#define RX(call) ours(call, #call)

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Ranks start a measurement together. */
static void meet(void)
{
	static uint32_t n;

	n++;
	atomic_fetch_add(&shared->arrived, 1);
	while (atomic_load(&shared->arrived) < n * n_ranks)
		;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, uint32_t n)
{
	qsort(values, n, sizeof(*values), by_size);
	return values[n / 2];
}

/* ---- through the daemon ---- */

struct bench {
	struct rcclx_client *client;
	struct rcclx_comm *comm;
	struct rcclx_call_config config;
	CUstream stream;
	CUdeviceptr memory;
	uint64_t count;
};

static void sum(struct bench *b)
{
	void *send = (void *)(uintptr_t)b->memory;
	void *recv = (void *)(uintptr_t)(b->memory + b->count * 4);

	RX(rcclx_all_reduce(b->comm, send, recv, b->count, RCCLX_FLOAT32, RCCLX_SUM, &b->config));
}

static void check(struct bench *b)
{
	float last = 0;
	float expected = (float)(n_ranks * (n_ranks + 1) / 2);

	CU(cuMemcpyDtoH(&last, b->memory + (2 * b->count - 1) * 4, 4));
	if (last != expected)
		die("a sum is wrong", "");
	CU(cuMemsetD32(b->memory + b->count * 4, 0, b->count));
}

static double measure_calls(struct bench *b, enum kind kind, uint32_t n)
{
	double *times = calloc(n, sizeof(*times));
	uint32_t at_once = kind == QUEUED ? 50 : 1;
	double result = 0;

	for (uint32_t i = 0; i < WARM + n; i++) {
		double start = 0;

		meet();
		start = now_us();
		for (uint32_t k = 0; k < at_once; k++)
			sum(b);
		if (kind != BLOCKING)
			CU(cuStreamSynchronize(b->stream));
		if (i >= WARM)
			times[i - WARM] = (now_us() - start) / at_once;
	}
	result = median(times, n);
	free(times);
	return result;
}

static double measure_graph(struct bench *b, uint32_t n)
{
	double *times = calloc(n, sizeof(*times));
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;
	double result = 0;

	CU(cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (uint32_t i = 0; i < GRAPH_OPS; i++)
		sum(b);
	CU(cuStreamEndCapture(b->stream, &graph));
	CU(cuGraphInstantiate(&exec, graph, 0));
	for (uint32_t i = 0; i < 5 + n; i++) {
		double start = 0;

		meet();
		start = now_us();
		CU(cuGraphLaunch(exec, b->stream));
		CU(cuStreamSynchronize(b->stream));
		if (i >= 5)
			times[i - 5] = (now_us() - start) / GRAPH_OPS;
	}
	result = median(times, n);
	free(times);
	return result;
}

static double measure(struct bench *b, enum kind kind, uint64_t bytes)
{
	uint32_t n = bytes > 1 << 20 ? 30 : 200;
	float mine = (float)(rank + 1);
	double result = 0;

	b->count = bytes / 4;
	/* Something that can be proven, and a last element that is known. */
	for (uint64_t i = 0; i < 64 && i < b->count; i++) {
		uint64_t at = i * (b->count / 64);
		float value = (float)(i * 3 + rank);

		CU(cuMemcpyHtoD(b->memory + at * 4, &value, 4));
	}
	CU(cuMemcpyHtoD(b->memory + (b->count - 1) * 4, &mine, 4));
	b->config.flags = kind == BLOCKING ? 0 : RCCLX_CALL_IN_STREAM;
	b->config.stream = kind == BLOCKING ? NULL : b->stream;
	result = kind == GRAPH ? measure_graph(b, 30) : measure_calls(b, kind, n);
	check(b);
	return result;
}

/* ---- alone ---- */

static double measure_alone(const char *code, uint64_t bytes)
{
	uint32_t n = bytes > 1 << 20 ? 30 : 200;
	uint64_t count = bytes / 4;
	struct rx_dev_args args = {
		.abi = RX_DEV_ABI,
		.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.op = RX_SUM,
		.algorithm = RX_DEV_DIRECT,
		.n_ranks = n_ranks,
		.n_launches = 1,
		.n_avg = n_ranks,
		.elem_bytes = 4,
		.count = count,
		.local = (1ull << n_ranks) - 1,
	};
	size_t args_bytes = sizeof(args);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&args_bytes, CU_LAUNCH_PARAM_END};
	uint64_t blocks = bytes / (256 * 64) + 1;
	double *times = calloc(n, sizeof(*times));
	double result = 0;
	CUdeviceptr memory[MOST_RANKS];
	CUfunction function = NULL;
	CUmodule module = NULL;
	CUstream stream = NULL;

	CU(cuModuleLoad(&module, code));
	CU(cuModuleGetFunction(&function, module, RX_DEV_REDUCE_PREFIX "f32"));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (uint32_t r = 0; r < n_ranks; r++) {
		CU(cuMemAlloc(&memory[r], 2 * bytes));
		CU(cuMemsetD32(memory[r], 0x3f800000, count));
		args.send[r] = (void *)(uintptr_t)memory[r];
		args.recv[r] = (void *)(uintptr_t)(memory[r] + bytes);
	}
	for (uint32_t i = 0; i < WARM + n; i++) {
		double start = now_us();

		CU(cuLaunchKernel(function, (unsigned int)(blocks < 256 ? blocks : 256), 1, 1, 256,
			1, 1, 0, stream, NULL, extra));
		CU(cuStreamSynchronize(stream));
		if (i >= WARM)
			times[i - WARM] = now_us() - start;
	}
	for (uint32_t r = 0; r < n_ranks; r++)
		CU(cuMemFree(memory[r]));
	result = median(times, n);
	free(times);
	return result;
}

/* ---- ranks ---- */

static const uint64_t sizes[] = {1 << 10, 32 << 10, 1 << 20, 16 << 20, 64 << 20, 1 << 30};

#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void print_row(enum kind kind, const double *us)
{
	(void)printf("| %u | %s |", n_ranks, names[kind]);
	for (size_t i = 0; i < N_SIZES; i++)
		(void)printf(us[i] > 0 ? " %.1f |" : " |", us[i]);
	(void)printf("\n");
	(void)fflush(stdout);
}

static void run_rank(const char *socket, const char *code)
{
	struct bench b = {.config = RCCLX_CALL_CONFIG_INIT};
	CUcontext context = NULL;

	CU(cuInit(0));
	CU(cuDevicePrimaryCtxRetain(&context, 0));
	CU(cuCtxSetCurrent(context));
	CU(cuStreamCreate(&b.stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemAlloc(&b.memory, 2 * sizes[N_SIZES - 1]));
	RX(rcclx_connect(socket, NULL, &b.client));
	if (rank == 0) {
		RX(rcclx_unique_id_create(b.client, &shared->id));
		atomic_store(&shared->has_id, 1);
	}
	while (!atomic_load(&shared->has_id))
		;
	RX(rcclx_comm_create(b.client, &shared->id, n_ranks, rank, NULL, &b.comm));
	for (enum kind kind = BLOCKING; kind < ALONE; kind++) {
		double us[N_SIZES] = {0};

		for (size_t i = 0; i < N_SIZES; i++)
			if (kind < QUEUED || i < 3)
				us[i] = measure(&b, kind, sizes[i]);
		if (rank == 0)
			print_row(kind, us);
	}
	meet();
	if (rank == 0) {
		double us[N_SIZES] = {0};

		for (size_t i = 0; i < N_SIZES; i++)
			us[i] = measure_alone(code, sizes[i]);
		print_row(ALONE, us);
	}
	RX(rcclx_comm_destroy(b.comm));
	RX(rcclx_disconnect(b.client));
}

int main(int argc, char **argv)
{
	static const uint32_t worlds[] = {1, 2, 4, 8};
	int bad = 0;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: times SOCKET CODE\n");
		return 2;
	}
	(void)printf(
		"| ranks | allreduce of float32, us, median | 1 KiB | 32 KiB | 1 MiB | 16 MiB | "
		"64 MiB | 1 GiB |\n|---|---|---|---|---|---|---|---|\n");
	(void)fflush(stdout);
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (shared == MAP_FAILED)
			return 1;
		n_ranks = worlds[i];
		for (rank = 0; rank < n_ranks; rank++) {
			pid_t pid = fork();

			if (pid != 0)
				continue;
			(void)alarm(60);
			run_rank(argv[1], argv[2]);
			_exit(0);
		}
		for (uint32_t k = 0; k < n_ranks; k++) {
			int status = 0;

			(void)wait(&status);
			bad |= status;
		}
	}
	return bad ? 1 : 0;
}
