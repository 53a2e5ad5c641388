/* SPDX-License-Identifier: MIT */
/* Collectives on device memory: real daemons and processes, and a backend without a GPU. */
#include "fake.h"

#include "../integration/coll_case.h"
#include "../integration/harness.h"
#include "../../kernels/coll_types.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL,
	RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V,
	RX_ALL_TO_ALL_V};

#define N_COLLS   (sizeof(colls) / sizeof(colls[0]))
#define MAX_COUNT 5000u

static char config_text[600];
static char plugin_dir[400];

/* ---- nodes with devices ---- */

static struct node *start_node(const char *fault)
{
	return node_start(&(struct node_options){
		.config = config_text,
		.env_name = fault ? "RCCLX_FAKE_FAULT" : NULL,
		.env_value = fault,
	});
}

/* What rcclxctl says of the devices. */
static void ask_devices(const struct node *node, const char *options, char *text, size_t bytes)
{
	char command[600];
	FILE *out = NULL;
	size_t n = 0;

	(void)snprintf(command, sizeof(command), "%s/client/ctl/rcclxctl --socket %s %s devices",
		getenv("RCCLX_BUILDDIR"), node->admin, options);
	out = popen(command, "re");
	assert_non_null(out);
	n = fread(text, 1, bytes - 1, out);
	text[n] = '\0';
	assert_int_equal(pclose(out), 0);
}

static void expect_devices(const struct node *node, const char *options, const char *part)
{
	char text[16384] = "";

	/* What goes is given back a little later. */
	for (uint32_t i = 0; i < 100; i++) {
		ask_devices(node, options, text, sizeof(text));
		if (strstr(text, part))
			return;
		test_sleep_ms(20);
	}
	fail_msg("no \"%s\" in what rcclxctl devices %s says:\n%s", part, options, text);
}

/* ---- ranks with device memory ---- */

static const struct fake_runtime *runtime(void)
{
	char path[500];
	void *plugin = NULL;

	(void)snprintf(path, sizeof(path), "%s/rcclx_backend_fake.so", plugin_dir);
	plugin = dlopen(path, RTLD_NOW);
	return plugin ? dlsym(plugin, FAKE_RUNTIME_SYMBOL) : NULL;
}

static int give_memory(struct coll_rank *c, struct rank_ctx *ctx, uint32_t device)
{
	const struct fake_runtime *fake = runtime();

	RANK_CHECK(ctx, fake, "no fake runtime: %s", dlerror());
	c->device = (struct coll_device){
		.address = fake->alloc(device, 2 * c->bytes),
		.write = fake->write,
		.read = fake->read,
	};
	RANK_CHECK(ctx, c->device.address, "no device memory");
	return 0;
}

static int open_on(struct coll_rank *c, struct rank_ctx *ctx, uint32_t device)
{
	RANK_DO(coll_open(c, ctx, (ctx->n_ranks * (MAX_COUNT + 1) + 64) * 8 + 4096));
	return give_memory(c, ctx, device);
}

static int close_rank(struct coll_rank *c)
{
	runtime()->free(c->device.address);
	return coll_close(c);
}

static const struct coll_case simple = {
	.coll = RX_ALL_REDUCE,
	.dtype = RX_FLOAT32,
	.op = RX_SUM,
	.count = 1000,
	.memory = COLL_DEVICE,
};

/* ---- every collective ---- */

struct sweep {
	uint32_t n_cases;
	uint32_t devices[8]; /* by rank */
};

static uint32_t draw(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

static struct coll_case case_of(uint32_t i, uint32_t n_ranks)
{
	static const uint64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 25, 100, 511, 513, 1000, 4097, 5000};
	uint32_t state = i * 7919u + n_ranks;
	struct coll_case c = {
		.coll = colls[i % N_COLLS],
		.dtype = draw(&state, RX_DTYPE_N),
		.op = draw(&state, RX_REDOP_N),
		.count = counts[draw(&state, sizeof(counts) / sizeof(counts[0]))],
		.root = draw(&state, n_ranks),
		.mode = draw(&state, COLL_MODE_N),
		.memory = COLL_DEVICE + draw(&state, COLL_DEVICE_END - COLL_DEVICE),
		.in_place = draw(&state, 2),
		.misalign = draw(&state, 9),
		.seed = i,
	};

	if (!rx_coll_reduces(c.coll))
		c.op = 0;
	return c;
}

static int rank_sweep(struct rank_ctx *ctx)
{
	const struct sweep *sweep = ctx->arg;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, sweep->devices[ctx->rank]));
	for (uint32_t i = 0; i < sweep->n_cases; i++) {
		struct coll_case what = case_of(i, ctx->n_ranks);

		RANK_DO(coll_run(&c, &what));
	}
	return close_rank(&c);
}

/* How often @device was given something to do. */
static unsigned long launches(const struct node *node, uint32_t device)
{
	char text[16384] = "";
	const char *at = text;

	ask_devices(node, "--json", text, sizeof(text));
	for (uint32_t i = 0; i <= device && at; i++)
		at = strstr(at + 1, "\"launches\": ");
	assert_non_null(at);
	return strtoul(at + strlen("\"launches\": "), NULL, 10);
}

/* On their devices, not copied. */
static void sweep(uint32_t n_ranks, struct sweep what)
{
	struct node *node = start_node(NULL);

	world_run(node, n_ranks, rank_sweep, &what);
	for (uint32_t rank = 0; rank < n_ranks; rank++)
		assert_true(launches(node, what.devices[rank]) > what.n_cases / 4);
	node_stop(node);
}

/* All is copied, for a reason that is told. */
static void sweep_copied(const char *fault, const char *part)
{
	struct sweep what = {4 * N_COLLS, {0, 1, 1}};
	struct node *node = start_node(fault);

	if (strcmp(fault, "open") == 0)
		node_expect(node, part, 1, 1);
	world_run(node, 3, rank_sweep, &what);
	expect_devices(node, "", part);
	assert_int_equal(launches(node, 1), 0);
	node_stop(node);
}

static void test_one_device(void **state)
{
	(void)state;
	sweep(1, (struct sweep){4 * N_COLLS, {3}});
	sweep(4, (struct sweep){24 * N_COLLS, {0}});
}

static void test_a_device_each(void **state)
{
	(void)state;
	sweep(2, (struct sweep){16 * N_COLLS, {0, 1}});
	sweep(8, (struct sweep){8 * N_COLLS, {0, 1, 2, 3, 4, 5, 6, 7}});
}

static void test_shared_and_own(void **state)
{
	(void)state;
	sweep(5, (struct sweep){12 * N_COLLS, {2, 0, 2, 1, 0}});
}

/* ---- what cannot be imported is copied ---- */

static void test_import_fails(void **state)
{
	(void)state;
	sweep_copied("import", "refused ");
}

static void test_wrong_memory(void **state)
{
	(void)state;
	sweep_copied("wrong", "wrong ");
}

static void test_no_code(void **state)
{
	(void)state;
	sweep_copied("open", "no code for this fake device");
}

/* A fresh buffer of zeros proves nothing; it is proven once it holds something. */
static int rank_zeros(struct rank_ctx *ctx)
{
	const struct fake_runtime *fake = runtime();
	struct coll_rank c;
	uint64_t memory = 0;
	float *host = calloc(1024, sizeof(float));

	RANK_CHECK(ctx, fake && host, "out of memory");
	RANK_DO(coll_open(&c, ctx, 65536));
	memory = fake->alloc(0, 8192);
	for (uint32_t i = 0; i < 4; i++) {
		RANK_OK(ctx,
			rcclx_all_reduce(c.comm, (void *)(uintptr_t)memory,
				(void *)(uintptr_t)memory, 1024, RCCLX_FLOAT32, RCCLX_SUM, NULL));
		fake->read(host, memory, 4096);
		for (uint32_t k = 0; k < 1024; k++)
			RANK_CHECK(ctx, host[k] == 0, "a sum of zeros is not zero");
	}
	for (uint32_t k = 0; k < 1024; k++)
		host[k] = (float)k;
	fake->write(memory, host, 4096);
	/* Patience doubles: it is asked for again within so many calls. */
	for (uint32_t i = 0, factor = ctx->n_ranks; i < 8; i++, factor *= ctx->n_ranks) {
		RANK_OK(ctx,
			rcclx_all_reduce(c.comm, (void *)(uintptr_t)memory,
				(void *)(uintptr_t)memory, 1024, RCCLX_FLOAT32, RCCLX_SUM, NULL));
		fake->read(host, memory, 4096);
		for (uint32_t k = 0; k < 1024; k++)
			RANK_CHECK(ctx, host[k] == (float)(k * factor), "element %u is %g", k,
				(double)host[k]);
	}
	RANK_DO(rank_sync(ctx));
	flag_set(ctx->shared, 0, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 1, 1, 5000), "the test did not look");
	fake->free(memory);
	free(host);
	return coll_close(&c);
}

static void test_zeros(void **state)
{
	struct node *node = start_node(NULL);
	struct world *world = world_start(node, 2, rank_zeros, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 10000));
	expect_devices(node, "", "constant ");
	expect_devices(node, "--json", "\"maps\": 2");
	flag_set(world->shared, 1, 1);
	world_join(world);
	node_stop(node);
}

/* Another allocation at the place of one that was freed is another one. */
static int rank_reuse(struct rank_ctx *ctx)
{
	struct coll_rank c;

	RANK_DO(coll_open(&c, ctx, 65536));
	for (uint32_t i = 0; i < 20; i++) {
		struct coll_case what = simple;

		what.seed = i;
		RANK_DO(give_memory(&c, ctx, ctx->rank));
		RANK_DO(coll_run(&c, &what));
		RANK_DO(coll_run(&c, &what));
		runtime()->free(c.device.address);
	}
	RANK_DO(rank_sync(ctx));
	flag_set(ctx->shared, 0, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 1, 1, 5000), "the test did not look");
	return coll_close(&c);
}

static void test_freed_and_made_again(void **state)
{
	struct node *node = start_node(NULL);
	struct world *world = world_start(node, 2, rank_reuse, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 10000));
	/* The last of each rank, mapped for all eight devices. */
	expect_devices(node, "--json", "\"maps\": 2");
	flag_set(world->shared, 1, 1);
	world_join(world);
	expect_devices(node, "--json", "\"maps\": 0");
	node_stop(node);
}

/* ---- sends and receives ---- */

static int rank_ring(struct rank_ctx *ctx)
{
	const struct fake_runtime *fake = runtime();
	struct coll_rank c;
	uint32_t next = (ctx->rank + 1) % ctx->n_ranks;
	uint32_t before = (ctx->rank + ctx->n_ranks - 1) % ctx->n_ranks;
	uint32_t *host = calloc(2000, sizeof(*host));
	uint64_t memory = 0;

	RANK_CHECK(ctx, fake && host, "out of memory");
	RANK_DO(coll_open(&c, ctx, 65536));
	memory = fake->alloc(ctx->rank % 3, 16384);
	for (uint32_t round = 1; round < 20; round++) {
		for (uint32_t k = 0; k < 2000; k++)
			host[k] = ctx->rank * 100000 + round * 3000 + k;
		fake->write(memory, host, 8000);
		/* The last rank sends from host memory. */
		const void *from = ctx->rank + 1 == ctx->n_ranks ? (const void *)host
								 : (const void *)(uintptr_t)memory;
		RANK_OK(ctx, rcclx_group_start());
		RANK_OK(ctx, rcclx_send(c.comm, from, 999, RCCLX_UINT32, next, NULL));
		RANK_OK(ctx, rcclx_recv(c.comm, (void *)(uintptr_t)(memory + 8000), 999,
				     RCCLX_UINT32, before, NULL));
		RANK_OK(ctx, rcclx_group_end());
		fake->read(host, memory + 8000, 999 * 4);
		for (uint32_t k = 0; k < 999; k++)
			RANK_CHECK(ctx, host[k] == before * 100000 + round * 3000 + k,
				"round %u: element %u is %u", round, k, host[k]);
	}
	fake->free(memory);
	free(host);
	return coll_close(&c);
}

static void test_send_recv(void **state)
{
	struct node *node = start_node(NULL);

	(void)state;
	world_run(node, 4, rank_ring, NULL);
	node_stop(node);
}

/* ---- devices that fail ---- */

/* Ranks 0 and 1 on devices 0 and 1, then a communicator of each alone. */
static int rank_failing(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	struct coll_rank c;
	struct coll_rank alone;

	RANK_DO(open_on(&c, ctx, ctx->rank));
	RANK_DO(coll_try(&c, &simple, &result));
	RANK_CHECK(ctx, result == RCCLX_ERR_SYSTEM, "%s: \"%s\"", rcclx_strerror(result),
		rcclx_last_error());
	RANK_TEXT(ctx, "rcclxctl devices");
	RANK_RESULT(ctx, rcclx_barrier(c.comm, NULL), RCCLX_ERR_SYSTEM);
	alone = c;
	alone.rank = 0;
	alone.n_ranks = 1;
	RANK_DO(rank_sync(ctx));
	if (ctx->rank == 0) {
		struct rcclx_unique_id id;

		RANK_OK(ctx, rcclx_unique_id_create(c.client, &id));
		RANK_OK(ctx, rcclx_comm_create(c.client, &id, 1, 0, NULL, &alone.comm));
		RANK_DO(coll_run(&alone, &simple));
		RANK_OK(ctx, rcclx_comm_destroy(alone.comm));
	}
	return close_rank(&c);
}

static void test_launch_fails(void **state)
{
	struct node *node = start_node("launch");

	(void)state;
	node_expect(node, "the fake runtime refused to launch", 1, 1);
	world_run(node, 2, rank_failing, NULL);
	node_stop(node);
}

static void test_device_lost(void **state)
{
	struct node *node = start_node("lost");

	(void)state;
	node_expect(node, "fell off its bus", 2, 2);
	world_run(node, 2, rank_failing, NULL);
	expect_devices(node, "", "the fake device fell off its bus");
	expect_devices(node, "--json", "\"state\": \"failed\"");
	node_stop(node);
}

static int rank_status(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, 0));
	RANK_DO(coll_try(&c, &simple, &result));
	RANK_CHECK(ctx, result == RCCLX_ERR_SYSTEM, "%s", rcclx_strerror(result));
	return close_rank(&c);
}

static void test_kernel_gives_up(void **state)
{
	struct node *node = start_node("status");

	(void)state;
	node_expect(node, "a kernel gave up with status 0x3", 1, 1);
	world_run(node, 2, rank_status, NULL);
	node_stop(node);
}

/* A kernel that never ends: the call does, and so does the daemon. */
static int rank_stuck(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	uint64_t start = test_now_ms();
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank));
	c.timeout_ns = 300000000;
	RANK_DO(coll_try(&c, &simple, &result));
	RANK_CHECK(ctx, result == RCCLX_ERR_TIMEOUT, "%s: \"%s\"", rcclx_strerror(result),
		rcclx_last_error());
	RANK_WITHIN(ctx, start, 3000);
	return close_rank(&c);
}

static void test_stuck_kernel(void **state)
{
	struct node *node = start_node("stuck");

	(void)state;
	node_expect(node, "operations did not end in time", 1, 1);
	world_run(node, 2, rank_stuck, NULL);
	assert_int_equal(kill(node->pid, SIGTERM), 0);
	node_wait_end(node, 10000);
	node_forget(node);
}

/* A rank dies while kernels read its memory. */
static int rank_dying(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	uint64_t start = 0;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank));
	RANK_DO(coll_run(&c, &simple));
	atomic_store(&ctx->shared->values[ctx->rank], 1);
	start = test_now_ms();
	for (uint32_t i = 0; i < 40 && result == RCCLX_OK; i++)
		RANK_DO(coll_try(&c, &simple, &result));
	RANK_CHECK(ctx, result == RCCLX_ERR_PEER_LOST, "%s: \"%s\"", rcclx_strerror(result),
		rcclx_last_error());
	RANK_WITHIN(ctx, start, 5000);
	return close_rank(&c);
}

static void test_death_in_the_middle(void **state)
{
	struct node *node = start_node("slow");
	struct world *world = world_start(node, 3, rank_dying, NULL);

	(void)state;
	for (uint32_t i = 0; i < 500 && !atomic_load(&world->shared->values[1]); i++)
		test_sleep_ms(20);
	test_sleep_ms(100);
	world_kill(world, 1, SIGKILL);
	world_join(world);
	node_stop(node);
}

/* ---- who may not, and what is said ---- */

static int rank_apart(struct rank_ctx *ctx)
{
	rcclx_result result = RCCLX_OK;
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, 2 * ctx->rank));
	config.executor = RCCLX_EXECUTOR_INLINE;
	RANK_RESULT(ctx,
		rcclx_all_reduce(c.comm, (void *)(uintptr_t)c.device.address,
			(void *)(uintptr_t)c.device.address, 10, RCCLX_FLOAT32, RCCLX_SUM, &config),
		RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "RCCLX_EXECUTOR_INLINE with device memory");
	RANK_DO(coll_try(&c, &simple, &result));
	RANK_CHECK(ctx, result == RCCLX_ERR_SYSTEM, "%s", rcclx_strerror(result));
	return close_rank(&c);
}

static void test_unreachable(void **state)
{
	struct node *node = NULL;

	(void)state;
	assert_int_equal(setenv("RCCLX_FAKE_DEVICES", "3", 1), 0);
	node = start_node(NULL);
	node_expect(node, "does not reach the memory of device", 1, 1);
	world_run(node, 2, rank_apart, NULL);
	node_stop(node);
	assert_int_equal(unsetenv("RCCLX_FAKE_DEVICES"), 0);
}

static void test_devices(void **state)
{
	struct node *node = start_node(NULL);

	(void)state;
	node_wait_log(node, "GPUs are served", "devices=8", 2000);
	expect_devices(node, "", "Fake GPU 7");
	expect_devices(node, "", "0-6");
	expect_devices(node, "--json", "\"backend\": \"fake\"");
	expect_devices(node, "--json", "\"state\": \"closed\"");
	node_stop(node);
	assert_int_equal(setenv("RCCLX_FAKE_DEVICES", "0", 1), 0);
	node = start_node(NULL);
	node_wait_log(node, "no GPU is used", "RCCLX_FAKE_DEVICES is 0", 2000);
	expect_devices(node, "", "no GPU is used (absent): fake: RCCLX_FAKE_DEVICES is 0");
	node_stop(node);
	assert_int_equal(unsetenv("RCCLX_FAKE_DEVICES"), 0);
	node = node_start(&(struct node_options){.config = "gpu = { backend = \"none\"; };\n"});
	expect_devices(node, "", "no GPU is used (off): ");
	expect_devices(node, "--json", "\"state\": \"off\"");
	node_stop(node);
}

/* The daemon serves device memory that it has no devices for: copied by the ranks. */
static void test_daemon_without_devices(void **state)
{
	struct node *node =
		node_start(&(struct node_options){.config = "gpu = { backend = \"none\"; };\n"});
	struct sweep what = {4 * N_COLLS, {0, 1, 0}};

	(void)state;
	world_run(node, 3, rank_sweep, &what);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_devices),
		HARNESS_TEST(test_one_device),
		HARNESS_TEST(test_a_device_each),
		HARNESS_TEST(test_shared_and_own),
		HARNESS_TEST(test_import_fails),
		HARNESS_TEST(test_wrong_memory),
		HARNESS_TEST(test_no_code),
		HARNESS_TEST(test_zeros),
		HARNESS_TEST(test_freed_and_made_again),
		HARNESS_TEST(test_send_recv),
		HARNESS_TEST(test_launch_fails),
		HARNESS_TEST(test_device_lost),
		HARNESS_TEST(test_kernel_gives_up),
		HARNESS_TEST(test_stuck_kernel),
		HARNESS_TEST(test_death_in_the_middle),
		HARNESS_TEST(test_unreachable),
		HARNESS_TEST(test_daemon_without_devices),
	};
	const char *builddir = getenv("RCCLX_BUILDDIR");

	if (!builddir)
		return 77;
	(void)snprintf(plugin_dir, sizeof(plugin_dir), "%s/tests/gpu-fake/.libs", builddir);
	(void)snprintf(config_text, sizeof(config_text),
		"stall_report_s = 20;\ngpu = { backend = \"fake\"; dir = \"%s\"; };\n", plugin_dir);
	if (setenv("RCCLX_BACKEND_DIR", plugin_dir, 1) != 0 ||
		setenv("RCCLX_GPU_BACKEND", "fake", 1) != 0)
		return 1;
	return HARNESS_RUN("gpu", tests);
}
