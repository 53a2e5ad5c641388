/* SPDX-License-Identifier: MIT */
/*
 * Collectives on device memory: real daemons, plugins and processes, on the test double of a GPU
 * runtime, which runs the real kernels.
 */
#include "gpu_node.h"
#include "../../kernels/coll_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL,
	RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V,
	RX_ALL_TO_ALL_V};

#define N_COLLS   (sizeof(colls) / sizeof(colls[0]))
#define MAX_COUNT 5000u

static int open_on(struct coll_rank *c, struct rank_ctx *ctx, uint32_t device)
{
	return gpu_open_rank(c, ctx, device, (ctx->n_ranks * (MAX_COUNT + 1) + 64) * 8 + 4096);
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
	const char *faults;  /* of the ranks' own runtimes */
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

/* The first call is of a buffer that its contents prove. */
static int rank_sweep(struct rank_ctx *ctx)
{
	const struct sweep *sweep = ctx->arg;
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, sweep->devices[ctx->rank]));
	gpu_user()->set_faults(sweep->faults);
	RANK_DO(coll_run(&c, &simple));
	for (uint32_t i = 0; i < sweep->n_cases; i++) {
		struct coll_case what = case_of(i, ctx->n_ranks);

		RANK_DO(coll_run(&c, &what));
	}
	return gpu_close_rank(&c);
}

/* On their devices, not copied. */
static void sweep(uint32_t n_ranks, const char *always, const char *faults, struct sweep what)
{
	struct node *node = gpu_node(always, faults);
	unsigned long before[8];

	for (uint32_t rank = 0; rank < n_ranks; rank++)
		before[rank] = gpu_count(node, what.devices[rank], "launches");
	world_run(node, n_ranks, rank_sweep, &what);
	for (uint32_t rank = 0; rank < n_ranks; rank++)
		assert_true(gpu_count(node, what.devices[rank], "launches") - before[rank] >
			    what.n_cases / 4);
	node_stop(node);
}

static void test_one_device(void **state)
{
	(void)state;
	sweep(1, NULL, NULL, (struct sweep){4 * N_COLLS, {3}, NULL});
	sweep(4, NULL, NULL, (struct sweep){24 * N_COLLS, {0}, NULL});
}

static void test_a_device_each(void **state)
{
	(void)state;
	sweep(2, NULL, NULL, (struct sweep){16 * N_COLLS, {0, 1}, NULL});
	sweep(8, NULL, NULL, (struct sweep){8 * N_COLLS, {0, 1, 2, 3, 4, 5, 6, 7}, NULL});
}

static void test_shared_and_own(void **state)
{
	(void)state;
	sweep(5, NULL, NULL, (struct sweep){12 * N_COLLS, {2, 0, 2, 1, 0}, NULL});
}

/* Devices that take turns in whatever order, and words written by kernels. */
static void test_other_devices(void **state)
{
	(void)state;
	sweep(4, NULL, "jitter", (struct sweep){4 * N_COLLS, {0, 1, 2, 1}, NULL});
	sweep(3, "no-words", NULL, (struct sweep){4 * N_COLLS, {0, 1, 1}, NULL});
}

/* ---- kernels that wait for each other ---- */

#define FLAT "device_flat_max = 9000000L;"
#define TREE "device_flat_max = 0; device_tree_min = 0;"
#define PUSH "device_push_min = 0;"

/* Small slots make many rounds; several blocks need units. */
#define UNITS "units=6"
#define SMALL "slot_bytes = 16384;"

static void sweep_waiting(
	const char *thresholds, uint32_t n_ranks, const char *faults, struct sweep what)
{
	struct node *node = NULL;

	gpu_configure(thresholds, SMALL);
	node = gpu_node(UNITS, faults);
	world_run(node, n_ranks, rank_sweep, &what);
	assert_true(gpu_count(node, what.devices[0], "exchange_operations") >= what.n_cases / 16);
	/* Freed with the last communicator, soon. */
	for (uint32_t i = 0; i < n_ranks; i++) {
		for (uint32_t k = 0; k < 100 && gpu_count(node, what.devices[i], "exchange_bytes");
			k++)
			test_sleep_ms(20);
		assert_int_equal(gpu_count(node, what.devices[i], "exchange_bytes"), 0);
		assert_int_equal(gpu_count(node, what.devices[i], "failures"), 0);
	}
	node_stop(node);
	gpu_configure("", "");
}

static void test_flat(void **state)
{
	(void)state;
	sweep_waiting(FLAT, 2, NULL, (struct sweep){12 * N_COLLS, {0, 1}, NULL});
	sweep_waiting(FLAT, 4, NULL, (struct sweep){12 * N_COLLS, {0, 1, 0, 1}, NULL});
	sweep_waiting(FLAT PUSH, 3, "jitter", (struct sweep){6 * N_COLLS, {0, 1, 2}, NULL});
	sweep_waiting(FLAT PUSH, 5, NULL, (struct sweep){8 * N_COLLS, {2, 0, 2, 1, 0}, NULL});
}

static void test_tree(void **state)
{
	(void)state;
	sweep_waiting(TREE, 3, NULL, (struct sweep){12 * N_COLLS, {0, 1, 2}, NULL});
	sweep_waiting(TREE, 4, "jitter", (struct sweep){8 * N_COLLS, {0, 1, 0, 1}, NULL});
	sweep_waiting(TREE PUSH, 4, NULL, (struct sweep){12 * N_COLLS, {3, 1, 1, 0}, NULL});
}

static void test_waiting_on_eight(void **state)
{
	static const uint32_t devices[8] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct sweep what = {2 * N_COLLS, {0}, NULL};

	(void)state;
	memcpy(what.devices, devices, sizeof(devices));
	sweep_waiting(FLAT, 8, NULL, what);
	sweep_waiting(TREE PUSH, 8, NULL, what);
}

/* Direct, but written to others. */
static void test_push(void **state)
{
	(void)state;
	gpu_configure(PUSH, "");
	sweep(4, NULL, NULL, (struct sweep){8 * N_COLLS, {0, 1, 2, 1}, NULL});
	gpu_configure("", "");
}

/* No room for it: the same results, and why. */
static void sweep_without(const char *keys, const char *faults, const char *why)
{
	struct sweep what = {2 * N_COLLS, {0, 1, 1}, NULL};
	struct node *node = NULL;

	gpu_configure(FLAT, keys);
	node = gpu_node(faults, NULL);
	world_run(node, 3, rank_sweep, &what);
	gpu_expect(node, "--json", why);
	gpu_expect_status(node, "", "direct instead: ");
	assert_int_equal(gpu_count(node, 1, "exchange_operations"), 0);
	assert_int_equal(gpu_count(node, 1, "exchange_bytes"), 0);
	node_stop(node);
	gpu_configure("", "");
}

static void test_no_room(void **state)
{
	(void)state;
	sweep_without("exchange_bytes = 0;", NULL, "\"direct\": \"off ");
	sweep_without("exchange_bytes = 100000;", NULL, "\"direct\": \"limit ");
}

/* ---- devices that do not reach each other ---- */

/* 65536 bytes hold parts of a case's blocks only. */
#define PARTS "stage_bytes = 65536;"

/* All operations between devices that are apart go through host memory. */
static void sweep_apart(const char *keys, const char *apart, uint32_t n_ranks, struct sweep what)
{
	struct node *node = NULL;

	gpu_configure(FLAT, keys);
	node = gpu_node(apart, NULL);
	world_run(node, n_ranks, rank_sweep, &what);
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		uint32_t device = what.devices[rank];

		assert_true(gpu_count(node, device, "staged_operations") > what.n_cases / 4);
		assert_int_equal(gpu_count(node, device, "failures"), 0);
		/* Of others, some ranks' buffers may be in host memory, and the rest may meet. */
		if (strcmp(apart, "apart") == 0)
			assert_int_equal(gpu_count(node, device, "exchange_operations"), 0);
	}
	gpu_expect_status(node, "", " through host memory");
	node_stop(node);
	gpu_configure("", "");
}

static void test_apart(void **state)
{
	(void)state;
	sweep_apart("", "apart", 2, (struct sweep){12 * N_COLLS, {0, 1}, NULL});
	sweep_apart(PARTS, "apart", 4, (struct sweep){12 * N_COLLS, {3, 0, 2, 1}, NULL});
	sweep_apart(PARTS, "apart", 5, (struct sweep){6 * N_COLLS, {2, 0, 2, 1, 0}, NULL});
	sweep_apart("", "apart", 8, (struct sweep){4 * N_COLLS, {0, 1, 2, 3, 4, 5, 6, 7}, NULL});
}

static void test_some_apart(void **state)
{
	(void)state;
	sweep_apart("", "apart=1-2", 3, (struct sweep){8 * N_COLLS, {0, 1, 2}, NULL});
	sweep_apart(PARTS, "apart=0-1+2-3", 4, (struct sweep){8 * N_COLLS, {0, 1, 2, 3}, NULL});
}

/* Those that reach each other meet as ever. */
static void test_not_apart(void **state)
{
	struct sweep what = {4 * N_COLLS, {0, 2, 0}, NULL};
	struct node *node = NULL;

	(void)state;
	gpu_configure(FLAT, "");
	node = gpu_node("apart=0-1+1-2", NULL);
	world_run(node, 3, rank_sweep, &what);
	assert_int_equal(gpu_count(node, 0, "staged_operations"), 0);
	assert_true(gpu_count(node, 2, "exchange_operations") > 0);
	node_stop(node);
	gpu_configure("", "");
}

/* ---- what cannot be imported is copied ---- */

static void sweep_copied(const char *faults, const char *part)
{
	struct sweep what = {4 * N_COLLS, {0, 1, 1}, NULL};
	struct node *node = gpu_node(NULL, faults);
	unsigned long before = gpu_count(node, 1, "launches");

	world_run(node, 3, rank_sweep, &what);
	gpu_expect(node, "--json", part);
	assert_int_equal(gpu_count(node, 1, "launches"), before);
	node_stop(node);
}

static void test_import_fails(void **state)
{
	(void)state;
	sweep_copied("import-fails", "\"copied\": \"kind ");
}

static void test_wrong_memory(void **state)
{
	(void)state;
	sweep_copied("import-wrong", "wrong ");
}

/* What the memory was like before, which may be a replica. */
static void test_previous_memory(void **state)
{
	struct sweep what = {4 * N_COLLS, {0, 1, 1}, NULL};
	struct node *node = gpu_node(NULL, "import-previous");

	(void)state;
	world_run(node, 3, rank_sweep, &what);
	node_stop(node);
}

static void test_no_code(void **state)
{
	struct node *node = gpu_node_cold("no-code=1");
	struct sweep what = {4 * N_COLLS, {0, 1, 1}, NULL};

	(void)state;
	node_expect(node, "loading the kernels", 1, 1);
	world_run(node, 3, rank_sweep, &what);
	gpu_expect(node, "", "loading the kernels");
	node_use_is_fine(node);
	node_stop(node);
}

/* The daemon serves device memory that it has no devices for: copied by the ranks. */
static void test_daemon_without_devices(void **state)
{
	struct node *node =
		node_start(&(struct node_options){.config = "gpu = { backend = \"none\"; };\n"});
	struct sweep what = {4 * N_COLLS, {0, 1, 0}, NULL};

	(void)state;
	world_run(node, 3, rank_sweep, &what);
	/* Not even code for them. */
	what.faults = "no-code";
	world_run(node, 3, rank_sweep, &what);
	node_stop(node);
}

/* ---- what is proven, and for how long ---- */

static int check_floats(struct rank_ctx *ctx, uint64_t memory, float factor)
{
	float host[1024];

	gpu_user()->read(host, memory, sizeof(host));
	for (uint32_t k = 0; k < 1024; k++)
		RANK_CHECK(
			ctx, host[k] == (float)k * factor, "element %u is %g", k, (double)host[k]);
	return 0;
}

static int sum_floats(struct coll_rank *c, uint64_t memory)
{
	struct rank_ctx *ctx = c->ctx;

	RANK_OK(ctx, rcclx_all_reduce(c->comm, (void *)(uintptr_t)memory, (void *)(uintptr_t)memory,
			     1024, RCCLX_FLOAT32, RCCLX_SUM, NULL));
	return 0;
}

/* A fresh buffer of zeros proves nothing; it is proven once it holds something. */
static int rank_zeros(struct rank_ctx *ctx)
{
	const struct emu_user *user = gpu_user();
	struct coll_rank c;
	uint64_t memory = 0;
	float host[1024];
	float factor = 1;

	RANK_CHECK(ctx, user, "no runtime");
	RANK_DO(coll_open(&c, ctx, 65536));
	memory = user->alloc(0, 8192);
	for (uint32_t i = 0; i < 4; i++) {
		RANK_DO(sum_floats(&c, memory));
		RANK_DO(check_floats(ctx, memory, 0));
	}
	for (uint32_t k = 0; k < 1024; k++)
		host[k] = (float)k;
	user->write(memory, host, 4096);
	/* Patience doubles: it is asked for again within so many calls. */
	for (uint32_t i = 0; i < 8; i++) {
		RANK_DO(sum_floats(&c, memory));
		factor *= (float)ctx->n_ranks;
		RANK_DO(check_floats(ctx, memory, factor));
	}
	RANK_DO(rank_sync(ctx));
	flag_set(ctx->shared, 0, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 1, 1, 5000), "the test did not look");
	RANK_CHECK(ctx, user->free(memory) == 0, "the memory cannot be freed");
	return coll_close(&c);
}

static void test_zeros(void **state)
{
	struct node *node = gpu_node(NULL, NULL);
	struct world *world = world_start(node, 2, rank_zeros, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 10000));
	gpu_expect(node, "", "constant ");
	gpu_expect(node, "--json", "\"maps\": 2");
	flag_set(world->shared, 1, 1);
	world_join(world);
	node_stop(node);
}

/* And while the runtime maps wrong memory: never used, not even when zeros agree. */
static void test_wrong_zeros(void **state)
{
	struct node *node = gpu_node(NULL, "import-wrong");
	struct world *world = world_start(node, 2, rank_zeros, NULL);
	unsigned long before = gpu_count(node, 0, "launches");

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 10000));
	gpu_expect(node, "", "constant ");
	gpu_expect(node, "", "wrong ");
	assert_int_equal(gpu_count(node, 0, "launches"), before);
	flag_set(world->shared, 1, 1);
	world_join(world);
	node_stop(node);
}

/* Another allocation at the place of one that was freed is another one. */
static int rank_reuse(struct rank_ctx *ctx)
{
	struct coll_rank c;

	RANK_CHECK(ctx, gpu_user(), "no runtime");
	RANK_DO(coll_open(&c, ctx, 65536));
	for (uint32_t i = 0; i < 20; i++) {
		struct coll_case what = simple;

		what.seed = i;
		RANK_DO(gpu_give_memory(&c, ctx, ctx->rank));
		RANK_DO(coll_run(&c, &what));
		RANK_DO(coll_run(&c, &what));
		RANK_DO(gpu_take_memory(&c));
	}
	RANK_DO(rank_sync(ctx));
	flag_set(ctx->shared, 0, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 1, 1, 5000), "the test did not look");
	return coll_close(&c);
}

static void test_freed_and_made_again(void **state)
{
	struct node *node = gpu_node(NULL, NULL);
	struct world *world = world_start(node, 2, rank_reuse, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 10000));
	/* The last of each rank, mapped for all eight devices. */
	gpu_expect(node, "--json", "\"maps\": 2");
	flag_set(world->shared, 1, 1);
	world_join(world);
	gpu_expect(node, "--json", "\"maps\": 0");
	node_stop(node);
}

/* ---- sends and receives ---- */

static int send_round(struct coll_rank *c, uint64_t memory, uint32_t round, uint32_t *host)
{
	struct rank_ctx *ctx = c->ctx;
	uint32_t next = (ctx->rank + 1) % ctx->n_ranks;
	uint32_t before = (ctx->rank + ctx->n_ranks - 1) % ctx->n_ranks;
	/* The last rank sends from host memory. */
	const void *from = ctx->rank + 1 == ctx->n_ranks ? (const void *)host
							 : (const void *)(uintptr_t)memory;

	for (uint32_t k = 0; k < 2000; k++)
		host[k] = ctx->rank * 100000 + round * 3000 + k;
	gpu_user()->write(memory, host, 8000);
	RANK_OK(ctx, rcclx_group_start());
	RANK_OK(ctx, rcclx_send(c->comm, from, 999, RCCLX_UINT32, next, NULL));
	RANK_OK(ctx, rcclx_recv(c->comm, (void *)(uintptr_t)(memory + 8000), 999, RCCLX_UINT32,
			     before, NULL));
	RANK_OK(ctx, rcclx_group_end());
	gpu_user()->read(host, memory + 8000, 999 * 4);
	for (uint32_t k = 0; k < 999; k++)
		RANK_CHECK(ctx, host[k] == before * 100000 + round * 3000 + k,
			"round %u: element %u is %u", round, k, host[k]);
	return 0;
}

static int rank_ring(struct rank_ctx *ctx)
{
	const struct emu_user *user = gpu_user();
	struct coll_rank c;
	uint32_t host[2000];
	uint64_t memory = 0;

	RANK_CHECK(ctx, user, "no runtime");
	RANK_DO(coll_open(&c, ctx, 65536));
	memory = user->alloc(ctx->rank % 3, 16384);
	for (uint32_t round = 1; round < 20; round++)
		RANK_DO(send_round(&c, memory, round, host));
	RANK_CHECK(ctx, user->free(memory) == 0, "the memory cannot be freed");
	return coll_close(&c);
}

static void test_send_recv(void **state)
{
	struct node *node = gpu_node(NULL, NULL);
	unsigned long before = gpu_count(node, 1, "launches");

	(void)state;
	world_run(node, 4, rank_ring, NULL);
	assert_true(gpu_count(node, 1, "launches") >= before + 19);
	assert_int_equal(gpu_count(node, 1, "staged_operations"), 0);
	node_stop(node);
	gpu_configure("", PARTS);
	node = gpu_node("apart", NULL);
	world_run(node, 4, rank_ring, NULL);
	assert_true(gpu_count(node, 1, "staged_operations") >= 19);
	node_stop(node);
	gpu_configure("", "");
}

/* ---- groups ---- */

#define GROUP_COUNT 500u

static int check_words(struct rank_ctx *ctx, uint64_t at, uint32_t first, uint32_t step)
{
	uint32_t host[GROUP_COUNT];

	gpu_user()->read(host, at, sizeof(host));
	for (uint32_t k = 0; k < GROUP_COUNT; k++)
		RANK_CHECK(ctx, host[k] == first + k * step, "element %u is %u, not %u", k, host[k],
			first + k * step);
	return 0;
}

/* In two communicators with the ranks in opposite order: a sum, a gathering, a ring. */
static int group_round(struct rank_ctx *ctx, struct rcclx_comm *const *comms, uint64_t memory)
{
	uint32_t n = ctx->n_ranks;
	uint32_t bytes = GROUP_COUNT * 4;
	const void *own = (const void *)(uintptr_t)memory;
	uint64_t sum = memory + bytes;
	uint64_t ring = sum + bytes;
	uint64_t all = ring + bytes;

	RANK_OK(ctx, rcclx_group_start());
	RANK_OK(ctx, rcclx_all_reduce(comms[0], own, (void *)(uintptr_t)sum, GROUP_COUNT,
			     RCCLX_UINT32, RCCLX_SUM, NULL));
	RANK_OK(ctx, rcclx_all_gather(comms[1], own, (void *)(uintptr_t)all, GROUP_COUNT,
			     RCCLX_UINT32, NULL));
	RANK_OK(ctx,
		rcclx_send(comms[0], own, GROUP_COUNT, RCCLX_UINT32, (ctx->rank + 1) % n, NULL));
	RANK_OK(ctx, rcclx_recv(comms[0], (void *)(uintptr_t)ring, GROUP_COUNT, RCCLX_UINT32,
			     (ctx->rank + n - 1) % n, NULL));
	RANK_OK(ctx, rcclx_group_end());
	RANK_DO(check_words(ctx, sum, 1000 * (n * (n - 1) / 2), n));
	RANK_DO(check_words(ctx, ring, 1000 * ((ctx->rank + n - 1) % n), 1));
	for (uint32_t r = 0; r < n; r++)
		RANK_DO(check_words(ctx, all + (uint64_t)r * bytes, 1000 * (n - 1 - r), 1));
	return 0;
}

static int rank_groups(struct rank_ctx *ctx)
{
	const struct emu_user *user = gpu_user();
	uint32_t host[GROUP_COUNT];
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comms[2] = {NULL, NULL};
	struct rcclx_unique_id id;
	uint64_t memory = 0;

	RANK_CHECK(ctx, user, "no runtime");
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comms[0]));
	RANK_DO(rank_id(ctx, client, 1, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, ctx->n_ranks, ctx->n_ranks - 1 - ctx->rank,
			     NULL, &comms[1]));
	memory = user->alloc(ctx->rank % 2, (3 + ctx->n_ranks) * sizeof(host));
	for (uint32_t k = 0; k < GROUP_COUNT; k++)
		host[k] = 1000 * ctx->rank + k;
	user->write(memory, host, sizeof(host));
	for (uint32_t round = 0; round < 10; round++)
		RANK_DO(group_round(ctx, comms, memory));
	RANK_OK(ctx, rcclx_comm_destroy(comms[1]));
	RANK_CHECK(ctx, user->free(memory) == 0, "the memory cannot be freed");
	return rank_leave(ctx, comms[0], client);
}

static void test_groups(void **state)
{
	struct node *node = gpu_node(NULL, NULL);
	unsigned long before = gpu_count(node, 0, "launches");

	(void)state;
	world_run(node, 4, rank_groups, NULL);
	assert_true(gpu_count(node, 0, "launches") >= before + 20);
	node_stop(node);
	node = gpu_node("apart", "apart,jitter");
	world_run(node, 4, rank_groups, NULL);
	assert_true(gpu_count(node, 0, "staged_operations") >= 20);
	node_stop(node);
}

/* Both communicators' kernels wait for each other, on devices that start them in any order. */
static void test_waiting_groups(void **state)
{
	struct node *node = NULL;

	(void)state;
	gpu_configure(FLAT, SMALL);
	node = gpu_node(UNITS, "jitter");
	world_run(node, 4, rank_groups, NULL);
	assert_true(gpu_count(node, 0, "exchange_operations") >= 20);
	assert_int_equal(gpu_count(node, 1, "exchange_operations"),
		gpu_count(node, 0, "exchange_operations"));
	node_stop(node);
	/* Room for one of them at a time. */
	node = gpu_node("units=1", "jitter");
	world_run(node, 4, rank_groups, NULL);
	assert_true(gpu_count(node, 0, "exchange_operations") > 0);
	gpu_expect(node, "--json", "\"direct\": \"busy ");
	node_stop(node);
	gpu_configure("", "");
}

/* ---- what is said ---- */

static void test_devices(void **state)
{
	struct node *node = gpu_node_cold("island=7");

	(void)state;
	node_wait_log(node, "GPUs are served", "devices=8", 2000);
	gpu_expect(node, "", "test double 7");
	gpu_expect(node, "", "0,1,3-6 ");
	gpu_expect(node, "--json", "\"backend\": \"" TEST_FAMILY "\"");
	gpu_expect(node, "--json", "\"state\": \"closed\"");
	node_stop(node);
	node = gpu_node_cold("no-device");
	node_wait_log(node, "no GPU is used", TEST_FAMILY ": ", 2000);
	gpu_expect(node, "", "no GPU is used (absent): " TEST_FAMILY ": ");
	node_stop(node);
	node = node_start(&(struct node_options){.config = "gpu = { backend = \"none\"; };\n"});
	gpu_expect(node, "", "no GPU is used (off): ");
	gpu_expect(node, "--json", "\"state\": \"off\"");
	node_stop(node);
}

/* Two ranks of device 2 and one of device 5: 3 sums of 1000 floats, from and to. */
static int rank_metrics(struct rank_ctx *ctx)
{
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank == 0 ? 5 : 2));
	for (uint32_t i = 0; i < 3; i++)
		RANK_DO(coll_run(&c, &simple));
	return gpu_close_rank(&c);
}

static void test_metrics(void **state)
{
	struct node *node = gpu_node(NULL, NULL);

	(void)state;
	world_run(node, 3, rank_metrics, NULL);
	assert_int_equal(gpu_count(node, 2, "operations"), 3);
	assert_int_equal(gpu_count(node, 2, "operation_bytes"), 3 * 2 * 2 * 4000);
	assert_int_equal(gpu_count(node, 5, "operations"), 3);
	assert_int_equal(gpu_count(node, 5, "operation_bytes"), 3 * 2 * 4000);
	assert_int_equal(gpu_count(node, 6, "operations"), 0);
	assert_int_equal(gpu_count(node, 2, "failures"), 0);
	assert_int_equal(gpu_count(node, 2, "scratch_bytes"), 0);
	gpu_expect_status(node, "", "GPU 2: open, 3 operations with ");
	gpu_expect_status(node, "--json", "\"operation_bytes\": 48000");
	gpu_faults("import-fails");
	world_run(node, 2, rank_metrics, NULL);
	assert_true(gpu_count(node, 2, "failures") > 0);
	gpu_expect_status(node, "", "copied: kind ");
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_devices),
		HARNESS_TEST(test_one_device),
		HARNESS_TEST(test_a_device_each),
		HARNESS_TEST(test_shared_and_own),
		HARNESS_TEST(test_other_devices),
		HARNESS_TEST(test_flat),
		HARNESS_TEST(test_tree),
		HARNESS_TEST(test_waiting_on_eight),
		HARNESS_TEST(test_push),
		HARNESS_TEST(test_no_room),
		HARNESS_TEST(test_waiting_groups),
		HARNESS_TEST(test_apart),
		HARNESS_TEST(test_some_apart),
		HARNESS_TEST(test_not_apart),
		HARNESS_TEST(test_import_fails),
		HARNESS_TEST(test_wrong_memory),
		HARNESS_TEST(test_previous_memory),
		HARNESS_TEST(test_no_code),
		HARNESS_TEST(test_daemon_without_devices),
		HARNESS_TEST(test_zeros),
		HARNESS_TEST(test_wrong_zeros),
		HARNESS_TEST(test_freed_and_made_again),
		HARNESS_TEST(test_send_recv),
		HARNESS_TEST(test_groups),
		HARNESS_TEST(test_metrics),
	};
	int failed = 0;

	if (!gpu_setup(TEST_FAMILY))
		return 77;
	failed = HARNESS_RUN("gpu-colls-" TEST_FAMILY, tests);
	gpu_cleanup();
	return failed;
}
