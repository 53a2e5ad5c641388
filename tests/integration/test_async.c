/* SPDX-License-Identifier: MIT */
/* Asynchronous operations: many in flight, waited for in any order, on several communicators. */
#include "harness.h"

#include <stdlib.h>

#define N_OPS   96u
#define N_ELEMS 1000u
#define N_COMMS 6u

/* Value of element @i of operation @op on @rank; the sum over ranks stays exact in fp32. */
static float value(uint32_t op, uint32_t rank, uint32_t i)
{
	return (float)((op * 31 + rank * 7 + i) % 1021);
}

static float expected_sum(uint32_t op, uint32_t n_ranks, uint32_t i)
{
	float sum = 0;

	for (uint32_t r = 0; r < n_ranks; r++)
		sum += value(op, r, i);
	return sum;
}

static void fill(float *send, uint32_t op, uint32_t rank)
{
	for (uint32_t i = 0; i < N_ELEMS; i++)
		send[i] = value(op, rank, i);
}

static int check(struct rank_ctx *ctx, const float *recv, uint32_t op)
{
	for (uint32_t i = 0; i < N_ELEMS; i++)
		RANK_CHECK(ctx, recv[i] == expected_sum(op, ctx->n_ranks, i),
			"op %u element %u is %g, not %g", op, i, (double)recv[i],
			(double)expected_sum(op, ctx->n_ranks, i));
	return 0;
}

struct many {
	struct rcclx_op *ops[N_OPS];
	float *send;
	float *recv;
};

static int start_op(struct rank_ctx *ctx, struct rcclx_comm *comm, struct many *many, uint32_t k)
{
	fill(many->send + k * N_ELEMS, k, ctx->rank);
	RANK_OK(ctx,
		rcclx_all_reduce_start(comm, many->send + k * N_ELEMS, many->recv + k * N_ELEMS,
			N_ELEMS, RCCLX_FLOAT32, RCCLX_SUM, NULL, &many->ops[k]));
	return 0;
}

static int finish_op(struct rank_ctx *ctx, struct many *many, uint32_t k)
{
	RANK_OK(ctx, rcclx_op_wait(many->ops[k], RCCLX_FOREVER));
	RANK_DO(check(ctx, many->recv + k * N_ELEMS, k));
	RANK_OK(ctx, rcclx_op_test(many->ops[k]));
	RANK_OK(ctx, rcclx_op_free(many->ops[k]));
	return 0;
}

static int alloc_many(
	struct rank_ctx *ctx, struct rcclx_client *client, bool registered, struct many *many)
{
	uint64_t bytes = (uint64_t)N_OPS * N_ELEMS * sizeof(float);
	void *memory[2] = {NULL, NULL};

	for (int i = 0; i < 2; i++) {
		if (registered)
			RANK_OK(ctx, rcclx_mem_alloc(client, bytes, &memory[i]));
		else
			memory[i] = malloc(bytes);
		RANK_CHECK(ctx, memory[i] != NULL, "no memory");
	}
	*many = (struct many){.send = memory[0], .recv = memory[1]};
	return 0;
}

static int free_many(
	struct rank_ctx *ctx, struct rcclx_client *client, bool registered, struct many *many)
{
	if (registered) {
		RANK_OK(ctx, rcclx_mem_free(client, many->send));
		RANK_OK(ctx, rcclx_mem_free(client, many->recv));
	} else {
		free(many->send);
		free(many->recv);
	}
	return 0;
}

/* ---- many in flight on one communicator, waited for in another order on each rank ---- */

static int rank_many(struct rank_ctx *ctx)
{
	bool registered = *(const bool *)ctx->arg;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct many many = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_DO(alloc_many(ctx, client, registered, &many));
	for (uint32_t k = 0; k < N_OPS; k++)
		RANK_DO(start_op(ctx, comm, &many, k));
	/* 37 and 96 have no common divisor: every op once. */
	for (uint32_t k = 0; k < N_OPS; k++)
		RANK_DO(finish_op(ctx, &many, (k * 37 + ctx->rank * 11) % N_OPS));
	RANK_DO(free_many(ctx, client, registered, &many));
	return rank_leave(ctx, comm, client);
}

static void test_many_in_flight(void **state)
{
	struct node *node = node_start(NULL);
	bool registered = true;

	(void)state;
	world_run(node, 2, rank_many, &registered);
	world_run(node, 4, rank_many, &registered);
	registered = false;
	world_run(node, 3, rank_many, &registered);
	node_stop(node);
}

/* ---- test and wait with a timeout, freeing what is busy ---- */

static int late_peer(struct rank_ctx *ctx, struct rcclx_comm *comm, struct many *many)
{
	RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "no sign from rank 0");
	RANK_DO(start_op(ctx, comm, many, 0));
	return finish_op(ctx, many, 0);
}

static int impatient(struct rank_ctx *ctx, struct rcclx_comm *comm, struct many *many)
{
	RANK_DO(start_op(ctx, comm, many, 0));
	struct rcclx_op *op = many->ops[0];
	RANK_RESULT(ctx, rcclx_op_test(op), RCCLX_ERR_TIMEOUT);
	uint64_t start = test_now_ms();
	RANK_RESULT(ctx, rcclx_op_wait(op, 30000000), RCCLX_ERR_TIMEOUT);
	RANK_CHECK(ctx, test_now_ms() - start >= 29, "waited only %llu ms of 30",
		(unsigned long long)(test_now_ms() - start));
	RANK_WITHIN(ctx, start, 300);
	RANK_RESULT(ctx, rcclx_op_free(op), RCCLX_ERR_BUSY);
	RANK_RESULT(ctx, rcclx_comm_destroy(comm), RCCLX_ERR_BUSY);
	flag_set(ctx->shared, 0, 1);
	while (rcclx_op_test(op) == RCCLX_ERR_TIMEOUT)
		test_sleep_ms(1);
	RANK_OK(ctx, rcclx_op_wait(op, 0));
	return finish_op(ctx, many, 0);
}

static int rank_timeouts(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct many many = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_DO(alloc_many(ctx, client, false, &many));
	if (ctx->rank == 0)
		RANK_DO(impatient(ctx, comm, &many));
	else
		RANK_DO(late_peer(ctx, comm, &many));
	RANK_DO(free_many(ctx, client, false, &many));
	return rank_leave(ctx, comm, client);
}

static void test_timeouts(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_timeouts, NULL);
	node_stop(node);
}

/* ---- more operations than the ring has room for ---- */

#define SMALL_RING 8u
#define SOME_OPS   1000u

static int rank_full_ring(struct rank_ctx *ctx)
{
	static struct rcclx_op *ops[SOME_OPS];
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;

	config.sq_entries = ctx->rank == 0 ? SMALL_RING : 0;
	RANK_OK(ctx, rcclx_connect(ctx->socket, &config, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	/* All of rank 0 are started before the first of rank 1. */
	if (ctx->rank == 1)
		RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "no sign from rank 0");
	for (uint32_t k = 0; k < SOME_OPS; k++)
		RANK_OK(ctx, rcclx_barrier_start(comm, NULL, &ops[k]));
	flag_set(ctx->shared, 0, 1);
	for (uint32_t k = 0; k < SOME_OPS; k++) {
		RANK_OK(ctx, rcclx_op_wait(ops[k], RCCLX_FOREVER));
		RANK_OK(ctx, rcclx_op_free(ops[k]));
	}
	/* There is room again. */
	RANK_OK(ctx, rcclx_barrier_start(comm, NULL, &ops[0]));
	RANK_OK(ctx, rcclx_op_wait(ops[0], RCCLX_FOREVER));
	RANK_OK(ctx, rcclx_op_free(ops[0]));
	return rank_leave(ctx, comm, client);
}

static void test_full_ring(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_full_ring, NULL);
	node_stop(node);
}

/* ---- several communicators, started in opposite order by the ranks ---- */

static int rank_opposite(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comms[N_COMMS] = {NULL};
	struct many many = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(alloc_many(ctx, client, ctx->rank % 2 == 0, &many));
	for (uint32_t c = 0; c < N_COMMS; c++)
		RANK_DO(rank_comm(ctx, client, c, &comms[c]));
	for (uint32_t k = 0; k < N_OPS; k++) {
		/* Rank 0 goes up through the communicators, rank 1 down; op number by comm. */
		uint32_t c = ctx->rank % 2 == 0 ? k % N_COMMS : N_COMMS - 1 - k % N_COMMS;

		RANK_DO(start_op(ctx, comms[c], &many, k - k % N_COMMS + c));
	}
	for (uint32_t k = 0; k < N_OPS; k++)
		RANK_DO(finish_op(ctx, &many, ctx->rank % 2 == 0 ? N_OPS - 1 - k : k));
	RANK_DO(free_many(ctx, client, ctx->rank % 2 == 0, &many));
	for (uint32_t c = 0; c < N_COMMS; c++)
		RANK_OK(ctx, rcclx_comm_destroy(comms[c]));
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

/* The case of the table, at its barest: two communicators, two ranks, waiting in start order. */
static int rank_two_comms(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comms[2] = {NULL, NULL};
	struct many many = {0};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(alloc_many(ctx, client, false, &many));
	RANK_DO(rank_comm(ctx, client, 0, &comms[0]));
	RANK_DO(rank_comm(ctx, client, 1, &comms[1]));
	for (uint32_t round = 0; round < 200; round++) {
		uint32_t first = ctx->rank;

		RANK_DO(start_op(ctx, comms[first], &many, first));
		RANK_DO(start_op(ctx, comms[1 - first], &many, 1 - first));
		RANK_DO(finish_op(ctx, &many, first));
		RANK_DO(finish_op(ctx, &many, 1 - first));
	}
	RANK_DO(free_many(ctx, client, false, &many));
	RANK_OK(ctx, rcclx_comm_destroy(comms[0]));
	return rank_leave(ctx, comms[1], client);
}

static void test_opposite_order(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_two_comms, NULL);
	world_run(node, 2, rank_opposite, NULL);
	world_run(node, 4, rank_opposite, NULL);
	node_stop(node);
}

/* ---- what is refused at once ---- */

static int rank_refused(struct rank_ctx *ctx)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_op *op = NULL;
	float data[4] = {1, 2, 3, 4};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	config.executor = RCCLX_EXECUTOR_INLINE;
	RANK_RESULT(ctx, rcclx_barrier_start(comm, &config, &op), RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_all_reduce_start(comm, data, data, 4, 99, RCCLX_SUM, NULL, &op),
		RCCLX_ERR_INVALID);
	RANK_RESULT(ctx,
		rcclx_all_reduce_start(
			comm, data, data + 1, 2, RCCLX_FLOAT32, RCCLX_SUM, NULL, &op),
		RCCLX_ERR_INVALID);
	RANK_CHECK(ctx, op == NULL, "a failed start set the operation");
	/* None of them counts: ranks still agree on the next op. */
	RANK_OK(ctx,
		rcclx_all_reduce_start(comm, data, data, 4, RCCLX_FLOAT32, RCCLX_SUM, NULL, &op));
	RANK_OK(ctx, rcclx_op_wait(op, RCCLX_FOREVER));
	RANK_OK(ctx, rcclx_op_free(op));
	RANK_CHECK(ctx, data[3] == 8.0f, "sum is %g", (double)data[3]);
	return rank_leave(ctx, comm, client);
}

static void test_refused(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_refused, NULL);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_many_in_flight),
		HARNESS_TEST(test_timeouts),
		HARNESS_TEST(test_full_ring),
		HARNESS_TEST(test_opposite_order),
		HARNESS_TEST(test_refused),
	};

	return HARNESS_RUN("async", tests);
}
