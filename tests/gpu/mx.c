/* SPDX-License-Identifier: MIT */
/*
 * The low-precision kernels on a real GPU: results and counts against what the host does, then how
 * fast they are.
 *
 *	mx CODE [speed]
 *
 * CODE is what nvcc made of mx.hip; "speed": nothing else. Exits with 1 when a bit is wrong.
 */
#include "../../kernels/coll_extent.h"
#include "../../kernels/device/device_abi.h"
#include "../../kernels/host/host_coll.h"
#include "../../kernels/host/host_lowprec.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS  8u
#define MAX_COUNT  70001u
#define ROOM       ((size_t)MAX_COUNT * 4 * MAX_RANKS + 256)
#define SLOT_BYTES (64u << 10)
#define N_BLOCKS   8u /* of a launch that waits for others */
#define WAIT_NS    2000000000ull
#define N_TIMES    20

static CUmodule module;
static CUstream streams[MAX_RANKS];
static int n_bad;

static void must(CUresult result, const char *what)
{
	const char *text = NULL;

	if (result == CUDA_SUCCESS)
		return;
	(void)cuGetErrorString(result, &text);
	(void)printf("BAD  %s: %s\n", what, text);
	exit(1);
}

#define MUST(call) must(call, #call)

static CUdeviceptr get(size_t bytes)
{
	CUdeviceptr p = 0;

	MUST(cuMemAlloc(&p, bytes));
	MUST(cuMemsetD8(p, 0, bytes));
	return p;
}

static CUfunction kernel_for(uint32_t dtype)
{
	const char *name = dtype == RX_FLOAT32   ? "rx_mx_f32"
			   : dtype == RX_FLOAT16 ? "rx_mx_f16"
						 : "rx_mx_bf16";
	CUfunction function = NULL;

	MUST(cuModuleGetFunction(&function, module, name));
	return function;
}

static void launch(
	CUstream stream, const struct rx_dev_args *args, uint32_t blocks, uint32_t threads)
{
	size_t bytes = sizeof(*args);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)args, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&bytes, CU_LAUNCH_PARAM_END};

	MUST(cuLaunchKernel(
		kernel_for(args->dtype), blocks, 1, 1, threads, 1, 1, 0, stream, NULL, extra));
}

/* ---- bits ---- */

static struct {
	CUdeviceptr send[MAX_RANKS];
	CUdeviceptr recv[MAX_RANKS];
	CUdeviceptr slot[MAX_RANKS];
	CUdeviceptr sync[MAX_RANKS];
	uint32_t *status; /* host memory */
	struct rx_dev_mx_counts *counts;
	uint8_t *in[MAX_RANKS];
	uint8_t *out[MAX_RANKS];
	uint8_t *got;
} room;

static void make_room(void)
{
	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		room.send[r] = get(ROOM);
		room.recv[r] = get(ROOM);
		room.slot[r] = get(RX_DEV_SLOT_TOTAL((size_t)SLOT_BYTES));
		room.sync[r] = get(sizeof(struct rx_dev_sync));
		room.in[r] = calloc(1, ROOM);
		room.out[r] = calloc(1, ROOM);
		if (!room.in[r] || !room.out[r])
			exit(2);
	}
	room.got = calloc(1, ROOM);
	MUST(cuMemHostAlloc((void **)&room.status, 64, CU_MEMHOSTALLOC_DEVICEMAP));
	MUST(cuMemHostAlloc((void **)&room.counts,
		MAX_RANKS * RX_DEV_MAX_BLOCKS * sizeof(*room.counts), CU_MEMHOSTALLOC_DEVICEMAP));
}

static uint64_t state = 1;

static uint32_t pick(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 32);
}

/* Any bits in every 5th run of 37; else of one magnitude per run, and some zeros. */
static void fill(uint8_t *to, uint32_t size, size_t n)
{
	uint32_t exponent = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t bits = pick();

		if (i % 37 == 0)
			exponent = pick() % 250 + 1;
		if (i / 37 % 5 && size == 4)
			bits = (bits & 0x807fffffu) | (exponent + pick() % 4) << 23;
		else if (i / 37 % 5)
			bits &= 0xbfffbfffu;
		if (pick() % 9 == 0)
			bits = 0;
		memcpy(to + i * size, &bits, size);
	}
}

struct test {
	uint8_t coll;
	uint8_t dtype;
	uint8_t op;
	uint8_t algorithm;
	uint32_t flags;
	uint32_t n_ranks;
	uint32_t n_launches;
	uint64_t count;
	uint32_t offset; /* of buffers, in elements */
	uint32_t threads;
};

static void extents(const struct test *t, uint64_t *send_p, uint64_t *recv_p)
{
	struct rx_extent extent;

	if (!rx_coll_extent(t->coll, t->count, t->n_ranks, 0, 0, &extent))
		exit(2);
	*send_p = extent.send;
	*recv_p = extent.recv;
}

static struct rx_mx_stats on_host(const struct test *t)
{
	static uint8_t scratch[HOST_LOWPREC_SCRATCH_MAX] __attribute__((aligned(64)));
	struct host_lowprec lowprec = {.scratch = scratch,
		.scratch_bytes = sizeof(scratch),
		.bf16 = t->flags & RX_DEV_SUMS_BF16};
	struct host_coll_args args = {.coll = t->coll,
		.dtype = t->dtype,
		.op = t->op,
		.n_ranks = t->n_ranks,
		.count = t->count,
		.send = (const void *const *)room.in,
		.recv = (void *const *)room.out,
		.lowprec = &lowprec};

	if (host_coll_run(&args) != 0)
		exit(2);
	return lowprec.work.stats;
}

static struct rx_dev_mx_counts on_device(const struct test *t)
{
	uint32_t size = rx_dtype_size(t->dtype);
	struct rx_dev_mx_counts sum = {0};
	struct rx_dev_args args = {.abi = RX_DEV_ABI,
		.coll = t->coll,
		.dtype = t->dtype,
		.op = t->op,
		.algorithm = t->algorithm,
		.flags = t->flags | RX_DEV_ENTRY | RX_DEV_EXIT,
		.n_ranks = t->n_ranks,
		.n_launches = t->n_launches,
		.n_avg = t->n_ranks,
		.elem_bytes = size,
		.count = t->count,
		.slot_bytes = SLOT_BYTES,
		.wait_ticks = WAIT_NS,
		.status = room.status};

	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		args.send[r] = (const void *)(room.send[r] + t->offset * size);
		args.recv[r] = (void *)(room.recv[r] + t->offset * size);
		args.slot[r] = (void *)room.slot[r];
		args.sync[r] = (struct rx_dev_sync *)room.sync[r];
		MUST(cuMemsetD8(room.sync[r], 0, sizeof(struct rx_dev_sync)));
	}
	*room.status = 0;
	MUST(cuCtxSynchronize());
	for (uint32_t l = 0; l < t->n_launches; l++) {
		args.launch = l;
		args.local = 0;
		args.counts = room.counts + (size_t)l * RX_DEV_MAX_BLOCKS;
		for (uint32_t r = l; r < t->n_ranks; r += t->n_launches)
			args.local |= 1ull << r;
		launch(streams[l], &args, N_BLOCKS, t->threads);
	}
	MUST(cuCtxSynchronize());
	for (uint32_t i = 0; i < t->n_launches * N_BLOCKS; i++) {
		const struct rx_dev_mx_counts *one =
			&room.counts[i / N_BLOCKS * RX_DEV_MAX_BLOCKS + i % N_BLOCKS];

		sum.n_blocks += one->n_blocks;
		sum.n_saturated += one->n_saturated;
		sum.n_flushed += one->n_flushed;
		sum.n_special += one->n_special;
	}
	return sum;
}

static void run(const struct test *t)
{
	uint32_t size = rx_dtype_size(t->dtype);
	uint64_t send = 0;
	uint64_t recv = 0;
	struct rx_mx_stats stats;
	struct rx_dev_mx_counts counts;
	const char *wrong = NULL;

	extents(t, &send, &recv);
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		fill(room.in[r], size, send);
		MUST(cuMemcpyHtoD(room.send[r] + t->offset * size, room.in[r], send * size));
		MUST(cuMemsetD8(room.recv[r], 0xa5, ROOM));
	}
	stats = on_host(t);
	counts = on_device(t);
	if (*room.status)
		wrong = "it gave up";
	else if (counts.n_blocks != stats.n_blocks || counts.n_saturated != stats.n_saturated ||
		 counts.n_flushed != stats.n_flushed || counts.n_special != stats.n_special)
		wrong = "it counts something else";
	for (uint32_t r = 0; r < t->n_ranks && !wrong; r++) {
		MUST(cuMemcpyDtoH(room.got, room.recv[r], ROOM));
		if (memcmp(room.got + t->offset * size, room.out[r], recv * size) != 0)
			wrong = "bits differ";
		for (size_t i = (t->offset + recv) * size; i < ROOM && !wrong; i++)
			wrong = room.got[i] == 0xa5 ? NULL : "it writes beyond the end";
	}
	if (!wrong)
		return;
	n_bad++;
	(void)printf("BAD  %s %s %s algorithm=%u flags=%u ranks=%u launches=%u count=%llu "
		     "offset=%u threads=%u: %s\n",
		rx_coll_name(t->coll), rx_dtype_name(t->dtype), rx_redop_name(t->op), t->algorithm,
		t->flags, t->n_ranks, t->n_launches, (unsigned long long)t->count, t->offset,
		t->threads, wrong);
}

static void check_bits(void)
{
	static const uint8_t colls[] = {
		RX_ALL_REDUCE, RX_REDUCE_SCATTER, RX_ALL_GATHER, RX_ALL_TO_ALL};
	static const uint8_t dtypes[] = {RX_FLOAT32, RX_BFLOAT16, RX_FLOAT16};
	static const uint32_t ranks[] = {1, 2, 3, 4, 8};
	static const uint32_t counts[] = {1, 33, 4096, MAX_COUNT};
	static const uint32_t threads[] = {512, 256, 32};
	uint32_t n = 0;

	for (uint32_t i = 0; i < 4 * 3 * 5 * 4 * RX_DEV_ALGORITHM_N; i++) {
		struct test t = {.coll = colls[i % 4],
			.dtype = dtypes[i / 4 % 3],
			.n_ranks = ranks[i / 12 % 5],
			.count = counts[i / 60 % 4],
			.algorithm = (uint8_t)(i / 240),
			.op = pick() % 2 ? RX_AVG : RX_SUM,
			.flags = (pick() % 2 ? RX_DEV_PUSH : 0) |
				 (pick() % 3 ? 0 : RX_DEV_SUMS_BF16),
			.offset = pick() % 2,
			.threads = threads[pick() % 3]};

		if (t.algorithm == RX_DEV_TREE && t.coll != RX_ALL_REDUCE)
			continue;
		for (t.n_launches = 1; t.n_launches <= t.n_ranks; t.n_launches++, n++)
			run(&t);
	}
	(void)printf("%-4s %u operations against the host, %d of them wrong\n",
		n_bad ? "BAD" : "ok", n, n_bad);
	(void)fflush(stdout);
}

/* ---- speed ---- */

static float time_ms(void (*work)(void *arg), void *arg)
{
	CUevent begin = NULL;
	CUevent end = NULL;
	float ms = 0;

	MUST(cuEventCreate(&begin, 0));
	MUST(cuEventCreate(&end, 0));
	for (int i = 0; i < 3; i++)
		work(arg);
	MUST(cuEventRecord(begin, streams[0]));
	for (int i = 0; i < N_TIMES; i++)
		work(arg);
	MUST(cuEventRecord(end, streams[0]));
	MUST(cuEventSynchronize(end));
	MUST(cuEventElapsedTime(&ms, begin, end));
	(void)cuEventDestroy(begin);
	(void)cuEventDestroy(end);
	return ms / N_TIMES;
}

struct work {
	struct rx_dev_args args;
	uint32_t blocks;
	uint32_t threads;
	size_t bytes;
};

static void copy(void *arg)
{
	struct work *w = arg;

	MUST(cuMemcpyDtoDAsync(
		(CUdeviceptr)w->args.recv[0], (CUdeviceptr)w->args.send[0], w->bytes, streams[0]));
}

static void collective(void *arg)
{
	struct work *w = arg;

	launch(streams[0], &w->args, w->blocks, w->threads);
}

static double time_grid(struct work *w, double bytes, double copied, const char *what)
{
	static const uint32_t grids[][2] = {
		{132, 512}, {256, 512}, {264, 320}, {396, 256}, {528, 256}};
	double best = 0;

	(void)printf("%-44s", what);
	for (size_t g = 0; g < RX_ARRAY_SIZE(grids); g++) {
		double rate = 0;

		w->blocks = grids[g][0];
		w->threads = grids[g][1];
		rate = bytes / time_ms(collective, w) / 1e9;
		(void)printf("  %ux%u: %.2f (%.0f %%)", w->blocks, w->threads, rate,
			100 * rate / copied);
		best = rate > best ? rate : best;
	}
	(void)printf("  TB/s\n");
	(void)fflush(stdout);
	return best;
}

/* Between -1 and 1, as float32 and as bfloat16. */
static void fill_usual(uint8_t *to)
{
	for (size_t i = 0; i < ROOM / 2; i++) {
		float v = (float)(int32_t)pick() * 0x1p-31f;

		memcpy(to + i * 2, (const uint8_t *)&v + 2, 2);
	}
}

static void measure(void)
{
	static const uint8_t dtypes[] = {RX_FLOAT32, RX_BFLOAT16};
	size_t bytes = 64u << 20;
	struct work w = {.bytes = 256u << 20};
	struct rx_dev_mx_counts *counts = (struct rx_dev_mx_counts *)get(1024 * sizeof(*counts));
	double copied = 0;

	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		w.args.send[r] = (const void *)get(r ? bytes : w.bytes);
		w.args.recv[r] = (void *)get(r ? bytes : w.bytes);
		fill_usual(room.in[r]);
		for (size_t at = 0; at < bytes; at += ROOM / 256 * 256)
			MUST(cuMemcpyHtoD((CUdeviceptr)w.args.send[r] + at, room.in[r],
				rx_min_u64(bytes - at, ROOM / 256 * 256)));
	}
	copied = 2.0 * (double)w.bytes / time_ms(copy, &w) / 1e9;
	(void)printf("copying 256 MiB: %.2f TB/s\n", copied);
	for (uint32_t d = 0; d < 2; d++) {
		w.args.abi = RX_DEV_ABI;
		w.args.dtype = dtypes[d];
		w.args.elem_bytes = rx_dtype_size(dtypes[d]);
		w.args.n_launches = 1;
		w.args.counts = counts;
		for (uint32_t r = 2; r <= 8; r *= 2) {
			char what[64];

			w.args.n_ranks = w.args.n_avg = r;
			w.args.local = (1ull << r) - 1;
			w.args.coll = RX_ALL_REDUCE;
			w.args.count = bytes / w.args.elem_bytes;
			(void)snprintf(what, sizeof(what), "allreduce %s, %u ranks of 64 MiB",
				rx_dtype_name(dtypes[d]), r);
			(void)time_grid(&w, 2.0 * r * (double)bytes, copied, what);
		}
		w.args.coll = RX_ALL_GATHER;
		w.args.n_ranks = 2;
		w.args.local = 3;
		w.args.count = bytes / 2 / w.args.elem_bytes;
		(void)time_grid(&w, 3.0 * (double)bytes, copied, "all-gather, 2 ranks of 32 MiB");
	}
}

int main(int argc, char **argv)
{
	CUdevice device = 0;
	CUcontext context = NULL;
	char name[64] = "";

	if (argc != 2 && argc != 3)
		return 2;
	MUST(cuInit(0));
	MUST(cuDeviceGet(&device, 0));
	MUST(cuDeviceGetName(name, sizeof(name), device));
	MUST(cuDevicePrimaryCtxRetain(&context, device));
	MUST(cuCtxSetCurrent(context));
	MUST(cuModuleLoad(&module, argv[1]));
	for (uint32_t i = 0; i < MAX_RANKS; i++)
		MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	(void)printf("%s\n", name);
	make_room();
	if (argc == 2)
		check_bits();
	measure();
	return n_bad ? 1 : 0;
}
