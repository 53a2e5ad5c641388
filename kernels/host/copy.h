/* SPDX-License-Identifier: MIT */
/*
 * Copying that may bypass the cache.
 */
#ifndef RX_COPY_H
#define RX_COPY_H

#include "../../shm/rx_base.h"

/**
 * rx_copy() - memcpy with optional non-temporal stores (fenced before return)
 *
 * @dst and @src are equal or do not overlap.
 */
void rx_copy(void *dst, const void *src, uint64_t bytes, bool stream);

/** rx_copy_unfenced() - non-temporal copy; rx_stream_fence() before anybody else may look at @dst
 */
void rx_copy_unfenced(void *dst, const void *src, uint64_t bytes);

/** rx_stream_fence() - order non-temporal stores before all later stores */
void rx_stream_fence(void);

#endif
