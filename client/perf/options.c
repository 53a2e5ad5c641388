/* SPDX-License-Identifier: MIT */
#include "options.h"

#include "colls.h"
#include "../rcclx.h"
#include "../../kernels/coll_types.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum long_option {
	OPT_RANKS = 256,
	OPT_SIZES,
	OPT_MEMORY,
	OPT_EXECUTOR,
	OPT_CHECK,
	OPT_JSON,
	OPT_PRIVATE,
	OPT_TUNING_DIR,
	OPT_IN_PLACE,
	OPT_ROOT,
	OPT_TOUCH,
	OPT_SOCKET,
	OPT_SEED,
	OPT_NO_PIN,
	OPT_ID_FILE,
	OPT_TIMEOUT,
	OPT_PRECISION,
	OPT_LINK_RATE,
	OPT_SPAWNED,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"min-bytes", required_argument, NULL, 'b'},
	{"max-bytes", required_argument, NULL, 'e'},
	{"factor", required_argument, NULL, 'f'},
	{"dtype", required_argument, NULL, 'd'},
	{"op", required_argument, NULL, 'o'},
	{"iterations", required_argument, NULL, 'n'},
	{"warmup", required_argument, NULL, 'w'},
	{"help", no_argument, NULL, 'h'},
	{"sizes", required_argument, NULL, OPT_SIZES},
	{"ranks", required_argument, NULL, OPT_RANKS},
	{"memory", required_argument, NULL, OPT_MEMORY},
	{"executor", required_argument, NULL, OPT_EXECUTOR},
	{"check", no_argument, NULL, OPT_CHECK},
	{"json", no_argument, NULL, OPT_JSON},
	{"private", no_argument, NULL, OPT_PRIVATE},
	{"tuning-dir", required_argument, NULL, OPT_TUNING_DIR},
	{"in-place", no_argument, NULL, OPT_IN_PLACE},
	{"root", required_argument, NULL, OPT_ROOT},
	{"touch", no_argument, NULL, OPT_TOUCH},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"seed", required_argument, NULL, OPT_SEED},
	{"no-pin", no_argument, NULL, OPT_NO_PIN},
	{"id-file", required_argument, NULL, OPT_ID_FILE},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	/* From the launching process to its ranks: RANK:FD. */
	{"spawned", required_argument, NULL, OPT_SPAWNED},
	{"precision", required_argument, NULL, OPT_PRECISION},
	{"link-rate", required_argument, NULL, OPT_LINK_RATE},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static void print_help(void)
{
	printf("Usage: rcclx-perf COLLECTIVE|all [OPTIONS]\n"
	       "Measure a collective of the node's rcclxd, or all of them. Collectives:\n ");
	for (size_t i = 0; perf_coll_at(i); i++)
		printf("%s %s", i == 7 ? "\n " : "", perf_coll_at(i)->name);
	printf("\n\n"
	       "  --ranks N                 start N ranks (2; under mpirun, torchrun or srun: the "
	       "launcher's)\n"
	       "  -b, --min-bytes SIZE      smallest size (8)\n"
	       "  -e, --max-bytes SIZE      largest size (64M); sizes take K, M or G\n"
	       "  -f, --factor N            from one size to the next (2)\n"
	       "  --sizes SIZE,SIZE...      these sizes instead\n"
	       "  -d, --dtype TYPE          float, half, bfloat16, double, int32, fp8_e4m3, ... "
	       "(float)\n"
	       "  -o, --op OP               sum, prod, max, min, avg, premul_sum (sum)\n"
	       "  -n, --iterations N        timed calls per size (as many as fit 80 ms)\n"
	       "  -w, --warmup N            calls before them (5)\n"
	       "  --memory registered|private  the ranks' buffers (registered)\n"
	       "  --executor auto|inline|daemon  who does the work (auto)\n"
	       "  --precision exact|fp8|int8  low precision or not (exact); shows the error of results "
	       "against fp64\n"
	       "  --link-rate RATE          as if ranks were connected by such links: 2GB/s, 500M\n"
	       "  --root RANK               of broadcast, reduce, gather, scatter (0)\n"
	       "  --in-place                send and receive buffer are the same\n"
	       "  --touch                   between timed calls write inputs and read results\n"
	       "  --check                   compare every element of results; exit 1 if any is "
	       "wrong\n"
	       "  --seed N                  of the data that is checked (1)\n"
	       "  --json                    one JSON object per line instead of the table\n"
	       "  --private                 start a daemon for this run alone\n"
	       "  --tuning-dir DIR          with --private: its folder of thresholds\n"
	       "  --socket PATH             the daemon's socket\n"
	       "  --no-pin                  do not pin ranks to cores\n"
	       "  --id-file PATH            how ranks of a launcher find each other\n"
	       "  --timeout SECONDS         for one size (300)\n"
	       "  -h, --help, --version\n");
}

static void print_version(void)
{
	printf("rcclx-perf %d.%d.%d\n", RCCLX_VERSION_MAJOR, RCCLX_VERSION_MINOR,
		RCCLX_VERSION_PATCH);
}

bool perf_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *number_p)
{
	unsigned long long number = 0;
	char *end = NULL;

	/* strtoull() would take a sign and leading space. */
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end || number < min || number > max)
		return false;
	*number_p = number;
	return true;
}

static uint64_t unit_of(char letter)
{
	switch (toupper((unsigned char)letter)) {
	case '\0':
		return 1;
	case 'K':
		return 1ull << 10;
	case 'M':
		return 1ull << 20;
	case 'G':
		return 1ull << 30;
	default:
		return 0;
	}
}

bool perf_parse_size(const char *text, uint64_t *bytes_p)
{
	unsigned long long number = 0;
	char *end = NULL;
	uint64_t unit = 0;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	unit = unit_of(*end);
	/* "64M", "64MiB" and "64MB" are the same. */
	if (*end)
		end++;
	if (unit > 1 && *end == 'i')
		end++;
	if (unit > 1 && *end == 'B')
		end++;
	if (errno || unit == 0 || *end)
		return false;
	return rx_mul_u64(number, unit, bytes_p);
}

static uint64_t rate_unit(char letter)
{
	switch (toupper((unsigned char)letter)) {
	case 'K':
		return 1000;
	case 'M':
		return 1000 * 1000;
	case 'G':
		return 1000 * 1000 * 1000;
	default:
		return 1;
	}
}

bool perf_parse_rate(const char *text, uint64_t *rate_p)
{
	unsigned long long number = 0;
	uint64_t rate = 0;
	char *end = NULL;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || !rx_mul_u64(number, rate_unit(*end), &rate) || rate == 0 || rate > INT64_MAX)
		return false;
	if (rate_unit(*end) > 1)
		end++;
	if (*end && strcmp(end, "B/s") != 0)
		return false;
	*rate_p = rate;
	return true;
}

static enum perf_parsed bad(const char *what, const char *value, const char *expected)
{
	fprintf(stderr, "rcclx-perf: %s \"%s\": expected %s\n", what, value, expected);
	return PERF_PARSED_BAD;
}

static bool set_u32(uint32_t *field, const char *text, uint64_t min, uint64_t max)
{
	uint64_t number = 0;

	if (!perf_parse_number(text, min, max, &number))
		return false;
	*field = (uint32_t)number;
	return true;
}

static bool set_parsed(uint32_t *field, int value)
{
	if (value < 0)
		return false;
	*field = (uint32_t)value;
	return true;
}

static bool set_executor(struct perf_options *options, const char *text)
{
	static const char *const names[] = {
		[RCCLX_EXECUTOR_AUTO] = "auto",
		[RCCLX_EXECUTOR_INLINE] = "inline",
		[RCCLX_EXECUTOR_DAEMON] = "daemon",
	};

	for (uint32_t i = 0; i < RX_ARRAY_SIZE(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			options->executor = i;
			return true;
		}
	}
	return false;
}

static bool set_precision(struct perf_options *options, const char *text)
{
	options->show_error = true;
	if (strcmp(text, "fp8") == 0)
		options->precision = RCCLX_PRECISION_FP8;
	else if (strcmp(text, "int8") == 0)
		options->precision = RCCLX_PRECISION_INT8;
	else if (strcmp(text, "exact") == 0)
		options->precision = RCCLX_PRECISION_EXACT;
	else
		return false;
	return true;
}

static bool set_sizes(struct perf_options *options, const char *text)
{
	options->n_sizes = 0;
	for (;;) {
		size_t n = strcspn(text, ",");
		char one[32] = "";

		if (n >= sizeof(one) || options->n_sizes == PERF_SIZES_MAX)
			return false;
		memcpy(one, text, n);
		if (!perf_parse_size(one, &options->sizes[options->n_sizes++]))
			return false;
		if (text[n] == '\0')
			return true;
		text += n + 1;
	}
}

static bool set_memory(struct perf_options *options, const char *text)
{
	options->registered = strcmp(text, "registered") == 0;
	return options->registered || strcmp(text, "private") == 0;
}

static bool set_spawned(struct perf_options *options, const char *text)
{
	int end = 0;

	options->spawned = sscanf(text, "%u:%d%n", &options->rank, &options->id_fd, &end) == 2 &&
			   text[end] == '\0' && options->rank < RCCLX_MAX_RANKS &&
			   options->id_fd >= 0;
	return options->spawned;
}

static enum perf_parsed apply_size_option(struct perf_options *options, int c, const char *arg)
{
	switch (c) {
	case 'b':
		return perf_parse_size(arg, &options->min_bytes)
			       ? PERF_PARSED_RUN
			       : bad("--min-bytes", arg, "a size such as 8, 4K or 64M");
	case 'e':
		return perf_parse_size(arg, &options->max_bytes)
			       ? PERF_PARSED_RUN
			       : bad("--max-bytes", arg, "a size such as 8, 4K or 64M");
	case 'f':
		return perf_parse_number(arg, 2, UINT32_MAX, &options->factor)
			       ? PERF_PARSED_RUN
			       : bad("--factor", arg, "a whole number from 2");
	case 'n':
		return set_u32(&options->n_iterations, arg, 1, 10000000)
			       ? PERF_PARSED_RUN
			       : bad("--iterations", arg, "1 to 10000000");
	default:
		return set_u32(&options->n_warmup, arg, 0, 10000000)
			       ? PERF_PARSED_RUN
			       : bad("--warmup", arg, "0 to 10000000");
	}
}

static enum perf_parsed apply_choice(struct perf_options *options, int c, const char *arg)
{
	switch (c) {
	case 'd':
		return set_parsed(&options->dtype, rx_dtype_parse(arg))
			       ? PERF_PARSED_RUN
			       : bad("--dtype", arg,
					 "a type such as float, half, bfloat16 or int32");
	case 'o':
		return set_parsed(&options->op, rx_redop_parse(arg))
			       ? PERF_PARSED_RUN
			       : bad("--op", arg, "sum, prod, max, min, avg or premul_sum");
	case OPT_SIZES:
		return set_sizes(options, arg)
			       ? PERF_PARSED_RUN
			       : bad("--sizes", arg, "up to 256 sizes such as 8,4K,64M");
	case OPT_MEMORY:
		return set_memory(options, arg) ? PERF_PARSED_RUN
						: bad("--memory", arg, "registered or private");
	case OPT_EXECUTOR:
		return set_executor(options, arg)
			       ? PERF_PARSED_RUN
			       : bad("--executor", arg, "auto, inline or daemon");
	case OPT_RANKS:
		return set_u32(&options->n_ranks, arg, 1, RCCLX_MAX_RANKS)
			       ? PERF_PARSED_RUN
			       : bad("--ranks", arg, "1 to 64");
	case OPT_ROOT:
		return set_u32(&options->root, arg, 0, RCCLX_MAX_RANKS - 1)
			       ? PERF_PARSED_RUN
			       : bad("--root", arg, "a rank, 0 to 63");
	case OPT_TIMEOUT:
		return set_u32(&options->timeout_s, arg, 1, 1000000)
			       ? PERF_PARSED_RUN
			       : bad("--timeout", arg, "seconds, 1 to 1000000");
	case OPT_PRECISION:
		return set_precision(options, arg) ? PERF_PARSED_RUN
						   : bad("--precision", arg, "exact, fp8 or int8");
	case OPT_LINK_RATE:
		return perf_parse_rate(arg, &options->link_rate)
			       ? PERF_PARSED_RUN
			       : bad("--link-rate", arg, "bytes per second such as 2GB/s or 500M");
	case OPT_SEED:
		return perf_parse_number(arg, 0, UINT64_MAX, &options->seed)
			       ? PERF_PARSED_RUN
			       : bad("--seed", arg, "a whole number from 0");
	default:
		return set_spawned(options, arg) ? PERF_PARSED_RUN
						 : bad("--spawned", arg, "RANK:FD");
	}
}

static enum perf_parsed apply(struct perf_options *options, int c, const char *arg)
{
	switch (c) {
	case 'h':
		print_help();
		return PERF_PARSED_DONE;
	case OPT_VERSION:
		print_version();
		return PERF_PARSED_DONE;
	case OPT_CHECK:
		options->check = true;
		return PERF_PARSED_RUN;
	case OPT_JSON:
		options->json = true;
		return PERF_PARSED_RUN;
	case OPT_PRIVATE:
		options->private_daemon = true;
		return PERF_PARSED_RUN;
	case OPT_TUNING_DIR:
		options->tuning_dir = arg;
		return PERF_PARSED_RUN;
	case OPT_IN_PLACE:
		options->in_place = true;
		return PERF_PARSED_RUN;
	case OPT_TOUCH:
		options->touch = true;
		return PERF_PARSED_RUN;
	case OPT_NO_PIN:
		options->pin = false;
		return PERF_PARSED_RUN;
	case OPT_SOCKET:
		options->socket = arg;
		return PERF_PARSED_RUN;
	case OPT_ID_FILE:
		options->id_file = arg;
		return PERF_PARSED_RUN;
	case 'b':
	case 'e':
	case 'f':
	case 'n':
	case 'w':
		return apply_size_option(options, c, arg);
	case '?':
		return PERF_PARSED_BAD;
	default:
		return apply_choice(options, c, arg);
	}
}

static enum perf_parsed take_collective(struct perf_options *options, int n, char **names)
{
	if (n != 1) {
		fprintf(stderr, "rcclx-perf: name one collective, or all; see rcclx-perf --help\n");
		return PERF_PARSED_BAD;
	}
	options->all = strcmp(names[0], "all") == 0;
	options->coll = options->all ? perf_coll_at(0) : perf_coll_find(names[0]);
	if (options->coll)
		return PERF_PARSED_RUN;
	fprintf(stderr, "rcclx-perf: unknown collective \"%s\"; there are: all", names[0]);
	for (size_t i = 0; perf_coll_at(i); i++)
		fprintf(stderr, " %s", perf_coll_at(i)->name);
	fprintf(stderr, "\n");
	return PERF_PARSED_BAD;
}

struct perf_options perf_options_for(const struct perf_options *all, const struct perf_coll *coll)
{
	struct perf_options options = *all;

	options.coll = coll;
	options.in_place = all->in_place && coll->in_place;
	if (perf_coll_by_daemon(coll))
		options.executor = RCCLX_EXECUTOR_DAEMON;
	if (!perf_coll_has_data(coll)) {
		options.n_sizes = 0;
		options.min_bytes = 0;
		options.max_bytes = 0;
	}
	return options;
}

static enum perf_parsed check_collective(struct perf_options *options)
{
	const struct perf_coll *coll = options->coll;

	if (options->all)
		return PERF_PARSED_RUN;
	if (options->in_place && !coll->in_place) {
		fprintf(stderr, "rcclx-perf: %s cannot be in place\n", coll->name);
		return PERF_PARSED_BAD;
	}
	if (options->executor == RCCLX_EXECUTOR_INLINE && perf_coll_by_daemon(coll)) {
		fprintf(stderr, "rcclx-perf: %s is always executed by the daemon\n", coll->name);
		return PERF_PARSED_BAD;
	}
	*options = perf_options_for(options, coll);
	return PERF_PARSED_RUN;
}

static enum perf_parsed check_together(struct perf_options *options)
{
	if (options->min_bytes > options->max_bytes) {
		fprintf(stderr, "rcclx-perf: --min-bytes is above --max-bytes\n");
		return PERF_PARSED_BAD;
	}
	/* A spawned rank gets its parent's words and the private daemon's socket after them. */
	if (options->private_daemon && options->socket && !options->spawned) {
		fprintf(stderr, "rcclx-perf: --private starts a daemon of its own, --socket names "
				"another: give one of them\n");
		return PERF_PARSED_BAD;
	}
	if (options->tuning_dir && !options->private_daemon) {
		fprintf(stderr,
			"rcclx-perf: --tuning-dir is for the daemon that --private starts\n");
		return PERF_PARSED_BAD;
	}
	if (options->link_rate > 0 && options->executor == RCCLX_EXECUTOR_DAEMON) {
		fprintf(stderr, "rcclx-perf: --link-rate is for what ranks do themselves, not for "
				"--executor daemon\n");
		return PERF_PARSED_BAD;
	}
	return check_collective(options);
}

enum perf_parsed perf_options_parse(int argc, char **argv, struct perf_options *options_p)
{
	struct perf_options options = {
		.min_bytes = 8,
		.max_bytes = 64ull << 20,
		.factor = 2,
		.dtype = RX_FLOAT32,
		.op = RX_SUM,
		.n_warmup = 5,
		.executor = RCCLX_EXECUTOR_AUTO,
		.precision = RCCLX_PRECISION_EXACT,
		.timeout_s = 300,
		.seed = 1,
		.registered = true,
		.pin = true,
		.id_fd = -1,
	};
	enum perf_parsed parsed = PERF_PARSED_RUN;
	int c = 0;

	optind = 0; /* glibc: start afresh, also when called again */
	while ((c = getopt_long(argc, argv, "b:e:f:d:o:n:w:h", long_options, NULL)) != -1) {
		parsed = apply(&options, c, optarg);
		if (parsed != PERF_PARSED_RUN)
			return parsed;
	}
	parsed = take_collective(&options, argc - optind, argv + optind);
	if (parsed == PERF_PARSED_RUN)
		parsed = check_together(&options);
	if (parsed == PERF_PARSED_RUN)
		*options_p = options;
	return parsed;
}

bool perf_size_at(const struct perf_options *options, uint32_t i, uint64_t *bytes_p)
{
	uint64_t bytes = options->min_bytes;

	if (options->n_sizes > 0) {
		if (i < options->n_sizes)
			*bytes_p = options->sizes[i];
		return i < options->n_sizes;
	}
	for (uint32_t n = 0; n < i && bytes <= options->max_bytes; n++) {
		if (bytes == 0)
			bytes = rx_dtype_size(options->dtype);
		else if (!rx_mul_u64(bytes, options->factor, &bytes))
			return false;
	}
	if (bytes <= options->max_bytes)
		*bytes_p = bytes;
	return bytes <= options->max_bytes;
}
