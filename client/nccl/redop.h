/* SPDX-License-Identifier: MIT */
/* Reductions that callers have made. */
#ifndef NCCL_REDOP_H
#define NCCL_REDOP_H

#include "nccl.h"

#include <pthread.h>
#include <stdbool.h>

struct redop {
	bool used;
	ncclDataType_t dtype;
	uint64_t scalar;       /* one element, in the first bytes */
	const void *on_device; /* instead: where a device has it when a call comes to it */
};

/** Those of a communicator; number i is ncclNumOps + i. */
struct redops {
	pthread_mutex_t lock;
	struct redop *table;
	unsigned int n;
};

void redops_init(struct redops *redops);
void redops_deinit(struct redops *redops);

/** redops_find() - false: there is no such reduction */
bool redops_find(struct redops *redops, ncclRedOp_t op, struct redop *redop_p);

/**
 * redop_read() - the scalar for a call in @stream, in the first bytes of *@scalar_p
 *
 * One that is on a device is read when the stream has come so far, which blocks.
 *
 * Return: ncclSuccess; ncclUnhandledCudaError, with a text
 */
ncclResult_t redop_read(
	const struct redop *redop, const char *function, void *stream, uint64_t *scalar_p);

#endif
