/* SPDX-License-Identifier: MIT */
/* A collective call on its way: checked, then run now, started, or kept for the end of a group. */
#ifndef CLIENT_CALL_H
#define CLIENT_CALL_H

#include "args_coll.h"
#include "op.h"
#include "inline/inline.h"

struct call {
	struct rcclx_comm *comm;
	struct rcclx_call_config config;
	struct op_request request;
};

/**
 * call_prepare() - check a call of equal counts, or send and recv
 * @args: n_ranks, rank and scalar are filled in here
 */
rcclx_result call_prepare(struct rcclx_comm *comm, struct args_coll *args,
	const struct rcclx_call_config *config, struct call *call_p);

/** call_set_precision() - decide the precision of a call; @elements of the larger of its buffers */
void call_set_precision(struct call *call, uint64_t elements);

/** call_config() - comm and config of any call; copies what the caller knows of the config */
rcclx_result call_config(const char *function, const struct rcclx_comm *comm,
	const struct rcclx_call_config *given, struct rcclx_call_config *config_p);

/** call_run() - blocking: by the executor chosen, or kept when a group is open */
rcclx_result call_run(const struct call *call);

/** call_start() - asynchronous, by the daemon; @function for texts */
rcclx_result call_start(const char *function, const struct call *call, struct rcclx_op **op_p);

/** call_start_now() - the same without looking for an open group; used by it */
rcclx_result call_start_now(const struct call *call, struct rcclx_op **op_p);

#endif
