/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mxfp8_golden.h"

#define MIN_LINES 200 /* fewer, and the file is not what it should be */

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

static void parse(const char *line, struct mx_golden *v)
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

void mx_golden_in(enum rx_mx_format format, void (*check)(const struct mx_golden *golden))
{
	const char *name = format == RX_MX_INT8 ? "mxint8" : "mxfp8";
	const char *srcdir = getenv("RCCLX_SRCDIR");
	char path[4096];
	char line[2048];
	unsigned n_lines = 0;
	FILE *file = NULL;

	(void)snprintf(
		path, sizeof(path), "%s/tests/unit/%s_vectors.txt", srcdir ? srcdir : ".", name);
	file = fopen(path, "re");
	if (!file)
		fail_msg("%s: not found; RCCLX_SRCDIR has to be the folder of the sources", path);
	while (fgets(line, sizeof(line), file)) {
		struct mx_golden golden = {0};

		if (line[0] == '#')
			continue;
		parse(line, &golden);
		check(&golden);
		n_lines++;
	}
	(void)fclose(file);
	assert_true(n_lines >= MIN_LINES);
}

void mx_golden_each(void (*check)(const struct mx_golden *golden))
{
	mx_golden_in(RX_MX_FP8, check);
}
