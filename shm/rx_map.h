/* SPDX-License-Identifier: MIT */
/* A shared mapping with one owner and known bounds. */
#ifndef RX_MAP_H
#define RX_MAP_H

#include "rx_base.h"

struct rx_map {
	void *addr;     /* NULL when not mapped */
	uint64_t bytes; /* whole pages */
	bool writable;
};

#define RX_MAP_INIT ((struct rx_map){0})

enum rx_map_flags {
	RX_MAP_RO = 0,
	RX_MAP_RW = 1 << 0,
	RX_MAP_DONTFORK = 1 << 1, /* a forked child does not inherit it */
	RX_MAP_DONTDUMP = 1 << 2, /* left out of core dumps: may hold user data */
};

/**
 * rx_map_open() - map [0, bytes) of a sealed memory file, shared
 * @map:   unmapped
 * @bytes: > 0, at most the file's size (checked by fstat: touching more would be SIGBUS)
 * @flags: enum rx_map_flags
 *
 * Return: 0, -ERANGE when the file is smaller than @bytes, or -errno. @map unchanged on error.
 */
RX_WARN_UNUSED int rx_map_open(struct rx_map *map, int fd, uint64_t bytes, unsigned int flags);

/** rx_map_close() - unmap; harmless when not mapped; leaves RX_MAP_INIT */
void rx_map_close(struct rx_map *map);

/** rx_map_at() - pointer to [offset, offset + bytes), or NULL when that is not inside the map */
void *rx_map_at(const struct rx_map *map, uint64_t offset, uint64_t bytes);

#endif
