/* SPDX-License-Identifier: MIT */
/*
 * Results, and the sentence that explains the last one that was not ncclSuccess. NCCL keeps one
 * text for the process, since its callers ask for it in other threads than those that failed.
 */
#ifndef NCCL_ERROR_H
#define NCCL_ERROR_H

#include "nccl.h"
#include "../rcclx.h"

#include <stdbool.h>

#define ERROR_TEXT_BYTES 1024u

/** error_set() - remember the text, log it at NCCL_DEBUG=WARN, and return @result */
ncclResult_t error_set(ncclResult_t result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * error_of() - what @result of librcclx is in NCCL's terms; keeps rcclx_last_error() as the text
 * @knows_timeout: the caller knows ncclTimeout
 */
ncclResult_t error_of(rcclx_result result, bool knows_timeout);

/** error_quiet() - error_of(), for who asks again and again: not logged */
ncclResult_t error_quiet(rcclx_result result, bool knows_timeout);

/** error_text() - the process's last text; valid in this thread until it asks again */
const char *error_text(void);

#endif
