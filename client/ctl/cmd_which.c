/* SPDX-License-Identifier: MIT */
/* rcclxctl which: the NCCL libraries that a process has mapped. */
#include "ctl.h"
#include "elf_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES (PATH_MAX + 128)

static bool is_nccl(const char *path)
{
	const char *name = strrchr(path, '/');

	return name &&
	       (strncmp(name, "/libnccl.so", 11) == 0 || strncmp(name, "/librccl.so", 11) == 0);
}

static void ignore(void *owner, const char *name)
{
	(void)owner;
	(void)name;
}

static void on_library(void *owner, const char *name)
{
	bool *ours = owner;

	*ours |= strncmp(name, "librcclx.so", 11) == 0;
}

/* Ours is the one that stands on librcclx. Its path is as its process sees it. */
static void tell(long pid, const char *path)
{
	char seen[LINE_BYTES + 32];
	const char *wrong = NULL;
	bool ours = false;

	(void)snprintf(seen, sizeof(seen), "/proc/%ld/root%s", pid, path);
	wrong = elf_file_imports(seen, ignore, on_library, &ours);
	printf("%s: %s\n", path, wrong ? wrong : (ours ? "rcclxd's" : "another NCCL"));
}

/* The number of libraries; -1: the process cannot be looked at. */
static int list(long pid)
{
	char path[64];
	char line[LINE_BYTES];
	char last[LINE_BYTES] = "";
	FILE *maps = NULL;
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		char *file = strchr(line, '/');

		if (!file)
			continue;
		file[strcspn(file, "\n")] = '\0';
		/* A library's mappings follow each other. */
		if (!is_nccl(file) || strcmp(file, last) == 0)
			continue;
		(void)snprintf(last, sizeof(last), "%s", file);
		tell(pid, file);
		n++;
	}
	if (maps)
		(void)fclose(maps);
	return maps ? n : -1;
}

enum ctl_exit cmd_which(const struct ctl_options *options)
{
	char *end = NULL;
	long pid = options->argc == 2 ? strtol(options->argv[1], &end, 10) : 0;
	int n = 0;

	if (pid <= 0 || pid > INT_MAX || *end) {
		fprintf(stderr, "usage: rcclxctl which PID\n"
				"List the NCCL libraries that a process has loaded. Several: the "
				"first that was loaded serves linked programs.\n"
				"Exit status: 0 there are some, 1 there are none, 2 usage, 4 "
				"permission denied.\n");
		return CTL_EXIT_USAGE;
	}
	n = list(pid);
	if (n < 0) {
		fprintf(stderr, "rcclxctl: process %ld cannot be looked at: %s\n", pid,
			strerror(errno));
		return errno == EACCES ? CTL_EXIT_DENIED : CTL_EXIT_FAILED;
	}
	if (n == 0)
		printf("process %ld has not loaded any NCCL\n", pid);
	return n > 0 ? CTL_EXIT_OK : CTL_EXIT_FAILED;
}
