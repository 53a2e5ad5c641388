/* SPDX-License-Identifier: MIT */
/*
 * What the daemon gave the measured communicator to choose by: asked for at the admin socket, if
 * there is one that this process may use and that knows the communicator.
 */
#ifndef PERF_CHOICE_H
#define PERF_CHOICE_H

#include "../../kernels/coll_plan.h"

struct perf_choice {
	bool known; /* false: nobody could be asked */
	bool cores_shared;
	struct rx_tuning table;
};

/**
 * perf_choice_ask() - of the communicator whose rank 0 is this process
 * @socket: of the daemon; NULL: librcclx's search
 */
void perf_choice_ask(const char *socket, struct perf_choice *choice_p);

#endif
