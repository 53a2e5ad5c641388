/* SPDX-License-Identifier: MIT */
/* A client forks: the child's calls fail and change nothing, the session is the parent's. */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct things {
	struct rcclx_client *client;
	struct rcclx_comm *comm;
	struct rcclx_op *op;
	void *memory;
};

static int get_things(struct rank_ctx *ctx, struct things *t)
{
	RANK_DO(rank_connect(ctx, &t->client));
	RANK_DO(rank_comm(ctx, t->client, 0, &t->comm));
	RANK_OK(ctx, rcclx_mem_alloc(t->client, 65536, &t->memory));
	RANK_OK(ctx, rcclx_barrier(t->comm, NULL));
	return 0;
}

/* Every public call that a child could try on what it has inherited. */
static int child_calls(struct rank_ctx *ctx, const struct things *t)
{
	struct rcclx_unique_id id = {0};
	struct rcclx_comm *comm = NULL;
	struct rcclx_op *op = NULL;
	void *memory = NULL;
	float x[2] = {1, 2};
	uint64_t start = test_now_ms();

	RANK_RESULT(ctx, rcclx_unique_id_create(t->client, &id), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_comm_create(t->client, &id, 1, 0, NULL, &comm), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_mem_alloc(t->client, 4096, &memory), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_mem_free(t->client, t->memory), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_all_reduce(t->comm, x, x, 2, RCCLX_FLOAT32, RCCLX_SUM, NULL),
		RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_barrier(t->comm, NULL), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_barrier_start(t->comm, NULL, &op), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_op_test(t->op), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_op_wait(t->op, RCCLX_FOREVER), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_op_free(t->op), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_comm_abort(t->comm), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_comm_status(t->comm), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_comm_destroy(t->comm), RCCLX_ERR_FORKED);
	RANK_RESULT(ctx, rcclx_disconnect(t->client), RCCLX_ERR_FORKED);
	RANK_TEXT(ctx, "fork");
	RANK_WITHIN(ctx, start, 500);
	return 0;
}

/* A connection of the child's own is as good as any. */
static int child_own_connection(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_unique_id id = {0};
	struct rcclx_comm *comm = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &comm));
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	return rank_leave(ctx, comm, client);
}

static int rank_forks(struct rank_ctx *ctx)
{
	struct things t = {0};
	int status = 0;
	float x[2] = {1, 2};

	RANK_DO(get_things(ctx, &t));
	RANK_OK(ctx, rcclx_barrier_start(t.comm, NULL, &t.op));
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		RANK_CHECK(ctx, child >= 0, "no child");
		if (child == 0) {
			int r = child_calls(ctx, &t);

			_exit(r != 0 ? r : child_own_connection(ctx));
		}
		RANK_CHECK(ctx, waitpid(child, &status, 0) == child, "no child to wait for");
		if (status != 0)
			return ctx->shared->reasons[ctx->rank][0] != '\0'
				       ? 1
				       : rank_fail(ctx, __FILE__, __LINE__, "child: status 0x%x",
						 (unsigned int)status);
	}
	RANK_OK(ctx, rcclx_op_wait(t.op, RCCLX_FOREVER));
	RANK_OK(ctx, rcclx_op_free(t.op));
	RANK_OK(ctx, rcclx_all_reduce(t.comm, x, x, 2, RCCLX_FLOAT32, RCCLX_SUM, NULL));
	RANK_CHECK(ctx, x[1] == 4.0f, "sum is %g", (double)x[1]);
	memset(t.memory, 1, 65536);
	RANK_OK(ctx, rcclx_mem_free(t.client, t.memory));
	return rank_leave(ctx, t.comm, t.client);
}

static void test_child_fails_cleanly(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_forks, NULL);
	node_stop(node);
}

/* ---- the parent dies, the child keeps everything open ---- */

enum flags { FLAG_FORKED, FLAG_TOLD, FLAG_CHECKED };

static int orphan(struct rank_ctx *ctx, struct things *t)
{
	/* Holds socket and maps until the test has looked at the daemon. */
	(void)flag_wait(ctx->shared, FLAG_CHECKED, 1, 20000);
	return rcclx_barrier(t->comm, NULL) == RCCLX_ERR_FORKED ? 0 : 1;
}

static int rank_orphans(struct rank_ctx *ctx)
{
	struct things t = {0};

	RANK_DO(get_things(ctx, &t));
	if (ctx->rank == 1) {
		pid_t child = fork();

		RANK_CHECK(ctx, child >= 0, "no child");
		if (child == 0)
			_exit(orphan(ctx, &t));
		flag_set(ctx->shared, FLAG_FORKED, 1);
		for (;;)
			test_sleep_ms(100);
	}
	RANK_RESULT(ctx, rcclx_barrier(t.comm, NULL), RCCLX_ERR_PEER_LOST);
	RANK_TEXT(ctx, "rank 1");
	flag_set(ctx->shared, FLAG_TOLD, 1);
	RANK_OK(ctx, rcclx_mem_free(t.client, t.memory));
	return rank_leave(ctx, t.comm, t.client);
}

static void test_session_ends_with_parent(void **state)
{
	struct node *node = node_start(NULL);
	struct world *world = world_start(node, 2, rank_orphans, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, FLAG_FORKED, 1, 10000));
	test_sleep_ms(50);
	world_kill(world, 1, SIGKILL);
	assert_true(flag_wait(world->shared, FLAG_TOLD, 1, 1000));
	/* Nothing of the session is left although its socket is open in the child. */
	node_check_idle(node);
	flag_set(world->shared, FLAG_CHECKED, 1);
	/* The shared memory has to stay until the orphan has read the flag. */
	test_sleep_ms(20);
	world_join(world);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_child_fails_cleanly),
		HARNESS_TEST(test_session_ends_with_parent),
	};

	return HARNESS_RUN("fork", tests);
}
