/* SPDX-License-Identifier: MIT */
/*
 * Attributes, checked arithmetic and fallback definitions that every layer uses.
 */
#ifndef RX_BASE_H
#define RX_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RX_WARN_UNUSED   __attribute__((warn_unused_result))
#define RX_PRINTF(f, a)  __attribute__((format(printf, f, a)))
#define RX_UNUSED        __attribute__((unused))
#define RX_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define RX_CACHE_LINE    64u

#define rx_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define rx_likely(x)                       __builtin_expect(!!(x), 1)
#define rx_unlikely(x)                     __builtin_expect(!!(x), 0)

/* Largest communicator on one node: a set of ranks fits one u64. */
#define RX_MAX_RANKS 64u

/** rx_add_u64() - a + b into *sum_p; false (and *sum_p untouched) on overflow */
static inline RX_WARN_UNUSED bool rx_add_u64(uint64_t a, uint64_t b, uint64_t *sum_p)
{
	uint64_t sum = 0;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*sum_p = sum;
	return true;
}

/** rx_mul_u64() - a * b into *product_p; false (and *product_p untouched) on overflow */
static inline RX_WARN_UNUSED bool rx_mul_u64(uint64_t a, uint64_t b, uint64_t *product_p)
{
	uint64_t product = 0;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*product_p = product;
	return true;
}

/** rx_range_ok() - true if [offset, offset + bytes) lies inside [0, limit) */
static inline bool rx_range_ok(uint64_t offset, uint64_t bytes, uint64_t limit)
{
	return offset <= limit && bytes <= limit - offset;
}

/** rx_align_up() - @x rounded up to a multiple of @align, a power of two; @x must not overflow */
static inline uint64_t rx_align_up(uint64_t x, uint64_t align)
{
	return (x + align - 1) & ~(align - 1);
}

static inline uint64_t rx_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t rx_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
