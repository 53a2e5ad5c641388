/* SPDX-License-Identifier: MIT */
/* Many processes come and go at once, well-behaved or killed; the daemon stays as it was. */
#include "harness.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_PROCESSES 64u

/* What the daemon's heap may keep after a first round has warmed it up. */
#define SPARE_RSS_KIB 2048u

static int rank_short_life(struct rank_ctx *ctx)
{
	static struct rcclx_client *client;
	static struct rcclx_comm *comm;
	int32_t x[4] = {1, 2, 3, (int32_t)ctx->rank};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_OK(ctx, rcclx_all_reduce(comm, x, x, 4, RCCLX_INT32, RCCLX_MAX, NULL));
	RANK_CHECK(ctx, x[3] == (int32_t)ctx->n_ranks - 1, "max is %d", x[3]);
	/* Half of them leave properly, the others just exit. */
	if (ctx->rank % 2 == 0)
		_exit(0);
	return rank_leave(ctx, comm, client);
}

/* Others on the machine may use /dev/shm meanwhile: only names of ours count. */
static unsigned int n_in_dev_shm(void)
{
	unsigned int n = 0;
	DIR *dir = opendir("/dev/shm");

	if (dir == NULL)
		return 0;
	for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
		if (strstr(entry->d_name, "rcclx") != NULL)
			n++;
	(void)closedir(dir);
	return n;
}

static void check_memory(const struct node *node, const struct proc_use *before)
{
	struct proc_use now = {0};

	assert_true(proc_use(node->pid, &now));
	/* Freed memory of a sanitizer stays in quarantine. */
	if (!test_sanitized() && now.rss_kib > before->rss_kib + SPARE_RSS_KIB)
		fail_msg("the daemon has %llu KiB, %llu before", (unsigned long long)now.rss_kib,
			(unsigned long long)before->rss_kib);
}

static void test_all_at_once(void **state)
{
	unsigned int n_rounds = test_long() ? 100 : 10;
	struct node *node = node_start(NULL);
	struct proc_use warm = {0};

	(void)state;
	harness_limit(test_long() ? 600 : 60);
	for (unsigned int round = 0; round < n_rounds; round++) {
		world_run(node, N_PROCESSES, rank_short_life, NULL);
		node_check_idle(node);
		if (round == 0)
			assert_true(proc_use(node->pid, &warm));
	}
	check_memory(node, &warm);
	assert_int_equal(n_in_dev_shm(), 0);
	node_stop(node);
}

/* ---- killed at some point of a life ---- */

static int rank_until_killed(struct rank_ctx *ctx)
{
	static struct rcclx_client *client;
	static struct rcclx_comm *comm;
	static float data[5000];

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t i = 0;; i++) {
		struct rcclx_op *op = NULL;
		void *memory = NULL;

		RANK_OK(ctx, rcclx_mem_alloc(client, 100000, &memory));
		RANK_OK(ctx,
			rcclx_all_reduce(comm, data, data, 5000, RCCLX_FLOAT32, RCCLX_SUM, NULL));
		RANK_OK(ctx, rcclx_all_reduce_start(
				     comm, data, data, 5000, RCCLX_FLOAT32, RCCLX_SUM, NULL, &op));
		RANK_OK(ctx, rcclx_op_wait(op, RCCLX_FOREVER));
		RANK_OK(ctx, rcclx_op_free(op));
		RANK_OK(ctx, rcclx_mem_free(client, memory));
	}
}

/* A spread of moments from the first instruction of the client to a few operations. */
static void sleep_for_round(unsigned int round)
{
	unsigned int us = round * 7919 % 12000;

	(void)usleep(us);
}

static void test_killed_anywhere(void **state)
{
	unsigned int n_rounds = test_long() ? 1000 : 100;
	struct node *node = node_start(NULL);
	struct proc_use warm = {0};

	(void)state;
	harness_limit(test_long() ? 600 : 60);
	for (unsigned int round = 0; round < n_rounds; round++) {
		struct world *world = world_start(node, 1, rank_until_killed, NULL);

		sleep_for_round(round);
		world_kill(world, 0, SIGKILL);
		world_join(world);
		if (round == n_rounds / 10) {
			node_check_idle(node);
			assert_true(proc_use(node->pid, &warm));
		}
	}
	node_check_idle(node);
	check_memory(node, &warm);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_all_at_once),
		HARNESS_TEST(test_killed_anywhere),
	};

	return HARNESS_RUN("churn", tests);
}
