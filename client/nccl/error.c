/* SPDX-License-Identifier: MIT */
#include "error.h"

#include "api.h"
#include "debug.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last[ERROR_TEXT_BYTES];

static void keep(const char *text)
{
	(void)pthread_mutex_lock(&lock);
	(void)snprintf(last, sizeof(last), "%s", text);
	(void)pthread_mutex_unlock(&lock);
}

ncclResult_t error_set(ncclResult_t result, const char *format, ...)
{
	char text[ERROR_TEXT_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	keep(text);
	debug_log(DEBUG_WARN, "%s", text);
	return result;
}

static ncclResult_t code_of(rcclx_result result, bool knows_timeout)
{
	switch (result) {
	case RCCLX_OK:
		return ncclSuccess;
	case RCCLX_ERR_INVALID:
		return ncclInvalidArgument;
	case RCCLX_ERR_MISMATCH:
	case RCCLX_ERR_FORKED:
	case RCCLX_ERR_BUSY:
		return ncclInvalidUsage;
	case RCCLX_ERR_PEER_LOST:
	case RCCLX_ERR_ABORTED:
		return ncclRemoteError;
	case RCCLX_ERR_TIMEOUT:
		return knows_timeout ? ncclTimeout : ncclRemoteError;
	case RCCLX_ERR_INTERNAL:
		return ncclInternalError;
	default:
		return ncclSystemError;
	}
}

ncclResult_t error_of(rcclx_result result, bool knows_timeout)
{
	if (result == RCCLX_OK)
		return ncclSuccess;
	if (result == RCCLX_ERR_NO_DAEMON)
		return error_set(ncclSystemError,
			"%s; RCCLX_AUTOSTART=1 starts one for this job alone", rcclx_last_error());
	return error_set(code_of(result, knows_timeout), "%s", rcclx_last_error());
}

ncclResult_t error_quiet(rcclx_result result, bool knows_timeout)
{
	if (result != RCCLX_OK)
		keep(rcclx_last_error());
	return code_of(result, knows_timeout);
}

const char *error_text(void)
{
	static _Thread_local char copy[ERROR_TEXT_BYTES];

	(void)pthread_mutex_lock(&lock);
	memcpy(copy, last, sizeof(copy));
	(void)pthread_mutex_unlock(&lock);
	return copy;
}

const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[] = {
		[ncclSuccess] = "no error",
		[ncclUnhandledCudaError] = "error of the GPU's runtime",
		[ncclSystemError] = "system error (NCCL_DEBUG=WARN says which)",
		[ncclInternalError] = "internal error: a bug in rcclxd",
		[ncclInvalidArgument] = "invalid argument (NCCL_DEBUG=WARN says which)",
		[ncclInvalidUsage] = "invalid usage (NCCL_DEBUG=WARN says of what)",
		[ncclRemoteError] =
			"a rank has died, or another failed (NCCL_DEBUG=WARN says which)",
		[ncclInProgress] = "in progress",
		[ncclTimeout] = "not within the time given",
	};

	if ((int)result < 0 || result >= ncclNumResults)
		return "unknown result code";
	return texts[result];
}
NCCL_TWIN(ncclGetErrorString);

const char *ncclGetLastError(ncclComm_t comm)
{
	(void)comm;
	return error_text();
}
NCCL_TWIN(ncclGetLastError);
