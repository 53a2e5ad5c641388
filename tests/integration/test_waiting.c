/* SPDX-License-Identifier: MIT */
/* What the group "waiting" of the configuration does: polling busily, and keeping cores awake. */
#include "harness.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define N_OPS 300u

enum flags { FLAG_GO_ON };

static int rank_started(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_op *op = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t i = 0; i < N_OPS; i++) {
		int32_t in = (int32_t)(i + ctx->rank);
		int32_t out = 0;

		/* Now and then long enough for the daemon to fall asleep. */
		if (i % 50 == 49)
			test_sleep_ms(5);
		RANK_OK(ctx, rcclx_all_reduce_start(
				     comm, &in, &out, 1, RCCLX_INT32, RCCLX_SUM, NULL, &op));
		RANK_OK(ctx, rcclx_op_wait(op, RCCLX_FOREVER));
		RANK_OK(ctx, rcclx_op_free(op));
		RANK_CHECK(ctx, out == (int32_t)(3 * i + 3), "op %u: %d", i, out);
	}
	RANK_DO(rank_sync(ctx));
	RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_GO_ON, 1, 20000), "no sign");
	return rank_leave(ctx, comm, client);
}

static uint64_t ticks(const struct node *node)
{
	struct proc_use use = {0};

	assert_true(proc_use(node->pid, &use));
	return use.cpu_ticks;
}

static void wait_for_all(const struct world *world, uint32_t n)
{
	uint64_t end = test_now_ms() + 20000 * test_slow();

	while (atomic_load(&world->shared->n_arrived) < n && test_now_ms() < end)
		test_sleep_ms(5);
	assert_int_equal(atomic_load(&world->shared->n_arrived), n);
}

/* Operations complete while the daemon polls, after it has slept, and at rest it uses no CPU. */
static void test_busy_poll(void **state)
{
	struct node_options options = {
		.config = "waiting = { busy_poll_us = 2000; spin_us = 5; };"};
	struct node *node = node_start(&options);
	struct world *world = world_start(node, 3, rank_started, NULL);
	uint64_t before = 0;

	(void)state;
	wait_for_all(world, 3);
	test_sleep_ms(100);
	before = ticks(node);
	test_sleep_ms(1000);
	/* Of 100; a sanitizer has a thread of its own. */
	assert_in_range(ticks(node) - before, 0, 10);
	flag_set(world->shared, FLAG_GO_ON, 1);
	world_join(world);
	node_stop(node);
}

static bool holds_device(pid_t pid)
{
	char path[64] = "";
	struct dirent *entry = NULL;
	bool holds = false;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		char target[64] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) > 0)
			holds |= strcmp(target, "/dev/cpu_dma_latency") == 0;
	}
	(void)closedir(dir);
	return holds;
}

/* Held while a communicator exists, and not longer. */
static void test_cpu_dma_latency(void **state)
{
	struct node_options options = {.config = "waiting = { cpu_dma_latency = true; };"};
	struct node *node = NULL;
	struct world *world = NULL;
	bool permitted = access("/dev/cpu_dma_latency", W_OK) == 0;

	(void)state;
	node = node_start(&options);
	if (!permitted)
		node_expect(node, "/dev/cpu_dma_latency cannot be used", 1, 1);
	assert_false(holds_device(node->pid));
	world = world_start(node, 3, rank_started, NULL);
	wait_for_all(world, 3);
	assert_int_equal(holds_device(node->pid), permitted);
	flag_set(world->shared, FLAG_GO_ON, 1);
	world_join(world);
	node_check_idle(node);
	assert_false(holds_device(node->pid));
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_busy_poll),
		HARNESS_TEST(test_cpu_dma_latency),
	};

	return HARNESS_RUN("waiting", tests);
}
