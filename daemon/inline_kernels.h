/* SPDX-License-Identifier: MIT */
/*
 * May the ranks of a communicator run kernels themselves, in their own streams, that meet in parts
 * of the daemon's slabs? Decided once, when it is formed, for all ranks alike: the daemon offers it
 * where devices and processes allow, and switches it on when every rank has said that it reaches
 * all parts. Loop thread only.
 */
#ifndef DAEMON_INLINE_KERNELS_H
#define DAEMON_INLINE_KERNELS_H

#include "comm.h"

struct slab_part;

/** inline_kernels_offer() - @comm is about to be ready: hand out parts, or note why not */
void inline_kernels_offer(struct comm *comm);

/**
 * inline_kernels_say() - @member reaches all parts (@why is ""), or not; its request @serial is
 * answered when all have said
 * @cell: of its session's gates, checked here
 */
void inline_kernels_say(struct member *member, uint32_t serial, uint32_t cell, const char *why);

/** inline_kernels_member_gone() - @member still has its session */
void inline_kernels_member_gone(struct member *member);

/** inline_kernels_abort() - @comm is aborted: its kernels give up */
void inline_kernels_abort(struct comm *comm);

/**
 * inline_kernels_late() - bitmap of ranks whose kernels others have waited for, for a while
 * @since_ns_p: written if there are any
 */
uint64_t inline_kernels_late(const struct inline_kernels *kernels, uint64_t *since_ns_p);

/**
 * inline_kernels_mismatch() - is it that kernels disagreed why @member cannot go on?
 * @other_p: one that it disagreed with; @sig: its side, and the other's
 */
bool inline_kernels_mismatch(
	const struct member *member, uint32_t *other_p, struct rx_op_sig sig[2]);

/** inline_kernels_part() - of @rank; NULL: it has none */
struct slab_part *inline_kernels_part(const struct comm *comm, uint32_t rank);

/**
 * inline_kernels_free() - no rank is left. Returns NULL; NULL is allowed.
 *
 * The parts are used again when the ranks' processes have ended, and with them their kernels.
 */
struct inline_kernels *inline_kernels_free(struct inline_kernels *kernels);

/** inline_kernels_end() - the daemon ends: give back what waits for processes */
void inline_kernels_end(struct daemon *daemon);

#endif
