/* SPDX-License-Identifier: MIT */
/*
 * A pointer to GPU memory cannot be told from others by looking at it, and touching it ends the
 * process. A process that has such pointers has loaded the runtime that made them, which can be
 * asked; in others nothing is asked, and costs nothing.
 */
#include "place.h"

#include "error.h"
#include "runtime.h"

ncclResult_t place_find(
	const char *function, const void *send, const void *recv, void *stream, bool *in_stream_p)
{
	const struct runtime *runtime = runtime_get();

	*in_stream_p = false;
	if (!runtime && stream)
		return error_set(ncclInvalidUsage,
			"%s: stream is %p, but this process has loaded no GPU runtime: expected "
			"NULL, with buffers in host memory",
			function, stream);
	if (runtime)
		*in_stream_p = stream || runtime_has(runtime, send) || runtime_has(runtime, recv);
	return ncclSuccess;
}
