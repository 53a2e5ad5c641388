/* SPDX-License-Identifier: MIT */
/*
 * Low precision on device memory: the oracle's bits, and what the daemon counts is what it counts
 * when processors do the same. On the test double of a GPU runtime, which runs the real kernels.
 */
#include "gpu_node.h"

#include "../integration/admin.h"
#include "../../kernels/coll_types.h"

#include <stdio.h>

static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL,
	RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V, RX_ALL_TO_ALL_V};
static const uint8_t dtypes[] = {RX_FLOAT32, RX_BFLOAT16, RX_FLOAT16};
static const uint64_t counts[] = {1, 31, 32, 33, 127, 511, 1000, 4097};

#define N(array)  (sizeof(array) / sizeof((array)[0]))
#define MAX_COUNT 4097u
#define N_CASES   (3u * N(colls) * N(dtypes))

enum flag { RANK_IS_DONE, MAY_END = 8 };

struct sweep {
	uint32_t devices[8]; /* by rank */
	bool gather_bf16;
	bool in_stream;
	uint32_t n_replays;
};

static struct coll_case case_of(uint32_t i, const struct sweep *sweep)
{
	struct coll_case c = {
		.coll = colls[i % N(colls)],
		.dtype = dtypes[i / N(colls) % N(dtypes)],
		.count = counts[(i / 2 + i / 9) % N(counts)],
		.memory = i % 4 ? COLL_DEVICE : COLL_DEVICE_OUT,
		.in_place = sweep->n_replays == 0 && i % 3 == 0,
		.misalign = i % 5,
		.precision = RCCLX_PRECISION_FP8,
		.tame = i % 4 == 1,
		.seed = i,
	};

	c.op = rx_coll_reduces(c.coll) && i % 2 ? RX_AVG : RX_SUM;
	c.mode = i % 5 == 0 ? COLL_GROUP : COLL_INLINE;
	return c;
}

static int create_with(
	struct coll_rank *c, struct rank_ctx *ctx, uint32_t which, struct rcclx_comm_config *config)
{
	struct rcclx_unique_id id;

	c->gather_bf16 = config->low_precision & RCCLX_LOW_PRECISION_GATHER_BF16;
	RANK_DO(rank_id(ctx, c->client, which, ctx->rank == 0, &id));
	RANK_OK(ctx, rcclx_comm_create(c->client, &id, ctx->n_ranks, ctx->rank, config, &c->comm));
	return 0;
}

static int open_on(struct coll_rank *c, struct rank_ctx *ctx, uint32_t device,
	struct rcclx_comm_config *config)
{
	RANK_CHECK(ctx, gpu_user(), "no runtime");
	*c = (struct coll_rank){.ctx = ctx, .rank = ctx->rank, .n_ranks = ctx->n_ranks};
	RANK_DO(rank_connect(ctx, &c->client));
	RANK_DO(create_with(c, ctx, 0, config));
	RANK_DO(coll_alloc(c, ctx, (ctx->n_ranks * (MAX_COUNT + 1) + 64) * 4 + 4096));
	return gpu_give_memory(c, ctx, device);
}

/* A first call with varied contents, which prove the memory, in no statistics. */
static int prove(struct coll_rank *c)
{
	const struct coll_case what = {
		.coll = RX_ALL_GATHER, .dtype = RX_INT32, .count = 1000, .memory = COLL_DEVICE};

	return coll_run(c, &what);
}

static int wait_for_test(struct rank_ctx *ctx)
{
	RANK_DO(rank_sync(ctx));
	flag_set(ctx->shared, RANK_IS_DONE + ctx->rank, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, MAY_END, 1, 10000), "the test did not look");
	return 0;
}

/* All cases on devices, and then, in another communicator, in host memory. */
static int rank_sweep(struct rank_ctx *ctx)
{
	const struct sweep *sweep = ctx->arg;
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_comm *on_devices = NULL;
	struct coll_rank c;

	if (sweep->gather_bf16)
		config.low_precision = RCCLX_LOW_PRECISION_GATHER_BF16;
	RANK_DO(open_on(&c, ctx, sweep->devices[ctx->rank], &config));
	RANK_DO(prove(&c));
	if (sweep->in_stream)
		RANK_DO(gpu_in_stream(&c, sweep->devices[ctx->rank], sweep->n_replays));
	for (uint32_t i = 0; i < N_CASES; i++) {
		struct coll_case what = case_of(i, sweep);

		RANK_DO(coll_run(&c, &what));
	}
	if (sweep->in_stream)
		RANK_DO(gpu_out_of_stream(&c));
	on_devices = c.comm;
	RANK_DO(create_with(&c, ctx, 1, &config));
	for (uint32_t i = 0; i < N_CASES; i++) {
		struct coll_case what = case_of(i, sweep);

		what.memory = COLL_PRIVATE;
		RANK_DO(coll_run(&c, &what));
	}
	RANK_DO(wait_for_test(ctx));
	RANK_OK(ctx, rcclx_comm_destroy(on_devices));
	RANK_DO(gpu_take_memory(&c));
	return coll_close(&c);
}

static struct admin_comm comm_at(const struct node *node, uint32_t index)
{
	struct admin_comm comm;

	assert_int_equal(admin_comm(node->admin, index, &comm), 0);
	return comm;
}

static void wait_for_ranks(struct world *world, uint32_t n_ranks)
{
	for (uint32_t rank = 0; rank < n_ranks; rank++)
		assert_true(flag_wait(world->shared, RANK_IS_DONE + rank, 1, 60000));
}

/* The same was counted, @times as often on devices. */
static void compare_counts(const struct node *node, uint64_t times)
{
	struct admin_comm on_devices = comm_at(node, 0);
	struct admin_comm on_host = comm_at(node, 1);

	assert_int_equal(on_devices.precision_ops, times * N_CASES);
	assert_int_equal(on_host.precision_ops, N_CASES);
	assert_int_equal(on_devices.exact_bytes, times * on_host.exact_bytes);
	assert_int_equal(on_devices.wire_bytes, times * on_host.wire_bytes);
	assert_int_equal(on_devices.blocks, times * on_host.blocks);
	assert_int_equal(on_devices.saturated_blocks, times * on_host.saturated_blocks);
	assert_int_equal(on_devices.flushed_blocks, times * on_host.flushed_blocks);
	assert_int_equal(on_devices.special_blocks, times * on_host.special_blocks);
	assert_true(on_host.blocks > 0 && on_host.saturated_blocks > 0 &&
		    on_host.flushed_blocks > 0 && on_host.special_blocks > 0);
}

static struct node *sweep_on(const char *faults, uint32_t n_ranks, struct sweep what)
{
	struct node *node = gpu_node(faults, NULL);
	struct world *world = NULL;
	unsigned long before[8];

	for (uint32_t rank = 0; rank < n_ranks; rank++)
		before[rank] = gpu_count(node, what.devices[rank], "launches");
	world = world_start(node, n_ranks, rank_sweep, &what);
	wait_for_ranks(world, n_ranks);
	compare_counts(node, what.n_replays > 0 ? what.n_replays : 1);
	/* Few, if any, were copied instead. */
	for (uint32_t rank = 0; rank < n_ranks; rank++)
		assert_true(gpu_count(node, what.devices[rank], "launches") - before[rank] >=
			    N_CASES * 3 / 4);
	flag_set(world->shared, MAY_END, 1);
	world_join(world);
	return node;
}

static void sweep(uint32_t n_ranks, struct sweep what)
{
	node_stop(sweep_on(NULL, n_ranks, what));
}

static void test_one_device(void **state)
{
	(void)state;
	sweep(2, (struct sweep){.devices = {0, 0}});
	sweep(3, (struct sweep){.devices = {5, 5, 5}, .gather_bf16 = true});
}

static void test_several_devices(void **state)
{
	(void)state;
	sweep(4, (struct sweep){.devices = {0, 1, 2, 3}});
	sweep(5, (struct sweep){.devices = {2, 0, 2, 1, 0}, .gather_bf16 = true});
}

static void test_in_streams(void **state)
{
	(void)state;
	sweep(3, (struct sweep){.devices = {0, 1, 0}, .in_stream = true});
}

static void test_in_graphs(void **state)
{
	(void)state;
	sweep(2, (struct sweep){.devices = {0, 0}, .in_stream = true, .n_replays = 3});
	sweep(3, (struct sweep){.devices = {1, 0, 1}, .in_stream = true, .n_replays = 2});
}

/*
 * Encoded between devices: in one step or two, read or written; small slots make many rounds.
 * Few operations, if any, were copied instead.
 */
#define SLOTS "device_slots_min = 0;"
#define PUSH  "device_push_min = 0;"

static void sweep_slots(const char *thresholds, uint32_t n_ranks, struct sweep what)
{
	struct node *node = NULL;

	gpu_configure(thresholds, "slot_bytes = 16384;");
	node = sweep_on("units=6", n_ranks, what);
	assert_true(gpu_count(node, what.devices[0], "exchange_operations") >= N_CASES * 3 / 4);
	node_stop(node);
	gpu_configure("", "");
}

static void test_slots(void **state)
{
	(void)state;
	sweep_slots(SLOTS, 2, (struct sweep){.devices = {0, 1}});
	sweep_slots(SLOTS, 4, (struct sweep){.devices = {0, 1, 2, 3}});
	sweep_slots(SLOTS PUSH, 3, (struct sweep){.devices = {0, 1, 2}, .gather_bf16 = true});
	sweep_slots(SLOTS PUSH, 4, (struct sweep){.devices = {1, 0, 0, 1}});
	sweep_slots(SLOTS, 5, (struct sweep){.devices = {2, 0, 2, 1, 0}, .gather_bf16 = true});
}

/* Through host memory, in parts that divide no block: the same bits and counts. */
static void sweep_apart(uint32_t n_ranks, struct sweep what)
{
	struct node *node = NULL;

	gpu_configure(SLOTS, "stage_bytes = 65536;");
	node = sweep_on("apart", n_ranks, what);
	assert_true(gpu_count(node, what.devices[0], "staged_operations") >= N_CASES * 3 / 4);
	node_stop(node);
	gpu_configure("", "");
}

static void test_apart(void **state)
{
	(void)state;
	sweep_apart(2, (struct sweep){.devices = {0, 1}});
	sweep_apart(4, (struct sweep){.devices = {0, 1, 2, 0}, .gather_bf16 = true});
	sweep_apart(3, (struct sweep){.devices = {0, 1, 0}, .in_stream = true});
	sweep_apart(3, (struct sweep){.devices = {1, 0, 2}, .in_stream = true, .n_replays = 2});
}

static void test_slots_in_streams(void **state)
{
	(void)state;
	sweep_slots(SLOTS, 3, (struct sweep){.devices = {0, 1, 0}, .in_stream = true});
	sweep_slots(SLOTS PUSH, 3,
		(struct sweep){.devices = {1, 0, 2}, .in_stream = true, .n_replays = 2});
}

/* Ranks of one operation with device memory and with host memory. */
static int rank_mixed(struct rank_ctx *ctx)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct sweep what = {.n_replays = 0};
	struct coll_rank c;

	RANK_DO(open_on(&c, ctx, ctx->rank / 2, &config));
	RANK_DO(prove(&c));
	for (uint32_t i = 0; i < N_CASES; i++) {
		struct coll_case one = case_of(i, &what);

		one.memory = COLL_DEVICE_SOME;
		RANK_DO(coll_run(&c, &one));
	}
	return gpu_close_rank(&c);
}

static void test_mixed(void **state)
{
	struct node *node = gpu_node(NULL, NULL);
	unsigned long before = gpu_count(node, 1, "launches");

	(void)state;
	world_run(node, 4, rank_mixed, NULL);
	assert_true(gpu_count(node, 1, "launches") - before >= N_CASES * 3 / 4);
	node_stop(node);
}

/*
 * Switched on, from a threshold on; with a budget, which nothing could keep, exact, and as INT8,
 * which devices do not have.
 */
struct choice {
	uint32_t budget_ppm;
	bool int8;
	uint64_t n_low; /* operations in low precision */
};

static int rank_choice(struct rank_ctx *ctx)
{
	const struct choice *choice = ctx->arg;
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct coll_rank c;

	config.low_precision =
		RCCLX_LOW_PRECISION_ALL | (choice->int8 ? RCCLX_LOW_PRECISION_INT8 : 0);
	config.low_precision_min = 4000;
	config.low_precision_budget_ppm = choice->budget_ppm;
	RANK_DO(open_on(&c, ctx, ctx->rank, &config));
	RANK_DO(prove(&c));
	c.ask_nothing = true;
	for (uint32_t i = 0; i < 8; i++) {
		struct coll_case what = {
			.coll = i % 4 < 2 ? RX_ALL_REDUCE : RX_ALL_GATHER,
			.dtype = RX_FLOAT32,
			.op = RX_SUM,
			.count = (i % 4 < 2 ? 1000 : 500) - i % 2,
			.memory = COLL_DEVICE,
			.seed = i,
			.tame = true,
		};

		what.precision =
			i % 2 || choice->n_low == 0 ? RCCLX_PRECISION_EXACT : RCCLX_PRECISION_FP8;
		RANK_DO(coll_run(&c, &what));
	}
	RANK_DO(wait_for_test(ctx));
	return gpu_close_rank(&c);
}

static void check_choice(struct choice choice)
{
	struct node *node = gpu_node(NULL, NULL);
	struct world *world = world_start(node, 2, rank_choice, &choice);
	struct admin_comm comm;

	wait_for_ranks(world, 2);
	comm = comm_at(node, 0);
	assert_int_equal(comm.precision_ops, choice.n_low);
	assert_false(comm.over_budget);
	flag_set(world->shared, MAY_END, 1);
	world_join(world);
	node_stop(node);
}

static void test_choice(void **state)
{
	(void)state;
	check_choice((struct choice){.n_low = 4});
	check_choice((struct choice){.budget_ppm = 900000, .n_low = 0});
	check_choice((struct choice){.int8 = true, .n_low = 0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_one_device),
		HARNESS_TEST(test_several_devices),
		HARNESS_TEST(test_in_streams),
		HARNESS_TEST(test_in_graphs),
		HARNESS_TEST(test_slots),
		HARNESS_TEST(test_slots_in_streams),
		HARNESS_TEST(test_apart),
		HARNESS_TEST(test_mixed),
		HARNESS_TEST(test_choice),
	};
	int failed = 0;

	if (!gpu_setup(TEST_FAMILY))
		return 77;
	failed = HARNESS_RUN("gpu-lowprec-" TEST_FAMILY, tests);
	gpu_cleanup();
	return failed;
}
