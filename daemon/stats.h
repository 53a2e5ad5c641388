/* SPDX-License-Identifier: MIT */
/* Counters since the start. Loop thread only. */
#ifndef DAEMON_STATS_H
#define DAEMON_STATS_H

#include <stdint.h>

struct stats {
	uint64_t sessions;
	uint64_t comms; /* formed */
	uint64_t ops_done;
	uint64_t ops_failed;
	uint64_t violations;
	uint64_t reloads;
};

#endif
