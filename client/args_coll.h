/* SPDX-License-Identifier: MIT */
/* Checks of a collective's arguments, with sentences that say what was expected. */
#ifndef CLIENT_ARGS_COLL_H
#define CLIENT_ARGS_COLL_H

#include "rcclx.h"
#include "../kernels/coll_extent.h"

/* A call as the caller made it; of equal counts, or send and recv. */
struct args_coll {
	const char *function; /* "rcclx_all_reduce", for the text */
	uint8_t coll;         /* enum rx_coll */
	const void *send;
	void *recv;
	uint64_t count;
	uint32_t dtype;
	uint32_t op;   /* where the collective reduces, else 0 */
	uint32_t root; /* root or peer, where there is one, else 0 */
	const void *scalar;
	uint32_t n_ranks;
	uint32_t rank;
};

/* Bytes of the buffers that the call may touch; 0: none. */
struct args_bytes {
	uint64_t send;
	uint64_t recv;
};

/** args_coll() - may they be used? */
rcclx_result args_coll(const struct args_coll *args, struct args_bytes *bytes_p);

/**
 * args_buffer() - one buffer of @bytes > 0: not NULL, aligned, inside the address space
 * @which: "send", "recv"
 */
rcclx_result args_buffer(
	const struct args_coll *args, const char *which, const void *at, uint64_t bytes);

/** args_types() - data type, reduction and scalar */
rcclx_result args_types(const struct args_coll *args);

#endif
