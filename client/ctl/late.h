/* SPDX-License-Identifier: MIT */
/* Who keeps a communicator waiting, at which operation, for how long. */
#ifndef CTL_LATE_H
#define CTL_LATE_H

#include "../../proto/rx_msg.h"

#include <jansson.h>
#include <stdio.h>

/** late_op() - what the waiting ranks are at; "" when that is not known */
const char *late_op(const struct rx_comm_info *comm);

/** late_print() - a line for each late rank after @indent; nothing when none is */
void late_print(const struct rx_comm_info *comm, const char *indent, FILE *out);

/** late_json() - append an object for each late rank to @array; false: out of memory */
RX_WARN_UNUSED bool late_json(const struct rx_comm_info *comm, json_t *array);

#endif
