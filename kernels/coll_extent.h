/* SPDX-License-Identifier: MIT */
/*
 * How many elements a rank's buffers have in each collective, and where in-place calls put one
 * inside the other. Library and daemon check with the same table.
 */
#ifndef RX_COLL_EXTENT_H
#define RX_COLL_EXTENT_H

#include "coll_types.h"

struct rx_extent {
	uint64_t send; /* elements that the collective reads; 0: the buffer is not looked at */
	uint64_t recv; /* elements that it writes */
	/* In place: element of the larger buffer at which the smaller one starts. */
	bool in_place_ok;
	uint64_t send_in_recv;
	uint64_t recv_in_send;
};

/**
 * rx_coll_extent() - extents of @rank's buffers in a collective of equal counts, send and recv
 * @count: as the collective defines it
 * Return: false when a number of elements does not fit 64 bits, or for a variable collective.
 */
RX_WARN_UNUSED bool rx_coll_extent(uint32_t coll, uint64_t count, uint32_t n_ranks, uint32_t rank,
	uint32_t root, struct rx_extent *extent_p);

/** rx_coll_has_root() - does the collective have a root? */
bool rx_coll_has_root(uint32_t coll);

/** rx_coll_is_v() - has it counts that differ by rank? */
bool rx_coll_is_v(uint32_t coll);

#endif
