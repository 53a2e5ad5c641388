/* SPDX-License-Identifier: MIT */
/*
 * What the operator trades for latency: cores kept out of deep sleep while communicators exist.
 */
#ifndef DAEMON_LATENCY_H
#define DAEMON_LATENCY_H

#include "../shm/rx_base.h"

struct latency {
	int fd;      /* of /dev/cpu_dma_latency while it is held; -1 */
	bool failed; /* could not be opened, and this has been logged */
};

#define LATENCY_INIT ((struct latency){.fd = -1})

/**
 * latency_hold() - keep cores awake, or no longer
 *
 * Writes 0 to /dev/cpu_dma_latency and keeps it open (Documentation/power/pm_qos_interface in the
 * kernel). Where that is not permitted, says so once and goes on without.
 */
void latency_hold(struct latency *latency, bool hold);

#endif
