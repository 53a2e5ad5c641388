/* SPDX-License-Identifier: MIT */
/*
 * Variable collectives for the daemon, as several operations of equal counts: an all-gather as a
 * broadcast from each rank, a reduce-scatter as a reduction to each, an all-to-all as sends and
 * receives. Element for element the results are those of the inline executor.
 */
#ifndef CLIENT_VPARTS_H
#define CLIENT_VPARTS_H

#include "call.h"

/** vparts_start() - start all parts; one operation stands for them */
rcclx_result vparts_start(const struct call *call, struct rcclx_op **op_p);

#endif
