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
	return node_start(&(struct node_options){.config = config_text});
}

/* Of all devices: what the daemon has done. */
static unsigned long n_by_daemon(const struct node *node)
{
	unsigned long n = 0;

	for (uint32_t device = 0; device < 8; device++)
		n += gpu_count(node, device, "operations");
	return n;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_all_in_streams),
		HARNESS_TEST(test_all_in_graphs),
		HARNESS_TEST(test_beside_the_daemon),
		HARNESS_TEST(test_large),
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
