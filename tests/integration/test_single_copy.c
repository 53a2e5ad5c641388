/* SPDX-License-Identifier: MIT */
/*
 * Single copy of private memory: ranks read each other's memory with the kernel's help. The calls
 * go through a process_vm_readv() of this program's own, which counts them and can make one fail.
 */
#include "coll_case.h"
#include "harness.h"

#include "../../kernels/coll_types.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const uint8_t movers[] = {RX_ALL_GATHER, RX_ALL_TO_ALL, RX_BROADCAST, RX_GATHER, RX_SCATTER,
	RX_ALL_GATHER_V, RX_ALL_TO_ALL_V};

#define N_MOVERS  (sizeof(movers) / sizeof(movers[0]))
#define MAX_COUNT 20000u
/* Above single_min for every type, and whatever a variable collective makes of it. */
#define BIG_COUNT 18000u
/* Reads that a rank needs to try each of its peers. */
#define N_PROOFS(n_ranks) ((n_ranks)-1)

/* Of this process: a rank. */
static uint32_t n_reads;
static uint32_t fail_from; /* the first read that fails, and all after it; 0: none */
static int fail_how;       /* errno; -1: half of it is read */

/* The library finds this one first. */
__attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t pid,
	const struct iovec *local, unsigned long n_local, const struct iovec *remote,
	unsigned long n_remote, unsigned long flags)
{
	n_reads++;
	if (fail_from != 0 && n_reads >= fail_from) {
		if (fail_how >= 0) {
			errno = fail_how;
			return -1;
		}
		struct iovec half = {local[0].iov_base, local[0].iov_len / 2};
		return syscall(SYS_process_vm_readv, pid, &half, 1ul, remote, n_remote, flags);
	}
	return syscall(SYS_process_vm_readv, pid, local, n_local, remote, n_remote, flags);
}

static void set_mode(const char *mode)
{
	(void)setenv("RCCLX_SINGLE_COPY", mode, 1);
}

static uint64_t room(const struct rank_ctx *ctx)
{
	return (ctx->n_ranks * (MAX_COUNT + 1ull) + 64) * 8 + 4096;
}

static uint32_t draw(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

/* Case @i, the same on all ranks; large enough for single copy. */
static struct coll_case big_case(uint32_t i, uint32_t n_ranks)
{
	uint32_t state = i * 7919u + n_ranks;

	return (struct coll_case){
		.coll = movers[i % N_MOVERS],
		.dtype = draw(&state, RX_DTYPE_N),
		.count = BIG_COUNT + draw(&state, MAX_COUNT - BIG_COUNT),
		.root = draw(&state, n_ranks),
		.mode = COLL_INLINE,
		.memory = COLL_PRIVATE,
		.in_place = draw(&state, 2),
		.misalign = draw(&state, 9),
		.seed = i,
	};
}

/* ---- the same bits, and one copy ---- */

struct sweep {
	const char *mode;      /* of all ranks */
	const char *mode_of_1; /* of rank 1; NULL: as all */
	bool used;             /* single copy has to be used */
	uint32_t n_cases;
};

/* What all ranks count together. */
static int sum_reads(struct coll_rank *c, uint64_t *sum_p)
{
	uint64_t mine = n_reads;

	RANK_OK(c->ctx, rcclx_all_reduce(c->comm, &mine, sum_p, 1, RCCLX_UINT64, RCCLX_SUM, NULL));
	return 0;
}

static int rank_sweep(struct rank_ctx *ctx)
{
	const struct sweep *sweep = ctx->arg;
	struct coll_rank c;
	uint64_t n = 0;

	set_mode(ctx->rank == 1 && sweep->mode_of_1 ? sweep->mode_of_1 : sweep->mode);
	RANK_DO(coll_open(&c, ctx, room(ctx)));
	for (uint32_t i = 0; i < sweep->n_cases; i++) {
		struct coll_case what = big_case(i, ctx->n_ranks);

		/* All private, or only some. */
		what.memory = i % 3 == 2 ? COLL_MIXED : COLL_PRIVATE;
		RANK_DO(coll_run(&c, &what));
		/* Small ones and those that fold go between them. */
		what.coll = i % 2 ? RX_ALL_REDUCE : what.coll;
		what.count = i % 40;
		RANK_DO(coll_run(&c, &what));
	}
	RANK_DO(sum_reads(&c, &n));
	if (sweep->used)
		RANK_CHECK(ctx, n >= sweep->n_cases / 2, "only %llu reads in %u operations",
			(unsigned long long)n, sweep->n_cases);
	else
		RANK_CHECK(ctx, n == 0, "%llu reads", (unsigned long long)n);
	return coll_close(&c);
}

static void run_sweep(uint32_t n_ranks, struct sweep sweep)
{
	struct node *node = node_start(NULL);

	world_run(node, n_ranks, rank_sweep, &sweep);
	node_stop(node);
}

static void test_on(void **state)
{
	(void)state;
	run_sweep(2, (struct sweep){"on", NULL, true, 12 * N_MOVERS});
	run_sweep(3, (struct sweep){"on", NULL, true, 8 * N_MOVERS});
	run_sweep(7, (struct sweep){"on", NULL, true, 3 * N_MOVERS});
}

static void test_off(void **state)
{
	(void)state;
	run_sweep(3, (struct sweep){"off", NULL, false, 2 * N_MOVERS});
}

static void test_one_does_not_want_to(void **state)
{
	(void)state;
	run_sweep(3, (struct sweep){"on", "off", false, 2 * N_MOVERS});
}

static int rank_bad_mode(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_unique_id id;

	set_mode("maybe");
	RANK_DO(rank_connect(ctx, &client));
	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	RANK_RESULT(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &comm), RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "\"maybe\", expected auto, on or off");
	return rank_leave(ctx, NULL, client);
}

static void test_bad_mode(void **state)
{
	(void)state;
	struct node *node = node_start(NULL);
	world_run(node, 1, rank_bad_mode, NULL);
	node_stop(node);
}

/* ---- the kernel refuses ---- */

struct refusal {
	uint32_t after; /* reads of rank 1 that succeed, after the proofs */
	int how;
};

/* Whenever it is, the results are right; then nobody tries any more. */
static int rank_refusal(struct rank_ctx *ctx)
{
	const struct refusal *refusal = ctx->arg;
	struct coll_rank c;
	uint64_t before = 0;
	uint64_t after = 0;

	set_mode("on");
	if (ctx->rank == 1) {
		fail_from = N_PROOFS(ctx->n_ranks) + refusal->after + 1;
		fail_how = refusal->how;
	}
	RANK_DO(coll_open(&c, ctx, room(ctx)));
	for (uint32_t i = 0; i < 4 * N_MOVERS; i++) {
		struct coll_case what = big_case(i, ctx->n_ranks);

		RANK_DO(coll_run(&c, &what));
	}
	RANK_CHECK(ctx, ctx->rank != 1 || n_reads == fail_from, "%u reads, not %u", n_reads,
		fail_from);
	RANK_DO(sum_reads(&c, &before));
	for (uint32_t i = 0; i < N_MOVERS; i++) {
		struct coll_case what = big_case(i, ctx->n_ranks);

		RANK_DO(coll_run(&c, &what));
	}
	RANK_DO(sum_reads(&c, &after));
	RANK_CHECK(ctx, before == after, "%llu reads more", (unsigned long long)(after - before));
	return coll_close(&c);
}

static void run_refusal(uint32_t n_ranks, struct refusal refusal)
{
	struct node *node = node_start(NULL);

	world_run(node, n_ranks, rank_refusal, &refusal);
	node_stop(node);
}

static void test_refused_later(void **state)
{
	(void)state;
	for (uint32_t after = 0; after < 5; after++)
		run_refusal(2 + after % 2, (struct refusal){after, EPERM});
	run_refusal(3, (struct refusal){1, ESRCH});
	run_refusal(3, (struct refusal){2, EFAULT});
	run_refusal(2, (struct refusal){0, -1});
	run_refusal(3, (struct refusal){3, -1});
}

/* Not even the first time: as with another user, another PID namespace, Yama or seccomp. */
static int rank_no_proof(struct rank_ctx *ctx)
{
	struct coll_rank c;

	set_mode("on");
	fail_from = ctx->rank == 0 ? 1 : 0;
	fail_how = EPERM;
	RANK_DO(coll_open(&c, ctx, room(ctx)));
	for (uint32_t i = 0; i < 2 * N_MOVERS; i++) {
		struct coll_case what = big_case(i, ctx->n_ranks);

		RANK_DO(coll_run(&c, &what));
	}
	RANK_CHECK(ctx, n_reads <= N_PROOFS(ctx->n_ranks), "%u reads", n_reads);
	return coll_close(&c);
}

static void test_refused_at_once(void **state)
{
	(void)state;
	struct node *node = node_start(NULL);
	world_run(node, 3, rank_no_proof, NULL);
	node_stop(node);
}

/* A rank that is another user may not read root's memory. */
static int rank_other_user(struct rank_ctx *ctx)
{
	struct coll_rank c;
	uint64_t n = 0;

	set_mode("on");
	RANK_DO(coll_open(&c, ctx, room(ctx)));
	if (ctx->rank == 1)
		RANK_CHECK(ctx, setresuid(65534, 65534, 65534) == 0, "setresuid: %d", errno);
	for (uint32_t i = 0; i < 2 * N_MOVERS; i++) {
		struct coll_case what = big_case(i, ctx->n_ranks);

		RANK_DO(coll_run(&c, &what));
	}
	RANK_DO(sum_reads(&c, &n));
	RANK_CHECK(ctx, n <= ctx->n_ranks * N_PROOFS(ctx->n_ranks), "%llu reads",
		(unsigned long long)n);
	return coll_close(&c);
}

static void test_other_user(void **state)
{
	(void)state;
	if (geteuid() != 0)
		harness_skip("only root can become another user");
	struct node *node = node_start(NULL);
	world_run(node, 3, rank_other_user, NULL);
	node_stop(node);
}

/* Memory that only its owner can read, whatever the kernel permits otherwise. */
#define SECRET_BYTES 65536u

static int rank_secret(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	int fd = (int)syscall(SYS_memfd_secret, 0);
	uint8_t *recv = calloc(ctx->n_ranks, SECRET_BYTES);
	uint8_t *secret = NULL;

	RANK_CHECK(ctx, fd >= 0 && recv != NULL && ftruncate(fd, SECRET_BYTES) == 0, "no memory");
	secret = mmap(NULL, SECRET_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	RANK_CHECK(ctx, secret != MAP_FAILED, "mmap: %d", errno);
	set_mode("on");
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t round = 0; round < 4; round++) {
		memset(secret, (int)(ctx->rank + round), SECRET_BYTES);
		RANK_OK(ctx, rcclx_all_gather(comm, secret, recv, SECRET_BYTES, RCCLX_UINT8, NULL));
		for (uint32_t i = 0; i < ctx->n_ranks * SECRET_BYTES; i++)
			RANK_CHECK(ctx, recv[i] == (uint8_t)(i / SECRET_BYTES + round),
				"byte %u is %u", i, recv[i]);
	}
	/* The first operation tries the peers, the second one cannot read the secret. */
	RANK_CHECK(ctx, n_reads == N_PROOFS(ctx->n_ranks) + 1, "%u reads", n_reads);
	(void)munmap(secret, SECRET_BYTES);
	(void)close(fd);
	free(recv);
	return rank_leave(ctx, comm, client);
}

static void test_memory_of_another_kind(void **state)
{
	int fd = (int)syscall(SYS_memfd_secret, 0);

	(void)state;
	if (fd < 0)
		harness_skip("no memfd_secret()");
	(void)close(fd);
	struct node *node = node_start(NULL);
	world_run(node, 2, rank_secret, NULL);
	node_stop(node);
}

/* ---- a member dies ---- */

#define DEATH_COUNT (1u << 20)
#define VICTIM      1u

static int check_blocks(struct rank_ctx *ctx, const int32_t *recv, int32_t base)
{
	for (uint32_t rank = 0; rank < ctx->n_ranks; rank++)
		for (uint32_t i = 0; i < DEATH_COUNT; i += 1000)
			RANK_CHECK(ctx, recv[rank * DEATH_COUNT + i] == base + (int32_t)rank,
				"block %u: element %u is %d, base %d", rank, i,
				recv[rank * DEATH_COUNT + i], base);
	return 0;
}

static int rank_death(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	int32_t *send = calloc(DEATH_COUNT, sizeof(*send));
	int32_t *recv = calloc((size_t)ctx->n_ranks * DEATH_COUNT, sizeof(*recv));
	rcclx_result r = RCCLX_OK;
	uint32_t round = 0;

	RANK_CHECK(ctx, send != NULL && recv != NULL, "no memory");
	set_mode("on");
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (; r == RCCLX_OK; round++) {
		for (uint32_t i = 0; i < DEATH_COUNT; i += 1000)
			send[i] = (int32_t)(round * 64 + ctx->rank);
		r = rcclx_all_gather(comm, send, recv, DEATH_COUNT, RCCLX_INT32, NULL);
		if (r == RCCLX_OK)
			RANK_DO(check_blocks(ctx, recv, (int32_t)(round * 64)));
		if (ctx->rank == VICTIM && round == 2)
			flag_set(ctx->shared, 0, 1);
	}
	RANK_CHECK(
		ctx, r == RCCLX_ERR_PEER_LOST, "%s; \"%s\"", rcclx_strerror(r), rcclx_last_error());
	RANK_TEXT(ctx, "rank 1");
	RANK_WITHIN(ctx, atomic_load(&ctx->shared->values[0]), 1000);
	RANK_CHECK(ctx, n_reads > N_PROOFS(ctx->n_ranks), "only %u reads", n_reads);
	free(send);
	free(recv);
	return rank_leave(ctx, comm, client);
}

static void run_death(uint32_t n_ranks, uint64_t after_ms)
{
	struct node *node = node_start(NULL);
	struct world *world = world_start(node, n_ranks, rank_death, NULL);

	assert_true(flag_wait(world->shared, 0, 1, 20000));
	test_sleep_ms(after_ms);
	atomic_store(&world->shared->values[0], test_now_ms());
	world_kill(world, VICTIM, SIGKILL);
	world_join(world);
	node_stop(node);
}

static void test_killed(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 6; i++)
		run_death(2 + (uint32_t)i % 2, 3 + 5 * i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_on),
		HARNESS_TEST(test_off),
		HARNESS_TEST(test_one_does_not_want_to),
		HARNESS_TEST(test_bad_mode),
		HARNESS_TEST(test_refused_later),
		HARNESS_TEST(test_refused_at_once),
		HARNESS_TEST(test_other_user),
		HARNESS_TEST(test_memory_of_another_kind),
		HARNESS_TEST(test_killed),
	};

	return HARNESS_RUN("single_copy", tests);
}
