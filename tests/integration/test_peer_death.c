/* SPDX-License-Identifier: MIT */
/* A member is killed or stopped in the middle of an operation. */
#include "harness.h"
#include "admin.h"

#include <signal.h>
#include <stdlib.h>

#define VICTIM  1u
#define N_RANKS 3u
/* world_shared.values: when the victim was killed, in milliseconds. */
#define KILLED_AT (WORLD_MAX - 1)

enum flags { FLAG_RUNNING, FLAG_KILLED };

struct death_case {
	uint64_t count;
	uint32_t executor;
	bool registered;
	bool victim_waits; /* the victim does not take part, so that the others are blocked */
};

struct member {
	struct rcclx_client *client;
	struct rcclx_comm *comm;
	float *data;
};

static int join(struct rank_ctx *ctx, const struct death_case *c, struct member *m)
{
	void *memory = NULL;
	uint64_t bytes = c->count * sizeof(float);

	RANK_DO(rank_connect(ctx, &m->client));
	RANK_DO(rank_comm(ctx, m->client, 0, &m->comm));
	if (c->registered)
		RANK_OK(ctx, rcclx_mem_alloc(m->client, bytes, &memory));
	else
		memory = calloc(1, bytes);
	RANK_CHECK(ctx, memory != NULL, "no memory");
	m->data = memory;
	return 0;
}

static int leave(struct rank_ctx *ctx, const struct death_case *c, struct member *m)
{
	RANK_OK(ctx, rcclx_comm_destroy(m->comm));
	if (c->registered)
		RANK_OK(ctx, rcclx_mem_free(m->client, m->data));
	else
		free(m->data);
	return 0;
}

/* The survivors are 0 and 2, as ranks 0 and 1 of a new communicator. */
static int form_anew(struct rank_ctx *ctx, struct rcclx_client *client)
{
	struct rcclx_unique_id id = {0};
	struct rcclx_comm *comm = NULL;
	int32_t x = 21;

	RANK_DO(rank_id(ctx, client, 1, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, 2, ctx->rank / 2, NULL, &comm));
	RANK_OK(ctx, rcclx_all_reduce(comm, &x, &x, 1, RCCLX_INT32, RCCLX_SUM, NULL));
	RANK_CHECK(ctx, x == 42, "sum is %d", x);
	return rank_leave(ctx, comm, client);
}

static int check_lost(struct rank_ctx *ctx, rcclx_result result)
{
	RANK_CHECK(ctx, result == RCCLX_ERR_PEER_LOST, "%s, not peer lost; \"%s\"",
		rcclx_strerror(result), rcclx_last_error());
	RANK_TEXT(ctx, "rank 1");
	uint64_t killed_at = atomic_load(&ctx->shared->values[KILLED_AT]);
	RANK_CHECK(ctx, killed_at != 0, "lost before it was killed");
	RANK_WITHIN(ctx, killed_at, 1000);
	return 0;
}

static int rank_loop(struct rank_ctx *ctx)
{
	const struct death_case *c = ctx->arg;
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct member m = {0};
	rcclx_result r = RCCLX_OK;

	config.executor = c->executor;
	RANK_DO(join(ctx, c, &m));
	RANK_OK(ctx, rcclx_barrier(m.comm, NULL));
	if (ctx->rank == VICTIM)
		flag_set(ctx->shared, FLAG_RUNNING, 1);
	while (c->victim_waits && ctx->rank == VICTIM)
		test_sleep_ms(100);
	while (r == RCCLX_OK)
		r = rcclx_all_reduce(
			m.comm, m.data, m.data, c->count, RCCLX_FLOAT32, RCCLX_MAX, &config);
	RANK_DO(check_lost(ctx, r));
	uint64_t start = test_now_ms();
	RANK_RESULT(ctx, rcclx_comm_status(m.comm), RCCLX_ERR_PEER_LOST);
	RANK_RESULT(ctx, rcclx_barrier(m.comm, NULL), RCCLX_ERR_PEER_LOST);
	RANK_WITHIN(ctx, start, 100);
	RANK_DO(leave(ctx, c, &m));
	return form_anew(ctx, m.client);
}

static void run_death(rank_fn fn, const struct death_case *c, uint64_t after_ms)
{
	struct death_case copy = *c;
	struct node *node = node_start(NULL);
	struct world *world = world_start(node, N_RANKS, fn, &copy);

	assert_true(flag_wait(world->shared, FLAG_RUNNING, 1, 10000));
	test_sleep_ms(after_ms);
	atomic_store(&world->shared->values[KILLED_AT], test_now_ms());
	world_kill(world, VICTIM, SIGKILL);
	flag_set(world->shared, FLAG_KILLED, 1);
	world_join(world);
	node_stop(node);
}

#define TINY   2u
#define MIB_64 (16u * 1024 * 1024)

static void test_killed_inline_tiny(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		run_death(rank_loop,
			&(struct death_case){TINY, RCCLX_EXECUTOR_INLINE, i % 2 == 0, false},
			10 + 7 * i);
}

static void test_killed_inline_64mib(void **state)
{
	(void)state;
	run_death(
		rank_loop, &(struct death_case){MIB_64, RCCLX_EXECUTOR_INLINE, false, false}, 220);
	run_death(rank_loop, &(struct death_case){MIB_64, RCCLX_EXECUTOR_INLINE, true, false}, 210);
}

static void test_killed_inline_blocked(void **state)
{
	(void)state;
	run_death(rank_loop, &(struct death_case){TINY, RCCLX_EXECUTOR_INLINE, false, true}, 150);
	run_death(rank_loop, &(struct death_case){MIB_64, RCCLX_EXECUTOR_INLINE, true, true}, 150);
}

static void test_killed_daemon_executor(void **state)
{
	(void)state;
	run_death(rank_loop, &(struct death_case){TINY, RCCLX_EXECUTOR_DAEMON, false, false}, 50);
	run_death(rank_loop, &(struct death_case){TINY, RCCLX_EXECUTOR_DAEMON, true, true}, 50);
	run_death(rank_loop, &(struct death_case){MIB_64, RCCLX_EXECUTOR_DAEMON, true, false}, 220);
	run_death(
		rank_loop, &(struct death_case){MIB_64, RCCLX_EXECUTOR_DAEMON, false, false}, 250);
}

/* ---- several queued operations, the victim has started some of them ---- */

#define N_QUEUED 6u

static int rank_queued(struct rank_ctx *ctx)
{
	const struct death_case *c = ctx->arg;
	struct member m = {0};
	struct rcclx_op *ops[N_QUEUED] = {NULL};
	uint32_t n = ctx->rank == VICTIM ? 2 : N_QUEUED;

	RANK_DO(join(ctx, c, &m));
	for (uint32_t k = 0; k < n; k++)
		RANK_OK(ctx, rcclx_all_reduce_start(m.comm, m.data, m.data, c->count, RCCLX_FLOAT32,
				     RCCLX_SUM, NULL, &ops[k]));
	if (ctx->rank == VICTIM) {
		flag_set(ctx->shared, FLAG_RUNNING, 1);
		for (;;)
			test_sleep_ms(100);
	}
	/* Those that the victim has started may be done already; the rest cannot. */
	for (uint32_t k = 0; k < N_QUEUED; k++) {
		rcclx_result r = rcclx_op_wait(ops[k], RCCLX_FOREVER);

		if (k >= 2 || r != RCCLX_OK)
			RANK_DO(check_lost(ctx, r));
		RANK_OK(ctx, rcclx_op_free(ops[k]));
	}
	RANK_DO(leave(ctx, c, &m));
	return form_anew(ctx, m.client);
}

static void test_killed_with_queue(void **state)
{
	(void)state;
	run_death(rank_queued, &(struct death_case){TINY, RCCLX_EXECUTOR_DAEMON, false, false}, 30);
	run_death(rank_queued, &(struct death_case){MIB_64, RCCLX_EXECUTOR_DAEMON, true, false}, 5);
}

/* A process that does nothing with the communicator loses others' memory, too: they go on. */
static int rank_memory_user(struct rank_ctx *ctx)
{
	const struct death_case *c = ctx->arg;
	struct member m = {0};
	struct rcclx_comm *pair = NULL;
	struct rcclx_unique_id id = {0};

	RANK_DO(join(ctx, c, &m));
	if (ctx->rank == VICTIM) {
		flag_set(ctx->shared, FLAG_RUNNING, 1);
		for (;;)
			test_sleep_ms(100);
	}
	RANK_DO(rank_id(ctx, m.client, 2, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_comm_create(m.client, &id, 2, ctx->rank / 2, NULL, &pair));
	/* Ends a good while after the victim has died. */
	uint64_t end = 0;
	for (bool last = false; !last;) {
		int32_t stop = 0;

		if (ctx->rank == 0 && end == 0 && flag_wait(ctx->shared, FLAG_KILLED, 1, 0))
			end = test_now_ms() + 500;
		stop = end != 0 && test_now_ms() > end;
		RANK_OK(ctx, rcclx_all_reduce(pair, m.data, m.data, c->count, RCCLX_FLOAT32,
				     RCCLX_SUM, NULL));
		RANK_OK(ctx, rcclx_all_reduce(pair, &stop, &stop, 1, RCCLX_INT32, RCCLX_MAX, NULL));
		last = stop != 0;
	}
	RANK_OK(ctx, rcclx_comm_destroy(pair));
	RANK_DO(leave(ctx, c, &m));
	return form_anew(ctx, m.client);
}

static void test_bystanders_go_on(void **state)
{
	(void)state;
	run_death(rank_memory_user,
		&(struct death_case){100000, RCCLX_EXECUTOR_INLINE, true, false}, 50);
}

/* ---- stopped, not dead ---- */

struct stop_case {
	uint32_t executor;
	uint64_t timeout_ms; /* of rank 0's calls; 0: none */
};

static int rank_stopped(struct rank_ctx *ctx)
{
	const struct stop_case *c = ctx->arg;
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	float data[256] = {0};
	rcclx_result r = RCCLX_OK;

	config.executor = c->executor;
	config.timeout_ns = ctx->rank == 0 ? c->timeout_ms * 1000000 : 0;
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint64_t i = 1; r == RCCLX_OK; i++) {
		/* The last operation says for everybody that the loop ends. */
		data[0] = ctx->rank == 0 && flag_wait(ctx->shared, FLAG_KILLED, 2, 0) ? 1 : 0;
		r = rcclx_all_reduce(comm, data, data, 256, RCCLX_FLOAT32, RCCLX_MAX, &config);
		if (r == RCCLX_OK && data[0] > 0)
			return rank_leave(ctx, comm, client);
		atomic_store(&ctx->shared->values[ctx->rank], i);
		flag_set(ctx->shared, FLAG_RUNNING, 1);
	}
	RANK_CHECK(ctx, c->timeout_ms != 0, "%s", rcclx_last_error());
	if (ctx->rank == 0) {
		RANK_CHECK(ctx, r == RCCLX_ERR_TIMEOUT, "%s", rcclx_last_error());
		RANK_TEXT(ctx, "rank 1");
		flag_set(ctx->shared, FLAG_KILLED, 1);
	} else {
		RANK_CHECK(ctx,
			r == RCCLX_ERR_TIMEOUT || r == RCCLX_ERR_ABORTED ||
				r == RCCLX_ERR_PEER_LOST,
			"%s: %s", rcclx_strerror(r), rcclx_last_error());
	}
	return rank_leave(ctx, comm, client);
}

static void check_late_shown(const struct node *node)
{
	struct admin_comm comm = {0};

	assert_int_equal(admin_comm(node->admin, 0, &comm), 0);
	assert_int_equal(comm.n_ranks, N_RANKS);
	assert_int_equal(comm.late, 1ull << VICTIM);
	assert_true(comm.stalled_ns >= 900000000ull);
	assert_non_null(strstr(comm.op, "all_reduce"));
	assert_non_null(strstr(comm.op, "256"));
}

static const struct node_options default_config = {.config = ""};

static void run_stop(uint32_t executor)
{
	struct node *node = node_start(&default_config);
	struct stop_case c = {executor, 0};

	node_expect(node, "late ranks: 1", 1, 1);
	struct world *world = world_start(node, N_RANKS, rank_stopped, &c);
	assert_true(flag_wait(world->shared, FLAG_RUNNING, 1, 10000));
	test_sleep_ms(50);
	world_kill(world, VICTIM, SIGSTOP);
	uint64_t stopped_at = test_now_ms();
	node_wait_log(node, "late ranks: 1", "all_reduce of 256 float32", 2500);
	assert_true(test_now_ms() - stopped_at >= 900);
	check_late_shown(node);
	/* They still wait: no progress while the member is stopped. */
	uint64_t before = atomic_load(&world->shared->values[0]);
	test_sleep_ms(200);
	assert_int_equal(atomic_load(&world->shared->values[0]), before);
	world_kill(world, VICTIM, SIGCONT);
	flag_set(world->shared, FLAG_KILLED, 2);
	world_join(world);
	node_stop(node);
}

static void test_stopped_inline(void **state)
{
	(void)state;
	run_stop(RCCLX_EXECUTOR_INLINE);
}

static void test_stopped_daemon_executor(void **state)
{
	(void)state;
	run_stop(RCCLX_EXECUTOR_DAEMON);
}

static void run_stop_timeout(uint32_t executor)
{
	struct node *node = node_start(&default_config);
	struct stop_case c = {executor, 400};

	node_expect(node, "late ranks: 1", 0, 1);
	struct world *world = world_start(node, N_RANKS, rank_stopped, &c);
	assert_true(flag_wait(world->shared, FLAG_RUNNING, 1, 10000));
	world_kill(world, VICTIM, SIGSTOP);
	assert_true(flag_wait(world->shared, FLAG_KILLED, 1, 900));
	world_kill(world, VICTIM, SIGCONT);
	world_join(world);
	node_stop(node);
}

static void test_stopped_timeout(void **state)
{
	(void)state;
	run_stop_timeout(RCCLX_EXECUTOR_INLINE);
	run_stop_timeout(RCCLX_EXECUTOR_DAEMON);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_killed_inline_tiny),
		HARNESS_TEST(test_killed_inline_64mib),
		HARNESS_TEST(test_killed_inline_blocked),
		HARNESS_TEST(test_killed_daemon_executor),
		HARNESS_TEST(test_killed_with_queue),
		HARNESS_TEST(test_bystanders_go_on),
		HARNESS_TEST(test_stopped_inline),
		HARNESS_TEST(test_stopped_daemon_executor),
		HARNESS_TEST(test_stopped_timeout),
	};

	return HARNESS_RUN("peer_death", tests);
}
