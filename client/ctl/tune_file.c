/* SPDX-License-Identifier: MIT */
#include "tune_file.h"

#include "../../shm/rx_cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void tune_file_set(struct rx_tuning_entry *entry, enum explain_threshold threshold, uint64_t value)
{
	switch (threshold) {
	case EXPLAIN_FLAT_MAX:
		entry->flat_max = (uint32_t)value;
		break;
	case EXPLAIN_FLAT_MAX_SHARED:
		entry->flat_max_shared = (uint32_t)value;
		break;
	case EXPLAIN_CHUNK:
		entry->chunk = (uint32_t)value;
		break;
	case EXPLAIN_DIRECT_MIN:
		entry->direct_min = value;
		break;
	case EXPLAIN_STREAM_MIN:
		entry->stream_min = value;
		break;
	case EXPLAIN_LOW_PRECISION_MIN:
		entry->low_precision_min = (uint32_t)value;
		break;
	case EXPLAIN_SINGLE_MIN:
		entry->single_min = (uint32_t)value;
		break;
	case EXPLAIN_NONE:
	case _EXPLAIN_THRESHOLD_N:
		break;
	}
}

static bool any_set(const bool set[_EXPLAIN_THRESHOLD_N])
{
	for (size_t t = 0; t < _EXPLAIN_THRESHOLD_N; t++)
		if (set[t])
			return true;
	return false;
}

static void write_class(FILE *out, uint32_t ranks, const struct rx_tuning_entry *entry,
	const bool set[_EXPLAIN_THRESHOLD_N])
{
	fprintf(out, "    ranks_%u = {\n", ranks);
	for (uint32_t t = EXPLAIN_FLAT_MAX; t < _EXPLAIN_THRESHOLD_N; t++) {
		uint64_t value = explain_value(entry, (enum explain_threshold)t);

		if (set[t])
			fprintf(out, "        %s = %" PRIu64 "%s;\n",
				explain_threshold_name((enum explain_threshold)t), value,
				value > INT32_MAX ? "L" : "");
	}
	fprintf(out, "    };\n");
}

static void write_coll(FILE *out, uint32_t coll, const struct tune_result *result)
{
	bool any = false;

	for (uint32_t c = 0; c < RX_TUNING_CLASSES; c++)
		any |= any_set(result->set[coll][c]);
	if (!any)
		return;
	fprintf(out, "%s = {\n", rx_coll_name(coll));
	for (uint32_t c = 0; c < RX_TUNING_CLASSES; c++)
		if (any_set(result->set[coll][c]))
			write_class(out, rx_tuning_class_max(c), &result->table.entries[coll][c],
				result->set[coll][c]);
	fprintf(out, "};\n");
}

/* Closes @out. */
static bool finish(FILE *out, bool sync)
{
	bool ok = fflush(out) == 0 && ferror(out) == 0 && (!sync || fsync(fileno(out)) == 0);

	return (fclose(out) == 0) && ok;
}

bool tune_file_case(
	const char *path, uint32_t coll, uint32_t n_ranks, const struct rx_tuning_entry *entry)
{
	static const bool all[] = {false, true, true, true, true, true, true, true};
	FILE *out = fopen(path, "we");

	static_assert(RX_ARRAY_SIZE(all) == _EXPLAIN_THRESHOLD_N, "all but EXPLAIN_NONE");
	if (out) {
		fprintf(out, "%s = {\n", rx_coll_name(coll));
		write_class(out, rx_tuning_class_max(rx_tuning_class(n_ranks)), entry, all);
		fprintf(out, "};\n");
		if (finish(out, false))
			return true;
	}
	fprintf(stderr, "rcclxctl: tune: %s: %m\n", path);
	return false;
}

bool tune_file_write(const char *path, const char *heading, const struct tune_result *result)
{
	RX_FREE char *temporary = NULL;
	FILE *out = NULL;
	int fd = -1;
	bool ok = false;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0) {
		temporary = NULL;
		return false;
	}
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd >= 0 && fchmod(fd, 0644) == 0)
		out = fdopen(fd, "w");
	if (out) {
		fprintf(out, "# %s\n", heading);
		for (uint32_t coll = 0; coll < RX_TUNING_COLLS; coll++)
			write_coll(out, coll, result);
		ok = finish(out, true) && rename(temporary, path) == 0;
	} else if (fd >= 0) {
		(void)close(fd);
	}
	if (ok)
		return true;
	fprintf(stderr, "rcclxctl: tune: %s: %m\n", path);
	if (fd >= 0)
		(void)unlink(temporary);
	return false;
}
