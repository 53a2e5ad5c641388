/* SPDX-License-Identifier: MIT */
/*
 * Benchmarks: ranks as if a slow link were between them (RCCLX_LINK_RATE).
 *
 * A rank that takes data from a peer, or puts some there, does not go on before a link of that rate
 * would have brought it. The link works while the rank does: what is taken now has been under way
 * since the rank took the piece before.
 */
#ifndef CLIENT_INLINE_LINK_H
#define CLIENT_INLINE_LINK_H

#include "../comm.h"

/** link_begin() - at the start of an operation: nothing is under way yet */
void link_begin(struct rcclx_comm *comm);

/** link_wait() - the slow part of link_moved() */
void link_wait(struct rcclx_comm *comm, uint64_t bytes);

/** link_moved() - @bytes go between this rank and peers */
static inline void link_moved(struct rcclx_comm *comm, uint64_t bytes)
{
	if (rx_unlikely(comm->fabric.ctl->precision.link_rate != 0))
		link_wait(comm, bytes);
}

#endif
