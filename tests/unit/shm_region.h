/* SPDX-License-Identifier: MIT */
/* A memory file that is mapped twice, as its two sides would map it. */
#ifndef SHM_REGION_H
#define SHM_REGION_H

#include "shm_util.h"

#include "../../shm/rx_map.h"
#include "../../shm/rx_memfd.h"

struct region {
	int fd;
	struct rx_map rw;
	struct rx_map ro;
};

static inline void region_open(struct region *region, const char *name, uint64_t bytes)
{
	*region = (struct region){.fd = -1};
	assert_int_equal(rx_memfd_new(name, bytes, RX_MEMFD_ONE_WRITER, &region->fd), 0);
	assert_int_equal(rx_map_open(&region->rw, region->fd, bytes, RX_MAP_RW), 0);
	assert_int_equal(rx_memfd_seal_writer(region->fd), 0);
	assert_int_equal(rx_map_open(&region->ro, region->fd, bytes, RX_MAP_RO), 0);
}

static inline void region_close(struct region *region)
{
	rx_map_close(&region->rw);
	rx_map_close(&region->ro);
	(void)close(region->fd);
}

#endif
