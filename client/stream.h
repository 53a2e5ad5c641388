/* SPDX-License-Identifier: MIT */
/* Calls in the order of a GPU stream: begun all at once where a group has several, then ended. */
#ifndef CLIENT_STREAM_H
#define CLIENT_STREAM_H

#include "call.h"
#include "gates.h"
#include "gpu_runtime.h"

/* One that has begun. */
struct stream_call {
	const struct call *call;
	struct gpu_stream stream;
	struct gate_ref gate;
	uint64_t staged; /* address of the result; 0: it comes in place */
	/* Served by a kernel of ours, on this memory: */
	bool by_kernel;
	uint64_t send;
	uint64_t recv;
	uint32_t turn; /* among the calls of its communicator that begin together */
};

/** stream_check() - may a call with this config be made in a stream? @function for texts */
rcclx_result stream_check(const char *function, const struct rcclx_call_config *config);

/**
 * stream_begin() - hand the call to the daemon, which starts when the stream has come here; or
 * make its memory ready for a kernel
 * @position: of the call among those of its group
 */
rcclx_result stream_begin(const struct call *call, uint32_t position, struct stream_call *sc);

/**
 * stream_launch() - put kernels into streams, for those of @n calls that have begun and need them
 *
 * In an order that all processes find, so that streams cannot wait for each other in circles; ranks
 * of a communicator that share a stream have one.
 */
rcclx_result stream_launch(struct stream_call *calls, uint32_t n);

/** stream_end() - what is put into the stream from here on waits for the call */
rcclx_result stream_end(const struct stream_call *sc);

/** stream_run() - all of it, for a call alone */
rcclx_result stream_run(const struct call *call);

/** stream_drain() - before @comm goes: wait for its calls in streams, within limits */
void stream_drain(struct rcclx_comm *comm);

#endif
