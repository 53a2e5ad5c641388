/* SPDX-License-Identifier: MIT */
/* Reading parameters: those environment variables of NCCL's that mean something here. */
#include "api.h"
#include "debug.h"
#include "error.h"
#include "variables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A handle is the place in variables_used. */
static const char *const *find(const char *key)
{
	for (const char *const *place = variables_used; key && *place; place++)
		if (strcmp(*place, key) == 0)
			return place;
	return NULL;
}

static const char *value_of(const char *key)
{
	const char *value = getenv(key);

	return value ? value : "";
}

ncclResult_t ncclParamBind(ncclParamHandle_t *out, const char *key)
{
	const char *const *place = find(key);

	if (!out || !place)
		return error_set(ncclInvalidArgument,
			"ncclParamBind: rcclxd has no parameter \"%s\"", key ? key : "(null)");
	*out = (ncclParamHandle_t)(uintptr_t)place;
	return ncclSuccess;
}
NCCL_TWIN(ncclParamBind);

/* The key that a handle stands for; NULL: it is none. */
static const char *key_of(ncclParamHandle_t h)
{
	for (const char *const *place = variables_used; *place; place++)
		if ((uintptr_t)place == (uintptr_t)h)
			return *place;
	return NULL;
}

static ncclResult_t get_text(
	const char *function, ncclParamHandle_t h, const void *out, const char **value_p)
{
	const char *key = key_of(h);

	if (!key || !out)
		return error_set(ncclInvalidArgument, "%s: %s", function,
			key ? "out is NULL" : "h is not from ncclParamBind()");
	*value_p = value_of(key);
	return ncclSuccess;
}

static ncclResult_t get_number(const char *function, ncclParamHandle_t h, const void *out,
	long long lowest, unsigned long long highest, long long *value_p)
{
	const char *text = NULL;
	char *end = NULL;
	long long value = 0;
	ncclResult_t r = get_text(function, h, out, &text);

	if (r != ncclSuccess)
		return r;
	errno = 0;
	value = strtoll(text, &end, 0);
	if (end == text || *end || errno != 0 || value < lowest ||
		(value > 0 && (unsigned long long)value > highest))
		return error_set(ncclInvalidArgument,
			"%s: %s is \"%.60s\", which is no number of this type", function, key_of(h),
			text);
	*value_p = value;
	return ncclSuccess;
}

#define GET_NUMBER(name, type, lowest, highest)                                                    \
	ncclResult_t name(ncclParamHandle_t h, type *out)                                          \
	{                                                                                          \
		long long value = 0;                                                               \
		ncclResult_t r = get_number(#name, h, out, lowest, highest, &value);               \
                                                                                                   \
		if (r == ncclSuccess)                                                              \
			*out = (type)value;                                                        \
		return r;                                                                          \
	}                                                                                          \
	NCCL_TWIN(name)

GET_NUMBER(ncclParamGetI8, int8_t, INT8_MIN, INT8_MAX);
GET_NUMBER(ncclParamGetI16, int16_t, INT16_MIN, INT16_MAX);
GET_NUMBER(ncclParamGetI32, int32_t, INT32_MIN, INT32_MAX);
GET_NUMBER(ncclParamGetI64, int64_t, INT64_MIN, INT64_MAX);
GET_NUMBER(ncclParamGetU8, uint8_t, 0, UINT8_MAX);
GET_NUMBER(ncclParamGetU16, uint16_t, 0, UINT16_MAX);
GET_NUMBER(ncclParamGetU32, uint32_t, 0, UINT32_MAX);
GET_NUMBER(ncclParamGetU64, uint64_t, 0, INT64_MAX);

ncclResult_t ncclParamGetStr(ncclParamHandle_t h, const char **out)
{
	return get_text("ncclParamGetStr", h, out, out);
}
NCCL_TWIN(ncclParamGetStr);

ncclResult_t ncclParamGet(ncclParamHandle_t h, void *out, int maxLen, int *len)
{
	const char *text = NULL;
	ncclResult_t r = get_text("ncclParamGet", h, len ? out : NULL, &text);
	int needed = 0;

	if (r != ncclSuccess)
		return r;
	needed = (int)strlen(text) + 1;
	*len = needed;
	if (needed > maxLen)
		return error_set(ncclInvalidArgument,
			"ncclParamGet: the value takes %d bytes, maxLen is %d", needed, maxLen);
	memcpy(out, text, (size_t)needed);
	return ncclSuccess;
}
NCCL_TWIN(ncclParamGet);

ncclResult_t ncclParamGetParameter(const char *key, const char **value, int *valueLen)
{
	const char *const *place = find(key);

	if (!place || !value || !valueLen)
		return error_set(ncclInvalidArgument,
			"ncclParamGetParameter: rcclxd has no parameter \"%s\", or there is no "
			"place for its value",
			key ? key : "(null)");
	*value = value_of(*place);
	*valueLen = (int)strlen(*value);
	return ncclSuccess;
}
NCCL_TWIN(ncclParamGetParameter);

ncclResult_t ncclParamGetAllParameterKeys(const char ***table, int *tableLen)
{
	static _Thread_local const char *keys[8];
	int n = 0;

	if (!table || !tableLen)
		return error_set(ncclInvalidArgument,
			"ncclParamGetAllParameterKeys: there is no place for the keys");
	while (variables_used[n] && n < (int)(sizeof(keys) / sizeof(keys[0]))) {
		keys[n] = variables_used[n];
		n++;
	}
	*table = keys;
	*tableLen = n;
	return ncclSuccess;
}
NCCL_TWIN(ncclParamGetAllParameterKeys);

void ncclParamDumpAll(void)
{
	for (const char *const *place = variables_used; *place; place++)
		debug_log(DEBUG_INFO, "%s=%s", *place, value_of(*place));
}
NCCL_TWIN(ncclParamDumpAll);
