/* SPDX-License-Identifier: MIT */
/* Groups: calls between rcclx_group_start() and _end() are kept, then given to the daemon at once.
 */
#ifndef CLIENT_GROUP_H
#define CLIENT_GROUP_H

#include "call.h"
#include "create.h"

/** group_is_open() - in this thread */
bool group_is_open(void);

/** group_add() - keep a checked call for the end of the group */
rcclx_result group_add(const struct call *call);

/** group_add_create() - keep a checked request; the communicator is there when the group ends */
rcclx_result group_add_create(const struct create_request *request);

#endif
