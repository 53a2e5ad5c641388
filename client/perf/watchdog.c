/* SPDX-License-Identifier: MIT */
#include "watchdog.h"

#include "rank.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Made before it is needed: a handler must not format. */
static char message[160];

static void expired(int signal_number RX_UNUSED)
{
	ssize_t n = write(STDERR_FILENO, message, strlen(message));

	(void)n;
	_exit(PERF_EXIT_FAILED);
}

void perf_watchdog_start(uint32_t seconds, uint32_t rank, uint64_t bytes)
{
	struct sigaction action = {.sa_handler = expired};

	(void)alarm(0);
	(void)snprintf(message, sizeof(message),
		"rcclx-perf: rank %u: no end within %u s at size %" PRIu64
		" (--timeout); rcclxctl comms says which rank is late\n",
		rank, seconds, bytes);
	(void)sigaction(SIGALRM, &action, NULL);
	(void)alarm(seconds);
}

void perf_watchdog_stop(void)
{
	(void)alarm(0);
}
