/* SPDX-License-Identifier: MIT */
/*
 * Bounded bump allocator for decoding: a hostile frame of 64 KiB can ask protobuf-c for 36 times
 * its size; here it gets RX_DECODE_ARENA and then an error.
 */
#ifndef RX_ARENA_H
#define RX_ARENA_H

#include "rx_proto.h"

struct rx_arena {
	size_t used;
	bool exhausted;
	_Alignas(16) uint8_t bytes[RX_DECODE_ARENA];
};

/** rx_arena_reset() - forget everything allocated */
void rx_arena_reset(struct rx_arena *arena);

/** rx_arena_alloc() - @bytes, aligned to 16; NULL (and exhausted set) when there is no room */
void *rx_arena_alloc(struct rx_arena *arena, size_t bytes);

#endif
