/* SPDX-License-Identifier: MIT */
/*
 * The golden vectors, made by a program that shares nothing with this one (mxfp8_vectors.py says
 * what a line is), in every instruction set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mxfp8_ref.h"

#define MIN_LINES 200 /* fewer, and the file is not what it should be */

struct vector {
	uint32_t dtype;
	uint32_t n;
	uint8_t input[RX_MX_BLOCK * 4];
	uint8_t scale;
	uint8_t elems[RX_MX_BLOCK];
	uint8_t output[RX_MX_BLOCK * 4];
};

/* Numbers in hexadecimal with commas between them, as values of @size bytes; how many. */
static uint32_t parse_values(char *text, uint8_t *to, uint32_t size)
{
	uint32_t n = 0;

	for (char *at = text; *at; n++) {
		unsigned long bits = strtoul(at, &at, 16);

		assert_true(n < RX_MX_BLOCK && (*at == ',' || *at == '\0'));
		memcpy(to + (size_t)n * size, &bits, size);
		if (*at == ',')
			at++;
	}
	return n;
}

static void parse(const char *line, struct vector *v)
{
	char name[16];
	char input[512];
	char elems[80];
	char output[512];
	unsigned scale = 0;
	uint32_t size = 0;

	assert_int_equal(
		sscanf(line, "%15s %511s %x %79s %511s", name, input, &scale, elems, output), 5);
	v->dtype = (uint32_t)rx_dtype_parse(name);
	assert_true(rx_mx_takes(v->dtype));
	size = rx_dtype_size(v->dtype);
	v->scale = (uint8_t)scale;
	v->n = parse_values(input, v->input, size);
	assert_int_equal(parse_values(output, v->output, size), v->n);
	assert_int_equal(strlen(elems), 2 * v->n);
	for (uint32_t i = 0; i < v->n; i++) {
		unsigned byte = 0;

		assert_int_equal(sscanf(elems + 2 * (size_t)i, "%2x", &byte), 1);
		v->elems[i] = (uint8_t)byte;
	}
}

static void check(const struct rx_mx_table *table, const struct vector *v)
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

static void test_vectors(void **state)
{
	const char *srcdir = getenv("RCCLX_SRCDIR");
	char path[4096];
	char line[2048];
	unsigned n_lines = 0;
	FILE *file = NULL;

	(void)state;
	(void)snprintf(
		path, sizeof(path), "%s/tests/unit/mxfp8_vectors.txt", srcdir ? srcdir : ".");
	file = fopen(path, "re");
	if (!file)
		fail_msg("%s: not found; RCCLX_SRCDIR has to be the folder of the sources", path);
	while (fgets(line, sizeof(line), file)) {
		struct vector v = {0};

		if (line[0] == '#')
			continue;
		parse(line, &v);
		for (int isa = 0; isa < RX_ISA_N; isa++) {
			if (rx_mx_table_of((enum rx_isa)isa))
				check(rx_mx_table_of((enum rx_isa)isa), &v);
		}
		n_lines++;
	}
	(void)fclose(file);
	assert_true(n_lines >= MIN_LINES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
	};

	return cmocka_run_group_tests_name("mxfp8_vectors", tests, NULL, NULL);
}
