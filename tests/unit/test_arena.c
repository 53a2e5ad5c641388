/* SPDX-License-Identifier: MIT */
#include "shm_util.h"

#include "../../proto/rx_arena.h"

#include <string.h>

static struct rx_arena arena;

static void pieces_are_aligned_and_apart(void **state)
{
	uint8_t *pieces[64];

	(void)state;
	rx_arena_reset(&arena);
	for (size_t i = 0; i < RX_ARRAY_SIZE(pieces); i++) {
		pieces[i] = rx_arena_alloc(&arena, i);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		memset(pieces[i], (int)i, i);
	}
	for (size_t i = 0; i < RX_ARRAY_SIZE(pieces); i++)
		for (size_t j = 0; j < i; j++)
			assert_int_equal(pieces[i][j], i);
	assert_false(arena.exhausted);
}

static void all_of_it_and_no_more(void **state)
{
	uint8_t *all = NULL;

	(void)state;
	rx_arena_reset(&arena);
	all = rx_arena_alloc(&arena, RX_DECODE_ARENA);
	assert_non_null(all);
	memset(all, 0xff, RX_DECODE_ARENA);
	assert_false(arena.exhausted);
	assert_null(rx_arena_alloc(&arena, 1));
	assert_true(arena.exhausted);
}

static void refusal_takes_nothing(void **state)
{
	(void)state;
	rx_arena_reset(&arena);
	assert_non_null(rx_arena_alloc(&arena, 100));
	size_t used = arena.used;
	assert_null(rx_arena_alloc(&arena, RX_DECODE_ARENA));
	assert_null(rx_arena_alloc(&arena, SIZE_MAX));
	/* Rounded up, this would wrap around to 0. */
	assert_null(rx_arena_alloc(&arena, SIZE_MAX - 7));
	assert_int_equal(arena.used, used);
	assert_true(arena.exhausted);
	assert_non_null(rx_arena_alloc(&arena, RX_DECODE_ARENA - used));
}

static void odd_sizes_reach_the_end(void **state)
{
	size_t n = 0;

	(void)state;
	rx_arena_reset(&arena);
	while (rx_arena_alloc(&arena, 17))
		n++;
	assert_int_equal(n, RX_DECODE_ARENA / 32);
	assert_true(arena.used <= RX_DECODE_ARENA);
}

static void reset_gives_all_back(void **state)
{
	(void)state;
	rx_arena_reset(&arena);
	assert_non_null(rx_arena_alloc(&arena, RX_DECODE_ARENA));
	assert_null(rx_arena_alloc(&arena, 1));
	rx_arena_reset(&arena);
	assert_false(arena.exhausted);
	assert_non_null(rx_arena_alloc(&arena, RX_DECODE_ARENA));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_aligned_and_apart),
		cmocka_unit_test(all_of_it_and_no_more),
		cmocka_unit_test(refusal_takes_nothing),
		cmocka_unit_test(odd_sizes_reach_the_end),
		cmocka_unit_test(reset_gives_all_back),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
