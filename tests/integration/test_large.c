/* SPDX-License-Identifier: MIT */
/* Counts beyond 2^31 and 2^32 bytes, when there is memory for them. */
#include "harness.h"

#define GIB   (1ull << 30)
#define BLOCK (1ull << 21)

/* Rank's share of what is the same all over a block: places in different blocks look different. */
static uint8_t block_value(uint64_t first, uint32_t rank)
{
	return (uint8_t)((first / BLOCK) * 3 + rank * 11 + 1);
}

static void fill(uint8_t *data, uint64_t count, uint32_t rank)
{
	for (uint64_t first = 0; first < count; first += BLOCK) {
		uint64_t n = count - first < BLOCK ? count - first : BLOCK;
		uint8_t value = block_value(first, rank);

		for (uint32_t i = 0; i < n; i++)
			data[first + i] = (uint8_t)(value + (uint8_t)i * 7);
	}
}

/* After one sum a + b, after another one 2 * (a + b), modulo 256. */
static bool block_good(const uint8_t *data, uint64_t first, uint64_t n, uint32_t n_sums)
{
	uint8_t value =
		(uint8_t)(n_sums * (uint32_t)(block_value(first, 0) + block_value(first, 1)));
	uint8_t factor = (uint8_t)(2 * n_sums * 7);
	uint8_t wrong = 0;

	for (uint32_t i = 0; i < n; i++)
		wrong |= (uint8_t)(data[i] ^ (uint8_t)(value + (uint8_t)i * factor));
	return wrong == 0;
}

static int reduce(struct rank_ctx *ctx, struct rcclx_comm *comm, uint8_t *data, uint64_t count,
	uint32_t executor)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;

	config.executor = executor;
	RANK_OK(ctx, rcclx_all_reduce(comm, data, data, count, RCCLX_UINT8, RCCLX_SUM, &config));
	return 0;
}

struct huge {
	uint64_t count;
	bool both_executors;
};

static int rank_huge(struct rank_ctx *ctx)
{
	const struct huge *huge = ctx->arg;
	uint64_t count = huge->count;
	uint32_t n_sums = huge->both_executors ? 2 : 1;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	void *memory = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_OK(ctx, rcclx_mem_alloc(client, count, &memory));
	uint8_t *data = memory;
	fill(data, count, ctx->rank);
	RANK_DO(reduce(ctx, comm, data, count, RCCLX_EXECUTOR_INLINE));
	if (huge->both_executors)
		RANK_DO(reduce(ctx, comm, data, count, RCCLX_EXECUTOR_DAEMON));
	for (uint64_t first = 0; first < count; first += BLOCK)
		RANK_CHECK(ctx,
			block_good(data + first, first,
				count - first < BLOCK ? count - first : BLOCK, n_sums),
			"wrong somewhere after element %llu", (unsigned long long)first);
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	RANK_OK(ctx, rcclx_mem_free(client, memory));
	return rank_leave(ctx, comm, client);
}

static void run_huge(uint64_t count, uint64_t needed, bool both_executors)
{
	struct huge huge = {count, both_executors};

	static const struct node_options options = {
		.config = "stall_report_s = 60; limits = { bytes_per_uid = 64000000000L; };\n"};

	if (test_free_bytes() < needed)
		harness_skip("%llu GiB of memory free, %llu needed",
			(unsigned long long)(test_free_bytes() / GIB),
			(unsigned long long)(needed / GIB));
	if (test_sanitized() && !test_long())
		harness_skip("takes minutes under a sanitizer, RCCLX_LONG=1 runs it");
	harness_limit(test_long() ? 600 : 240);
	struct node *node = node_start(&options);
	world_run(node, 2, rank_huge, &huge);
	node_stop(node);
}

static void test_above_2_to_31(void **state)
{
	(void)state;
	run_huge((2 * GIB) + 4097, 6 * GIB, true);
}

static void test_above_2_to_32(void **state)
{
	(void)state;
	run_huge((4 * GIB) + 12345, test_long() ? 10 * GIB : 14 * GIB, test_long());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_above_2_to_31),
		HARNESS_TEST(test_above_2_to_32),
	};

	return HARNESS_RUN("large", tests);
}
