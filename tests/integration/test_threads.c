/* SPDX-License-Identifier: MIT */
/* Several ranks in one process, one thread each, over one client. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_THREADS 4u
#define N_ROUNDS    100u
#define N_ELEMS     300u
#define N_OPS       16u

struct thread_arg {
	struct rank_ctx ctx; /* as if the thread were a rank process */
	struct rcclx_client *client;
	uint32_t n_comms;
	pthread_t thread;
	int result;
};

static int reduce_once(struct rank_ctx *ctx, struct rcclx_comm *comm, uint32_t round, bool inl)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	int64_t data[N_ELEMS];
	int64_t n = (int64_t)ctx->n_ranks;

	config.executor = inl ? RCCLX_EXECUTOR_INLINE : RCCLX_EXECUTOR_DAEMON;
	for (uint32_t i = 0; i < N_ELEMS; i++)
		data[i] = (int64_t)ctx->rank + (int64_t)(round * i);
	RANK_OK(ctx, rcclx_all_reduce(comm, data, data, N_ELEMS, RCCLX_INT64, RCCLX_SUM, &config));
	for (uint32_t i = 0; i < N_ELEMS; i++)
		RANK_CHECK(ctx, data[i] == n * (n - 1) / 2 + n * (int64_t)(round * i),
			"round %u element %u is %lld", round, i, (long long)data[i]);
	return 0;
}

static int started_ops(struct rank_ctx *ctx, struct rcclx_comm *comm)
{
	struct rcclx_op *ops[N_OPS] = {NULL};
	int32_t data[N_OPS];

	for (uint32_t k = 0; k < N_OPS; k++) {
		data[k] = (int32_t)(k + ctx->rank);
		RANK_OK(ctx, rcclx_all_reduce_start(comm, &data[k], &data[k], 1, RCCLX_INT32,
				     RCCLX_MAX, NULL, &ops[k]));
	}
	for (uint32_t k = N_OPS; k-- > 0;) {
		RANK_OK(ctx, rcclx_op_wait(ops[k], RCCLX_FOREVER));
		RANK_OK(ctx, rcclx_op_free(ops[k]));
		RANK_CHECK(ctx, data[k] == (int32_t)(k + ctx->n_ranks - 1), "op %u gave %d", k,
			data[k]);
	}
	return 0;
}

static int use_memory(struct rank_ctx *ctx, struct rcclx_client *client, struct rcclx_comm *comm)
{
	void *memory = NULL;

	RANK_OK(ctx, rcclx_mem_alloc(client, 256 * 1024, &memory));
	float *data = memory;
	for (uint32_t i = 0; i < 65536; i++)
		data[i] = (float)(ctx->rank + i % 100);
	RANK_OK(ctx, rcclx_all_reduce(comm, data, data, 65536, RCCLX_FLOAT32, RCCLX_MIN, NULL));
	for (uint32_t i = 0; i < 65536; i++)
		RANK_CHECK(
			ctx, data[i] == (float)(i % 100), "element %u is %g", i, (double)data[i]);
	/* A peer may still write into it until it has left the operation, too. */
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	RANK_OK(ctx, rcclx_mem_free(client, memory));
	return 0;
}

static int thread_body(struct thread_arg *arg)
{
	struct rank_ctx *ctx = &arg->ctx;
	struct rcclx_comm *comms[MAX_THREADS] = {NULL};

	for (uint32_t c = 0; c < arg->n_comms; c++)
		RANK_DO(rank_comm(ctx, arg->client, c, &comms[c]));
	for (uint32_t round = 0; round < N_ROUNDS; round++)
		RANK_DO(reduce_once(ctx, comms[round % arg->n_comms], round, round % 4 != 3));
	for (uint32_t c = 0; c < arg->n_comms; c++)
		RANK_DO(started_ops(ctx, comms[c]));
	for (uint32_t round = 0; round < 5; round++)
		RANK_DO(use_memory(ctx, arg->client, comms[0]));
	for (uint32_t c = 0; c < arg->n_comms; c++)
		RANK_OK(ctx, rcclx_comm_destroy(comms[c]));
	return 0;
}

static void *thread_main(void *p)
{
	struct thread_arg *arg = p;

	arg->result = thread_body(arg);
	return NULL;
}

/* Process number ctx->rank holds n_threads ranks of the communicators. */
static int run_threads(struct rank_ctx *ctx, uint32_t n_threads, uint32_t n_comms)
{
	struct thread_arg args[MAX_THREADS] = {0};
	struct rcclx_client *client = NULL;
	int result = 0;

	RANK_DO(rank_connect(ctx, &client));
	for (uint32_t t = 0; t < n_threads; t++) {
		args[t] = (struct thread_arg){.ctx = *ctx, .client = client, .n_comms = n_comms};
		args[t].ctx.rank = ctx->rank * n_threads + t;
		args[t].ctx.n_ranks = ctx->n_ranks * n_threads;
		RANK_CHECK(ctx, pthread_create(&args[t].thread, NULL, thread_main, &args[t]) == 0,
			"no thread");
	}
	for (uint32_t t = 0; t < n_threads; t++) {
		(void)pthread_join(args[t].thread, NULL);
		/* Reasons are kept by number of the rank; the process's own is what is shown. */
		if (args[t].result != 0 && args[t].ctx.rank != ctx->rank)
			RANK_CHECK(ctx, false, "thread of rank %u: %s", args[t].ctx.rank,
				ctx->shared->reasons[args[t].ctx.rank]);
		result |= args[t].result;
	}
	if (result != 0)
		return result;
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static int rank_one_process(struct rank_ctx *ctx)
{
	return run_threads(ctx, 4, 1);
}

static int rank_two_processes(struct rank_ctx *ctx)
{
	return run_threads(ctx, 2, 1);
}

static int rank_several_comms(struct rank_ctx *ctx)
{
	return run_threads(ctx, 2, 3);
}

static void test_one_process(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 1, rank_one_process, NULL);
	node_stop(node);
}

static void test_two_processes(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_two_processes, NULL);
	world_run(node, 2, rank_several_comms, NULL);
	node_stop(node);
}

/* ---- a thread each waits for its own operation of one communicator ---- */

struct waiter {
	struct rcclx_op *op;
	rcclx_result result;
	pthread_t thread;
};

static void *wait_main(void *p)
{
	struct waiter *waiter = p;

	waiter->result = rcclx_op_wait(waiter->op, RCCLX_FOREVER);
	return NULL;
}

static int rank_waiters(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct waiter waiters[N_OPS] = {0};
	uint32_t data[N_OPS];

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t k = 0; k < N_OPS; k++) {
		data[k] = k + 1;
		RANK_OK(ctx, rcclx_all_reduce_start(comm, &data[k], &data[k], 1, RCCLX_UINT32,
				     RCCLX_SUM, NULL, &waiters[k].op));
		RANK_CHECK(ctx,
			pthread_create(&waiters[k].thread, NULL, wait_main, &waiters[k]) == 0,
			"no thread");
		/* The peer is late, so that threads pile up in the wait. */
		if (ctx->rank == 1)
			test_sleep_ms(3);
	}
	for (uint32_t k = 0; k < N_OPS; k++) {
		(void)pthread_join(waiters[k].thread, NULL);
		RANK_CHECK(ctx, waiters[k].result == RCCLX_OK, "op %u: %s", k,
			rcclx_strerror(waiters[k].result));
		RANK_CHECK(ctx, data[k] == 2 * (k + 1), "op %u gave %u", k, data[k]);
		RANK_OK(ctx, rcclx_op_free(waiters[k].op));
	}
	return rank_leave(ctx, comm, client);
}

static void test_waiters(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_waiters, NULL);
	node_stop(node);
}

/* ---- abort by one thread while another is blocked ---- */

struct blocked {
	struct rcclx_comm *comm;
	rcclx_result result;
	char text[256];
};

static void *blocked_main(void *p)
{
	struct blocked *blocked = p;

	blocked->result = rcclx_barrier(blocked->comm, NULL);
	(void)strncpy(blocked->text, rcclx_last_error(), sizeof(blocked->text) - 1);
	return NULL;
}

static int rank_abort(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct blocked blocked = {0};
	pthread_t thread;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &blocked.comm));
	if (ctx->rank == 1) {
		RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "no sign from rank 0");
		return rank_leave(ctx, blocked.comm, client);
	}
	RANK_CHECK(ctx, pthread_create(&thread, NULL, blocked_main, &blocked) == 0, "no thread");
	test_sleep_ms(50);
	uint64_t start = test_now_ms();
	RANK_OK(ctx, rcclx_comm_abort(blocked.comm));
	(void)pthread_join(thread, NULL);
	RANK_WITHIN(ctx, start, 200);
	RANK_CHECK(ctx, blocked.result == RCCLX_ERR_ABORTED, "%s: %s",
		rcclx_strerror(blocked.result), blocked.text);
	RANK_RESULT(ctx, rcclx_barrier(blocked.comm, NULL), RCCLX_ERR_ABORTED);
	flag_set(ctx->shared, 0, 1);
	return rank_leave(ctx, blocked.comm, client);
}

static void test_abort_from_thread(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_abort, NULL);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_one_process),
		HARNESS_TEST(test_two_processes),
		HARNESS_TEST(test_waiters),
		HARNESS_TEST(test_abort_from_thread),
	};

	return HARNESS_RUN("threads", tests);
}
