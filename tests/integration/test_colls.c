/* SPDX-License-Identifier: MIT */
/* Every collective, every way to call it, against the oracle, on real processes. */
#include "coll_case.h"
#include "harness.h"

#include "../../kernels/coll_types.h"

#include <signal.h>
#include <string.h>

static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL,
	RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V,
	RX_ALL_TO_ALL_V};

#define N_COLLS (sizeof(colls) / sizeof(colls[0]))

struct sweep {
	uint64_t max_count;
	uint32_t n_cases;
	bool inline_only;
};

static uint32_t draw(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

/* Case @i, the same on all ranks. */
static struct coll_case case_of(uint32_t i, uint32_t n_ranks, const struct sweep *sweep)
{
	static const uint64_t counts[] = {
		0, 1, 2, 3, 7, 8, 9, 24, 25, 100, 511, 513, 1000, 4097, 9001, 20000};
	uint32_t state = i * 7919u + n_ranks;
	uint64_t count = counts[draw(&state, sizeof(counts) / sizeof(counts[0]))];
	struct coll_case c = {
		.coll = colls[i % N_COLLS],
		.dtype = draw(&state, RX_DTYPE_N),
		.op = draw(&state, RX_REDOP_N),
		.count = count % (sweep->max_count + 1),
		.root = draw(&state, n_ranks),
		.mode = sweep->inline_only ? COLL_INLINE : draw(&state, COLL_MODE_N),
		.memory = draw(&state, COLL_MEMORY_N),
		.in_place = draw(&state, 2),
		.misalign = draw(&state, 9),
		.seed = i,
	};

	if (!rx_coll_reduces(c.coll))
		c.op = 0;
	return c;
}

static int rank_sweep(struct rank_ctx *ctx)
{
	const struct sweep *sweep = ctx->arg;
	struct coll_rank c;

	RANK_DO(coll_open(&c, ctx, (ctx->n_ranks * (sweep->max_count + 1) + 64) * 8 + 4096));
	for (uint32_t i = 0; i < sweep->n_cases; i++) {
		struct coll_case what = case_of(i, ctx->n_ranks, sweep);

		RANK_DO(coll_run(&c, &what));
	}
	return coll_close(&c);
}

static void run(uint32_t n_ranks, struct sweep sweep)
{
	struct node *node = node_start(NULL);

	world_run(node, n_ranks, rank_sweep, &sweep);
	node_stop(node);
}

static void test_one_and_two(void **state)
{
	(void)state;
	run(1, (struct sweep){20000, 20 * N_COLLS, false});
	run(2, (struct sweep){20000, 60 * N_COLLS, false});
}

static void test_three_to_seven(void **state)
{
	(void)state;
	run(3, (struct sweep){20000, 24 * N_COLLS, false});
	run(5, (struct sweep){9001, 16 * N_COLLS, false});
	run(6, (struct sweep){4097, 12 * N_COLLS, false});
	run(7, (struct sweep){4097, 12 * N_COLLS, false});
}

static void test_many(void **state)
{
	(void)state;
	run(8, (struct sweep){1000, 10 * N_COLLS, false});
	run(16, (struct sweep){513, 3 * N_COLLS, false});
	run(64, (struct sweep){25, 1 * N_COLLS, true});
}

/* ---- the same small call again ---- */

/*
 * From the second time on much is not looked at any more, whatever the values, the memory and the
 * alignment are. @which: one of the kinds, of which more are in use than are remembered.
 */
static struct coll_case again(uint32_t i, uint32_t which, uint32_t n_ranks)
{
	static const uint8_t kinds[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER,
		RX_ALL_TO_ALL, RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER};
	static const uint64_t counts[] = {0, 1, 2, 3, 5, 11, 24, 31, 64, 200, 511};
	uint32_t kind = which * 2654435761u;
	uint32_t state = i * 7919u + which;
	struct coll_case c = {
		.coll = kinds[which % RX_ARRAY_SIZE(kinds)],
		.dtype = draw(&kind, RX_DTYPE_N),
		.op = draw(&kind, RX_REDOP_N),
		.count = counts[draw(&kind, RX_ARRAY_SIZE(counts))],
		.root = draw(&kind, n_ranks),
		.mode = COLL_INLINE,
		.memory = draw(&state, COLL_MEMORY_N),
		.in_place = draw(&state, 2),
		.misalign = draw(&state, 9),
		.seed = i,
	};

	if (!rx_coll_reduces(c.coll))
		c.op = 0;
	return c;
}

#define KINDS 80u
#define TIMES 12u

static int rank_again(struct rank_ctx *ctx)
{
	struct coll_rank c;

	RANK_DO(coll_open(&c, ctx, (ctx->n_ranks * 512ull + 64) * 8 + 4096));
	/* Each some times in a row, then all in turn. */
	for (uint32_t i = 0; i < 2 * KINDS * TIMES; i++) {
		uint32_t which = i < KINDS * TIMES ? i / TIMES : i % KINDS;
		struct coll_case what = again(i, which, ctx->n_ranks);

		RANK_DO(coll_run(&c, &what));
	}
	return coll_close(&c);
}

static void test_again(void **state)
{
	static const uint32_t sizes[] = {1, 2, 3, 8};
	struct node *node = node_start(NULL);

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(sizes); i++)
		world_run(node, sizes[i], rank_again, NULL);
	node_stop(node);
}

/* Ranks that have done both kinds before disagree about which comes next, and go on. */
static int rank_again_mismatch(struct rank_ctx *ctx)
{
	struct rcclx_call_config soon = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	int32_t in[3] = {1, 2, 3};
	int32_t out[3] = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t i = 0; i < 20; i++) {
		uint64_t mine = i % 5 == 4 && ctx->rank == 1 ? 3 : 2;

		for (uint64_t count = 2; count <= 3; count++)
			RANK_OK(ctx, rcclx_all_reduce(
					     comm, in, out, count, RCCLX_INT32, RCCLX_SUM, NULL));
		RANK_CHECK(ctx, out[2] == (int32_t)(3 * ctx->n_ranks), "out[2] is %d", out[2]);
		memset(out, 0, sizeof(out));
		if (i % 5 != 4)
			continue;
		RANK_RESULT(ctx,
			rcclx_all_reduce(comm, in, out, mine, RCCLX_INT32, RCCLX_SUM, NULL),
			RCCLX_ERR_MISMATCH);
		RANK_TEXT(ctx, "all_reduce of 2 int32");
		RANK_TEXT(ctx, "all_reduce of 3 int32");
		RANK_CHECK(ctx, out[0] == 0, "something was moved");
	}
	/* Bad buffers are seen as ever, and the others wait for a good call. */
	RANK_RESULT(ctx, rcclx_all_reduce(comm, in, in + 1, 2, RCCLX_INT32, RCCLX_SUM, NULL),
		RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_all_reduce(comm, NULL, out, 2, RCCLX_INT32, RCCLX_SUM, NULL),
		RCCLX_ERR_INVALID);
	RANK_OK(ctx, rcclx_all_reduce(comm, in, in, 2, RCCLX_INT32, RCCLX_SUM, NULL));
	/* And so are time limits. */
	soon.timeout_ns = 100000000;
	if (ctx->rank == 0) {
		RANK_RESULT(ctx, rcclx_all_reduce(comm, in, out, 2, RCCLX_INT32, RCCLX_SUM, &soon),
			RCCLX_ERR_TIMEOUT);
		RANK_TEXT(ctx, "did not come within the time given");
		RANK_RESULT(ctx, rcclx_all_reduce(comm, in, out, 2, RCCLX_INT32, RCCLX_SUM, NULL),
			RCCLX_ERR_TIMEOUT);
		RANK_TEXT(ctx, "unusable since");
	}
	RANK_DO(rank_sync(ctx));
	return rank_leave(ctx, comm, client);
}

static void test_again_mismatch(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 3, rank_again_mismatch, NULL);
	node_stop(node);
}

/* ---- sends and receives ---- */

#define P2P_COUNT 5000u

/* Everybody sends to everybody, itself too, in an order that differs by rank. */
static int rank_exchange(struct rank_ctx *ctx)
{
	uint32_t n = ctx->n_ranks;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	static int32_t out[WORLD_MAX][P2P_COUNT];
	static int32_t in[WORLD_MAX][P2P_COUNT];

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t round = 0; round < 20; round++) {
		uint64_t count = round == 0 ? 0 : (round * 263u) % P2P_COUNT + 1;

		for (uint32_t r = 0; r < n; r++)
			for (uint64_t i = 0; i < count; i++)
				out[r][i] = (int32_t)(ctx->rank * 1000003u + r * 7919u + i + round);
		RANK_OK(ctx, rcclx_group_start());
		for (uint32_t k = 0; k < n; k++) {
			uint32_t to = (ctx->rank * 5 + k * 3 + round) % n;
			uint32_t from = (n + ctx->rank - k) % n;

			/* 3 divides n for n = 3, 6: then k alone chooses. */
			if (n % 3 == 0)
				to = (ctx->rank + k) % n;
			RANK_OK(ctx, rcclx_send(comm, out[to], count, RCCLX_INT32, to, NULL));
			RANK_OK(ctx, rcclx_recv(comm, in[from], count, RCCLX_INT32, from, NULL));
		}
		RANK_OK(ctx, rcclx_group_end());
		for (uint32_t r = 0; r < n; r++)
			for (uint64_t i = 0; i < count; i++)
				RANK_CHECK(ctx,
					in[r][i] == (int32_t)(r * 1000003u + ctx->rank * 7919u + i +
							      round),
					"round %u: element %llu from rank %u is wrong", round,
					(unsigned long long)i, r);
	}
	return rank_leave(ctx, comm, client);
}

static void test_exchange(void **state)
{
	static const uint32_t sizes[] = {1, 2, 3, 5, 8};
	struct node *node = node_start(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		world_run(node, sizes[i], rank_exchange, NULL);
	node_stop(node);
}

static int rank_ring(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	uint64_t token = 0;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t round = 0; round < 20; round++) {
		uint32_t next = (ctx->rank + 1) % ctx->n_ranks;
		uint32_t before = (ctx->rank + ctx->n_ranks - 1) % ctx->n_ranks;

		if (ctx->rank > 0)
			RANK_OK(ctx, rcclx_recv(comm, &token, 1, RCCLX_UINT64, before, NULL));
		token++;
		RANK_OK(ctx, rcclx_send(comm, &token, 1, RCCLX_UINT64, next, NULL));
		if (ctx->rank == 0)
			RANK_OK(ctx, rcclx_recv(comm, &token, 1, RCCLX_UINT64, before, NULL));
	}
	RANK_CHECK(ctx, ctx->rank != 0 || token == 20 * ctx->n_ranks, "token is %llu",
		(unsigned long long)token);
	return rank_leave(ctx, comm, client);
}

static void test_ring(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 4, rank_ring, NULL);
	node_stop(node);
}

static int rank_p2p_mismatch(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	int32_t data[8] = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	if (ctx->rank == 0)
		RANK_RESULT(
			ctx, rcclx_send(comm, data, 4, RCCLX_INT32, 1, NULL), RCCLX_ERR_MISMATCH);
	else
		RANK_RESULT(
			ctx, rcclx_recv(comm, data, 8, RCCLX_INT32, 0, NULL), RCCLX_ERR_MISMATCH);
	/* The communicator is still good. */
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	return rank_leave(ctx, comm, client);
}

static void test_p2p_mismatch(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_p2p_mismatch, NULL);
	node_stop(node);
}

/* ---- groups ---- */

/* Two communicators used in opposite order by the ranks, all kinds of calls in one group. */
static int rank_group(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comms[2] = {NULL, NULL};
	float x[2] = {1, 2};
	float y[2] = {0, 0};
	float got = 0;
	uint32_t peer = ctx->rank ^ 1;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comms[0]));
	RANK_DO(rank_comm(ctx, client, 1, &comms[1]));
	for (uint32_t round = 0; round < 50; round++) {
		RANK_OK(ctx, rcclx_group_start());
		for (uint32_t k = 0; k < 2; k++) {
			uint32_t c = (k + ctx->rank) % 2;

			RANK_OK(ctx, rcclx_all_reduce(comms[c], &x[c], &y[c], 1, RCCLX_FLOAT32,
					     RCCLX_SUM, NULL));
		}
		RANK_OK(ctx, rcclx_group_start());
		RANK_OK(ctx, rcclx_recv(comms[0], &got, 1, RCCLX_FLOAT32, peer, NULL));
		RANK_OK(ctx, rcclx_group_end());
		RANK_CHECK(ctx, got == 0, "an inner group was executed");
		RANK_OK(ctx, rcclx_send(comms[0], &x[1], 1, RCCLX_FLOAT32, peer, NULL));
		RANK_OK(ctx, rcclx_group_end());
		RANK_CHECK(ctx, y[0] == 2 && y[1] == 4 && got == 2, "%g %g %g", (double)y[0],
			(double)y[1], (double)got);
		got = 0;
	}
	RANK_RESULT(ctx, rcclx_group_end(), RCCLX_ERR_INVALID);
	RANK_OK(ctx, rcclx_comm_destroy(comms[1]));
	return rank_leave(ctx, comms[0], client);
}

static void test_group(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_group, NULL);
	node_stop(node);
}

/* One call of a group disagrees with the peer: the others are done, the first error is told. */
static int rank_group_error(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comms[2] = {NULL, NULL};
	int32_t x[4] = {1, 1, 1, 1};
	int32_t y[4] = {0};
	int32_t z = 0;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comms[0]));
	RANK_DO(rank_comm(ctx, client, 1, &comms[1]));
	RANK_OK(ctx, rcclx_group_start());
	RANK_OK(ctx, rcclx_all_reduce(comms[0], x, y, 2 + ctx->rank, RCCLX_INT32, RCCLX_SUM, NULL));
	RANK_OK(ctx, rcclx_all_reduce(comms[1], x, &z, 1, RCCLX_INT32, RCCLX_SUM, NULL));
	RANK_RESULT(ctx, rcclx_group_end(), RCCLX_ERR_MISMATCH);
	RANK_TEXT(ctx, "all_reduce of 2 int32");
	RANK_TEXT(ctx, "all_reduce of 3 int32");
	RANK_CHECK(ctx, z == 2 && y[0] == 0, "z %d, y %d", z, y[0]);
	/* Both are still good. */
	RANK_OK(ctx, rcclx_barrier(comms[0], NULL));
	RANK_OK(ctx, rcclx_barrier(comms[1], NULL));
	RANK_OK(ctx, rcclx_comm_destroy(comms[1]));
	return rank_leave(ctx, comms[0], client);
}

static void test_group_error(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_group_error, NULL);
	node_stop(node);
}

/* ---- derived communicators ---- */

static int sum_ranks(struct rank_ctx *ctx, struct rcclx_comm *comm, int32_t expected)
{
	int32_t mine = (int32_t)ctx->rank;
	int32_t sum = -1;

	RANK_OK(ctx, rcclx_all_reduce(comm, &mine, &sum, 1, RCCLX_INT32, RCCLX_SUM, NULL));
	RANK_CHECK(ctx, sum == expected, "sum of ranks is %d, not %d", sum, expected);
	return 0;
}

static int rank_split(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_comm *half = NULL;
	struct rcclx_comm *twin = NULL;
	int32_t color = ctx->rank == 4 ? RCCLX_NO_COLOR : (int32_t)(ctx->rank % 2);

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t round = 0; round < 5; round++) {
		RANK_OK(ctx, rcclx_comm_split(comm, color, -(int32_t)ctx->rank, NULL, &half));
		if (ctx->rank == 4) {
			RANK_CHECK(ctx, half == NULL, "a communicator without color");
		} else {
			/* Reversed by the keys: 3, 1 and 2, 0. */
			RANK_CHECK(ctx, rcclx_comm_size(half) == 2, "size");
			RANK_CHECK(ctx, rcclx_comm_rank(half) == (ctx->rank < 2), "rank");
			RANK_DO(sum_ranks(ctx, half, color ? 4 : 2));
			RANK_OK(ctx, rcclx_comm_destroy(half));
		}
		RANK_OK(ctx, rcclx_comm_duplicate(comm, NULL, &twin));
		RANK_DO(sum_ranks(ctx, twin, 10));
		RANK_OK(ctx, rcclx_comm_destroy(twin));
		RANK_DO(sum_ranks(ctx, comm, 10));
	}
	return rank_leave(ctx, comm, client);
}

static void test_split(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 5, rank_split, NULL);
	node_stop(node);
}

/* Rank 1 dies, rank 3 is excluded; the others go on. */
static int rank_shrink(struct rank_ctx *ctx)
{
	static const uint32_t excluded[] = {3};
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_comm *rest = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_DO(sum_ranks(ctx, comm, 10));
	if (ctx->rank == 1) {
		flag_set(ctx->shared, 0, 1);
		test_sleep_ms(20000);
	}
	RANK_RESULT(ctx, rcclx_barrier(comm, NULL), RCCLX_ERR_PEER_LOST);
	if (ctx->rank != 3) {
		RANK_OK(ctx, rcclx_comm_shrink(comm, excluded, 1, NULL, &rest));
		RANK_CHECK(ctx, rcclx_comm_size(rest) == 3, "size %u", rcclx_comm_size(rest));
		RANK_DO(sum_ranks(ctx, rest, 6));
		RANK_OK(ctx, rcclx_comm_destroy(rest));
	}
	return rank_leave(ctx, comm, client);
}

static void test_shrink(void **state)
{
	struct node *node = node_start(NULL);
	struct world *world = world_start(node, 5, rank_shrink, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 10000));
	world_kill(world, 1, SIGKILL);
	world_join(world);
	node_stop(node);
}

/* Two processes of three ranks each, all of a process in one thread, as ncclCommInitAll users do.
 */
#define PER_PROCESS 3u

static int open_many(
	struct rank_ctx *ctx, struct rcclx_client **client_p, struct rcclx_comm **comms)
{
	struct rcclx_unique_id id;

	RANK_DO(rank_connect(ctx, client_p));
	RANK_DO(rank_id(ctx, *client_p, 0, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_group_start());
	for (uint32_t k = 0; k < PER_PROCESS; k++)
		RANK_OK(ctx, rcclx_comm_create(*client_p, &id, PER_PROCESS * ctx->n_ranks,
				     ctx->rank * PER_PROCESS + k, NULL, &comms[k]));
	RANK_OK(ctx, rcclx_group_end());
	return 0;
}

static int close_many(struct rank_ctx *ctx, struct rcclx_client *client, struct rcclx_comm **comms)
{
	for (uint32_t k = 0; k < PER_PROCESS; k++)
		RANK_OK(ctx, rcclx_comm_destroy(comms[k]));
	return rank_leave(ctx, NULL, client);
}

static int rank_many_in_one(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comms[PER_PROCESS] = {NULL};
	int32_t in[PER_PROCESS];
	int32_t out[PER_PROCESS];
	int32_t all[PER_PROCESS][2 * PER_PROCESS];
	uint32_t n = PER_PROCESS * ctx->n_ranks;

	RANK_DO(open_many(ctx, &client, comms));
	for (uint32_t round = 0; round < 20; round++) {
		RANK_OK(ctx, rcclx_group_start());
		for (uint32_t k = 0; k < PER_PROCESS; k++) {
			in[k] = (int32_t)(rcclx_comm_rank(comms[k]) + round);
			RANK_OK(ctx, rcclx_all_reduce(comms[k], &in[k], &out[k], 1, RCCLX_INT32,
					     RCCLX_SUM, NULL));
			RANK_OK(ctx,
				rcclx_all_gather(comms[k], &in[k], all[k], 1, RCCLX_INT32, NULL));
		}
		RANK_OK(ctx, rcclx_group_end());
		for (uint32_t k = 0; k < PER_PROCESS; k++) {
			RANK_CHECK(ctx, out[k] == (int32_t)(n * (n - 1) / 2 + n * round), "sum %d",
				out[k]);
			for (uint32_t r = 0; r < n; r++)
				RANK_CHECK(ctx, all[k][r] == (int32_t)(r + round), "gathered %d",
					all[k][r]);
		}
	}
	return close_many(ctx, client, comms);
}

/* The same with blocks of different lengths, in private memory, started and then waited for. */
static int rank_many_in_one_v(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comms[PER_PROCESS] = {NULL};
	struct rcclx_op *ops[PER_PROCESS] = {NULL};
	uint64_t counts[2 * PER_PROCESS];
	uint64_t displs[2 * PER_PROCESS];
	int32_t in[PER_PROCESS][2 * PER_PROCESS];
	int32_t all[PER_PROCESS][64];
	uint32_t n = PER_PROCESS * ctx->n_ranks;

	RANK_DO(open_many(ctx, &client, comms));
	for (uint32_t round = 0; round < 20; round++) {
		/* Rank r has r elements at 10 * r. */
		for (uint32_t r = 0; r < n; r++) {
			counts[r] = r;
			displs[r] = 10ull * r;
		}
		for (uint32_t k = 0; k < PER_PROCESS; k++) {
			for (uint32_t i = 0; i < n; i++)
				in[k][i] = (int32_t)(100 * rcclx_comm_rank(comms[k]) + round + i);
			memset(all[k], 0xff, sizeof(all[k]));
			RANK_OK(ctx, rcclx_all_gather_v_start(comms[k], in[k], all[k], counts,
					     displs, RCCLX_INT32, NULL, &ops[k]));
		}
		/* The arrays are needed only until the calls return. */
		memset(counts, 0xff, sizeof(counts));
		memset(displs, 0xff, sizeof(displs));
		for (uint32_t k = 0; k < PER_PROCESS; k++) {
			RANK_OK(ctx, rcclx_op_wait(ops[k], RCCLX_FOREVER));
			RANK_OK(ctx, rcclx_op_free(ops[k]));
			for (uint32_t i = 0; i < 64; i++) {
				uint32_t r = i / 10;
				int32_t wanted = r < n && i % 10 < r
							 ? (int32_t)(100 * r + round + i % 10)
							 : -1;

				RANK_CHECK(
					ctx, all[k][i] == wanted, "element %u is %d", i, all[k][i]);
			}
		}
	}
	return close_many(ctx, client, comms);
}

static void test_many_in_one(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_many_in_one, NULL);
	world_run(node, 2, rank_many_in_one_v, NULL);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_one_and_two),
		HARNESS_TEST(test_three_to_seven),
		HARNESS_TEST(test_many),
		HARNESS_TEST(test_again),
		HARNESS_TEST(test_again_mismatch),
		HARNESS_TEST(test_exchange),
		HARNESS_TEST(test_ring),
		HARNESS_TEST(test_p2p_mismatch),
		HARNESS_TEST(test_group),
		HARNESS_TEST(test_group_error),
		HARNESS_TEST(test_many_in_one),
		HARNESS_TEST(test_split),
		HARNESS_TEST(test_shrink),
	};

	return HARNESS_RUN("colls", tests);
}
