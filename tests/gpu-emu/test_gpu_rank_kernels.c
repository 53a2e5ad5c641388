/* SPDX-License-Identifier: MIT */
/*
 * Collectives that are one kernel in the caller's stream: real daemons, processes and plugins on
 * the test double. What comes out has the oracle's bits, nobody but the ranks is needed for it, and
 * whatever goes wrong becomes an error that names ranks.
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

static const uint8_t served[] = {
	RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL, RX_BROADCAST};
static const uint8_t others[] = {RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_TO_ALL_V};

static char config_text[2000];
static char runtime_path[500];

static struct node *start_node(void)
{
	struct node *node = node_start(&(struct node_options){.config = config_text});

	/* Whoever waits for a while is reported. */
	node_expect(node, "late ranks: ", 0, 8);
	return node;
}

/* Of all devices: what the daemon has done. */
static unsigned long n_by_daemon(const struct node *node)
{
	unsigned long n = 0;

	for (uint32_t device = 0; device < 8; device++)
		n += gpu_count(node, device, "operations");
	return n;
}

/* What rcclxctl @command says has to contain @part, within @ms. */
static void expect(const struct node *node, const char *command, const char *part, uint64_t ms)
{
	uint64_t end = test_now_ms() + ms * test_slow();
	char line[600];
	char text[16384] = "";

	(void)snprintf(line, sizeof(line), "%s/client/ctl/rcclxctl --socket %s %s",
		getenv("RCCLX_BUILDDIR"), node->admin, command);
	do {
		FILE *out = popen(line, "re");
		size_t n = 0;

		assert_non_null(out);
		n = fread(text, 1, sizeof(text) - 1, out);
		text[n] = '\0';
		assert_int_equal(pclose(out), 0);
		if (strstr(text, part))
			return;
		test_sleep_ms(20);
	} while (test_now_ms() < end);
	fail_msg("no \"%s\" in what rcclxctl %s says:\n%s", part, command, text);
}

/* ---- a rank ---- */

static const struct emu_user *user;
static void *stream;

static int load_runtime(struct rank_ctx *ctx, uint32_t device)
{
	void *runtime = dlopen(runtime_path, RTLD_NOW | RTLD_GLOBAL);

	user = runtime ? dlsym(runtime, EMU_USER_SYMBOL) : NULL;
	RANK_CHECK(ctx, user, "no runtime: %s", dlerror());
	RANK_CHECK(ctx, user->set_device(device) == 0, "no device %u", device);
	/* The gates, the slabs, and what is staged for graphs. */
	ctx->n_kept_fds = UINT32_MAX;
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

static void write_now(uint64_t to, const void *from, uint64_t bytes)
{
	must(user->stream_sync(stream), "waiting for the stream");
	user->write(to, from, bytes);
}

static void read_now(void *to, uint64_t from, uint64_t bytes)
{
	must(user->stream_sync(stream), "waiting for the stream");
	user->read(to, from, bytes);
}

static rcclx_result at_once(rcclx_result (*make)(void *arg), void *arg)
{
	return make(arg);
}

static uint64_t n_nodes; /* of the last graph */

static rcclx_result in_graph(rcclx_result (*make)(void *arg), void *arg)
{
	void *graph = NULL;
	rcclx_result r = RCCLX_OK;

	must(user->capture_begin(stream, 0), "beginning a capture");
	r = make(arg);
	must(user->capture_end(stream, &graph), "ending a capture");
	must(user->graph_nodes(graph, &n_nodes), "counting nodes");
	for (uint32_t i = 0; i < 2 && r == RCCLX_OK; i++)
		must(user->graph_launch(graph, stream), "replaying");
	user->graph_free(graph);
	return r;
}

static int open_rank(struct coll_rank *c, struct rank_ctx *ctx, uint64_t bytes, bool captured)
{
	RANK_DO(load_runtime(ctx, ctx->rank));
	RANK_DO(coll_open(c, ctx, bytes));
	stream = user->stream_new(ctx->rank);
	c->device = (struct coll_device){
		.address = user->alloc(ctx->rank, 2 * c->bytes),
		.write = write_now,
		.read = read_now,
		.around = captured ? in_graph : at_once,
		.stream = stream,
	};
	RANK_CHECK(ctx, c->device.address && stream, "no device memory");
	return 0;
}

static int close_rank(struct coll_rank *c)
{
	RANK_DO(rank_sync(c->ctx));
	RANK_OK(c->ctx, rcclx_comm_status(c->comm));
	RANK_DO(rank_sync(c->ctx));
	return coll_close(c);
}

/* ---- every collective ---- */

struct sweep {
	uint32_t n_cases;
	bool captured;
	bool with_others; /* that the daemon executes, and memory that is staged */
};

#define FLAG_READY 0
#define FLAG_GO    1

static uint32_t draw(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

static struct coll_case case_of(uint32_t i, uint32_t n_ranks, bool with_others)
{
	static const uint64_t counts[] = {0, 1, 2, 3, 7, 9, 25, 100, 511, 513, 1000, 3000};
	uint32_t state = i * 7919u + n_ranks;
	struct coll_case c = {
		.coll = served[i % RX_ARRAY_SIZE(served)],
		.dtype = draw(&state, RX_DTYPE_N),
		.op = draw(&state, RX_REDOP_N),
		.count = counts[draw(&state, RX_ARRAY_SIZE(counts))],
		.root = draw(&state, n_ranks),
		.mode = draw(&state, 2) ? COLL_GROUP : COLL_INLINE,
		.memory = COLL_DEVICE,
		.misalign = draw(&state, 9),
		.seed = i,
	};

	if (with_others && draw(&state, 3) == 0)
		c.coll = others[draw(&state, RX_ARRAY_SIZE(others))];
	if (with_others && draw(&state, 3) == 0)
		c.memory = COLL_DEVICE_OUT;
	if (with_others && draw(&state, 6) == 0)
		c.mode = COLL_DAEMON;
	if (!rx_coll_reduces(c.coll))
		c.op = 0;
	return c;
}

static int rank_sweep(struct rank_ctx *ctx)
{
	const struct sweep *sweep = ctx->arg;
	struct coll_rank c;

	RANK_DO(open_rank(
		&c, ctx, (ctx->n_ranks * (MAX_COUNT + 1) + 64) * 8 + 4096, sweep->captured));
	RANK_DO(rank_sync(ctx));
	flag_set(ctx->shared, FLAG_READY, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_GO, 1, 10000), "nobody said go");
	for (uint32_t i = 0; i < sweep->n_cases; i++) {
		struct coll_case what = case_of(i, ctx->n_ranks, sweep->with_others);

		/* A replay needs the data of the first time. */
		what.in_place = !sweep->captured && i % 3 == 1;
		RANK_DO(coll_run(&c, &what));
		if (sweep->captured && !sweep->with_others)
			RANK_CHECK(ctx, n_nodes == 1, "%llu nodes instead of a kernel",
				(unsigned long long)n_nodes);
	}
	return close_rank(&c);
}

static void sweep(uint32_t n_ranks, struct sweep what)
{
	struct node *node = start_node();
	struct world *world = world_start(node, n_ranks, rank_sweep, &what);
	unsigned long before = 0;

	assert_true(flag_wait(world->shared, FLAG_READY, 1, 20000));
	before = n_by_daemon(node);
	flag_set(world->shared, FLAG_GO, 1);
	world_join(world);
	if (what.with_others)
		assert_true(n_by_daemon(node) > before);
	else
		assert_int_equal(n_by_daemon(node), before);
	node_use_is_fine(node);
	node_stop(node);
}

static void test_all_in_streams(void **state)
{
	(void)state;
	sweep(1, (struct sweep){.n_cases = 20});
	sweep(2, (struct sweep){.n_cases = 60});
	sweep(5, (struct sweep){.n_cases = 60});
}

static void test_all_in_graphs(void **state)
{
	(void)state;
	sweep(1, (struct sweep){.n_cases = 20, .captured = true});
	sweep(2, (struct sweep){.n_cases = 60, .captured = true});
	sweep(4, (struct sweep){.n_cases = 60, .captured = true});
}

/* The daemon's operations beside them, in the order of the same streams. */
static void test_beside_the_daemon(void **state)
{
	(void)state;
	sweep(3, (struct sweep){.n_cases = 90, .with_others = true});
	sweep(3, (struct sweep){.n_cases = 60, .with_others = true, .captured = true});
}

/* Each way through a kernel, by size; above a limit the daemon does it. */
static int rank_large(struct rank_ctx *ctx)
{
	static const uint64_t counts[] = {16384, 40000, 131072, 262144, 262145};
	struct coll_case what = {
		.coll = RX_ALL_REDUCE, .dtype = RX_FLOAT32, .op = RX_SUM, .memory = COLL_DEVICE};
	struct coll_rank c;

	RANK_DO(open_rank(&c, ctx, 262145 * 4 + 4096, false));
	RANK_DO(rank_sync(ctx));
	for (uint32_t i = 0; i < RX_ARRAY_SIZE(counts); i++) {
		what.count = counts[i];
		RANK_DO(coll_run(&c, &what));
	}
	return close_rank(&c);
}

static void test_large(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 3, rank_large, NULL);
	/* One operation has a part on each device. */
	assert_int_equal(gpu_count(node, 0, "operations"), 1);
	assert_int_equal(gpu_count(node, 2, "operations"), 1);
	node_use_is_fine(node);
	node_stop(node);
}

/* ---- what goes wrong ---- */

#define N_FLOATS   700u
#define TIMEOUT_NS 1000000000ull

struct bench {
	struct rcclx_client *client;
	struct rcclx_comm *comm;
	struct rcclx_call_config config;
	uint64_t memory;
};

static int open_bench(struct bench *b, struct rank_ctx *ctx, uint64_t timeout_ns)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_unique_id id;

	RANK_DO(load_runtime(ctx, ctx->rank));
	stream = user->stream_new(ctx->rank);
	b->memory = user->alloc(ctx->rank, 4096);
	b->config = (struct rcclx_call_config)RCCLX_CALL_CONFIG_INIT;
	b->config.flags = RCCLX_CALL_IN_STREAM;
	b->config.stream = stream;
	config.op_timeout_ns = timeout_ns;
	RANK_DO(rank_connect(ctx, &b->client));
	RANK_DO(rank_id(ctx, b->client, 0, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_comm_create(b->client, &id, ctx->n_ranks, ctx->rank, &config, &b->comm));
	return 0;
}

static rcclx_result sum(struct bench *b, uint64_t count)
{
	void *at = (void *)(uintptr_t)b->memory;

	return rcclx_all_reduce(b->comm, at, at, count, RCCLX_FLOAT32, RCCLX_SUM, &b->config);
}

static void fill(struct bench *b, float x)
{
	float host[N_FLOATS];

	for (uint32_t i = 0; i < N_FLOATS; i++)
		host[i] = x;
	user->write(b->memory, host, sizeof(host));
}

static int check(struct rank_ctx *ctx, struct bench *b, float x)
{
	float host[N_FLOATS];

	user->read(host, b->memory, sizeof(host));
	for (uint32_t i = 0; i < N_FLOATS; i++)
		RANK_CHECK(ctx, host[i] == x, "element %u is %g, not %g", i, (double)host[i],
			(double)x);
	return 0;
}

/* Once, so that everything is warm. */
static int first_sum(struct rank_ctx *ctx, struct bench *b)
{
	fill(b, 1);
	RANK_OK(ctx, sum(b, N_FLOATS));
	must(user->stream_sync(stream), "waiting for the stream");
	RANK_DO(check(ctx, b, (float)ctx->n_ranks));
	fill(b, 1);
	return rank_sync(ctx);
}

static int await_stream(struct rank_ctx *ctx, uint64_t ms)
{
	uint64_t end = test_now_ms() + ms * test_slow();

	while (user->stream_query(stream) == 600) {
		RANK_CHECK(ctx, test_now_ms() < end, "the stream hangs");
		test_sleep_ms(2);
	}
	return 0;
}

/* The error is there though no call is made, and stays. */
static int expect_failed(
	struct rank_ctx *ctx, struct bench *b, rcclx_result result, const char *text, uint64_t ms)
{
	uint64_t end = test_now_ms() + ms * test_slow();

	while (rcclx_comm_status(b->comm) == RCCLX_OK) {
		RANK_CHECK(ctx, test_now_ms() < end, "nothing has failed");
		test_sleep_ms(5);
	}
	RANK_RESULT(ctx, rcclx_comm_status(b->comm), result);
	RANK_TEXT(ctx, text);
	RANK_RESULT(ctx, sum(b, 1), result);
	RANK_TEXT(ctx, text);
	return await_stream(ctx, 3000);
}

static int rank_disagrees(struct rank_ctx *ctx)
{
	struct bench b = {0};

	RANK_DO(open_bench(&b, ctx, 0));
	RANK_DO(first_sum(ctx, &b));
	RANK_OK(ctx, sum(&b, 100 + ctx->rank));
	RANK_DO(await_stream(ctx, 5000));
	RANK_DO(rank_sync(ctx));
	RANK_DO(expect_failed(ctx, &b, RCCLX_ERR_MISMATCH, "the ranks disagree", 3000));
	RANK_TEXT(ctx, ctx->rank == 0 ? "rank 0 called all_reduce of 100 float32, sum" : "rank 1");
	RANK_DO(check(ctx, &b, 1));
	RANK_DO(rank_sync(ctx));
	return rank_leave(ctx, b.comm, b.client);
}

static void test_mismatch(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 2, rank_disagrees, NULL);
	node_use_is_fine(node);
	node_stop(node);
}

/* A kernel waits for a rank that waits in the daemon, without a limit: found all the same. */
static int rank_goes_elsewhere(struct rank_ctx *ctx)
{
	struct bench b = {0};

	RANK_DO(open_bench(&b, ctx, 0));
	RANK_DO(first_sum(ctx, &b));
	if (ctx->rank == 1)
		b.config.executor = RCCLX_EXECUTOR_DAEMON;
	RANK_OK(ctx, sum(&b, N_FLOATS));
	RANK_DO(expect_failed(
		ctx, &b, RCCLX_ERR_MISMATCH, "rank 1 called all_reduce of 700 float32, sum", 8000));
	RANK_TEXT(ctx, "rank 0 called all_reduce of 700 float32, sum");
	if (ctx->rank == 0)
		RANK_TEXT(ctx, "with another executor");
	RANK_DO(rank_sync(ctx));
	return rank_leave(ctx, b.comm, b.client);
}

static void test_other_executor(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 2, rank_goes_elsewhere, NULL);
	/* Its devices stay open. */
	node_use_is_fine(node);
	node_stop(node);
}

static void *recorded(struct bench *b)
{
	void *graph = NULL;

	must(user->capture_begin(stream, 0), "beginning a capture");
	if (sum(b, N_FLOATS) != RCCLX_OK)
		abort();
	must(user->capture_end(stream, &graph), "ending a capture");
	return graph;
}

/* Rank 0 replays twice, rank 1 once. */
static int rank_replays(struct rank_ctx *ctx)
{
	struct bench b = {0};
	void *graph = NULL;

	RANK_DO(open_bench(&b, ctx, TIMEOUT_NS));
	RANK_DO(first_sum(ctx, &b));
	graph = recorded(&b);
	for (uint32_t i = 0; i < 2 - ctx->rank; i++)
		must(user->graph_launch(graph, stream), "replaying");
	RANK_DO(expect_failed(ctx, &b, RCCLX_ERR_TIMEOUT,
		ctx->rank == 0 ? "rank 1 (pid " : "rank 0 (pid ", 5000));
	if (ctx->rank == 0)
		RANK_TEXT(ctx, "did not come to all_reduce of 700 float32, sum");
	user->graph_free(graph);
	RANK_DO(rank_sync(ctx));
	return rank_leave(ctx, b.comm, b.client);
}

static void test_deadline(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 2, rank_replays, NULL);
	node_use_is_fine(node);
	node_stop(node);
}

/* Rank 1 is stopped, and named while rank 0 waits for it; then it goes on, and nothing was lost. */
static int rank_is_stopped(struct rank_ctx *ctx)
{
	struct bench b = {0};

	RANK_DO(open_bench(&b, ctx, 0));
	RANK_DO(first_sum(ctx, &b));
	flag_set(ctx->shared, FLAG_READY, 1);
	if (ctx->rank == 1)
		RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_GO, 1, 20000), "nobody said go");
	RANK_OK(ctx, sum(&b, N_FLOATS));
	must(user->stream_sync(stream), "waiting for the stream");
	RANK_DO(check(ctx, &b, 2));
	RANK_OK(ctx, rcclx_comm_status(b.comm));
	RANK_DO(rank_sync(ctx));
	return rank_leave(ctx, b.comm, b.client);
}

static void test_stopped(void **state)
{
	struct node *node = start_node();
	struct world *world = world_start(node, 2, rank_is_stopped, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, FLAG_READY, 1, 20000));
	node_expect(node, "late ranks: 1 (pid ", 1, 1);
	world_kill(world, 1, SIGSTOP);
	expect(node, "comms", "late", 8000);
	expect(node, "--json comms", "\"rank\": 1,\n        \"pid\": ", 2000);
	flag_set(world->shared, FLAG_GO, 1);
	world_kill(world, 1, SIGCONT);
	world_join(world);
	node_use_is_fine(node);
	node_stop(node);
}

/* The second stream does not wait for the first. */
static int rank_overlaps(struct rank_ctx *ctx)
{
	struct bench b = {0};
	void *second = NULL;

	RANK_DO(open_bench(&b, ctx, 0));
	RANK_DO(first_sum(ctx, &b));
	if (ctx->rank == 0) {
		second = user->stream_new(0);
		RANK_OK(ctx, sum(&b, 1));
		test_sleep_ms(50);
		b.config.stream = second;
		RANK_OK(ctx, sum(&b, 1));
		RANK_DO(expect_failed(ctx, &b, RCCLX_ERR_INVALID, "two streams of rank 0", 3000));
	} else {
		RANK_DO(expect_failed(ctx, &b, RCCLX_ERR_ABORTED, "rank 0 (pid ", 5000));
	}
	RANK_DO(rank_sync(ctx));
	RANK_DO(rank_leave(ctx, b.comm, b.client));
	if (second)
		must(user->stream_free(second), "freeing a stream");
	return 0;
}

static void test_overlap(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 2, rank_overlaps, NULL);
	node_use_is_fine(node);
	node_stop(node);
}

static int rank_refused(struct rank_ctx *ctx)
{
	struct bench b = {0};

	RANK_DO(open_bench(&b, ctx, 0));
	RANK_DO(first_sum(ctx, &b));
	b.config.stream = user->stream_new(3);
	RANK_RESULT(ctx, sum(&b, 1), RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "the stream is one of device 3, but the communicator was made while device");
	must(user->stream_free(b.config.stream), "freeing a stream");
	/* Nothing has happened. */
	b.config.stream = stream;
	RANK_DO(first_sum(ctx, &b));
	return rank_leave(ctx, b.comm, b.client);
}

static void test_refused(void **state)
{
	struct node *node = start_node();

	(void)state;
	world_run(node, 2, rank_refused, NULL);
	node_use_is_fine(node);
	node_stop(node);
}

/* ---- nothing hangs ---- */

enum how { DESTROYED, ABORTED, PEER_DIES, PEER_LEAVES, DAEMON_DIES, DISCONNECTED };

/* Rank 1 comes to nothing more. */
static int stay_away(struct rank_ctx *ctx, struct bench *b, enum how how)
{
	flag_set(ctx->shared, FLAG_READY, 1);
	if (how == PEER_LEAVES)
		return rank_leave(ctx, b->comm, b->client);
	RANK_CHECK(ctx, how == PEER_DIES || flag_wait(ctx->shared, FLAG_GO, 1, 24000),
		"rank 0 did not end");
	while (how == PEER_DIES)
		test_sleep_ms(1000);
	return how == DAEMON_DIES ? 0 : rank_leave(ctx, b->comm, b->client);
}

/* Calls that its peer never comes to, and replays afterwards. */
static int be_released(struct rank_ctx *ctx, struct bench *b, void *graph, enum how how)
{
	RANK_OK(ctx, sum(b, N_FLOATS));
	must(user->graph_launch(graph, stream), "replaying");
	must(user->graph_launch(graph, stream), "replaying");
	test_sleep_ms(20);
	flag_set(ctx->shared, 2, 1);
	if (how == ABORTED)
		RANK_OK(ctx, rcclx_comm_abort(b->comm));
	if (how == DESTROYED || how == DISCONNECTED)
		RANK_OK(ctx, rcclx_comm_destroy(b->comm));
	if (how == DISCONNECTED)
		RANK_OK(ctx, rcclx_disconnect(b->client));
	RANK_DO(await_stream(ctx, how == ABORTED || how == DAEMON_DIES ? 3000 : 18000));
	if (how == ABORTED)
		RANK_RESULT(ctx, rcclx_comm_status(b->comm), RCCLX_ERR_ABORTED);
	if (how == PEER_DIES || how == PEER_LEAVES)
		RANK_DO(expect_failed(
			ctx, b, RCCLX_ERR_PEER_LOST, how == PEER_DIES ? "died" : "has left", 3000));
	if (how == DAEMON_DIES)
		RANK_DO(expect_failed(ctx, b, RCCLX_ERR_DAEMON_LOST, "", 3000));
	/* The graph is still there. */
	for (uint32_t i = 0; i < 20; i++)
		must(user->graph_launch(graph, stream), "replaying");
	RANK_DO(await_stream(ctx, 3000));
	flag_set(ctx->shared, FLAG_GO, 1);
	if (how == DESTROYED)
		return rank_leave(ctx, NULL, b->client);
	return how == DISCONNECTED ? 0 : rank_leave(ctx, b->comm, b->client);
}

static int rank_released(struct rank_ctx *ctx)
{
	enum how how = *(enum how *)ctx->arg;
	struct bench b = {0};
	void *graph = NULL;

	RANK_DO(open_bench(&b, ctx, 0));
	RANK_DO(first_sum(ctx, &b));
	graph = recorded(&b);
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

	assert_true(flag_wait(world->shared, FLAG_READY, 1, 10000));
	assert_true(flag_wait(world->shared, 2, 1, 10000));
	if (how == PEER_DIES)
		world_kill(world, 1, SIGKILL);
	if (how == DAEMON_DIES)
		node_kill(node);
	world_join(world);
	if (how == DAEMON_DIES) {
		node_forget(node);
		return;
	}
	node_use_is_fine(node);
	node_stop(node);
}

static void test_destroyed(void **state)
{
	(void)state;
	released(DESTROYED);
}

static void test_disconnected(void **state)
{
	(void)state;
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

static void test_peer_leaves(void **state)
{
	(void)state;
	released(PEER_LEAVES);
}

static void test_daemon_dies(void **state)
{
	(void)state;
	released(DAEMON_DIES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_all_in_streams),
		HARNESS_TEST(test_all_in_graphs),
		HARNESS_TEST(test_beside_the_daemon),
		HARNESS_TEST(test_large),
		HARNESS_TEST(test_refused),
		HARNESS_TEST(test_mismatch),
		HARNESS_TEST(test_other_executor),
		HARNESS_TEST(test_deadline),
		HARNESS_TEST(test_stopped),
		HARNESS_TEST(test_overlap),
		HARNESS_TEST(test_destroyed),
		HARNESS_TEST(test_disconnected),
		HARNESS_TEST(test_aborted),
		HARNESS_TEST(test_peer_dies),
		HARNESS_TEST(test_peer_leaves),
		HARNESS_TEST(test_daemon_dies),
	};
	const char *builddir = getenv("RCCLX_BUILDDIR");
	char libs[400];

	if (!builddir || !gpu_fits_sanitizer(TEST_FAMILY))
		return 77;
	(void)snprintf(libs, sizeof(libs), "%s/.libs", builddir);
	(void)snprintf(runtime_path, sizeof(runtime_path), "%s/gpu_emu_" TEST_FAMILY ".so", libs);
	(void)snprintf(config_text, sizeof(config_text),
		"stall_report_s = 1;\n"
		"gpu = { backend = \"" TEST_FAMILY "\"; dir = \"%s\"; library = \"%s\"; "
		"code = \"%s\"; inline = true; };\n",
		libs, runtime_path, runtime_path);
	if (setenv("RCCLX_BACKEND_DIR", libs, 1) != 0 ||
		setenv("RCCLX_GPU_BACKEND", TEST_FAMILY, 1) != 0 ||
		setenv("RCCLX_GPU_CODE", runtime_path, 1) != 0)
		return 1;
	return HARNESS_RUN("gpu-rank-kernels", tests);
}
