/* SPDX-License-Identifier: MIT */
/* The choosing between devices: which algorithm, by which threshold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../kernels/device_plan.h"

static const struct rx_device_tuning_entry some = {
	{
		[RX_DEVICE_FLAT_MAX] = 1000,
		[RX_DEVICE_TREE_MIN] = 50000,
		[RX_DEVICE_SLOTS_MIN] = 2000,
		[RX_DEVICE_PUSH_MIN] = 60000,
	},
};

static struct rx_device_plan plan(
	uint32_t coll, uint32_t n_ranks, uint32_t n_devices, uint64_t bytes, bool low)
{
	const struct rx_device_query query = {.coll = coll,
		.n_ranks = n_ranks,
		.n_devices = n_devices,
		.bytes = bytes,
		.low = low};

	return rx_device_plan_make(&query, &some);
}

static void expect(struct rx_device_plan got, uint32_t algorithm, enum rx_device_threshold by,
	bool above, bool slots, bool push)
{
	assert_int_equal(got.algorithm, algorithm);
	assert_int_equal(got.why, RX_DEVICE_WHY_THRESHOLD);
	assert_int_equal(got.decided_by, by);
	assert_int_equal(got.above, above);
	assert_int_equal(got.slots, slots);
	assert_int_equal(got.push, push);
	assert_int_equal(got.meets, algorithm != RX_DEV_DIRECT);
}

static void test_exact(void **state)
{
	(void)state;
	expect(plan(RX_ALL_REDUCE, 4, 2, 1000, false), RX_DEV_FLAT, RX_DEVICE_FLAT_MAX, false, true,
		false);
	expect(plan(RX_ALL_REDUCE, 4, 2, 1001, false), RX_DEV_DIRECT, RX_DEVICE_TREE_MIN, false,
		false, false);
	expect(plan(RX_ALL_REDUCE, 4, 2, 50000, false), RX_DEV_TREE, RX_DEVICE_TREE_MIN, true,
		false, false);
	expect(plan(RX_ALL_REDUCE, 4, 2, 60000, false), RX_DEV_TREE, RX_DEVICE_TREE_MIN, true, true,
		true);
	/* Only an allreduce has two steps. */
	expect(plan(RX_ALL_GATHER, 4, 2, 60000, false), RX_DEV_DIRECT, RX_DEVICE_FLAT_MAX, true,
		false, true);
	expect(plan(RX_BROADCAST, 4, 2, 1, false), RX_DEV_FLAT, RX_DEVICE_FLAT_MAX, false, true,
		false);
}

static void test_low(void **state)
{
	(void)state;
	expect(plan(RX_ALL_REDUCE, 8, 8, 1999, true), RX_DEV_DIRECT, RX_DEVICE_SLOTS_MIN, false,
		false, false);
	expect(plan(RX_ALL_REDUCE, 8, 8, 2000, true), RX_DEV_TREE, RX_DEVICE_SLOTS_MIN, true, true,
		false);
	/* Two ranks: as many bytes in one step as in two. */
	expect(plan(RX_ALL_REDUCE, 2, 2, 2000, true), RX_DEV_FLAT, RX_DEVICE_SLOTS_MIN, true, true,
		false);
	expect(plan(RX_ALL_REDUCE, 4, 2, 2000, true), RX_DEV_TREE, RX_DEVICE_SLOTS_MIN, true, true,
		false);
	expect(plan(RX_ALL_GATHER, 8, 8, 60000, true), RX_DEV_FLAT, RX_DEVICE_SLOTS_MIN, true, true,
		true);
}

/* Without anything between devices there is nothing to choose. */
static void test_fixed(void **state)
{
	struct rx_device_plan got = plan(RX_ALL_REDUCE, 8, 1, 500, true);

	(void)state;
	assert_int_equal(got.algorithm, RX_DEV_DIRECT);
	assert_int_equal(got.why, RX_DEVICE_WHY_ONE_DEVICE);
	got = plan(RX_SEND, 8, 2, 500, false);
	assert_int_equal(got.algorithm, RX_DEV_DIRECT);
	assert_int_equal(got.why, RX_DEVICE_WHY_TRANSFER);
	/* Nothing to move: no slots for it. */
	got = plan(RX_ALL_REDUCE, 8, 2, 0, false);
	assert_false(got.meets);
}

static void test_defaults(void **state)
{
	(void)state;
	for (uint32_t coll = 0; coll < RX_COLL_N; coll++) {
		for (uint32_t n = 2; n <= RX_MAX_RANKS; n++) {
			const struct rx_device_tuning_entry *entry =
				rx_device_tuning_for(rx_device_tuning_default(), coll, n);
			struct rx_device_query query = {
				.coll = coll, .n_ranks = n, .n_devices = 2, .bytes = 1ull << 40};

			assert_false(rx_device_plan_make(&query, entry).meets);
			query.low = coll != RX_SEND && coll != RX_RECV;
			assert_int_equal(rx_device_plan_make(&query, entry).slots, query.low);
			query.bytes = (1u << 20) - 1;
			assert_false(rx_device_plan_make(&query, entry).meets);
		}
	}
}

static void test_bytes(void **state)
{
	(void)state;
	assert_int_equal(rx_device_bytes(RX_ALL_REDUCE, RX_FLOAT32, 8, 10), 40);
	assert_int_equal(rx_device_bytes(RX_BROADCAST, RX_FLOAT16, 8, 10), 20);
	assert_int_equal(rx_device_bytes(RX_ALL_GATHER, RX_FLOAT32, 8, 10), 320);
	assert_int_equal(rx_device_bytes(RX_REDUCE_SCATTER, RX_INT8, 8, 10), 80);
	assert_int_equal(rx_device_bytes(RX_ALL_TO_ALL, RX_INT64, 64, 1ull << 60), UINT64_MAX);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(rx_device_algorithm_name(RX_DEV_DIRECT), "direct");
	assert_string_equal(rx_device_algorithm_name(RX_DEV_TREE), "tree");
	assert_string_equal(rx_device_algorithm_name(99), "?");
	assert_string_equal(rx_device_threshold_name(RX_DEVICE_PUSH_MIN), "device_push_min");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_low),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
