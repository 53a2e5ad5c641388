/* SPDX-License-Identifier: MIT */
/*
 * rcclxctl run names a file in RCCLX_RUN_REPORT. A process that forms its first communicator adds a
 * line with its number: that, and nothing else, shows that a program's calls arrive here.
 */
#include "report.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void report_use(void)
{
	static _Atomic int reported_by;
	const char *path = secure_getenv("RCCLX_RUN_REPORT");
	int pid = (int)getpid();
	char line[32];
	int n = 0;
	int fd = -1;

	if (!path || atomic_exchange(&reported_by, pid) == pid)
		return;
	/* Made by rcclxctl; short lines, each written at once, do not mix. */
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return;
	n = snprintf(line, sizeof(line), "%d\n", pid);
	/* A line that does not arrive costs rcclxctl a process in its count. */
	if (write(fd, line, (size_t)n) < 0)
		atomic_store(&reported_by, 0);
	(void)close(fd);
}
