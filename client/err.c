/* SPDX-License-Identifier: MIT */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_text[ERR_TEXT_BYTES];

rcclx_result err_set(rcclx_result result, const char *format, ...)
{
	/* Not straight into last_text: it may be one of the arguments. */
	char text[ERR_TEXT_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(last_text, text, strlen(text) + 1);
	return result;
}

static rcclx_result result_of_errno(int number)
{
	switch (number) {
	case ENOMEM:
	case ENOSPC:
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
		return RCCLX_ERR_NO_MEMORY;
	case EACCES:
	case EPERM:
		return RCCLX_ERR_DENIED;
	case EPIPE:
	case ECONNRESET:
		return RCCLX_ERR_DAEMON_LOST;
	default:
		return RCCLX_ERR_SYSTEM;
	}
}

rcclx_result err_errno(int negative_errno, const char *what)
{
	char reason[128];

	return err_set(result_of_errno(-negative_errno), "%s: %s", what,
		strerror_r(-negative_errno, reason, sizeof(reason)));
}

const char *rcclx_last_error(void)
{
	return last_text;
}

void err_first_note(struct err_first *first, rcclx_result result)
{
	if (result == RCCLX_OK || first->result != RCCLX_OK)
		return;
	first->result = result;
	(void)snprintf(first->text, sizeof(first->text), "%s", rcclx_last_error());
}

rcclx_result err_first_return(const struct err_first *first)
{
	return first->result == RCCLX_OK ? RCCLX_OK : err_set(first->result, "%s", first->text);
}
