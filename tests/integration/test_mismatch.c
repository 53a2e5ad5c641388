/* SPDX-License-Identifier: MIT */
/* Ranks that call with different arguments are told both sides, and no data moves. */
#include "harness.h"

#include <stdlib.h>

#define ODD_RANK 2u /* calls differently from the rest */
#define N_RANKS  3u

struct call {
	bool barrier;
	uint64_t count;
	uint32_t dtype;
	uint32_t op;
	const char *word; /* has to be in the texts */
};

struct mismatch {
	struct call usual;
	struct call odd;
};

static const struct mismatch cases[] = {
	{{false, 1000, RCCLX_FLOAT32, RCCLX_SUM, "1000"},
		{false, 1001, RCCLX_FLOAT32, RCCLX_SUM, "1001"}},
	{{false, 2, RCCLX_FLOAT32, RCCLX_SUM, "float32"},
		{false, 2, RCCLX_INT32, RCCLX_SUM, "int32"}},
	{{false, 2, RCCLX_FLOAT16, RCCLX_SUM, "sum"}, {false, 2, RCCLX_FLOAT16, RCCLX_MAX, "max"}},
	{{true, 0, 0, 0, "barrier"}, {false, 16, RCCLX_INT8, RCCLX_MIN, "all_reduce"}},
	{{false, 1 << 20, RCCLX_FLOAT32, RCCLX_SUM, "1048576"},
		{false, (1 << 20) + 1, RCCLX_FLOAT32, RCCLX_SUM, "1048577"}},
	/* One side small, the other large: they use different algorithms. */
	{{false, 1, RCCLX_FLOAT32, RCCLX_SUM, "1 "},
		{false, 1 << 18, RCCLX_FLOAT32, RCCLX_SUM, "262144"}},
	{{false, 0, RCCLX_FLOAT32, RCCLX_SUM, "0 "}, {true, 0, 0, 0, "barrier"}},
	{{false, 64, RCCLX_BFLOAT16, RCCLX_PREMUL_SUM, "premul"},
		{false, 64, RCCLX_BFLOAT16, RCCLX_AVG, "avg"}},
};

#define BUFFER_BYTES (((1u << 20) + 1) * 4)

struct buffers {
	uint8_t *send;
	uint8_t *recv;
};

struct mismatch_arg {
	uint32_t executor;
	bool registered;
	uint64_t within_ms;
};

static int get_buffers(
	struct rank_ctx *ctx, struct rcclx_client *client, bool registered, struct buffers *b)
{
	void *memory[2] = {NULL, NULL};

	for (int i = 0; i < 2; i++) {
		if (registered)
			RANK_OK(ctx, rcclx_mem_alloc(client, BUFFER_BYTES, &memory[i]));
		else
			memory[i] = malloc(BUFFER_BYTES);
		RANK_CHECK(ctx, memory[i] != NULL, "no memory");
	}
	*b = (struct buffers){memory[0], memory[1]};
	memset(b->send, (int)(ctx->rank + 1), BUFFER_BYTES);
	memset(b->recv, 0xa5, BUFFER_BYTES);
	return 0;
}

static int put_buffers(
	struct rank_ctx *ctx, struct rcclx_client *client, bool registered, struct buffers *b)
{
	for (size_t i = 0; i < BUFFER_BYTES; i++)
		RANK_CHECK(ctx, b->recv[i] == 0xa5 && b->send[i] == ctx->rank + 1,
			"byte %zu of a buffer was written", i);
	if (!registered) {
		free(b->send);
		free(b->recv);
		return 0;
	}
	RANK_OK(ctx, rcclx_mem_free(client, b->send));
	RANK_OK(ctx, rcclx_mem_free(client, b->recv));
	return 0;
}

static rcclx_result do_call(struct rcclx_comm *comm, const struct call *call,
	const struct buffers *b, uint32_t executor)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	uint64_t scalar = 0;

	config.executor = executor;
	config.scalar = &scalar;
	if (call->barrier)
		return rcclx_barrier(comm, &config);
	return rcclx_all_reduce(
		comm, b->send, b->recv, call->count, call->dtype, call->op, &config);
}

static int check_good(struct rank_ctx *ctx, struct rcclx_comm *comm)
{
	int32_t x = (int32_t)ctx->rank;

	RANK_OK(ctx, rcclx_all_reduce(comm, &x, &x, 1, RCCLX_INT32, RCCLX_SUM, NULL));
	RANK_CHECK(ctx, x == 3, "sum is %d", x);
	return 0;
}

static int rank_mismatch(struct rank_ctx *ctx)
{
	const struct mismatch_arg *arg = ctx->arg;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct buffers b = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(get_buffers(ctx, client, arg->registered, &b));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct call *call = ctx->rank == ODD_RANK ? &cases[i].odd : &cases[i].usual;
		uint64_t start = test_now_ms();
		rcclx_result r = do_call(comm, call, &b, arg->executor);

		RANK_CHECK(ctx, r == RCCLX_ERR_MISMATCH, "case %zu: %s; \"%s\"", i,
			rcclx_strerror(r), rcclx_last_error());
		RANK_WITHIN(ctx, start, arg->within_ms);
		RANK_TEXT(ctx, cases[i].usual.word);
		RANK_TEXT(ctx, cases[i].odd.word);
		RANK_TEXT(ctx, "rank");
		/* The communicator is good, also for the next case. */
		RANK_OK(ctx, rcclx_comm_status(comm));
		RANK_DO(check_good(ctx, comm));
	}
	/* Only now: every rank has left every operation. */
	RANK_DO(put_buffers(ctx, client, arg->registered, &b));
	return rank_leave(ctx, comm, client);
}

static void run_mismatch(uint32_t executor, bool registered)
{
	struct node *node = node_start(NULL);
	struct mismatch_arg arg = {executor, registered, 2000};

	world_run(node, N_RANKS, rank_mismatch, &arg);
	node_stop(node);
}

static void test_inline(void **state)
{
	(void)state;
	run_mismatch(RCCLX_EXECUTOR_INLINE, false);
	run_mismatch(RCCLX_EXECUTOR_INLINE, true);
}

static void test_daemon(void **state)
{
	(void)state;
	run_mismatch(RCCLX_EXECUTOR_DAEMON, false);
	run_mismatch(RCCLX_EXECUTOR_DAEMON, true);
}

/* ---- started operations: each one is judged by itself ---- */

static int rank_started(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_op *ops[6] = {NULL};
	int32_t data[6][8] = {{0}};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t k = 0; k < 6; k++) {
		/* Every other operation is called with a different count by one rank. */
		uint64_t count = k % 2 == 1 && ctx->rank == ODD_RANK ? 7 : 8;

		for (int i = 0; i < 8; i++)
			data[k][i] = (int32_t)(ctx->rank + k);
		RANK_OK(ctx, rcclx_all_reduce_start(comm, data[k], data[k], count, RCCLX_INT32,
				     RCCLX_SUM, NULL, &ops[k]));
	}
	for (uint32_t k = 6; k-- > 0;) {
		bool odd = k % 2 == 1;

		RANK_RESULT(ctx, rcclx_op_wait(ops[k], RCCLX_FOREVER),
			odd ? RCCLX_ERR_MISMATCH : RCCLX_OK);
		RANK_OK(ctx, rcclx_op_free(ops[k]));
		RANK_CHECK(ctx, data[k][0] == (int32_t)(odd ? ctx->rank + k : 3 + 3 * k),
			"op %u gave %d", k, data[k][0]);
	}
	RANK_DO(check_good(ctx, comm));
	return rank_leave(ctx, comm, client);
}

static void test_started(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, N_RANKS, rank_started, NULL);
	node_stop(node);
}

/* ---- one rank inline, the others by the daemon ---- */

static int rank_executors(struct rank_ctx *ctx)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	uint32_t odd_one = *(const uint32_t *)ctx->arg;
	float send[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	float recv[8] = {-1, -1, -1, -1, -1, -1, -1, -1};

	config.executor = ctx->rank == odd_one ? RCCLX_EXECUTOR_DAEMON : RCCLX_EXECUTOR_INLINE;
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	uint64_t start = test_now_ms();
	rcclx_result r = rcclx_all_reduce(comm, send, recv, 8, RCCLX_FLOAT32, RCCLX_SUM, &config);
	RANK_CHECK(ctx, r == RCCLX_ERR_MISMATCH, "%s: %s", rcclx_strerror(r), rcclx_last_error());
	RANK_WITHIN(ctx, start, 2000);
	for (int i = 0; i < 8; i++)
		RANK_CHECK(ctx, recv[i] == -1.0f, "element %d was written", i);
	return rank_leave(ctx, comm, client);
}

static void test_executors(void **state)
{
	static const struct node_options default_config = {.config = ""};
	struct node *node = node_start(&default_config);

	(void)state;
	/* The daemon may report the stall that the disagreement is at first. */
	node_expect(node, "late ranks", 0, 2);
	for (uint32_t odd = 0; odd < 2; odd++)
		world_run(node, 2, rank_executors, &odd);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_inline),
		HARNESS_TEST(test_daemon),
		HARNESS_TEST(test_started),
		HARNESS_TEST(test_executors),
	};

	return HARNESS_RUN("mismatch", tests);
}
