/* SPDX-License-Identifier: MIT */
/* Devices, kernels and processes that fail: what the user sees, and what goes on. */
#include "gpu_node.h"
#include "../../kernels/coll_types.h"
#include "../../shm/rx_base.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_COUNT 5000u

static const struct coll_case simple = {
	.coll = RX_ALL_REDUCE,
	.dtype = RX_FLOAT32,
	.op = RX_SUM,
	.count = 1000,
	.memory = COLL_DEVICE,
};

static int open_on(struct coll_rank *c, struct rank_ctx *ctx, uint32_t device)
{
	return gpu_open_rank(c, ctx, device, (ctx->n_ranks * (MAX_COUNT + 1) + 64) * 8 + 4096);
}

/*
 * Until a call fails. On a machine that is too busy to compare memory in time the first calls are
 * done with copies.
 */
static int try_until_failure(struct coll_rank *c, rcclx_result *result_p)
{
	*result_p = RCCLX_OK;
	for (uint32_t i = 0; i < 200 && *result_p == RCCLX_OK; i++)
		RANK_DO(coll_try(c, &simple, result_p));
	return 0;
}

/* A communicator of this rank alone works, whatever has happened to the other one. */
static int run_alone(const struct coll_rank *c)
{
	struct coll_rank alone = *c;
	struct rank_ctx *ctx = c->ctx;
	struct rcclx_unique_id id;

	alone.rank = 0;
	alone.n_ranks = 1;
	RANK_OK(ctx, rcclx_unique_id_create(c->client, &id));
	RANK_OK(ctx, rcclx_comm_create(c->client, &id, 1, 0, NULL, &alone.comm));
	RANK_DO(coll_run(&alone, &simple));
	RANK_OK(ctx, rcclx_comm_destroy(alone.comm));
	return 0;
}

/* Ranks 0 and 1 on devices 0 and 1, then a communicator of rank 0 alone. */
static int rank_failing(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank));
	RANK_DO(try_until_failure(&c, &result));
	RANK_CHECK(ctx, result == RCCLX_ERR_SYSTEM, "%s: \"%s\"", rcclx_strerror(result),
		rcclx_last_error());
	RANK_TEXT(ctx, "rcclxctl devices");
	RANK_RESULT(ctx, rcclx_barrier(c.comm, NULL), RCCLX_ERR_SYSTEM);
	RANK_DO(rank_sync(ctx));
	if (ctx->rank == 0)
		RANK_DO(run_alone(&c));
	return gpu_close_rank(&c);
}

static void test_launch_fails(void **state)
{
	struct node *node = gpu_node(NULL, "launch-fails=1");

	(void)state;
	node_expect(node, "error 701", 1, 1);
	world_run(node, 2, rank_failing, NULL);
	node_stop(node);
}

static void test_device_lost(void **state)
{
	struct node *node = gpu_node(NULL, "lost=1");

	(void)state;
	node_expect(node, "error 719", 2, 2);
	world_run(node, 2, rank_failing, NULL);
	gpu_expect(node, "", "error 719");
	gpu_expect(node, "--json", "\"state\": \"failed\"");
	/* What it had mapped goes with the process. */
	assert_int_equal(kill(node->pid, SIGTERM), 0);
	node_wait_end(node, 10000);
	node_forget(node);
}

static int rank_refused(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, 0));
	RANK_DO(try_until_failure(&c, &result));
	RANK_CHECK(ctx, result == RCCLX_ERR_SYSTEM, "%s", rcclx_strerror(result));
	return gpu_close_rank(&c);
}

static void test_kernel_gives_up(void **state)
{
	struct node *node = gpu_node(NULL, "args");

	(void)state;
	node_expect(node, "a kernel gave up with status 0x3", 1, 1);
	world_run(node, 2, rank_refused, NULL);
	node_stop(node);
}

/* A kernel that never ends: the call does, and so does the daemon. */
static int rank_stuck(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	uint64_t start = test_now_ms();
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank));
	c.timeout_ns = 300000000;
	RANK_DO(try_until_failure(&c, &result));
	RANK_CHECK(ctx, result == RCCLX_ERR_TIMEOUT, "%s: \"%s\"", rcclx_strerror(result),
		rcclx_last_error());
	RANK_WITHIN(ctx, start, 3000);
	return gpu_close_rank(&c);
}

static void test_stuck_kernel(void **state)
{
	struct node *node = NULL;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	/* What a kernel that never ends may still use is left behind, which is a leak here. */
	skip();
#endif
	node = gpu_node(NULL, "stuck");
	node_expect(node, "operations did not end in time", 1, 1);
	world_run(node, 2, rank_stuck, NULL);
	assert_int_equal(kill(node->pid, SIGTERM), 0);
	node_wait_end(node, 10000);
	node_forget(node);
}

/* ---- kernels that wait for each other ---- */

/* In one shot through slots, so that no device ends without the others. */
#define WAITING "device_flat_max = 9000000L;"

static void test_launch_fails_on_one(void **state)
{
	struct node *node = NULL;

	(void)state;
	gpu_configure(WAITING, "barrier_timeout_s = 60;");
	node = gpu_node(NULL, "launch-fails=1");
	/* That of device 0 is there already, and ends when it is told to. */
	node_expect(node, "error 701", 1, 2);
	world_run(node, 2, rank_failing, NULL);
	assert_true(gpu_count(node, 0, "exchange_operations") > 0);
	node_stop(node);
	gpu_configure("", "");
}

static void test_one_device_lost(void **state)
{
	struct node *node = NULL;

	(void)state;
	gpu_configure(WAITING, "barrier_timeout_s = 60;");
	node = gpu_node(NULL, "lost=1");
	node_expect(node, "error 719", 2, 3);
	world_run(node, 2, rank_failing, NULL);
	assert_true(gpu_count(node, 0, "exchange_operations") > 0);
	assert_int_equal(kill(node->pid, SIGTERM), 0);
	node_wait_end(node, 10000);
	node_forget(node);
	gpu_configure("", "");
}

/* Its peer's gives up, and all ranks hear of it, though they have set no limit. */
static int rank_beside_stuck(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	uint64_t start = test_now_ms();
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank));
	RANK_DO(try_until_failure(&c, &result));
	RANK_CHECK(ctx, result == RCCLX_ERR_SYSTEM, "%s: \"%s\"", rcclx_strerror(result),
		rcclx_last_error());
	RANK_TEXT(ctx, "rcclxctl devices");
	RANK_WITHIN(ctx, start, 5000);
	return gpu_close_rank(&c);
}

static void test_one_stuck_kernel(void **state)
{
	struct node *node = NULL;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	/* As above. */
	skip();
#endif
	gpu_configure(WAITING, "barrier_timeout_s = 0.3;");
	node = gpu_node(NULL, "stuck=1");
	node_expect(node, "a kernel waited in vain for that of launch 1", 1, 1);
	node_expect(node, "operations did not end in time", 1, 1);
	world_run(node, 2, rank_beside_stuck, NULL);
	assert_int_equal(kill(node->pid, SIGTERM), 0);
	node_wait_end(node, 10000);
	node_forget(node);
	gpu_configure("", "");
}

/* ---- ranks that die ---- */

/* While kernels read its memory. */
static int rank_dying(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	uint64_t killed_ms = 0;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank));
	RANK_DO(coll_run(&c, &simple));
	atomic_store(&ctx->shared->values[ctx->rank], 1);
	for (uint32_t i = 0; i < 40 && result == RCCLX_OK; i++)
		RANK_DO(coll_try(&c, &simple, &result));
	killed_ms = atomic_load(&ctx->shared->values[WORLD_MAX - 1]);
	RANK_CHECK(ctx, result == RCCLX_ERR_PEER_LOST, "%s: \"%s\"", rcclx_strerror(result),
		rcclx_last_error());
	/* What runs is finished first, 300 ms, and a quarter of a second for who needs no more. */
	RANK_CHECK(ctx, killed_ms > 0, "nobody was killed");
	RANK_WITHIN(ctx, killed_ms, 1000 + 300);
	RANK_DO(run_alone(&c));
	return gpu_close_rank(&c);
}

static int rank_well(struct rank_ctx *ctx)
{
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank));
	RANK_DO(coll_run(&c, &simple));
	return gpu_close_rank(&c);
}

static void test_death_in_the_middle(void **state)
{
	struct node *node = gpu_node(NULL, "slow");
	struct world *world = world_start(node, 3, rank_dying, NULL);

	(void)state;
	for (uint32_t i = 0; i < 500 && !atomic_load(&world->shared->values[1]); i++)
		test_sleep_ms(20);
	test_sleep_ms(100);
	atomic_store(&world->shared->values[WORLD_MAX - 1], test_now_ms());
	world_kill(world, 1, SIGKILL);
	world_join(world);
	gpu_expect(node, "--json", "\"maps\": 0");
	gpu_faults(NULL);
	world_run(node, 3, rank_well, NULL);
	node_stop(node);
}

/* And when it goes through host memory: no phase comes after the one that runs. */
static void test_death_while_staged(void **state)
{
	struct node *node = gpu_node("apart", "apart,slow");
	struct world *world = world_start(node, 3, rank_dying, NULL);

	(void)state;
	for (uint32_t i = 0; i < 500 && !atomic_load(&world->shared->values[1]); i++)
		test_sleep_ms(20);
	test_sleep_ms(100);
	atomic_store(&world->shared->values[WORLD_MAX - 1], test_now_ms());
	world_kill(world, 1, SIGKILL);
	world_join(world);
	gpu_expect(node, "--json", "\"maps\": 0");
	gpu_faults("apart");
	world_run(node, 3, rank_well, NULL);
	assert_true(gpu_count(node, 0, "staged_operations") > 0);
	node_stop(node);
}

/* And when its device's kernel is waited for: all of them end, as they need no rank. */
static void test_death_while_waiting(void **state)
{
	(void)state;
	gpu_configure(WAITING, "");
	test_death_in_the_middle(state);
	gpu_configure("device_flat_max = 0; device_tree_min = 0; device_push_min = 0;", "");
	test_death_in_the_middle(state);
	gpu_configure("", "");
}

/* At any moment, while faults come and go: the others hear of it, and nothing stays behind. */
static int rank_churning(struct rank_ctx *ctx)
{
	static const uint8_t colls[] = {
		RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL, RX_BROADCAST};
	rcclx_result result = RCCLX_OK;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank % 3));
	atomic_store(&ctx->shared->values[ctx->rank], 1);
	for (uint32_t i = 0; result == RCCLX_OK; i++) {
		struct coll_case what = simple;

		what.coll = colls[i % RX_ARRAY_SIZE(colls)];
		what.op = rx_coll_reduces(what.coll) ? RX_SUM : 0;
		what.memory = COLL_DEVICE + i % (COLL_DEVICE_END - COLL_DEVICE);
		what.seed = i;
		RANK_DO(coll_try(&c, &what, &result));
		if (i % 5 == 4) {
			RANK_DO(gpu_take_memory(&c));
			RANK_DO(gpu_give_memory(&c, ctx, ctx->rank % 3));
		}
	}
	RANK_CHECK(ctx, result == RCCLX_ERR_PEER_LOST, "%s: \"%s\"", rcclx_strerror(result),
		rcclx_last_error());
	RANK_CHECK(ctx, atomic_load(&ctx->shared->values[WORLD_MAX - 1]) > 0, "nobody was killed");
	RANK_WITHIN(ctx, atomic_load(&ctx->shared->values[WORLD_MAX - 1]), 2000);
	return gpu_close_rank(&c);
}

static void test_deaths_and_faults(void **state)
{
	static const char *const faults[] = {"import-fails", NULL, "jitter", "import-wrong", NULL,
		"import-fails=1", "jitter", NULL};
	struct node *node = gpu_node(NULL, NULL);

	(void)state;
	for (uint32_t i = 0; i < RX_ARRAY_SIZE(faults); i++) {
		struct world *world = world_start(node, 4, rank_churning, NULL);

		for (uint32_t k = 0; k < 500 && !atomic_load(&world->shared->values[i % 4]); k++)
			test_sleep_ms(10);
		gpu_faults(faults[i]);
		test_sleep_ms(20 + 37 * i % 100);
		atomic_store(&world->shared->values[WORLD_MAX - 1], test_now_ms());
		world_kill(world, i % 4, SIGKILL);
		world_join(world);
	}
	gpu_faults(NULL);
	gpu_expect(node, "--json", "\"maps\": 0");
	world_run(node, 3, rank_well, NULL);
	node_stop(node);
}

/* ---- daemons that die ---- */

static int rank_orphaned(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank));
	atomic_store(&ctx->shared->values[ctx->rank], 1);
	while (result == RCCLX_OK)
		RANK_DO(try_until_failure(&c, &result));
	RANK_CHECK(ctx, result == RCCLX_ERR_DAEMON_LOST, "%s: \"%s\"", rcclx_strerror(result),
		rcclx_last_error());
	RANK_WITHIN(ctx, atomic_load(&ctx->shared->values[WORLD_MAX - 1]), 1000);
	return gpu_close_rank(&c);
}

static void test_daemon_dies(void **state)
{
	struct node *node = gpu_node(NULL, "slow");
	struct world *world = world_start(node, 3, rank_orphaned, NULL);

	(void)state;
	for (uint32_t k = 0; k < 500 && !atomic_load(&world->shared->values[0]); k++)
		test_sleep_ms(10);
	test_sleep_ms(400);
	atomic_store(&world->shared->values[WORLD_MAX - 1], test_now_ms());
	node_kill(node);
	world_join(world);
	gpu_faults(NULL);
	node_restart(node);
	world_run(node, 3, rank_well, NULL);
	node_use_is_fine(node);
	node_stop(node);
}

/* ---- memory that is freed while it is in use ---- */

static int rank_freeing(struct rank_ctx *ctx)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct coll_rank c;
	struct rcclx_op *op = NULL;
	rcclx_result result = RCCLX_OK;

	RANK_DO(open_on(&c, ctx, ctx->rank));
	RANK_DO(coll_run(&c, &simple));
	RANK_OK(ctx, rcclx_all_reduce_start(c.comm, (void *)(uintptr_t)c.device.address,
			     (void *)(uintptr_t)c.device.address, 1000, RCCLX_FLOAT32, RCCLX_SUM,
			     &config, &op));
	if (ctx->rank == 1)
		RANK_DO(gpu_take_memory(&c));
	result = rcclx_op_wait(op, RCCLX_FOREVER);
	RANK_CHECK(ctx, result == RCCLX_OK || result == RCCLX_ERR_SYSTEM, "%s",
		rcclx_strerror(result));
	RANK_OK(ctx, rcclx_op_free(op));
	/* Its sums are anything; those of what comes after are right. */
	if (ctx->rank == 1)
		RANK_DO(gpu_give_memory(&c, ctx, ctx->rank));
	if (result == RCCLX_OK)
		RANK_DO(coll_run(&c, &simple));
	return gpu_close_rank(&c);
}

static void test_freed_in_use(void **state)
{
	struct node *node = gpu_node(NULL, "slow");

	(void)state;
	world_run(node, 3, rank_freeing, NULL);
	gpu_expect(node, "--json", "\"maps\": 0");
	node_stop(node);
}

/* ---- devices that do not reach each other ---- */

static int rank_apart(struct rank_ctx *ctx)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, 2 * ctx->rank));
	config.executor = RCCLX_EXECUTOR_INLINE;
	RANK_RESULT(ctx,
		rcclx_all_reduce(c.comm, (void *)(uintptr_t)c.device.address,
			(void *)(uintptr_t)c.device.address, 10, RCCLX_FLOAT32, RCCLX_SUM, &config),
		RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "RCCLX_EXECUTOR_INLINE with device memory");
	RANK_DO(coll_run(&c, &simple));
	return gpu_close_rank(&c);
}

static void test_unreachable(void **state)
{
	struct node *node = gpu_node_cold("devices=3,island=2");

	(void)state;
	world_run(node, 2, rank_apart, NULL);
	node_use_is_fine(node);
	node_stop(node);
}

/* Copies and kernels through host memory that are refused, or never end, or whose ranks die. */
static void test_apart_fails(void **state)
{
	struct node *node = gpu_node("apart", "apart,launch-fails=1");

	(void)state;
	node_expect(node, "error 701", 1, 1);
	world_run(node, 2, rank_failing, NULL);
	node_stop(node);
	node = gpu_node("apart", "apart,lost=1");
	node_expect(node, "error 719", 2, 2);
	world_run(node, 2, rank_failing, NULL);
	assert_int_equal(kill(node->pid, SIGTERM), 0);
	node_wait_end(node, 10000);
	node_forget(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_launch_fails),
		HARNESS_TEST(test_device_lost),
		HARNESS_TEST(test_kernel_gives_up),
		HARNESS_TEST(test_stuck_kernel),
		HARNESS_TEST(test_launch_fails_on_one),
		HARNESS_TEST(test_one_device_lost),
		HARNESS_TEST(test_one_stuck_kernel),
		HARNESS_TEST(test_death_in_the_middle),
		HARNESS_TEST(test_death_while_waiting),
		HARNESS_TEST(test_death_while_staged),
		HARNESS_TEST(test_deaths_and_faults),
		HARNESS_TEST(test_daemon_dies),
		HARNESS_TEST(test_freed_in_use),
		HARNESS_TEST(test_unreachable),
		HARNESS_TEST(test_apart_fails),
	};
	int failed = 0;

	if (!gpu_setup(TEST_FAMILY))
		return 77;
	failed = HARNESS_RUN("gpu-faults-" TEST_FAMILY, tests);
	gpu_cleanup();
	return failed;
}
