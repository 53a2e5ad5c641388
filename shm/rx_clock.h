/* SPDX-License-Identifier: MIT */
/* Monotonic time and deadlines, in nanoseconds. */
#ifndef RX_CLOCK_H
#define RX_CLOCK_H

#include <stdint.h>
#include <time.h>

#define RX_NS_PER_MS  1000000ull
#define RX_NS_PER_SEC 1000000000ull
#define RX_FOREVER    UINT64_MAX

/** rx_now_ns() - CLOCK_MONOTONIC in nanoseconds; never fails on Linux */
static inline uint64_t rx_now_ns(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * RX_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/** rx_deadline_ns() - now + timeout, saturating; RX_FOREVER stays RX_FOREVER */
static inline uint64_t rx_deadline_ns(uint64_t timeout_ns)
{
	uint64_t now = rx_now_ns();

	return timeout_ns > UINT64_MAX - now ? RX_FOREVER : now + timeout_ns;
}

#endif
