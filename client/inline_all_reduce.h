/* SPDX-License-Identifier: MIT */
/* Allreduce in the arena, after all ranks have announced the op and agree on it. */
#ifndef CLIENT_INLINE_ALL_REDUCE_H
#define CLIENT_INLINE_ALL_REDUCE_H

#include "inline.h"
#include "wait.h"
#include "../kernels/coll_plan.h"
#include "../kernels/host/reduce.h"

struct inline_run {
	struct rcclx_comm *comm;
	const struct inline_call *call;
	struct wait_ctx wait;
	struct rx_plan plan;
	uint64_t scalars[RX_MAX_RANKS];          /* pre-multiplied sum, by rank */
	struct rx_entry_bufs bufs[RX_MAX_RANKS]; /* medium and large messages, by rank */
};

/** inline_all_reduce() - serve an announced allreduce by run->plan */
rcclx_result inline_all_reduce(struct inline_run *run);

#endif
