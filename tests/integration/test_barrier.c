/* SPDX-License-Identifier: MIT */
/* A barrier separates: nobody leaves it before everybody has come. */
#include "harness.h"

struct barrier_arg {
	uint32_t executor;
	uint32_t n_rounds;
	bool start; /* by rcclx_barrier_start() */
};

static int one_barrier(struct rank_ctx *ctx, struct rcclx_comm *comm, const struct barrier_arg *arg)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_op *op = NULL;

	config.executor = arg->executor;
	if (!arg->start) {
		RANK_OK(ctx, rcclx_barrier(comm, &config));
		return 0;
	}
	RANK_OK(ctx, rcclx_barrier_start(comm, &config, &op));
	RANK_OK(ctx, rcclx_op_wait(op, RCCLX_FOREVER));
	RANK_OK(ctx, rcclx_op_free(op));
	return 0;
}

static int rank_barriers(struct rank_ctx *ctx)
{
	const struct barrier_arg *arg = ctx->arg;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t round = 1; round <= arg->n_rounds; round++) {
		/* One rank comes late, another one every time. */
		if (round % 16 == ctx->rank)
			test_sleep_ms(1);
		atomic_store(&ctx->shared->values[ctx->rank], round);
		RANK_DO(one_barrier(ctx, comm, arg));
		for (uint32_t r = 0; r < ctx->n_ranks; r++) {
			uint64_t now = atomic_load(&ctx->shared->values[r]);

			RANK_CHECK(ctx, now == round || now == round + 1,
				"rank %u is in round %llu, this one has left barrier %u", r,
				(unsigned long long)now, round);
		}
	}
	return rank_leave(ctx, comm, client);
}

static void run_barriers(uint32_t executor, bool start, uint32_t n_rounds)
{
	static const uint32_t sizes[] = {1, 2, 3, 4, 8};
	struct node *node = node_start(NULL);
	struct barrier_arg arg = {executor, n_rounds, start};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		world_run(node, sizes[i], rank_barriers, &arg);
	node_stop(node);
}

static void test_inline(void **state)
{
	(void)state;
	run_barriers(RCCLX_EXECUTOR_INLINE, false, 2000);
}

static void test_daemon(void **state)
{
	(void)state;
	run_barriers(RCCLX_EXECUTOR_DAEMON, false, 500);
}

static void test_started(void **state)
{
	(void)state;
	run_barriers(RCCLX_EXECUTOR_AUTO, true, 500);
}

static void test_64_ranks(void **state)
{
	struct node *node = node_start(NULL);
	struct barrier_arg arg = {RCCLX_EXECUTOR_AUTO, 20, false};

	(void)state;
	world_run(node, 64, rank_barriers, &arg);
	arg.executor = RCCLX_EXECUTOR_DAEMON;
	world_run(node, 64, rank_barriers, &arg);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_inline),
		HARNESS_TEST(test_daemon),
		HARNESS_TEST(test_started),
		HARNESS_TEST(test_64_ranks),
	};

	return HARNESS_RUN("barrier", tests);
}
