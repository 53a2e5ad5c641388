/* SPDX-License-Identifier: MIT */
/*
 * Who has which elements in a measured collective, and how a size becomes a count.
 *
 * As in nccl-tests a size stands for the larger of a rank's two messages: the whole of it for
 * collectives that take one count, all blocks together for those with a block per rank. Unlike
 * there, blocks are not rounded to 16 bytes. Blocks of variable collectives are uneven on purpose:
 * block i of n has i + 1 parts of n (n + 1) / 2, so that short messages have empty blocks.
 */
#ifndef PERF_LAYOUT_H
#define PERF_LAYOUT_H

#include "../rcclx.h"
#include "../../shm/rx_base.h"

enum perf_shape {
	PERF_NONE,   /* no data */
	PERF_WHOLE,  /* one message */
	PERF_BLOCKS, /* a block per rank, all alike */
	PERF_UNEVEN, /* a block per rank or pair, of different lengths */
};

struct perf_coll;

/* Numbers of elements. */
struct perf_layout {
	uint32_t n_ranks;
	uint32_t rank;
	uint32_t root;
	uint64_t size;    /* that the table shows, and bandwidth is computed from */
	uint64_t count;   /* of the call; uneven: the mean */
	uint64_t largest; /* block, or message */
	uint64_t send;    /* that this rank's call reads; 0: it does not look at the buffer */
	uint64_t recv;    /* that it writes */
	/* Where they start in one buffer for both. */
	uint64_t send_at;
	uint64_t recv_at;
	/* This rank's blocks; all_to_all_v: to and from each rank, which are alike. */
	uint64_t counts[RCCLX_MAX_RANKS];
	uint64_t displs[RCCLX_MAX_RANKS];
};

/** perf_layout_make() - for messages of at most @elements */
struct perf_layout perf_layout_make(const struct perf_coll *coll, uint64_t elements,
	uint32_t n_ranks, uint32_t rank, uint32_t root);

/** perf_layout_sent_at() - first element in @sender's buffer of its all-to-all block for @layout's
 * rank
 */
uint64_t perf_layout_sent_at(
	const struct perf_coll *coll, const struct perf_layout *layout, uint32_t sender);

#endif
