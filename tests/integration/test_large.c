/* SPDX-License-Identifier: MIT */
/* Counts beyond 2^31 and 2^32 bytes, when there is memory for them. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

#define GIB (1ull << 30)

/* Bytes that may be taken, as the kernel and the control group see it. */
static uint64_t read_number(const char *path, const char *key, uint64_t unit)
{
	char line[256] = "";
	unsigned long long value = UINT64_MAX;
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		if (sscanf(line + strlen(key), "%llu", &value) == 1)
			value *= unit;
		break;
	}
	(void)fclose(file);
	return value;
}

static uint64_t free_bytes(void)
{
	uint64_t available = read_number("/proc/meminfo", "MemAvailable:", 1024);
	uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "", 1);
	uint64_t used = read_number("/sys/fs/cgroup/memory.current", "", 1);

	if (limit == UINT64_MAX || used == UINT64_MAX)
		return available;
	uint64_t left = limit > used ? limit - used : 0;
	return left < available ? left : available;
}

static uint8_t value(uint64_t i, uint32_t rank)
{
	return (uint8_t)(i * 7 + (i >> 21) * 3 + rank * 11 + 1);
}

static int reduce(struct rank_ctx *ctx, struct rcclx_comm *comm, uint8_t *data, uint64_t count,
	uint32_t executor)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;

	config.executor = executor;
	RANK_OK(ctx, rcclx_all_reduce(comm, data, data, count, RCCLX_UINT8, RCCLX_SUM, &config));
	return 0;
}

/* Two sums, one by each executor: the result is 2 * (a + b), modulo 256. */
static int rank_huge(struct rank_ctx *ctx)
{
	uint64_t count = *(const uint64_t *)ctx->arg;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	void *memory = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_OK(ctx, rcclx_mem_alloc(client, count, &memory));
	uint8_t *data = memory;
	for (uint64_t i = 0; i < count; i++)
		data[i] = value(i, ctx->rank);
	RANK_DO(reduce(ctx, comm, data, count, RCCLX_EXECUTOR_INLINE));
	RANK_DO(reduce(ctx, comm, data, count, RCCLX_EXECUTOR_DAEMON));
	for (uint64_t i = 0; i < count; i++) {
		uint8_t sum = (uint8_t)(2 * (value(i, 0) + value(i, 1)));

		RANK_CHECK(ctx, data[i] == sum, "element %llu is %u, not %u", (unsigned long long)i,
			data[i], sum);
	}
	RANK_OK(ctx, rcclx_barrier(comm, NULL));
	RANK_OK(ctx, rcclx_mem_free(client, memory));
	return rank_leave(ctx, comm, client);
}

static void run_huge(uint64_t count, uint64_t needed)
{
	static const struct node_options options = {
		.config = "limits = { bytes_per_uid = 64000000000L; };\n"};

	if (free_bytes() < needed) {
		print_message("skipped: %llu GiB of memory free, %llu needed\n",
			(unsigned long long)(free_bytes() / GIB),
			(unsigned long long)(needed / GIB));
		skip();
	}
	if (test_sanitized() && !test_long()) {
		print_message("skipped: takes minutes under a sanitizer, RCCLX_LONG=1 runs it\n");
		skip();
	}
	harness_limit(test_long() ? 600 : 60);
	struct node *node = node_start(&options);
	world_run(node, 2, rank_huge, &count);
	node_stop(node);
}

static void test_above_2_to_31(void **state)
{
	(void)state;
	run_huge((2 * GIB) + 4097, 6 * GIB);
}

static void test_above_2_to_32(void **state)
{
	(void)state;
	run_huge((4 * GIB) + 12345, test_long() ? 10 * GIB : 14 * GIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_above_2_to_31),
		HARNESS_TEST(test_above_2_to_32),
	};

	return HARNESS_RUN("large", tests);
}
