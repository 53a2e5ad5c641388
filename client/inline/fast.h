/* SPDX-License-Identifier: MIT */
/* A small collective like one before: what was found out about that need not be found out again. */
#ifndef CLIENT_FAST_H
#define CLIENT_FAST_H

#include "inline.h"
#include "../args_coll.h"

/**
 * fast_run() - do a call, if it is one of the kinds that are remembered
 * @args:       as the caller made it; nothing is checked yet
 * @timeout_ns: of the call; 0: none
 *
 * Return: false: nothing was done, inline_run() has to, after all checks;
 *         true and *@result_p, as of inline_run().
 */
bool fast_run(struct rcclx_comm *comm, const struct args_coll *args, uint64_t timeout_ns,
	rcclx_result *result_p);

/** fast_remember() - @sig was served with the data in the arena; tiny: in the entry itself */
void fast_remember(struct rcclx_comm *comm, const struct rx_op_sig *sig, bool tiny);

#endif
