/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORLDS_MAX 4u

/* Static: a failing test jumps out of its stack frame, its ranks still have to be ended. */
static struct world worlds[WORLDS_MAX];

/* Present only in programs that are built with a leak checker. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* ---- both sides ---- */

void flag_set(struct world_shared *shared, uint32_t flag, uint32_t value)
{
	atomic_store(&shared->flags[flag], value);
}

bool flag_wait(struct world_shared *shared, uint32_t flag, uint32_t value, uint64_t ms)
{
	uint64_t end = test_now_ms() + ms * test_slow();

	while (atomic_load(&shared->flags[flag]) < value) {
		if (test_now_ms() > end)
			return false;
		test_sleep_ms(1);
	}
	return true;
}

/* ---- a rank's side ---- */

int rank_fail(struct rank_ctx *ctx, const char *file, int line, const char *format, ...)
{
	char *reason = ctx->shared->reasons[ctx->rank];
	va_list args;

	int n = snprintf(reason, WORLD_REASON, "%s:%d: ", file, line);
	va_start(args, format);
	(void)vsnprintf(reason + n, WORLD_REASON - (size_t)n, format, args);
	va_end(args);
	return 1;
}

int rank_sync(struct rank_ctx *ctx)
{
	uint32_t target = ++ctx->n_syncs * ctx->n_ranks;
	uint64_t end = test_now_ms() + WORLD_LIMIT_MS * test_slow();

	atomic_fetch_add(&ctx->shared->n_arrived, 1);
	while (atomic_load(&ctx->shared->n_arrived) < target) {
		RANK_CHECK(ctx, test_now_ms() < end, "another rank did not come to the same point");
		test_sleep_ms(1);
	}
	return 0;
}

int rank_connect(struct rank_ctx *ctx, struct rcclx_client **client_p)
{
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;

	config.timeout_ns = 5000000000ull * test_slow();
	RANK_OK(ctx, rcclx_connect(ctx->socket, &config, client_p));
	return 0;
}

int rank_id(struct rank_ctx *ctx, struct rcclx_client *client, uint32_t slot, bool make,
	struct rcclx_unique_id *id_p)
{
	struct world_shared *shared = ctx->shared;
	uint64_t end = test_now_ms() + WORLD_LIMIT_MS * test_slow();

	if (make) {
		RANK_OK(ctx, rcclx_unique_id_create(client, &shared->ids[slot]));
		atomic_store(&shared->id_ready[slot], 1);
	}
	while (atomic_load(&shared->id_ready[slot]) == 0) {
		RANK_CHECK(ctx, test_now_ms() < end, "nobody made id %u", slot);
		test_sleep_ms(1);
	}
	*id_p = shared->ids[slot];
	return 0;
}

int rank_comm(struct rank_ctx *ctx, struct rcclx_client *client, uint32_t slot,
	struct rcclx_comm **comm_p)
{
	struct rcclx_unique_id id = {0};

	RANK_DO(rank_id(ctx, client, slot, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, ctx->n_ranks, ctx->rank, NULL, comm_p));
	return 0;
}

int rank_leave(struct rank_ctx *ctx, struct rcclx_comm *comm, struct rcclx_client *client)
{
	RANK_OK(ctx, rcclx_comm_destroy(comm));
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static int run_rank(struct world *world, uint32_t rank, rank_fn fn)
{
	struct rank_ctx ctx = {
		.world = world,
		.shared = world->shared,
		.rank = rank,
		.n_ranks = world->n_ranks,
		.socket = world->node->socket,
		.arg = world->arg,
	};
	unsigned int n_fds = proc_n_fds();
	int r = fn(&ctx);

	n_fds += ctx.n_kept_fds;
	if (r == 0 && ctx.n_kept_fds != UINT32_MAX && proc_n_fds() != n_fds)
		r = rank_fail(&ctx, __FILE__, __LINE__, "%u file descriptors, %u before",
			proc_n_fds(), n_fds);
	if (r == 0 && !ctx.unshared && __lsan_do_recoverable_leak_check != NULL &&
		__lsan_do_recoverable_leak_check() != 0)
		r = rank_fail(&ctx, __FILE__, __LINE__, "memory leaked");
	return r;
}

/* ---- the test's side ---- */

static struct world *take_world(void)
{
	for (size_t i = 0; i < WORLDS_MAX; i++)
		if (!worlds[i].used)
			return &worlds[i];
	fail_msg("more than %u worlds in one test", WORLDS_MAX);
	return NULL;
}

static void start_rank(struct world *world, uint32_t rank, rank_fn fn)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		/* The daemon's lifeline belongs to the test alone. */
		(void)close(world->node->lifeline);
		int r = run_rank(world, rank, fn);
		(void)fflush(NULL);
		_exit(r);
	}
	world->pids[rank] = pid;
}

struct world *world_start(const struct node *node, uint32_t n_ranks, rank_fn fn, void *arg)
{
	struct world *world = take_world();
	void *shared = mmap(NULL, sizeof(struct world_shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(n_ranks <= WORLD_MAX);
	assert_true(shared != MAP_FAILED);
	*world = (struct world){
		.used = true, .shared = shared, .node = node, .n_ranks = n_ranks, .arg = arg};
	(void)fflush(NULL);
	for (uint32_t rank = 0; rank < n_ranks; rank++)
		start_rank(world, rank, fn);
	return world;
}

void world_kill(struct world *world, uint32_t rank, int signal)
{
	assert_true(world->pids[rank] > 0);
	if (signal == SIGKILL)
		world->may_die_of[rank] = SIGKILL;
	assert_int_equal(kill(world->pids[rank], signal), 0);
	if (signal != SIGSTOP)
		return;
	uint64_t end = test_now_ms() + 1000 * test_slow();
	while (!proc_is_stopped(world->pids[rank]) && test_now_ms() < end)
		test_sleep_ms(1);
}

/* Why the rank did not end well, or NULL. */
static const char *judge(const struct world *world, uint32_t rank, int status, char *text, size_t n)
{
	const char *reason = world->shared->reasons[rank];

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return NULL;
	if (WIFSIGNALED(status) && world->may_die_of[rank] != 0 &&
		WTERMSIG(status) == world->may_die_of[rank])
		return NULL;
	if (reason[0] != '\0')
		return reason;
	if (WIFSIGNALED(status))
		(void)snprintf(text, n, "died of signal %d", WTERMSIG(status));
	else
		(void)snprintf(text, n, "exit status %d", WEXITSTATUS(status));
	return text;
}

/* Collects those that are done; returns how many still run. */
static uint32_t collect(struct world *world, uint32_t *n_bad)
{
	uint32_t n_running = 0;
	char text[64] = "";

	for (uint32_t rank = 0; rank < world->n_ranks; rank++) {
		int status = 0;

		if (world->pids[rank] == 0)
			continue;
		if (waitpid(world->pids[rank], &status, WNOHANG) == 0) {
			n_running++;
			continue;
		}
		world->pids[rank] = 0;
		const char *why = judge(world, rank, status, text, sizeof(text));
		if (why == NULL)
			continue;
		(void)fprintf(stderr, "rank %u of %u: %s\n", rank, world->n_ranks, why);
		(*n_bad)++;
	}
	return n_running;
}

static void release(struct world *world)
{
	(void)munmap(world->shared, sizeof(*world->shared));
	*world = (struct world){0};
}

void world_join(struct world *world)
{
	uint64_t end = test_now_ms() + harness_left_ms();
	uint32_t n_bad = 0;
	uint32_t n_running = collect(world, &n_bad);

	while (n_running > 0 && test_now_ms() < end) {
		test_sleep_ms(1);
		n_running = collect(world, &n_bad);
	}
	for (uint32_t rank = 0; rank < world->n_ranks; rank++)
		if (world->pids[rank] > 0)
			(void)fprintf(stderr, "rank %u of %u hangs\n", rank, world->n_ranks);
	if (n_running + n_bad > 0)
		fail_msg("%u ranks failed, %u hang", n_bad, n_running);
	release(world);
}

void world_run(const struct node *node, uint32_t n_ranks, rank_fn fn, void *arg)
{
	world_join(world_start(node, n_ranks, fn, arg));
}

void world_kill_leftovers(void)
{
	for (size_t i = 0; i < WORLDS_MAX; i++)
		for (uint32_t rank = 0; worlds[i].used && rank < worlds[i].n_ranks; rank++)
			if (worlds[i].pids[rank] > 0)
				(void)kill(worlds[i].pids[rank], SIGKILL);
}

void world_end_leftovers(void)
{
	world_kill_leftovers();
	for (size_t i = 0; i < WORLDS_MAX; i++) {
		if (!worlds[i].used)
			continue;
		for (uint32_t rank = 0; rank < worlds[i].n_ranks; rank++)
			if (worlds[i].pids[rank] > 0)
				(void)waitpid(worlds[i].pids[rank], NULL, 0);
		release(&worlds[i]);
	}
}
