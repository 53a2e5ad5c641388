/* SPDX-License-Identifier: MIT */
#include "rx_fdset.h"

#include <unistd.h>

bool rx_fdset_add(struct rx_fdset *set, int fd)
{
	if (set->n_fds == RX_FRAME_FDS_MAX) {
		(void)close(fd);
		return false;
	}
	set->fds[set->n_fds++] = fd;
	return true;
}

int rx_fdset_take(struct rx_fdset *set, uint32_t index)
{
	int fd = -1;

	if (index < set->n_fds) {
		fd = set->fds[index];
		set->fds[index] = -1;
	}
	return fd;
}

void rx_fdset_close(struct rx_fdset *set)
{
	for (uint32_t i = 0; i < set->n_fds; i++)
		if (set->fds[i] >= 0)
			(void)close(set->fds[i]);
	*set = RX_FDSET_INIT;
}
