/* SPDX-License-Identifier: MIT */
#include "args.h"

#include "err.h"
#include "../proto/rx_check.h"

#include <string.h>

/* A size beyond this is not that of a struct but an uninitialised one. */
#define CONFIG_BYTES_MAX 4096u
#define CONFIG_BYTES_MIN 8u

rcclx_result args_config(const void *given, void *config, size_t bytes, const char *name)
{
	uint32_t size = 0;

	if (!given)
		return RCCLX_OK;
	memcpy(&size, given, sizeof(size));
	if (size < CONFIG_BYTES_MIN || size > CONFIG_BYTES_MAX)
		return err_set(RCCLX_ERR_INVALID,
			"%s: size is %u, expected %zu; initialise it with its _INIT macro", name,
			size, bytes);
	for (size_t i = bytes; i < size; i++) {
		if (((const uint8_t *)given)[i] != 0)
			return err_set(RCCLX_ERR_INVALID,
				"%s: size is %u and a field after byte %zu is set, which this "
				"version of the library does not know; update librcclx or leave "
				"the field zero",
				name, size, bytes);
	}
	memcpy(config, given, size < bytes ? size : bytes);
	return RCCLX_OK;
}

rcclx_result args_text(const char *text, size_t max, const char *name)
{
	if (!text || rx_check_text(text, max))
		return RCCLX_OK;
	if (strnlen(text, max + 1) > max)
		return err_set(RCCLX_ERR_INVALID, "%s is longer than %zu bytes", name, max);
	return err_set(RCCLX_ERR_INVALID,
		"%s is no valid UTF-8, or has control characters such as a newline", name);
}
