/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../kernels/coll_plan.h"
#include "../../shm/rx_fabric_abi.h"

static struct rx_plan_query query_of(uint64_t count, uint32_t dtype, uint32_t n_ranks)
{
	return (struct rx_plan_query){
		.coll = RX_ALL_REDUCE, .dtype = dtype, .n_ranks = n_ranks, .count = count};
}

/* Every element belongs to exactly one rank, in order, and no two ranks write one cache line. */
static void test_parts_cover_all(void **state)
{
	static const uint64_t counts[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 1000, 4097, 1ull << 33};

	(void)state;
	for (size_t c = 0; c < RX_ARRAY_SIZE(counts); c++) {
		for (uint32_t n = 1; n <= RX_MAX_RANKS; n++) {
			for (uint32_t size = 1; size <= 8; size *= 2) {
				uint64_t next = 0;

				for (uint32_t r = 0; r < n; r++) {
					struct rx_part part = rx_part_of(counts[c], size, n, r);

					assert_int_equal(part.first, next);
					if (part.count > 0)
						assert_int_equal(part.first * size % 64, 0);
					next = part.first + part.count;
				}
				assert_int_equal(next, counts[c]);
			}
		}
	}
}

static void test_part_near_limit(void **state)
{
	struct rx_part part = rx_part_of(UINT64_MAX / 8, 8, 64, 63);

	(void)state;
	assert_true(part.first + part.count == UINT64_MAX / 8);
}

/* What was sent along with the announcement must be what the plan reads. */
static void test_early_and_plan_agree(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= RX_MAX_RANKS; n += 7) {
		const struct rx_tuning_entry *thresholds =
			rx_tuning_for(rx_tuning_default(), RX_ALL_REDUCE, n);

		for (uint64_t count = 0; count < 20000; count++) {
			struct rx_plan_query query = query_of(count, RX_FLOAT32, n);
			enum rx_early early = rx_plan_early(&query, thresholds);
			struct rx_plan plan = rx_plan_make(&query, thresholds);

			/* Private memory that was not copied is not read flat. */
			assert_int_equal(early == RX_EARLY_COPY, plan.algorithm <= RX_ALG_FLAT);
			query.copied = early != RX_EARLY_WAIT;
			plan = rx_plan_make(&query, thresholds);
			assert_int_equal(early != RX_EARLY_WAIT, plan.algorithm <= RX_ALG_FLAT);
			query.copied = false;
			query.registered = true;
			plan = rx_plan_make(&query, thresholds);
			assert_int_equal(early == RX_EARLY_COPY, plan.algorithm <= RX_ALG_FLAT);
		}
	}
}

static void test_thresholds_fit_buffers(void **state)
{
	struct rx_tuning_entry huge = *rx_tuning_for(rx_tuning_default(), RX_ALL_REDUCE, 3);

	(void)state;
	huge.flat_max = UINT32_MAX;
	huge.flat_max_shared = UINT32_MAX;
	huge.chunk = UINT32_MAX;
	for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
		uint32_t size = rx_dtype_size(dtype);
		struct rx_plan_query query = query_of(RX_FLAT_BYTES / size + 1, dtype, 3);
		struct rx_plan plan = rx_plan_make(&query, &huge);

		assert_int_equal(plan.algorithm, RX_ALG_STAGED);
		assert_true(plan.chunk_count * size <= RX_CHUNK_BYTES);
		assert_true(plan.chunk_count > 0);
	}
}

static void test_registered_goes_direct(void **state)
{
	const struct rx_tuning_entry *tuning = rx_tuning_for(rx_tuning_default(), RX_ALL_REDUCE, 2);
	struct rx_plan_query query = query_of(1 << 20, RX_FLOAT32, 2);

	(void)state;
	query.registered = true;
	assert_int_equal(rx_plan_make(&query, tuning).algorithm, RX_ALG_DIRECT);
	query.registered = false;
	assert_int_equal(rx_plan_make(&query, tuning).algorithm, RX_ALG_STAGED);
}

static void test_personal_counts_all_blocks(void **state)
{
	const struct rx_tuning_entry *tuning = rx_tuning_for(rx_tuning_default(), RX_ALL_REDUCE, 2);
	struct rx_plan_query query = query_of(tuning->flat_max / 4 / 8, RX_FLOAT32, 8);

	(void)state;
	query.coll = RX_ALL_TO_ALL;
	assert_int_not_equal(rx_plan_early(&query, tuning), RX_EARLY_WAIT);
	query.count++;
	assert_int_equal(rx_plan_early(&query, tuning), RX_EARLY_WAIT);
	query.coll = RX_ALL_GATHER;
	assert_int_not_equal(rx_plan_early(&query, tuning), RX_EARLY_WAIT);
	query.coll = RX_ALL_TO_ALL_V;
	query.count = 1;
	assert_int_equal(rx_plan_early(&query, tuning), RX_EARLY_WAIT);
}

static void test_classes(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= RX_MAX_RANKS; n++) {
		uint32_t c = rx_tuning_class(n);

		assert_true(n <= rx_tuning_class_max(c));
		assert_true(c == 0 || n > rx_tuning_class_max(c - 1));
	}
	assert_int_equal(rx_tuning_class(1000), RX_TUNING_CLASSES - 1);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(rx_algorithm_name(RX_ALG_TINY), "tiny");
	assert_string_equal(rx_algorithm_name(RX_ALG_DIRECT), "direct");
	assert_string_equal(rx_algorithm_name(RX_ALG_N), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_cover_all),
		cmocka_unit_test(test_part_near_limit),
		cmocka_unit_test(test_early_and_plan_agree),
		cmocka_unit_test(test_thresholds_fit_buffers),
		cmocka_unit_test(test_registered_goes_direct),
		cmocka_unit_test(test_personal_counts_all_blocks),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
