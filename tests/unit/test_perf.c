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
#include "../../client/perf/layout.h"
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
	assert_false(options.all || options.touch);
	assert_int_equal(options.root, 0);
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
	assert_int_equal(parse("broadcast --root 3 --touch", &options), PERF_PARSED_RUN);
	assert_int_equal(options.root, 3);
	assert_true(options.touch);
	assert_int_equal(parse("send_recv", &options), PERF_PARSED_RUN);
	assert_int_equal(options.executor, RCCLX_EXECUTOR_DAEMON);
}

/* What some collectives do not have is refused for one, and left out for those in "all". */
static void options_for_all(void **state)
{
	struct perf_options all, options;

	(void)state;
	assert_int_equal(parse("all --in-place --executor inline -e 64", &all), PERF_PARSED_RUN);
	assert_true(all.all && all.in_place);
	options = perf_options_for(&all, perf_coll_find("all_to_all_v"));
	assert_false(options.in_place);
	assert_int_equal(options.executor, RCCLX_EXECUTOR_INLINE);
	assert_int_equal(options.max_bytes, 64);
	options = perf_options_for(&all, perf_coll_find("send_recv"));
	assert_int_equal(options.executor, RCCLX_EXECUTOR_DAEMON);
	options = perf_options_for(&all, perf_coll_find("barrier"));
	assert_int_equal(options.max_bytes, 0);
	options = perf_options_for(&all, perf_coll_find("gather"));
	assert_true(options.in_place);
	assert_string_equal(options.coll->name, "gather");
}

static void options_refused(void **state)
{
	static const char *const bad[] = {"", "all_reduce barrier", "all_to_nobody",
		"all_reduce -b x", "all_reduce -f 1", "all_reduce -n 0", "all_reduce --ranks 0",
		"all_reduce --ranks 65", "all_reduce -d float99", "all_reduce -o xor",
		"all_reduce --memory none", "all_reduce --executor gpu", "all_reduce --bogus",
		"all_reduce -b 2 -e 1", "all_reduce --private --socket /x",
		"all_reduce --tuning-dir /x", "all_reduce --spawned 64:3",
		"all_reduce --spawned 1:3x", "all_reduce --seed -1", "all_reduce --timeout 0",
		"broadcast --root 64", "all_to_all --in-place", "send_recv --in-place",
		"send_recv --executor inline", "all barrier", "send", "all_reduce --sizes 1,",
		"all_reduce --sizes ,1", "all_reduce --sizes 1,,2", "all_reduce --sizes 8,x"};
	struct perf_options options;

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(bad); i++)
		if (parse(bad[i], &options) != PERF_PARSED_BAD)
			fail_msg("\"%s\" was taken", bad[i]);
}

static void size_steps(void **state)
{
	struct perf_options options;
	uint64_t bytes = 1;

	(void)state;
	assert_int_equal(parse("all_reduce -b 0 -e 72 -d double -f 3", &options), PERF_PARSED_RUN);
	assert_true(perf_size_at(&options, 0, &bytes));
	assert_int_equal(bytes, 0);
	assert_true(perf_size_at(&options, 2, &bytes));
	assert_int_equal(bytes, 24);
	assert_true(perf_size_at(&options, 3, &bytes));
	assert_int_equal(bytes, 72);
	assert_false(perf_size_at(&options, 4, &bytes));
	/* The next size does not fit 64 bits. */
	assert_int_equal(
		parse("all_reduce -b 8G -e 17179869183G -f 4000000000", &options), PERF_PARSED_RUN);
	assert_true(perf_size_at(&options, 0, &bytes));
	assert_false(perf_size_at(&options, 1, &bytes));
	assert_int_equal(parse("all_reduce --sizes 12,4K,0", &options), PERF_PARSED_RUN);
	assert_true(perf_size_at(&options, 1, &bytes));
	assert_int_equal(bytes, 4096);
	assert_true(perf_size_at(&options, 2, &bytes));
	assert_int_equal(bytes, 0);
	assert_false(perf_size_at(&options, 3, &bytes));
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
	static const struct {
		const char *name;
		double of_4;
	} factors[] = {{"all_reduce", 1.5}, {"all_gather", 0.75}, {"reduce_scatter", 0.75},
		{"all_to_all", 0.75}, {"broadcast", 1}, {"reduce", 1}, {"gather", 0.75},
		{"scatter", 0.75}, {"send_recv", 1}, {"all_gather_v", 0.75},
		{"reduce_scatter_v", 0.75}, {"all_to_all_v", 0.75}, {"barrier", 0}};
	struct perf_row row = {.bytes = 1000000, .times = {.mean_us = 900, .p50_us = 500}};

	(void)state;
	assert_true(perf_algbw(&row) > 1.999 && perf_algbw(&row) < 2.001);
	for (size_t i = 0; i < RX_ARRAY_SIZE(factors); i++) {
		const struct perf_coll *coll = perf_coll_find(factors[i].name);

		assert_non_null(coll);
		assert_ptr_equal(coll, perf_coll_at(i));
		assert_true(coll->bus_factor(4) > factors[i].of_4 - 0.001 &&
			    coll->bus_factor(4) < factors[i].of_4 + 0.001);
	}
	assert_null(perf_coll_at(RX_ARRAY_SIZE(factors)));
	assert_true(perf_coll_find("all_reduce")->bus_factor(1) < 0.001);
}

static void totals(void **state)
{
	struct perf_total total = {.coll = perf_coll_find("all_gather")};
	struct perf_row rows[] = {{.bytes = 8, .times = {.p50_us = 2}, .n_wrong = 3},
		{.bytes = 1000000, .times = {.p50_us = 500}},
		{.bytes = 2000000, .times = {.p50_us = 4000}, .n_wrong = 1}};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(rows); i++)
		perf_total_add(&total, &rows[i], 2);
	assert_int_equal(total.n_rows, 3);
	assert_int_equal(total.n_wrong, 4);
	assert_int_equal(total.smallest_bytes, 8);
	assert_true(total.smallest_us > 1.999 && total.smallest_us < 2.001);
	assert_true(total.busbw_best > 0.999 && total.busbw_best < 1.001);
	assert_true(total.busbw_sum > 1.251 && total.busbw_sum < 1.253);
}

static void layouts_of_sizes(void **state)
{
	struct perf_layout layout;

	(void)state;
	layout = perf_layout_make(perf_coll_find("all_reduce"), 17, 3, 1, 0);
	assert_int_equal(layout.count, 17);
	assert_int_equal(layout.size, 17);
	assert_int_equal(layout.send, 17);
	assert_int_equal(layout.recv, 17);
	layout = perf_layout_make(perf_coll_find("all_gather"), 17, 3, 1, 0);
	assert_int_equal(layout.count, 5);
	assert_int_equal(layout.size, 15);
	assert_int_equal(layout.send, 5);
	assert_int_equal(layout.recv, 15);
	assert_int_equal(layout.send_at, 5);
	assert_int_equal(layout.recv_at, 0);
	layout = perf_layout_make(perf_coll_find("reduce"), 17, 3, 1, 2);
	assert_int_equal(layout.send, 17);
	assert_int_equal(layout.recv, 0);
	layout = perf_layout_make(perf_coll_find("scatter"), 17, 3, 2, 2);
	assert_int_equal(layout.send, 15);
	assert_int_equal(layout.recv, 5);
	assert_int_equal(layout.recv_at, 10);
	layout = perf_layout_make(perf_coll_find("gather"), 17, 3, 2, 0);
	assert_int_equal(layout.recv, 0);
	assert_int_equal(layout.send_at, 0);
	layout = perf_layout_make(perf_coll_find("gather"), 17, 3, 2, 2);
	assert_int_equal(layout.send_at, 10);
	/* 1, 2 and 3 parts of 6. */
	layout = perf_layout_make(perf_coll_find("reduce_scatter_v"), 60, 3, 2, 0);
	assert_int_equal(layout.count, 20);
	assert_int_equal(layout.largest, 30);
	assert_int_equal(layout.counts[0], 10);
	assert_int_equal(layout.counts[1], 20);
	assert_int_equal(layout.recv, 30);
	assert_int_equal(layout.recv_at, 30);
	layout = perf_layout_make(perf_coll_find("barrier"), 60, 3, 2, 0);
	assert_int_equal(layout.size, 0);
	/* Sizes whose products with block numbers do not fit 64 bits. */
	layout = perf_layout_make(perf_coll_find("all_gather_v"), UINT64_MAX, 64, 63, 0);
	assert_true(layout.displs[63] + layout.counts[63] == UINT64_MAX);
}

/* What each rank sends to another is what that one receives from it, and nothing else is. */
static void exchanges_fit(void **state)
{
	const struct perf_coll *coll = perf_coll_find("all_to_all_v");

	(void)state;
	for (uint32_t n = 1; n <= 9; n++) {
		for (uint64_t size = 0; size < 50; size += 7) {
			struct perf_layout a[9];

			for (uint32_t r = 0; r < n; r++)
				a[r] = perf_layout_make(coll, size, n, r, 0);
			for (uint32_t s = 0; s < n; s++) {
				assert_int_equal(a[s].displs[n - 1] + a[s].counts[n - 1], size);
				for (uint32_t d = 0; d < n; d++) {
					assert_int_equal(a[s].counts[d], a[d].counts[s]);
					assert_int_equal(perf_layout_sent_at(coll, &a[d], s),
						a[s].displs[d]);
				}
			}
		}
	}
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
	const struct perf_coll *coll = perf_coll_find("all_reduce");
	struct perf_layout layout = perf_layout_make(coll, N, 2, 0, 0);
	struct perf_data data = {.seed = 1, .iteration = 5, .dtype = RX_INT32};
	static uint32_t a[N], b[N], sum[N];
	struct perf_fold fold;

	(void)state;
	perf_data_fill(&data, 0, 0, N, a);
	perf_data_fill(&data, 1, 0, N, b);
	for (size_t i = 0; i < N; i++)
		sum[i] = a[i] + b[i];
	assert_true(perf_fold_init(&fold, &data, RX_SUM, coll, &layout));
	assert_int_equal(perf_count_wrong(&fold, sum), 0);
	sum[0] ^= 1;
	sum[PERF_FOLD_BLOCK] ^= 1u << 31;
	sum[N - 1]++;
	assert_int_equal(perf_count_wrong(&fold, sum), 3);
	layout.recv = 1;
	assert_int_equal(perf_count_wrong(&fold, sum), 1);
	layout.recv = 0;
	assert_int_equal(perf_count_wrong(&fold, sum), 0);
	perf_fold_deinit(&fold);
}

#define RANKS 3u
#define SIZE  6007u /* elements; blocks longer than are folded at a time, and not whole */

/* Every rank's message, and the results that follow from the collectives' definitions. */
static uint32_t messages[RANKS][SIZE];
static uint32_t result[SIZE];

static uint64_t count_wrong(
	const struct perf_coll *coll, const struct perf_data *data, uint32_t rank, uint32_t root)
{
	struct perf_layout layout = perf_layout_make(coll, SIZE, RANKS, rank, root);
	struct perf_fold fold;
	uint64_t n_wrong = 0;

	assert_true(perf_fold_init(&fold, data, RX_SUM, coll, &layout));
	n_wrong = perf_count_wrong(&fold, result);
	/* The last element counts too. */
	if (layout.recv > 0) {
		result[layout.recv - 1]++;
		assert_int_equal(perf_count_wrong(&fold, result), n_wrong + 1);
		result[layout.recv - 1]--;
	}
	perf_fold_deinit(&fold);
	return n_wrong;
}

/* The result of @coll on @rank, block by block, by what each collective is said to do. */
static void make_result(const struct perf_coll *coll, uint32_t rank, uint32_t root)
{
	struct perf_layout mine = perf_layout_make(coll, SIZE, RANKS, rank, root);
	uint64_t own = mine.displs[rank];

	for (uint32_t i = 0; i < SIZE; i++) {
		uint64_t at = own + i;

		if (coll->coll == RX_ALL_REDUCE || coll->coll == RX_REDUCE)
			result[i] = messages[0][i] + messages[1][i] + messages[2][i];
		else if (rx_coll_reduces(coll->coll) && at < SIZE)
			result[i] = messages[0][at] + messages[1][at] + messages[2][at];
		else if (coll->coll == RX_BROADCAST)
			result[i] = messages[root][i];
		else if (coll->coll == RX_SCATTER && at < SIZE)
			result[i] = messages[root][at];
		else if (coll->coll == RX_SEND)
			result[i] = messages[(rank + RANKS - 1) % RANKS][i];
	}
	if (coll->expect != perf_expect_gathered && coll->expect != perf_expect_exchanged)
		return;
	for (uint32_t s = 0; s < RANKS; s++) {
		struct perf_layout theirs = perf_layout_make(coll, SIZE, RANKS, s, root);
		uint64_t from = coll->expect == perf_expect_exchanged ? theirs.displs[rank] : 0;

		memcpy(result + mine.displs[s], messages[s] + from,
			mine.counts[s] * sizeof(uint32_t));
	}
}

static void every_result_is_known(void **state)
{
	struct perf_data data = {.seed = 3, .iteration = 1, .dtype = RX_UINT32};

	(void)state;
	for (uint32_t r = 0; r < RANKS; r++)
		perf_data_fill(&data, r, 0, SIZE, messages[r]);
	for (size_t i = 0; perf_coll_at(i); i++) {
		const struct perf_coll *coll = perf_coll_at(i);

		for (uint32_t rank = 0; rank < RANKS && perf_coll_has_data(coll); rank++) {
			make_result(coll, rank, 1);
			assert_int_equal(count_wrong(coll, &data, rank, 1), 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(options_defaults),
		cmocka_unit_test(options_all),
		cmocka_unit_test(options_for_all),
		cmocka_unit_test(options_refused),
		cmocka_unit_test(size_steps),
		cmocka_unit_test(places),
		cmocka_unit_test(id_files),
		cmocka_unit_test(statistics),
		cmocka_unit_test(bandwidth),
		cmocka_unit_test(totals),
		cmocka_unit_test(layouts_of_sizes),
		cmocka_unit_test(exchanges_fit),
		cmocka_unit_test(data_differs),
		cmocka_unit_test(floats_are_tame),
		cmocka_unit_test(wrong_is_counted),
		cmocka_unit_test(every_result_is_known),
	};

	return cmocka_run_group_tests_name("perf", tests, NULL, NULL);
}
