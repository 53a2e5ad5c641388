/* SPDX-License-Identifier: MIT */
/* A daemon with 64 idle sessions and communicators uses no CPU time and little memory. */
#include "harness.h"

#include <stdio.h>
#include <unistd.h>

#define N_SESSIONS         64u
#define MEMORY_PER_SESSION 256u /* KiB */
#define WATCH_MS           2000u

enum flags { FLAG_GO_ON };

static int rank_idle(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_sync(ctx));
	RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_GO_ON, 1, 20000), "no sign");
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	RANK_DO(rank_sync(ctx));
	RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_GO_ON, 2, 20000), "no sign");
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	return rank_leave(ctx, comm, client);
}

static void wait_for_syncs(const struct world *world, uint32_t n)
{
	uint64_t end = test_now_ms() + 15000 * test_slow();

	while (atomic_load(&world->shared->n_arrived) < n * N_SESSIONS && test_now_ms() < end)
		test_sleep_ms(5);
	assert_int_equal(atomic_load(&world->shared->n_arrived), n * N_SESSIONS);
	test_sleep_ms(200);
}

static void check_no_cpu(const struct node *node)
{
	struct proc_use before = {0};
	struct proc_use after = {0};

	assert_true(proc_use(node->pid, &before));
	test_sleep_ms(WATCH_MS);
	assert_true(proc_use(node->pid, &after));
	if (after.cpu_ticks - before.cpu_ticks > 1)
		fail_msg("%llu ticks of CPU time in %u ms at rest",
			(unsigned long long)(after.cpu_ticks - before.cpu_ticks), WATCH_MS);
}

static uint64_t rss_kib(pid_t pid)
{
	char path[64] = "";
	char line[256] = "";
	unsigned long long kib = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "Rss: %llu kB", &kib) == 1)
			break;
	(void)fclose(file);
	return kib;
}

static void test_at_rest(void **state)
{
	struct node *node = node_start(NULL);
	uint64_t before = rss_kib(node->pid);
	struct world *world = world_start(node, N_SESSIONS, rank_idle, NULL);

	(void)state;
	wait_for_syncs(world, 1);
	uint64_t after = rss_kib(node->pid);
	/* Not under a sanitizer: its shadow is counted as well. */
	if (!test_sanitized() && after > before + N_SESSIONS * MEMORY_PER_SESSION)
		fail_msg("%u sessions take %llu KiB", N_SESSIONS,
			(unsigned long long)(after - before));
	check_no_cpu(node);
	flag_set(world->shared, FLAG_GO_ON, 1);
	wait_for_syncs(world, 2);
	check_no_cpu(node);
	flag_set(world->shared, FLAG_GO_ON, 2);
	world_join(world);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_at_rest),
	};

	return HARNESS_RUN("idle", tests);
}
