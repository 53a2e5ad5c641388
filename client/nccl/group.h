/* SPDX-License-Identifier: MIT */
/* The group that a thread has open. */
#ifndef NCCL_GROUP_H
#define NCCL_GROUP_H

#include "batch.h"

/** group_is_open() - in this thread */
bool group_is_open(void);

/** group_note() - a call in the group has failed, as the group will; returns @result */
ncclResult_t group_note(ncclResult_t result);

/** group_add_call() - keep a checked call; moved in */
ncclResult_t group_add_call(const struct call *call);

/** group_make() - keep it, or, where no group is open, do it; moved in */
ncclResult_t group_make(const struct making *making);

/** group_start(), group_end() - what ncclGroupStart() and ncclGroupEnd() do */
void group_start(void);
ncclResult_t group_end(void);

#endif
