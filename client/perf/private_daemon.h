/* SPDX-License-Identifier: MIT */
/* A daemon for one run: in a directory of its own, ending with this process. */
#ifndef PERF_PRIVATE_DAEMON_H
#define PERF_PRIVATE_DAEMON_H

#include "../../shm/rx_base.h"

#include <sys/types.h>

struct perf_daemon {
	pid_t pid;    /* 0: none */
	int lifeline; /* the daemon ends when this end closes */
	char dir[72];
	char socket[96];
	char admin[96];
	char log[96];
};

#define PERF_DAEMON_INIT                                                                           \
	{                                                                                          \
		.lifeline = -1                                                                     \
	}

/**
 * perf_daemon_start() - start $RCCLXD, or the rcclxd of this build or installation
 * @tuning_dir: its folder of thresholds; NULL: the compiled ones
 *
 * Returns when it answers, at most 5 s later.
 *
 * Return: false when it does not; explained, with what it said, and nothing is left.
 */
RX_WARN_UNUSED bool perf_daemon_start(struct perf_daemon *daemon, const char *tuning_dir);

/** perf_daemon_stop() - end it and remove its files; @show_log: print what it said */
void perf_daemon_stop(struct perf_daemon *daemon, bool show_log);

#endif
