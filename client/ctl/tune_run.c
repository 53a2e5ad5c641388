/* SPDX-License-Identifier: MIT */
#include "tune_run.h"

#include "tune_file.h"
#include "../../kernels/coll_plan.h"
#include "../../shm/rx_cleanup.h"
#include "../../shm/rx_clock.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifndef RCCLX_BINDIR
#define RCCLX_BINDIR "/usr/local/bin"
#endif

#define RUN_NS      (120 * RX_NS_PER_SEC) /* longest that a run may take */
#define END_NS      (15 * RX_NS_PER_SEC)  /* to end after a signal: it ends its daemon, too */
#define POLL_MS     50
#define OUTPUT_MAX  (256u * 1024)
#define PERF_USAGE  2
#define CASE_DIR    "case"
#define CASE_FILE   CASE_DIR "/case.conf"
#define ERRORS_FILE "errors"

static volatile sig_atomic_t interrupted;

static void on_signal(int number RX_UNUSED)
{
	interrupted = 1;
}

bool tune_interrupted(void)
{
	return interrupted != 0;
}

/* Installed beside us, or in a build tree. */
static bool find_perf(struct tune_run *run)
{
	static const char *const places[] = {"rcclx-perf", "../perf/rcclx-perf"};
	const char *given = getenv("RCCLX_PERF");
	char exe[PATH_MAX / 2] = {0};
	char *slash = NULL;

	(void)snprintf(run->perf, sizeof(run->perf), "%s", given ? given : "");
	if (given)
		return access(run->perf, X_OK) == 0;
	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0)
		slash = strrchr(exe, '/');
	for (size_t i = 0; slash && i < RX_ARRAY_SIZE(places); i++) {
		slash[0] = '\0';
		(void)snprintf(run->perf, sizeof(run->perf), "%s/%s", exe, places[i]);
		if (access(run->perf, X_OK) == 0)
			return true;
	}
	(void)snprintf(run->perf, sizeof(run->perf), "%s/rcclx-perf", RCCLX_BINDIR);
	return access(run->perf, X_OK) == 0;
}

static int remove_one(const char *path, const struct stat *st RX_UNUSED, int type RX_UNUSED,
	struct FTW *ftw RX_UNUSED)
{
	return remove(path);
}

void tune_run_deinit(struct tune_run *run)
{
	if (run->dir[0] && nftw(run->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS))
		fprintf(stderr, "rcclxctl: tune: cannot remove %s: %m\n", run->dir);
	run->dir[0] = '\0';
}

enum ctl_exit tune_run_init(struct tune_run *run)
{
	struct sigaction action = {.sa_handler = on_signal};
	const char *tmp = getenv("TMPDIR");
	char sub[sizeof(run->dir) + sizeof(CASE_DIR)];

	*run = (struct tune_run){{0}, {0}};
	if (!find_perf(run)) {
		fprintf(stderr,
			"rcclxctl: tune: cannot execute %s: %m; set RCCLX_PERF to the path "
			"of rcclx-perf\n",
			run->perf);
		return CTL_EXIT_FAILED;
	}
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGHUP, &action, NULL);
	/* Sockets are made in it, and their paths must be short. */
	if (!tmp || *tmp != '/' || strlen(tmp) > 24)
		tmp = "/tmp";
	(void)snprintf(run->dir, sizeof(run->dir), "%s/rcclx-tune.XXXXXX", tmp);
	if (!mkdtemp(run->dir)) {
		fprintf(stderr, "rcclxctl: tune: cannot make a folder in %s: %m\n", tmp);
		run->dir[0] = '\0';
		return CTL_EXIT_FAILED;
	}
	(void)snprintf(sub, sizeof(sub), "%s/" CASE_DIR, run->dir);
	if (mkdir(sub, 0700) == 0)
		return CTL_EXIT_OK;
	fprintf(stderr, "rcclxctl: tune: %s: %m\n", sub);
	tune_run_deinit(run);
	return CTL_EXIT_FAILED;
}

/* ---- one run ---- */

/* In the child: does not return. */
static _Noreturn void become_perf(const struct tune_run *run, const struct tune_case *c, int out)
{
	char ranks[16], from[24], to[24], factor[16], n[16], dir[96], errors[96];
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int err = -1;

	(void)snprintf(ranks, sizeof(ranks), "%u", c->n_ranks);
	(void)snprintf(from, sizeof(from), "%" PRIu64, c->min_bytes);
	(void)snprintf(to, sizeof(to), "%" PRIu64, c->max_bytes);
	(void)snprintf(factor, sizeof(factor), "%u", c->factor);
	(void)snprintf(n, sizeof(n), "%u", c->n_iterations);
	(void)snprintf(dir, sizeof(dir), "%s/" CASE_DIR, run->dir);
	(void)snprintf(errors, sizeof(errors), "%s/" ERRORS_FILE, run->dir);
	err = open(errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (null < 0 || err < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
		dup2(err, STDERR_FILENO) < 0 || setenv("TMPDIR", run->dir, 1) ||
		setenv("RCCLX_SINGLE_COPY", c->single_copy ? "on" : "off", 1) ||
		prctl(PR_SET_PDEATHSIG, SIGTERM))
		_exit(126);
	(void)execl(run->perf, "rcclx-perf", rx_coll_name(c->coll), "--private", "--tuning-dir",
		dir, "--ranks", ranks, "--memory", c->registered ? "registered" : "private",
		"--executor", "inline", "--json", "-b", from, "-e", to, "-f", factor, "-n", n, "-w",
		"2", (char *)NULL);
	_exit(127);
}

/* All that it prints, until it ends its output. False: too late, too much, or interrupted. */
static bool read_output(int fd, uint64_t end_ns, char *text, size_t cap)
{
	uint64_t deadline_ns = rx_min_u64(rx_deadline_ns(RUN_NS), end_ns);
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	size_t n = 0;

	while (!interrupted && rx_now_ns() < deadline_ns && n + 1 < cap) {
		ssize_t got = 0;

		if (poll(&pfd, 1, POLL_MS) <= 0)
			continue;
		got = read(fd, text + n, cap - n - 1);
		if (got == 0) {
			text[n] = '\0';
			return true;
		}
		n += got > 0 ? (size_t)got : 0;
	}
	return false;
}

static int end_child(pid_t pid, bool stop)
{
	uint64_t deadline_ns = rx_deadline_ns(END_NS);
	const struct timespec pause = {.tv_nsec = 2000000};
	int status = 0;

	if (stop)
		(void)kill(pid, SIGTERM);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (rx_now_ns() >= deadline_ns) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, &status, 0);
			break;
		}
		(void)nanosleep(&pause, NULL);
	}
	return status;
}

static bool take_line(const char *line, const struct tune_case *c, struct tune_times *times)
{
	json_t *json = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
	json_t *count = json_object_get(json, "count");
	json_t *us = json_object_get(json, "time_us_p50");
	const char *dtype = json_string_value(json_object_get(json, "dtype"));
	int type = dtype ? rx_dtype_parse(dtype) : -1;
	bool ok = json_is_integer(count) && json_is_number(us) && type >= 0 &&
		  times->n < TUNE_SIZES_MAX;

	if (ok) {
		uint64_t bytes =
			(uint64_t)json_integer_value(count) * rx_dtype_size((uint32_t)type);

		times->bytes[times->n] = rx_coll_personal(c->coll) ? bytes * c->n_ranks : bytes;
		/* Printed with two digits: nothing takes less than the last of them. */
		times->us[times->n] = json_number_value(us) > 0.01 ? json_number_value(us) : 0.01;
		times->n++;
	}
	json_decref(json);
	return ok;
}

static bool take_output(char *text, const struct tune_case *c, struct tune_times *times_p)
{
	struct tune_times times = {0};
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!take_line(line, c, &times))
			return false;
	*times_p = times;
	return times.n > 0;
}

static enum ctl_exit explain_failure(const struct tune_run *run, int status)
{
	char path[96];
	char line[256] = "";
	FILE *errors = NULL;

	(void)snprintf(path, sizeof(path), "%s/" ERRORS_FILE, run->dir);
	errors = fopen(path, "re");
	if (WIFEXITED(status) && WEXITSTATUS(status) == PERF_USAGE && errors &&
		fgets(line, sizeof(line), errors) && strstr(line, "unknown collective")) {
		(void)fclose(errors);
		return CTL_EXIT_USAGE;
	}
	fprintf(stderr, "rcclxctl: tune: %s failed (status %d): %s", run->perf,
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), line);
	while (errors && fgets(line, sizeof(line), errors))
		fputs(line, stderr);
	fputc('\n', stderr);
	if (errors)
		(void)fclose(errors);
	return CTL_EXIT_FAILED;
}

static enum ctl_exit run_case(const struct tune_run *run, const struct tune_case *c, char *text)
{
	int ends[2] = {-1, -1};
	bool complete = false;
	int status = 0;
	pid_t pid = 0;

	if (pipe2(ends, O_CLOEXEC)) {
		fprintf(stderr, "rcclxctl: tune: pipe: %m\n");
		return CTL_EXIT_FAILED;
	}
	pid = fork();
	if (pid == 0)
		become_perf(run, c, ends[1]);
	(void)close(ends[1]);
	if (pid > 0) {
		complete = read_output(ends[0], c->end_ns, text, OUTPUT_MAX);
		status = end_child(pid, !complete);
	}
	(void)close(ends[0]);
	if (interrupted)
		return CTL_EXIT_INTERRUPTED;
	if (pid < 0) {
		fprintf(stderr, "rcclxctl: tune: fork: %m\n");
		return CTL_EXIT_FAILED;
	}
	if (!complete && rx_now_ns() >= c->end_ns) {
		text[0] = '\0';
		return CTL_EXIT_OK;
	}
	return complete && status == 0 ? CTL_EXIT_OK : explain_failure(run, status);
}

enum ctl_exit tune_measure(
	const struct tune_run *run, const struct tune_case *c, struct tune_times *times_p)
{
	RX_FREE char *text = malloc(OUTPUT_MAX);
	char path[96];
	enum ctl_exit status = CTL_EXIT_FAILED;

	if (!text) {
		fprintf(stderr, "rcclxctl: out of memory\n");
		return CTL_EXIT_FAILED;
	}
	(void)snprintf(path, sizeof(path), "%s/" CASE_FILE, run->dir);
	if (!tune_file_case(path, c->coll, c->n_ranks, &c->entry))
		return CTL_EXIT_FAILED;
	status = run_case(run, c, text);
	if (status == CTL_EXIT_OK && !text[0] && rx_now_ns() >= c->end_ns)
		times_p->n = 0;
	else if (status == CTL_EXIT_OK && !take_output(text, c, times_p)) {
		fprintf(stderr, "rcclxctl: tune: the output of %s is not understood\n", run->perf);
		return CTL_EXIT_FAILED;
	}
	return status;
}
