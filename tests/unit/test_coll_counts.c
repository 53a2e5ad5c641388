/* SPDX-License-Identifier: MIT */
/* Counts of the variable collectives: how they travel, how far they reach, do they fit. */
#include "../../kernels/coll_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N 3u

static const uint8_t colls[] = {RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V, RX_ALL_TO_ALL_V};

static const uint64_t numbers[4][N] = {{1, 2, 3}, {10, 20, 30}, {4, 5, 6}, {40, 50, 60}};
static const struct rx_counts all = {numbers[0], numbers[1], numbers[2], numbers[3]};

static void expect_array(const uint64_t *array, const uint64_t *expected)
{
	if (expected)
		assert_memory_equal(array, expected, N * sizeof(uint64_t));
	else
		assert_null(array);
}

static void test_words(void **state)
{
	static const struct rx_counts expected[] = {
		{NULL, NULL, numbers[2], numbers[3]},
		{numbers[0], NULL, NULL, NULL},
		{numbers[0], numbers[1], numbers[2], numbers[3]},
	};
	static const uint32_t n_words[] = {1 + 2 * N, 1 + N, 1 + 4 * N};
	uint64_t words[1 + 4 * N + 1];

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(colls); i++) {
		struct rx_counts got;

		assert_int_equal(rx_counts_words(colls[i], N), n_words[i]);
		memset(words, 0xa5, sizeof(words));
		rx_counts_pack(colls[i], N, 77, &all, words);
		assert_int_equal(words[0], 77);
		assert_int_equal(words[n_words[i]], 0xa5a5a5a5a5a5a5a5);
		got = rx_counts_of(colls[i], N, words);
		expect_array(got.send_counts, expected[i].send_counts);
		expect_array(got.send_displs, expected[i].send_displs);
		expect_array(got.recv_counts, expected[i].recv_counts);
		expect_array(got.recv_displs, expected[i].recv_displs);
	}
	assert_int_equal(rx_counts_words(RX_ALL_TO_ALL_V, RX_MAX_RANKS), RX_COUNTS_WORDS_MAX);
	for (uint32_t coll = 0; coll <= UINT8_MAX; coll++)
		if (!rx_coll_is_v(coll))
			assert_int_equal(rx_counts_words(coll, N), 0);
}

static void expect_extent(uint8_t coll, struct rx_counts counts, uint64_t send, uint64_t recv)
{
	struct rx_extent extent = {0};

	assert_true(rx_counts_extent(coll, &counts, N, 1, &extent));
	assert_int_equal(extent.send, send);
	assert_int_equal(extent.recv, recv);
	assert_false(extent.in_place_ok);
}

static void expect_too_far(uint8_t coll, struct rx_counts counts)
{
	struct rx_extent extent = {.send = 77};

	assert_false(rx_counts_extent(coll, &counts, N, 1, &extent));
	assert_int_equal(extent.send, 77);
}

static void test_extent(void **state)
{
	static const uint64_t none[N] = {0, 0, 0};
	static const uint64_t far[N] = {UINT64_MAX - 1, UINT64_MAX, 3};
	static const uint64_t one[N] = {1, 0, 1};
	static const uint64_t two[N] = {2, 0, 1};
	static const uint64_t huge[N] = {UINT64_MAX, 0, 1};

	(void)state;
	expect_extent(
		RX_ALL_GATHER_V, (struct rx_counts){NULL, NULL, numbers[2], numbers[3]}, 5, 66);
	expect_extent(RX_REDUCE_SCATTER_V, (struct rx_counts){.send_counts = numbers[0]}, 6, 2);
	expect_extent(RX_ALL_TO_ALL_V, all, 33, 66);
	/* Where an empty block would be does not count. */
	expect_extent(RX_ALL_GATHER_V, (struct rx_counts){NULL, NULL, none, far}, 0, 0);
	expect_extent(RX_ALL_GATHER_V, (struct rx_counts){NULL, NULL, one, far}, 0, UINT64_MAX);
	expect_extent(RX_ALL_TO_ALL_V, (struct rx_counts){one, far, none, far}, UINT64_MAX, 0);
	expect_too_far(RX_ALL_GATHER_V, (struct rx_counts){NULL, NULL, two, far});
	expect_too_far(RX_ALL_TO_ALL_V, (struct rx_counts){two, far, none, none});
	expect_too_far(RX_ALL_TO_ALL_V, (struct rx_counts){none, none, two, far});
	expect_too_far(RX_REDUCE_SCATTER_V, (struct rx_counts){.send_counts = huge});
}

static void test_sum(void **state)
{
	static const uint64_t many[] = {UINT64_MAX - 5, 5, 1};

	(void)state;
	assert_int_equal(rx_counts_sum(many, 0), 0);
	assert_true(rx_counts_sum(many, 2) == UINT64_MAX);
	assert_true(rx_counts_sum(many, 3) == UINT64_MAX);
	assert_int_equal(rx_counts_sum(numbers[3], N), 150);
}

/* ---- agreement ---- */

static void expect_clash(
	uint8_t coll, const struct rx_counts *counts, uint32_t rank, struct rx_clash expected)
{
	struct rx_clash clash = {0};

	assert_false(rx_counts_agree(coll, counts, N, rank, &clash));
	assert_int_equal(clash.rank[0], expected.rank[0]);
	assert_int_equal(clash.rank[1], expected.rank[1]);
	assert_int_equal(clash.block, expected.block);
	assert_int_equal(clash.count[0], expected.count[0]);
	assert_int_equal(clash.count[1], expected.count[1]);
}

/* Each is told of itself and another one: rank 0, or the first that differs from rank 0. */
static void check_common(uint8_t coll, struct rx_counts counts[N], uint64_t *odd)
{
	struct rx_clash clash;

	for (uint32_t rank = 0; rank < N; rank++)
		assert_true(rx_counts_agree(coll, counts, N, rank, &clash));
	odd[2] = 9;
	expect_clash(coll, counts, 0, (struct rx_clash){{0, 1}, 2, {6, 9}});
	expect_clash(coll, counts, 1, (struct rx_clash){{1, 0}, 2, {9, 6}});
	expect_clash(coll, counts, 2, (struct rx_clash){{2, 1}, 2, {6, 9}});
	odd[2] = 6;
}

static void test_common(void **state)
{
	uint64_t same[N][N] = {{4, 5, 6}, {4, 5, 6}, {4, 5, 6}};
	struct rx_counts gather[N];
	struct rx_counts scatter[N];

	(void)state;
	for (uint32_t rank = 0; rank < N; rank++) {
		/* Where they go is each rank's own affair. */
		gather[rank] =
			(struct rx_counts){.recv_counts = same[rank], .recv_displs = numbers[rank]};
		scatter[rank] = (struct rx_counts){.send_counts = same[rank]};
	}
	check_common(RX_ALL_GATHER_V, gather, same[1]);
	check_common(RX_REDUCE_SCATTER_V, scatter, same[1]);
}

static void test_pairs(void **state)
{
	uint64_t sent[N][N] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
	uint64_t expected[N][N] = {{1, 4, 7}, {2, 5, 8}, {3, 6, 9}};
	struct rx_counts counts[N];
	struct rx_clash clash;

	(void)state;
	for (uint32_t rank = 0; rank < N; rank++)
		counts[rank] =
			(struct rx_counts){sent[rank], numbers[rank], expected[rank], numbers[3]};
	for (uint32_t from = 0; from < N; from++) {
		for (uint32_t to = 0; to < N; to++) {
			assert_true(rx_counts_agree(RX_ALL_TO_ALL_V, counts, N, from, &clash));
			sent[from][to] += 10;
			for (uint32_t rank = 0; rank < N; rank++)
				expect_clash(RX_ALL_TO_ALL_V, counts, rank,
					(struct rx_clash){{from, to}, 0,
						{sent[from][to], expected[to][from]}});
			sent[from][to] -= 10;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_extent),
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_common),
		cmocka_unit_test(test_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
