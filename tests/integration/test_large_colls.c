/* SPDX-License-Identifier: MIT */
/*
 * Numbers of bytes around 2^31 and 2^32, where a signed or short counter would give up, in
 * collectives whose buffers have a block per rank. Allreduce alone: test_large.c.
 */
#include "harness.h"

#define GIB     (1ull << 30)
#define N_RANKS 2u
#define BLOCK   (1ull << 20)

/* What a block of a rank's memory looks like: differs from place to place, rank to rank. */
static uint8_t base_of(uint64_t first, uint32_t seed)
{
	return (uint8_t)(first / BLOCK * 3 + seed * 11 + 1);
}

static void fill(uint8_t *data, uint64_t count, uint32_t seed)
{
	for (uint64_t first = 0; first < count; first += BLOCK) {
		uint64_t n = count - first < BLOCK ? count - first : BLOCK;
		uint8_t base = base_of(first, seed);

		for (uint32_t i = 0; i < n; i++)
			data[first + i] = (uint8_t)(base + (uint8_t)i * 7);
	}
}

/* Is it the sum of what fill() gives for these @n_seeds? */
static int check(struct rank_ctx *ctx, const char *what, const uint8_t *data, uint64_t count,
	const uint32_t *seeds, uint32_t n_seeds)
{
	uint8_t factor = (uint8_t)(7 * n_seeds);

	for (uint64_t first = 0; first < count; first += BLOCK) {
		uint64_t n = count - first < BLOCK ? count - first : BLOCK;
		uint8_t base = 0;
		uint8_t wrong = 0;

		for (uint32_t s = 0; s < n_seeds; s++)
			base = (uint8_t)(base + base_of(first, seeds[s]));
		for (uint32_t i = 0; i < n; i++)
			wrong |= (uint8_t)(data[first + i] ^ (uint8_t)(base + (uint8_t)i * factor));
		RANK_CHECK(ctx, wrong == 0, "%s of %llu bytes: wrong somewhere after %llu", what,
			(unsigned long long)count, (unsigned long long)first);
	}
	return 0;
}

static int gather(struct rank_ctx *ctx, struct rcclx_comm *comm, uint8_t *data, uint64_t count)
{
	fill(data + ctx->rank * count, count, ctx->rank);
	RANK_OK(ctx,
		rcclx_all_gather(comm, data + ctx->rank * count, data, count, RCCLX_UINT8, NULL));
	for (uint32_t r = 0; r < N_RANKS; r++)
		RANK_DO(check(ctx, "all_gather", data + r * count, count, &r, 1));
	return 0;
}

static int scatter(struct rank_ctx *ctx, struct rcclx_comm *comm, uint8_t *data, uint64_t count)
{
	const uint32_t seeds[N_RANKS] = {ctx->rank * N_RANKS, ctx->rank * N_RANKS + 1};

	/* Seeds: by block, then by who has it. */
	for (uint32_t r = 0; r < N_RANKS; r++)
		fill(data + r * count, count, r * N_RANKS + ctx->rank);
	RANK_OK(ctx, rcclx_reduce_scatter(comm, data, data + ctx->rank * count, count, RCCLX_UINT8,
			     RCCLX_SUM, NULL));
	return check(ctx, "reduce_scatter", data + ctx->rank * count, count, seeds, N_RANKS);
}

static int reduce(struct rank_ctx *ctx, struct rcclx_comm *comm, uint8_t *data, uint64_t count)
{
	static const uint32_t seeds[N_RANKS] = {0, 1};

	fill(data, count, ctx->rank);
	RANK_OK(ctx, rcclx_all_reduce(comm, data, data, count, RCCLX_UINT8, RCCLX_SUM, NULL));
	return check(ctx, "all_reduce", data, count, seeds, N_RANKS);
}

static int rank_blocks(struct rank_ctx *ctx)
{
	uint64_t count = *(const uint64_t *)ctx->arg;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	void *memory = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_OK(ctx, rcclx_mem_alloc(client, N_RANKS * count, &memory));
	RANK_DO(gather(ctx, comm, memory, count));
	/* A rank's blocks are its peers' inputs until they have checked. */
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	RANK_DO(scatter(ctx, comm, memory, count));
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	if (test_long())
		RANK_DO(reduce(ctx, comm, memory, count));
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	RANK_OK(ctx, rcclx_mem_free(client, memory));
	return rank_leave(ctx, comm, client);
}

static void run_blocks(uint64_t count)
{
	static const struct node_options options = {
		.config = "stall_report_s = 120; limits = { bytes_per_uid = 64000000000L; };\n"};
	uint64_t needed = N_RANKS * N_RANKS * count + GIB;

	if (test_free_bytes() < needed)
		harness_skip("%llu GiB of memory free, %llu needed",
			(unsigned long long)(test_free_bytes() / GIB),
			(unsigned long long)(needed / GIB));
	if (test_sanitized() && !test_long())
		harness_skip("takes minutes under a sanitizer, RCCLX_LONG=1 runs it");
	harness_limit(test_long() ? 1200 : 90);
	struct node *node = node_start(&options);
	world_run(node, N_RANKS, rank_blocks, &count);
	node_stop(node);
}

/* Both blocks together are just beyond 2^31 bytes. */
static void test_sum_of_blocks(void **state)
{
	(void)state;
	run_blocks(GIB + 1);
}

#define LONG_TEST(name, count)                                                                     \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		if (!test_long())                                                                  \
			harness_skip("RCCLX_LONG=1 runs it");                                      \
		run_blocks(count);                                                                 \
	}

LONG_TEST(below_2_to_31, 2 * GIB - 1)
LONG_TEST(above_2_to_31, 2 * GIB + 1)
LONG_TEST(below_2_to_32, 4 * GIB - 1)
LONG_TEST(above_2_to_32, 4 * GIB + 1)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_sum_of_blocks),
		HARNESS_TEST(test_below_2_to_31),
		HARNESS_TEST(test_above_2_to_31),
		HARNESS_TEST(test_below_2_to_32),
		HARNESS_TEST(test_above_2_to_32),
	};

	return HARNESS_RUN("large_colls", tests);
}
