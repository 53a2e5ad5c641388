/* SPDX-License-Identifier: MIT */
#include "private_daemon.h"

#include "../rcclx.h"
#include "../../shm/rx_cleanup.h"
#include "../../shm/rx_clock.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef RCCLX_SBINDIR
#define RCCLX_SBINDIR "/usr/local/sbin"
#endif

#define START_NS   (5 * RX_NS_PER_SEC)
#define STOP_NS    (10 * RX_NS_PER_SEC)
#define POLL_NS    (2 * RX_NS_PER_MS)
#define CONNECT_NS RX_NS_PER_SEC

static void pause_briefly(void)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};

	(void)nanosleep(&pause, NULL);
}

/* Installed (bin/../sbin), or in a build tree (client/perf/, or libtool's client/perf/.libs/). */
static bool find_near(const char *exe_dir, char *path, size_t bytes)
{
	static const char *const places[] = {"../sbin", "../../daemon", "../../../daemon"};

	for (size_t i = 0; i < RX_ARRAY_SIZE(places); i++) {
		int n = snprintf(path, bytes, "%s/%s/rcclxd", exe_dir, places[i]);

		if (n > 0 && (size_t)n < bytes && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static bool find_binary(char *path, size_t bytes)
{
	const char *given = getenv("RCCLXD");
	char exe[PATH_MAX] = {0};
	char *slash = NULL;

	if (given) {
		(void)snprintf(path, bytes, "%s", given);
		if (access(path, X_OK) == 0)
			return true;
		fprintf(stderr, "rcclx-perf: $RCCLXD: cannot execute %s: %m\n", path);
		return false;
	}
	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0)
		slash = strrchr(exe, '/');
	if (slash) {
		*slash = '\0';
		if (find_near(exe, path, bytes))
			return true;
	}
	(void)snprintf(path, bytes, "%s/rcclxd", RCCLX_SBINDIR);
	if (access(path, X_OK) == 0)
		return true;
	fprintf(stderr, "rcclx-perf: no rcclxd beside %s nor in %s; set RCCLXD to its path\n", exe,
		RCCLX_SBINDIR);
	return false;
}

static bool make_files(struct perf_daemon *daemon)
{
	const char *tmp = getenv("TMPDIR");

	/* A socket's path must be short: 107 bytes with its name. */
	if (!tmp || *tmp != '/' || strlen(tmp) > 48)
		tmp = "/tmp";
	(void)snprintf(daemon->dir, sizeof(daemon->dir), "%s/rcclx-perf.XXXXXX", tmp);
	if (!mkdtemp(daemon->dir)) {
		fprintf(stderr, "rcclx-perf: cannot make a directory in %s: %m\n", tmp);
		return false;
	}
	(void)snprintf(daemon->socket, sizeof(daemon->socket), "%s/rcclxd.sock", daemon->dir);
	(void)snprintf(daemon->admin, sizeof(daemon->admin), "%s/admin.sock", daemon->dir);
	(void)snprintf(daemon->log, sizeof(daemon->log), "%s/log", daemon->dir);
	return true;
}

static void remove_files(const struct perf_daemon *daemon)
{
	(void)unlink(daemon->socket);
	(void)unlink(daemon->admin);
	(void)unlink(daemon->log);
	if (rmdir(daemon->dir))
		fprintf(stderr, "rcclx-perf: cannot remove %s: %m\n", daemon->dir);
}

/* In the child: does not return. */
static _Noreturn void become_daemon(
	const char *binary, const struct perf_daemon *daemon, const char *tuning_dir, int lifeline)
{
	int log = open(daemon->log, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char fd[16] = "";
	sigset_t none;

	/* Ctrl-C ends rcclx-perf, which then ends the daemon. */
	(void)setpgid(0, 0);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (log < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
		dup2(log, STDERR_FILENO) < 0 || fcntl(lifeline, F_SETFD, 0) < 0)
		_exit(126);
	(void)snprintf(fd, sizeof(fd), "%d", lifeline);
	(void)execl(binary, "rcclxd", "--private", "--socket", daemon->socket, "--lifeline-fd", fd,
		"--log-level", "warn", tuning_dir ? "--tuning-dir" : NULL, tuning_dir,
		(char *)NULL);
	fprintf(stderr, "cannot execute %s: %m\n", binary);
	_exit(127);
}

static bool answers(const struct perf_daemon *daemon)
{
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;
	struct rcclx_client *client = NULL;

	config.timeout_ns = CONNECT_NS;
	if (rcclx_connect(daemon->socket, &config, &client) != RCCLX_OK)
		return false;
	return rcclx_disconnect(client) == RCCLX_OK;
}

/* Reaps the daemon if it has ended, and says how. */
static bool has_ended(struct perf_daemon *daemon)
{
	int status = 0;

	if (waitpid(daemon->pid, &status, WNOHANG) != daemon->pid)
		return false;
	daemon->pid = 0;
	if (WIFSIGNALED(status))
		fprintf(stderr, "rcclx-perf: rcclxd was killed by signal %d (%s)\n",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "rcclx-perf: rcclxd exited with status %d\n", WEXITSTATUS(status));
	return true;
}

static bool await_answer(struct perf_daemon *daemon)
{
	uint64_t deadline_ns = rx_deadline_ns(START_NS);

	while (!answers(daemon)) {
		if (has_ended(daemon))
			return false;
		if (rx_now_ns() >= deadline_ns) {
			fprintf(stderr, "rcclx-perf: rcclxd (pid %d) does not answer at %s: %s\n",
				(int)daemon->pid, daemon->socket, rcclx_last_error());
			return false;
		}
		pause_briefly();
	}
	return true;
}

bool perf_daemon_start(struct perf_daemon *daemon, const char *tuning_dir)
{
	char binary[PATH_MAX + 32] = {0};
	int ends[2] = {-1, -1};

	if (!find_binary(binary, sizeof(binary)) || !make_files(daemon))
		return false;
	if (pipe2(ends, O_CLOEXEC)) {
		fprintf(stderr, "rcclx-perf: pipe: %m\n");
		remove_files(daemon);
		return false;
	}
	daemon->pid = fork();
	if (daemon->pid == 0)
		become_daemon(binary, daemon, tuning_dir, ends[0]);
	(void)close(ends[0]);
	daemon->lifeline = ends[1];
	if (daemon->pid < 0) {
		fprintf(stderr, "rcclx-perf: fork: %m\n");
		daemon->pid = 0;
		perf_daemon_stop(daemon, false);
		return false;
	}
	if (await_answer(daemon))
		return true;
	perf_daemon_stop(daemon, true);
	return false;
}

static void show_log(const struct perf_daemon *daemon)
{
	RX_CLOSE int fd = open(daemon->log, O_RDONLY | O_CLOEXEC);
	char text[4096] = {0};
	ssize_t n = 0;

	while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0)
		(void)fwrite(text, 1, (size_t)n, stderr);
}

void perf_daemon_stop(struct perf_daemon *daemon, bool say)
{
	uint64_t deadline_ns = rx_deadline_ns(STOP_NS);

	if (daemon->lifeline < 0)
		return;
	(void)close(daemon->lifeline);
	daemon->lifeline = -1;
	while (daemon->pid && waitpid(daemon->pid, NULL, WNOHANG) == 0) {
		if (rx_now_ns() >= deadline_ns) {
			fprintf(stderr, "rcclx-perf: rcclxd (pid %d) does not end: killed\n",
				(int)daemon->pid);
			(void)kill(daemon->pid, SIGKILL);
			(void)waitpid(daemon->pid, NULL, 0);
			break;
		}
		pause_briefly();
	}
	daemon->pid = 0;
	if (say)
		show_log(daemon);
	remove_files(daemon);
}
