/* SPDX-License-Identifier: MIT */
/* Names and numbers: the public ones are those that travel in messages, rings and the arena. */
#include "rcclx.h"

#include "../kernels/coll_types.h"
#include "../proto/rx_proto.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_result.h"

#include <assert.h>

#define SAME_RESULT(name)                                                                          \
	static_assert((int)RCCLX_##name == (int)RX_##name, "public and internal results differ")

SAME_RESULT(OK);
SAME_RESULT(ERR_INVALID);
SAME_RESULT(ERR_NO_DAEMON);
SAME_RESULT(ERR_DAEMON_LOST);
SAME_RESULT(ERR_PEER_LOST);
SAME_RESULT(ERR_MISMATCH);
SAME_RESULT(ERR_ABORTED);
SAME_RESULT(ERR_TIMEOUT);
SAME_RESULT(ERR_LIMIT);
SAME_RESULT(ERR_NO_MEMORY);
SAME_RESULT(ERR_DENIED);
SAME_RESULT(ERR_VERSION);
SAME_RESULT(ERR_FORKED);
SAME_RESULT(ERR_BUSY);
SAME_RESULT(ERR_SYSTEM);
SAME_RESULT(ERR_INTERNAL);
SAME_RESULT(ERR_N);

#define SAME_TYPE(name)                                                                            \
	static_assert((int)RCCLX_##name == (int)RX_##name, "public and internal types differ")

SAME_TYPE(INT8);
SAME_TYPE(UINT8);
SAME_TYPE(INT32);
SAME_TYPE(UINT32);
SAME_TYPE(INT64);
SAME_TYPE(UINT64);
SAME_TYPE(FLOAT16);
SAME_TYPE(FLOAT32);
SAME_TYPE(FLOAT64);
SAME_TYPE(BFLOAT16);
SAME_TYPE(FLOAT8E4M3);
SAME_TYPE(FLOAT8E5M2);
static_assert(RCCLX_FLOAT8E5M2 + 1 == (int)RX_DTYPE_N, "a type is missing in rcclx.h");

SAME_TYPE(SUM);
SAME_TYPE(PROD);
SAME_TYPE(MAX);
SAME_TYPE(MIN);
SAME_TYPE(AVG);
SAME_TYPE(PREMUL_SUM);
static_assert(RCCLX_PREMUL_SUM + 1 == (int)RX_REDOP_N, "an operation is missing in rcclx.h");

static_assert(RCCLX_MAX_RANKS == RX_MAX_RANKS, "public and internal limits differ");
static_assert(RCCLX_UNIQUE_ID_BYTES == RX_UNIQUE_ID_BYTES, "public and internal limits differ");
static_assert(RCCLX_FOREVER == RX_FOREVER, "public and internal limits differ");

static const char *const names[RCCLX_ERR_N] = {
	[RCCLX_OK] = "ok",
	[RCCLX_ERR_INVALID] = "invalid argument",
	[RCCLX_ERR_NO_DAEMON] = "no daemon",
	[RCCLX_ERR_DAEMON_LOST] = "daemon lost",
	[RCCLX_ERR_PEER_LOST] = "peer lost",
	[RCCLX_ERR_MISMATCH] = "mismatch",
	[RCCLX_ERR_ABORTED] = "aborted",
	[RCCLX_ERR_TIMEOUT] = "timeout",
	[RCCLX_ERR_LIMIT] = "limit reached",
	[RCCLX_ERR_NO_MEMORY] = "out of memory",
	[RCCLX_ERR_DENIED] = "permission denied",
	[RCCLX_ERR_VERSION] = "version mismatch",
	[RCCLX_ERR_FORKED] = "forked child",
	[RCCLX_ERR_BUSY] = "busy",
	[RCCLX_ERR_SYSTEM] = "system error",
	[RCCLX_ERR_INTERNAL] = "internal error",
};

uint32_t rcclx_version(void)
{
	return RCCLX_VERSION;
}

const char *rcclx_strerror(rcclx_result result)
{
	if (result < 0 || result >= RCCLX_ERR_N)
		return "unknown result";
	return names[result];
}
