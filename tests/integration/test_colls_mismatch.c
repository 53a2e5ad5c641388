/* SPDX-License-Identifier: MIT */
/*
 * Ranks that disagree about a collective, and arguments that cannot be right: everybody is told
 * what was wrong, nothing moves, and the communicator is good for the next call.
 */
#include "coll_case.h"
#include "harness.h"

#include "../../kernels/coll_types.h"

#include <stdio.h>
#include <string.h>

#define N_RANKS  3u
#define ODD_RANK 2u

static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL,
	RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V,
	RX_ALL_TO_ALL_V};

#define N_COLLS (sizeof(colls) / sizeof(colls[0]))

enum difference { DIFF_COUNT, DIFF_DTYPE, DIFF_OP, DIFF_ROOT, DIFF_COLL, DIFF_N };

static bool has_root(uint8_t coll)
{
	return coll == RX_BROADCAST || coll == RX_REDUCE || coll == RX_GATHER || coll == RX_SCATTER;
}

/* False: the collective has no such thing to disagree about. */
static bool make_odd(struct coll_case *c, enum difference diff)
{
	switch (diff) {
	case DIFF_COUNT:
		c->count++;
		return true;
	case DIFF_DTYPE:
		c->dtype = RX_BFLOAT16;
		return true;
	case DIFF_OP:
		c->op = RX_MAX;
		return rx_coll_reduces(c->coll);
	case DIFF_ROOT:
		c->root = 1;
		return has_root(c->coll);
	default:
		c->coll = c->coll == RX_BROADCAST ? RX_ALL_GATHER : RX_BROADCAST;
		return true;
	}
}

static int sum_of_ranks(struct rank_ctx *ctx, struct rcclx_comm *comm)
{
	int32_t x = (int32_t)ctx->rank;

	RANK_OK(ctx, rcclx_all_reduce(comm, &x, &x, 1, RCCLX_INT32, RCCLX_SUM, NULL));
	RANK_CHECK(ctx, x == 3, "sum is %d", x);
	return 0;
}

static int check_sides(
	struct rank_ctx *ctx, const struct coll_case *usual, const struct coll_case *odd)
{
	const struct coll_case *sides[] = {usual, odd};
	char count[32] = "";

	RANK_TEXT(ctx, "rank 2");
	for (int i = 0; i < 2; i++) {
		RANK_TEXT(ctx, rx_coll_name(sides[i]->coll));
		RANK_TEXT(ctx, rx_dtype_name(sides[i]->dtype));
		if (rx_coll_reduces(sides[i]->coll))
			RANK_TEXT(ctx, rx_redop_name(sides[i]->op));
		/* Those of variable collectives travel as a checksum. */
		(void)snprintf(
			count, sizeof(count), "of %llu ", (unsigned long long)sides[i]->count);
		if (sides[i]->coll < RX_ALL_GATHER_V)
			RANK_TEXT(ctx, count);
	}
	return 0;
}

static int run_difference(struct coll_rank *c, uint8_t coll, enum coll_mode mode,
	enum difference diff, uint64_t count)
{
	struct coll_case usual = {
		.coll = coll,
		.dtype = RX_FLOAT16,
		.op = RX_SUM,
		.count = count,
		.mode = mode,
		.memory = count % 2 == 0 ? COLL_REGISTERED : COLL_PRIVATE,
	};
	struct coll_case odd = usual;
	struct rank_ctx *ctx = c->ctx;
	rcclx_result r = RCCLX_OK;

	if (!make_odd(&odd, diff))
		return 0;
	uint64_t start = test_now_ms();
	RANK_DO(coll_try(c, ctx->rank == ODD_RANK ? &odd : &usual, &r));
	RANK_CHECK(ctx, r == RCCLX_ERR_MISMATCH,
		"%s, mode %d, difference %d, count %llu: %s; \"%s\"", rx_coll_name(coll), (int)mode,
		(int)diff, (unsigned long long)count, rcclx_strerror(r), rcclx_last_error());
	RANK_WITHIN(ctx, start, 2000);
	/* What is said of blocks of an all_to_all_v is a test of its own. */
	if (coll != RX_ALL_TO_ALL_V || diff != DIFF_COUNT)
		RANK_DO(check_sides(ctx, &usual, &odd));
	RANK_OK(ctx, rcclx_comm_status(c->comm));
	return sum_of_ranks(ctx, c->comm);
}

static int rank_differences(struct rank_ctx *ctx)
{
	static const uint64_t counts[] = {11, 1500, 40000};
	const enum coll_mode *mode = ctx->arg;
	struct coll_rank c;

	RANK_DO(coll_open(&c, ctx, N_RANKS * 40001 * 2 + 4096));
	for (uint32_t i = 0; i < N_COLLS; i++)
		for (uint32_t diff = 0; diff < DIFF_N; diff++)
			for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
				RANK_DO(run_difference(
					&c, colls[i], *mode, (enum difference)diff, counts[k]));
	return coll_close(&c);
}

static void run_differences(enum coll_mode mode)
{
	struct node *node = node_start(NULL);

	world_run(node, N_RANKS, rank_differences, &mode);
	node_stop(node);
}

static void test_inline(void **state)
{
	(void)state;
	run_differences(COLL_INLINE);
}

static void test_daemon(void **state)
{
	(void)state;
	run_differences(COLL_DAEMON);
}

static void test_started(void **state)
{
	(void)state;
	run_differences(COLL_START);
}

static void test_group(void **state)
{
	(void)state;
	run_differences(COLL_GROUP);
}

/* ---- any collective against any other ---- */

static int rank_pairings(struct rank_ctx *ctx)
{
	const enum coll_mode *mode = ctx->arg;
	struct coll_case side = {.dtype = RX_FLOAT16, .op = RX_SUM, .mode = *mode};
	struct coll_rank c;

	RANK_DO(coll_open(&c, ctx, N_RANKS * 1501 * 2 + 4096));
	for (uint32_t pair = 0; pair < N_COLLS * N_COLLS; pair++) {
		uint8_t usual = colls[pair / N_COLLS];
		uint8_t odd = colls[pair % N_COLLS];
		rcclx_result r = RCCLX_OK;

		if (usual == odd)
			continue;
		side.coll = ctx->rank == ODD_RANK ? odd : usual;
		/* Of no data, too: then only the calls differ. */
		side.count = pair % 3 == 0 ? 0 : 1500;
		side.memory = (enum coll_memory)(pair % COLL_MEMORY_N);
		RANK_DO(coll_try(&c, &side, &r));
		RANK_CHECK(ctx, r == RCCLX_ERR_MISMATCH, "mode %d, %s against %s: %s; \"%s\"",
			(int)*mode, rx_coll_name(usual), rx_coll_name(odd), rcclx_strerror(r),
			rcclx_last_error());
		RANK_TEXT(ctx, rx_coll_name(usual));
		RANK_TEXT(ctx, rx_coll_name(odd));
		RANK_DO(sum_of_ranks(ctx, c.comm));
	}
	return coll_close(&c);
}

static void test_pairings(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	for (enum coll_mode mode = COLL_INLINE; mode < COLL_MODE_N; mode++)
		world_run(node, N_RANKS, rank_pairings, &mode);
	node_stop(node);
}

/* ---- counts that are not the same on all ranks ---- */

static int rank_counts_differ(struct rank_ctx *ctx)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	uint64_t counts[N_RANKS] = {4, 0, 7};
	const uint64_t displs[N_RANKS] = {0, 10, 20};
	int32_t in[30] = {1, 2, 3};
	int32_t out[30] = {0};
	const char *text = ctx->rank == 0   ? "the count of rank 1 is 0 on rank 0, and 2 on rank 1"
			   : ctx->rank == 1 ? "the count of rank 1 is 2 on rank 1, and 0 on rank 0"
					    : "the count of rank 1 is 0 on rank 2, and 2 on rank 1";

	config.executor = RCCLX_EXECUTOR_DAEMON;
	if (ctx->rank == 1)
		counts[1] = 2;
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_RESULT(ctx, rcclx_all_gather_v(comm, in, out, counts, displs, RCCLX_INT32, &config),
		RCCLX_ERR_MISMATCH);
	RANK_TEXT(ctx, "all_gather_v of int32");
	RANK_TEXT(ctx, text);
	RANK_RESULT(ctx,
		rcclx_reduce_scatter_v(comm, in, out, counts, RCCLX_INT32, RCCLX_PROD, &config),
		RCCLX_ERR_MISMATCH);
	RANK_TEXT(ctx, "reduce_scatter_v of int32, prod");
	RANK_TEXT(ctx, text);
	for (uint32_t i = 0; i < 30; i++)
		RANK_CHECK(ctx, out[i] == 0, "element %u was moved", i);
	RANK_DO(sum_of_ranks(ctx, comm));
	return rank_leave(ctx, comm, client);
}

static void test_counts_differ(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, N_RANKS, rank_counts_differ, NULL);
	node_stop(node);
}

/* ---- all_to_all_v: one pair disagrees ---- */

static rcclx_result exchange(struct rcclx_comm *comm, const struct rcclx_call_config *config,
	const int32_t *in, const uint64_t *sent, int32_t *out, const uint64_t *expected)
{
	static const uint64_t displs[N_RANKS] = {0, 10, 20};

	return rcclx_all_to_all_v(
		comm, in, sent, displs, out, expected, displs, RCCLX_INT32, config);
}

/* Rank 0 sends 4 elements to rank 1, which expects 5. */
static int rank_pair_disagrees(struct rank_ctx *ctx)
{
	const enum coll_mode *mode = ctx->arg;
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	uint64_t sent[N_RANKS] = {3, 3, 3};
	uint64_t expected[N_RANKS] = {3, 3, 3};
	int32_t in[30];
	int32_t out[30] = {0};

	memset(in, 0x55, sizeof(in));
	config.executor = *mode == COLL_DAEMON ? RCCLX_EXECUTOR_DAEMON : RCCLX_EXECUTOR_INLINE;
	if (ctx->rank == 0)
		sent[1] = 4;
	if (ctx->rank == 1)
		expected[0] = 5;
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	rcclx_result r = exchange(comm, &config, in, sent, out, expected);
	RANK_CHECK(ctx, r == RCCLX_ERR_MISMATCH, "%s: %s", rcclx_strerror(r), rcclx_last_error());
	/* Also the rank that is no side of it. */
	RANK_TEXT(ctx, "rank 0 sends 4 elements to rank 1, which expects 5");
	for (uint32_t i = 0; i < 30; i++)
		RANK_CHECK(ctx, out[i] == 0, "element %u was moved", i);
	RANK_DO(sum_of_ranks(ctx, comm));
	return rank_leave(ctx, comm, client);
}

static void test_pair_disagrees(void **state)
{
	static enum coll_mode modes[] = {COLL_INLINE, COLL_DAEMON};
	struct node *node = node_start(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		world_run(node, N_RANKS, rank_pair_disagrees, &modes[i]);
	node_stop(node);
}

/* ---- arguments that are wrong by themselves ---- */

#define HUGE_COUNT (UINT64_MAX / 2)

static int check_roots(struct rank_ctx *ctx, struct rcclx_comm *comm, float *x, float *y)
{
	struct rcclx_op *op = NULL;

	RANK_RESULT(ctx, rcclx_broadcast(comm, x, y, 4, RCCLX_FLOAT32, N_RANKS, NULL),
		RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "root is 3");
	RANK_RESULT(ctx, rcclx_reduce(comm, x, y, 4, RCCLX_FLOAT32, RCCLX_SUM, UINT32_MAX, NULL),
		RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "root is 4294967295");
	RANK_RESULT(ctx, rcclx_gather(comm, x, y, 4, RCCLX_FLOAT32, 64, NULL), RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_scatter(comm, x, y, 4, RCCLX_FLOAT32, 64, NULL), RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_scatter_start(comm, x, y, 4, RCCLX_FLOAT32, 3, NULL, &op),
		RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_send(comm, x, 4, RCCLX_FLOAT32, 3, NULL), RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "peer is 3");
	RANK_RESULT(ctx, rcclx_recv(comm, x, 4, RCCLX_FLOAT32, 77, NULL), RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "peer is 77");
	RANK_RESULT(
		ctx, rcclx_recv_start(comm, x, 4, RCCLX_FLOAT32, 77, NULL, &op), RCCLX_ERR_INVALID);
	RANK_CHECK(ctx, op == NULL, "a refused call gave an operation");
	return 0;
}

static int check_overlaps(struct rank_ctx *ctx, struct rcclx_comm *comm, float *x)
{
	static const uint64_t counts[N_RANKS] = {4, 4, 4};
	static const uint64_t displs[N_RANKS] = {0, 4, 8};
	static const uint64_t crossing[N_RANKS] = {0, 3, 8};
	uint32_t me = ctx->rank;

	RANK_RESULT(ctx, rcclx_all_reduce(comm, x, x + 2, 4, RCCLX_FLOAT32, RCCLX_SUM, NULL),
		RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "overlap");
	RANK_RESULT(ctx, rcclx_all_gather(comm, x + 4 * me + 1, x, 4, RCCLX_FLOAT32, NULL),
		RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "overlap");
	/* In place, but another rank's block. */
	RANK_RESULT(ctx,
		rcclx_reduce_scatter(
			comm, x, x + 4 * ((me + 1) % N_RANKS), 4, RCCLX_FLOAT32, RCCLX_SUM, NULL),
		RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_all_to_all(comm, x, x, 4, RCCLX_FLOAT32, NULL), RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "in-place");
	RANK_RESULT(ctx,
		rcclx_all_to_all_v(
			comm, x, counts, displs, x + 8, counts, displs, RCCLX_FLOAT32, NULL),
		RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_all_gather_v(comm, x + 40, x, counts, crossing, RCCLX_FLOAT32, NULL),
		RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "blocks 0 and 1");
	RANK_RESULT(ctx,
		rcclx_all_gather_v(comm, x + 4 * me + 1, x, counts, displs, RCCLX_FLOAT32, NULL),
		RCCLX_ERR_INVALID);
	return 0;
}

static int check_overflows(struct rank_ctx *ctx, struct rcclx_comm *comm, float *x, float *y)
{
	static const uint64_t counts[N_RANKS] = {HUGE_COUNT, HUGE_COUNT, HUGE_COUNT};
	static const uint64_t displs[N_RANKS] = {0, 1, 2};
	uint32_t type = RCCLX_FLOAT32;

	RANK_RESULT(ctx, rcclx_all_reduce(comm, x, y, HUGE_COUNT, type, RCCLX_SUM, NULL),
		RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "9223372036854775807");
	RANK_RESULT(ctx, rcclx_all_gather(comm, x, y, HUGE_COUNT, type, NULL), RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_all_to_all(comm, x, y, HUGE_COUNT, type, NULL), RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_reduce_scatter(comm, x, y, HUGE_COUNT, type, RCCLX_SUM, NULL),
		RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_broadcast(comm, x, y, HUGE_COUNT, type, 0, NULL), RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_send(comm, x, HUGE_COUNT, type, 0, NULL), RCCLX_ERR_INVALID);
	RANK_RESULT(
		ctx, rcclx_all_gather_v(comm, x, y, counts, displs, type, NULL), RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_reduce_scatter_v(comm, x, y, counts, type, RCCLX_SUM, NULL),
		RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_all_to_all_v(comm, x, counts, displs, y, counts, displs, type, NULL),
		RCCLX_ERR_INVALID);
	return 0;
}

/* A refused call is as if it had not been made: the communicator goes on, also in a group. */
static int rank_arguments(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	float x[64] = {0};
	float y[64] = {0};
	int32_t sum = (int32_t)ctx->rank;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_DO(check_roots(ctx, comm, x, y));
	RANK_DO(check_overlaps(ctx, comm, x));
	RANK_DO(check_overflows(ctx, comm, x, y));
	RANK_DO(sum_of_ranks(ctx, comm));
	RANK_OK(ctx, rcclx_group_start());
	RANK_DO(check_roots(ctx, comm, x, y));
	RANK_OK(ctx, rcclx_all_reduce(comm, &sum, &sum, 1, RCCLX_INT32, RCCLX_SUM, NULL));
	RANK_DO(check_overflows(ctx, comm, x, y));
	RANK_OK(ctx, rcclx_group_end());
	RANK_CHECK(ctx, sum == 3, "sum is %d", sum);
	return rank_leave(ctx, comm, client);
}

static void test_arguments(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, N_RANKS, rank_arguments, NULL);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_inline),
		HARNESS_TEST(test_daemon),
		HARNESS_TEST(test_started),
		HARNESS_TEST(test_group),
		HARNESS_TEST(test_pairings),
		HARNESS_TEST(test_counts_differ),
		HARNESS_TEST(test_pair_disagrees),
		HARNESS_TEST(test_arguments),
	};

	return HARNESS_RUN("colls_mismatch", tests);
}
