/* SPDX-License-Identifier: MIT */
#include "rx_arena.h"

#define ALIGNMENT 16u

void rx_arena_reset(struct rx_arena *arena)
{
	arena->used = 0;
	arena->exhausted = false;
}

void *rx_arena_alloc(struct rx_arena *arena, size_t bytes)
{
	void *at = &arena->bytes[arena->used];

	if (bytes > sizeof(arena->bytes) - arena->used) {
		arena->exhausted = true;
		return NULL;
	}
	/* The array is a multiple of the alignment, so rounding up cannot leave it. */
	arena->used += (size_t)rx_align_up(bytes, ALIGNMENT);
	return at;
}
