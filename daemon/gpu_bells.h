/* SPDX-License-Identifier: MIT */
/*
 * The bells of calls that are recorded in graphs: a replay rings one when it comes to a call, and
 * the worker looks at all of them. Worker only.
 */
#ifndef DAEMON_GPU_BELLS_H
#define DAEMON_GPU_BELLS_H

#include "gpu_run.h"

struct gpu_bells;

/** gpu_bells_new() - none yet; NULL: no memory */
struct gpu_bells *gpu_bells_new(void);

/** gpu_bells_free() - NULL is allowed. Returns NULL. */
struct gpu_bells *gpu_bells_free(struct gpu_bells *bells);

/** gpu_bells_any() - is there anything to look at? */
bool gpu_bells_any(const struct gpu_bells *bells);

/**
 * gpu_bells_add() - gate number @i of @run belongs to its bell from now on
 * Return: 0 or -ENOMEM.
 */
RX_WARN_UNUSED int gpu_bells_add(struct gpu_bells *bells, struct gpu_run *run, uint32_t i);

/** gpu_bells_remove() - nobody looks at that gate's bell for @run any more */
void gpu_bells_remove(struct gpu_bells *bells, const struct gpu_run *run, uint32_t i);

/** gpu_bells_look() - take what has rung, and add what is to be made to @ready. False: nothing. */
bool gpu_bells_look(struct gpu_bells *bells, struct rx_list *ready);

#endif
