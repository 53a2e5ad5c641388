/* SPDX-License-Identifier: MIT */
/* Where the buffers of a call are, and in which order it has to happen. */
#ifndef NCCL_PLACE_H
#define NCCL_PLACE_H

#include "nccl.h"

#include <stdbool.h>

/**
 * place_find() - has a call with these buffers to be made in the order of its stream?
 * @function: for the text
 * @send, @recv: NULL is allowed
 *
 * Host memory without a stream has not. NULL with memory of a GPU is the default stream.
 *
 * Return: ncclSuccess; ncclInvalidUsage, with a text: a stream without a GPU runtime
 */
ncclResult_t place_find(
	const char *function, const void *send, const void *recv, void *stream, bool *in_stream_p);

#endif
