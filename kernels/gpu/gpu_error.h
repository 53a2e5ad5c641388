/* SPDX-License-Identifier: MIT */
/* From the runtime's results to ours. */
#ifndef RX_GPU_ERROR_H
#define RX_GPU_ERROR_H

#include "gpu_sym.h"

/** gpu_fail() - fill @error, if any; Return: @result */
int gpu_fail(struct rx_gpu_error *error, int result, int native, const char *format, ...)
	RX_PRINTF(4, 5);

/** gpu_is_lost() - does @native mean that the device is of no use to this process any more? */
bool gpu_is_lost(int native);

/**
 * gpu_check() - result of a call into the runtime
 * @native: what it returned
 * @what:   "mapping memory", for the sentence
 *
 * Return: RX_GPU_OK for success; RX_GPU_BUSY for work that is not finished, without a sentence.
 */
RX_WARN_UNUSED int gpu_check(
	const struct gpu_sym *sym, int native, const char *what, struct rx_gpu_error *error);

#endif
