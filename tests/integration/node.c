/* SPDX-License-Identifier: MIT */
#include "harness.h"
#include "admin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES_MAX 4u

/* A busy machine can delay a rank for a second; only tests of stalls want to hear of that. */
#define DEFAULT_CONFIG "stall_report_s = 20;\n"

/* Maps that libraries and worker threads may add once: heap of a thread, stack, locale. */
#define SPARE_MAPS 24u

/* Static: a failing test jumps out of its stack frame, its nodes still have to be ended. */
static struct node nodes[NODES_MAX];

static struct node *take_node(void)
{
	for (size_t i = 0; i < NODES_MAX; i++)
		if (!nodes[i].used)
			return &nodes[i];
	fail_msg("more than %u nodes in one test", NODES_MAX);
	return NULL;
}

/* ---- starting ---- */

static const char *daemon_path(void)
{
	const char *path = getenv("RCCLXD");

	return path != NULL ? path : "daemon/rcclxd";
}

static void write_config(const struct node *node)
{
	FILE *file = fopen(node->config, "we");

	assert_non_null(file);
	(void)fputs(node->options.config != NULL ? node->options.config : DEFAULT_CONFIG, file);
	assert_int_equal(fclose(file), 0);
}

/* Child: never returns. */
static void run_daemon(const struct node *node, int lifeline)
{
	char fd_text[16] = "";
	int log = open(node->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	if (log < 0 || dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0)
		_exit(126);
	(void)close(log);
	(void)alarm(0);
	(void)fcntl(lifeline, F_SETFD, 0);
	(void)snprintf(fd_text, sizeof(fd_text), "%d", lifeline);
	if (node->options.n_files > 0) {
		struct rlimit limit = {node->options.n_files, node->options.n_files};

		if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
			_exit(126);
	}
	if (node->options.preload != NULL) {
		(void)setenv("LD_PRELOAD", node->options.preload, 1);
		(void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
	}
	if (node->options.env_name != NULL)
		(void)setenv(node->options.env_name, node->options.env_value, 1);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)execl(daemon_path(), "rcclxd", "--private", "--socket", node->socket, "--config",
		node->config, "--log-level", "info", "--lifeline-fd", fd_text, (char *)NULL);
	dprintf(STDERR_FILENO, "error: cannot run %s: %s\n", daemon_path(), strerror(errno));
	_exit(127);
}

static bool answers(const struct node *node)
{
	struct admin_status status = {0};

	return admin_status(node->admin, &status) == 0;
}

static void show_log(const struct node *node)
{
	char line[1200] = "";
	FILE *file = fopen(node->log, "re");

	if (file == NULL)
		return;
	(void)fprintf(stderr, "---- log of the daemon, pid %d\n", (int)node->pid);
	while (fgets(line, sizeof(line), file) != NULL)
		(void)fputs(line, stderr);
	(void)fprintf(stderr, "----\n");
	(void)fclose(file);
}

static void wait_until_answers(struct node *node)
{
	uint64_t end = test_now_ms() + 5000 * test_slow();

	while (!answers(node)) {
		int status = 0;

		if (waitpid(node->pid, &status, WNOHANG) == node->pid) {
			node->pid = 0;
			fail_msg("the daemon ended at once, status 0x%x", (unsigned int)status);
		}
		if (test_now_ms() > end)
			fail_msg("the daemon does not answer at %s", node->admin);
		test_sleep_ms(2);
	}
}

/* Two equal looks in a row: the connections of the harness itself are gone. */
static struct proc_use settled_use(pid_t pid)
{
	struct proc_use last = {0};
	struct proc_use now = {0};

	assert_true(proc_use(pid, &last));
	for (int i = 0; i < 100; i++) {
		test_sleep_ms(5);
		assert_true(proc_use(pid, &now));
		if (now.n_fds == last.n_fds && now.n_maps == last.n_maps)
			break;
		last = now;
	}
	return now;
}

static void launch(struct node *node)
{
	int ends[2] = {-1, -1};

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)fflush(NULL);
	node->pid = fork();
	assert_true(node->pid >= 0);
	if (node->pid == 0) {
		/* The write end in the child would keep the lifeline alive. */
		(void)close(ends[1]);
		run_daemon(node, ends[0]);
	}
	(void)close(ends[0]);
	node->lifeline = ends[1];
	wait_until_answers(node);
	node->at_start = settled_use(node->pid);
}

struct node *node_start(const struct node_options *options)
{
	struct node *node = take_node();

	*node = (struct node){.used = true, .lifeline = -1};
	if (options != NULL)
		node->options = *options;
	char dir[] = "/tmp/rcclx-test-XXXXXX";
	assert_non_null(mkdtemp(dir));
	(void)snprintf(node->dir, sizeof(node->dir), "%s", dir);
	(void)snprintf(node->socket, sizeof(node->socket), "%s/rcclxd.sock", dir);
	(void)snprintf(node->admin, sizeof(node->admin), "%s/admin.sock", dir);
	(void)snprintf(node->log, sizeof(node->log), "%s/log", dir);
	(void)snprintf(node->config, sizeof(node->config), "%s/rcclxd.conf", dir);
	write_config(node);
	launch(node);
	return node;
}

void node_restart(struct node *node)
{
	assert_int_equal(node->pid, 0);
	launch(node);
}

/* ---- the log ---- */

void node_expect(struct node *node, const char *text, unsigned int min, unsigned int max)
{
	assert_true(node->n_expects < NODE_EXPECTS);
	node->expects[node->n_expects++] = (struct log_expect){text, min, max};
}

unsigned int node_log_count(const struct node *node, const char *a, const char *b)
{
	char line[1200] = "";
	unsigned int n = 0;
	FILE *file = fopen(node->log, "re");

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL)
		if ((a == NULL || strstr(line, a) != NULL) &&
			(b == NULL || strstr(line, b) != NULL))
			n++;
	(void)fclose(file);
	return n;
}

void node_wait_log(const struct node *node, const char *a, const char *b, uint64_t ms)
{
	uint64_t end = test_now_ms() + ms * test_slow();

	while (node_log_count(node, a, b) == 0) {
		if (test_now_ms() > end)
			fail_msg("no line with \"%s\" and \"%s\" in the daemon's log", a,
				b != NULL ? b : "");
		test_sleep_ms(10);
	}
}

/* Levels as shm/rx_log.h writes them, and whatever a sanitizer or libc says. */
static bool is_complaint(const char *line)
{
	static const char *const signs[] = {
		"warn ", "err ", "error: ", "Sanitizer", "runtime error", "Assertion", "corrupt"};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (strstr(line, signs[i]) != NULL)
			return true;
	return false;
}

static bool expected(struct node *node, const char *line, unsigned int *counts)
{
	bool found = false;

	for (unsigned int i = 0; i < node->n_expects; i++) {
		if (strstr(line, node->expects[i].text) == NULL)
			continue;
		counts[i]++;
		found = true;
	}
	return found;
}

static void check_log(struct node *node)
{
	char line[1200] = "";
	unsigned int counts[NODE_EXPECTS] = {0};
	bool good = true;
	FILE *file = fopen(node->log, "re");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (!is_complaint(line) || expected(node, line, counts))
			continue;
		(void)fprintf(stderr, "unexpected line in the log: %s", line);
		good = false;
	}
	(void)fclose(file);
	for (unsigned int i = 0; i < node->n_expects; i++) {
		const struct log_expect *e = &node->expects[i];

		if (counts[i] >= e->min && counts[i] <= e->max)
			continue;
		(void)fprintf(stderr, "\"%s\" is %u times in the log, expected %u to %u\n", e->text,
			counts[i], e->min, e->max);
		good = false;
	}
	if (!good)
		fail_msg("the daemon's log is not as expected");
}

/* ---- ending ---- */

static const char *leftover(const struct node *node, char *text, size_t cap)
{
	struct admin_status status = {0};
	struct proc_use use = {0};
	const struct proc_use *start = &node->at_start;

	if (admin_status(node->admin, &status) != 0)
		return "the daemon does not answer";
	if (!proc_use(node->pid, &use))
		return "the daemon is gone";
	/* The connection of this very question may still be closing: let the daemon run. */
	for (int i = 0; i < 40 && use.n_fds > start->n_fds; i++) {
		test_sleep_ms(5);
		if (!proc_use(node->pid, &use))
			return "the daemon is gone";
	}
	(void)snprintf(text, cap,
		"%u sessions, %u communicators, %llu regions, %llu bytes left; "
		"fds %u, at the start %u; maps of memory %u, %u; maps %u, %u",
		status.n_sessions, status.n_comms, (unsigned long long)status.n_regions,
		(unsigned long long)status.n_bytes, use.n_fds, start->n_fds, use.n_memfd_maps,
		start->n_memfd_maps, use.n_maps, start->n_maps);
	if (status.n_sessions != 0 || status.n_comms != 0 || status.n_regions != 0 ||
		status.n_bytes != 0)
		return text;
	if (use.n_fds > start->n_fds || use.n_memfd_maps != start->n_memfd_maps)
		return text;
	if (!test_sanitized() && !node->any_maps && use.n_maps > start->n_maps + SPARE_MAPS)
		return text;
	return NULL;
}

void node_check_idle(struct node *node)
{
	uint64_t end = test_now_ms() + 2000 * test_slow();
	char text[300] = "";
	const char *what = leftover(node, text, sizeof(text));

	while (what != NULL && test_now_ms() < end) {
		test_sleep_ms(10);
		what = leftover(node, text, sizeof(text));
	}
	if (what != NULL)
		fail_msg("%s", what);
}

void node_use_is_fine(struct node *node)
{
	uint64_t end = test_now_ms() + 2000 * test_slow();
	struct proc_use use = settled_use(node->pid);

	while (use.n_memfd_maps != node->at_start.n_memfd_maps && test_now_ms() < end)
		use = settled_use(node->pid);
	assert_int_equal(use.n_memfd_maps, node->at_start.n_memfd_maps);
	node->at_start = use;
	node->any_maps = true;
}

static void remove_files(const struct node *node)
{
	DIR *dir = opendir(node->dir);
	char path[400] = "";

	if (dir == NULL)
		return;
	for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
		(void)snprintf(path, sizeof(path), "%s/%s", node->dir, entry->d_name);
		(void)unlink(path);
	}
	(void)closedir(dir);
	(void)rmdir(node->dir);
}

static int wait_for_end(const struct node *node, uint64_t ms)
{
	uint64_t end = test_now_ms() + ms * test_slow();
	int status = 0;

	while (waitpid(node->pid, &status, WNOHANG) == 0) {
		if (test_now_ms() > end)
			return -1;
		test_sleep_ms(2);
	}
	return status;
}

void node_wait_end(struct node *node, uint64_t ms)
{
	int status = wait_for_end(node, ms);

	if (status == -1)
		fail_msg("the daemon does not end");
	node->pid = 0;
	if (status != 0)
		fail_msg("the daemon ended with status 0x%x", (unsigned int)status);
	if (access(node->socket, F_OK) == 0 || access(node->admin, F_OK) == 0)
		fail_msg("the daemon left a socket behind");
	(void)close(node->lifeline);
	node->lifeline = -1;
}

void node_stop(struct node *node)
{
	node_check_idle(node);
	assert_int_equal(kill(node->pid, SIGTERM), 0);
	node_wait_end(node, 5000);
	node_forget(node);
}

static void release(struct node *node)
{
	if (node->lifeline >= 0)
		(void)close(node->lifeline);
	remove_files(node);
	*node = (struct node){.lifeline = -1};
}

void node_forget(struct node *node)
{
	check_log(node);
	release(node);
}

void node_kill(struct node *node)
{
	assert_int_equal(kill(node->pid, SIGKILL), 0);
	(void)wait_for_end(node, 5000);
	node->pid = 0;
	(void)close(node->lifeline);
	node->lifeline = -1;
}

void node_kill_leftovers(void)
{
	for (size_t i = 0; i < NODES_MAX; i++)
		if (nodes[i].used && nodes[i].pid > 0)
			(void)kill(nodes[i].pid, SIGKILL);
}

void node_end_leftovers(void)
{
	for (size_t i = 0; i < NODES_MAX; i++) {
		if (!nodes[i].used)
			continue;
		show_log(&nodes[i]);
		if (nodes[i].pid > 0) {
			(void)kill(nodes[i].pid, SIGKILL);
			(void)waitpid(nodes[i].pid, NULL, 0);
		}
		release(&nodes[i]);
	}
}
