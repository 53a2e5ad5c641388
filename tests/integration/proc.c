/* SPDX-License-Identifier: MIT */
#include "proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#endif

bool test_thread_sanitized(void)
{
#ifdef TEST_TSAN
	return true;
#else
	return false;
#endif
}

bool test_sanitized(void)
{
#ifdef TEST_ASAN
	return true;
#else
	return test_thread_sanitized();
#endif
}

uint64_t test_now_ms(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void test_sleep_ms(uint64_t ms)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&ts, &ts) != 0)
		continue;
}

/* Processes that want to run, per core, averaged over the last minute. */
static double load_per_core(void)
{
	double load = 0;
	long n_cores = sysconf(_SC_NPROCESSORS_ONLN);

	return getloadavg(&load, 1) == 1 && n_cores > 0 ? load / (double)n_cores : 0;
}

uint64_t test_slow(void)
{
	static uint64_t factor; /* same value for all threads and forked ranks of a test */

	if (factor == 0) {
		const char *value = getenv("RCCLX_TEST_SLOW");
		uint64_t base = value != NULL ? strtoul(value, NULL, 10) : 0;

		if (base == 0)
			base = test_sanitized() ? 4 : 1;
		factor = base * (1 + (uint64_t)(load_per_core() / 4));
	}
	return factor;
}

bool test_long(void)
{
	const char *value = getenv("RCCLX_LONG");

	return value != NULL && strcmp(value, "1") == 0;
}

static bool count_fds(const char *path, unsigned int *n_p)
{
	DIR *dir = opendir(path);
	unsigned int n = 0;

	if (dir == NULL)
		return false;
	for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
		if (entry->d_name[0] != '.')
			n++;
	(void)closedir(dir);
	*n_p = n;
	return true;
}

unsigned int proc_n_fds(void)
{
	unsigned int n = 0;

	/* The directory that is being read counts once. */
	return count_fds("/proc/self/fd", &n) ? n - 1 : 0;
}

static bool count_maps(pid_t pid, struct proc_use *use)
{
	char path[64] = "";
	char line[1024] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	while (fgets(line, sizeof(line), file) != NULL) {
		use->n_maps++;
		if (strstr(line, "/memfd:") != NULL)
			use->n_memfd_maps++;
	}
	(void)fclose(file);
	return true;
}

/* The text after the process's name, which may itself contain anything. */
static bool read_stat(pid_t pid, char *text, size_t cap)
{
	char path[64] = "";
	char buf[1024] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	size_t n = fread(buf, 1, sizeof(buf) - 1, file);
	(void)fclose(file);
	buf[n] = '\0';
	const char *end = strrchr(buf, ')');
	if (end == NULL || end[1] == '\0')
		return false;
	(void)snprintf(text, cap, "%s", end + 2);
	return true;
}

bool proc_is_stopped(pid_t pid)
{
	char text[1024] = "";

	return read_stat(pid, text, sizeof(text)) && (text[0] == 'T' || text[0] == 't');
}

bool proc_use(pid_t pid, struct proc_use *use_p)
{
	struct proc_use use = {0};
	char path[64] = "";
	char text[1024] = "";
	unsigned long utime = 0;
	unsigned long stime = 0;
	unsigned long rss_pages = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	if (!count_fds(path, &use.n_fds) || !count_maps(pid, &use))
		return false;
	if (!read_stat(pid, text, sizeof(text)))
		return false;
	/* Fields 3 onwards: state, ten numbers, utime, stime, six numbers, starttime, vsize, rss.
	 */
	if (sscanf(text,
		    "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d "
		    "%*u %*u %lu",
		    &utime, &stime, &rss_pages) != 3)
		return false;
	use.cpu_ticks = utime + stime;
	use.rss_kib = rss_pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	*use_p = use;
	return true;
}

/* The number behind @key at the start of a line, in @unit; UINT64_MAX: there is none. */
static uint64_t read_number(const char *path, const char *key, uint64_t unit)
{
	char line[256] = "";
	unsigned long long value = UINT64_MAX;
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		if (sscanf(line + strlen(key), "%llu", &value) == 1)
			value *= unit;
		break;
	}
	(void)fclose(file);
	return value;
}

uint64_t test_free_bytes(void)
{
	uint64_t available = read_number("/proc/meminfo", "MemAvailable:", 1024);
	uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "", 1);
	uint64_t used = read_number("/sys/fs/cgroup/memory.current", "", 1);

	if (limit == UINT64_MAX || used == UINT64_MAX)
		return available;
	uint64_t left = limit > used ? limit - used : 0;
	return left < available ? left : available;
}
