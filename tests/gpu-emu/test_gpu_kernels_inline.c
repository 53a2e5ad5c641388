/* SPDX-License-Identifier: MIT */
/*
 * May ranks run kernels themselves? What the daemon decides and says, the memory that it shares for
 * that, and what becomes of it: real daemons, processes and plugins on the test double.
 */
#include "gpu_node.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IS_CUDA   (strcmp(TEST_FAMILY, "cuda") == 0)
#define FLAG_MADE 0
#define FLAG_GO   1

static char libs[400];
static char runtime_path[500];
static char config_text[2000];

static struct node *start_node(const char *gpu_options, const char *faults)
{
	(void)snprintf(config_text, sizeof(config_text),
		"stall_report_s = 20;\n"
		"gpu = { backend = \"" TEST_FAMILY "\"; dir = \"%s\"; library = \"%s\"; "
		"code = \"%s\"; %s };\n",
		libs, runtime_path, runtime_path, gpu_options);
	return node_start(&(struct node_options){
		.config = config_text, .env_name = "RX_GPU_EMU", .env_value = faults});
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

/* When the last of the processes has ended nothing is left, a little later. */
static void expect_none(const struct node *node)
{
	uint64_t end = test_now_ms() + 4000 * test_slow();

	while (gpu_count(node, 0, "slab_bytes") != 0) {
		assert_true(test_now_ms() < end);
		test_sleep_ms(20);
	}
}

/* ---- a rank ---- */

struct plan {
	bool one_device;
	const char *faults;     /* of the ranks' runtime */
	const char *odd_faults; /* of that of rank 1, instead */
	bool no_runtime;        /* rank 1 has none */
	uint32_t n_comms;       /* 0: one */
	bool dies;              /* rank 1, when told to go on */
};

static const struct emu_user *load(const struct rank_ctx *ctx)
{
	const struct plan *plan = ctx->arg;
	const struct emu_user *user = NULL;
	void *runtime = dlopen(runtime_path, RTLD_NOW | RTLD_GLOBAL);

	user = runtime ? dlsym(runtime, EMU_USER_SYMBOL) : NULL;
	if (!user || user->set_device(plan->one_device ? 0 : ctx->rank) != 0)
		return NULL;
	user->set_faults(ctx->rank == 1 && plan->odd_faults ? plan->odd_faults : plan->faults);
	return user;
}

/* A sum, by whoever serves it. */
static int check_sum(struct rank_ctx *ctx, struct rcclx_comm *comm)
{
	float x[100];

	for (uint32_t i = 0; i < 100; i++)
		x[i] = (float)(i + ctx->rank);
	RANK_OK(ctx, rcclx_all_reduce(comm, x, x, 100, RCCLX_FLOAT32, RCCLX_SUM, NULL));
	for (uint32_t i = 0; i < 100; i++)
		RANK_CHECK(ctx,
			x[i] == (float)(i * ctx->n_ranks + ctx->n_ranks * (ctx->n_ranks - 1) / 2),
			"element %u is %g", i, (double)x[i]);
	return 0;
}

static int rank_makes(struct rank_ctx *ctx)
{
	const struct plan *plan = ctx->arg;
	uint32_t n = plan->n_comms ? plan->n_comms : 1;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comms[32] = {NULL};

	/* What the daemon shares stays mapped, and the gates; each with a descriptor here. */
	ctx->n_kept_fds = UINT32_MAX;
	if (!plan->no_runtime || ctx->rank != 1)
		RANK_CHECK(ctx, load(ctx), "no runtime");
	RANK_DO(rank_connect(ctx, &client));
	for (uint32_t i = 0; i < n; i++) {
		RANK_DO(rank_comm(ctx, client, i, &comms[i]));
		RANK_DO(check_sum(ctx, comms[i]));
	}
	RANK_DO(rank_sync(ctx));
	flag_set(ctx->shared, FLAG_MADE, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_GO, 1, 20000), "nobody said go");
	if (plan->dies && ctx->rank == 1)
		for (;;)
			test_sleep_ms(1000);
	for (uint32_t i = 0; i + 1 < n; i++)
		RANK_OK(ctx, rcclx_comm_destroy(comms[i]));
	return rank_leave(ctx, comms[n - 1], client);
}

/* Ranks make communicators; @part is in what is said of the last one. */
static void decide(struct node *node, uint32_t n_ranks, struct plan plan, const char *part)
{
	struct world *world = world_start(node, n_ranks, rank_makes, &plan);

	assert_true(flag_wait(world->shared, FLAG_MADE, 1, 20000));
	expect(node, "comms", part, 2000);
	flag_set(world->shared, FLAG_GO, 1);
	world_join(world);
}

/* ---- */

#define ON        "inline = true; slab_bytes = 8388608;"
#define POSSIBLE  "own streams: possible"
#define TAKE_TURN "off: kernels of ranks 0 and 1 would take turns on device 0"

/* Memory is there while processes have it, and is used again. */
static void test_possible(void **state)
{
	struct node *node = start_node(ON, "");
	struct plan plan = {0};
	struct world *world = NULL;

	(void)state;
	world = world_start(node, 3, rank_makes, &plan);
	assert_true(flag_wait(world->shared, FLAG_MADE, 1, 20000));
	expect(node, "comms", POSSIBLE, 2000);
	expect(node, "--json comms", "\"kernels\": \"possible", 2000);
	assert_int_equal(gpu_count(node, 2, "slab_bytes"), 8388608);
	assert_true(gpu_count(node, 2, "slab_used_bytes") > 2097152);
	assert_int_equal(gpu_count(node, 3, "slab_bytes"), 0);
	flag_set(world->shared, FLAG_GO, 1);
	world_join(world);
	for (uint32_t i = 0; i < 2; i++)
		decide(node, 3, plan, POSSIBLE);
	expect_none(node);
	node_use_is_fine(node);
	node_stop(node);
}

static void test_given_back(void **state)
{
	struct node *node = start_node(ON, "");

	(void)state;
	decide(node, 1, (struct plan){0}, POSSIBLE);
	expect_none(node);
	node_use_is_fine(node);
	node_stop(node);
}

static void test_one_dies(void **state)
{
	struct plan plan = {.dies = true};
	struct node *node = start_node(ON, "");
	struct world *world = world_start(node, 2, rank_makes, &plan);

	(void)state;
	assert_true(flag_wait(world->shared, FLAG_MADE, 1, 20000));
	expect(node, "comms", POSSIBLE, 2000);
	world_kill(world, 1, SIGKILL);
	flag_set(world->shared, FLAG_GO, 1);
	world_join(world);
	expect_none(node);
	node_use_is_fine(node);
	node_stop(node);
}

static void test_taking_turns(void **state)
{
	struct node *node = start_node(ON, "");

	(void)state;
	decide(node, 2, (struct plan){.one_device = true}, IS_CUDA ? TAKE_TURN : POSSIBLE);
	if (IS_CUDA) {
		decide(node, 2, (struct plan){.one_device = true, .odd_faults = "mps"}, TAKE_TURN);
		decide(node, 2, (struct plan){.one_device = true, .faults = "mps"}, POSSIBLE);
	}
	node_use_is_fine(node);
	node_stop(node);
}

static void test_refusals(void **state)
{
	struct node *node = start_node(ON, "");

	(void)state;
	decide(node, 2, (struct plan){.no_runtime = true},
		"off: the process of rank 1 has no GPU runtime");
	decide(node, 2, (struct plan){.odd_faults = "import-fails"}, "off: rank 1: mapping the");
	decide(node, 2, (struct plan){.odd_faults = "import-wrong"},
		"off: rank 1: mapping the daemon's device memory: the runtime has mapped something");
	/* 8 MiB have room for three ranks of a device. */
	decide(node, 1, (struct plan){.n_comms = 4}, "off: the slab of device 0 is full");
	node_use_is_fine(node);
	node_stop(node);
	node = start_node(ON, "island=1");
	decide(node, 2, (struct plan){.faults = "island=1"},
		"off: devices 0 and 1 do not reach each other");
	node_use_is_fine(node);
	node_stop(node);
	node = start_node("", "");
	decide(node, 2, (struct plan){0}, "off: by gpu.inline");
	node_stop(node);
}

static void test_many(void **state)
{
	struct node *node = start_node("inline = true; slab_bytes = 54525952;", "");

	(void)state;
	decide(node, 2, (struct plan){.n_comms = 24}, POSSIBLE);
	node_use_is_fine(node);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_possible),
		HARNESS_TEST(test_given_back),
		HARNESS_TEST(test_one_dies),
		HARNESS_TEST(test_taking_turns),
		HARNESS_TEST(test_refusals),
		HARNESS_TEST(test_many),
	};
	const char *builddir = getenv("RCCLX_BUILDDIR");

	if (!builddir || !gpu_fits_sanitizer(TEST_FAMILY))
		return 77;
	(void)snprintf(libs, sizeof(libs), "%s/.libs", builddir);
	(void)snprintf(runtime_path, sizeof(runtime_path), "%s/gpu_emu_" TEST_FAMILY ".so", libs);
	if (setenv("RCCLX_BACKEND_DIR", libs, 1) != 0 ||
		setenv("RCCLX_GPU_BACKEND", TEST_FAMILY, 1) != 0 ||
		setenv("RCCLX_GPU_CODE", runtime_path, 1) != 0)
		return 1;
	return HARNESS_RUN("gpu-inline", tests);
}
