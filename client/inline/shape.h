/* SPDX-License-Identifier: MIT */
/*
 * The shape of a collective: who has data for whom, and where it lies in the caller's buffers.
 *
 * Data is *shared* when every taker gets the same (all-gather, broadcast, gather, and the inputs of
 * allreduce and reduce), and *personal* when each gets a block of its own (all-to-all, scatter,
 * and the inputs of reduce-scatter): rx_coll_personal().
 */
#ifndef CLIENT_INLINE_SHAPE_H
#define CLIENT_INLINE_SHAPE_H

#include "run.h"

struct block {
	uint8_t *at;    /* NULL when count is 0 */
	uint64_t count; /* elements */
};

/** shape_gives() - does @rank have data for others? shape_takes(): does it get any? */
bool shape_gives(const struct rx_op_sig *sig, uint32_t rank);
bool shape_takes(const struct rx_op_sig *sig, uint32_t rank);

/** shape_out() - this rank's data for @peer (shared: for anybody) */
struct block shape_out(const struct inline_run *run, uint32_t peer);

/** shape_in() - where data of @peer goes; folds: where the result goes */
struct block shape_in(const struct inline_run *run, uint32_t peer);

/** shape_first_for_me() - where, in @peer's input, the block for this rank starts: an element */
uint64_t shape_first_for_me(const struct inline_run *run, uint32_t peer);

/** shape_max_count() - most elements that one rank has for another, as far as this rank knows */
uint64_t shape_max_count(const struct inline_call *call, uint32_t n_ranks);

/** shape_sum_before() - elements of the blocks of lower ranks */
uint64_t shape_sum_before(const uint64_t *counts, uint32_t rank);

/** shape_copy_own() - the rank's data for itself, where it is not in place already */
void shape_copy_own(const struct inline_run *run);

#endif
