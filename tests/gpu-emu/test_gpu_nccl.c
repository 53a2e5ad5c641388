/* SPDX-License-Identifier: MIT */
/*
 * NCCL's interface on device memory: programs that know nothing but NCCL and a GPU runtime, which
 * is the test double here. Streams are slow where it matters: whoever does not wait for them sees
 * what was there before.
 */
#include "gpu_node.h"

#include "../integration/nccl_rank.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define N_INTS    1500u
#define MAX_BYTES 65536u

static const struct emu_user *user;
static void *stream;
static uint64_t in;     /* what a rank brings */
static uint64_t out;    /* what it gets */
static uint64_t shadow; /* memory that only the test knows */

static void must(int native, const char *what)
{
	if (native == 0)
		return;
	(void)fprintf(stderr, "%s: the runtime says %d\n", what, native);
	abort();
}

/* The library's memory is on the current device, which is the first one. */
static int get_memory(struct rank_ctx *ctx, uint64_t *at_p)
{
	void *at = NULL;

	if (ctx->rank % 2 == 0) {
		NCCL_OK(ctx, ncclMemAlloc(&at, MAX_BYTES));
		*at_p = (uint64_t)(uintptr_t)at;
	} else {
		*at_p = user->alloc(1, MAX_BYTES);
	}
	return 0;
}

static int put_memory(struct rank_ctx *ctx, uint64_t at)
{
	if (ctx->rank % 2 == 0)
		NCCL_OK(ctx, ncclMemFree((void *)(uintptr_t)at));
	else
		must(user->free(at), "freeing");
	return 0;
}

static int open_rank(struct rank_ctx *ctx, ncclComm_t *comm_p)
{
	user = gpu_user();
	RANK_CHECK(ctx, user, "no runtime");
	ctx->n_kept_fds = UINT32_MAX;
	stream = user->stream_new(ctx->rank % 2);
	shadow = user->alloc(ctx->rank % 2, MAX_BYTES);
	RANK_DO(nccl_comm(ctx, 0, comm_p));
	RANK_DO(get_memory(ctx, &in));
	return get_memory(ctx, &out);
}

/* As PyTorch's watchdog asks, at any time, and its shutdown after ncclCommFinalize(). */
static int expect_good(struct rank_ctx *ctx, ncclComm_t comm)
{
	ncclResult_t async = ncclInternalError;

	NCCL_OK(ctx, ncclCommGetAsyncError(comm, &async));
	RANK_CHECK(ctx, async == ncclSuccess, "the state is %d: %s", (int)async,
		ncclGetLastError(comm));
	return 0;
}

/* Not at the same time as others: that they have left is no failure. */
static int close_rank(struct rank_ctx *ctx, ncclComm_t comm)
{
	must(user->stream_sync(stream), "waiting for the stream");
	test_sleep_ms(2 * ctx->rank);
	RANK_DO(expect_good(ctx, comm));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	RANK_DO(put_memory(ctx, in));
	RANK_DO(put_memory(ctx, out));
	must(user->free(shadow), "freeing");
	must(user->stream_free(stream), "freeing the stream");
	return 0;
}

static const void *send_at(uint32_t offset)
{
	return (const void *)(uintptr_t)(in + offset * sizeof(int));
}

static void *recv_at(uint32_t offset)
{
	return (void *)(uintptr_t)(out + offset * sizeof(int));
}

/* Element i of @rank's in round @round. */
static int value(uint32_t rank, uint32_t round, uint32_t i)
{
	return (int)(round * 100000 + rank * 10000 + i);
}

/* Comes to its place late, in the stream. */
static void bring(uint32_t rank, uint32_t round, uint32_t n)
{
	int host[MAX_BYTES / sizeof(int)];

	for (uint32_t i = 0; i < n; i++)
		host[i] = value(rank, round, i);
	must(user->stream_sync(stream), "waiting for the stream");
	user->write(shadow, host, n * sizeof(int));
	must(user->busy(stream, 3), "keeping the stream busy");
	must(user->copy(stream, in, shadow, n * sizeof(int)), "copying");
}

static void take(int *host, uint32_t n)
{
	must(user->copy(stream, shadow, out, n * sizeof(int)), "copying");
	must(user->stream_sync(stream), "waiting for the stream");
	user->read(host, shadow, n * sizeof(int));
}

/* ---- collectives ---- */

static int sum_of(uint32_t n_ranks, uint32_t round, uint32_t i)
{
	int sum = 0;

	for (uint32_t rank = 0; rank < n_ranks; rank++)
		sum += value(rank, round, i);
	return sum;
}

static int check_reductions(struct rank_ctx *ctx, ncclComm_t comm, uint32_t round)
{
	static int got[MAX_BYTES / sizeof(int)];
	uint32_t n = ctx->n_ranks;

	bring(ctx->rank, round, N_INTS);
	NCCL_OK(ctx,
		ncclAllReduce(send_at(0), recv_at(0), N_INTS, ncclInt32, ncclSum, comm, stream));
	take(got, N_INTS);
	for (uint32_t i = 0; i < N_INTS; i++)
		RANK_CHECK(ctx, got[i] == sum_of(n, round, i), "allreduce: %d at %u", got[i], i);
	bring(ctx->rank, round, N_INTS);
	NCCL_OK(ctx, ncclReduceScatter(
			     send_at(0), recv_at(0), N_INTS / n, ncclInt32, ncclSum, comm, stream));
	take(got, N_INTS / n);
	for (uint32_t i = 0; i < N_INTS / n; i++)
		RANK_CHECK(ctx, got[i] == sum_of(n, round, ctx->rank * (N_INTS / n) + i),
			"reduce-scatter: %d at %u", got[i], i);
	return 0;
}

static int check_copies(struct rank_ctx *ctx, ncclComm_t comm, uint32_t round)
{
	static int got[MAX_BYTES / sizeof(int)];
	uint32_t n = ctx->n_ranks;

	bring(ctx->rank, round, N_INTS);
	NCCL_OK(ctx, ncclAllGather(send_at(0), recv_at(0), N_INTS, ncclInt32, comm, stream));
	take(got, N_INTS * n);
	for (uint32_t i = 0; i < N_INTS * n; i++)
		RANK_CHECK(ctx, got[i] == value(i / N_INTS, round, i % N_INTS),
			"all-gather: %d at %u", got[i], i);
	bring(ctx->rank, round, N_INTS);
	NCCL_OK(ctx,
		ncclBroadcast(send_at(0), recv_at(0), N_INTS, ncclInt32, (int)n - 1, comm, stream));
	take(got, N_INTS);
	for (uint32_t i = 0; i < N_INTS; i++)
		RANK_CHECK(ctx, got[i] == value(n - 1, round, i), "broadcast: %d at %u", got[i], i);
	return 0;
}

/* As PyTorch does an all-to-all: sends and receives in a group, also to itself. */
static int check_transfers(struct rank_ctx *ctx, ncclComm_t comm, uint32_t round)
{
	static int got[MAX_BYTES / sizeof(int)];
	uint32_t block = N_INTS / ctx->n_ranks;

	bring(ctx->rank, round, N_INTS);
	NCCL_OK(ctx, ncclGroupStart());
	for (uint32_t peer = 0; peer < ctx->n_ranks; peer++) {
		NCCL_OK(ctx,
			ncclSend(send_at(peer * block), block, ncclInt32, (int)peer, comm, stream));
		NCCL_OK(ctx,
			ncclRecv(recv_at(peer * block), block, ncclInt32, (int)peer, comm, stream));
	}
	NCCL_OK(ctx, ncclGroupEnd());
	take(got, block * ctx->n_ranks);
	for (uint32_t i = 0; i < block * ctx->n_ranks; i++)
		RANK_CHECK(ctx, got[i] == value(i / block, round, ctx->rank * block + i % block),
			"transfers: %d at %u", got[i], i);
	return 0;
}

static int rank_colls(struct rank_ctx *ctx)
{
	ncclComm_t comm = NULL;
	int device = -1;

	RANK_DO(open_rank(ctx, &comm));
	NCCL_OK(ctx, ncclCommCuDevice(comm, &device));
	for (uint32_t round = 0; round < 5; round++) {
		RANK_DO(check_reductions(ctx, comm, round));
		RANK_DO(check_copies(ctx, comm, round));
		RANK_DO(check_transfers(ctx, comm, round));
	}
	return close_rank(ctx, comm);
}

/* ---- memory that allocators like to use ---- */

/*
 * What a rank brings lies across two pieces of virtual memory, as in an allocator's segment that
 * grows; what it gets is in pinned memory of the host, or the other way round.
 */
static int rank_kinds(struct rank_ctx *ctx)
{
	static _Alignas(4096) unsigned char pinned[MAX_BYTES];
	uint32_t device = ctx->rank % 2;
	ncclComm_t comm = NULL;
	uint64_t pieces = 0, host = 0;

	user = gpu_user();
	RANK_CHECK(ctx, user, "no runtime");
	ctx->n_kept_fds = UINT32_MAX;
	stream = user->stream_new(device);
	shadow = user->alloc(device, MAX_BYTES);
	RANK_DO(nccl_comm(ctx, 0, &comm));
	pieces = user->alloc_pieces(device, MAX_BYTES, 2);
	must(user->host_register(pinned, sizeof(pinned), &host), "registering host memory");
	for (uint32_t round = 0; round < 6; round++) {
		bool swapped = (round + ctx->rank) % 2;
		uint64_t across = pieces + MAX_BYTES - 16 * (ctx->rank + 1);

		in = swapped ? host : across;
		out = swapped ? across : host;
		RANK_DO(check_reductions(ctx, comm, round));
		RANK_DO(check_copies(ctx, comm, round));
	}
	must(user->stream_sync(stream), "waiting for the stream");
	NCCL_OK(ctx, ncclCommDestroy(comm));
	must(user->free_pieces(pieces, MAX_BYTES, 2), "freeing pieces");
	must(user->host_unregister(pinned), "unregistering host memory");
	must(user->free(shadow), "freeing");
	must(user->stream_free(stream), "freeing the stream");
	return 0;
}

/* ---- several communicators, and calls that differ in more than their stream ---- */

static int rank_comms(struct rank_ctx *ctx)
{
	static int got[2 * N_INTS];
	ncclComm_t comms[2] = {NULL};
	int host_in = (int)ctx->rank, host_out = -1;

	RANK_DO(open_rank(ctx, &comms[0]));
	NCCL_OK(ctx, ncclCommSplit(comms[0], 0, -(int)ctx->rank, &comms[1], NULL));
	for (uint32_t round = 0; round < 5; round++) {
		bring(ctx->rank, round, N_INTS);
		NCCL_OK(ctx, ncclGroupStart());
		for (uint32_t i = 0; i < 2; i++)
			NCCL_OK(ctx, ncclAllReduce(send_at(0), recv_at(i * N_INTS), N_INTS,
					     ncclInt32, i ? ncclMax : ncclSum, comms[i], stream));
		NCCL_OK(ctx, ncclGroupEnd());
		take(got, 2 * N_INTS);
		for (uint32_t i = 0; i < N_INTS; i++)
			RANK_CHECK(ctx,
				got[i] == sum_of(ctx->n_ranks, round, i) &&
					got[N_INTS + i] == value(ctx->n_ranks - 1, round, i),
				"%d and %d at %u", got[i], got[N_INTS + i], i);
	}
	/* Host memory without a stream, in the same communicator. */
	NCCL_OK(ctx, ncclAllReduce(&host_in, &host_out, 1, ncclInt32, ncclMax, comms[0], NULL));
	RANK_CHECK(ctx, host_out == (int)ctx->n_ranks - 1, "the maximum is %d", host_out);
	must(user->stream_sync(stream), "waiting for the stream");
	NCCL_OK(ctx, ncclCommDestroy(comms[1]));
	return close_rank(ctx, comms[0]);
}

/* ---- a scalar that the stream makes ---- */

static int rank_scalar(struct rank_ctx *ctx)
{
	static int got[N_INTS];
	ncclComm_t comm = NULL;
	ncclRedOp_t op = ncclSum;
	uint64_t scalar = 0;
	int wanted = 0;
	int factor = (int)ctx->rank + 2;

	RANK_DO(open_rank(ctx, &comm));
	scalar = out + N_INTS * sizeof(int);
	NCCL_OK(ctx, ncclRedOpCreatePreMulSum(
			     &op, (void *)(uintptr_t)scalar, ncclInt32, ncclScalarDevice, comm));
	bring(ctx->rank, 0, N_INTS);
	user->write(shadow, &factor, sizeof(factor));
	must(user->busy(stream, 5), "keeping the stream busy");
	must(user->copy(stream, scalar, shadow, sizeof(factor)), "copying");
	NCCL_OK(ctx, ncclAllReduce(send_at(0), recv_at(0), N_INTS, ncclInt32, op, comm, stream));
	take(got, N_INTS);
	for (uint32_t rank = 0; rank < ctx->n_ranks; rank++)
		wanted += value(rank, 0, 7) * (int)(rank + 2);
	RANK_CHECK(ctx, got[7] == wanted, "%d, expected %d", got[7], wanted);
	NCCL_OK(ctx, ncclRedOpDestroy(op, comm));
	return close_rank(ctx, comm);
}

/* ---- graphs ---- */

static int rank_graph(struct rank_ctx *ctx)
{
	static int got[2 * N_INTS];
	ncclComm_t comm = NULL;
	void *graph = NULL;

	RANK_DO(open_rank(ctx, &comm));
	/* Known memory: the first use of some may have to wait, which a capture cannot. */
	RANK_DO(check_reductions(ctx, comm, 1));
	must(user->capture_begin(stream, 0), "beginning a capture");
	NCCL_OK(ctx,
		ncclAllReduce(send_at(0), recv_at(0), N_INTS, ncclInt32, ncclSum, comm, stream));
	NCCL_OK(ctx, ncclAllReduce(send_at(0), recv_at(N_INTS), N_INTS, ncclInt32, ncclMax, comm,
			     stream));
	must(user->capture_end(stream, &graph), "ending a capture");
	for (uint32_t round = 0; round < 20; round++) {
		bring(ctx->rank, round, N_INTS);
		must(user->graph_launch(graph, stream), "replaying");
		take(got, 2 * N_INTS);
		for (uint32_t i = 0; i < N_INTS; i++)
			RANK_CHECK(ctx,
				got[i] == sum_of(ctx->n_ranks, round, i) &&
					got[N_INTS + i] == value(ctx->n_ranks - 1, round, i),
				"round %u: %d and %d at %u", round, got[i], got[N_INTS + i], i);
		if (round % 5 == 0)
			RANK_DO(check_reductions(ctx, comm, round));
	}
	user->graph_free(graph);
	return close_rank(ctx, comm);
}

/* ---- ranks leave at different times ---- */

#define N_LEAVES 40u

/* How many ranks are in the same group of the round, and which one this is of them. */
struct group {
	uint32_t n_ranks;
	uint32_t rank;
	uint32_t first; /* of the world */
	uint32_t step;
};

static uint32_t draw(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

static void dawdle(uint32_t *state)
{
	test_sleep_ms(draw(state, 4));
}

/* Of a communicator that blocks, or does not: now it is over. */
static int over(struct rank_ctx *ctx, ncclComm_t comm, ncclResult_t r)
{
	if (r == ncclInProgress)
		RANK_DO(nccl_poll(ctx, comm, &r));
	RANK_CHECK(ctx, r == ncclSuccess, "%d: %s", (int)r, ncclGetLastError(comm));
	return 0;
}

static struct group make_group(const struct rank_ctx *ctx, uint32_t round)
{
	if (round % 3 == 2)
		return (struct group){ctx->n_ranks, ctx->rank, 0, 1};
	return (struct group){ctx->n_ranks / 2, ctx->rank / 2, ctx->rank % 2, 2};
}

static int split(
	struct rank_ctx *ctx, ncclComm_t world, uint32_t round, bool blocking, ncclComm_t *comm_p)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct group group = make_group(ctx, round);
	ncclResult_t r = ncclSuccess;

	config.blocking = blocking;
	r = ncclCommSplit(world, (int)group.first, (int)ctx->rank, comm_p, &config);
	RANK_DO(over(ctx, world, r));
	return over(ctx, *comm_p, r);
}

static int group_sum(const struct group *group, uint32_t round, uint32_t i)
{
	int sum = 0;

	for (uint32_t rank = 0; rank < group->n_ranks; rank++)
		sum += value(group->first + rank * group->step, round, i);
	return sum;
}

/* In a ring, so that each rank depends on one that may be gone when it looks. */
static int transfer(struct rank_ctx *ctx, ncclComm_t comm, const struct group *group)
{
	int next = (int)((group->rank + 1) % group->n_ranks);
	int previous = (int)((group->rank + group->n_ranks - 1) % group->n_ranks);

	NCCL_OK(ctx, ncclGroupStart());
	NCCL_OK(ctx, ncclSend(send_at(0), N_INTS, ncclInt32, next, comm, stream));
	NCCL_OK(ctx, ncclRecv(recv_at(N_INTS), N_INTS, ncclInt32, previous, comm, stream));
	NCCL_OK(ctx, ncclGroupEnd());
	return 0;
}

static int check_group(struct rank_ctx *ctx, const struct group *group, uint32_t round)
{
	static int got[2 * N_INTS];
	uint32_t previous = (group->rank + group->n_ranks - 1) % group->n_ranks;

	take(got, 2 * N_INTS);
	for (uint32_t i = 0; i < N_INTS; i++)
		RANK_CHECK(ctx,
			got[i] == group_sum(group, round, i) &&
				got[N_INTS + i] ==
					value(group->first + previous * group->step, round, i),
			"round %u: %d and %d at %u", round, got[i], got[N_INTS + i], i);
	return 0;
}

static int use_and_leave(struct rank_ctx *ctx, ncclComm_t comm, uint32_t round, uint32_t *state)
{
	struct group group = make_group(ctx, round);
	int host = value(ctx->rank, round, 0);

	bring(ctx->rank, round, N_INTS);
	dawdle(state);
	NCCL_OK(ctx,
		ncclAllReduce(send_at(0), recv_at(0), N_INTS, ncclInt32, ncclSum, comm, stream));
	RANK_DO(transfer(ctx, comm, &group));
	if (round % 2) {
		RANK_DO(over(
			ctx, comm, ncclAllReduce(&host, &host, 1, ncclInt32, ncclSum, comm, NULL)));
		RANK_CHECK(ctx, host == group_sum(&group, round, 0), "host: %d", host);
	}
	/* Some end it when they have what they want, others at once. */
	if (draw(state, 2))
		must(user->stream_sync(stream), "waiting for the stream");
	dawdle(state);
	RANK_DO(expect_good(ctx, comm));
	NCCL_OK(ctx, ncclCommFinalize(comm));
	dawdle(state);
	RANK_DO(expect_good(ctx, comm));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	return check_group(ctx, &group, round);
}

static int rank_leaves(struct rank_ctx *ctx)
{
	const bool *blocking = ctx->arg;
	uint32_t state = ctx->rank * 7919 + 1;
	ncclComm_t world = NULL;

	RANK_DO(open_rank(ctx, &world));
	for (uint32_t round = 0; round < N_LEAVES; round++) {
		ncclComm_t comm = NULL;

		RANK_DO(split(ctx, world, round, *blocking, &comm));
		RANK_DO(use_and_leave(ctx, comm, round, &state));
	}
	return close_rank(ctx, world);
}

/* ---- a rank dies ---- */

static int rank_death(struct rank_ctx *ctx)
{
	ncclComm_t comm = NULL;
	ncclResult_t async = ncclSuccess;
	uint64_t end = 0;

	RANK_DO(open_rank(ctx, &comm));
	RANK_DO(check_reductions(ctx, comm, 1));
	RANK_DO(rank_sync(ctx));
	flag_set(ctx->shared, 0, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 1, 1, 10000), "nobody was killed");
	/* The stream does not wait for ever for who will not come, whether it is known yet or not.
	 */
	(void)ncclAllReduce(send_at(0), recv_at(0), N_INTS, ncclInt32, ncclSum, comm, stream);
	must(user->stream_sync(stream), "waiting for the stream");
	end = test_now_ms() + 1000 * test_slow();
	while (async == ncclSuccess && test_now_ms() < end)
		NCCL_OK(ctx, ncclCommGetAsyncError(comm, &async));
	RANK_CHECK(ctx, async == ncclRemoteError, "the communicator's state is %d", (int)async);
	NCCL_OK(ctx, ncclCommAbort(comm));
	return 0;
}

/* ---- the tests ---- */

static void run(uint32_t n_ranks, rank_fn rank)
{
	struct node *node = gpu_node(NULL, NULL);

	world_run(node, n_ranks, rank, NULL);
	node_stop(node);
}

static void test_colls(void **state)
{
	(void)state;
	run(1, rank_colls);
	run(3, rank_colls);
}

static void test_kinds_of_memory(void **state)
{
	(void)state;
	run(3, rank_kinds);
}

static void test_several_communicators(void **state)
{
	(void)state;
	run(3, rank_comms);
}

static void test_scalar_on_device(void **state)
{
	(void)state;
	run(2, rank_scalar);
}

static void test_graph(void **state)
{
	(void)state;
	run(3, rank_graph);
}

/* What was complete for all stays so, and leaving is no failure. */
static void test_leaving(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct node *node = gpu_node(NULL, NULL);
		bool blocking = i == 0;

		world_run(node, 4, rank_leaves, &blocking);
		node_stop(node);
	}
}

static void test_death(void **state)
{
	struct node *node = gpu_node(NULL, NULL);
	struct world *world = world_start(node, 3, rank_death, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 10000));
	world_kill(world, 2, SIGKILL);
	flag_set(world->shared, 1, 1);
	world_join(world);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_colls),
		HARNESS_TEST(test_kinds_of_memory),
		HARNESS_TEST(test_several_communicators),
		HARNESS_TEST(test_scalar_on_device),
		HARNESS_TEST(test_graph),
		HARNESS_TEST(test_leaving),
		HARNESS_TEST(test_death),
	};
	int r = 0;

	if (!gpu_setup(TEST_FAMILY))
		return 77;
	r = HARNESS_RUN("gpu-nccl-" TEST_FAMILY, tests);
	gpu_cleanup();
	return r;
}
