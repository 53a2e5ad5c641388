/* SPDX-License-Identifier: MIT */
/*
 * Where the daemon finds the data of an operation: in the caller's memory if that is registered,
 * else in bounce memory, copied in at the start and back at the end.
 */
#ifndef CLIENT_PLACEMENT_H
#define CLIENT_PLACEMENT_H

#include "bounce.h"
#include "op.h"

struct placement {
	struct bounce send;
	struct bounce recv;
	struct bounce words; /* variable collectives: their numbers */
	void *copy_to;       /* the caller's private receive buffer */
	uint64_t copy_bytes; /* 0: none */
	/* Its blocks, in elements, where it has several: they lie one behind the other in recv. */
	const uint64_t *copy_counts;
	const uint64_t *copy_displs;
	uint32_t n_blocks; /* 0: one, of copy_bytes */
	uint32_t size;
};

/** placement_begin() - find or make room, copy in, and say in the entry where it is */
rcclx_result placement_begin(const struct rcclx_comm *comm, const struct op_request *request,
	struct placement *placement, struct rx_sqe *sqe);

/** placement_words() - the same for the numbers of a variable collective alone */
rcclx_result placement_words(const struct rcclx_comm *comm, const struct op_request *request,
	struct placement *placement, struct rx_sqe *sqe);

/** placement_collect() - the operation has succeeded: copy back */
rcclx_result placement_collect(const struct placement *placement);

/** placement_end() - give bounce memory back: the daemon does not touch it any more */
void placement_end(struct rcclx_client *client, struct placement *placement);

#endif
