/* SPDX-License-Identifier: MIT */
/*
 * Where the buffers of a call are, and in which order it has to happen: the one place that has to
 * learn about GPUs.
 */
#ifndef NCCL_PLACE_H
#define NCCL_PLACE_H

#include "nccl.h"

/**
 * place_check() - can a call with these buffers and this stream be served?
 * @function: for the text
 * @send, @recv: NULL is allowed
 *
 * Host memory without a stream can; a stream, or memory of a GPU, cannot yet. Whether memory is a
 * GPU's is asked of its runtime, where the process has loaded one.
 *
 * Return: ncclSuccess; ncclInvalidUsage, with a text
 */
ncclResult_t place_check(const char *function, const void *send, const void *recv, void *stream);

/** place_look_for_runtimes() - find out whether the process has a GPU runtime; cheap, repeatable */
void place_look_for_runtimes(void);

#endif
