/* SPDX-License-Identifier: MIT */
/*
 * Messages as NCCL's users know them: to standard output or NCCL_DEBUG_FILE, a line each, written
 * with one system call, so that the lines of several ranks do not mix.
 */
#include "debug.h"

#include "api.h"
#include "variables.h"
#include "../rcclx.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LINE_BYTES 1400u

/* UINT_MAX: the environment has not been read. */
static _Atomic unsigned int level = UINT_MAX;
static _Atomic int output = STDOUT_FILENO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_flag greeted = ATOMIC_FLAG_INIT;

static unsigned int parse_level(const char *text)
{
	static const char *const names[] = {
		[DEBUG_VERSION] = "VERSION",
		[DEBUG_WARN] = "WARN",
		[DEBUG_INFO] = "INFO",
		[DEBUG_TRACE] = "TRACE",
	};

	for (unsigned int i = DEBUG_VERSION; text && i <= DEBUG_TRACE; i++)
		if (strcasecmp(text, names[i]) == 0)
			return i;
	return DEBUG_NONE;
}

static void host_name(char *host, size_t bytes)
{
	if (gethostname(host, bytes) < 0)
		(void)snprintf(host, bytes, "localhost");
	host[bytes - 1] = '\0';
	host[strcspn(host, ".")] = '\0';
}

/* %h is the host's name, %p the process's number, %% a percent sign. */
static void expand(const char *pattern, char *path, size_t bytes)
{
	char host[HOST_NAME_MAX + 1];
	size_t n = 0;

	host_name(host, sizeof(host));
	path[0] = '\0';
	for (const char *c = pattern; *c && n + 1 < bytes; c++) {
		if (c[0] == '%' && c[1] == 'h')
			(void)snprintf(path + n, bytes - n, "%s", host);
		else if (c[0] == '%' && c[1] == 'p')
			(void)snprintf(path + n, bytes - n, "%d", (int)getpid());
		else
			(void)snprintf(path + n, bytes - n, "%c", *c);
		c += c[0] == '%' && (c[1] == 'h' || c[1] == 'p' || c[1] == '%');
		n += strlen(path + n);
	}
}

static int open_output(void)
{
	const char *pattern = getenv("NCCL_DEBUG_FILE");
	char path[PATH_MAX];
	int fd = -1;

	if (!pattern || !pattern[0] || strcasecmp(pattern, "stdout") == 0)
		return STDOUT_FILENO;
	if (strcasecmp(pattern, "stderr") == 0)
		return STDERR_FILENO;
	expand(pattern, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	return fd >= 0 ? fd : STDOUT_FILENO;
}

static void close_output(void)
{
	int fd = atomic_exchange(&output, STDOUT_FILENO);

	if (fd > STDERR_FILENO)
		(void)close(fd);
}

static unsigned int read_environment(void)
{
	unsigned int wanted = 0;

	(void)pthread_mutex_lock(&lock);
	wanted = atomic_load(&level);
	if (wanted == UINT_MAX) {
		wanted = parse_level(getenv("NCCL_DEBUG"));
		if (wanted > DEBUG_NONE)
			atomic_store(&output, open_output());
		atomic_store(&level, wanted);
	}
	(void)pthread_mutex_unlock(&lock);
	return wanted;
}

int debug_wants(enum debug_level asked)
{
	unsigned int wanted = atomic_load_explicit(&level, memory_order_relaxed);

	if (wanted == UINT_MAX)
		wanted = read_environment();
	return asked <= wanted;
}

static void write_line(const char *text)
{
	char host[HOST_NAME_MAX + 1];
	char line[LINE_BYTES];
	int n = 0;

	host_name(host, sizeof(host));
	n = snprintf(line, sizeof(line), "%s:%d:%d %s", host, (int)getpid(), (int)gettid(), text);
	if (n < 0)
		return;
	n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
	line[n] = '\n';
	/* Nowhere to complain when it fails. */
	if (write(atomic_load(&output), line, (size_t)n + 1) < 0)
		return;
}

void debug_log(enum debug_level asked, const char *format, ...)
{
	static const char *const names[] = {"", "", "WARN ", "INFO ", "TRACE "};
	char text[LINE_BYTES];
	va_list args;
	int n = 0;

	if (!debug_wants(asked))
		return;
	n = snprintf(
		text, sizeof(text), "%s%s", asked == DEBUG_VERSION ? "" : "NCCL ", names[asked]);
	va_start(args, format);
	(void)vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
	va_end(args);
	write_line(text);
}

void debug_greet(void)
{
	if (!debug_wants(DEBUG_VERSION) || atomic_flag_test_and_set(&greeted))
		return;
	debug_log(DEBUG_VERSION, "NCCL version %d.%d.%d+rcclx%d.%d.%d", NCCL_MAJOR, NCCL_MINOR,
		NCCL_PATCH, RCCLX_VERSION_MAJOR, RCCLX_VERSION_MINOR, RCCLX_VERSION_PATCH);
	if (debug_wants(DEBUG_INFO))
		variables_list_ignored();
}

void ncclResetDebugInit(void)
{
	(void)pthread_mutex_lock(&lock);
	close_output();
	atomic_store(&level, UINT_MAX);
	(void)pthread_mutex_unlock(&lock);
}
NCCL_TWIN(ncclResetDebugInit);
