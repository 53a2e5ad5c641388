/* SPDX-License-Identifier: MIT */
/* rcclxctl explain and tune: rules that agree with the plan, ranges, choices, files. */
#include "../../client/ctl/explain.h"
#include "../../client/ctl/number.h"
#include "../../client/ctl/tune_file.h"
#include "../../client/ctl/tune_sweep.h"
#include "../../shm/rx_fabric_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A table in which every threshold lies somewhere else for each collective. */
static struct rx_tuning_entry entry_of(uint32_t i)
{
	static const struct rx_tuning_entry entries[] = {
		{.flat_max = 4096,
			.flat_max_shared = 1000,
			.chunk = 8192,
			.direct_min = 2048,
			.stream_min = 16384,
			.single_min = 3000},
		{.flat_max = 0, .flat_max_shared = 50, .chunk = 1024, .stream_min = INT64_MAX},
		{.flat_max = RX_FLAT_BYTES,
			.flat_max_shared = 97,
			.chunk = RX_CHUNK_BYTES,
			.direct_min = INT64_MAX,
			.single_min = UINT32_MAX},
		{.flat_max = 300, .flat_max_shared = 300, .direct_min = 300, .stream_min = 300},
		{.flat_max = 1000, .direct_min = 1, .stream_min = 1},
	};

	return entries[i % RX_ARRAY_SIZE(entries)];
}

#define N_ENTRIES 5u

static bool holds(uint64_t bytes, const char *relation, uint64_t value)
{
	if (strcmp(relation, "<=") == 0)
		return bytes <= value;
	if (strcmp(relation, ">") == 0)
		return bytes > value;
	if (strcmp(relation, ">=") == 0)
		return bytes >= value;
	return strcmp(relation, "<") == 0 && bytes < value;
}

static const struct explain_precision exact;
static const struct explain_precision switched_on = {.on = true};

/* What is named as the reason is true, and is a reason for this algorithm. */
static void check_rule(const struct rx_plan_query *query, const struct rx_tuning_entry *entry)
{
	struct explanation what = explain(query, &exact, entry);
	enum explain_threshold flat =
		query->cores_shared ? EXPLAIN_FLAT_MAX_SHARED : EXPLAIN_FLAT_MAX;

	if (what.decided_by != EXPLAIN_NONE)
		assert_true(
			holds(what.bytes, what.relation, explain_value(entry, what.decided_by)));
	else
		assert_true(*what.reason);
	if (what.by_daemon)
		return;
	switch (what.plan.algorithm) {
	case RX_ALG_TINY:
		assert_true(what.bytes <= RX_ENTRY_PAYLOAD);
		break;
	case RX_ALG_FLAT:
		assert_int_equal(what.decided_by, flat);
		break;
	case RX_ALG_DIRECT:
		assert_int_equal(what.decided_by, EXPLAIN_DIRECT_MIN);
		assert_true(query->registered);
		break;
	case RX_ALG_SINGLE:
		assert_int_equal(what.decided_by, EXPLAIN_SINGLE_MIN);
		assert_true(query->reachable);
		break;
	default:
		assert_true(what.decided_by != EXPLAIN_NONE || query->coll == RX_ALL_TO_ALL_V);
		break;
	}
}

static void test_rules_hold(void **state)
{
	(void)state;
	for (uint32_t coll = 1; coll < RX_COLL_N; coll++)
		for (uint32_t e = 0; e < N_ENTRIES; e++)
			for (uint32_t bits = 0; bits < 8; bits++)
				for (uint64_t count = 0; count < 40000; count += 1 + count / 50) {
					struct rx_tuning_entry entry = entry_of(e);
					struct rx_plan_query query = {.coll = coll,
						.dtype = RX_FLOAT16,
						.n_ranks = 3,
						.count = count,
						.registered = bits & 1,
						.reachable = bits & 4,
						.cores_shared = bits & 2};

					check_rule(&query, &entry);
				}
}

static bool same_plan(const struct explanation *a, const struct explanation *b)
{
	return (a->by_daemon && b->by_daemon) ||
	       (a->low == b->low && a->plan.algorithm == b->plan.algorithm &&
		       a->plan.stream == b->plan.stream);
}

/* Ranges cover all counts, each count has the plan of its range, neighbours differ. */
static void check_ranges(const struct rx_plan_query *query,
	const struct explain_precision *precision, const struct rx_tuning_entry *entry,
	uint64_t last)
{
	struct explain_range ranges[EXPLAIN_RANGES_MAX];
	size_t n = explain_ranges(query, precision, entry, last, ranges);
	size_t at = 0;

	assert_in_range(n, 1, EXPLAIN_RANGES_MAX);
	assert_int_equal(ranges[0].first, 1);
	assert_int_equal(ranges[n - 1].last, last);
	for (size_t i = 1; i < n; i++)
		assert_int_equal(ranges[i].first, ranges[i - 1].last + 1);
	for (uint64_t count = 1; count <= last; count++) {
		struct rx_plan_query one = *query;
		struct explanation what;

		at += count > ranges[at].last;
		one.count = count;
		what = explain(&one, precision, entry);
		assert_true(same_plan(&what, &ranges[at].what));
	}
}

/* The reason named for a precision is true, over everything that can be asked. */
static void check_precision(const struct rx_plan_query *query,
	const struct explain_precision *precision, const struct rx_tuning_entry *entry)
{
	struct explanation what = explain(query, precision, entry);
	bool has_type = query->dtype == RX_FLOAT32 || query->dtype == RX_FLOAT16 ||
			query->dtype == RX_BFLOAT16;
	bool has_op = !rx_coll_reduces(query->coll) || query->op == RX_SUM || query->op == RX_AVG;
	bool asked = precision->request >= RX_PRECISION_FP8;
	bool int8 = asked ? precision->request == RX_PRECISION_INT8 : precision->int8;

	assert_true(!what.low || (has_type && has_op && what.plan.algorithm == RX_ALG_STAGED));
	if (what.low || what.why_precision == RX_WHY_IF_LARGE)
		assert_int_equal(what.format, int8 ? RX_MX_INT8 : RX_MX_FP8);
	switch (what.why_precision) {
	case RX_WHY_COLL:
		assert_true(query->coll == RX_BROADCAST || query->coll == RX_REDUCE ||
			    query->coll == RX_GATHER || query->coll == RX_SCATTER ||
			    query->coll == RX_SEND || query->coll == RX_RECV);
		break;
	case RX_WHY_DTYPE:
		assert_false(has_type);
		break;
	case RX_WHY_OP:
		assert_false(has_op);
		break;
	case RX_WHY_ONE_RANK:
		assert_int_equal(query->n_ranks, 1);
		break;
	case RX_WHY_EXACT:
		assert_int_equal(precision->request, RX_PRECISION_EXACT);
		break;
	case RX_WHY_OFF:
		assert_false(precision->on || asked);
		break;
	case RX_WHY_REQUESTED:
		assert_true(asked && what.low);
		break;
	case RX_WHY_IF_LARGE:
		assert_int_equal(query->coll, RX_ALL_TO_ALL_V);
		break;
	default:
		assert_true(precision->on && !asked);
		assert_int_equal(what.why_precision, what.low ? RX_WHY_LARGE : RX_WHY_SMALL);
		assert_int_equal(what.precision_bytes >= entry->low_precision_min, what.low);
		break;
	}
	assert_true(*explain_why(what.why_precision) || what.why_precision == RX_WHY_LARGE ||
		    what.why_precision == RX_WHY_SMALL);
}

static void test_precision(void **state)
{
	const struct rx_tuning_entry entry = {.flat_max = 4096, .low_precision_min = 5000};
	uint32_t n_low = 0;

	(void)state;
	for (uint32_t i = 0; i < RX_COLL_N * RX_DTYPE_N * RX_REDOP_N * 4 * 4 * 3; i++) {
		uint32_t rest = i / RX_COLL_N;
		struct rx_plan_query query = {.coll = i % RX_COLL_N, .dtype = rest % RX_DTYPE_N};
		struct explain_precision precision = {0};

		rest /= RX_DTYPE_N;
		query.op = rest % RX_REDOP_N;
		rest /= RX_REDOP_N;
		precision.request = rest % 4;
		rest /= 4;
		precision.on = rest % 2;
		precision.int8 = rest / 2 % 2;
		query.n_ranks = rest / 4 + 1;
		if (query.coll == RX_BARRIER)
			continue;
		for (query.count = 100; query.count < 10000; query.count += 411) {
			check_precision(&query, &precision, &entry);
			n_low += explain(&query, &precision, &entry).low;
		}
	}
	assert_true(n_low > 1000);
}

static void test_ranges(void **state)
{
	(void)state;
	for (uint32_t coll = 1; coll < RX_COLL_N; coll++)
		for (uint32_t e = 0; e < N_ENTRIES; e++)
			for (uint32_t bits = 0; bits < 8; bits++) {
				struct rx_tuning_entry entry = entry_of(e);
				struct rx_plan_query query = {.coll = coll,
					.dtype = bits & 1 ? RX_INT8 : RX_FLOAT64,
					.n_ranks = 5,
					.registered = bits & 1,
					.reachable = bits & 4,
					.cores_shared = bits & 2};

				check_ranges(&query, &exact, &entry, 1);
				check_ranges(&query, &exact, &entry, 20000);
				query.dtype = RX_BFLOAT16;
				entry.low_precision_min = 777 * (e + 1);
				check_ranges(&query, &switched_on, &entry, 20000);
			}
}

/* By size: tiny, then flat, then staged or direct, and never back. */
static void test_order_of_algorithms(void **state)
{
	(void)state;
	for (uint32_t coll = 1; coll < RX_COLL_N; coll++)
		for (uint32_t c = 0; c < RX_TUNING_CLASSES; c++)
			for (uint32_t bits = 0; bits < 8; bits++) {
				struct rx_plan_query query = {.coll = coll,
					.dtype = RX_FLOAT32,
					.n_ranks = rx_tuning_class_max(c),
					.registered = bits & 1,
					.reachable = bits & 4,
					.cores_shared = bits & 2};
				const struct rx_tuning_entry *entry =
					rx_tuning_for(rx_tuning_default(), coll, query.n_ranks);
				struct explain_range ranges[EXPLAIN_RANGES_MAX];
				size_t n = explain_ranges(&query, &exact, entry, 1u << 28, ranges);

				for (size_t i = 1; i < n; i++) {
					assert_true(ranges[i].what.plan.algorithm >=
						    ranges[i - 1].what.plan.algorithm);
					assert_true(ranges[i].what.plan.stream >=
						    ranges[i - 1].what.plan.stream);
				}
			}
}

static void test_query_ok(void **state)
{
	struct rx_plan_query query = {
		.coll = RX_ALL_TO_ALL, .dtype = RX_FLOAT64, .n_ranks = 64, .count = 1ull << 54};

	(void)state;
	assert_true(explain_query_ok(&query));
	query.count = 1ull << 55;
	assert_false(explain_query_ok(&query));
	query.coll = RX_ALL_REDUCE;
	assert_true(explain_query_ok(&query));
	query.dtype = RX_DTYPE_N;
	assert_false(explain_query_ok(&query));
}

static void test_numbers(void **state)
{
	uint64_t n = 77;

	(void)state;
	assert_true(number_parse("64", 1, 64, &n) && n == 64);
	assert_true(number_parse("3k", 0, UINT64_MAX, &n) && n == 3072);
	assert_true(number_parse("2G", 0, UINT64_MAX, &n) && n == 2ull << 30);
	assert_false(number_parse("65", 1, 64, &n));
	assert_false(number_parse("0", 1, 64, &n));
	assert_false(number_parse("-1", 0, UINT64_MAX, &n));
	assert_false(number_parse("", 0, UINT64_MAX, &n));
	assert_false(number_parse("1x", 0, UINT64_MAX, &n));
	assert_false(number_parse("1KK", 0, UINT64_MAX, &n));
	assert_false(number_parse("99999999999999999999", 0, UINT64_MAX, &n));
	assert_false(number_parse("18446744073709551615G", 0, UINT64_MAX, &n));
	assert_int_equal(n, 2ull << 30);
}

static void test_crossing(void **state)
{
	static const double rising[] = {1, 2, 4, 8};
	static const double level[] = {3, 3, 3, 3};

	(void)state;
	assert_int_equal(tune_crossing(rising, level, 4, 0), 2);
	assert_int_equal(tune_crossing(level, rising, 4, 0), 4 * (1 * 2 * 4 * 8 > 3 * 3 * 3 * 3));
	/* As good as: what is there stays. */
	assert_int_equal(tune_crossing(level, level, 4, 3), 3);
	assert_int_equal(tune_crossing(rising, level, 2, 2), 2);
}

static void test_median(void **state)
{
	double odd[] = {5, 1, 3};
	double even[] = {4, 1, 2, 100};

	(void)state;
	assert_true(tune_median(odd, 3) == 3);
	assert_true(tune_median(even, 4) == 3);
}

static void test_file(void **state)
{
	struct tune_result *result = calloc(1, sizeof(*result));
	char path[] = "/tmp/rcclx-tune-file-XXXXXX";
	char text[512] = "";
	int fd = mkstemp(path);
	FILE *in = NULL;

	(void)state;
	assert_non_null(result);
	assert_true(fd >= 0);
	(void)close(fd);
	tune_file_set(&result->table.entries[RX_GATHER][2], EXPLAIN_CHUNK, 4096);
	tune_file_set(&result->table.entries[RX_GATHER][2], EXPLAIN_DIRECT_MIN, INT64_MAX);
	result->set[RX_GATHER][2][EXPLAIN_CHUNK] = true;
	result->set[RX_GATHER][2][EXPLAIN_DIRECT_MIN] = true;
	assert_true(tune_file_write(path, "why", result));
	in = fopen(path, "re");
	assert_non_null(in);
	assert_true(fread(text, 1, sizeof(text) - 1, in) > 0);
	(void)fclose(in);
	assert_string_equal(text, "# why\n"
				  "gather = {\n"
				  "    ranks_8 = {\n"
				  "        chunk = 4096;\n"
				  "        direct_min = 9223372036854775807L;\n"
				  "    };\n"
				  "};\n");
	(void)unlink(path);
	assert_false(tune_file_write("/nowhere/at/all.conf", "why", result));
	free(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules_hold),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_precision),
		cmocka_unit_test(test_order_of_algorithms),
		cmocka_unit_test(test_query_ok),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_crossing),
		cmocka_unit_test(test_median),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
