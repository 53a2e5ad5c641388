/* SPDX-License-Identifier: MIT */
/* rcclx-perf: command line, launchers' variables, statistics, and that its check can fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../client/perf/check.h"
#include "../../client/perf/colls.h"
#include "../../client/perf/id_file.h"
#include "../../client/perf/measure.h"
#include "../../client/perf/options.h"
#include "../../client/perf/place.h"
#include "../../client/perf/print.h"
#include "../../kernels/coll_types.h"
#include "../../shm/rx_clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define ARGS_MAX 32

static enum perf_parsed parse(const char *line, struct perf_options *options)
{
	static char copy[256];
	char *argv[ARGS_MAX + 1] = {NULL}, *save = NULL;
	int argc = 0;

	(void)snprintf(copy, sizeof(copy), "rcclx-perf %s", line);
	for (char *word = strtok_r(copy, " ", &save); word && argc < ARGS_MAX;
		word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return perf_options_parse(argc, argv, options);
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"0", 0}, {"8", 8}, {"4k", 4096}, {"64M", 64ull << 20}, {"64MiB", 64ull << 20},
		{"64MB", 64ull << 20}, {"3G", 3ull << 30}, {"17179869183G", 17179869183ull << 30}};
	static const char *const bad[] = {"", "x", "-8", "8T", "8 ", "8Mx", "+8", "1.5M", "8i",
		"8B", "17179869184G", "99999999999999999999"};
	uint64_t bytes = 0;

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(good); i++) {
		assert_true(perf_parse_size(good[i].text, &bytes));
		assert_int_equal(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < RX_ARRAY_SIZE(bad); i++)
		if (perf_parse_size(bad[i], &bytes))
			fail_msg("\"%s\" was taken as %llu", bad[i], (unsigned long long)bytes);
}

static void options_defaults(void **state)
{
	struct perf_options options;

	(void)state;
	assert_int_equal(parse("all_reduce", &options), PERF_PARSED_RUN);
	assert_string_equal(options.coll->name, "all_reduce");
	assert_int_equal(options.min_bytes, 8);
	assert_int_equal(options.max_bytes, 64 << 20);
	assert_int_equal(options.factor, 2);
	assert_int_equal(options.dtype, RX_FLOAT32);
	assert_int_equal(options.op, RX_SUM);
	assert_int_equal(options.n_iterations, 0);
	assert_int_equal(options.n_ranks, 0);
	assert_true(options.registered && options.pin);
	assert_false(options.check || options.json || options.in_place || options.spawned);
}

static void options_all(void **state)
{
	struct perf_options options;

	(void)state;
	assert_int_equal(
		parse("-b 1K allreduce -e 2K -f 4 -d bf16 -o avg -n 7 -w 3 --ranks 64", &options),
		PERF_PARSED_RUN);
	assert_int_equal(options.min_bytes, 1024);
	assert_int_equal(options.max_bytes, 2048);
	assert_int_equal(options.factor, 4);
	assert_int_equal(options.dtype, RX_BFLOAT16);
	assert_int_equal(options.op, RX_AVG);
	assert_int_equal(options.n_iterations, 7);
	assert_int_equal(options.n_warmup, 3);
	assert_int_equal(options.n_ranks, 64);
	assert_int_equal(parse("all_reduce --memory private --executor daemon --check --json "
			       "--in-place --seed 9 --no-pin --id-file /x --timeout 5",
				 &options),
		PERF_PARSED_RUN);
	assert_int_equal(options.executor, RCCLX_EXECUTOR_DAEMON);
	assert_int_equal(options.seed, 9);
	assert_int_equal(options.timeout_s, 5);
	assert_string_equal(options.id_file, "/x");
	assert_true(options.check && options.json && options.in_place);
	assert_false(options.registered || options.pin);
	assert_int_equal(
		parse("--spawned 3:7 --socket /s barrier --private", &options), PERF_PARSED_RUN);
	assert_true(options.spawned);
	assert_int_equal(options.rank, 3);
	assert_int_equal(options.id_fd, 7);
	assert_int_equal(options.max_bytes, 0);
}

static void options_refused(void **state)
{
	static const char *const bad[] = {"", "all_reduce barrier", "all_to_nobody",
		"all_reduce -b x", "all_reduce -f 1", "all_reduce -n 0", "all_reduce --ranks 0",
		"all_reduce --ranks 65", "all_reduce -d float99", "all_reduce -o xor",
		"all_reduce --memory none", "all_reduce --executor gpu", "all_reduce --bogus",
		"all_reduce -b 2 -e 1", "all_reduce --private --socket /x",
		"all_reduce --spawned 64:3", "all_reduce --spawned 1:3x", "all_reduce --seed -1",
		"all_reduce --timeout 0"};
	struct perf_options options;

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(bad); i++)
		if (parse(bad[i], &options) != PERF_PARSED_BAD)
			fail_msg("\"%s\" was taken", bad[i]);
}

static void size_steps(void **state)
{
	struct perf_options options;

	(void)state;
	assert_int_equal(parse("all_reduce -b 0 -d double -f 3", &options), PERF_PARSED_RUN);
	assert_int_equal(perf_next_bytes(&options, 0), 8);
	assert_int_equal(perf_next_bytes(&options, 8), 24);
	assert_int_equal(perf_next_bytes(&options, UINT64_MAX / 2), UINT64_MAX);
}

static void clear_launchers(void)
{
	static const char *const names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
		"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
		"OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
		"MPI_LOCALNRANKS", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"};

	for (size_t i = 0; i < RX_ARRAY_SIZE(names); i++)
		(void)unsetenv(names[i]);
}

static void places(void **state)
{
	struct perf_place place;

	(void)state;
	clear_launchers();
	assert_int_equal(perf_place_from_env(&place), PERF_PLACE_NONE);
	(void)setenv("SLURM_PROCID", "1", 1);
	(void)setenv("SLURM_NTASKS", "4", 1);
	(void)setenv("SLURM_LOCALID", "1", 1);
	assert_int_equal(perf_place_from_env(&place), PERF_PLACE_FOUND);
	assert_string_equal(place.launcher, "Slurm");
	assert_int_equal(place.n_ranks, 4);
	/* mpirun inside a Slurm job. */
	(void)setenv("OMPI_COMM_WORLD_RANK", "5", 1);
	(void)setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
	assert_int_equal(perf_place_from_env(&place), PERF_PLACE_FOUND);
	assert_string_equal(place.launcher, "Open MPI");
	assert_int_equal(place.rank, 5);
	assert_int_equal(place.local_rank, 5);
	(void)setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
	assert_int_equal(perf_place_from_env(&place), PERF_PLACE_BAD);
	(void)setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "8", 1);
	(void)setenv("OMPI_COMM_WORLD_RANK", "8", 1);
	assert_int_equal(perf_place_from_env(&place), PERF_PLACE_BAD);
	(void)setenv("OMPI_COMM_WORLD_RANK", "x", 1);
	assert_int_equal(perf_place_from_env(&place), PERF_PLACE_BAD);
	clear_launchers();
}

static void id_files(void **state)
{
	char path[] = "/tmp/test_perf.XXXXXX";
	struct rcclx_unique_id id = {{1, 2, 3}}, got = {{0}};
	struct perf_id_file writer, reader;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	/* Not whole yet: waited for. */
	assert_int_equal(write(fd, "x", 1), 1);
	(void)close(fd);
	assert_true(perf_id_file_init(&reader, path));
	assert_false(perf_id_file_read(&reader, 20 * RX_NS_PER_MS, &got));
	/* There already: not overwritten, and not removed. */
	assert_true(perf_id_file_init(&writer, path));
	assert_false(perf_id_file_write(&writer, &id));
	perf_id_file_remove(&writer);
	assert_int_equal(access(path, F_OK), 0);
	(void)unlink(path);
	assert_true(perf_id_file_write(&writer, &id));
	assert_true(perf_id_file_read(&reader, RX_NS_PER_SEC, &got));
	assert_memory_equal(&id, &got, sizeof(id));
	perf_id_file_remove(&reader);
	assert_int_equal(access(path, F_OK), 0);
	perf_id_file_remove(&writer);
	assert_int_equal(access(path, F_OK), -1);
	/* A link is not followed. */
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_false(perf_id_file_read(&reader, RX_NS_PER_SEC, &got));
	assert_false(perf_id_file_write(&writer, &id));
	(void)unlink(path);
}

static void statistics(void **state)
{
	double us[200];
	struct perf_times times;

	(void)state;
	for (int i = 0; i < 200; i++)
		us[i] = 199 - i;
	times = perf_times_from(us, 200);
	assert_int_equal(times.n, 200);
	assert_true(times.mean_us > 99.4 && times.mean_us < 99.6);
	assert_true(times.p50_us > 99.9 && times.p50_us < 100.1);
	assert_true(times.p99_us > 197.9 && times.p99_us < 198.1);
	us[0] = 5;
	times = perf_times_from(us, 1);
	assert_true(times.p50_us > 4.9 && times.p99_us > 4.9);
	assert_int_equal(perf_iterations(0.1), 20000);
	assert_int_equal(perf_iterations(100), 800);
	assert_int_equal(perf_iterations(1e6), 20);
	assert_int_equal(perf_iterations(0), 20000);
}

static void bandwidth(void **state)
{
	struct perf_row row = {.bytes = 1000000, .times = {.mean_us = 900, .p50_us = 500}};
	const struct perf_coll *coll = perf_coll_find("all_reduce");

	(void)state;
	assert_true(perf_algbw(&row) > 1.999 && perf_algbw(&row) < 2.001);
	assert_true(coll->bus_factor(1) < 0.001);
	assert_true(coll->bus_factor(4) > 1.499 && coll->bus_factor(4) < 1.501);
}

/* Data of two ranks, two iterations and two positions differ, in every type. */
static void data_differs(void **state)
{
	(void)state;
	for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
		struct perf_data data = {.seed = 1, .iteration = 0, .dtype = dtype};
		uint64_t a[64] = {0}, b[64] = {0};
		size_t bytes = 64 * (size_t)rx_dtype_size(dtype);

		perf_data_fill(&data, 0, 0, 64, a);
		perf_data_fill(&data, 0, 0, 64, b);
		assert_memory_equal(a, b, bytes);
		perf_data_fill(&data, 1, 0, 64, b);
		assert_memory_not_equal(a, b, bytes);
		perf_data_fill(&data, 0, 1, 64, b);
		assert_memory_not_equal(a, b, bytes);
		assert_memory_equal((uint8_t *)a + bytes / 64, b, bytes - bytes / 64);
		data.iteration = 1;
		perf_data_fill(&data, 0, 0, 64, b);
		assert_memory_not_equal(a, b, bytes);
	}
}

static void floats_are_tame(void **state)
{
	struct perf_data data = {.seed = 7, .iteration = 3, .dtype = RX_FLOAT32};
	float values[1000];
	bool negative = false, positive = false;

	(void)state;
	perf_data_fill(&data, 2, 0, 1000, values);
	for (size_t i = 0; i < 1000; i++) {
		float magnitude = values[i] < 0 ? -values[i] : values[i];

		negative |= values[i] < 0;
		positive |= values[i] > 0;
		assert_true(magnitude >= 0.25F && magnitude < 4.0F);
	}
	assert_true(negative && positive);
}

static void wrong_is_counted(void **state)
{
	enum { N = 3 * PERF_FOLD_BLOCK / 2 };
	struct perf_data data = {.seed = 1, .iteration = 5, .dtype = RX_INT32};
	static uint32_t a[N], b[N], sum[N];
	struct perf_fold fold;

	(void)state;
	perf_data_fill(&data, 0, 0, N, a);
	perf_data_fill(&data, 1, 0, N, b);
	for (size_t i = 0; i < N; i++)
		sum[i] = a[i] + b[i];
	assert_true(perf_fold_init(&fold, &data, RX_SUM, 2, 0));
	assert_int_equal(perf_count_wrong(&fold, perf_fold_all, sum, N), 0);
	sum[0] ^= 1;
	sum[PERF_FOLD_BLOCK] ^= 1u << 31;
	sum[N - 1]++;
	assert_int_equal(perf_count_wrong(&fold, perf_fold_all, sum, N), 3);
	assert_int_equal(perf_count_wrong(&fold, perf_fold_all, sum, 1), 1);
	assert_int_equal(perf_count_wrong(&fold, perf_fold_all, sum, 0), 0);
	perf_fold_deinit(&fold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(options_defaults),
		cmocka_unit_test(options_all),
		cmocka_unit_test(options_refused),
		cmocka_unit_test(size_steps),
		cmocka_unit_test(places),
		cmocka_unit_test(id_files),
		cmocka_unit_test(statistics),
		cmocka_unit_test(bandwidth),
		cmocka_unit_test(data_differs),
		cmocka_unit_test(floats_are_tame),
		cmocka_unit_test(wrong_is_counted),
	};

	return cmocka_run_group_tests_name("perf", tests, NULL, NULL);
}
