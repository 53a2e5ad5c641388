/* SPDX-License-Identifier: MIT */
/* Groups of more sends and receives than the rings have room for: nobody may block himself. */
#include "harness.h"

#include <signal.h>
#include <string.h>

#define N          1000u
#define SMALL_RING 8u

static int32_t out[N];
static int32_t in[N];

static int32_t value(uint32_t from, uint32_t to, uint32_t k)
{
	return (int32_t)(from * 100000 + to * 10000 + k);
}

static int open_small(struct rank_ctx *ctx, struct rcclx_client **client_p, struct rcclx_comm **p)
{
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;

	config.sq_entries = SMALL_RING;
	config.timeout_ns = 5000000000ull * test_slow();
	RANK_OK(ctx, rcclx_connect(ctx->socket, &config, client_p));
	return rank_comm(ctx, *client_p, 0, p);
}

/* N sends to @to, one element each. */
static int send_all(struct rank_ctx *ctx, struct rcclx_comm *comm, uint32_t to)
{
	for (uint32_t k = 0; k < N; k++) {
		out[k] = value(ctx->rank, to, k);
		RANK_OK(ctx, rcclx_send(comm, &out[k], 1, RCCLX_INT32, to, NULL));
	}
	return 0;
}

static int recv_all(struct rank_ctx *ctx, struct rcclx_comm *comm, uint32_t from)
{
	for (uint32_t k = 0; k < N; k++) {
		in[k] = -1;
		RANK_OK(ctx, rcclx_recv(comm, &in[k], 1, RCCLX_INT32, from, NULL));
	}
	return 0;
}

static int check_all(struct rank_ctx *ctx, uint32_t from)
{
	for (uint32_t k = 0; k < N; k++)
		RANK_CHECK(ctx, in[k] == value(from, ctx->rank, k), "receive %u is %d", k, in[k]);
	return 0;
}

/* All sends first, on both sides: no ring has room for them and the first receive. */
static int rank_sends_first(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	uint32_t peer = 1 - ctx->rank;

	RANK_DO(open_small(ctx, &client, &comm));
	for (uint32_t round = 0; round < 3; round++) {
		RANK_OK(ctx, rcclx_group_start());
		RANK_DO(send_all(ctx, comm, peer));
		RANK_DO(recv_all(ctx, comm, peer));
		RANK_OK(ctx, rcclx_group_end());
		RANK_DO(check_all(ctx, peer));
	}
	return rank_leave(ctx, comm, client);
}

/*
 * Rank 0 posts everything at once, its receives first; nothing comes to it before its sends have
 * gone through rank 1 and rank 2, which do one thing after the other.
 */
static int rank_dependent(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	uint32_t next = (ctx->rank + 1) % 3;
	uint32_t before = (ctx->rank + 2) % 3;

	RANK_DO(open_small(ctx, &client, &comm));
	RANK_OK(ctx, rcclx_group_start());
	RANK_DO(recv_all(ctx, comm, before));
	if (ctx->rank > 0) {
		RANK_OK(ctx, rcclx_group_end());
		RANK_OK(ctx, rcclx_group_start());
	}
	RANK_DO(send_all(ctx, comm, next));
	RANK_OK(ctx, rcclx_group_end());
	RANK_DO(check_all(ctx, before));
	return rank_leave(ctx, comm, client);
}

/* Rank 0 goes on to a barrier, where it takes no completions; rank 1 receives before that. */
static int rank_started(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_op *group = NULL;
	struct rcclx_op *after = NULL;
	int32_t last = -2;

	RANK_DO(open_small(ctx, &client, &comm));
	RANK_OK(ctx, rcclx_group_start());
	if (ctx->rank == 1) {
		RANK_DO(recv_all(ctx, comm, 0));
		RANK_OK(ctx, rcclx_recv(comm, &last, 1, RCCLX_INT32, 0, NULL));
		RANK_OK(ctx, rcclx_group_end());
		RANK_DO(check_all(ctx, 0));
		RANK_CHECK(ctx, last == -1, "what was sent last is %d", last);
		RANK_OK(ctx, rcclx_barrier(comm, NULL));
		return rank_leave(ctx, comm, client);
	}
	RANK_DO(send_all(ctx, comm, 1));
	RANK_OK(ctx, rcclx_group_end_start(&group));
	last = -1;
	/* Behind those that still wait. */
	RANK_OK(ctx, rcclx_send_start(comm, &last, 1, RCCLX_INT32, 1, NULL, &after));
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	RANK_OK(ctx, rcclx_op_wait(after, RCCLX_FOREVER));
	RANK_OK(ctx, rcclx_op_wait(group, RCCLX_FOREVER));
	RANK_OK(ctx, rcclx_op_free(after));
	RANK_OK(ctx, rcclx_op_free(group));
	return rank_leave(ctx, comm, client);
}

/* Rank 1 dies after some of the receives; the session of rank 0 is good for another one. */
static int rank_bereft(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_comm *alone = NULL;
	struct rcclx_unique_id id;
	uint64_t since_ms = 0;

	RANK_DO(open_small(ctx, &client, &comm));
	if (ctx->rank == 1) {
		for (uint32_t k = 0; k < N / 2; k++)
			RANK_OK(ctx, rcclx_recv(comm, &in[k], 1, RCCLX_INT32, 0, NULL));
		flag_set(ctx->shared, 0, 1);
		test_sleep_ms(20000);
	}
	RANK_OK(ctx, rcclx_group_start());
	RANK_DO(send_all(ctx, comm, 1));
	since_ms = test_now_ms();
	RANK_RESULT(ctx, rcclx_group_end(), RCCLX_ERR_PEER_LOST);
	RANK_WITHIN(ctx, since_ms, 10000);
	RANK_OK(ctx, rcclx_comm_destroy(comm));
	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &alone));
	RANK_OK(ctx, rcclx_group_start());
	RANK_DO(send_all(ctx, alone, 0));
	RANK_DO(recv_all(ctx, alone, 0));
	RANK_OK(ctx, rcclx_group_end());
	RANK_DO(check_all(ctx, 0));
	return rank_leave(ctx, alone, client);
}

static void run(uint32_t n_ranks, rank_fn fn)
{
	struct node *node = node_start(NULL);

	world_run(node, n_ranks, fn, NULL);
	node_stop(node);
}

static void test_sends_first(void **state)
{
	(void)state;
	run(2, rank_sends_first);
}

static void test_dependent(void **state)
{
	(void)state;
	run(3, rank_dependent);
}

static void test_started(void **state)
{
	(void)state;
	run(2, rank_started);
}

static void test_peer_dies(void **state)
{
	struct node *node = node_start(NULL);
	struct world *world = world_start(node, 2, rank_bereft, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 10000));
	world_kill(world, 1, SIGKILL);
	world_join(world);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_sends_first),
		HARNESS_TEST(test_dependent),
		HARNESS_TEST(test_started),
		HARNESS_TEST(test_peer_dies),
	};

	return HARNESS_RUN("more_than_fits", tests);
}
