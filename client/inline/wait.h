/* SPDX-License-Identifier: MIT */
/*
 * Waiting for peers: spin for a moment, then sleep; always with an eye on the abort word, the
 * deadline and the daemon.
 */
#ifndef CLIENT_WAIT_H
#define CLIENT_WAIT_H

#include "../comm.h"

struct wait_ctx {
	struct rcclx_comm *comm;
	const struct rx_op_sig *sig; /* op in progress, for texts */
	uint64_t deadline_ns;        /* RX_FOREVER: none */
};

/** wait_peer() - wait until @peer has announced op (or step) @target; fatal errors are sticky */
rcclx_result wait_peer(
	const struct wait_ctx *ctx, enum rx_wait_what what, uint32_t peer, uint32_t target);

/** wait_all() - the same for every rank */
rcclx_result wait_all(const struct wait_ctx *ctx, enum rx_wait_what what, uint32_t target);

#endif
