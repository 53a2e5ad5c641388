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

#endif
