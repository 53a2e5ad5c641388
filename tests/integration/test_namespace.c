/* SPDX-License-Identifier: MIT */
/*
 * Clients in PID, mount and UTS namespaces of their own, with a tiny /dev/shm, who share nothing
 * with the daemon but the directory of its socket.
 */
#include "harness.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_ELEMS 300000u

static char shared_dir[96]; /* where the socket's directory is mounted */

/* In the new mount namespace: /tmp is empty but for the socket's directory. */
static int make_root(struct rank_ctx *ctx)
{
	const struct node *node = ctx->world->node;
	char keep[] = "/mnt/rcclx-keep";

	RANK_CHECK(ctx, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private: %s",
		strerror(errno));
	RANK_CHECK(ctx, mount("tmpfs", "/mnt", "tmpfs", 0, "size=64k") == 0, "/mnt: %s",
		strerror(errno));
	RANK_CHECK(ctx, mkdir(keep, 0700) == 0, "%s: %s", keep, strerror(errno));
	RANK_CHECK(
		ctx, mount(node->dir, keep, NULL, MS_BIND, NULL) == 0, "bind: %s", strerror(errno));
	RANK_CHECK(ctx, mount("tmpfs", "/tmp", "tmpfs", 0, "size=64k") == 0, "/tmp: %s",
		strerror(errno));
	RANK_CHECK(ctx, mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") == 0, "/dev/shm: %s",
		strerror(errno));
	(void)snprintf(shared_dir, sizeof(shared_dir), "/tmp/socket-%u", ctx->rank);
	RANK_CHECK(ctx, mkdir(shared_dir, 0700) == 0, "%s: %s", shared_dir, strerror(errno));
	RANK_CHECK(ctx, mount(keep, shared_dir, NULL, MS_MOVE, NULL) == 0, "move: %s",
		strerror(errno));
	RANK_CHECK(ctx, access(node->socket, F_OK) != 0, "the old path still works");
	RANK_CHECK(ctx, sethostname("other", 5) == 0, "sethostname: %s", strerror(errno));
	return 0;
}

static int check_sum(struct rank_ctx *ctx, struct rcclx_comm *comm, float *data, uint32_t executor)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	uint32_t n = ctx->n_ranks;

	config.executor = executor;
	for (uint32_t i = 0; i < N_ELEMS; i++)
		data[i] = (float)(i % 1000 + ctx->rank);
	RANK_OK(ctx,
		rcclx_all_reduce(comm, data, data, N_ELEMS, RCCLX_FLOAT32, RCCLX_SUM, &config));
	for (uint32_t i = 0; i < N_ELEMS; i++)
		RANK_CHECK(ctx, data[i] == (float)(n * (i % 1000) + n * (n - 1) / 2),
			"element %u is %g", i, (double)data[i]);
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	return 0;
}

/* Single copy finds other processes, or none, where the daemon says the peers are. */
static int check_gather(struct rank_ctx *ctx, struct rcclx_comm *comm, const float *data)
{
	float *all = malloc((size_t)ctx->n_ranks * N_ELEMS * sizeof(float));

	RANK_CHECK(ctx, all != NULL, "no memory");
	for (uint32_t round = 0; round < 3; round++) {
		memset(all, 0, (size_t)ctx->n_ranks * N_ELEMS * sizeof(float));
		RANK_OK(ctx, rcclx_all_gather(comm, data, all, N_ELEMS, RCCLX_FLOAT32, NULL));
		for (uint32_t rank = 0; rank < ctx->n_ranks; rank++)
			RANK_CHECK(ctx,
				memcmp(all + (size_t)rank * N_ELEMS, data,
					N_ELEMS * sizeof(float)) == 0,
				"block of rank %u", rank);
	}
	free(all);
	return 0;
}

static int use_everything(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	void *memory = NULL;
	float *private_memory = malloc(N_ELEMS * sizeof(float));

	(void)setenv("RCCLX_SINGLE_COPY", "on", 1);

	RANK_CHECK(ctx, private_memory != NULL, "no memory");
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_OK(ctx, rcclx_mem_alloc(client, N_ELEMS * sizeof(float), &memory));
	for (uint32_t executor = RCCLX_EXECUTOR_INLINE; executor <= RCCLX_EXECUTOR_DAEMON;
		executor++) {
		RANK_DO(check_sum(ctx, comm, memory, executor));
		RANK_DO(check_sum(ctx, comm, private_memory, executor));
	}
	/* The sums are the same on all ranks. */
	RANK_DO(check_gather(ctx, comm, private_memory));
	RANK_OK(ctx, rcclx_mem_free(client, memory));
	free(private_memory);
	return rank_leave(ctx, comm, client);
}

/* First process of the new PID namespace. */
static int in_namespace(struct rank_ctx *ctx)
{
	char socket[128] = "";

	RANK_CHECK(ctx, getpid() == 1, "pid is %d", (int)getpid());
	RANK_DO(make_root(ctx));
	(void)snprintf(socket, sizeof(socket), "%s/rcclxd.sock", shared_dir);
	ctx->socket = socket;
	return use_everything(ctx);
}

static int rank_isolated(struct rank_ctx *ctx)
{
	int status = 0;
	bool isolated = ctx->arg == NULL || ctx->rank % 2 == 1;

	if (!isolated)
		return use_everything(ctx);
	RANK_CHECK(ctx, unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS) == 0, "unshare: %s",
		strerror(errno));
	ctx->unshared = true;
	pid_t child = fork();
	RANK_CHECK(ctx, child >= 0, "no child");
	if (child == 0)
		_exit(in_namespace(ctx));
	RANK_CHECK(ctx, waitpid(child, &status, 0) == child, "no child to wait for");
	RANK_CHECK(ctx, status == 0, "in the namespace: status 0x%x, %.400s", (unsigned int)status,
		ctx->shared->reasons[ctx->rank]);
	return 0;
}

/* Containers sometimes forbid it even to root. */
static void skip_unless_allowed(void)
{
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS) == 0 &&
					mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
				? 0
				: 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status != 0)
		harness_skip("namespaces need root");
}

static void test_all_isolated(void **state)
{
	(void)state;
	skip_unless_allowed();
	struct node *node = node_start(NULL);
	world_run(node, 3, rank_isolated, NULL);
	node_stop(node);
}

static void test_half_isolated(void **state)
{
	(void)state;
	skip_unless_allowed();
	struct node *node = node_start(NULL);
	world_run(node, 4, rank_isolated, node);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_all_isolated),
		HARNESS_TEST(test_half_isolated),
	};

	return HARNESS_RUN("namespace", tests);
}
