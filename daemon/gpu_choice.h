/* SPDX-License-Identifier: MIT */
/* How an operation goes between its devices: by thresholds, and by what there is room for. */
#ifndef DAEMON_GPU_CHOICE_H
#define DAEMON_GPU_CHOICE_H

#include "gpu_run.h"

/** gpu_choice_waits() - would kernels of @run wait for each other, by its thresholds? Worker. */
bool gpu_choice_waits(const struct gpu_run *run);

/**
 * gpu_choice_make() - fill run->plan, and have what it takes until gpu_choice_end(); worker
 *
 * The communicator's set is nobody else's: run->streams->user.
 */
void gpu_choice_make(struct gpu_run *run);

/** gpu_choice_end() - all kernels have ended; @failed: not all of them well */
void gpu_choice_end(struct gpu_run *run, bool failed);

#endif
