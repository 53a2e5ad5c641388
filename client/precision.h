/* SPDX-License-Identifier: MIT */
/* What a communicator is to do in low precision, from its configuration and the environment. */
#ifndef CLIENT_PRECISION_H
#define CLIENT_PRECISION_H

#include "rcclx.h"
#include "../shm/rx_precision_abi.h"

/**
 * precision_settings() - read once, when a communicator is created
 *
 * A field of @config that is not 0 counts, otherwise the environment does.
 * Return: RCCLX_OK; RCCLX_ERR_INVALID, the text names field or variable.
 */
rcclx_result precision_settings(
	const struct rcclx_comm_config *config, struct rx_precision *precision_p);

#endif
