/* SPDX-License-Identifier: MIT */
/*
 * The low-precision kernels against what the host does, bit for bit and block for block counted:
 * collectives, algorithms, types, with ranks shared out among launches in several ways, any count
 * and alignment, in place, slots that are smaller than the message, two operations one behind the
 * other; and the golden vectors.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../kernels/host/host_coll.h"
#include "../../kernels/host/host_lowprec.h"
#include "../oracle/oracle.h"
#include "../oracle/oracle_lowprec.h"
#include "../unit/mxfp8_golden.h"
#include "gpu_cpu.h"

#define MAX_RANKS     8u
#define MAX_COUNT     1200u
#define MX_THREADS    8u /* as many as the CPU takes, RX_DEV_MX_THREADS on a GPU */
#define N_OPS         2u
#define GUARD         64u
#define FILLER        0xa5
#define SLOT_BYTES    2048u /* RX_DEV_SLOT_MIN(8): the longer messages take several rounds */
#define N_BLOCKS      3u    /* at most */
#define WAIT_NS       60000000000ull
#define SCRATCH_BYTES HOST_LOWPREC_SCRATCH_MIN

/* What the variable collectives are told. */
struct tables {
	uint64_t send_counts[MAX_RANKS];
	uint64_t send_displs[MAX_RANKS];
	uint64_t recv_counts[MAX_RANKS];
	uint64_t recv_displs[MAX_RANKS];
};

/* One operation: buffers as they were before and have to be afterwards. */
struct op {
	struct rx_dev_args args; /* of launch 0 */
	uint64_t send_elems[MAX_RANKS];
	uint64_t recv_elems[MAX_RANKS];
	uint8_t *room[MAX_RANKS][2]; /* send, recv */
	size_t room_bytes[MAX_RANKS][2];
	uint8_t *inputs[MAX_RANKS];
	uint8_t *expected[MAX_RANKS]; /* like the room that recv is in */
	struct rx_dev_block blocks[MAX_RANKS * MAX_RANKS];
	struct tables tables[MAX_RANKS];
	struct rx_mx_stats stats;
	bool in_place;
};

struct launcher {
	uint32_t launch;
	uint32_t status;
	uint64_t done[N_OPS][MAX_RANKS];
	struct rx_dev_mx_counts counts[N_OPS][N_BLOCKS];
};

static struct op ops[N_OPS];
static struct launcher launchers[MAX_RANKS];
static struct rx_dev_sync *syncs[MAX_RANKS];
static uint8_t *slots[MAX_RANKS];
static uint64_t local_of[MAX_RANKS]; /* by launch */
static uint32_t n_launches;
static uint32_t n_ranks;
static uint32_t n_blocks;
static uint32_t n_threads;
static uint64_t random_state = 1;

static uint32_t pick(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % below;
}

static void *get(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);

	assert_non_null(p);
	memset(p, 0, bytes);
	return p;
}

/* ---- preparing ---- */

/* Blocks of any size; between those that are received, gaps, which are not the same everywhere. */
static void make_blocks(struct op *op)
{
	struct rx_dev_args *a = &op->args;
	uint64_t counts[MAX_RANKS];
	uint64_t max = a->count;

	a->count = 0;
	a->blocks = op->blocks;
	for (uint32_t r = 0; r < n_ranks; r++)
		counts[r] = pick(3) ? pick((uint32_t)max + 1) : 0;
	for (uint32_t from = 0; from < n_ranks; from++) {
		for (uint32_t to = 0; to < n_ranks; to++) {
			struct rx_dev_block *block = &op->blocks[from * n_ranks + to];

			block->count = pick(3) ? pick((uint32_t)max + 1) : 0;
			block->send_at = op->send_elems[from];
			block->recv_at = op->recv_elems[to] + (to + from) % 3;
			if (a->coll == RX_ALL_GATHER_V) {
				block->count = counts[from];
				block->send_at = 0;
			} else if (a->coll == RX_REDUCE_SCATTER_V) {
				block->count = counts[to];
				block->recv_at = 0;
			}
			op->send_elems[from] = block->send_at + block->count;
			op->recv_elems[to] = block->recv_at + block->count;
			a->count = rx_max_u64(a->count, block->count);
			op->tables[from].send_counts[to] = block->count;
			op->tables[from].send_displs[to] = block->send_at;
			op->tables[to].recv_counts[from] = block->count;
			op->tables[to].recv_displs[from] = block->recv_at;
		}
	}
}

static void set_extents(struct op *op)
{
	memset(op->send_elems, 0, sizeof(op->send_elems));
	memset(op->recv_elems, 0, sizeof(op->recv_elems));
	if (rx_coll_is_v(op->args.coll)) {
		make_blocks(op);
		return;
	}
	for (uint32_t r = 0; r < n_ranks; r++) {
		struct rx_extent extent;

		assert_true(rx_coll_extent(
			op->args.coll, op->args.count, n_ranks, r, op->args.root, &extent));
		op->send_elems[r] = extent.send;
		op->recv_elems[r] = extent.recv;
	}
}

/* Magnitudes of all kinds: whole blocks far up or down, wild ones, zeros. */
static void fill(struct op *op, uint32_t r)
{
	uint32_t size = op->args.elem_bytes;
	uint32_t how = pick(4);

	oracle_fill(op->inputs[r], op->args.dtype, 0, op->send_elems[r], r, pick(1000),
		how == 0 ? ORACLE_WILD : ORACLE_NORMAL);
	if (how < 2)
		return;
	for (uint64_t at = 0; at < op->send_elems[r]; at += 32) {
		uint32_t kind = pick(4);

		for (uint64_t i = at; i < op->send_elems[r] && i < at + 32 && kind > 0; i++) {
			uint8_t *byte = op->inputs[r] + i * size + size - 1;

			/* The upper bits of the exponent: the same for the block, or none. */
			if (kind == 1)
				memset(op->inputs[r] + i * size, 0, size);
			else if (kind == 2)
				*byte = (uint8_t)((*byte & 0x80) | 0x7a);
			else
				*byte &= 0x83;
		}
	}
}

/* Puts rank @r's buffers somewhere, its send filled, all else filler. */
static void place(struct op *op, uint32_t r, uint32_t alignment)
{
	struct rx_dev_args *a = &op->args;
	uint32_t size = a->elem_bytes;
	uint32_t off[2] = {0, 0};
	uint8_t *at[2];
	struct rx_extent extent = {0};
	bool in_place = op->in_place && !rx_coll_is_v(a->coll) &&
			rx_coll_extent(a->coll, a->count, n_ranks, r, a->root, &extent) &&
			extent.in_place_ok && extent.send && extent.recv;

	if (alignment > 0) {
		off[0] = (r * 5 + 1) % 16 * size;
		off[1] = (r * 3 + 2) % 16 * size;
	}
	for (int k = 0; k < 2; k++) {
		uint64_t elems = k == 0 ? op->send_elems[r] : op->recv_elems[r];

		op->room_bytes[r][k] = elems * size + 2 * GUARD + off[k];
		op->room[r][k] = get(op->room_bytes[r][k]);
		memset(op->room[r][k], FILLER, op->room_bytes[r][k]);
		at[k] = op->room[r][k] + GUARD + off[k];
	}
	if (in_place && extent.send <= extent.recv)
		at[0] = at[1] + extent.send_in_recv * size;
	else if (in_place)
		at[1] = at[0] + extent.recv_in_send * size;
	op->inputs[r] = get(op->send_elems[r] * size);
	fill(op, r);
	memcpy(at[0], op->inputs[r], op->send_elems[r] * size);
	a->send[r] = op->send_elems[r] ? at[0] : NULL;
	a->recv[r] = op->recv_elems[r] ? at[1] : NULL;
}

/* Room of rank @r in which its recv lies. */
static int recv_room(const struct op *op, uint32_t r)
{
	const uint8_t *at = op->args.recv[r];
	const uint8_t *room = op->room[r][0];

	return at >= room && at < room + op->room_bytes[r][0] ? 0 : 1;
}

static void expect(struct op *op)
{
	static uint8_t scratch[SCRATCH_BYTES] __attribute__((aligned(64)));
	struct rx_counts counts[MAX_RANKS];
	const void *send[MAX_RANKS];
	void *recv[MAX_RANKS];
	struct host_lowprec lowprec = {.scratch = scratch,
		.scratch_bytes = sizeof(scratch),
		.bf16 = op->args.flags & RX_DEV_SUMS_BF16};
	struct host_coll_args args = {.coll = op->args.coll,
		.dtype = op->args.dtype,
		.op = op->args.op,
		.n_ranks = n_ranks,
		.count = op->args.count,
		.counts = counts,
		.send = send,
		.recv = recv,
		.lowprec = &lowprec};

	for (uint32_t r = 0; r < n_ranks; r++) {
		int k = recv_room(op, r);

		op->expected[r] = get(op->room_bytes[r][k]);
		memcpy(op->expected[r], op->room[r][k], op->room_bytes[r][k]);
		send[r] = op->inputs[r];
		recv[r] = op->expected[r];
		if (op->args.recv[r])
			recv[r] = op->expected[r] +
				  ((const uint8_t *)op->args.recv[r] - op->room[r][k]);
		counts[r] = (struct rx_counts){op->tables[r].send_counts, op->tables[r].send_displs,
			op->tables[r].recv_counts, op->tables[r].recv_displs};
	}
	assert_int_equal(host_coll_run(&args), 0);
	op->stats = lowprec.work.stats;
}

static void prepare(struct op *op, uint32_t alignment)
{
	struct rx_dev_args *a = &op->args;

	a->abi = RX_DEV_ABI;
	a->n_ranks = n_ranks;
	a->n_launches = n_launches;
	a->n_avg = n_ranks;
	a->elem_bytes = rx_dtype_size(a->dtype);
	a->slot_bytes = SLOT_BYTES;
	a->wait_ticks = WAIT_NS;
	for (uint32_t r = 0; r < n_ranks; r++) {
		a->slot[r] = slots[r];
		a->sync[r] = syncs[r];
	}
	set_extents(op);
	for (uint32_t r = 0; r < n_ranks; r++)
		place(op, r, alignment);
	expect(op);
}

/* Ranks to launches: all to one, one each, or mixed. */
static void share_out(uint32_t how)
{
	n_launches = how == 0 ? 1 : how == 1 ? n_ranks : (n_ranks + 1) / 2;
	memset(local_of, 0, sizeof(local_of));
	for (uint32_t r = 0; r < n_ranks; r++)
		local_of[r % n_launches] |= 1ull << r;
	for (uint32_t r = 0; r < MAX_RANKS; r++)
		memset(syncs[r], 0, sizeof(struct rx_dev_sync));
}

/* ---- running ---- */

static gpu_cpu_fn kernel_for(uint32_t dtype)
{
	const char *name = dtype == RX_FLOAT32   ? "rx_mx_f32"
			   : dtype == RX_FLOAT16 ? "rx_mx_f16"
						 : "rx_mx_bf16";

	return gpu_cpu_find(name);
}

/* What a stream does: the operations, one behind the other. */
static void *run_launch(void *arg)
{
	struct launcher *l = arg;

	for (uint32_t i = 0; i < N_OPS; i++) {
		struct rx_dev_args args = ops[i].args;

		args.launch = l->launch;
		args.local = local_of[l->launch];
		args.status = &l->status;
		args.done_value = 100 + i;
		args.counts = l->counts[i];
		for (uint32_t r = 0; r < n_ranks; r++)
			args.done[r] = &l->done[i][r];
		gpu_cpu_run(kernel_for(args.dtype), &args, n_blocks, n_threads);
	}
	return NULL;
}

static void run(void)
{
	pthread_t threads[MAX_RANKS];

	memset(launchers, 0, sizeof(launchers));
	for (uint32_t l = 0; l < n_launches; l++) {
		launchers[l].launch = l;
		memset(launchers[l].counts, FILLER, sizeof(launchers[l].counts));
		assert_int_equal(pthread_create(&threads[l], NULL, run_launch, &launchers[l]), 0);
	}
	for (uint32_t l = 0; l < n_launches; l++)
		assert_int_equal(pthread_join(threads[l], NULL), 0);
	for (uint32_t l = 0; l < n_launches; l++) {
		assert_int_equal(launchers[l].status, RX_DEV_OK);
		for (uint32_t r = 0; r < n_ranks; r++) {
			for (uint32_t i = 0; i < N_OPS; i++)
				assert_int_equal(launchers[l].done[i][r],
					local_of[l] >> r & 1 ? 100 + i : 0);
		}
	}
}

static void describe(const struct op *op, uint32_t rank)
{
	const struct rx_dev_args *a = &op->args;

	print_error("%s %s %s algorithm=%u flags=%u count=%llu ranks=%u launches=%u blocks=%u "
		    "threads=%u in_place=%d rank=%u\n",
		rx_coll_name(a->coll), rx_dtype_name(a->dtype), rx_redop_name(a->op), a->algorithm,
		a->flags, (unsigned long long)a->count, n_ranks, n_launches, n_blocks, n_threads,
		op->in_place, rank);
}

static void check_counts(const struct op *op, uint32_t i)
{
	struct rx_dev_mx_counts sum = {0};

	for (uint32_t l = 0; l < n_launches; l++) {
		for (uint32_t b = 0; b < n_blocks; b++) {
			sum.n_blocks += launchers[l].counts[i][b].n_blocks;
			sum.n_saturated += launchers[l].counts[i][b].n_saturated;
			sum.n_flushed += launchers[l].counts[i][b].n_flushed;
			sum.n_special += launchers[l].counts[i][b].n_special;
		}
	}
	if (sum.n_blocks != op->stats.n_blocks || sum.n_saturated != op->stats.n_saturated ||
		sum.n_flushed != op->stats.n_flushed || sum.n_special != op->stats.n_special) {
		describe(op, 0);
		print_error("%llu %llu %llu %llu, expected %llu %llu %llu %llu\n",
			(unsigned long long)sum.n_blocks, (unsigned long long)sum.n_saturated,
			(unsigned long long)sum.n_flushed, (unsigned long long)sum.n_special,
			(unsigned long long)op->stats.n_blocks,
			(unsigned long long)op->stats.n_saturated,
			(unsigned long long)op->stats.n_flushed,
			(unsigned long long)op->stats.n_special);
		fail();
	}
}

static void check(const struct op *op)
{
	for (uint32_t r = 0; r < n_ranks; r++) {
		int k = recv_room(op, r);

		for (size_t i = 0; i < op->room_bytes[r][k]; i++) {
			if (op->room[r][k][i] == op->expected[r][i])
				continue;
			describe(op, r);
			fail_msg("byte %zu of %zu: %02x, expected %02x", i, op->room_bytes[r][k],
				op->room[r][k][i], op->expected[r][i]);
		}
	}
}

static void clear(struct op *op)
{
	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		free(op->room[r][0]);
		free(op->room[r][1]);
		free(op->inputs[r]);
		free(op->expected[r]);
	}
}

/* Two operations of one kind, of random shape. */
static void try_kind(uint8_t coll, uint8_t dtype, uint8_t redop, uint8_t algorithm, uint32_t flags)
{
	static const uint32_t counts[] = {
		0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 257, 700, MAX_COUNT};

	n_ranks = 1 + pick(pick(3) ? 4 : MAX_RANKS);
	n_blocks = 1 + pick(N_BLOCKS);
	n_threads = MX_THREADS * (1 + pick(2));
	share_out(pick(3));
	for (uint32_t i = 0; i < N_OPS; i++) {
		struct op *op = &ops[i];

		memset(op, 0, sizeof(*op));
		op->args.coll = coll;
		op->args.dtype = dtype;
		op->args.op = redop;
		op->args.algorithm = algorithm;
		op->args.flags = flags;
		op->args.count = counts[pick(RX_ARRAY_SIZE(counts))];
		op->in_place = pick(2);
		prepare(op, pick(2));
	}
	run();
	for (uint32_t i = 0; i < N_OPS; i++) {
		check(&ops[i]);
		check_counts(&ops[i], i);
		clear(&ops[i]);
	}
}

static void try_algorithms(uint8_t coll, uint8_t dtype, uint8_t redop)
{
	for (uint8_t algorithm = 0; algorithm < RX_DEV_ALGORITHM_N; algorithm++) {
		for (uint32_t push = 0; push <= RX_DEV_PUSH; push += RX_DEV_PUSH) {
			uint32_t flags = push | RX_DEV_EXIT | (pick(2) ? RX_DEV_ENTRY : 0) |
					 (pick(2) ? RX_DEV_SUMS_BF16 : 0);

			if (algorithm != RX_DEV_TREE || coll == RX_ALL_REDUCE)
				try_kind(coll, dtype, redop, algorithm, flags);
		}
	}
}

static int setup(void **state)
{
	(void)state;
	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		syncs[r] = get(sizeof(struct rx_dev_sync));
		slots[r] = get(RX_DEV_SLOT_TOTAL(SLOT_BYTES));
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		free(syncs[r]);
		free(slots[r]);
	}
	return 0;
}

static const uint8_t dtypes[] = {RX_FLOAT32, RX_BFLOAT16, RX_FLOAT16};

static void test_reductions(void **state)
{
	static const uint8_t colls[] = {RX_ALL_REDUCE, RX_REDUCE_SCATTER, RX_REDUCE_SCATTER_V};
	static const uint8_t redops[] = {RX_SUM, RX_AVG};
	uint32_t n_turns = getenv("RCCLX_LONG") ? 20 : 1;

	(void)state;
	for (uint32_t i = 0; i < n_turns * 18; i++)
		try_algorithms(colls[i / 6 % 3], dtypes[i % 3], redops[i / 3 % 2]);
}

static void test_copies(void **state)
{
	static const uint8_t colls[] = {
		RX_ALL_GATHER, RX_ALL_TO_ALL, RX_ALL_GATHER_V, RX_ALL_TO_ALL_V};
	uint32_t n_turns = getenv("RCCLX_LONG") ? 20 : 1;

	(void)state;
	for (uint32_t i = 0; i < n_turns * 12; i++)
		try_algorithms(colls[i / 3 % 4], dtypes[i % 3], 0);
}

/* ---- against what shares no code with kernels/ ---- */

static struct rx_dev_args plain_args(uint8_t coll, uint8_t dtype, uint8_t algorithm, uint64_t count)
{
	struct rx_dev_args args = {
		.abi = RX_DEV_ABI,
		.coll = coll,
		.dtype = dtype,
		.algorithm = algorithm,
		.n_ranks = n_ranks,
		.n_launches = 1,
		.n_avg = n_ranks,
		.elem_bytes = rx_dtype_size(dtype),
		.count = count,
		.local = (1ull << n_ranks) - 1,
		.slot_bytes = SLOT_BYTES,
	};

	share_out(0);
	for (uint32_t r = 0; r < n_ranks; r++)
		args.slot[r] = slots[r];
	args.sync[0] = syncs[0];
	return args;
}

/* Alone, through a slot, in which its codes then are. */
static void check_golden(const struct mx_golden *golden)
{
	uint32_t piece = SLOT_BYTES / (RX_MX_BLOCK + 1) * RX_MX_BLOCK;
	uint8_t output[sizeof(golden->output)] = {0};
	const uint8_t *lane = slots[0] + SLOT_BYTES; /* the second region: barriers start with 1 */
	struct rx_dev_args args;

	n_ranks = 1;
	args = plain_args(RX_ALL_GATHER, (uint8_t)golden->dtype, RX_DEV_FLAT, golden->n);
	args.send[0] = golden->input;
	args.recv[0] = output;
	gpu_cpu_run(kernel_for(golden->dtype), &args, 1, MX_THREADS);
	assert_memory_equal(lane, golden->elems, golden->n);
	assert_int_equal(lane[piece], golden->scale);
	assert_memory_equal(output, golden->output, sizeof(output));
	/* And straight. */
	memset(output, 0, sizeof(output));
	args.algorithm = RX_DEV_DIRECT;
	gpu_cpu_run(kernel_for(golden->dtype), &args, 1, MX_THREADS);
	assert_memory_equal(output, golden->output, sizeof(output));
}

static void test_golden(void **state)
{
	(void)state;
	mx_golden_each(check_golden);
}

static void test_oracle(void **state)
{
	static uint8_t send[MAX_RANKS][MAX_COUNT * 4] __attribute__((aligned(16)));
	static uint8_t recv[MAX_COUNT * 4] __attribute__((aligned(16)));

	(void)state;
	for (uint32_t turn = 0; turn < 12; turn++) {
		uint8_t dtype = dtypes[turn % 3];
		uint32_t size = rx_dtype_size(dtype);
		struct rx_dev_args args;

		n_ranks = 2 + turn % 7;
		args = plain_args(RX_ALL_REDUCE, dtype, RX_DEV_DIRECT, 777);
		args.op = turn / 3 % 2 ? RX_AVG : RX_SUM;
		for (uint32_t r = 0; r < n_ranks; r++) {
			oracle_fill(send[r], dtype, 0, args.count, r, turn,
				turn / 6 ? ORACLE_WILD : ORACLE_NORMAL);
			args.send[r] = send[r];
			args.recv[r] = recv; /* all of them the same, as they may be */
		}
		gpu_cpu_run(kernel_for(dtype), &args, 2, 2 * MX_THREADS);
		for (uint32_t at = 0; at < args.count; at += ORACLE_BLOCK) {
			uint32_t n = (uint32_t)rx_min_u64(ORACLE_BLOCK, args.count - at);
			const void *src[MAX_RANKS];
			uint8_t expected[ORACLE_BLOCK * 4];

			for (uint32_t r = 0; r < n_ranks; r++)
				src[r] = send[r] + (size_t)at * size;
			oracle_lowprec_fold(ORACLE_FP8, dtype, args.op, n_ranks, src, n,
				ORACLE_GATHER_CODED, expected);
			assert_memory_equal(recv + (size_t)at * size, expected, (size_t)n * size);
		}
	}
}

/* ---- what it does not take ---- */

static void test_refused(void **state)
{
	struct rx_dev_args good;
	struct rx_dev_args args;
	uint32_t values[32] = {0};
	uint32_t status = 0;

	(void)state;
	n_ranks = 1;
	good = plain_args(RX_ALL_REDUCE, RX_FLOAT32, RX_DEV_DIRECT, 32);
	good.send[0] = good.recv[0] = values;
	good.status = &status;
	gpu_cpu_run(kernel_for(RX_FLOAT32), &good, 1, MX_THREADS);
	assert_int_equal(status, RX_DEV_OK);
	gpu_cpu_run(kernel_for(RX_FLOAT32), &good, 1, MX_THREADS / 2);
	assert_int_equal(status, RX_DEV_E_ARGS);
	args = good;
	args.op = RX_MAX;
	status = 0;
	gpu_cpu_run(kernel_for(RX_FLOAT32), &args, 1, MX_THREADS);
	assert_int_equal(status, RX_DEV_E_ARGS);
	args = good;
	args.coll = RX_BROADCAST;
	status = 0;
	gpu_cpu_run(kernel_for(RX_FLOAT32), &args, 1, MX_THREADS);
	assert_int_equal(status, RX_DEV_E_ARGS);
	status = 0;
	gpu_cpu_run(kernel_for(RX_FLOAT16), &good, 1, MX_THREADS);
	assert_int_equal(status, RX_DEV_E_ARGS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_oracle),
		cmocka_unit_test(test_reductions),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("gpu_mx", tests, setup, teardown);
}
