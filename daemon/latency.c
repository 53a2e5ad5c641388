/* SPDX-License-Identifier: MIT */
#include "latency.h"

#include "../shm/rx_log.h"

#include <fcntl.h>
#include <unistd.h>

#define DEVICE "/dev/cpu_dma_latency"

static void take(struct latency *latency)
{
	const int32_t microseconds = 0;
	int fd = open(DEVICE, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, &microseconds, sizeof(microseconds)) != sizeof(microseconds)) {
		if (!latency->failed)
			rx_warn("waiting.cpu_dma_latency is set, but %s cannot be used (%m): wake-ups "
				"of idle cores stay slow",
				DEVICE);
		latency->failed = true;
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	latency->fd = fd;
}

void latency_hold(struct latency *latency, bool hold)
{
	if (hold == (latency->fd >= 0) || (hold && latency->failed))
		return;
	if (hold) {
		take(latency);
		return;
	}
	(void)close(latency->fd);
	latency->fd = -1;
}
