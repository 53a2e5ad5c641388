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
	uint64_t scalar; /* one element, in the first bytes */
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

#endif
