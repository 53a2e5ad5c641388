/* SPDX-License-Identifier: MIT */
/* Included before rx_ring.c: each of its atomic accesses becomes a step that interleave.c plans. */
#ifndef HOOK_H
#define HOOK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

uint64_t hook_load(const void *word, size_t bytes);
void hook_store(void *word, size_t bytes, uint64_t value, int order);

#undef atomic_load_explicit
#undef atomic_store_explicit

#define atomic_load_explicit(word, order)                                                          \
	((__typeof__((void)0, *(word)))hook_load((const void *)(word), sizeof(*(word))))
#define atomic_store_explicit(word, value, order)                                                  \
	hook_store((void *)(word), sizeof(*(word)), (value), (order))

#endif
