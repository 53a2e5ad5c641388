/* SPDX-License-Identifier: MIT */
#include "shm_util.h"

#include "../../shm/rx_idmap.h"

#include <errno.h>
#include <stdlib.h>

static bool no_memory;

void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return no_memory ? NULL : __real_reallocarray(p, n, size);
}

static int objects[4096];

static uint64_t add(struct rx_idmap *map, void *object)
{
	uint64_t id = 0;

	assert_int_equal(rx_idmap_add(map, object, &id), 0);
	assert_true(id != 0);
	return id;
}

static void test_add_find_remove(void **state)
{
	struct rx_idmap map;
	uint64_t a = 0;
	uint64_t b = 0;

	(void)state;
	rx_idmap_init(&map, 100);
	assert_null(rx_idmap_find(&map, 0));
	assert_null(rx_idmap_find(&map, 1));
	a = add(&map, &objects[0]);
	b = add(&map, &objects[1]);
	assert_true(a != b);
	assert_ptr_equal(rx_idmap_find(&map, a), &objects[0]);
	assert_ptr_equal(rx_idmap_find(&map, b), &objects[1]);
	assert_ptr_equal(rx_idmap_remove(&map, a), &objects[0]);
	assert_null(rx_idmap_remove(&map, a));
	assert_null(rx_idmap_find(&map, a));
	assert_ptr_equal(rx_idmap_find(&map, b), &objects[1]);
	assert_int_equal(map.n_used, 1);
	assert_ptr_equal(rx_idmap_remove(&map, b), &objects[1]);
	rx_idmap_deinit(&map);
}

static void test_stale(void **state)
{
	struct rx_idmap map;
	uint64_t old = 0;

	(void)state;
	rx_idmap_init(&map, 1);
	old = add(&map, &objects[0]);
	for (uint32_t i = 1; i < 1000; i++) {
		uint64_t id = 0;

		assert_non_null(rx_idmap_remove(&map, old));
		id = add(&map, &objects[i]);
		/* The only slot again, under another id. */
		assert_int_equal((uint32_t)id, (uint32_t)old);
		assert_true(id > old);
		assert_null(rx_idmap_find(&map, old));
		assert_null(rx_idmap_find_short(&map, rx_idmap_short(old)));
		assert_null(rx_idmap_remove(&map, old));
		assert_ptr_equal(rx_idmap_find(&map, id), &objects[i]);
		assert_ptr_equal(rx_idmap_find_short(&map, rx_idmap_short(id)), &objects[i]);
		old = id;
	}
	assert_non_null(rx_idmap_remove(&map, old));
	rx_idmap_deinit(&map);
}

/* 12 bits of generation: the 4096th use of a slot has the first one's short id, full ids do not. */
static void test_short_generation_wraps(void **state)
{
	struct rx_idmap map;
	uint64_t first = 0;
	uint64_t id = 0;

	(void)state;
	rx_idmap_init(&map, 1);
	first = add(&map, &objects[0]);
	id = first;
	for (uint32_t i = 0; i < 4096; i++) {
		assert_non_null(rx_idmap_remove(&map, id));
		id = add(&map, &objects[1]);
		assert_true(rx_idmap_short(id) != 0);
		assert_ptr_equal(rx_idmap_find_short(&map, rx_idmap_short(id)), &objects[1]);
		if (i < 4095)
			assert_true(rx_idmap_short(id) != rx_idmap_short(first));
	}
	assert_int_equal(rx_idmap_short(id), rx_idmap_short(first));
	assert_null(rx_idmap_find(&map, first));
	assert_non_null(rx_idmap_remove(&map, id));
	rx_idmap_deinit(&map);
}

static void test_limit(void **state)
{
	struct rx_idmap map;
	uint64_t ids[37];
	uint64_t id = 99;

	(void)state;
	rx_idmap_init(&map, 0);
	assert_int_equal(rx_idmap_add(&map, &objects[0], &id), -ENOSPC);
	rx_idmap_deinit(&map);
	rx_idmap_init(&map, RX_ARRAY_SIZE(ids));
	for (uint32_t i = 0; i < RX_ARRAY_SIZE(ids); i++)
		ids[i] = add(&map, &objects[i]);
	assert_int_equal(rx_idmap_add(&map, &objects[0], &id), -ENOSPC);
	assert_int_equal(id, 99);
	assert_ptr_equal(rx_idmap_remove(&map, ids[20]), &objects[20]);
	ids[20] = add(&map, &objects[20]);
	assert_int_equal(rx_idmap_add(&map, &objects[0], &id), -ENOSPC);
	for (uint32_t i = 0; i < RX_ARRAY_SIZE(ids); i++)
		assert_ptr_equal(rx_idmap_remove(&map, ids[i]), &objects[i]);
	rx_idmap_deinit(&map);
}

static void test_no_memory(void **state)
{
	struct rx_idmap map;
	uint64_t ids[17];
	uint64_t id = 99;

	(void)state;
	rx_idmap_init(&map, 100);
	no_memory = true;
	assert_int_equal(rx_idmap_add(&map, &objects[0], &id), -ENOMEM);
	no_memory = false;
	for (uint32_t i = 0; i < 16; i++)
		ids[i] = add(&map, &objects[i]);
	no_memory = true;
	assert_int_equal(rx_idmap_add(&map, &objects[16], &id), -ENOMEM);
	no_memory = false;
	assert_int_equal(id, 99);
	ids[16] = add(&map, &objects[16]);
	for (uint32_t i = 0; i < 17; i++)
		assert_ptr_equal(rx_idmap_remove(&map, ids[i]), &objects[i]);
	rx_idmap_deinit(&map);
}

static void test_largest(void **state)
{
	struct rx_idmap map;
	uint64_t last = 0;
	uint64_t id = 0;

	(void)state;
	rx_idmap_init(&map, RX_IDMAP_MAX_ENTRIES);
	for (uint32_t i = 0; i < RX_IDMAP_MAX_ENTRIES; i++)
		last = add(&map, i + 1 == RX_IDMAP_MAX_ENTRIES ? &objects[1] : &objects[0]);
	assert_int_equal(rx_idmap_add(&map, &objects[0], &id), -ENOSPC);
	assert_ptr_equal(rx_idmap_find_short(&map, rx_idmap_short(last)), &objects[1]);
	assert_null(rx_idmap_find_short(&map, UINT32_MAX));
	/* From the id just removed: starting over each time would be quadratic. */
	for (id = 0; rx_idmap_next(&map, id, &id);)
		assert_non_null(rx_idmap_remove(&map, id));
	rx_idmap_deinit(&map);
}

static void test_next(void **state)
{
	struct rx_idmap map;
	uint64_t ids[50];
	uint64_t id = 0;
	uint32_t n = 0;

	(void)state;
	rx_idmap_init(&map, 50);
	assert_null(rx_idmap_next(&map, 0, &id));
	for (uint32_t i = 0; i < 50; i++)
		ids[i] = add(&map, &objects[i]);
	/* Odd ones go, and may go while they are visited. */
	for (const int *o = NULL; (o = rx_idmap_next(&map, id, &id)) != NULL;) {
		assert_ptr_equal(rx_idmap_find(&map, id), o);
		if ((o - objects) & 1)
			assert_ptr_equal(rx_idmap_remove(&map, id), o);
	}
	id = 0;
	for (const int *o = NULL; (o = rx_idmap_next(&map, id, &id)) != NULL; n++)
		assert_ptr_equal(o, &objects[2 * n]);
	assert_int_equal(n, 25);
	assert_null(rx_idmap_next(&map, UINT64_MAX, &id));
	for (uint32_t i = 0; i < 50; i += 2)
		assert_non_null(rx_idmap_remove(&map, ids[i]));
	rx_idmap_deinit(&map);
}

struct shadow {
	uint64_t id;
	void *object;
};

/* Random use against a table that does it the slow way. */
static void test_random(void **state)
{
	static struct shadow live[300];
	static uint64_t dead[1000];
	struct rx_idmap map;
	uint32_t n_live = 0;
	uint32_t n_dead = 0;

	(void)state;
	srandom(1);
	rx_idmap_init(&map, RX_ARRAY_SIZE(live));
	for (uint32_t round = 0; round < 100000; round++) {
		uint32_t pick = (uint32_t)random() % RX_ARRAY_SIZE(live);

		if (pick >= n_live && n_live < RX_ARRAY_SIZE(live)) {
			live[n_live].object = &objects[pick];
			live[n_live].id = add(&map, &objects[pick]);
			n_live++;
		} else if (pick < n_live) {
			assert_ptr_equal(rx_idmap_remove(&map, live[pick].id), live[pick].object);
			dead[n_dead++ % RX_ARRAY_SIZE(dead)] = live[pick].id;
			live[pick] = live[--n_live];
		}
		assert_int_equal(map.n_used, n_live);
		assert_null(rx_idmap_find(&map, dead[(uint32_t)random() % RX_ARRAY_SIZE(dead)]));
	}
	while (n_live > 0) {
		n_live--;
		assert_ptr_equal(rx_idmap_find(&map, live[n_live].id), live[n_live].object);
		assert_ptr_equal(rx_idmap_remove(&map, live[n_live].id), live[n_live].object);
	}
	rx_idmap_deinit(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add_find_remove),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_short_generation_wraps),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_largest),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_random),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
