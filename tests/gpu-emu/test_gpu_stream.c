/* SPDX-License-Identifier: MIT */
/*
 * Calls in the order of streams, and graphs: real daemons, processes and plugins on the test double
 * of the runtimes. The streams are slow in the right places, so that whoever does not wait for them
 * sees what was there before.
 */
#include "gpu_node.h"

#include "../integration/coll_case.h"
#include "../integration/harness.h"
#include "../../kernels/coll_types.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_COUNT 3000u

static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL,
	RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V,
	RX_ALL_TO_ALL_V};

#define N_COLLS (sizeof(colls) / sizeof(colls[0]))

static char config_text[2000];
static char runtime_path[500];
static bool on_gpu; /* tests/gpu/run.sh: not on the test double */

static int rank_first(struct rank_ctx *ctx);

/* With its devices opened, which stay so. */
static struct node *start_node(void)
{
	struct node *node = node_start(&(struct node_options){.config = config_text});

	world_run(node, 1, rank_first, NULL);
	node_use_is_fine(node);
	/* Drivers keep what they like. */
	if (on_gpu)
		node->at_start.n_fds += 10000;
	if (on_gpu)
		node->at_start.n_maps += 100000;
	return node;
}

/* ---- a rank ---- */

static const struct emu_user *user;
static void *stream;
static uint64_t shadow; /* device memory that nobody but the test knows */
static uint32_t delay_ms;

static int load_runtime(struct rank_ctx *ctx)
{
	void *runtime = dlopen(runtime_path, RTLD_NOW | RTLD_GLOBAL);

	user = runtime ? dlsym(runtime, EMU_USER_SYMBOL) : NULL;
	RANK_CHECK(ctx, user, "no runtime: %s", dlerror());
	/* The gates, and what wakes their thread. */
	ctx->n_kept_fds = on_gpu ? UINT32_MAX : 2;
	return 0;
}

/* Of the user's own calls: the test is wrong, or the runtime has been harmed. */
static void must(int native, const char *what)
{
	if (native == 0)
		return;
	(void)fprintf(stderr, "%s: the runtime says %d\n", what, native);
	abort();
}

/* What is sent comes to its place late, in the stream. */
static void write_late(uint64_t to, const void *from, uint64_t bytes)
{
	must(user->stream_sync(stream), "waiting for the stream");
	user->write(shadow, from, bytes);
	must(user->busy(stream, delay_ms), "keeping the stream busy");
	must(user->copy(stream, to, shadow, bytes), "copying");
}

/* And what has come leaves it at once, and is overwritten. */
static void read_early(void *to, uint64_t from, uint64_t bytes)
{
	must(user->copy(stream, shadow, from, bytes), "copying");
	must(user->stream_sync(stream), "waiting for the stream");
	user->read(to, shadow, bytes);
}

static rcclx_result at_once(rcclx_result (*make)(void *arg), void *arg)
{
	return make(arg);
}

static int open_rank(struct coll_rank *c, struct rank_ctx *ctx, uint32_t device)
{
	uint64_t bytes = (ctx->n_ranks * (MAX_COUNT + 1) + 64) * 8 + 4096;

	RANK_DO(load_runtime(ctx));
	RANK_DO(coll_open(c, ctx, bytes));
	shadow = user->alloc(device, 2 * c->bytes);
	stream = user->stream_new(device);
	c->device = (struct coll_device){
		.address = user->alloc(device, 2 * c->bytes),
		.write = write_late,
		.read = read_early,
		.around = at_once,
		.stream = stream,
	};
	RANK_CHECK(ctx, c->device.address && shadow && stream, "no device memory");
	return 0;
}

static int close_rank(struct coll_rank *c)
{
	struct rank_ctx *ctx = c->ctx;

	RANK_CHECK(ctx, user->stream_sync(stream) == 0, "the stream failed");
	RANK_DO(coll_close(c));
	RANK_CHECK(ctx, user->free(c->device.address) == 0 && user->free(shadow) == 0,
		"memory cannot be freed");
	RANK_CHECK(ctx, user->stream_free(stream) == 0, "the stream cannot be freed");
	return 0;
}

static uint32_t draw(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

static struct coll_case case_of(uint32_t i, uint32_t n_ranks)
{
	static const uint64_t counts[] = {0, 1, 2, 3, 7, 9, 25, 100, 511, 513, 1000, 3000};
	uint32_t state = i * 7919u + n_ranks;
	struct coll_case c = {
		.coll = colls[i % N_COLLS],
		.dtype = draw(&state, RX_DTYPE_N),
		.op = draw(&state, RX_REDOP_N),
		.count = counts[draw(&state, sizeof(counts) / sizeof(counts[0]))],
		.root = draw(&state, n_ranks),
		.mode = draw(&state, 2) ? COLL_GROUP : COLL_INLINE,
		.memory = draw(&state, 4) ? COLL_DEVICE : COLL_DEVICE_OUT,
		.in_place = draw(&state, 2),
		.misalign = draw(&state, 9),
		.seed = i,
	};

	if (!rx_coll_reduces(c.coll))
		c.op = 0;
	return c;
}

static int rank_first(struct rank_ctx *ctx)
{
	struct coll_case what = {.coll = RX_ALL_REDUCE, .dtype = RX_INT32, .count = 1000};
	struct coll_rank c;

	what.memory = COLL_DEVICE;
	RANK_DO(open_rank(&c, ctx, 0));
	RANK_DO(coll_run(&c, &what));
	return close_rank(&c);
}

/* ---- every collective ---- */

struct sweep {
	uint32_t n_cases;
	uint32_t n_devices;
	bool captured;
};

/* Recorded, and replayed several times with the same data: each time the same comes out. */
static rcclx_result in_graph(rcclx_result (*make)(void *arg), void *arg)
{
	void *graph = NULL;
	rcclx_result r = RCCLX_OK;

	must(user->capture_begin(stream, 0), "beginning a capture");
	r = make(arg);
	must(user->capture_end(stream, &graph), "ending a capture");
	if (r != RCCLX_OK)
		return r;
	must(user->graph_launch(graph, stream), "replaying");
	user->graph_free(graph);
	return r;
}

static int rank_sweep(struct rank_ctx *ctx)
{
	const struct sweep *sweep = ctx->arg;
	struct coll_rank c;

	delay_ms = 2;
	RANK_DO(open_rank(&c, ctx, ctx->rank % sweep->n_devices));
	/* Staged memory of graphs is kept, with a descriptor each on the test double. */
	if (sweep->captured) {
		ctx->n_kept_fds = UINT32_MAX;
		c.device.around = in_graph;
	}
	for (uint32_t i = 0; i < sweep->n_cases; i++) {
		struct coll_case what = case_of(i, ctx->n_ranks);

		RANK_DO(coll_run(&c, &what));
	}
	RANK_DO(rank_sync(ctx));
	RANK_OK(ctx, rcclx_comm_status(c.comm));
	RANK_DO(rank_sync(ctx));
	return close_rank(&c);
}

static void sweep(uint32_t n_ranks, uint32_t n_devices, uint32_t n_cases, bool captured)
{
	struct node *node = start_node();
	struct sweep what = {n_cases, n_devices, captured};

	world_run(node, n_ranks, rank_sweep, &what);
	node_stop(node);
}

static void test_all_in_streams(void **state)
{
	(void)state;
	sweep(1, 1, 2 * N_COLLS, false);
	sweep(3, 1, 8 * N_COLLS, false);
	sweep(4, 4, 6 * N_COLLS, false);
}

/* With kernels that wait for those of other devices: from the streams' side the same. */
static void sweep_waiting(const char *thresholds, bool captured)
{
	struct sweep what = {6 * N_COLLS, 3, captured};
	struct node *node = NULL;

	if (on_gpu) /* one device */
		skip();
	assert_true(gpu_setup(TEST_FAMILY));
	gpu_configure(thresholds, "slot_bytes = 16384;");
	node = gpu_node(NULL, NULL);
	world_run(node, 4, rank_sweep, &what);
	assert_true(gpu_count(node, 0, "exchange_operations") > 0);
	node_stop(node);
	gpu_cleanup();
}

static void test_waiting_in_streams(void **state)
{
	(void)state;
	sweep_waiting("device_flat_max = 9000000L;", false);
	sweep_waiting("device_tree_min = 0; device_push_min = 0;", false);
}

static void test_waiting_in_graphs(void **state)
{
	(void)state;
	sweep_waiting("device_flat_max = 9000000L; device_push_min = 0;", true);
	sweep_waiting("device_tree_min = 0;", true);
}

/* With devices that do not reach each other: through host memory, in several phases. */
static void sweep_apart(const char *apart, bool captured)
{
	struct sweep what = {6 * N_COLLS, 3, captured};
	struct node *node = NULL;

	if (on_gpu) /* one device */
		skip();
	assert_true(gpu_setup(TEST_FAMILY));
	gpu_configure("", "stage_bytes = 65536;");
	node = gpu_node(apart, NULL);
	world_run(node, 4, rank_sweep, &what);
	assert_true(gpu_count(node, 0, "staged_operations") > 0);
	node_stop(node);
	gpu_cleanup();
}

static void test_apart(void **state)
{
	(void)state;
	sweep_apart("apart", false);
	sweep_apart("apart=0-2", true);
}

static void test_all_in_graphs(void **state)
{
	(void)state;
	sweep(1, 1, 2 * N_COLLS, true);
	sweep(3, 1, 8 * N_COLLS, true);
	sweep(4, 4, 6 * N_COLLS, true);
}

/* ---- order, several graphs, new data ---- */

#define N_FLOATS 700u

struct bench {
	struct rcclx_client *client;
	struct rcclx_comm *comm;
	struct rcclx_call_config config;
	uint64_t memory; /* of N_FLOATS floats: source, data, sink */
};

static uint64_t source(const struct bench *b)
{
	return b->memory;
}

static uint64_t data(const struct bench *b)
{
	return b->memory + 4096;
}

static uint64_t sink(const struct bench *b)
{
	return b->memory + 8192;
}

static int open_bench(struct bench *b, struct rank_ctx *ctx, uint32_t device)
{
	RANK_DO(load_runtime(ctx));
	ctx->n_kept_fds = UINT32_MAX;
	stream = user->stream_new(device);
	b->memory = user->alloc(device, 12288);
	b->config = (struct rcclx_call_config)RCCLX_CALL_CONFIG_INIT;
	b->config.flags = RCCLX_CALL_IN_STREAM;
	b->config.stream = stream;
	RANK_DO(rank_connect(ctx, &b->client));
	return rank_comm(ctx, b->client, 0, &b->comm);
}

/* Sums of @x of all ranks, as floats that are exact. */
static void fill(uint64_t at, float x)
{
	float host[N_FLOATS];

	for (uint32_t i = 0; i < N_FLOATS; i++)
		host[i] = x + (float)i;
	user->write(at, host, sizeof(host));
}

static int check_sum(struct rank_ctx *ctx, uint64_t at, float x, uint32_t n)
{
	float host[N_FLOATS];

	user->read(host, at, sizeof(host));
	for (uint32_t i = 0; i < N_FLOATS; i++)
		RANK_CHECK(ctx, host[i] == x + (float)(n * i), "element %u is %g, not %g", i,
			(double)host[i], (double)(x + (float)(n * i)));
	return 0;
}

static rcclx_result sum_in_place(struct bench *b)
{
	void *at = (void *)(uintptr_t)data(b);

	return rcclx_all_reduce(b->comm, at, at, N_FLOATS, RCCLX_FLOAT32, RCCLX_SUM, &b->config);
}

/* source -> data, sum, data -> sink; a slow stream on one rank */
static int put_round(struct bench *b, struct rank_ctx *ctx, uint32_t slow)
{
	if (ctx->rank == slow)
		must(user->busy(stream, 5), "keeping the stream busy");
	must(user->copy(stream, data(b), source(b), sizeof(float) * N_FLOATS), "copying");
	RANK_OK(ctx, sum_in_place(b));
	must(user->copy(stream, sink(b), data(b), sizeof(float) * N_FLOATS), "copying");
	return 0;
}

static float sum_of(uint32_t n_ranks, float round)
{
	float sum = 0;

	for (uint32_t rank = 0; rank < n_ranks; rank++)
		sum += round * (float)(rank + 1);
	return sum;
}

/* Two graphs and calls beside them, in turns, with new data every time. */
static int rank_rounds(struct rank_ctx *ctx)
{
	void *graphs[2] = {NULL, NULL};
	struct bench b = {0};

	RANK_DO(open_bench(&b, ctx, ctx->rank % 2));
	/* Something to prove memory with, now and in the graphs. */
	fill(data(&b), (float)ctx->rank);
	for (uint32_t i = 0; i < 2; i++) {
		must(user->capture_begin(stream, 0), "beginning a capture");
		for (uint32_t k = 0; k <= i; k++)
			RANK_DO(put_round(&b, ctx, i));
		must(user->capture_end(stream, &graphs[i]), "ending a capture");
	}
	for (uint32_t round = 1; round < 40; round++) {
		fill(source(&b), (float)(round * (ctx->rank + 1)));
		if (round % 3 < 2)
			must(user->graph_launch(graphs[round % 3], stream), "replaying");
		else
			RANK_DO(put_round(&b, ctx, round % ctx->n_ranks));
		must(user->stream_sync(stream), "waiting for the stream");
		RANK_DO(check_sum(ctx, sink(&b), sum_of(ctx->n_ranks, (float)round), ctx->n_ranks));
	}
	/* All at once, without the host. */
	for (uint32_t round = 0; round < 60; round++)
		must(user->graph_launch(graphs[round % 2], stream), "replaying");
	must(user->stream_sync(stream), "waiting for the stream");
	RANK_DO(check_sum(ctx, sink(&b), sum_of(ctx->n_ranks, 39), ctx->n_ranks));
	for (uint32_t i = 0; i < 2; i++)
		user->graph_free(graphs[i]);
	RANK_DO(rank_sync(ctx));
	RANK_OK(ctx, rcclx_comm_status(b.comm));
	RANK_DO(rank_sync(ctx));
	return rank_leave(ctx, b.comm, b.client);
}

static void test_rounds(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 3, rank_rounds, NULL);
	node_stop(node);
}

/* A call returns at once, whatever the stream has to do first, and more of them than fit a ring. */
static int rank_ahead(struct rank_ctx *ctx)
{
	struct bench b = {0};
	uint64_t start = 0;

	RANK_DO(open_bench(&b, ctx, 0));
	fill(data(&b), 1);
	RANK_OK(ctx, sum_in_place(&b));
	must(user->stream_sync(stream), "waiting for the stream");
	user->write(data(&b), (float[N_FLOATS]){0}, sizeof(float) * N_FLOATS);
	RANK_DO(rank_sync(ctx));
	start = test_now_ms();
	must(user->busy(stream, 2000), "keeping the stream busy");
	/* A GPU's streams hold a thousand things, then the driver waits for room. */
	for (uint32_t i = 0; i < (on_gpu ? 200 : 600); i++)
		RANK_OK(ctx, sum_in_place(&b));
	RANK_WITHIN(ctx, start, 1900);
	RANK_CHECK(ctx, user->stream_query(stream) == 600, "the stream is done already");
	/* Ends when they are over, not before. */
	RANK_OK(ctx, rcclx_comm_destroy(b.comm));
	must(user->stream_sync(stream), "waiting for the stream");
	return rank_leave(ctx, NULL, b.client);
}

static void test_ahead(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 2, rank_ahead, NULL);
	node_stop(node);
}

/* Sends and receives of a group in one stream do not wait for each other, in graphs neither. */
static int rank_ring(struct rank_ctx *ctx)
{
	struct bench b = {0};
	void *graph = NULL;
	uint32_t next = (ctx->rank + 1) % ctx->n_ranks;
	uint32_t before = (ctx->rank + ctx->n_ranks - 1) % ctx->n_ranks;

	RANK_DO(open_bench(&b, ctx, ctx->rank));
	for (uint32_t round = 0; round < 12; round++) {
		if (round == 3)
			must(user->capture_begin(stream, 0), "beginning a capture");
		if (round <= 3) {
			RANK_OK(ctx, rcclx_group_start());
			RANK_OK(ctx, rcclx_send(b.comm, (void *)(uintptr_t)source(&b), N_FLOATS,
					     RCCLX_FLOAT32, next, &b.config));
			RANK_OK(ctx, rcclx_recv(b.comm, (void *)(uintptr_t)sink(&b), N_FLOATS,
					     RCCLX_FLOAT32, before, &b.config));
			RANK_OK(ctx, rcclx_group_end());
		}
		if (round == 3) {
			must(user->capture_end(stream, &graph), "ending a capture");
			continue;
		}
		fill(source(&b), (float)(100 * round + ctx->rank));
		if (round > 3)
			must(user->graph_launch(graph, stream), "replaying");
		must(user->stream_sync(stream), "waiting for the stream");
		/* What the first rounds find there was sent before it was filled. */
		if (round > 3)
			RANK_DO(check_sum(ctx, sink(&b), (float)(100 * round + before), 1));
	}
	user->graph_free(graph);
	RANK_DO(rank_sync(ctx));
	RANK_OK(ctx, rcclx_comm_status(b.comm));
	RANK_DO(rank_sync(ctx));
	return rank_leave(ctx, b.comm, b.client);
}

static void test_send_recv(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 3, rank_ring, NULL);
	node_stop(node);
}

/* ---- nothing hangs ---- */

static int await_stream(struct rank_ctx *ctx, uint64_t ms)
{
	uint64_t end = test_now_ms() + ms * test_slow();

	while (user->stream_query(stream) == 600) {
		RANK_CHECK(ctx, test_now_ms() < end, "the stream hangs");
		test_sleep_ms(2);
	}
	return 0;
}

static void *recorded(struct bench *b)
{
	void *graph = NULL;

	must(user->capture_begin(stream, 0), "beginning a capture");
	if (sum_in_place(b) != RCCLX_OK)
		abort();
	must(user->capture_end(stream, &graph), "ending a capture");
	return graph;
}

enum how { DESTROYED, ABORTED, PEER_DIES, DAEMON_DIES, DISCONNECTED };

/* Rank 1 comes to nothing more. */
static int stay_away(struct rank_ctx *ctx, struct bench *b, enum how how)
{
	flag_set(ctx->shared, 0, 1);
	RANK_CHECK(
		ctx, how == PEER_DIES || flag_wait(ctx->shared, 1, 1, 20000), "rank 0 did not end");
	while (how == PEER_DIES)
		test_sleep_ms(1000);
	return how == DAEMON_DIES ? 0 : rank_leave(ctx, b->comm, b->client);
}

/* Calls that its peer never comes to, and replays afterwards. */
static int be_released(struct rank_ctx *ctx, struct bench *b, void *graph, enum how how)
{
	if (how == ABORTED || how == PEER_DIES || how == DAEMON_DIES) {
		RANK_OK(ctx, sum_in_place(b));
		must(user->graph_launch(graph, stream), "replaying");
		must(user->graph_launch(graph, stream), "replaying");
	}
	flag_set(ctx->shared, 2, 1);
	if (how == ABORTED)
		RANK_OK(ctx, rcclx_comm_abort(b->comm));
	if (how == DESTROYED || how == DISCONNECTED)
		RANK_OK(ctx, rcclx_comm_destroy(b->comm));
	if (how == DISCONNECTED)
		RANK_OK(ctx, rcclx_disconnect(b->client));
	RANK_DO(await_stream(ctx, 3000));
	if (how == PEER_DIES)
		RANK_RESULT(ctx, rcclx_comm_status(b->comm), RCCLX_ERR_PEER_LOST);
	if (how == DAEMON_DIES)
		RANK_RESULT(ctx, rcclx_comm_status(b->comm), RCCLX_ERR_DAEMON_LOST);
	/* The graph is still there. */
	for (uint32_t i = 0; i < 20; i++)
		must(user->graph_launch(graph, stream), "replaying");
	RANK_DO(await_stream(ctx, 3000));
	flag_set(ctx->shared, 1, 1);
	if (how == DESTROYED)
		return rank_leave(ctx, NULL, b->client);
	return how == DISCONNECTED ? 0 : rank_leave(ctx, b->comm, b->client);
}

static int rank_released(struct rank_ctx *ctx)
{
	enum how how = *(enum how *)ctx->arg;
	struct bench b = {0};

	RANK_DO(open_bench(&b, ctx, ctx->rank));
	fill(data(&b), 1);
	RANK_OK(ctx, sum_in_place(&b));
	void *graph = recorded(&b);
	must(user->graph_launch(graph, stream), "replaying");
	must(user->stream_sync(stream), "waiting for the stream");
	RANK_DO(rank_sync(ctx));
	RANK_DO(ctx->rank == 1 ? stay_away(ctx, &b, how) : be_released(ctx, &b, graph, how));
	user->graph_free(graph);
	return 0;
}

static void released(enum how how)
{
	struct node *node = start_node();
	struct world *world = world_start(node, 2, rank_released, &how);

	assert_true(flag_wait(world->shared, 0, 1, 10000));
	assert_true(flag_wait(world->shared, 2, 1, 10000));
	if (how == PEER_DIES)
		world_kill(world, 1, SIGKILL);
	if (how == DAEMON_DIES) {
		test_sleep_ms(20);
		node_kill(node);
	}
	world_join(world);
	if (how == DAEMON_DIES)
		node_forget(node);
	else
		node_stop(node);
}

static void test_destroyed(void **state)
{
	(void)state;
	released(DESTROYED);
	released(DISCONNECTED);
}

static void test_aborted(void **state)
{
	(void)state;
	released(ABORTED);
}

static void test_peer_dies(void **state)
{
	(void)state;
	released(PEER_DIES);
}

static void test_daemon_dies(void **state)
{
	(void)state;
	released(DAEMON_DIES);
}

/* ---- ranks that disagree, and calls that cannot be ---- */

static int rank_disagrees(struct rank_ctx *ctx)
{
	struct bench b = {0};
	void *at = NULL;
	void *graph = NULL;
	bool in_graph_too = *(bool *)ctx->arg;

	RANK_DO(open_bench(&b, ctx, 0));
	at = (void *)(uintptr_t)data(&b);
	fill(data(&b), 1);
	if (in_graph_too)
		must(user->capture_begin(stream, 0), "beginning a capture");
	RANK_OK(ctx, rcclx_all_reduce(
			     b.comm, at, at, 100 + ctx->rank, RCCLX_FLOAT32, RCCLX_SUM, &b.config));
	if (in_graph_too) {
		must(user->capture_end(stream, &graph), "ending a capture");
		must(user->graph_launch(graph, stream), "replaying");
	}
	RANK_DO(await_stream(ctx, 3000));
	RANK_DO(rank_sync(ctx));
	RANK_RESULT(ctx, rcclx_comm_status(b.comm), RCCLX_ERR_MISMATCH);
	RANK_TEXT(ctx, "all_reduce of 101 float32, sum");
	if (in_graph_too)
		user->graph_free(graph);
	RANK_RESULT(ctx, sum_in_place(&b), RCCLX_ERR_MISMATCH);
	RANK_DO(rank_sync(ctx));
	return rank_leave(ctx, b.comm, b.client);
}

static void test_mismatch(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 2, rank_disagrees, &(bool){false});
	world_run(node, 2, rank_disagrees, &(bool){true});
	node_stop(node);
}

static int rank_refused(struct rank_ctx *ctx)
{
	struct rcclx_op *op = NULL;
	struct bench b = {0};
	void *at = NULL;

	RANK_DO(open_bench(&b, ctx, 0));
	at = (void *)(uintptr_t)data(&b);
	RANK_RESULT(ctx,
		rcclx_all_reduce_start(
			b.comm, at, at, 10, RCCLX_FLOAT32, RCCLX_SUM, &b.config, &op),
		RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "_start");
	b.config.timeout_ns = 1000;
	RANK_RESULT(ctx, sum_in_place(&b), RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "timeout_ns");
	b.config.timeout_ns = 0;
	b.config.executor = RCCLX_EXECUTOR_INLINE;
	RANK_RESULT(ctx, sum_in_place(&b), RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "RCCLX_EXECUTOR_INLINE");
	b.config.executor = RCCLX_EXECUTOR_AUTO;
	b.config.flags = 0;
	RANK_RESULT(ctx, sum_in_place(&b), RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "stream without");
	return rank_leave(ctx, b.comm, b.client);
}

static int rank_without_devices(struct rank_ctx *ctx)
{
	struct bench b = {0};

	RANK_DO(open_bench(&b, ctx, 0));
	RANK_RESULT(ctx, sum_in_place(&b), RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "the configuration says gpu.backend");
	return rank_leave(ctx, b.comm, b.client);
}

static void test_refused(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 1, rank_refused, NULL);
	node_stop(node);
	node = node_start(&(struct node_options){.config = "gpu = { backend = \"none\"; };\n"});
	world_run(node, 1, rank_without_devices, NULL);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_all_in_streams),
		HARNESS_TEST(test_all_in_graphs),
		HARNESS_TEST(test_waiting_in_streams),
		HARNESS_TEST(test_waiting_in_graphs),
		HARNESS_TEST(test_apart),
		HARNESS_TEST(test_rounds),
		HARNESS_TEST(test_ahead),
		HARNESS_TEST(test_send_recv),
		HARNESS_TEST(test_destroyed),
		HARNESS_TEST(test_aborted),
		HARNESS_TEST(test_peer_dies),
		HARNESS_TEST(test_daemon_dies),
		HARNESS_TEST(test_mismatch),
		HARNESS_TEST(test_refused),
	};
	const char *builddir = getenv("RCCLX_BUILDDIR");
	const char *family = TEST_FAMILY;
	const char *code = getenv("RX_TEST_GPU_CODE");
	char libs[400];
	char library[560] = "";

	if (!builddir || !gpu_fits_sanitizer(family))
		return 77;
	(void)snprintf(libs, sizeof(libs), "%s/.libs", builddir);
	(void)snprintf(runtime_path, sizeof(runtime_path), "%s/gpu_emu_%s.so", libs, family);
	if (code)
		(void)snprintf(runtime_path, sizeof(runtime_path), "%s/cuda_user.so", libs);
	else
		(void)snprintf(library, sizeof(library), "library = \"%s\"; ", runtime_path);
	on_gpu = code != NULL;
	code = code ? code : runtime_path;
	(void)snprintf(config_text, sizeof(config_text),
		"stall_report_s = 20;\n"
		"gpu = { backend = \"%s\"; dir = \"%s\"; %scode = \"%s\"; };\n",
		family, libs, library, code);
	if (setenv("RCCLX_BACKEND_DIR", libs, 1) != 0 ||
		setenv("RCCLX_GPU_BACKEND", family, 1) != 0 ||
		setenv("RCCLX_GPU_CODE", code, 1) != 0)
		return 1;
	return HARNESS_RUN("gpu-stream", tests);
}
