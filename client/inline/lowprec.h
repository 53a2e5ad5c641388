/* SPDX-License-Identifier: MIT */
/*
 * Operations in low precision: what their algorithms share. All of them go through staging,
 * whatever memory the ranks have, and a slot holds elements, then scales, then the exact values of
 * the blocks that are checked.
 */
#ifndef CLIENT_INLINE_LOWPREC_H
#define CLIENT_INLINE_LOWPREC_H

#include "shape.h"
#include "../../kernels/codec/mxfp8.h"
#include "../../kernels/precision.h"
#include "../../kernels/precision_check.h"

/* Elements that are added up at a time: the sums stay in the first-level cache. */
#define LOWPREC_SUMS 2048u

struct lowprec {
	struct inline_run *run;
	const struct rx_mx_codec *codec;
	struct rx_precision_work work;
};

/* One block's elements [first, first + count) in a slot; first is a multiple of RX_MX_BLOCK. */
struct lowprec_piece {
	uint64_t first;
	uint64_t count;
	uint64_t room; /* elements that the slot has room for, a multiple of RX_MX_BLOCK */
};

/** lowprec_room() - elements that fit into a slot of @bytes */
uint64_t lowprec_room(uint64_t bytes);

/**
 * lowprec_put() - encode a piece into @slot
 * @summed: others add it up: exact values of checked blocks are put beside it. Otherwise the error
 *          of this rank's encoding is all there is, and counted here.
 */
void lowprec_put(struct lowprec *lp, uint8_t *slot, const struct lowprec_piece *piece,
	const void *src, bool summed);

/** lowprec_take() - decode @count elements, from element @at of a piece on, into @dst */
void lowprec_take(const struct lowprec *lp, const uint8_t *slot, const struct lowprec_piece *piece,
	uint64_t at, uint64_t count, void *dst);

/**
 * lowprec_sum() - add up the ranks' elements from @at on, at most LOWPREC_SUMS; not divided
 * @at: a multiple of RX_MX_BLOCK
 */
void lowprec_sum(const struct lowprec *lp, uint8_t *const slots[],
	const struct lowprec_piece *piece, uint64_t at, uint64_t count, float *sums);

/**
 * lowprec_check_sums() - compare results with the exact sums of the checked blocks among them
 * @got: fp32, element @at of the piece and following
 */
void lowprec_check_sums(struct lowprec *lp, uint8_t *const slots[],
	const struct lowprec_piece *piece, uint64_t at, uint64_t count, const float *got);

/** lowprec_moved() - @count elements came from a peer (or will have), as @wire bytes */
void lowprec_moved(struct lowprec *lp, uint64_t count, uint64_t wire);

/** lowprec_allreduce(), lowprec_relay() - the algorithms */
rcclx_result lowprec_allreduce(struct lowprec *lp);
rcclx_result lowprec_relay(struct lowprec *lp);

#endif
