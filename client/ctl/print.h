/* SPDX-License-Identifier: MIT */
/* Text for people: sizes, durations, tables. JSON for programs: numbers that may be unlimited. */
#ifndef CTL_PRINT_H
#define CTL_PRINT_H

#include "../../shm/rx_base.h"

#include <jansson.h>
#include <stdio.h>

#define PRINT_CELL    96u
#define TABLE_COLUMNS 12u

/** print_bytes() - "512 B", "1.5 MiB", "unlimited" for UINT64_MAX */
const char *print_bytes(uint64_t bytes, char cell[PRINT_CELL]);

/** print_duration() - "250 ms", "3.2 s", "5 min 3 s", "2 h 10 min", "4 d 2 h" */
const char *print_duration(uint64_t ns, char cell[PRINT_CELL]);

/** print_count() - a plain number, "unlimited" for UINT64_MAX */
const char *print_count(uint64_t count, char cell[PRINT_CELL]);

struct table {
	size_t n_columns;
	bool right[TABLE_COLUMNS]; /* numbers are aligned to the right */
	char *cells;               /* n_rows * n_columns * PRINT_CELL */
	size_t n_rows;             /* the headings are the first */
	bool failed;               /* out of memory: rows are missing */
};

/**
 * table_init() - with a heading per column
 * @headings: NULL-terminated; one that starts with '>' is of a column of numbers
 */
void table_init(struct table *table, const char *const *headings);

/** table_add() - a row of n_columns texts; a text longer than a cell is cut */
void table_add(struct table *table, const char *const *cells);

/** table_print() - columns as wide as needed, each line after @indent; false: out of memory */
RX_WARN_UNUSED bool table_print(const struct table *table, const char *indent, FILE *out);

/** table_deinit() - free what it owns */
void table_deinit(struct table *table);

/** json_count() - integer; null for UINT64_MAX, which means no limit */
json_t *json_count(uint64_t count);

/** json_print() - on stdout, indented; takes the reference; false: it is NULL, or not written */
RX_WARN_UNUSED bool json_print(json_t *json);

#endif
