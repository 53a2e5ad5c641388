/* SPDX-License-Identifier: MIT */
/* The daemon is killed in the middle; whoever waits is told, and its successor serves at once. */
#include "harness.h"

#include <signal.h>

enum flags { FLAG_READY0, FLAG_READY1, FLAG_KILLED, FLAG_RESTARTED };

#define KILLED_AT (WORLD_MAX - 1)

enum what {
	IN_INLINE,
	IN_INLINE_LARGE,
	IN_DAEMON_OP,
	IN_WAIT,
	IN_CREATE,
	IN_ALLOC,
	IN_UNIQUE_ID,
};

static int check_told(struct rank_ctx *ctx, rcclx_result r)
{
	RANK_CHECK(ctx, r == RCCLX_ERR_DAEMON_LOST, "%s, not daemon lost; \"%s\"",
		rcclx_strerror(r), rcclx_last_error());
	uint64_t killed_at = atomic_load(&ctx->shared->values[KILLED_AT]);
	RANK_CHECK(ctx, killed_at != 0, "told so before it was killed");
	RANK_WITHIN(ctx, killed_at, 1000);
	return 0;
}

static bool killed(struct rank_ctx *ctx)
{
	return atomic_load(&ctx->shared->flags[FLAG_KILLED]) != 0;
}

/* Rank 1 stops calling when the daemon is gone, which leaves rank 0 blocked. */
static int in_inline(struct rank_ctx *ctx, struct rcclx_comm *comm, uint64_t count)
{
	static float data[1 << 20];
	rcclx_result r = RCCLX_OK;

	flag_set(ctx->shared, ctx->rank, 1);
	while (r == RCCLX_OK && !(ctx->rank == 1 && killed(ctx)))
		r = rcclx_all_reduce(comm, data, data, count, RCCLX_FLOAT32, RCCLX_SUM, NULL);
	if (ctx->rank == 0 || r != RCCLX_OK)
		RANK_DO(check_told(ctx, r));
	/* On SIGTERM, the daemon is still there for a moment. */
	uint64_t start = test_now_ms();
	while (rcclx_comm_status(comm) == RCCLX_OK)
		RANK_WITHIN(ctx, start, 1000);
	RANK_RESULT(ctx, rcclx_comm_status(comm), RCCLX_ERR_DAEMON_LOST);
	return 0;
}

static int in_daemon_op(struct rank_ctx *ctx, struct rcclx_comm *comm)
{
	static float data[1 << 16];
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	rcclx_result r = RCCLX_OK;

	config.executor = RCCLX_EXECUTOR_DAEMON;
	flag_set(ctx->shared, ctx->rank, 1);
	while (r == RCCLX_OK)
		r = rcclx_all_reduce(comm, data, data, 1 << 16, RCCLX_FLOAT32, RCCLX_SUM, &config);
	return check_told(ctx, r);
}

/* Rank 0 waits for operations that rank 1 never starts. */
static int in_wait(struct rank_ctx *ctx, struct rcclx_comm *comm)
{
	struct rcclx_op *ops[4] = {NULL};

	flag_set(ctx->shared, 1, 1);
	if (ctx->rank == 1) {
		RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_RESTARTED, 1, 10000), "no sign");
		return 0;
	}
	for (int k = 0; k < 4; k++)
		RANK_OK(ctx, rcclx_barrier_start(comm, NULL, &ops[k]));
	flag_set(ctx->shared, 0, 1);
	for (int k = 0; k < 4; k++) {
		RANK_DO(check_told(ctx, rcclx_op_wait(ops[k], RCCLX_FOREVER)));
		RANK_OK(ctx, rcclx_op_free(ops[k]));
	}
	return 0;
}

static int in_create(struct rank_ctx *ctx, struct rcclx_client *client)
{
	struct rcclx_unique_id id = {0};
	struct rcclx_comm *comm = NULL;

	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	flag_set(ctx->shared, ctx->rank, 1);
	return check_told(ctx, rcclx_comm_create(client, &id, 2, 0, NULL, &comm));
}

static int in_alloc(struct rank_ctx *ctx, struct rcclx_client *client)
{
	rcclx_result r = RCCLX_OK;
	void *memory = NULL;

	flag_set(ctx->shared, ctx->rank, 1);
	while (r == RCCLX_OK) {
		r = rcclx_mem_alloc(client, 1 << 16, &memory);
		if (r == RCCLX_OK)
			RANK_OK(ctx, rcclx_mem_free(client, memory));
	}
	return check_told(ctx, r);
}

static int in_unique_id(struct rank_ctx *ctx, struct rcclx_client *client)
{
	struct rcclx_unique_id id = {0};
	rcclx_result r = RCCLX_OK;

	flag_set(ctx->shared, ctx->rank, 1);
	while (r == RCCLX_OK)
		r = rcclx_unique_id_create(client, &id);
	return check_told(ctx, r);
}

static int be_in(struct rank_ctx *ctx, struct rcclx_client *client, struct rcclx_comm *comm)
{
	switch (*(const enum what *)ctx->arg) {
	case IN_INLINE:
		return in_inline(ctx, comm, 2);
	case IN_INLINE_LARGE:
		return in_inline(ctx, comm, 1 << 20);
	case IN_DAEMON_OP:
		return in_daemon_op(ctx, comm);
	case IN_WAIT:
		return in_wait(ctx, comm);
	case IN_CREATE:
		return in_create(ctx, client);
	case IN_ALLOC:
		return in_alloc(ctx, client);
	case IN_UNIQUE_ID:
		return in_unique_id(ctx, client);
	}
	return rank_fail(ctx, __FILE__, __LINE__, "no such case");
}

static int rank_outlives(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	void *memory = NULL;
	int32_t x = 1;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_OK(ctx, rcclx_mem_alloc(client, 100000, &memory));
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	RANK_DO(be_in(ctx, client, comm));
	/* The own memory stays usable, and everything can be ended. */
	memset(memory, 1, 100000);
	RANK_OK(ctx, rcclx_mem_free(client, memory));
	RANK_DO(rank_leave(ctx, comm, client));
	RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_RESTARTED, 1, 10000), "no new daemon");
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 1, &comm));
	RANK_OK(ctx, rcclx_all_reduce(comm, &x, &x, 1, RCCLX_INT32, RCCLX_SUM, NULL));
	RANK_CHECK(ctx, x == 2, "sum is %d", x);
	return rank_leave(ctx, comm, client);
}

static void run_daemon_death(enum what what)
{
	struct node *node = node_start(NULL);
	struct world *world = world_start(node, 2, rank_outlives, &what);

	assert_true(flag_wait(world->shared, 0, 1, 10000));
	assert_true(flag_wait(world->shared, 1, 1, 10000));
	test_sleep_ms(60);
	atomic_store(&world->shared->values[KILLED_AT], test_now_ms());
	node_kill(node);
	flag_set(world->shared, FLAG_KILLED, 1);
	test_sleep_ms(300);
	/* The socket file of the dead one is in the way of its successor. */
	node_restart(node);
	flag_set(world->shared, FLAG_RESTARTED, 1);
	world_join(world);
	node_stop(node);
}

#define DEATH_TEST(name, what)                                                                     \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		run_daemon_death(what);                                                            \
	}

DEATH_TEST(test_in_inline, IN_INLINE)
DEATH_TEST(test_in_inline_large, IN_INLINE_LARGE)
DEATH_TEST(test_in_daemon_op, IN_DAEMON_OP)
DEATH_TEST(test_in_wait, IN_WAIT)
DEATH_TEST(test_in_create, IN_CREATE)
DEATH_TEST(test_in_alloc, IN_ALLOC)
DEATH_TEST(test_in_unique_id, IN_UNIQUE_ID)

/* No daemon at all: the text says what was tried. */
static int rank_nobody(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	uint64_t start = test_now_ms();

	RANK_RESULT(ctx, rcclx_connect(ctx->socket, NULL, &client), RCCLX_ERR_NO_DAEMON);
	RANK_TEXT(ctx, ctx->socket);
	RANK_WITHIN(ctx, start, 1000);
	RANK_CHECK(ctx, client == NULL, "a failed connect set the client");
	return 0;
}

static void test_no_daemon(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	node_kill(node);
	world_run(node, 1, rank_nobody, NULL);
	node_forget(node);
}

/* A daemon that is stopped does not answer: connecting has a time limit. */
static int rank_no_answer(struct rank_ctx *ctx)
{
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	uint64_t start = test_now_ms();

	config.timeout_ns = 200000000;
	RANK_RESULT(ctx, rcclx_connect(ctx->socket, &config, &client), RCCLX_ERR_TIMEOUT);
	RANK_CHECK(ctx, test_now_ms() - start >= 190, "too early");
	RANK_WITHIN(ctx, start, 800);
	return 0;
}

static void test_stopped_daemon(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	assert_int_equal(kill(node->pid, SIGSTOP), 0);
	world_run(node, 1, rank_no_answer, NULL);
	assert_int_equal(kill(node->pid, SIGCONT), 0);
	node_stop(node);
}

/* Forming takes as long as the ranks do, but a daemon that is stopped is found out. */
static int rank_form_stopped(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_unique_id id;
	uint64_t start = 0;

	RANK_DO(rank_connect(ctx, &client));
	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	flag_set(ctx->shared, 0, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 1, 1, 5000), "the daemon is not stopped");
	start = test_now_ms();
	RANK_RESULT(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &comm), RCCLX_ERR_TIMEOUT);
	RANK_TEXT(ctx, "has not answered");
	RANK_TEXT(ctx, "CommJoin");
	RANK_CHECK(ctx, test_now_ms() - start >= 9000, "too early");
	RANK_WITHIN(ctx, start, 14000);
	flag_set(ctx->shared, 0, 2);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 1, 2, 5000), "the daemon is not running");
	/* What it answers now is undone. */
	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &comm));
	return rank_leave(ctx, comm, client);
}

/* Longer than a daemon may be silent. */
static int rank_form_slowly(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;

	RANK_DO(rank_connect(ctx, &client));
	if (ctx->rank == 1)
		test_sleep_ms(13000);
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	return rank_leave(ctx, comm, client);
}

static void test_stopped_while_forming(void **state)
{
	struct node *node = node_start(NULL);
	struct node *other = node_start(NULL);
	struct world *slow = world_start(other, 2, rank_form_slowly, NULL);
	struct world *world = world_start(node, 1, rank_form_stopped, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 5000));
	assert_int_equal(kill(node->pid, SIGSTOP), 0);
	flag_set(world->shared, 1, 1);
	assert_true(flag_wait(world->shared, 0, 2, 20000));
	assert_int_equal(kill(node->pid, SIGCONT), 0);
	flag_set(world->shared, 1, 2);
	world_join(world);
	world_join(slow);
	node_stop(node);
	node_stop(other);
}

/* SIGTERM while clients are there: they are told as well, and the daemon ends well. */
static void test_sigterm(void **state)
{
	struct node *node = node_start(NULL);
	enum what what = IN_INLINE;
	struct world *world = world_start(node, 2, rank_outlives, &what);
	pid_t pid = node->pid;

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 10000));
	assert_true(flag_wait(world->shared, 1, 1, 10000));
	test_sleep_ms(60);
	atomic_store(&world->shared->values[KILLED_AT], test_now_ms());
	assert_int_equal(kill(pid, SIGTERM), 0);
	flag_set(world->shared, FLAG_KILLED, 1);
	node_wait_end(node, 7000);
	node_restart(node);
	flag_set(world->shared, FLAG_RESTARTED, 1);
	world_join(world);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_in_inline),
		HARNESS_TEST(test_in_inline_large),
		HARNESS_TEST(test_in_daemon_op),
		HARNESS_TEST(test_in_wait),
		HARNESS_TEST(test_in_create),
		HARNESS_TEST(test_in_alloc),
		HARNESS_TEST(test_in_unique_id),
		HARNESS_TEST(test_no_daemon),
		HARNESS_TEST(test_stopped_daemon),
		HARNESS_TEST(test_stopped_while_forming),
		HARNESS_TEST(test_sigterm),
	};

	return HARNESS_RUN("daemon_death", tests);
}
