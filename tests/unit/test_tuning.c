/* SPDX-License-Identifier: MIT */
/* Tuning files: what is taken, what is refused and with which words, and the sources of values. */
#include "../../daemon/tuning.h"

#include "../../shm/rx_fabric_abi.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct tuning *compiled(void)
{
	struct tuning *tuning = NULL;
	struct config_error error;

	assert_int_equal(tuning_load(NULL, false, &tuning, &error), 0);
	return tuning;
}

static const char *source(
	const struct tuning *tuning, uint32_t coll, uint32_t n_ranks, enum tuning_value value)
{
	static char text[256];

	tuning_describe(tuning, coll, rx_tuning_class(n_ranks), value, text, sizeof(text));
	return text;
}

static void test_compiled(void **state)
{
	struct tuning *tuning = compiled();

	(void)state;
	assert_memory_equal(
		tuning->table.entries, rx_tuning_default()->entries, sizeof(tuning->table.entries));
	assert_int_equal(tuning->table.epoch, 1);
	assert_string_equal(source(tuning, RX_ALL_REDUCE, 2, TUNING_CHUNK), "compiled default");
	tuning = tuning_free(tuning);
	assert_null(tuning);
}

/* Each key of each class goes where it belongs, and nowhere else. */
static void test_every_key(void **state)
{
	static const char text[] = "broadcast = {\n"
				   "  ranks_4 = {\n"
				   "    flat_max = 101;\n"
				   "    flat_max_shared = 102;\n"
				   "    chunk = 2048;\n"
				   "    direct_min = 4294967296L;\n"
				   "    stream_min = 0x100;\n"
				   "    single_min = 4294967295L;\n"
				   "    device_flat_max = 103;\n"
				   "    device_tree_min = 104;\n"
				   "    device_slots_min = 105;\n"
				   "    device_push_min = 4294967296L;\n"
				   "  };\n"
				   "  ranks_64 = { chunk = 4096; };\n"
				   "};\n";
	struct tuning *tuning = compiled();
	struct tuning *plain = compiled();
	struct config_error error;
	struct rx_tuning_entry *entry = &tuning->table.entries[RX_BROADCAST][1];
	struct rx_device_tuning_entry *devices = &tuning->devices.entries[RX_BROADCAST][1];

	(void)state;
	assert_int_equal(tuning_take(tuning, text, "x.conf", &error), 0);
	assert_int_equal(entry->flat_max, 101);
	assert_int_equal(entry->flat_max_shared, 102);
	assert_int_equal(entry->chunk, 2048);
	assert_int_equal(entry->direct_min, 4294967296);
	assert_int_equal(entry->stream_min, 256);
	assert_int_equal(entry->single_min, UINT32_MAX);
	assert_int_equal(devices->values[RX_DEVICE_FLAT_MAX], 103);
	assert_int_equal(devices->values[RX_DEVICE_TREE_MIN], 104);
	assert_int_equal(devices->values[RX_DEVICE_SLOTS_MIN], 105);
	assert_int_equal(devices->values[RX_DEVICE_PUSH_MIN], 4294967296);
	assert_string_equal(
		source(tuning, RX_BROADCAST, 3, TUNING_DEVICE + RX_DEVICE_PUSH_MIN), "x.conf:12");
	assert_int_equal(tuning->table.entries[RX_BROADCAST][4].chunk, 4096);
	assert_string_equal(source(tuning, RX_BROADCAST, 3, TUNING_FLAT_MAX), "x.conf:3");
	assert_string_equal(source(tuning, RX_BROADCAST, 4, TUNING_STREAM_MIN), "x.conf:7");
	assert_string_equal(source(tuning, RX_BROADCAST, 4, TUNING_SINGLE_MIN), "x.conf:8");
	assert_string_equal(source(tuning, RX_BROADCAST, 17, TUNING_CHUNK), "x.conf:14");
	assert_string_equal(source(tuning, RX_BROADCAST, 17, TUNING_FLAT_MAX), "compiled default");
	assert_false(tuning_equal(tuning, plain));
	*entry = plain->table.entries[RX_BROADCAST][1];
	tuning->table.entries[RX_BROADCAST][4] = plain->table.entries[RX_BROADCAST][4];
	assert_false(tuning_equal(tuning, plain));
	*devices = plain->devices.entries[RX_BROADCAST][1];
	assert_true(tuning_equal(tuning, plain));
	(void)tuning_free(tuning);
	(void)tuning_free(plain);
}

/* "default" first, wherever it stands; a later file over an earlier one. */
static void test_order(void **state)
{
	struct tuning *tuning = compiled();
	struct config_error error;

	(void)state;
	assert_int_equal(tuning_take(tuning,
				 "reduce = { ranks_2 = { chunk = 1024; }; };\n"
				 "default = { ranks_2 = { chunk = 2048; flat_max = 7; }; };\n",
				 "a.conf", &error),
		0);
	assert_int_equal(tuning->table.entries[RX_REDUCE][0].chunk, 1024);
	assert_int_equal(tuning->table.entries[RX_REDUCE][0].flat_max, 7);
	assert_int_equal(tuning->table.entries[RX_GATHER][0].chunk, 2048);
	assert_string_equal(source(tuning, RX_REDUCE, 2, TUNING_CHUNK), "a.conf:1");
	assert_string_equal(source(tuning, RX_REDUCE, 2, TUNING_FLAT_MAX), "a.conf:2");
	assert_int_equal(tuning_take(tuning, "default = { ranks_2 = { chunk = 4096; }; };",
				 "b.conf", &error),
		0);
	assert_int_equal(tuning->table.entries[RX_REDUCE][0].chunk, 4096);
	assert_string_equal(source(tuning, RX_REDUCE, 2, TUNING_CHUNK), "b.conf:1");
	(void)tuning_free(tuning);
}

static void refuse(const char *text, const char *where, const char *what)
{
	struct tuning *tuning = compiled();
	struct config_error error = {""};

	assert_int_equal(tuning_take(tuning, text, "x.conf", &error), -EINVAL);
	if (strncmp(error.text, where, strlen(where)) != 0 || !strstr(error.text, what))
		print_error("%s\n", error.text);
	assert_memory_equal(error.text, where, strlen(where));
	assert_non_null(strstr(error.text, what));
	(void)tuning_free(tuning);
}

#define ONE(key) "all_reduce = {\n ranks_2 = {\n" key "};\n};\n"

static void test_refused(void **state)
{
	(void)state;
	refuse("\nall_reduces = { };\n", "x.conf:2: all_reduces: ", "collective");
	/* An alias would be a second name of the same thing. */
	refuse("allreduce = { };\n", "x.conf:1: allreduce: ", "collective");
	refuse("all_reduce = 5;\n", "x.conf:1: all_reduce: ", "expected a group");
	refuse("all_reduce = {\n ranks_3 = { };\n};\n", "x.conf:2: ranks_3: ", "ranks_64");
	refuse("all_reduce = {\n ranks_2 = 3;\n};\n", "x.conf:2: ranks_2: ", "expected a group");
	refuse(ONE("flat = 5;\n"), "x.conf:3: flat: ", "flat_max_shared");
	refuse(ONE("flat_max = 1.5;\n"), "x.conf:3: flat_max: ", "whole number");
	refuse(ONE("flat_max = \"1\";\n"), "x.conf:3: flat_max: ", "whole number");
	refuse(ONE("flat_max = -1;\n"), "x.conf:3: flat_max: ", "not -1");
	refuse(ONE("flat_max = 1000000;\n"), "x.conf:3: flat_max: ", "not 1000000");
	refuse(ONE("flat_max_shared = 1000000;\n"), "x.conf:3: flat_max_shared: ", "not 1000000");
	refuse(ONE("chunk = 0;\n"), "x.conf:3: chunk: ", "not 0");
	refuse(ONE("chunk = 1000000;\n"), "x.conf:3: chunk: ", "not 1000000");
	refuse(ONE("chunk = 4097;\n"), "x.conf:3: chunk: ", "multiple of 64");
	refuse(ONE("direct_min = -5;\n"), "x.conf:3: direct_min: ", "not -5");
	refuse(ONE("chunk = 4096;\nchunk = 8192;\n"), "x.conf:4", "duplicate");
	refuse("all_reduce = {", "x.conf:1", "syntax error");
	refuse("\n@include \"/etc/passwd\"\n", "x.conf:2: @include: ", "one file");
}

/* ---- folders ---- */

struct folder {
	char path[64];
};

static void folder_open(struct folder *folder)
{
	(void)snprintf(folder->path, sizeof(folder->path), "/tmp/rcclx-tuning-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
}

static void folder_put(const struct folder *folder, const char *name, const char *text)
{
	char path[128];
	FILE *file = NULL;

	(void)snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void folder_drop(const struct folder *folder, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	assert_int_equal(remove(path), 0);
}

static void test_folder(void **state)
{
	struct folder folder;
	struct tuning *tuning = NULL;
	struct config_error error = {""};

	(void)state;
	folder_open(&folder);
	folder_put(&folder, "20-late.conf", "reduce = { ranks_2 = { chunk = 2048; }; };");
	folder_put(&folder, "10-early.conf",
		"reduce = { ranks_2 = { chunk = 1024; flat_max = 9; }; };");
	folder_put(&folder, "30-not.conf.old", "garbage");
	folder_put(&folder, ".hidden.conf", "garbage");
	assert_int_equal(tuning_load(folder.path, true, &tuning, &error), 0);
	assert_int_equal(tuning->table.entries[RX_REDUCE][0].chunk, 2048);
	assert_int_equal(tuning->table.entries[RX_REDUCE][0].flat_max, 9);
	assert_non_null(strstr(source(tuning, RX_REDUCE, 2, TUNING_CHUNK), "/20-late.conf:1"));
	tuning = tuning_free(tuning);
	folder_put(&folder, "15-bad.conf", "\n\nreduce = { ranks_2 = { chunk = 1; }; };");
	assert_int_equal(tuning_load(folder.path, true, &tuning, &error), -EINVAL);
	assert_null(tuning);
	assert_non_null(strstr(error.text, "/15-bad.conf:3: chunk: "));
	folder_drop(&folder, "15-bad.conf");
	folder_drop(&folder, "20-late.conf");
	folder_drop(&folder, "10-early.conf");
	folder_drop(&folder, "30-not.conf.old");
	folder_drop(&folder, ".hidden.conf");
	assert_int_equal(rmdir(folder.path), 0);
	assert_int_equal(tuning_load(folder.path, true, &tuning, &error), -ENOENT);
	assert_non_null(strstr(error.text, folder.path));
	assert_int_equal(tuning_load(folder.path, false, &tuning, &error), 0);
	(void)tuning_free(tuning);
}

static void test_too_many(void **state)
{
	struct tuning *tuning = compiled();
	struct config_error error = {""};

	(void)state;
	for (uint32_t i = 0; i < TUNING_FILES_MAX; i++)
		assert_int_equal(tuning_take(tuning, "", "x.conf", &error), 0);
	assert_int_equal(tuning_take(tuning, "", "x.conf", &error), -EINVAL);
	assert_non_null(strstr(error.text, "more than 64"));
	(void)tuning_free(tuning);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_folder),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
