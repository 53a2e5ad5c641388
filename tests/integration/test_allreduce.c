/* SPDX-License-Identifier: MIT */
/*
 * The allreduce matrix against the oracle: types x operations x executors x memory x in place x
 * counts around every threshold x numbers of ranks.
 *
 * By default memory, placement and alignment take turns over the other dimensions; with
 * RCCLX_LONG=1 every combination runs.
 */
#include "harness.h"
#include "matrix.h"

#include "../../kernels/coll_plan.h"
#include "../../kernels/coll_types.h"
#include "../../shm/rx_fabric_abi.h"

#define SMALL_MAX   1000u
#define LARGE_BYTES ((3u << 20) + 64)

static const uint32_t executors[] = {RCCLX_EXECUTOR_INLINE, RCCLX_EXECUTOR_DAEMON};

/* ---- small counts, every element of every type and operation ---- */

static size_t small_counts(uint32_t size, uint64_t *counts)
{
	static const uint64_t fixed[] = {
		0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 500, SMALL_MAX};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		counts[n++] = fixed[i];
	for (uint64_t d = 0; d < 3; d++)
		counts[n++] = RX_ENTRY_PAYLOAD / size + d - 1;
	return n;
}

static int run_all_ways(struct matrix *m, uint64_t count, uint32_t turn)
{
	for (size_t e = 0; e < 2; e++) {
		for (uint32_t way = 0; way < 2 * MATRIX_MEMORY_N; way++) {
			struct matrix_case c = {.count = count,
				.executor = executors[e],
				.memory = way / 2,
				.in_place = way % 2 == 1,
				.misalign = (turn + way) % 8};

			/* The daemon takes longer: there, fewer. */
			if (!test_long() && (turn + way + (uint32_t)e) % (e == 0 ? 3 : 6) != 0)
				continue;
			RANK_DO(matrix_run(m, &c));
		}
	}
	return 0;
}

static int rank_small(struct rank_ctx *ctx)
{
	struct matrix m = {0};
	uint32_t turn = 0;

	RANK_DO(matrix_open(&m, ctx, SMALL_MAX * 8));
	for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
		uint64_t counts[32] = {0};
		size_t n_counts = small_counts(rx_dtype_size(dtype), counts);

		for (uint32_t op = 0; op < RX_REDOP_N; op++) {
			RANK_DO(matrix_prepare(&m, dtype, op, SMALL_MAX));
			for (size_t i = 0; i < n_counts; i++)
				RANK_DO(run_all_ways(&m, counts[i], turn++));
		}
	}
	return matrix_close(&m);
}

static void run_small(uint32_t n_ranks)
{
	struct node *node = node_start(NULL);

	harness_limit(test_long() ? 1200 : 60);
	world_run(node, n_ranks, rank_small, NULL);
	node_stop(node);
}

#define SMALL_TEST(n)                                                                              \
	static void test_small_##n(void **state)                                                   \
	{                                                                                          \
		(void)state;                                                                       \
		run_small(n);                                                                      \
	}

SMALL_TEST(1)
SMALL_TEST(2)
SMALL_TEST(3)
SMALL_TEST(4)
SMALL_TEST(5)
SMALL_TEST(6)
SMALL_TEST(7)
SMALL_TEST(8)

/* ---- thresholds and large counts ---- */

static size_t large_counts(uint32_t size, uint32_t n_ranks, uint64_t *counts)
{
	const struct rx_tuning_entry *tuning =
		rx_tuning_for(rx_tuning_default(), RX_ALL_REDUCE, n_ranks);
	const uint64_t borders[] = {tuning->flat_max / size, tuning->flat_max_shared / size,
		RX_FLAT_BYTES / size, RX_CHUNK_BYTES / size,
		(uint64_t)n_ranks * RX_CHUNK_BYTES / size, tuning->chunk / size};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(borders) / sizeof(borders[0]); i++)
		for (uint64_t d = 0; d < 3; d++)
			counts[n++] = borders[i] + d - 1;
	counts[n++] = (1u << 20) / size;
	counts[n++] = (3u << 20) / size + 1;
	return n;
}

static int run_both_executors(
	struct matrix *m, const struct matrix_case *c, uint32_t dtype, uint32_t op)
{
	struct rank_ctx *ctx = m->ctx;
	uint64_t hashes[2] = {0};

	m->shift++;
	for (size_t e = 0; e < 2; e++) {
		struct matrix_case copy = *c;

		copy.executor = executors[e];
		RANK_DO(matrix_run_large(m, &copy, dtype, op, &hashes[e]));
	}
	RANK_CHECK(ctx, hashes[0] == hashes[1], "%llu x %s %s: the executors give different bits",
		(unsigned long long)c->count, rx_dtype_name(dtype), rx_redop_name(op));
	return 0;
}

static int run_large_turn(
	struct matrix *m, uint64_t count, uint32_t dtype, uint32_t op, uint32_t turn)
{
	for (uint32_t way = 0; way < 2 * MATRIX_MEMORY_N; way++) {
		struct matrix_case c = {.count = count,
			.memory = way / 2,
			.in_place = way % 2 == 1,
			.misalign = turn % 8};

		if (test_long() || turn % (2 * MATRIX_MEMORY_N) == way)
			RANK_DO(run_both_executors(m, &c, dtype, op));
	}
	return 0;
}

static int rank_large(struct rank_ctx *ctx)
{
	struct matrix m = {0};
	uint32_t turn = 0;

	RANK_DO(matrix_open(&m, ctx, LARGE_BYTES));
	for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
		uint64_t counts[32] = {0};
		size_t n = large_counts(rx_dtype_size(dtype), ctx->n_ranks, counts);

		for (size_t i = 0; i < n; i++, turn++) {
			for (uint32_t op = 0; op < RX_REDOP_N; op++)
				if (test_long() || turn % RX_REDOP_N == op)
					RANK_DO(run_large_turn(
						&m, counts[i], dtype, op, turn + dtype));
		}
	}
	return matrix_close(&m);
}

static void run_large(uint32_t n_ranks)
{
	struct node *node = node_start(NULL);

	harness_limit(test_long() ? 3600 : 60);
	world_run(node, n_ranks, rank_large, NULL);
	node_stop(node);
}

static void test_large_2(void **state)
{
	(void)state;
	run_large(2);
}

static void test_large_3(void **state)
{
	(void)state;
	run_large(3);
}

static void test_large_8(void **state)
{
	(void)state;
	run_large(test_long() ? 8 : 5);
}

/* ---- many ranks ---- */

static int rank_many_ranks(struct rank_ctx *ctx)
{
	static const uint64_t counts[] = {0, 1, 24, 100, 1000};
	struct matrix m = {0};
	uint32_t turn = 0;

	RANK_DO(matrix_open(&m, ctx, SMALL_MAX * 8));
	for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
		uint32_t op = dtype % RX_REDOP_N;

		RANK_DO(matrix_prepare(&m, dtype, op, SMALL_MAX));
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++, turn++) {
			struct matrix_case c = {.count = counts[i],
				.executor = executors[turn % 2],
				.memory = turn % MATRIX_MEMORY_N,
				.in_place = turn % 4 < 2,
				.misalign = turn % 8};

			RANK_DO(matrix_run(&m, &c));
		}
	}
	return matrix_close(&m);
}

static void run_many_ranks(uint32_t n_ranks)
{
	struct node *node = node_start(NULL);

	harness_limit(60);
	world_run(node, n_ranks, rank_many_ranks, NULL);
	node_stop(node);
}

static void test_16_ranks(void **state)
{
	(void)state;
	run_many_ranks(16);
}

static void test_64_ranks(void **state)
{
	(void)state;
	run_many_ranks(64);
}

/* A large message on many ranks: several rounds of chunks, parts of different sizes. */
static int rank_many_large(struct rank_ctx *ctx)
{
	struct matrix m = {0};
	struct matrix_case c = {.count = 300001, .memory = MATRIX_REGISTERED};

	RANK_DO(matrix_open(&m, ctx, LARGE_BYTES));
	RANK_DO(run_both_executors(&m, &c, RX_FLOAT32, RX_SUM));
	c.memory = MATRIX_PRIVATE;
	RANK_DO(run_both_executors(&m, &c, RX_BFLOAT16, RX_AVG));
	return matrix_close(&m);
}

static void test_16_ranks_large(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	harness_limit(60);
	world_run(node, 16, rank_many_large, NULL);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_small_1),
		HARNESS_TEST(test_small_2),
		HARNESS_TEST(test_small_3),
		HARNESS_TEST(test_small_4),
		HARNESS_TEST(test_small_5),
		HARNESS_TEST(test_small_6),
		HARNESS_TEST(test_small_7),
		HARNESS_TEST(test_small_8),
		HARNESS_TEST(test_large_2),
		HARNESS_TEST(test_large_3),
		HARNESS_TEST(test_large_8),
		HARNESS_TEST(test_16_ranks),
		HARNESS_TEST(test_64_ranks),
		HARNESS_TEST(test_16_ranks_large),
	};

	return HARNESS_RUN("allreduce", tests);
}
