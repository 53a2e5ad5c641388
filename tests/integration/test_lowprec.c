/* SPDX-License-Identifier: MIT */
/* Collectives in low precision: every way to call them against the oracle, and switching on. */
#include "admin.h"
#include "coll_case.h"
#include "harness.h"

#include "../../kernels/coll_extent.h"

#include <signal.h>
#include <stdlib.h>

static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL,
	RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V, RX_ALL_TO_ALL_V};
static const uint32_t dtypes[] = {RX_FLOAT32, RX_BFLOAT16, RX_FLOAT16};

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* ---- bit for bit ---- */

static const uint64_t counts[] = {0, 1, 31, 32, 33, 127, 511, 1000, 4097, 70001};

struct sweep {
	uint64_t max_count;
	uint32_t n_counts; /* so many of them, from the smallest on */
	bool gather_bf16;
	bool int8;
};

/*
 * Collective, type, operation, in place, memory and executor in all combinations, counts in turns:
 * case @i, the same on all ranks.
 */
#define N_CASES (N(colls) * N(dtypes) * 2 * 2 * COLL_MEMORY_N * COLL_MODE_N)

static struct coll_case case_of(uint32_t i, const struct sweep *sweep)
{
	uint32_t rest = i;
	struct coll_case c = {
		.precision = sweep->int8 ? RCCLX_PRECISION_INT8 : RCCLX_PRECISION_FP8,
		.seed = i,
		.misalign = i % 5,
		.tame = i % 3 == 0,
	};

	c.coll = colls[rest % N(colls)];
	rest /= N(colls);
	c.dtype = dtypes[rest % N(dtypes)];
	rest /= N(dtypes);
	c.op = rest % 2 == 0 || !rx_coll_reduces(c.coll) ? RX_SUM : RX_AVG;
	rest /= 2;
	c.in_place = rest % 2;
	rest /= 2;
	c.memory = rest % COLL_MEMORY_N;
	rest /= COLL_MEMORY_N;
	c.mode = rest % COLL_MODE_N;
	c.count = counts[(i / 2 + rest + i / 97) % sweep->n_counts];
	return c;
}

static int open_with(struct coll_rank *c, struct rank_ctx *ctx, uint64_t bytes,
	const struct rcclx_comm_config *config)
{
	struct rcclx_unique_id id;

	*c = (struct coll_rank){.ctx = ctx, .rank = ctx->rank, .n_ranks = ctx->n_ranks};
	c->gather_bf16 = config->low_precision & RCCLX_LOW_PRECISION_GATHER_BF16;
	RANK_DO(rank_connect(ctx, &c->client));
	RANK_DO(rank_id(ctx, c->client, 0, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_comm_create(c->client, &id, ctx->n_ranks, ctx->rank, config, &c->comm));
	return coll_alloc(c, ctx, bytes);
}

static int rank_sweep(struct rank_ctx *ctx)
{
	const struct sweep *sweep = ctx->arg;
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct coll_rank c;

	if (sweep->gather_bf16)
		config.low_precision = RCCLX_LOW_PRECISION_GATHER_BF16;
	/* Checking must not change anything. */
	config.low_precision_sample = ctx->n_ranks % 2 == 0 ? 128 : 0;
	RANK_DO(open_with(
		&c, ctx, (ctx->n_ranks * (sweep->max_count + 1) + 64) * 4 + 4096, &config));
	for (uint32_t i = 0; i < N_CASES; i++) {
		struct coll_case what = case_of(i, sweep);

		RANK_DO(coll_run(&c, &what));
	}
	return coll_close(&c);
}

static void run(uint32_t n_ranks, struct sweep sweep)
{
	struct node *node = node_start(NULL);

	sweep.max_count = counts[sweep.n_counts - 1];
	world_run(node, n_ranks, rank_sweep, &sweep);
	node_stop(node);
}

static void test_one_and_two(void **state)
{
	(void)state;
	run(1, (struct sweep){.n_counts = 8});
	run(2, (struct sweep){.n_counts = 9});
}

static void test_three(void **state)
{
	(void)state;
	run(3, (struct sweep){.n_counts = 8});
}

static void test_five(void **state)
{
	(void)state;
	run(5, (struct sweep){.n_counts = 7});
}

static void test_eight(void **state)
{
	(void)state;
	run(8, (struct sweep){.n_counts = 6});
}

static void test_bf16(void **state)
{
	(void)state;
	run(2, (struct sweep){.n_counts = 8, .gather_bf16 = true});
	run(3, (struct sweep){.n_counts = 6, .gather_bf16 = true});
}

static void test_int8(void **state)
{
	(void)state;
	run(2, (struct sweep){.n_counts = 9, .int8 = true});
	run(3, (struct sweep){.n_counts = 7, .int8 = true, .gather_bf16 = true});
	run(7, (struct sweep){.n_counts = 6, .int8 = true});
}

/* Many ranks leave little room in a slot for each block: 16 of them 3840 elements. */
static int rank_most(struct rank_ctx *ctx)
{
	uint64_t count = ctx->n_ranks == 64 ? 45 : 3900;
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct coll_rank c;

	config.low_precision_sample = 128;
	RANK_DO(open_with(&c, ctx, (ctx->n_ranks * count + 64) * 4 + 4096, &config));
	for (uint32_t i = 0; i < N(colls); i++) {
		struct coll_case what = {
			.coll = colls[i],
			.dtype = dtypes[i % N(dtypes)],
			.op = rx_coll_reduces(colls[i]) ? RX_AVG : RX_SUM,
			.count = count,
			.precision = i % 2 ? RCCLX_PRECISION_INT8 : RCCLX_PRECISION_FP8,
			.seed = i,
			.tame = true,
		};

		RANK_DO(coll_run(&c, &what));
	}
	return coll_close(&c);
}

static void test_most(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	harness_limit(90);
	world_run(node, 16, rank_most, NULL);
	world_run(node, 64, rank_most, NULL);
	node_stop(node);
}

/* ---- large counts ---- */

static int rank_large(struct rank_ctx *ctx)
{
	const uint64_t n = ctx->n_ranks == 2 ? 4200000 : 525000;
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct coll_rank c;

	config.low_precision_sample = 1024;
	RANK_DO(open_with(
		&c, ctx, (n * (n > 1000000 ? 1 : ctx->n_ranks) + 64) * 4 + 4096, &config));
	for (uint32_t mode = COLL_INLINE; mode <= COLL_DAEMON; mode++) {
		struct coll_case what = {
			.coll = n > 1000000 ? RX_ALL_REDUCE : RX_REDUCE_SCATTER,
			.dtype = RX_FLOAT32,
			.op = RX_SUM,
			.count = n,
			.mode = mode,
			.memory = COLL_MIXED,
			.in_place = mode == COLL_DAEMON,
			.precision = RCCLX_PRECISION_FP8,
			.seed = 5,
			.tame = true,
		};

		RANK_DO(coll_run(&c, &what));
		what.dtype = RX_BFLOAT16;
		what.coll = n > 1000000 ? RX_ALL_REDUCE : RX_ALL_GATHER;
		what.precision = RCCLX_PRECISION_INT8;
		RANK_DO(coll_run(&c, &what));
	}
	return coll_close(&c);
}

static void test_large(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	harness_limit(90);
	world_run(node, 2, rank_large, NULL);
	world_run(node, 4, rank_large, NULL);
	node_stop(node);
}

/* ---- switching on ---- */

#define THRESHOLD 65536u

/* The bits of one allreduce of @n floats, folded into a number. */
static int digest(struct rank_ctx *ctx, struct rcclx_comm *comm, uint64_t n, uint32_t precision,
	uint64_t *digest_p)
{
	static float in[THRESHOLD];
	static float out[THRESHOLD];
	struct rcclx_call_config call = RCCLX_CALL_CONFIG_INIT;
	uint64_t sum = 0;

	call.precision = precision;
	for (uint64_t i = 0; i < n; i++)
		in[i] = (float)(i % 1000) * 0.37f + (float)ctx->rank;
	RANK_OK(ctx, rcclx_all_reduce(
			     comm, in, out, n, RCCLX_FLOAT32, RCCLX_SUM, precision ? &call : NULL));
	for (uint64_t i = 0; i < n; i++) {
		uint32_t bits = 0;

		memcpy(&bits, &out[i], sizeof(bits));
		sum = sum * 31 + bits;
	}
	*digest_p = sum;
	return 0;
}

static int check_switching(struct rank_ctx *ctx, struct rcclx_comm *comm, uint64_t from_elements)
{
	uint64_t exact = 0, fp8 = 0, plain = 0;

	RANK_DO(digest(ctx, comm, from_elements, RCCLX_PRECISION_EXACT, &exact));
	RANK_DO(digest(ctx, comm, from_elements, RCCLX_PRECISION_FP8, &fp8));
	RANK_CHECK(ctx, exact != fp8, "low precision gives the exact result");
	RANK_DO(digest(ctx, comm, from_elements, RCCLX_PRECISION_AUTO, &plain));
	RANK_CHECK(ctx, plain == fp8, "not in low precision from the threshold on");
	RANK_DO(digest(ctx, comm, from_elements - 1, RCCLX_PRECISION_EXACT, &exact));
	RANK_DO(digest(ctx, comm, from_elements - 1, RCCLX_PRECISION_AUTO, &plain));
	RANK_CHECK(ctx, plain == exact, "not exact below the threshold");
	return 0;
}

static int rank_environment(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comms[3] = {NULL};
	uint64_t exact = 0, plain = 0;

	RANK_DO(rank_connect(ctx, &client));
	/* Read when a communicator is created. */
	(void)setenv("RCCL_LOW_PRECISION_ENABLE", "1", 1);
	(void)setenv("RCCL_LOW_PRECISION_MIN_BYTES", "65536", 1);
	RANK_DO(rank_comm(ctx, client, 0, &comms[0]));
	(void)setenv("RCCL_LOW_PRECISION_ENABLE_ALLREDUCE", "0", 1);
	RANK_DO(rank_comm(ctx, client, 1, &comms[1]));
	(void)unsetenv("RCCL_LOW_PRECISION_ENABLE");
	(void)setenv("RCCL_LOW_PRECISION_ENABLE_ALLREDUCE", "1", 1);
	RANK_DO(rank_comm(ctx, client, 2, &comms[2]));
	(void)unsetenv("RCCL_LOW_PRECISION_ENABLE_ALLREDUCE");
	(void)unsetenv("RCCL_LOW_PRECISION_MIN_BYTES");
	RANK_DO(check_switching(ctx, comms[0], 16384));
	RANK_DO(check_switching(ctx, comms[2], 16384));
	RANK_DO(digest(ctx, comms[1], 16384, RCCLX_PRECISION_EXACT, &exact));
	RANK_DO(digest(ctx, comms[1], 16384, RCCLX_PRECISION_AUTO, &plain));
	RANK_CHECK(ctx, plain == exact, "switched off, and not exact");
	for (uint32_t i = 1; i < 3; i++)
		RANK_OK(ctx, rcclx_comm_destroy(comms[i]));
	return rank_leave(ctx, comms[0], client);
}

/* Which format: of a communicator, by the environment and by its configuration. */
static int rank_format(struct rank_ctx *ctx)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comms[3] = {NULL};
	uint64_t fp8 = 0, int8 = 0, plain = 0;
	struct rcclx_unique_id id;

	RANK_DO(rank_connect(ctx, &client));
	(void)setenv("RCCL_LOW_PRECISION_ENABLE", "1", 1);
	(void)setenv("RCCL_LOW_PRECISION_MIN_BYTES", "65536", 1);
	RANK_DO(rank_comm(ctx, client, 0, &comms[0]));
	(void)setenv("RCCL_LOW_PRECISION_FORMAT", "int8", 1);
	RANK_DO(rank_comm(ctx, client, 1, &comms[1]));
	(void)unsetenv("RCCL_LOW_PRECISION_ENABLE");
	(void)unsetenv("RCCL_LOW_PRECISION_FORMAT");
	config.low_precision = RCCLX_LOW_PRECISION_ALL_REDUCE | RCCLX_LOW_PRECISION_INT8;
	RANK_DO(rank_id(ctx, client, 2, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, ctx->n_ranks, ctx->rank, &config, &comms[2]));
	(void)unsetenv("RCCL_LOW_PRECISION_MIN_BYTES");
	RANK_DO(digest(ctx, comms[1], 16384, RCCLX_PRECISION_FP8, &fp8));
	RANK_DO(digest(ctx, comms[0], 16384, RCCLX_PRECISION_INT8, &int8));
	RANK_CHECK(ctx, fp8 != int8, "INT8 gives the result of FP8");
	for (uint32_t i = 0; i < N(comms); i++) {
		RANK_DO(digest(ctx, comms[i], 16384, RCCLX_PRECISION_AUTO, &plain));
		RANK_CHECK(ctx, plain == (i == 0 ? fp8 : int8), "communicator %u: wrong format", i);
		if (i > 0)
			RANK_OK(ctx, rcclx_comm_destroy(comms[i]));
	}
	return rank_leave(ctx, comms[0], client);
}

static int rank_bad_environment(struct rank_ctx *ctx)
{
	static const char *const bad[][2] = {
		{"RCCL_LOW_PRECISION_ENABLE", "yes"},
		{"RCCL_LOW_PRECISION_ENABLE_ALLTOALL", "2"},
		{"RCCL_LOW_PRECISION_MIN_BYTES", "16M"},
		{"RCCL_LOW_PRECISION_SAMPLE", "127"},
		{"RCCL_LOW_PRECISION_FORMAT", "int4"},
		{"RCCLX_LINK_RATE", "-1"},
	};
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_unique_id id;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_id(ctx, client, 0, true, &id));
	for (uint32_t i = 0; i < N(bad); i++) {
		(void)setenv(bad[i][0], bad[i][1], 1);
		RANK_RESULT(
			ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &comm), RCCLX_ERR_INVALID);
		RANK_TEXT(ctx, bad[i][0]);
		(void)unsetenv(bad[i][0]);
	}
	config.low_precision = RCCLX_LOW_PRECISION_NONE | 1;
	RANK_RESULT(ctx, rcclx_comm_create(client, &id, 1, 0, &config, &comm), RCCLX_ERR_INVALID);
	config.low_precision = 1u << 20;
	RANK_RESULT(ctx, rcclx_comm_create(client, &id, 1, 0, &config, &comm), RCCLX_ERR_INVALID);
	return rank_leave(ctx, NULL, client);
}

static void test_environment(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_environment, NULL);
	world_run(node, 2, rank_format, NULL);
	world_run(node, 1, rank_bad_environment, NULL);
	node_stop(node);
}

/* By configuration; the environment, which says otherwise, is not looked at. */
static int rank_configured(struct rank_ctx *ctx)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct coll_rank c;
	uint64_t exact = 0, plain = 0;

	(void)setenv("RCCL_LOW_PRECISION_ENABLE", "1", 1);
	(void)setenv("RCCL_LOW_PRECISION_MIN_BYTES", "1", 1);
	config.low_precision = RCCLX_LOW_PRECISION_ALL_REDUCE;
	config.low_precision_min = 40000;
	RANK_DO(open_with(&c, ctx, 4096, &config));
	RANK_DO(check_switching(ctx, c.comm, 10000));
	RANK_OK(ctx, rcclx_comm_destroy(c.comm));
	RANK_DO(coll_release(&c));
	config.low_precision = RCCLX_LOW_PRECISION_NONE;
	RANK_OK(ctx, rcclx_disconnect(c.client));
	RANK_DO(rank_connect(ctx, &c.client));
	struct rcclx_unique_id id;
	RANK_DO(rank_id(ctx, c.client, 1, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_comm_create(c.client, &id, ctx->n_ranks, ctx->rank, &config, &c.comm));
	RANK_DO(digest(ctx, c.comm, 16384, RCCLX_PRECISION_EXACT, &exact));
	RANK_DO(digest(ctx, c.comm, 16384, RCCLX_PRECISION_AUTO, &plain));
	RANK_CHECK(ctx, plain == exact, "RCCLX_LOW_PRECISION_NONE, and not exact");
	return rank_leave(ctx, c.comm, c.client);
}

static void test_configured(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_configured, NULL);
	node_stop(node);
}

/* As if a slow link were between them: as long as that, and only where ranks do the work. */
static int rank_link(struct rank_ctx *ctx)
{
	const uint64_t count = 1u << 20;
	struct rcclx_call_config call = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_op *op = NULL;
	float *data = calloc(count, sizeof(*data));

	RANK_CHECK(ctx, data, "no memory");
	RANK_DO(rank_connect(ctx, &client));
	(void)setenv("RCCLX_LINK_RATE", "40000000", 1);
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	(void)unsetenv("RCCLX_LINK_RATE");
	for (uint32_t precision = RCCLX_PRECISION_EXACT; precision <= RCCLX_PRECISION_FP8;
		precision++) {
		/* Half a message each way: 4 MiB, or 33 of 128 bytes of that. */
		uint64_t least_ms = precision == RCCLX_PRECISION_EXACT ? 104 : 27;
		uint64_t start = test_now_ms();

		call.precision = precision;
		call.executor = RCCLX_EXECUTOR_AUTO;
		RANK_OK(ctx,
			rcclx_all_reduce(comm, data, data, count, RCCLX_FLOAT32, RCCLX_SUM, &call));
		RANK_CHECK(ctx, test_now_ms() - start >= least_ms, "precision %u: only %llu ms",
			precision, (unsigned long long)(test_now_ms() - start));
		call.executor = RCCLX_EXECUTOR_DAEMON;
		RANK_RESULT(ctx,
			rcclx_all_reduce(comm, data, data, count, RCCLX_FLOAT32, RCCLX_SUM, &call),
			RCCLX_ERR_INVALID);
		RANK_TEXT(ctx, "RCCLX_LINK_RATE");
		RANK_RESULT(ctx,
			rcclx_all_reduce_start(
				comm, data, data, count, RCCLX_FLOAT32, RCCLX_SUM, &call, &op),
			RCCLX_ERR_INVALID);
		RANK_TEXT(ctx, "all_reduce of 1048576 float32, sum");
	}
	call.executor = RCCLX_EXECUTOR_AUTO;
	RANK_OK(ctx, rcclx_group_start());
	RANK_OK(ctx, rcclx_all_reduce(comm, data, data, 1, RCCLX_FLOAT32, RCCLX_SUM, &call));
	RANK_RESULT(ctx, rcclx_group_end(), RCCLX_ERR_INVALID);
	/* The communicator is still good. */
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	free(data);
	return rank_leave(ctx, comm, client);
}

static void test_link(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_link, NULL);
	node_stop(node);
}

/*
 * The ranks of an all_to_all_v hear of each other's counts before they compare with the threshold:
 * what the one sends that sends most decides for all.
 */
static int rank_variable(struct rank_ctx *ctx)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct coll_rank c;

	config.low_precision = RCCLX_LOW_PRECISION_ALL;
	/* The three ranks send 1995, 1993 and 2988 floats for a count of 1000, and 2 less for 999.
	 */
	config.low_precision_min = 2988 * sizeof(float);
	RANK_DO(open_with(&c, ctx, 3 * 1100 * sizeof(float) + 4096, &config));
	c.ask_nothing = true;
	for (uint32_t i = 0; i < 4; i++) {
		struct coll_case what = {
			.coll = RX_ALL_TO_ALL_V,
			.dtype = RX_FLOAT32,
			.count = i % 2 ? 1000 : 999,
			.mode = i / 2 ? COLL_START : COLL_INLINE,
			.precision = i % 2 ? RCCLX_PRECISION_FP8 : RCCLX_PRECISION_EXACT,
			.seed = i,
			.tame = true,
		};

		RANK_DO(coll_run(&c, &what));
	}
	return coll_close(&c);
}

static void test_variable(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 3, rank_variable, NULL);
	node_stop(node);
}

/* What has no such form is exact, also where low precision is asked for. */
static int rank_others(struct rank_ctx *ctx)
{
	static const struct coll_case cases[] = {
		{.coll = RX_ALL_REDUCE, .dtype = RX_INT32, .op = RX_SUM},
		{.coll = RX_ALL_REDUCE, .dtype = RX_FLOAT64, .op = RX_SUM},
		{.coll = RX_ALL_REDUCE, .dtype = RX_FLOAT8E4M3, .op = RX_AVG},
		{.coll = RX_ALL_REDUCE, .dtype = RX_FLOAT32, .op = RX_MAX},
		{.coll = RX_ALL_REDUCE, .dtype = RX_FLOAT32, .op = RX_PREMUL_SUM},
		{.coll = RX_REDUCE_SCATTER, .dtype = RX_BFLOAT16, .op = RX_PROD},
		{.coll = RX_ALL_GATHER, .dtype = RX_UINT8},
		{.coll = RX_BROADCAST, .dtype = RX_FLOAT32},
		{.coll = RX_REDUCE, .dtype = RX_FLOAT32, .op = RX_SUM},
		{.coll = RX_GATHER, .dtype = RX_FLOAT16},
		{.coll = RX_SCATTER, .dtype = RX_FLOAT32},
	};
	struct coll_rank c;

	RANK_DO(coll_open(&c, ctx, 65536));
	for (uint32_t i = 0; i < N(cases) * 2; i++) {
		struct coll_case what = cases[i / 2];

		what.precision = RCCLX_PRECISION_FP8;
		what.count = 777;
		what.seed = i;
		what.mode = i % 2 ? COLL_DAEMON : COLL_INLINE;
		RANK_CHECK(ctx, !coll_lowprec(&c, &what), "the test is wrong");
		RANK_DO(coll_run(&c, &what));
	}
	return coll_close(&c);
}

static void test_others(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_others, NULL);
	node_stop(node);
}

/* ---- disagreement ---- */

static int rank_mixed_settings(struct rank_ctx *ctx)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_unique_id id;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_id(ctx, client, 0, ctx->rank == 0, &id));
	config.low_precision = RCCLX_LOW_PRECISION_ALL_REDUCE;
	if (ctx->rank == 1)
		config.low_precision_min = 12345;
	RANK_RESULT(ctx, rcclx_comm_create(client, &id, ctx->n_ranks, ctx->rank, &config, &comm),
		RCCLX_ERR_MISMATCH);
	RANK_TEXT(ctx, "rank 0 (pid");
	RANK_TEXT(ctx, "rank 1 (pid");
	RANK_TEXT(ctx, "has all_reduce;");
	RANK_TEXT(ctx, "has all_reduce, from 12345 bytes;");
	RANK_TEXT(ctx, "RCCL_LOW_PRECISION_");
	return rank_leave(ctx, NULL, client);
}

static int rank_mixed_formats(struct rank_ctx *ctx)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_unique_id id;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_id(ctx, client, 0, ctx->rank == 0, &id));
	config.low_precision = RCCLX_LOW_PRECISION_ALL_GATHER;
	if (ctx->rank == 1)
		config.low_precision |= RCCLX_LOW_PRECISION_INT8;
	RANK_RESULT(ctx, rcclx_comm_create(client, &id, ctx->n_ranks, ctx->rank, &config, &comm),
		RCCLX_ERR_MISMATCH);
	RANK_TEXT(ctx, "rank 0 (pid");
	RANK_TEXT(ctx, "has all_gather;");
	RANK_TEXT(ctx, "has all_gather, as int8;");
	return rank_leave(ctx, NULL, client);
}

static int rank_mixed_calls(struct rank_ctx *ctx)
{
	struct rcclx_call_config call = RCCLX_CALL_CONFIG_INIT;
	float in[64] = {1};
	float out[64] = {0};
	struct coll_rank c;

	RANK_DO(coll_open(&c, ctx, 4096));
	for (uint32_t executor = RCCLX_EXECUTOR_INLINE; executor <= RCCLX_EXECUTOR_DAEMON;
		executor++) {
		call.executor = executor;
		call.precision = ctx->rank == 0 ? RCCLX_PRECISION_FP8 : RCCLX_PRECISION_AUTO;
		RANK_RESULT(ctx,
			rcclx_all_reduce(c.comm, in, out, 64, RCCLX_FLOAT32, RCCLX_SUM, &call),
			RCCLX_ERR_MISMATCH);
		RANK_TEXT(ctx, "called all_reduce of 64 float32, sum, in low precision (fp8)");
		RANK_TEXT(ctx, ctx->rank == 0 ? "rank 1 called all_reduce of 64 float32, sum;"
					      : "rank 1 called all_reduce of 64 float32, sum,");
		RANK_CHECK(ctx, out[0] == 0, "something was moved");
		call.precision = ctx->rank == 0 ? RCCLX_PRECISION_FP8 : RCCLX_PRECISION_INT8;
		RANK_RESULT(ctx,
			rcclx_all_reduce(c.comm, in, out, 64, RCCLX_FLOAT32, RCCLX_SUM, &call),
			RCCLX_ERR_MISMATCH);
		RANK_TEXT(ctx, "in low precision (fp8)");
		RANK_TEXT(ctx, "in low precision (int8)");
	}
	/* The communicator is still good. */
	call.precision = RCCLX_PRECISION_INT8 + 1;
	RANK_RESULT(ctx, rcclx_all_reduce(c.comm, in, out, 64, RCCLX_FLOAT32, RCCLX_SUM, &call),
		RCCLX_ERR_INVALID);
	RANK_OK(ctx, rcclx_barrier(c.comm, NULL));
	return coll_close(&c);
}

static void test_disagreement(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 3, rank_mixed_settings, NULL);
	world_run(node, 2, rank_mixed_formats, NULL);
	world_run(node, 2, rank_mixed_calls, NULL);
	node_stop(node);
}

/* ---- death in the middle ---- */

#define DEATH_COUNT (8u << 20)

static int rank_death(struct rank_ctx *ctx)
{
	const uint32_t *executor = ctx->arg;
	struct rcclx_call_config call = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	float *data = calloc(DEATH_COUNT, sizeof(*data));
	rcclx_result r = RCCLX_OK;

	RANK_CHECK(ctx, data, "no memory");
	call.precision = RCCLX_PRECISION_FP8;
	call.executor = *executor;
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t i = 0; r == RCCLX_OK; i++) {
		r = rcclx_all_reduce(
			comm, data, data, DEATH_COUNT, RCCLX_FLOAT32, RCCLX_SUM, &call);
		if (ctx->rank == 1)
			flag_set(ctx->shared, 0, 1);
	}
	RANK_CHECK(ctx, r == RCCLX_ERR_PEER_LOST, "%s; %s", rcclx_strerror(r), rcclx_last_error());
	RANK_TEXT(ctx, "rank 1");
	free(data);
	return rank_leave(ctx, comm, client);
}

static void test_death(void **state)
{
	(void)state;
	for (uint32_t executor = RCCLX_EXECUTOR_INLINE; executor <= RCCLX_EXECUTOR_DAEMON;
		executor++) {
		struct node *node = node_start(NULL);
		struct world *world = world_start(node, 3, rank_death, &executor);

		assert_true(flag_wait(world->shared, 0, 1, 10000));
		test_sleep_ms(7);
		world_kill(world, 1, SIGKILL);
		world_join(world);
		node_stop(node);
	}
}

/* ---- checking, budget, accounting ---- */

#define BUDGET_COUNT 300000u

struct budget {
	uint32_t executor;
	uint32_t ppm;
	uint32_t precision;
};

static int rank_budget(struct rank_ctx *ctx)
{
	const struct budget *budget = ctx->arg;
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct coll_rank c;
	struct coll_case what = {
		.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.op = RX_SUM,
		.count = BUDGET_COUNT,
		.mode = budget->executor == RCCLX_EXECUTOR_DAEMON ? COLL_DAEMON : COLL_INLINE,
		.precision = budget->precision,
		.tame = true,
	};

	config.name = "budget";
	config.low_precision_budget_ppm = budget->ppm;
	config.low_precision_sample = 128;
	RANK_DO(open_with(&c, ctx, BUDGET_COUNT * 4 + 4096, &config));
	/* The error is found in this operation, and in effect from the next one on. */
	RANK_DO(coll_run(&c, &what));
	RANK_DO(rank_sync(ctx));
	flag_set(ctx->shared, ctx->rank, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 2, 1, 10000), "the test did not look");
	for (uint32_t i = 0; i < 3; i++) {
		what.seed = i;
		what.count = BUDGET_COUNT - i;
		what.precision = budget->ppm < 10000 ? RCCLX_PRECISION_EXACT : budget->precision;
		/* Asked for in low precision, expected to be exact. */
		c.ask = budget->precision;
		RANK_DO(coll_run(&c, &what));
	}
	RANK_DO(rank_sync(ctx));
	flag_set(ctx->shared, 4 + ctx->rank, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 3, 1, 10000), "the test did not look");
	return coll_close(&c);
}

static struct admin_comm only_comm(const struct node *node)
{
	struct admin_comm comm;

	assert_int_equal(admin_comm(node->admin, 0, &comm), 0);
	return comm;
}

static void check_budget(struct budget budget)
{
	struct node *node = node_start(NULL);
	struct world *world = world_start(node, 2, rank_budget, &budget);
	bool over = budget.ppm < 10000;
	struct admin_comm comm;

	for (uint32_t rank = 0; rank < 2; rank++)
		assert_true(flag_wait(world->shared, rank, 1, 10000));
	comm = only_comm(node);
	print_message("executor %u: error %llu ppm in %llu blocks; %llu bytes instead of %llu\n",
		budget.executor, (unsigned long long)comm.worst_error_ppm,
		(unsigned long long)comm.sampled_blocks, (unsigned long long)comm.wire_bytes,
		(unsigned long long)comm.exact_bytes);
	assert_int_equal(comm.precision_ops, 1);
	assert_in_range(
		comm.sampled_blocks, BUDGET_COUNT / 32 / 128 - 1, BUDGET_COUNT / 32 / 128 + 2);
	/* An allreduce of two ranks: half a vector each way, twice. */
	assert_int_equal(comm.exact_bytes, BUDGET_COUNT * 4 * 2);
	assert_in_range(
		comm.wire_bytes, BUDGET_COUNT * 33 / 32 * 2, BUDGET_COUNT * 33 / 32 * 2 + 100);
	if (budget.precision == RCCLX_PRECISION_INT8)
		assert_in_range(comm.worst_error_ppm, 4000, 15000);
	else
		assert_in_range(comm.worst_error_ppm, 15000, 45000);
	assert_int_equal(comm.special_blocks, 0);
	assert_non_null(strstr(comm.precision, "one block in 128 checked"));
	if (over)
		node_wait_log(node, "name=\"budget\" low precision:", "above the budget", 5000);
	flag_set(world->shared, 2, 1);
	for (uint32_t rank = 0; rank < 2; rank++)
		assert_true(flag_wait(world->shared, 4 + rank, 1, 20000));
	comm = only_comm(node);
	assert_int_equal(comm.over_budget, over);
	assert_int_equal(comm.precision_ops, over ? 1 : 4);
	flag_set(world->shared, 3, 1);
	world_join(world);
	assert_int_equal(node_log_count(node, "above the budget", NULL), over);
	node_stop(node);
}

static void test_budget(void **state)
{
	(void)state;
	harness_limit(90);
	for (uint32_t precision = RCCLX_PRECISION_FP8; precision <= RCCLX_PRECISION_INT8;
		precision++) {
		check_budget((struct budget){RCCLX_EXECUTOR_INLINE, 1000, precision});
		check_budget((struct budget){RCCLX_EXECUTOR_DAEMON, 1000, precision});
		check_budget((struct budget){RCCLX_EXECUTOR_INLINE, 900000, precision});
		check_budget((struct budget){RCCLX_EXECUTOR_DAEMON, 900000, precision});
	}
}

/* ---- memory ---- */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MALLOC 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 1
#endif

/* A sanitizer has allocation functions of its own. */
#ifndef OWN_MALLOC
static _Atomic uint64_t n_allocations;

/* glibc keeps these names for those who replace the functions. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);

#pragma GCC visibility push(default)
void *malloc(size_t bytes)
{
	n_allocations++;
	return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	n_allocations++;
	return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
	n_allocations++;
	return __libc_realloc(p, bytes);
}
#pragma GCC visibility pop

/* Nothing is allocated by a blocking call behind the first one, however large. */
static int rank_allocations(struct rank_ctx *ctx)
{
	static float in[1u << 18];
	static float out[1u << 18];
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_call_config call = RCCLX_CALL_CONFIG_INIT;
	uint64_t before = 0;
	struct coll_rank c;

	config.low_precision_sample = 128;
	RANK_DO(open_with(&c, ctx, 4096, &config));
	RANK_CHECK(ctx, n_allocations > 0, "the test does not count");
	for (uint32_t i = 0; i < 12; i++) {
		uint64_t n = i == 0 ? 1000 : 10000 * i;

		if (i == 1)
			before = n_allocations;
		call.precision = i % 2 ? RCCLX_PRECISION_INT8 : RCCLX_PRECISION_FP8;
		RANK_OK(ctx, rcclx_all_reduce(c.comm, in, out, n, RCCLX_FLOAT32, RCCLX_SUM, &call));
		RANK_OK(ctx, rcclx_all_gather(c.comm, in, out, n, RCCLX_FLOAT32, &call));
		RANK_OK(ctx,
			rcclx_reduce_scatter(c.comm, in, out, n, RCCLX_FLOAT32, RCCLX_AVG, &call));
		RANK_OK(ctx, rcclx_all_to_all(c.comm, in, out, n, RCCLX_FLOAT32, &call));
	}
	RANK_CHECK(ctx, n_allocations == before, "%llu allocations",
		(unsigned long long)(n_allocations - before));
	return coll_close(&c);
}

static void test_allocations(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_allocations, NULL);
	node_stop(node);
}
#endif

static int rank_scratch(struct rank_ctx *ctx)
{
	struct coll_rank c;
	struct coll_case what = {
		.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.op = RX_SUM,
		.count = 100000,
		.mode = COLL_DAEMON,
		.precision = RCCLX_PRECISION_FP8,
	};

	RANK_DO(coll_open(&c, ctx, 100000 * 4 + 4096));
	for (uint32_t i = 0; i < 3; i++)
		RANK_DO(coll_run(&c, &what));
	return coll_close(&c);
}

static void test_scratch(void **state)
{
	struct node *node = node_start(&(struct node_options){
		.config = "low_precision_scratch_bytes = 1048576; host_workers = 64;"});
	struct admin_status status;

	(void)state;
	assert_int_equal(admin_status(node->admin, &status), 0);
	assert_int_equal(status.scratch_bytes, 0);
	assert_int_equal(status.scratch_limit, 1048576);
	world_run(node, 2, rank_scratch, NULL);
	assert_int_equal(admin_status(node->admin, &status), 0);
	assert_in_range(status.scratch_bytes, 1048576 * 9 / 10, 1048576);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_one_and_two),
		HARNESS_TEST(test_three),
		HARNESS_TEST(test_five),
		HARNESS_TEST(test_eight),
		HARNESS_TEST(test_bf16),
		HARNESS_TEST(test_int8),
		HARNESS_TEST(test_most),
		HARNESS_TEST(test_large),
		HARNESS_TEST(test_environment),
		HARNESS_TEST(test_configured),
		HARNESS_TEST(test_link),
		HARNESS_TEST(test_variable),
		HARNESS_TEST(test_others),
		HARNESS_TEST(test_disagreement),
		HARNESS_TEST(test_death),
		HARNESS_TEST(test_budget),
		HARNESS_TEST(test_scratch),
#ifndef OWN_MALLOC
		HARNESS_TEST(test_allocations),
#endif
	};

	return HARNESS_RUN("lowprec", tests);
}
