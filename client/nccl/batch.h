/* SPDX-License-Identifier: MIT */
/*
 * What a group holds, and what a single call on a communicator that does not block becomes:
 * communicators to be made, and calls. Executed in the caller's thread, or in the background.
 */
#ifndef NCCL_BATCH_H
#define NCCL_BATCH_H

#include "call.h"

struct making;
typedef ncclResult_t (*making_fn)(struct making *making);

/** A communicator that is being made: by joining, or out of another one. */
struct making {
	making_fn run;
	struct ncclComm *parent; /* entered; NULL: none */
	struct ncclComm *child;  /* referred to; NULL: this rank will be in none */
	ncclComm_t *handle_p;    /* where the caller has the child's handle */
	ncclUniqueId id;
	int color;
	int key;
	uint32_t *excluded; /* owned */
	uint32_t n_excluded;
	ncclResult_t result;
};

struct batch {
	struct making *makings;
	struct call *calls;
	uint32_t n_makings;
	uint32_t n_calls;
	uint32_t makings_room;
	uint32_t calls_room;
};

/** batch_add_making(), batch_add_call() - moved in; false: out of memory, with a text */
bool batch_add_making(struct batch *batch, const struct making *making);
bool batch_add_call(struct batch *batch, const struct call *call);

/** batch_drop_making() - what could not be added will not be made; gives up what it refers to */
void batch_drop_making(const struct making *making);

/**
 * batch_execute() - do all of it, and empty @batch
 *
 * Blocks, unless one of the communicators does not.
 *
 * Return: ncclSuccess; ncclInProgress; the first error, with a text: the others are done, too
 */
ncclResult_t batch_execute(struct batch *batch);

/** batch_discard() - do nothing of it, and empty it; communicators that were to be made are gone */
void batch_discard(struct batch *batch);

/** batch_start_call() - a batch of one call; @call is moved in */
ncclResult_t batch_start_call(const struct call *call);

#endif
