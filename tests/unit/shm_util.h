/* SPDX-License-Identifier: MIT */
/* What the tests of shm/ share: child processes with a verdict, counts of what is open. */
#ifndef SHM_UTIL_H
#define SHM_UTIL_H

#include "../../shm/rx_base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* No test of shm/ takes longer; a hang becomes SIGALRM. */
#define TEST_LIMIT_S 120u

typedef int (*child_fn)(void *arg);

static inline pid_t child_start(child_fn fn, void *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		const struct rlimit no_core = {0};

		(void)setrlimit(RLIMIT_CORE, &no_core);
		/* Not the group runner's handlers, which would jump back into its copy. */
		(void)signal(SIGSEGV, SIG_DFL);
		(void)signal(SIGBUS, SIG_DFL);
		(void)signal(SIGABRT, SIG_DFL);
		(void)alarm(TEST_LIMIT_S);
		_exit(fn(arg));
	}
	return pid;
}

/* Exit status, or 1000 + signal. */
static inline int child_wait(pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline int child_run(child_fn fn, void *arg)
{
	return child_wait(child_start(fn, arg));
}

/* In a child: the number of the line that failed, folded into an exit status. */
#define CHILD_CHECK(condition)                                                                     \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "child: line %d: %s\n", __LINE__, #condition);       \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static inline unsigned int count_fds(void)
{
	unsigned int n = 0;
	DIR *dir = opendir("/proc/self/fd");

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

/* Mappings of memory files of this name. */
static inline unsigned int count_maps(const char *name)
{
	unsigned int n = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += __builtin_strstr(line, name) != NULL;
	(void)fclose(f);
	return n;
}

#endif
