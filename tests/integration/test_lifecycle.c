/* SPDX-License-Identifier: MIT */
/* Communicators come and go: creation that fails, destruction, abort, disconnect. */
#include "harness.h"

#include <signal.h>

static int create(struct rank_ctx *ctx, struct rcclx_client *client,
	const struct rcclx_unique_id *id, uint32_t n_ranks, uint32_t rank, uint64_t timeout_ms,
	rcclx_result expected)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_comm *comm = NULL;

	config.form_timeout_ns = timeout_ms * 1000000;
	RANK_RESULT(ctx, rcclx_comm_create(client, id, n_ranks, rank, &config, &comm), expected);
	RANK_CHECK(ctx, (comm != NULL) == (expected == RCCLX_OK), "comm is %p", (void *)comm);
	if (comm != NULL)
		RANK_OK(ctx, rcclx_comm_destroy(comm));
	return 0;
}

/* ---- ranks that do not come ---- */

/* Processes 0 and 1 are ranks 0 and 3 of 6; the rest never comes. */
static int rank_missing(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_unique_id id = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_id(ctx, client, 0, ctx->rank == 0, &id));
	RANK_DO(rank_sync(ctx));
	uint64_t start = test_now_ms();
	RANK_DO(create(ctx, client, &id, 6, ctx->rank * 3, 300, RCCLX_ERR_TIMEOUT));
	RANK_CHECK(ctx, test_now_ms() - start >= 250, "gave up after %llu ms of 300",
		(unsigned long long)(test_now_ms() - start));
	RANK_WITHIN(ctx, start, 800);
	RANK_TEXT(ctx, "1, 2, 4, 5");
	/* A new id works; the client is as good as before. */
	RANK_DO(rank_id(ctx, client, 1, ctx->rank == 0, &id));
	RANK_DO(create(ctx, client, &id, 2, ctx->rank, 5000, RCCLX_OK));
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static void test_missing_ranks(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_missing, NULL);
	node_stop(node);
}

/* ---- a rank that is taken, a size that differs ---- */

static int rank_duplicate(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_unique_id id = {0};
	struct rcclx_comm *comm = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_id(ctx, client, 0, ctx->rank == 0, &id));
	if (ctx->rank == 2) {
		/* Rank 0 is there already and has been waiting for a while. */
		test_sleep_ms(100);
		RANK_DO(create(ctx, client, &id, 2, 0, 2000, RCCLX_ERR_INVALID));
		RANK_TEXT(ctx, "rank 0");
		RANK_DO(create(ctx, client, &id, 3, 1, 2000, RCCLX_ERR_INVALID));
		RANK_TEXT(ctx, "3");
		RANK_TEXT(ctx, "2");
		flag_set(ctx->shared, 0, 1);
	} else {
		if (ctx->rank == 1)
			RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "no sign");
		RANK_OK(ctx, rcclx_comm_create(client, &id, 2, ctx->rank, NULL, &comm));
		RANK_OK(ctx, rcclx_barrier(comm, NULL));
		RANK_OK(ctx, rcclx_comm_destroy(comm));
	}
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static void test_duplicate_rank(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 3, rank_duplicate, NULL);
	node_stop(node);
}

/* ---- arguments and ids that cannot be ---- */

static int rank_bad_ids(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_unique_id id = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(create(ctx, client, &id, 1, 0, 500, RCCLX_ERR_INVALID));
	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	RANK_DO(create(ctx, client, &id, 0, 0, 500, RCCLX_ERR_INVALID));
	RANK_DO(create(ctx, client, &id, 65, 0, 500, RCCLX_ERR_INVALID));
	RANK_DO(create(ctx, client, &id, 2, 2, 500, RCCLX_ERR_INVALID));
	/* The daemon's instance is somewhere in the first half. */
	struct rcclx_unique_id foreign = id;
	for (size_t i = 4; i < 64; i++)
		foreign.bytes[i] ^= 0x55;
	RANK_DO(create(ctx, client, &foreign, 1, 0, 500, RCCLX_ERR_INVALID));
	/* Used once, never again. */
	RANK_DO(create(ctx, client, &id, 1, 0, 500, RCCLX_OK));
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static void test_bad_ids(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 1, rank_bad_ids, NULL);
	node_stop(node);
}

/* An id of another daemon. */
static int rank_two_daemons(struct rank_ctx *ctx)
{
	const struct node *other = ctx->arg;
	struct rcclx_client *client = NULL;
	struct rcclx_client *foreign = NULL;
	struct rcclx_unique_id id = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_OK(ctx, rcclx_connect(other->socket, NULL, &foreign));
	RANK_OK(ctx, rcclx_unique_id_create(foreign, &id));
	RANK_DO(create(ctx, client, &id, 1, 0, 500, RCCLX_ERR_INVALID));
	RANK_TEXT(ctx, "another");
	RANK_DO(create(ctx, foreign, &id, 1, 0, 500, RCCLX_OK));
	RANK_OK(ctx, rcclx_disconnect(client));
	RANK_OK(ctx, rcclx_disconnect(foreign));
	return 0;
}

static void test_foreign_id(void **state)
{
	struct node *node = node_start(NULL);
	struct node *other = node_start(NULL);

	(void)state;
	world_run(node, 1, rank_two_daemons, other);
	node_stop(node);
	node_stop(other);
}

/* ---- a joiner that dies while the others wait ---- */

static int rank_dies_joining(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_unique_id id = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_id(ctx, client, 0, ctx->rank == 0, &id));
	if (ctx->rank == 1)
		flag_set(ctx->shared, 0, 1);
	RANK_DO(create(ctx, client, &id, 3, ctx->rank, 20000, RCCLX_ERR_PEER_LOST));
	RANK_TEXT(ctx, "rank 1");
	RANK_OK(ctx, rcclx_disconnect(client));
	flag_set(ctx->shared, 1, 1);
	return 0;
}

static void test_death_while_forming(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	struct world *world = world_start(node, 2, rank_dies_joining, NULL);
	assert_true(flag_wait(world->shared, 0, 1, 5000));
	test_sleep_ms(100 * test_slow());
	world_kill(world, 1, SIGKILL);
	assert_true(flag_wait(world->shared, 1, 1, 1000));
	world_join(world);
	node_stop(node);
}

/* ---- many times ---- */

static int rank_cycles(struct rank_ctx *ctx)
{
	uint32_t n = test_long() ? 2000 : 200;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;

	RANK_DO(rank_connect(ctx, &client));
	for (uint32_t k = 0; k < n; k++) {
		uint32_t slot = k % WORLD_IDS;
		int32_t x = (int32_t)k;

		/* Nobody takes the id of the last time round for that of this time. */
		if (ctx->rank == 0)
			atomic_store(&ctx->shared->id_ready[slot], 0);
		RANK_DO(rank_sync(ctx));
		RANK_DO(rank_comm(ctx, client, slot, &comm));
		RANK_OK(ctx, rcclx_all_reduce(comm, &x, &x, 1, RCCLX_INT32, RCCLX_SUM, NULL));
		RANK_CHECK(ctx, x == (int32_t)(k * ctx->n_ranks), "sum is %d", x);
		RANK_OK(ctx, rcclx_comm_destroy(comm));
	}
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static void test_create_destroy(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_cycles, NULL);
	world_run(node, 4, rank_cycles, NULL);
	node_stop(node);
}

/* ---- leaving while others go on ---- */

static int rank_leaver(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_comm *other = NULL;
	struct rcclx_op *op = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_DO(rank_comm(ctx, client, 1, &other));
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	if (ctx->rank == 1) {
		RANK_OK(ctx, rcclx_comm_destroy(comm));
		flag_set(ctx->shared, 0, 1);
	} else {
		uint64_t start = 0;

		/* No failure as long as nothing needs the rank. */
		RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "rank 1 stays");
		RANK_OK(ctx, rcclx_comm_status(comm));
		start = test_now_ms();
		RANK_RESULT(ctx, rcclx_barrier(comm, NULL), RCCLX_ERR_PEER_LOST);
		RANK_WITHIN(ctx, start, 1000);
		RANK_TEXT(ctx, "rank 1");
		RANK_RESULT(ctx, rcclx_comm_status(comm), RCCLX_ERR_PEER_LOST);
		RANK_RESULT(ctx, rcclx_barrier_start(comm, NULL, &op), RCCLX_ERR_PEER_LOST);
		RANK_OK(ctx, rcclx_comm_destroy(comm));
	}
	/* The other communicator of the same processes does not notice. */
	for (int i = 0; i < 10; i++)
		RANK_OK(ctx, rcclx_barrier(other, NULL));
	return rank_leave(ctx, other, client);
}

static void test_leave(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 3, rank_leaver, NULL);
	node_stop(node);
}

/* ---- disconnecting with something left ---- */

static int rank_busy(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	void *memory = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_OK(ctx, rcclx_mem_alloc(client, 4096, &memory));
	RANK_RESULT(ctx, rcclx_disconnect(client), RCCLX_ERR_BUSY);
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_RESULT(ctx, rcclx_disconnect(client), RCCLX_ERR_BUSY);
	RANK_OK(ctx, rcclx_mem_free(client, memory));
	RANK_RESULT(ctx, rcclx_mem_free(client, memory), RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_disconnect(client), RCCLX_ERR_BUSY);
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	RANK_OK(ctx, rcclx_comm_destroy(comm));
	RANK_OK(ctx, rcclx_comm_destroy(NULL));
	RANK_OK(ctx, rcclx_disconnect(NULL));
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static void test_busy(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_busy, NULL);
	node_stop(node);
}

/* A process may exit without giving anything back. */
static int rank_just_exits(struct rank_ctx *ctx)
{
	static struct rcclx_client *client;
	static struct rcclx_comm *comm;
	static struct rcclx_op *op;
	static void *memory;
	unsigned int n_fds = proc_n_fds();

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_OK(ctx, rcclx_mem_alloc(client, 1 << 20, &memory));
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	RANK_OK(ctx, rcclx_barrier_start(comm, NULL, &op));
	RANK_CHECK(ctx, proc_n_fds() > n_fds, "no connection");
	_exit(0);
}

static void test_just_exit(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	for (int i = 0; i < 10; i++)
		world_run(node, 4, rank_just_exits, NULL);
	node_stop(node);
}

/* ---- abort ---- */

enum abort_case { ABORT_PEERS_ALIVE, ABORT_PEER_STOPPED, ABORT_DAEMON_STOPPED };

static int blocked_until_aborted(struct rank_ctx *ctx, struct rcclx_comm *comm)
{
	flag_set(ctx->shared, ctx->rank, 1);
	RANK_RESULT(ctx, rcclx_barrier(comm, NULL), RCCLX_ERR_ABORTED);
	RANK_TEXT(ctx, "rank 0");
	RANK_RESULT(ctx, rcclx_comm_status(comm), RCCLX_ERR_ABORTED);
	return 0;
}

static int rank_aborts(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	if (ctx->rank != 0) {
		RANK_DO(blocked_until_aborted(ctx, comm));
		return rank_leave(ctx, comm, client);
	}
	/* The test stops somebody before it lets rank 0 go on. */
	RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "no sign");
	uint64_t start = test_now_ms();
	RANK_OK(ctx, rcclx_comm_abort(comm));
	RANK_WITHIN(ctx, start, 200);
	RANK_RESULT(ctx, rcclx_barrier(comm, NULL), RCCLX_ERR_ABORTED);
	RANK_RESULT(ctx, rcclx_comm_status(comm), RCCLX_ERR_ABORTED);
	RANK_WITHIN(ctx, start, 200);
	flag_set(ctx->shared, 3, 1);
	return rank_leave(ctx, comm, client);
}

static void run_abort(enum abort_case which)
{
	struct node *node = node_start(NULL);
	struct world *world = world_start(node, 3, rank_aborts, NULL);

	assert_true(flag_wait(world->shared, 1, 1, 5000));
	assert_true(flag_wait(world->shared, 2, 1, 5000));
	test_sleep_ms(50);
	if (which == ABORT_PEER_STOPPED)
		world_kill(world, 2, SIGSTOP);
	if (which == ABORT_DAEMON_STOPPED)
		assert_int_equal(kill(node->pid, SIGSTOP), 0);
	flag_set(world->shared, 0, 1);
	assert_true(flag_wait(world->shared, 3, 1, 5000));
	if (which == ABORT_PEER_STOPPED)
		world_kill(world, 2, SIGCONT);
	if (which == ABORT_DAEMON_STOPPED)
		assert_int_equal(kill(node->pid, SIGCONT), 0);
	world_join(world);
	node_stop(node);
}

static void test_abort(void **state)
{
	(void)state;
	run_abort(ABORT_PEERS_ALIVE);
}

static void test_abort_with_stopped_peer(void **state)
{
	(void)state;
	run_abort(ABORT_PEER_STOPPED);
}

static void test_abort_with_stopped_daemon(void **state)
{
	(void)state;
	run_abort(ABORT_DAEMON_STOPPED);
}

/* Queued operations end, too, and can be freed. */
static int rank_abort_queued(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_op *ops[8] = {NULL};
	static float data[1000];

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	if (ctx->rank == 0) {
		for (int k = 0; k < 8; k++)
			RANK_OK(ctx, rcclx_all_reduce_start(comm, data, data, 1000, RCCLX_FLOAT32,
					     RCCLX_SUM, NULL, &ops[k]));
		uint64_t start = test_now_ms();
		RANK_OK(ctx, rcclx_comm_abort(comm));
		for (int k = 0; k < 8; k++) {
			RANK_RESULT(ctx, rcclx_op_wait(ops[k], RCCLX_FOREVER), RCCLX_ERR_ABORTED);
			RANK_OK(ctx, rcclx_op_free(ops[k]));
		}
		RANK_WITHIN(ctx, start, 200);
		flag_set(ctx->shared, 0, 1);
	}
	RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "no sign");
	return rank_leave(ctx, comm, client);
}

static void test_abort_queued(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_abort_queued, NULL);
	node_stop(node);
}

/* ---- deadlines ---- */

/*
 * A peer has given up. Its last announcement still counts until the daemon has told this rank, so
 * that one call may go well.
 */
static int told_soon(struct rank_ctx *ctx, struct rcclx_comm *comm,
	const struct rcclx_call_config *config, rcclx_result *result_p)
{
	uint64_t start = test_now_ms();

	*result_p = rcclx_barrier(comm, config);
	if (*result_p == RCCLX_OK)
		*result_p = rcclx_barrier(comm, config);
	RANK_CHECK(ctx, *result_p != RCCLX_OK, "works although a peer has given up");
	RANK_WITHIN(ctx, start, 600);
	return 0;
}

static int rank_deadline(struct rank_ctx *ctx)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	rcclx_result r = RCCLX_OK;

	config.executor = *(const uint32_t *)ctx->arg;
	config.timeout_ns = 150000000;
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	if (ctx->rank == 0) {
		uint64_t start = test_now_ms();

		RANK_RESULT(ctx, rcclx_barrier(comm, &config), RCCLX_ERR_TIMEOUT);
		RANK_CHECK(ctx, test_now_ms() - start >= 145, "too early");
		RANK_WITHIN(ctx, start, 600);
		RANK_TEXT(ctx, "rank 1");
		RANK_CHECK(ctx, rcclx_barrier(comm, &config) != RCCLX_OK, "works after that");
		flag_set(ctx->shared, 0, 1);
	} else {
		RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "no sign");
		RANK_DO(told_soon(ctx, comm, &config, &r));
	}
	return rank_leave(ctx, comm, client);
}

static void test_call_timeout(void **state)
{
	struct node *node = node_start(NULL);
	uint32_t executor = RCCLX_EXECUTOR_INLINE;

	(void)state;
	world_run(node, 2, rank_deadline, &executor);
	executor = RCCLX_EXECUTOR_DAEMON;
	world_run(node, 2, rank_deadline, &executor);
	node_stop(node);
}

static int rank_op_timeout(struct rank_ctx *ctx)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_call_config call = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_unique_id id = {0};

	call.executor = *(const uint32_t *)ctx->arg;
	/* Rank 0's value holds for all, also for rank 1, which asks for none. */
	config.op_timeout_ns = ctx->rank == 0 ? 200000000 : 0;
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_id(ctx, client, 0, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, 2, ctx->rank, &config, &comm));
	RANK_OK(ctx, rcclx_barrier(comm, &call));
	if (ctx->rank == 1) {
		uint64_t start = test_now_ms();

		RANK_RESULT(ctx, rcclx_barrier(comm, &call), RCCLX_ERR_TIMEOUT);
		RANK_CHECK(ctx, test_now_ms() - start >= 190, "too early");
		RANK_WITHIN(ctx, start, 800);
		flag_set(ctx->shared, 0, 1);
	} else {
		RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "no sign");
		rcclx_result r = RCCLX_OK;

		RANK_DO(told_soon(ctx, comm, &call, &r));
		RANK_CHECK(ctx, r == RCCLX_ERR_TIMEOUT, "%s: %s", rcclx_strerror(r),
			rcclx_last_error());
	}
	return rank_leave(ctx, comm, client);
}

static void test_op_timeout(void **state)
{
	struct node *node = node_start(NULL);
	uint32_t executor = RCCLX_EXECUTOR_INLINE;

	(void)state;
	world_run(node, 2, rank_op_timeout, &executor);
	executor = RCCLX_EXECUTOR_DAEMON;
	world_run(node, 2, rank_op_timeout, &executor);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_missing_ranks),
		HARNESS_TEST(test_duplicate_rank),
		HARNESS_TEST(test_bad_ids),
		HARNESS_TEST(test_foreign_id),
		HARNESS_TEST(test_death_while_forming),
		HARNESS_TEST(test_create_destroy),
		HARNESS_TEST(test_leave),
		HARNESS_TEST(test_busy),
		HARNESS_TEST(test_just_exit),
		HARNESS_TEST(test_abort),
		HARNESS_TEST(test_abort_with_stopped_peer),
		HARNESS_TEST(test_abort_with_stopped_daemon),
		HARNESS_TEST(test_abort_queued),
		HARNESS_TEST(test_call_timeout),
		HARNESS_TEST(test_op_timeout),
	};

	return HARNESS_RUN("lifecycle", tests);
}
