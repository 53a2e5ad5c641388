/* SPDX-License-Identifier: MIT */
/* Checks of what callers hand in, with sentences that say what was expected. */
#ifndef CLIENT_ARGS_H
#define CLIENT_ARGS_H

#include "rcclx.h"
#include "../shm/rx_base.h"

/**
 * args_config() - copy a caller's struct that starts with its size
 * @given: NULL: defaults, *config keeps what it has
 * @config: receives the fields that the caller knows; the rest keeps what it has
 * @bytes:  sizeof(*config)
 * @name:   "struct rcclx_call_config", for the text
 *
 * A caller compiled against an older library has a smaller struct; one compiled against a newer
 * library a larger one, which is fine while it does not use the fields that this library lacks.
 */
rcclx_result args_config(const void *given, void *config, size_t bytes, const char *name);

/** args_text() - NULL or UTF-8 of at most @max bytes without control characters */
rcclx_result args_text(const char *text, size_t max, const char *name);

/* The arguments of a reduction over equal counts. */
struct args_reduction {
	const void *send;
	const void *recv;
	uint64_t count;
	uint32_t dtype;
	uint32_t op;
	const void *scalar;
};

/**
 * args_reduction() - may they be used?
 * @function: "rcclx_all_reduce", for the text
 * @bytes_p:  receives count times the size of an element
 */
rcclx_result args_reduction(
	const char *function, const struct args_reduction *args, uint64_t *bytes_p);

#endif
