/* SPDX-License-Identifier: MIT */
#include "args.h"

#include "err.h"
#include "../kernels/coll_types.h"
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

static rcclx_result check_buffer(const char *function, const char *which, const void *at,
	uint64_t bytes, const struct args_reduction *args)
{
	uint32_t size = rx_dtype_size(args->dtype);
	uint64_t end = 0;

	if (!at)
		return err_set(RCCLX_ERR_INVALID,
			"%s: %s is NULL, expected memory of %llu %s elements (%llu bytes)",
			function, which, (unsigned long long)args->count,
			rx_dtype_name(args->dtype), (unsigned long long)bytes);
	if ((uintptr_t)at % size != 0)
		return err_set(RCCLX_ERR_INVALID,
			"%s: %s is %p, expected an address that is a multiple of %u, the size of "
			"%s",
			function, which, at, size, rx_dtype_name(args->dtype));
	if (!rx_add_u64((uintptr_t)at, bytes, &end))
		return err_set(RCCLX_ERR_INVALID,
			"%s: %s of %llu bytes at %p goes beyond the address space", function, which,
			(unsigned long long)bytes, at);
	return RCCLX_OK;
}

static bool overlap_partly(const void *a, const void *b, uint64_t bytes)
{
	uintptr_t x = (uintptr_t)a;
	uintptr_t y = (uintptr_t)b;

	return x != y && (x < y ? y - x : x - y) < bytes;
}

static rcclx_result check_types(const char *function, const struct args_reduction *args)
{
	if (args->dtype >= RX_DTYPE_N)
		return err_set(RCCLX_ERR_INVALID,
			"%s: dtype is %u, expected RCCLX_INT8 (0) to RCCLX_FLOAT8E5M2 (%d)",
			function, args->dtype, RX_DTYPE_N - 1);
	if (args->op >= RX_REDOP_N)
		return err_set(RCCLX_ERR_INVALID,
			"%s: op is %u, expected RCCLX_SUM (0) to RCCLX_PREMUL_SUM (%d)", function,
			args->op, RX_REDOP_N - 1);
	if (args->op == RX_PREMUL_SUM && !args->scalar)
		return err_set(RCCLX_ERR_INVALID,
			"%s: RCCLX_PREMUL_SUM needs a scalar: set scalar in struct "
			"rcclx_call_config to the address of one %s",
			function, rx_dtype_name(args->dtype));
	return RCCLX_OK;
}

rcclx_result args_reduction(
	const char *function, const struct args_reduction *args, uint64_t *bytes_p)
{
	uint64_t bytes = 0;
	rcclx_result r = check_types(function, args);

	if (r != RCCLX_OK)
		return r;
	if (!rx_mul_u64(args->count, rx_dtype_size(args->dtype), &bytes))
		return err_set(RCCLX_ERR_INVALID,
			"%s: count is %llu: so many %s elements are no 64-bit number of bytes",
			function, (unsigned long long)args->count, rx_dtype_name(args->dtype));
	if (bytes > 0) {
		r = check_buffer(function, "send", args->send, bytes, args);
		if (r == RCCLX_OK)
			r = check_buffer(function, "recv", args->recv, bytes, args);
		if (r != RCCLX_OK)
			return r;
		if (overlap_partly(args->send, args->recv, bytes))
			return err_set(RCCLX_ERR_INVALID,
				"%s: send (%p) and recv (%p) of %llu bytes overlap; they have to be "
				"equal (in place) or apart",
				function, args->send, args->recv, (unsigned long long)bytes);
	}
	*bytes_p = bytes;
	return RCCLX_OK;
}
