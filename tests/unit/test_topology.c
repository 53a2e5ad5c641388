/* SPDX-License-Identifier: MIT */
/* Places of ranks, on nodes that hwloc makes up from a description. */
#include "../../daemon/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* CPU 0, 1 on core 0; core 0, 1 below L3 0 of package 0; 16 CPUs. */
#define TWO_PACKAGES "package:2 numa:1 l3:2 l2:2 core:1 pu:2"

static struct topology *make(const char *description)
{
	struct topology *topology = NULL;

	assert_int_equal(topology_new(description, &topology), 0);
	return topology;
}

static struct cpu_mask cpus(uint32_t first, uint32_t last)
{
	uint8_t bytes[RX_CPUS_BYTES] = {0};

	for (uint32_t cpu = first; cpu <= last; cpu++)
		bytes[cpu / 8] = (uint8_t)(bytes[cpu / 8] | 1u << cpu % 8);
	return topology_mask(bytes, sizeof(bytes));
}

static void test_counts(void **state)
{
	struct topology *topology = make(TWO_PACKAGES);
	struct rx_msg_admin_topology_reply reply = {0};
	struct rx_topology_object object;
	char text[TOPOLOGY_CPUS_TEXT];
	uint64_t n = 0;

	(void)state;
	topology_counts(topology, &reply);
	assert_int_equal(reply.n_packages, 2);
	assert_int_equal(reply.n_numa, 2);
	assert_int_equal(reply.n_l3, 4);
	assert_int_equal(reply.n_l2, 8);
	assert_int_equal(reply.n_cores, 8);
	assert_int_equal(reply.n_pus, 16);
	while (topology_object(topology, n, &object, text)) {
		if (strcmp(object.kind, "package") == 0)
			assert_int_equal(object.n_cores, 4);
		n++;
	}
	assert_int_equal(n, 2 + 2 + 4 + 8 + 8);
	assert_true(topology_object(topology, 1, &object, text));
	assert_string_equal(object.kind, "package");
	assert_int_equal(object.index, 1);
	assert_string_equal(object.cpus, "8-15");
	topology = topology_free(topology);
	assert_null(topology);
}

struct place_case {
	uint32_t ranges[4][2]; /* of CPUs, for each rank */
	uint32_t n_ranks;
	uint32_t n_cores;
	bool cores_shared;
	const char *share;
};

static void test_places(void **state)
{
	static const struct place_case cases[] = {
		/* both threads of a core: one core, two ranks */
		{{{0, 0}, {1, 1}}, 2, 1, true, "core"},
		{{{0, 0}, {2, 2}}, 2, 2, false, "l3"},
		{{{0, 1}}, 1, 1, false, "core"},
		{{{0, 0}, {4, 4}}, 2, 2, false, "numa"},
		{{{0, 0}, {8, 8}}, 2, 2, false, "node"},
		{{{0, 15}, {0, 15}, {0, 15}, {0, 15}}, 4, 8, false, "node"},
		/* four cores for three ranks, but two of them are bound to one */
		{{{0, 0}, {0, 1}, {0, 7}}, 3, 4, true, "numa"},
		/* enough cores, if the first rank moves away from the second one's */
		{{{0, 3}, {0, 1}}, 2, 2, false, "l3"},
		{{{0, 3}, {0, 3}, {0, 3}}, 3, 2, true, "l3"},
		/* a chain: 2 must have core 0, so 1 core 1, so 0 core 2 */
		{{{0, 5}, {0, 3}, {0, 1}}, 3, 3, false, "numa"},
		/* CPUs that there are not do not count */
		{{{15, 40}, {14, 99}}, 2, 1, true, "core"},
	};
	struct topology *topology = make(TWO_PACKAGES);

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(cases); i++) {
		const struct place_case *c = &cases[i];
		struct cpu_mask masks[4];
		struct topology_place place;

		for (uint32_t rank = 0; rank < c->n_ranks; rank++)
			masks[rank] = cpus(c->ranges[rank][0], c->ranges[rank][1]);
		place = topology_place(topology, masks, c->n_ranks);
		if (place.n_cores != c->n_cores || place.cores_shared != c->cores_shared ||
			strcmp(topology_share_name(place.share), c->share) != 0)
			fail_msg("case %zu: %u cores, shared %d, in one %s", i, place.n_cores,
				place.cores_shared, topology_share_name(place.share));
	}
	(void)topology_free(topology);
}

static void test_unknown_mask_is_anywhere(void **state)
{
	struct topology *topology = make(TWO_PACKAGES);
	struct cpu_mask masks[RX_MAX_RANKS];
	struct topology_place place;

	(void)state;
	memset(masks, 0, sizeof(masks));
	place = topology_place(topology, masks, 8);
	assert_int_equal(place.n_cores, 8);
	assert_false(place.cores_shared);
	assert_int_equal(place.share, TOPOLOGY_SHARE_NODE);
	assert_true(topology_place(topology, masks, 9).cores_shared);
	assert_true(topology_place(topology, masks, RX_MAX_RANKS).cores_shared);
	(void)topology_free(topology);
}

static void test_large(void **state)
{
	struct topology *topology = make("package:4 core:128 pu:2");
	struct cpu_mask masks[RX_MAX_RANKS];
	struct rx_topology_object object;
	char text[TOPOLOGY_CPUS_TEXT];

	(void)state;
	for (uint32_t rank = 0; rank < RX_MAX_RANKS; rank++)
		masks[rank] = cpus(0, 1023);
	assert_false(topology_place(topology, masks, RX_MAX_RANKS).cores_shared);
	assert_int_equal(topology_place(topology, masks, 1).n_cores, 512);
	assert_true(topology_object(topology, 3, &object, text));
	assert_string_equal(object.cpus, "768-1023");
	(void)topology_free(topology);
}

/* Each CPU by itself: a list that is longer than the text. */
static void test_lengthy_list(void **state)
{
	struct topology *topology = make("package:2 core:128 pu:2(indexes=2*256:256*2)");
	struct rx_topology_object object;
	char text[TOPOLOGY_CPUS_TEXT];

	(void)state;
	assert_true(topology_object(topology, 0, &object, text));
	assert_true(strlen(object.cpus) < sizeof(text));
	(void)topology_free(topology);
}

static void test_this_node(void **state)
{
	struct topology *topology = make(NULL);
	struct rx_msg_admin_topology_reply reply = {0};

	(void)state;
	topology_counts(topology, &reply);
	assert_true(reply.n_cores >= 1 && reply.n_pus >= reply.n_cores);
	(void)topology_free(topology);
}

static void test_bad_description(void **state)
{
	struct topology *topology = NULL;

	(void)state;
	assert_true(topology_new("nonsense", &topology) < 0);
	assert_null(topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_unknown_mask_is_anywhere),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_lengthy_list),
		cmocka_unit_test(test_this_node),
		cmocka_unit_test(test_bad_description),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
