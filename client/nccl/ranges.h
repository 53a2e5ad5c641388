/* SPDX-License-Identifier: MIT */
/* Memory that callers have registered with a communicator, or made a window of. */
#ifndef NCCL_RANGES_H
#define NCCL_RANGES_H

#include "nccl.h"

#include <pthread.h>

enum range_kind { RANGE_REGISTRATION, RANGE_WINDOW };

struct range {
	struct range *next;
	enum range_kind kind;
	void *at;
	size_t bytes;
};

struct ranges {
	pthread_mutex_t lock;
	struct range *first;
};

void ranges_init(struct ranges *ranges);

/** ranges_deinit() - forgets those that were not deregistered */
void ranges_deinit(struct ranges *ranges);

#endif
