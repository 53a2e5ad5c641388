/* SPDX-License-Identifier: MIT */
/*
 * Ends a rank that makes no progress, with a message. An operation's own timeout would put a look
 * at the clock into every timed call.
 */
#ifndef PERF_WATCHDOG_H
#define PERF_WATCHDOG_H

#include <stdint.h>

/** perf_watchdog_start() - exit with PERF_EXIT_FAILED after @seconds; restarts a running one */
void perf_watchdog_start(uint32_t seconds, uint32_t rank, uint64_t bytes);

/** perf_watchdog_stop() - no limit any more */
void perf_watchdog_stop(void);

#endif
