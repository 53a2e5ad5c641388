/* SPDX-License-Identifier: MIT */
/*
 * The golden vectors, made by a program that shares nothing with this one (mxfp8_vectors.py), in
 * every instruction set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mxfp8_golden.h"

static void check(const struct rx_mx_table *table, const struct mx_golden *v)
{
	uint32_t size = rx_dtype_size(v->dtype);
	uint8_t elems[RX_MX_BLOCK];
	uint8_t output[RX_MX_BLOCK * 4];
	uint8_t scale = 0;

	table->encode(elems, &scale, v->input, v->dtype, v->n, NULL);
	assert_int_equal(scale, v->scale);
	assert_memory_equal(elems, v->elems, v->n);
	table->decode(output, v->dtype, v->elems, &v->scale, v->n, false);
	assert_memory_equal(output, v->output, (size_t)v->n * size);
}

static void check_in(enum rx_mx_format format, const struct mx_golden *v)
{
	for (int isa = 0; isa < RX_ISA_N; isa++) {
		if (rx_mx_table_of(format, (enum rx_isa)isa))
			check(rx_mx_table_of(format, (enum rx_isa)isa), v);
	}
}

static void check_fp8(const struct mx_golden *v)
{
	check_in(RX_MX_FP8, v);
}

static void check_int8(const struct mx_golden *v)
{
	check_in(RX_MX_INT8, v);
}

static void test_fp8(void **state)
{
	(void)state;
	mx_golden_in(RX_MX_FP8, check_fp8);
}

static void test_int8(void **state)
{
	(void)state;
	mx_golden_in(RX_MX_INT8, check_int8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fp8),
		cmocka_unit_test(test_int8),
	};

	return cmocka_run_group_tests_name("mxfp8_vectors", tests, NULL, NULL);
}
