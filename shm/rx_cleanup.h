/* SPDX-License-Identifier: MIT */
/* Scope guards: free, close and unmap when a variable leaves its scope; errno is kept. */
#ifndef RX_CLEANUP_H
#define RX_CLEANUP_H

#include "rx_base.h"
#include "rx_map.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void rx_freep(void *p)
{
	int saved = errno;

	free(*(void **)p);
	errno = saved;
}

static inline void rx_closep(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	errno = saved;
}

#define RX_FREE  __attribute__((cleanup(rx_freep)))
#define RX_CLOSE __attribute__((cleanup(rx_closep)))
#define RX_UNMAP __attribute__((cleanup(rx_map_close)))

/** rx_steal_fd() - take the fd out of its guard */
static inline int rx_steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/** rx_steal_map() - take the mapping out of its guard */
static inline struct rx_map rx_steal_map(struct rx_map *map)
{
	struct rx_map taken = *map;

	*map = RX_MAP_INIT;
	return taken;
}

/** rx_steal() - take the pointer out of its guard */
#define rx_steal(ptr)                                                                              \
	__extension__({                                                                            \
		__typeof__(ptr) rx_taken = (ptr);                                                  \
		(ptr) = NULL;                                                                      \
		rx_taken;                                                                          \
	})

#endif
