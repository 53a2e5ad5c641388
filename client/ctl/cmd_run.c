/* SPDX-License-Identifier: MIT */
/*
 * rcclxctl run: a command with every way set up in which programs come to NCCL. Processes that form
 * a communicator report it in a file, so that afterwards it can be said whether any has.
 */
#include "ctl.h"

#include "../../shm/rx_cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef RCCLX_NCCLDIR
#define RCCLX_NCCLDIR "/usr/local/lib/rcclxd/nccl"
#endif

#define REPORT_BYTES 64u

static enum ctl_exit usage(void)
{
	fprintf(stderr,
		"usage: rcclxctl run [--] COMMAND [ARGUMENT]...\n"
		"Run a program that was built for NCCL or RCCL over rcclxd. The libraries are\n"
		"in " RCCLX_NCCLDIR ", or where RCCLX_NCCL_DIR says.\n"
		"Exit status: the command's; 125 it could not be prepared, 126 not executed.\n");
	return CTL_EXIT_USAGE;
}

/* @value before what the variable has. */
static bool prepend(const char *name, const char *value)
{
	const char *before = getenv(name);
	char *whole = NULL;
	bool done = false;

	if (asprintf(&whole, "%s%s%s", value, before && before[0] ? ":" : "",
		    before ? before : "") < 0)
		return false;
	done = setenv(name, whole, 1) == 0;
	free(whole);
	return done;
}

static bool set_ways_in(const char *folder, const char *report)
{
	char library[PATH_MAX];
	char job[REPORT_BYTES];

	(void)snprintf(library, sizeof(library), "%s/libnccl.so.2", folder);
	if (access(library, R_OK) < 0) {
		fprintf(stderr, "rcclxctl: cannot read %s: %m; set RCCLX_NCCL_DIR\n", library);
		return false;
	}
	(void)snprintf(job, sizeof(job), "%d.%lld", (int)getpid(), (long long)time(NULL));
	return prepend("LD_PRELOAD", library) && prepend("LD_LIBRARY_PATH", folder) &&
	       setenv("VLLM_NCCL_SO_PATH", library, 1) == 0 &&
	       setenv("SGLANG_NCCL_SO_PATH", library, 1) == 0 && setenv("RCCLX_JOB", job, 0) == 0 &&
	       setenv("RCCLX_RUN_REPORT", report, 1) == 0;
}

static unsigned int count_reports(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned int n = 0;
	int c = 0;

	while (file && (c = fgetc(file)) != EOF)
		n += c == '\n';
	if (file)
		(void)fclose(file);
	return n;
}

static const int forwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/* What is sent to this process is for the command. */
static sigset_t signals_to_wait_for(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		(void)sigaddset(&set, forwarded[i]);
	return set;
}

/* @waited_for is blocked. Signals of the terminal reach the command without us. */
static int await(pid_t child, const sigset_t *waited_for)
{
	int status = 0;

	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	/* Not reaped yet: the number is still the child's when it is sent something. */
	while (waitpid(child, &status, WNOHANG) == 0) {
		int sig = sigwaitinfo(waited_for, NULL);

		if (sig > 0 && sig != SIGCHLD)
			(void)kill(child, sig);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void say_what_was_used(unsigned int n_processes)
{
	if (n_processes > 0)
		fprintf(stderr, "rcclxctl: %u processes used rcclxd\n", n_processes);
	else
		fprintf(stderr,
			"rcclxctl: no process formed a communicator through rcclxd: the command "
			"does not use NCCL, loads it by a path of its own (rcclxctl which PID), or "
			"failed before\n");
}

static int run(char **argv, const char *report)
{
	sigset_t waited_for = signals_to_wait_for();
	sigset_t before;
	pid_t child = -1;
	int status = 0;

	/* SIGCHLD must not be ignored: then there would be no status to wait for. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigprocmask(SIG_BLOCK, &waited_for, &before);
	child = fork();
	if (child == 0) {
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		(void)execvp(argv[0], argv);
		fprintf(stderr, "rcclxctl: cannot execute %s: %m\n", argv[0]);
		_exit(126);
	}
	if (child < 0) {
		fprintf(stderr, "rcclxctl: fork: %m\n");
		return 125;
	}
	status = await(child, &waited_for);
	say_what_was_used(count_reports(report));
	return status;
}

enum ctl_exit cmd_run(const struct ctl_options *options)
{
	const char *folder = getenv("RCCLX_NCCL_DIR");
	char report[REPORT_BYTES] = "/tmp/rcclxctl-run.XXXXXX";
	char **argv = options->argv + 1;
	int status = 125;

	if (argv[0] && strcmp(argv[0], "--") == 0)
		argv++;
	else if (argv[0] && argv[0][0] == '-')
		return usage();
	if (!argv[0])
		return usage();

	RX_CLOSE int fd = mkostemp(report, O_CLOEXEC);

	if (fd < 0) {
		fprintf(stderr, "rcclxctl: cannot make %s: %m\n", report);
		return (enum ctl_exit)125;
	}
	if (set_ways_in(folder ? folder : RCCLX_NCCLDIR, report))
		status = run(argv, report);
	(void)unlink(report);
	return (enum ctl_exit)status;
}
