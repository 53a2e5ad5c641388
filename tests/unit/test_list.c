/* SPDX-License-Identifier: MIT */
#include "shm_util.h"

#include "../../shm/rx_list.h"

struct item {
	int number;
	struct rx_list link;
};

static void fill(struct rx_list *head, struct item *items, int n)
{
	rx_list_init(head);
	for (int i = 0; i < n; i++) {
		items[i].number = i;
		rx_list_push(head, &items[i].link);
	}
}

/* The numbers in the list as decimal digits, walked in both directions. */
static long digits(const struct rx_list *head)
{
	long forward = 0;
	long backward = 0;
	long weight = 1;

	rx_list_for_each (pos, head)
		forward = 10 * forward + rx_list_entry(pos, struct item, link)->number;
	for (struct rx_list *pos = head->prev; pos != head; pos = pos->prev) {
		backward += weight * rx_list_entry(pos, struct item, link)->number;
		weight *= 10;
	}
	assert_int_equal(forward, backward);
	return forward;
}

static void test_empty(void **state)
{
	struct rx_list head;

	(void)state;
	rx_list_init(&head);
	assert_true(rx_list_empty(&head));
	rx_list_for_each (pos, &head)
		fail();
	rx_list_unlink(&head);
	assert_true(rx_list_empty(&head));
}

static void test_order(void **state)
{
	struct rx_list head;
	struct item items[5];

	(void)state;
	fill(&head, items, 5);
	assert_false(rx_list_empty(&head));
	assert_int_equal(digits(&head), 1234);
	rx_list_unlink(&items[1].link);
	assert_int_equal(digits(&head), 234);
	rx_list_push(&head, &items[1].link);
	assert_int_equal(digits(&head), 2341);
}

static void test_unlink_twice(void **state)
{
	struct rx_list head;
	struct item items[4];

	(void)state;
	fill(&head, items, 4);
	rx_list_unlink(&items[2].link);
	rx_list_unlink(&items[2].link);
	assert_true(rx_list_empty(&items[2].link));
	assert_int_equal(digits(&head), 13);
	rx_list_unlink(&items[0].link);
	rx_list_unlink(&items[3].link);
	rx_list_unlink(&items[1].link);
	assert_true(rx_list_empty(&head));
}

static void test_unlink_while_walking(void **state)
{
	struct rx_list head;
	struct item items[9];

	(void)state;
	fill(&head, items, 9);
	rx_list_for_each_safe (pos, &head) {
		if (rx_list_entry(pos, struct item, link)->number % 3 != 1)
			rx_list_unlink(pos);
	}
	assert_int_equal(digits(&head), 147);
	rx_list_for_each_safe (pos, &head)
		rx_list_unlink(pos);
	assert_true(rx_list_empty(&head));
}

static void test_move(void **state)
{
	struct rx_list a;
	struct rx_list b;
	struct item items[6];

	(void)state;
	fill(&a, items, 6);
	rx_list_init(&b);
	rx_list_for_each_safe (pos, &a) {
		rx_list_unlink(pos);
		rx_list_push(&b, pos);
	}
	assert_true(rx_list_empty(&a));
	assert_int_equal(digits(&b), 12345);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_unlink_twice),
		cmocka_unit_test(test_unlink_while_walking),
		cmocka_unit_test(test_move),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
