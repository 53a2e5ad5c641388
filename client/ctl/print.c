/* SPDX-License-Identifier: MIT */
#include "print.h"

#include "../../shm/rx_clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *print_count(uint64_t count, char cell[PRINT_CELL])
{
	if (count == UINT64_MAX)
		(void)snprintf(cell, PRINT_CELL, "unlimited");
	else
		(void)snprintf(cell, PRINT_CELL, "%" PRIu64, count);
	return cell;
}

const char *print_bytes(uint64_t bytes, char cell[PRINT_CELL])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes == UINT64_MAX)
		return print_count(bytes, cell);
	/* 1023.95 would be printed as 1024.0 of the smaller unit. */
	for (; value >= (unit ? 1023.95 : 1024) && unit + 1 < RX_ARRAY_SIZE(units); unit++)
		value /= 1024;
	(void)snprintf(cell, PRINT_CELL, "%.*f %s", unit > 0, value, units[unit]);
	return cell;
}

static void two_units(
	char cell[PRINT_CELL], uint64_t value, uint64_t ratio, const char *large, const char *small)
{
	(void)snprintf(cell, PRINT_CELL, "%" PRIu64 " %s %" PRIu64 " %s", value / ratio, large,
		value % ratio, small);
}

const char *print_duration(uint64_t ns, char cell[PRINT_CELL])
{
	uint64_t s = ns / RX_NS_PER_SEC;

	if (s < 1)
		(void)snprintf(cell, PRINT_CELL, "%" PRIu64 " ms", (uint64_t)(ns / RX_NS_PER_MS));
	else if (s < 60)
		(void)snprintf(cell, PRINT_CELL, "%" PRIu64 ".%" PRIu64 " s", s,
			(uint64_t)(ns / (RX_NS_PER_SEC / 10) % 10));
	else if (s < 3600)
		two_units(cell, s, 60, "min", "s");
	else if (s < 86400)
		two_units(cell, s / 60, 60, "h", "min");
	else
		two_units(cell, s / 3600, 24, "d", "h");
	return cell;
}

static char *cell_at(const struct table *table, size_t row, size_t column)
{
	return table->cells + (row * table->n_columns + column) * PRINT_CELL;
}

void table_init(struct table *table, const char *const *headings)
{
	const char *cells[TABLE_COLUMNS] = {NULL};

	*table = (struct table){0};
	for (size_t c = 0; headings[c] && c < TABLE_COLUMNS; c++) {
		table->right[c] = headings[c][0] == '>';
		cells[c] = headings[c] + table->right[c];
		table->n_columns++;
	}
	table_add(table, cells);
}

void table_add(struct table *table, const char *const *cells)
{
	size_t row_bytes = table->n_columns * PRINT_CELL;
	char *grown = NULL;

	if (!table->failed)
		grown = reallocarray(table->cells, table->n_rows + 1, row_bytes);
	if (!grown) {
		table->failed = true;
		return;
	}
	table->cells = grown;
	table->n_rows++;
	for (size_t c = 0; c < table->n_columns; c++)
		(void)snprintf(cell_at(table, table->n_rows - 1, c), PRINT_CELL, "%s", cells[c]);
}

bool table_print(const struct table *table, const char *indent, FILE *out)
{
	int widths[TABLE_COLUMNS] = {0};

	if (table->failed)
		return false;
	for (size_t r = 0; r < table->n_rows; r++) {
		for (size_t c = 0; c < table->n_columns; c++) {
			int width = (int)strlen(cell_at(table, r, c));

			widths[c] = width > widths[c] ? width : widths[c];
		}
	}
	for (size_t r = 0; r < table->n_rows; r++) {
		fputs(indent, out);
		for (size_t c = 0; c < table->n_columns; c++) {
			bool last = c + 1 == table->n_columns;
			int width = last && !table->right[c] ? 0 : widths[c];

			fprintf(out, "%*s%s", table->right[c] ? width : -width,
				cell_at(table, r, c), last ? "\n" : "  ");
		}
	}
	return true;
}

void table_deinit(struct table *table)
{
	free(table->cells);
	*table = (struct table){0};
}

json_t *json_count(uint64_t count)
{
	return count == UINT64_MAX ? json_null() : json_integer((json_int_t)count);
}

bool json_print(json_t *json)
{
	bool ok = json && json_dumpf(json, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF;

	json_decref(json);
	return ok;
}
