/* SPDX-License-Identifier: MIT */
/* rcclxctl tune: what to measure, the progress, the report, the file. */
#include "number.h"
#include "print.h"
#include "thresholds.h"
#include "tune_file.h"
#include "tune_sweep.h"
#include "../../shm/rx_clock.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef SYSCONFDIR
#define SYSCONFDIR "/etc"
#endif

#define DEFAULT_DIR       SYSCONFDIR "/rcclx/tuning.d"
#define DEFAULT_FILE      DEFAULT_DIR "/50-measured.conf"
#define LOCAL_FILE        "./rcclx-tuning.conf"
#define JOB_SECONDS       12u
#define SECONDS_MAX       86400u
#define MAX_BYTES         (64ull << 20)
#define MEMORY_PART       8u /* of the machine's: what a measurement may take, at most */
#define BUFFERS_PER_RANK  2u
#define BAR_CELLS         24
#define MOST_SHARED_RANKS 8u

struct tune_options {
	bool ranks[RX_MAX_RANKS + 1];
	bool colls[RX_COLL_N];
	const char *out;
	uint64_t seconds; /* 0: by the number of jobs */
	const char *socket;
	bool json;
};

struct tune {
	struct tune_options options;
	struct tune_run run;
	struct thresholds thresholds;
	struct tune_result result;
	json_t *report; /* array; NULL: text */
	uint32_t n_jobs;
	uint32_t job;
	uint64_t start_ns;
	uint64_t budget_ns; /* of one job, as planned */
	uint64_t end_ns;    /* RX_FOREVER: nobody has said how long it may take */
	char what[64];      /* the job, for the progress */
	uint32_t shown_step;
	uint32_t n_kept;
	bool tty;
};

/* Those that move data, are executed inline, and can be measured by rcclx-perf. */
static const uint32_t default_colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER,
	RX_ALL_TO_ALL, RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER};

static enum ctl_exit help(void)
{
	printf("Usage: rcclxctl tune [OPTIONS]\n"
	       "Measure which thresholds serve this machine best, and write them to a file.\n\n"
	       "  --ranks N,...        numbers of ranks (the classes that fit the node's cores)\n"
	       "  --collectives LIST   all_reduce,all_gather,... (all that rcclx-perf measures)\n"
	       "  --out FILE           (" DEFAULT_FILE ",\n"
	       "                       or " LOCAL_FILE " where that cannot be written)\n"
	       "  --seconds S          time to take, about (%u for each collective and number of "
	       "ranks)\n"
	       "  --json               the report as JSON\n"
	       "  --socket PATH        the admin socket of the daemon whose thresholds are compared\n"
	       "\nDaemons are started for it; the node's own only tells its thresholds. Nothing is\n"
	       "written before the end. The daemon reads the file when it is told to reload.\n",
		JOB_SECONDS);
	return CTL_EXIT_OK;
}

static enum ctl_exit bad(const char *what, const char *value, const char *expected)
{
	fprintf(stderr, "rcclxctl: tune: %s \"%s\": expected %s\n", what, value, expected);
	return CTL_EXIT_USAGE;
}

static enum ctl_exit set_ranks(struct tune_options *options, char *list)
{
	char *rest = NULL;

	for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		uint64_t n = 0;

		if (!number_parse(word, 2, RX_MAX_RANKS, &n))
			return bad("--ranks", word, "2 to 64, separated by commas");
		options->ranks[n] = true;
	}
	return CTL_EXIT_OK;
}

static enum ctl_exit set_colls(struct tune_options *options, char *list)
{
	char *rest = NULL;

	for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		int coll = rx_coll_parse(word);

		if (coll < 0 || coll == RX_BARRIER || coll == RX_SEND || coll == RX_RECV)
			return bad("--collectives", word, "all_reduce, all_gather, ...");
		options->colls[coll] = true;
	}
	return CTL_EXIT_OK;
}

static enum ctl_exit apply(struct tune_options *options, int c)
{
	switch (c) {
	case 'r':
		return set_ranks(options, optarg);
	case 'c':
		return set_colls(options, optarg);
	case 'o':
		options->out = optarg;
		return CTL_EXIT_OK;
	case 't':
		return number_parse(optarg, 1, SECONDS_MAX, &options->seconds)
			       ? CTL_EXIT_OK
			       : bad("--seconds", optarg, "1 to 86400");
	case 's':
		options->socket = optarg;
		return CTL_EXIT_OK;
	case 'j':
		options->json = true;
		return CTL_EXIT_OK;
	default:
		return CTL_EXIT_USAGE;
	}
}

static enum ctl_exit parse(const struct ctl_options *given, struct tune_options *options)
{
	static const struct option long_options[] = {
		{"ranks", required_argument, NULL, 'r'},
		{"collectives", required_argument, NULL, 'c'},
		{"out", required_argument, NULL, 'o'},
		{"seconds", required_argument, NULL, 't'},
		{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{NULL, 0, NULL, 0},
	};
	int c = 0;

	optind = 0; /* glibc: start afresh */
	while ((c = getopt_long(given->argc, given->argv, "", long_options, NULL)) != -1) {
		enum ctl_exit status = apply(options, c);

		if (status != CTL_EXIT_OK)
			return status;
	}
	if (optind == given->argc)
		return CTL_EXIT_OK;
	return bad("argument", given->argv[optind], "options only");
}

static bool any(const bool *flags, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (flags[i])
			return true;
	return false;
}

/* Classes that the cores can serve, and small ones that share cores. */
static void fill_defaults(struct tune *tune)
{
	struct tune_options *options = &tune->options;
	uint32_t n_cores = tune->thresholds.n_cores;

	if (!any(options->colls, RX_COLL_N))
		for (size_t i = 0; i < RX_ARRAY_SIZE(default_colls); i++)
			options->colls[default_colls[i]] = true;
	if (!any(options->ranks, RX_MAX_RANKS + 1))
		for (uint32_t c = 0; c < RX_TUNING_CLASSES; c++) {
			uint32_t n = rx_tuning_class_max(c);

			options->ranks[n] |= n <= n_cores || n <= MOST_SHARED_RANKS;
		}
	if (!options->out)
		options->out = access(DEFAULT_DIR, W_OK) == 0 ? DEFAULT_FILE : LOCAL_FILE;
	for (uint32_t coll = 0; coll < RX_COLL_N; coll++)
		for (uint32_t n = 0; n <= RX_MAX_RANKS; n++)
			tune->n_jobs += options->colls[coll] && options->ranks[n];
	if (options->seconds == 0)
		options->seconds = (uint64_t)JOB_SECONDS * tune->n_jobs;
	else
		tune->end_ns = rx_deadline_ns(options->seconds * RX_NS_PER_SEC);
	tune->budget_ns = options->seconds * RX_NS_PER_SEC / tune->n_jobs;
}

/* ---- progress ---- */

static void clear_line(const struct tune *tune)
{
	if (tune->tty)
		fprintf(stderr, "\r\033[K");
}

static void on_progress(void *ctx, uint32_t step, double part, const char *threshold)
{
	struct tune *tune = ctx;
	double done = (tune->job + (step + part) / TUNE_STEPS) / tune->n_jobs;
	uint64_t spent_ns = rx_now_ns() - tune->start_ns;
	uint64_t planned_ns = tune->budget_ns * tune->n_jobs;
	uint64_t left_ns = 0;
	char left[PRINT_CELL];
	int cells = (int)(done * BAR_CELLS);

	/* The plan at first, then what has been seen. */
	left_ns = done > 0.1 ? (uint64_t)((double)spent_ns * (1 - done) / done)
			     : (uint64_t)((double)planned_ns * (1 - done));
	(void)print_duration(left_ns / RX_NS_PER_SEC * RX_NS_PER_SEC, left);
	if (tune->tty)
		fprintf(stderr, "\r\033[K[%.*s%*s] %3.0f %%, about %s left: %s: %s", cells,
			"##############################", BAR_CELLS - cells, "", 100 * done, left,
			tune->what, threshold);
	else if (step != tune->shown_step)
		fprintf(stderr, "%3.0f %%, about %s left: %s: %s\n", 100 * done, left, tune->what,
			threshold);
	tune->shown_step = step;
}

/* ---- report ---- */

static const char *describe_value(uint64_t value, char cell[PRINT_CELL])
{
	if (value >= UINT32_MAX)
		(void)snprintf(cell, PRINT_CELL, "never");
	else
		(void)print_bytes(value, cell);
	return cell;
}

static void print_gain(const struct tune *tune, const struct tune_gain *gain)
{
	char old[PRINT_CELL], new[PRINT_CELL], size[PRINT_CELL];

	if (!gain->measured)
		return;
	(void)describe_value(gain->old_value, old);
	if (gain->no_time) {
		printf("%s: %s stays %s, there was no time to measure it\n", tune->what,
			explain_threshold_name(gain->threshold), old);
		return;
	}
	if (gain->new_value == gain->old_value) {
		printf("%s: %s stays %s\n", tune->what, explain_threshold_name(gain->threshold),
			old);
		return;
	}
	printf("%s: %s %s %s, %s is %.1f %% %s than it (noise %.1f %%)", tune->what,
		explain_threshold_name(gain->threshold), gain->kept ? "was" : "stays", old,
		describe_value(gain->new_value, new),
		100 * (gain->ratio >= 1 ? gain->ratio - 1 : 1 - gain->ratio),
		gain->ratio >= 1 ? "faster" : "slower", 100 * gain->noise);
	if (gain->kept)
		printf("; at %s %.2f us instead of %.2f us", print_bytes(gain->best_bytes, size),
			gain->best_new_us, gain->best_old_us);
	printf("\n");
}

static bool report_gain(
	struct tune *tune, uint32_t coll, uint32_t n_ranks, const struct tune_gain *gain)
{
	json_t *json = NULL;

	if (!tune->report) {
		print_gain(tune, gain);
		return true;
	}
	if (!gain->measured)
		return true;
	json = json_pack("{s:s, s:i, s:s, s:b, s:I, s:I, s:b, s:f, s:f, s:I, s:f, s:f}",
		"collective", rx_coll_name(coll), "ranks", (int)n_ranks, "threshold",
		explain_threshold_name(gain->threshold), "measured", !gain->no_time, "old",
		(json_int_t)gain->old_value, "new", (json_int_t)gain->new_value, "kept", gain->kept,
		"ratio", gain->ratio, "noise", gain->noise, "best_bytes",
		(json_int_t)gain->best_bytes, "best_old_us", gain->best_old_us, "best_new_us",
		gain->best_new_us);
	return json_array_append_new(tune->report, json) == 0;
}

/* ---- jobs ---- */

/* What is left, for each job that is left: some take more than their part. */
static uint64_t job_budget_ns(const struct tune *tune)
{
	uint64_t now = rx_now_ns();

	if (tune->end_ns == RX_FOREVER)
		return tune->budget_ns;
	return now >= tune->end_ns ? 1 : (tune->end_ns - now) / (tune->n_jobs - tune->job) + 1;
}

static uint64_t largest_message(uint32_t n_ranks)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	long page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t memory =
		pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 1ull << 30;
	uint64_t each = memory / MEMORY_PART / BUFFERS_PER_RANK / n_ranks;
	uint64_t bytes = 1u << 20;

	while (bytes < MAX_BYTES && 2 * bytes <= each)
		bytes *= 2;
	return bytes;
}

static void take_gains(struct tune *tune, const struct tune_job *job, uint32_t tuning_class,
	const struct tune_gain gains[TUNE_STEPS])
{
	for (uint32_t i = 0; i < TUNE_STEPS; i++) {
		if (!gains[i].kept)
			continue;
		tune_file_set(&tune->result.table.entries[job->coll][tuning_class],
			gains[i].threshold, gains[i].new_value);
		tune->result.set[job->coll][tuning_class][gains[i].threshold] = true;
		tune->n_kept++;
	}
}

static enum ctl_exit run_job(struct tune *tune, uint32_t coll, uint32_t n_ranks)
{
	uint32_t tuning_class = rx_tuning_class(n_ranks);
	struct tune_gain gains[TUNE_STEPS] = {{0}};
	struct tune_job job = {
		.run = &tune->run,
		.coll = coll,
		.n_ranks = n_ranks,
		.cores_shared = n_ranks > tune->thresholds.n_cores,
		.max_bytes = largest_message(n_ranks),
		.budget_ns = job_budget_ns(tune),
		.end_ns = tune->end_ns,
		.entry = tune->result.table.entries[coll][tuning_class],
		.progress = on_progress,
		.ctx = tune,
	};
	enum ctl_exit status = CTL_EXIT_OK;

	(void)snprintf(tune->what, sizeof(tune->what), "%s, %u ranks", rx_coll_name(coll), n_ranks);
	tune->shown_step = UINT32_MAX;
	status = tune_job_run(&job, gains);
	clear_line(tune);
	if (status == CTL_EXIT_USAGE) {
		fprintf(stderr, "%s: skipped, rcclx-perf cannot measure it\n", rx_coll_name(coll));
		tune->options.colls[coll] = false;
		return CTL_EXIT_OK;
	}
	if (status != CTL_EXIT_OK)
		return status;
	take_gains(tune, &job, tuning_class, gains);
	for (uint32_t i = 0; i < TUNE_STEPS; i++)
		if (!report_gain(tune, coll, n_ranks, &gains[i]))
			return CTL_EXIT_FAILED;
	(void)fflush(stdout);
	return CTL_EXIT_OK;
}

static enum ctl_exit run_jobs(struct tune *tune)
{
	enum ctl_exit status = CTL_EXIT_OK;

	for (uint32_t coll = 0; coll < RX_COLL_N; coll++) {
		if (!tune->options.colls[coll])
			continue;
		for (uint32_t n = 0; n <= RX_MAX_RANKS; n++) {
			if (!tune->options.ranks[n])
				continue;
			if (status == CTL_EXIT_OK && tune->options.colls[coll])
				status = run_job(tune, coll, n);
			tune->job++;
		}
	}
	return status;
}

/* What an earlier run has put into the file that is replaced stays in it. */
static void keep_old(struct tune *tune)
{
	const char *out = tune->options.out;
	size_t len = strlen(out);

	for (uint32_t coll = 0; coll < RX_COLL_N; coll++)
		for (uint32_t c = 0; c < RX_TUNING_CLASSES; c++)
			for (uint32_t t = EXPLAIN_FLAT_MAX; t < _EXPLAIN_THRESHOLD_N; t++) {
				const char *from = tune->thresholds.from[coll][c][t];

				if (from && strncmp(from, out, len) == 0 && from[len] == ':')
					tune->result.set[coll][c][t] = true;
			}
}

static enum ctl_exit write_result(struct tune *tune)
{
	char heading[128];
	char date[32] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (gmtime_r(&now, &tm))
		(void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm);
	(void)snprintf(heading, sizeof(heading), "Measured by rcclxctl tune, %s, on %u cores", date,
		tune->thresholds.n_cores);
	if (!tune_file_write(tune->options.out, heading, &tune->result))
		return CTL_EXIT_FAILED;
	if (tune->report)
		return json_print(json_pack("{s:s, s:i, s:O}", "file", tune->options.out, "kept",
			       (int)tune->n_kept, "thresholds", tune->report))
			       ? CTL_EXIT_OK
			       : CTL_EXIT_FAILED;
	printf("%u thresholds changed; written to %s\n", tune->n_kept, tune->options.out);
	if (tune->n_kept > 0)
		printf("In a daemon's tuning folder it counts after: systemctl reload rcclxd\n");
	return CTL_EXIT_OK;
}

static enum ctl_exit run(struct tune *tune)
{
	enum ctl_exit status = CTL_EXIT_OK;
	char time[PRINT_CELL];

	tune->end_ns = RX_FOREVER;
	fill_defaults(tune);
	tune->result.table = tune->thresholds.table;
	keep_old(tune);
	status = tune_run_init(&tune->run);
	if (status != CTL_EXIT_OK)
		return status;
	fprintf(stderr, "collectives times numbers of ranks: %u, about %s; compared with %s\n",
		tune->n_jobs, print_duration(tune->budget_ns * tune->n_jobs, time),
		tune->thresholds.of_daemon ? "the daemon's" : "the compiled defaults");
	tune->start_ns = rx_now_ns();
	status = run_jobs(tune);
	tune_run_deinit(&tune->run);
	if (status == CTL_EXIT_OK)
		return write_result(tune);
	if (status == CTL_EXIT_INTERRUPTED)
		fprintf(stderr, "interrupted: nothing is written\n");
	return status;
}

enum ctl_exit cmd_tune(const struct ctl_options *options)
{
	static struct tune tune;
	enum ctl_exit status = CTL_EXIT_OK;

	if (options->argc > 1 && strcmp(options->argv[1], "--help") == 0)
		return help();
	tune.options.json = options->json;
	tune.options.socket = options->socket;
	status = parse(options, &tune.options);
	if (status == CTL_EXIT_OK)
		status = thresholds_get(tune.options.socket, &tune.thresholds);
	if (status != CTL_EXIT_OK)
		return status;
	tune.tty = isatty(STDERR_FILENO);
	tune.report = tune.options.json ? json_array() : NULL;
	status = run(&tune);
	json_decref(tune.report);
	thresholds_deinit(&tune.thresholds);
	return status;
}
