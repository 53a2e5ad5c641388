/* SPDX-License-Identifier: MIT */
/*
 * The inline kernels (kernels/device/inline_abi.h) on one NVIDIA GPU, launched by several processes
 * in streams and graphs of their own, on memory that another process owns. tests/gpu/inline.sh has
 * the surroundings.
 *
 *	inline CODE check R    every collective, type and operation, against the oracle
 *	inline CODE times R    allreduce as rx_inl_plan() has it, beside launches by one process
 *	inline CODE sweep R    algorithm, blocks and threads: the fastest, beside rx_inl_plan()'s
 *
 * CODE is what nvcc made of kernels/device. Times are of the slowest rank, medians. Exits with 1
 * when a result is wrong or a kernel gives up.
 */
#include "../../kernels/coll_extent.h"
#include "../../kernels/device/inline_abi.h"
#include "../oracle/oracle.h"

#include <cuda.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_RANKS   8u
#define SLOT_BYTES   RX_INL_SLOT_DEFAULT
#define GRAPH_OPS    64u
#define REPLAYS      16u /* of one measurement */
#define QUEUED       256u
#define MOST_TIMES   64u
#define MOST_CHECKED (1u << 17) /* elements of all ranks: the oracle is slow */
#define GUARD        64u
#define FILLER       0xa5
#define PATIENCE_NS  3000000000ull
#define DEADLINE_S   240

static const char *const suffixes[RX_DTYPE_N] = {
	"i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16", "e4m3", "e5m2"};

static const char *const algorithms[RX_INL_ALGORITHM_N] = {"words", "flat", "two shots"};

/* Memory of all processes. Pages and lines are what the daemon would have of the host. */
struct shared {
	struct rx_inl_page page;
	struct rx_inl_line line[MOST_RANKS];
	CUipcMemHandle memory;
	_Atomic uint32_t arrived;
	_Atomic uint32_t is_made;
	double result[MOST_RANKS];
};

/* One launch of an operation: of one rank, or of several. */
struct unit {
	uint32_t local;
	CUstream stream;
	CUevent first;
	CUevent last;
	CUgraphExec graph;
};

static struct shared *shared;
static uint32_t n_ranks;
static uint32_t n_procs;
static uint32_t proc;
static CUdeviceptr slab;
static CUdeviceptr lines; /* of shared, as the device sees it */
static CUdeviceptr buffers[MOST_RANKS][2];
static size_t buffer_bytes;
static CUmodule module;
static struct unit units[MOST_RANKS];
static uint32_t n_units;

static void die(const char *what, const char *more)
{
	(void)fprintf(stderr, "process %u of %u: %s: %s\n", proc, n_procs, what, more);
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

#define CU(call) cuda(call, #call)

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void meet(void)
{
	static uint32_t n;

	n++;
	atomic_fetch_add(&shared->arrived, 1);
	while (atomic_load(&shared->arrived) < n * n_procs)
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

/* Of all processes, the largest. */
static double slowest(double value)
{
	double most = 0;

	shared->result[proc] = value;
	meet();
	for (uint32_t p = 0; p < n_procs; p++)
		most = shared->result[p] > most ? shared->result[p] : most;
	meet();
	return most;
}

/* The same numbers in all processes. */
static uint32_t pick(uint32_t below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

/* ---- launching ---- */

struct op {
	uint8_t coll;
	uint8_t dtype;
	uint8_t redop;
	uint8_t algorithm;
	uint32_t count;
	uint32_t root;
	uint32_t n_blocks;
	uint32_t n_threads;
	bool in_place;
	uint32_t offset[2]; /* of send and recv in their buffers */
	uint64_t seed;
};

static uint32_t op_bytes(const struct op *op)
{
	return op->count * rx_dtype_size(op->dtype);
}

static uint64_t scalar_of(const struct op *op, uint32_t r)
{
	uint64_t bits = 0;

	oracle_fill(&bits, op->dtype, 0, 1, r, op->seed + 1, ORACLE_NORMAL);
	return bits;
}

static struct rx_extent extent_of(const struct op *op, uint32_t r)
{
	struct rx_extent extent;

	if (!rx_coll_extent(op->coll, op->count, n_ranks, r, op->root, &extent))
		die("rx_coll_extent", "no such operation");
	return extent;
}

static CUdeviceptr send_at(const struct op *op, uint32_t r, const struct rx_extent *extent)
{
	uint32_t width = rx_dtype_size(op->dtype);

	if (op->in_place && extent->send <= extent->recv)
		return buffers[r][1] + op->offset[1] + extent->send_in_recv * width;
	return buffers[r][0] + op->offset[0];
}

static CUdeviceptr recv_at(const struct op *op, uint32_t r, const struct rx_extent *extent)
{
	uint32_t width = rx_dtype_size(op->dtype);

	if (op->in_place && extent->send > extent->recv)
		return buffers[r][0] + op->offset[0] + extent->recv_in_send * width;
	return buffers[r][1] + op->offset[1];
}

static void fill_args(struct rx_inl_args *a, const struct op *op, uint32_t local)
{
	memset(a, 0, sizeof(*a));
	a->abi = RX_INL_ABI;
	a->coll = op->coll;
	a->dtype = op->dtype;
	a->op = op->redop;
	a->algorithm = op->algorithm;
	a->n_ranks = n_ranks;
	a->root = op->root;
	a->count = op->count;
	a->elem_bytes = rx_dtype_size(op->dtype);
	a->local = local;
	a->slot_bytes = SLOT_BYTES;
	a->page = (void *)(uintptr_t)(lines + offsetof(struct shared, page));
	for (uint32_t r = 0; r < n_ranks; r++) {
		struct rx_extent extent = extent_of(op, r);

		a->mem[r] = (void *)(uintptr_t)(slab + r * RX_INL_MEM_BYTES(SLOT_BYTES));
		if (!(local >> r & 1))
			continue;
		a->send[r] = (void *)(uintptr_t)send_at(op, r, &extent);
		a->recv[r] = (void *)(uintptr_t)recv_at(op, r, &extent);
		a->line[r] = (void *)(uintptr_t)(lines + offsetof(struct shared, line) +
						 r * sizeof(struct rx_inl_line));
		if (op->redop == RX_PREMUL_SUM && rx_coll_reduces(op->coll))
			a->scalar[r] = scalar_of(op, r);
	}
}

static CUfunction kernel_of(const struct op *op)
{
	char name[32] = RX_INL_COPY_NAME;
	CUfunction f = NULL;

	if (rx_coll_reduces(op->coll))
		(void)snprintf(name, sizeof(name), RX_INL_PREFIX "%s", suffixes[op->dtype]);
	CU(cuModuleGetFunction(&f, module, name));
	return f;
}

struct prepared {
	struct rx_inl_args args[MOST_RANKS];
	CUfunction f;
	uint32_t n_blocks;
	uint32_t n_threads;
};

static void prepare(struct prepared *p, const struct op *op)
{
	p->f = kernel_of(op);
	p->n_blocks = op->n_blocks;
	p->n_threads = op->n_threads;
	for (uint32_t u = 0; u < n_units; u++)
		fill_args(&p->args[u], op, units[u].local);
}

static void launch(struct prepared *p, uint32_t u)
{
	void *params[] = {&p->args[u]};

	CU(cuLaunchKernel(
		p->f, p->n_blocks, 1, 1, p->n_threads, 1, 1, 0, units[u].stream, params, NULL));
}

/* All that was launched, and no kernel has given up. */
static void finish(void)
{
	for (uint32_t u = 0; u < n_units; u++)
		CU(cuStreamSynchronize(units[u].stream));
	for (uint32_t r = 0; r < n_ranks; r++) {
		char text[64];

		if (shared->line[r].status == 0)
			continue;
		(void)snprintf(
			text, sizeof(text), "rank %u, status %#x", r, shared->line[r].status);
		die("a kernel gave up", text);
	}
}

/* ---- results ---- */

static void expect(const struct op *op, uint32_t r, uint8_t *const *inputs, uint8_t *out)
{
	uint32_t width = rx_dtype_size(op->dtype);
	size_t bytes = op_bytes(op);
	uint64_t scalars[MOST_RANKS];

	for (uint32_t i = 0; i < n_ranks; i++)
		scalars[i] = scalar_of(op, i);
	if (rx_coll_reduces(op->coll)) {
		uint64_t first = op->coll == RX_REDUCE_SCATTER ? (uint64_t)r * op->count : 0;

		for (uint64_t i = 0; i < op->count; i++)
			oracle_fold(op->dtype, op->redop, n_ranks, (const void *const *)inputs,
				first + i, scalars, out + i * width);
	} else if (op->coll == RX_BROADCAST) {
		memcpy(out, inputs[op->root], bytes);
	} else {
		for (uint32_t i = 0; i < n_ranks; i++)
			memcpy(out + i * bytes,
				inputs[i] + (op->coll == RX_ALL_TO_ALL ? r * bytes : 0), bytes);
	}
}

static void describe(const struct op *op)
{
	(void)fprintf(stderr,
		"%s %s %s %s, count %u, %u ranks, %u blocks of %u threads, in place %d, at +%u "
		"and +%u\n",
		rx_coll_name(op->coll), rx_dtype_name(op->dtype), rx_redop_name(op->redop),
		algorithms[op->algorithm], op->count, n_ranks, op->n_blocks, op->n_threads,
		op->in_place, op->offset[0], op->offset[1]);
}

static uint32_t local_ranks(void)
{
	uint32_t all = 0;

	for (uint32_t u = 0; u < n_units; u++)
		all |= units[u].local;
	return all;
}

static uint8_t *make_inputs(const struct op *op, uint32_t r)
{
	struct rx_extent extent = extent_of(op, r);
	uint8_t *input = NULL;

	input = calloc(1, extent.send * rx_dtype_size(op->dtype) + 1);
	oracle_fill(input, op->dtype, 0, extent.send, r, op->seed,
		op->seed & 1 ? ORACLE_WILD : ORACLE_NORMAL);
	return input;
}

static void put_inputs(const struct op *op, uint8_t *const *inputs)
{
	for (uint32_t r = 0; r < n_ranks; r++) {
		struct rx_extent extent = extent_of(op, r);

		if (!(local_ranks() >> r & 1))
			continue;
		CU(cuMemsetD8(buffers[r][0], FILLER, buffer_bytes));
		CU(cuMemsetD8(buffers[r][1], FILLER, buffer_bytes));
		if (extent.send)
			CU(cuMemcpyHtoD(send_at(op, r, &extent), inputs[r],
				extent.send * rx_dtype_size(op->dtype)));
	}
	CU(cuCtxSynchronize());
}

/* What rank @r has around its result and in it. */
static void check_rank(const struct op *op, uint32_t r, uint8_t *const *inputs)
{
	static uint8_t *whole;
	struct rx_extent extent = extent_of(op, r);
	CUdeviceptr at = 0;
	uint8_t *want = NULL;
	size_t bytes = 0;

	bytes = extent.recv * rx_dtype_size(op->dtype);
	at = recv_at(op, r, &extent);
	whole = whole ? whole : malloc(buffer_bytes);
	want = malloc(bytes + 2 * GUARD);
	memset(want, FILLER, bytes + 2 * GUARD);
	if (bytes)
		expect(op, r, inputs, want + GUARD);
	CU(cuMemcpyDtoH(whole, at - GUARD, bytes + 2 * GUARD));
	for (size_t i = 0; i < bytes + 2 * GUARD; i++) {
		char text[80];
		bool around = i < GUARD || i >= GUARD + bytes;

		if (whole[i] == want[i] || (around && op->in_place))
			continue;
		(void)snprintf(text, sizeof(text), "rank %u, byte %zu of %zu: %02x, expected %02x",
			r, i - GUARD, bytes, whole[i], want[i]);
		describe(op);
		die("wrong", text);
	}
	free(want);
}

static void run_checked(const struct op *op)
{
	static struct prepared p;
	uint8_t *inputs[MOST_RANKS];

	for (uint32_t r = 0; r < n_ranks; r++)
		inputs[r] = make_inputs(op, r);
	put_inputs(op, inputs);
	prepare(&p, op);
	meet();
	for (uint32_t u = 0; u < n_units; u++)
		launch(&p, u);
	finish();
	for (uint32_t r = 0; r < n_ranks; r++) {
		if (local_ranks() >> r & 1)
			check_rank(op, r, inputs);
	}
	for (uint32_t r = 0; r < n_ranks; r++)
		free(inputs[r]);
}

static uint8_t any_algorithm(const struct op *op)
{
	for (;;) {
		uint32_t algorithm = pick(RX_INL_ALGORITHM_N);

		if ((algorithm != RX_INL_WORDS || op->redop != RX_PREMUL_SUM) &&
			(algorithm != RX_INL_TWO_SHOT || op->coll == RX_ALL_REDUCE))
			return (uint8_t)algorithm;
	}
}

static struct op any_op(uint8_t coll, uint8_t dtype, uint8_t redop)
{
	static const uint32_t counts[] = {0, 1, 3, 17, 64, 255, 1000, 4096, 10001, 33333, 100000};
	struct op op = {.coll = coll, .dtype = dtype, .redop = redop, .seed = pick(1000000)};
	uint32_t width = rx_dtype_size(dtype);

	op.algorithm = any_algorithm(&op);
	op.count = counts[pick(RX_ARRAY_SIZE(counts))];
	if (op.count * n_ranks > MOST_CHECKED)
		op.count = MOST_CHECKED / n_ranks - 1;
	op.root = coll == RX_BROADCAST ? pick(n_ranks) : 0;
	op.n_blocks = 1 + pick(pick(2) ? 16 : 3);
	op.n_threads = 1 + pick(RX_INL_MAX_THREADS);
	op.in_place = pick(3) == 0;
	for (uint32_t k = 0; k < 2; k++)
		op.offset[k] = 256 + pick(2) * pick(16) * width;
	if (pick(2)) {
		struct rx_inl_plan plan =
			rx_inl_plan(coll, redop, op.count * width, n_ranks, RX_INL_MAX_BLOCKS / 2);

		op.algorithm = (uint8_t)plan.algorithm;
		op.n_blocks = plan.n_blocks;
		op.n_threads = plan.n_threads;
	}
	return op;
}

static uint32_t check_all(void)
{
	static const uint8_t colls[] = {
		RX_ALL_REDUCE, RX_REDUCE_SCATTER, RX_ALL_GATHER, RX_ALL_TO_ALL, RX_BROADCAST};
	uint32_t n = 0;

	for (uint32_t c = 0; c < RX_ARRAY_SIZE(colls); c++) {
		for (uint8_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
			for (uint8_t k = 0; k < RX_REDOP_N; k++) {
				struct op op =
					any_op(colls[c], dtype, rx_coll_reduces(colls[c]) ? k : 0);

				run_checked(&op);
				n++;
			}
		}
	}
	return n;
}

/* ---- times ---- */

/* A graph of operations one behind the other, for each unit. */
static void record(struct prepared *p)
{
	for (uint32_t u = 0; u < n_units; u++) {
		CUgraph graph = NULL;

		CU(cuStreamBeginCapture(units[u].stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		for (uint32_t i = 0; i < GRAPH_OPS; i++)
			launch(p, u);
		CU(cuStreamEndCapture(units[u].stream, &graph));
		CU(cuGraphInstantiate(&units[u].graph, graph, 0));
		CU(cuGraphDestroy(graph));
		CU(cuGraphUpload(units[u].graph, units[u].stream));
	}
	finish();
}

static void forget(void)
{
	for (uint32_t u = 0; u < n_units; u++)
		CU(cuGraphExecDestroy(units[u].graph));
}

/* Microseconds for an operation, by the events of the slowest unit. */
static double measure_once(struct prepared *p, bool graphs, uint32_t n)
{
	double most = 0;

	meet();
	for (uint32_t u = 0; u < n_units; u++)
		CU(cuEventRecord(units[u].first, units[u].stream));
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t u = 0; u < n_units; u++) {
			if (graphs)
				CU(cuGraphLaunch(units[u].graph, units[u].stream));
			else
				launch(p, u);
		}
	}
	for (uint32_t u = 0; u < n_units; u++)
		CU(cuEventRecord(units[u].last, units[u].stream));
	finish();
	for (uint32_t u = 0; u < n_units; u++) {
		float ms = 0;

		CU(cuEventElapsedTime(&ms, units[u].first, units[u].last));
		most = (double)ms > most ? (double)ms : most;
	}
	return most * 1e3 / (graphs ? n * GRAPH_OPS : n);
}

static double measure(struct prepared *p, bool graphs, uint32_t n, uint32_t times)
{
	double each[MOST_TIMES];

	(void)measure_once(p, graphs, n);
	for (uint32_t i = 0; i < times; i++)
		each[i] = measure_once(p, graphs, n);
	return slowest(median(each, times));
}

/* Microseconds of the host for a launch. */
static double host_cost(struct prepared *p)
{
	double each[MOST_TIMES];

	for (uint32_t i = 0; i < MOST_TIMES; i++) {
		double start = 0;

		meet();
		start = now_us();
		for (uint32_t k = 0; k < 16; k++) {
			for (uint32_t u = 0; u < n_units; u++)
				launch(p, u);
		}
		each[i] = (now_us() - start) / 16;
		finish();
	}
	return slowest(median(each, MOST_TIMES));
}

static struct op planned(uint8_t dtype, uint32_t bytes, uint32_t max_blocks)
{
	struct rx_inl_plan plan = rx_inl_plan(RX_ALL_REDUCE, RX_SUM, bytes, n_ranks, max_blocks);
	struct op op = {.coll = RX_ALL_REDUCE,
		.dtype = dtype,
		.redop = RX_SUM,
		.count = bytes / rx_dtype_size(dtype),
		.offset = {256, 256},
		.algorithm = (uint8_t)plan.algorithm,
		.n_blocks = plan.n_blocks,
		.n_threads = plan.n_threads};

	return op;
}

static const uint32_t sizes[] = {1u << 10, 16u << 10, 128u << 10, 512u << 10};

/* Blocks of all ranks that fit the device at the same time. */
static uint32_t most_blocks(void)
{
	return n_ranks > 4 ? 16 : RX_INL_MAX_BLOCKS;
}

static void times_all(const char *how)
{
	static const uint8_t dtypes[] = {RX_BFLOAT16, RX_FLOAT32};

	for (uint32_t d = 0; d < RX_ARRAY_SIZE(dtypes); d++) {
		for (uint32_t s = 0; s < RX_ARRAY_SIZE(sizes); s++) {
			struct op op = planned(dtypes[d], sizes[s], most_blocks());
			struct prepared p;
			double queued = 0;
			double replayed = 0;
			double host = 0;

			run_checked(&op);
			prepare(&p, &op);
			queued = measure(&p, false, QUEUED, 31);
			record(&p);
			replayed = measure(&p, true, REPLAYS, 31);
			forget();
			host = host_cost(&p);
			if (proc != 0)
				continue;
			(void)printf(
				"| %u | %s | %s | %u KiB | %s, %u x %u | %.1f | %.1f | %.1f |\n",
				n_ranks, how, rx_dtype_name(op.dtype), sizes[s] >> 10,
				algorithms[op.algorithm], op.n_blocks, op.n_threads, queued,
				replayed, host);
			(void)fflush(stdout);
		}
	}
}

static double try_plan(struct op *op)
{
	struct prepared p;
	double us = 0;

	prepare(&p, op);
	record(&p);
	us = measure(&p, true, 4, 5);
	forget();
	return us;
}

static void sweep_size(uint8_t dtype, uint32_t bytes)
{
	struct op op = planned(dtype, bytes, most_blocks());
	double plan = try_plan(&op);

	if (proc == 0)
		(void)printf("%u ranks, %s, %u KiB: plan %s %u x %u %.2f us\n", n_ranks,
			rx_dtype_name(dtype), bytes >> 10, algorithms[op.algorithm], op.n_blocks,
			op.n_threads, plan);
	for (uint8_t a = 0; a < RX_INL_ALGORITHM_N; a++) {
		if (a == RX_INL_TWO_SHOT && n_ranks == 2)
			continue;
		op.algorithm = a;
		for (op.n_threads = 128; op.n_threads <= 512; op.n_threads *= 2) {
			char line[256] = "";
			size_t at = 0;

			for (op.n_blocks = 1; op.n_blocks <= most_blocks(); op.n_blocks *= 2) {
				if (op.n_blocks > 1 && bytes / op.n_blocks < 512)
					break;
				at += (size_t)snprintf(
					line + at, sizeof(line) - at, " %7.2f", try_plan(&op));
			}
			if (proc == 0)
				(void)printf("    %-9s %3u threads, 1 2 4 .. blocks:%s\n",
					algorithms[a], op.n_threads, line);
			(void)fflush(stdout);
		}
	}
}

/* ---- processes ---- */

static void open_device(const char *code)
{
	CUcontext context = NULL;

	CU(cuInit(0));
	CU(cuDevicePrimaryCtxRetain(&context, 0));
	CU(cuCtxSetCurrent(context));
	if (code)
		CU(cuModuleLoad(&module, code));
}

static void open_ranks(uint32_t first, uint32_t n, bool fused)
{
	uint32_t all = 0;

	CU(cuMemHostRegister(shared, sizeof(*shared), CU_MEMHOSTREGISTER_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&lines, shared, 0));
	buffer_bytes = (size_t)MOST_CHECKED * 8 + 4096;
	for (uint32_t r = first; r < first + n; r++) {
		all |= 1u << r;
		for (uint32_t k = 0; k < 2; k++)
			CU(cuMemAlloc(&buffers[r][k], buffer_bytes));
	}
	n_units = fused ? 1 : n;
	for (uint32_t u = 0; u < n_units; u++) {
		units[u].local = fused ? all : 1u << (first + u);
		CU(cuStreamCreate(&units[u].stream, CU_STREAM_NON_BLOCKING));
		CU(cuEventCreate(&units[u].first, CU_EVENT_DEFAULT));
		CU(cuEventCreate(&units[u].last, CU_EVENT_DEFAULT));
	}
}

static CUdeviceptr make_slab(void)
{
	CUdeviceptr at = 0;
	size_t bytes = n_ranks * RX_INL_MEM_BYTES(SLOT_BYTES);

	CU(cuMemAlloc(&at, bytes));
	CU(cuMemsetD8(at, 0, bytes));
	CU(cuCtxSynchronize());
	return at;
}

/* Has nothing to do with the collectives: as the daemon, it only owns. */
static void own_memory(void)
{
	open_device(NULL);
	CU(cuIpcGetMemHandle(&shared->memory, make_slab()));
	atomic_store(&shared->is_made, 1);
	for (;;)
		(void)pause();
}

static void work(const char *what, const char *how)
{
	if (strcmp(what, "check") == 0) {
		uint32_t n = check_all();

		if (proc == 0)
			(void)printf(
				"%u ranks, %s: %u operations, bits as expected\n", n_ranks, how, n);
	} else if (strcmp(what, "times") == 0) {
		times_all(how);
	} else {
		for (uint32_t s = 0; s < RX_ARRAY_SIZE(sizes); s++)
			sweep_size(RX_BFLOAT16, sizes[s]);
	}
	(void)fflush(stdout);
}

static void be_rank(const char *code, const char *what)
{
	open_device(code);
	while (!atomic_load(&shared->is_made))
		(void)usleep(1000);
	CU(cuIpcOpenMemHandle(&slab, shared->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	open_ranks(proc, 1, false);
	work(what, "processes");
	_exit(0);
}

/* All ranks in one process, with a launch for each or with one for all. */
static void be_all(const char *code, const char *what, bool fused)
{
	n_procs = 1;
	open_device(code);
	slab = make_slab();
	open_ranks(0, n_ranks, fused);
	work(what, fused ? "one launch" : "one process");
	_exit(0);
}

static void begin_shared(void)
{
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap", "no memory");
	shared->page.wait_ticks = PATIENCE_NS;
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork", "no process");
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* The processes end well, or all are ended. */
static bool await(const pid_t *pids, uint32_t n, pid_t owner)
{
	bool good = true;

	for (uint32_t i = 0; i < n; i++) {
		int status = 0;
		pid_t pid = wait(&status);

		if (pid == owner || status != 0) {
			good = false;
			for (uint32_t k = 0; k < n; k++)
				(void)kill(pids[k], SIGKILL);
		}
	}
	return good;
}

static bool run_processes(const char *code, const char *what)
{
	pid_t pids[MOST_RANKS];
	pid_t owner = 0;
	bool good = false;

	begin_shared();
	n_procs = n_ranks;
	owner = start();
	if (owner == 0)
		own_memory();
	for (proc = 0; proc < n_procs; proc++) {
		pids[proc] = start();
		if (pids[proc] == 0)
			be_rank(code, what);
	}
	good = await(pids, n_ranks, owner);
	(void)kill(owner, SIGKILL);
	(void)waitpid(owner, NULL, 0);
	return good;
}

static bool run_alone(const char *code, const char *what, bool fused)
{
	pid_t pid = 0;

	begin_shared();
	proc = 0;
	pid = start();
	if (pid == 0)
		be_all(code, what, fused);
	return await(&pid, 1, -1);
}

int main(int argc, char **argv)
{
	bool good = false;

	n_ranks = argc == 4 ? (uint32_t)atoi(argv[3]) : 0;
	if (n_ranks < 1 || n_ranks > MOST_RANKS ||
		(strcmp(argv[2], "check") != 0 && strcmp(argv[2], "times") != 0 &&
			strcmp(argv[2], "sweep") != 0)) {
		(void)fprintf(stderr, "usage: inline CODE check|times|sweep RANKS (1 .. %u)\n",
			MOST_RANKS);
		return 2;
	}
	/* Launches that wait for each other need a hardware queue each. */
	(void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	/* No kernel is loaded while another waits for it. */
	(void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	(void)alarm(DEADLINE_S);
	good = run_processes(argv[1], argv[2]);
	if (good && strcmp(argv[2], "sweep") != 0)
		good = run_alone(argv[1], argv[2], false) && run_alone(argv[1], argv[2], true);
	return good ? 0 : 1;
}
