/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../kernels/coll_types.h"

static void test_every_name_parses_back(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RX_DTYPE_N; i++)
		assert_int_equal(rx_dtype_parse(rx_dtype_name(i)), i);
	for (uint32_t i = 0; i < RX_REDOP_N; i++)
		assert_int_equal(rx_redop_parse(rx_redop_name(i)), i);
	for (uint32_t i = 0; i < RX_COLL_N; i++)
		assert_int_equal(rx_coll_parse(rx_coll_name(i)), i);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(rx_dtype_name(RX_FLOAT32), "float32");
	assert_string_equal(rx_redop_name(RX_SUM), "sum");
	assert_string_equal(rx_coll_name(RX_ALL_REDUCE), "all_reduce");
	assert_string_equal(rx_dtype_name(RX_DTYPE_N), "?");
	assert_string_equal(rx_redop_name(UINT32_MAX), "?");
	assert_string_equal(rx_coll_name(RX_COLL_N), "?");
}

static void test_aliases(void **state)
{
	(void)state;
	assert_int_equal(rx_dtype_parse("float"), RX_FLOAT32);
	assert_int_equal(rx_dtype_parse("half"), RX_FLOAT16);
	assert_int_equal(rx_dtype_parse("bf16"), RX_BFLOAT16);
	assert_int_equal(rx_dtype_parse("double"), RX_FLOAT64);
	assert_int_equal(rx_dtype_parse("int"), RX_INT32);
	assert_int_equal(rx_dtype_parse("fp8_e4m3"), RX_FLOAT8E4M3);
	assert_int_equal(rx_dtype_parse("fp8_e5m2"), RX_FLOAT8E5M2);
	assert_int_equal(rx_redop_parse("premulsum"), RX_PREMUL_SUM);
	assert_int_equal(rx_redop_parse("mean"), RX_AVG);
	assert_int_equal(rx_coll_parse("allreduce"), RX_ALL_REDUCE);
	assert_int_equal(rx_coll_parse("alltoall"), RX_ALL_TO_ALL);
	assert_int_equal(rx_coll_parse("alltoallv"), RX_ALL_TO_ALL_V);
	assert_int_equal(rx_coll_parse("reducescatter_v"), RX_REDUCE_SCATTER_V);
	assert_int_equal(rx_coll_parse("bcast"), RX_BROADCAST);
}

static void test_strangers(void **state)
{
	static const char *const names[] = {"", "_", "?", "float31", "allreduc", "all_reduces",
		"al_lreduce", "allreduce_", "SUM", "sum ", "all_gather_v_"};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(names); i++) {
		assert_int_equal(rx_dtype_parse(names[i]), -1);
		assert_int_equal(rx_redop_parse(names[i]), -1);
		assert_int_equal(rx_coll_parse(names[i]), -1);
	}
}

static void test_properties(void **state)
{
	static const uint32_t sizes[RX_DTYPE_N] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
	uint32_t n_reducing = 0;

	(void)state;
	for (uint32_t i = 0; i < RX_DTYPE_N; i++) {
		assert_int_equal(rx_dtype_size(i), sizes[i]);
		assert_int_equal(
			rx_dtype_is_float(i), strncmp(rx_dtype_name(i), "float", 5) == 0 ||
						      strcmp(rx_dtype_name(i), "bfloat16") == 0);
	}
	assert_int_equal(rx_dtype_size(RX_DTYPE_N), 0);
	assert_false(rx_dtype_is_float(RX_DTYPE_N));
	for (uint32_t i = 0; i < RX_COLL_N; i++)
		n_reducing += rx_coll_reduces(i);
	assert_int_equal(n_reducing, 4);
	assert_true(rx_coll_reduces(RX_ALL_REDUCE));
	assert_true(rx_coll_reduces(RX_REDUCE));
	assert_true(rx_coll_reduces(RX_REDUCE_SCATTER));
	assert_true(rx_coll_reduces(RX_REDUCE_SCATTER_V));
	assert_false(rx_coll_reduces(RX_COLL_N));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_name_parses_back),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_properties),
	};

	return cmocka_run_group_tests_name("coll_types", tests, NULL, NULL);
}
