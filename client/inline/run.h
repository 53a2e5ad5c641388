/* SPDX-License-Identifier: MIT */
/* One inline operation in progress: what its algorithms share. */
#ifndef CLIENT_INLINE_RUN_H
#define CLIENT_INLINE_RUN_H

#include "inline.h"
#include "wait.h"
#include "../../kernels/coll_plan.h"
#include "../../kernels/host/reduce.h"

struct inline_run {
	struct rcclx_comm *comm;
	const struct inline_call *call;
	struct wait_ctx wait;
	struct rx_plan plan;
	uint32_t size;                           /* bytes of an element */
	uint64_t max_count;                      /* most elements that one rank has for another */
	uint64_t scalars[RX_MAX_RANKS];          /* pre-multiplied sum, by rank */
	struct rx_entry_bufs bufs[RX_MAX_RANKS]; /* where each rank's buffers are; not if small */
	uint64_t first_for_me[RX_MAX_RANKS];     /* all_to_all_v: element of each rank's input */
};

/** run_step() - announce one more step of this rank */
void run_step(struct inline_run *run);

/** run_reduce_args() - type, op, ranks and scalars; the caller adds pointers and count */
struct rx_reduce_args run_reduce_args(const struct inline_run *run);

/** counts_fill() - all_to_all_v: this rank's counts into its flat slot, before announcing */
void counts_fill(const struct inline_run *run, uint8_t *slot);

/**
 * counts_agree() - all_to_all_v: does everybody expect what the others send?
 *
 * Looks at all pairs, so that every rank comes to the same answer. Sets run->max_count and
 * run->first_for_me. Return: RCCLX_OK or RCCLX_ERR_MISMATCH.
 */
rcclx_result counts_agree(struct inline_run *run);

/** counts_most_sent() - all_to_all_v, once agreed: the most elements that one rank sends */
uint64_t counts_most_sent(const struct inline_run *run);

/** lowprec_asked() - is it to be in low precision, if nothing speaks against it? */
bool lowprec_asked(const struct inline_run *run);

/** lowprec_found_over() - does this rank know of errors above the budget? For its entry. */
bool lowprec_found_over(const struct rcclx_comm *comm);

/** lowprec_agreed() - is it, now that all entries are known? The same on all ranks. */
bool lowprec_agreed(struct inline_run *run);

/** lowprec_run() - any collective that there is in low precision */
rcclx_result lowprec_run(struct inline_run *run);

/** relay_small() - tiny and flat: the data lies in the arena since the op was announced */
void relay_small(struct inline_run *run);

/** relay_fill() - this rank's data for a small op into @slot, before the op is announced */
void relay_fill(const struct inline_run *run, uint8_t *slot);

/** relay_staged() - one-phase collectives through staging, pipelined in chunks */
rcclx_result relay_staged(struct inline_run *run);

/** two_shot_staged() - allreduce and reduce through staging, pipelined in chunks */
rcclx_result two_shot_staged(struct inline_run *run);

/**
 * direct_allows() - is all of this rank's memory that peers would touch registered?
 *
 * False where they would touch none: then its registration does not help either.
 */
bool direct_allows(const struct inline_run *run, const struct rx_entry_bufs *bufs);

/** direct_possible() - is all memory registered that the peers would touch? The same on all ranks.
 */
bool direct_possible(const struct inline_run *run);

/** direct_run() - any collective straight over registered memory */
rcclx_result direct_run(struct inline_run *run);

/** single_run() - collectives that only move data, from the peers' private memory */
rcclx_result single_run(struct inline_run *run);

#endif
