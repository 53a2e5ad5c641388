/* SPDX-License-Identifier: MIT */
/* The thread's last error text. */
#ifndef CLIENT_ERR_H
#define CLIENT_ERR_H

#include "rcclx.h"
#include "../shm/rx_base.h"

/** err_set() - remember a sentence for rcclx_last_error(); returns @result, so that callers return
 * it */
rcclx_result err_set(rcclx_result result, const char *format, ...) RX_PRINTF(2, 3);

/** err_errno() - result of a failed system call: -errno to RCCLX_ERR_*, text "what: reason" */
rcclx_result err_errno(int negative_errno, const char *what);

/* Longest sentence, with its NUL. */
#define ERR_TEXT_BYTES 1280u

/* The first error of several steps, with its text. Starts as {0}. */
struct err_first {
	rcclx_result result;
	char text[ERR_TEXT_BYTES];
};

/** err_first_note() - remember @result with this thread's text, if it is the first error */
void err_first_note(struct err_first *first, rcclx_result result);

/** err_first_return() - make it this thread's last error; RCCLX_OK: there was none */
rcclx_result err_first_return(const struct err_first *first);

#endif
