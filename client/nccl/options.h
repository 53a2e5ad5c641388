/* SPDX-License-Identifier: MIT */
/* The structs that callers fill in, of every version that there is. */
#ifndef NCCL_OPTIONS_H
#define NCCL_OPTIONS_H

#include "nccl.h"

#include <stdbool.h>

#define OPTIONS_NAME_BYTES 64u

/** What we make of an ncclConfig_t. */
struct options {
	bool blocking;
	bool knows_timeout; /* the caller's header has ncclTimeout */
	char name[OPTIONS_NAME_BYTES];
};

#define OPTIONS_INIT                                                                               \
	{                                                                                          \
		.blocking = true                                                                   \
	}

/**
 * options_read() - read a caller's ncclConfig_t
 * @function:  for the text
 * @config:    NULL: nothing is said
 * @options_p: what holds where @config says nothing; changed only on success
 *
 * Reads no byte beyond the struct's own size, nor any field that is newer than its version.
 *
 * Return: ncclSuccess; ncclInvalidArgument, with a text
 */
ncclResult_t options_read(
	const char *function, const ncclConfig_t *config, struct options *options_p);

/** options_check_call() - is a call's ncclCollConfig_t well-formed, and can it be followed? */
ncclResult_t options_check_call(const char *function, const ncclCollConfig_t *config);

/** options_check_sim() - is an ncclSimInfo_t well-formed? */
ncclResult_t options_check_sim(const char *function, const ncclSimInfo_t *info);

#endif
