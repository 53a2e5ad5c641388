/* SPDX-License-Identifier: MIT */
/*
 * A pointer to GPU memory cannot be told from others by looking at it, and touching it ends the
 * process. A process that has such pointers has loaded the runtime that made them, which can be
 * asked; in others nothing is asked, and costs nothing.
 */
#include "place.h"

#include "error.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>

/* Both runtimes have the same numbers for these. */
enum { ATTRIBUTE_MEMORY_TYPE = 2, MEMORY_TYPE_DEVICE = 2 };

/* cuPointerGetAttribute(void *, int, CUdeviceptr), hipPointerGetAttribute(void *, int, void *) */
typedef int (*pointer_attribute_fn)(void *data, int attribute, uintptr_t pointer);

static const struct runtime {
	const char *library;
	const char *function;
} runtimes[] = {
	{"libcuda.so.1", "cuPointerGetAttribute"},
	{"libamdhip64.so.7", "hipPointerGetAttribute"},
	{"libamdhip64.so.6", "hipPointerGetAttribute"},
};

static _Atomic(pointer_attribute_fn) ask;

void place_look_for_runtimes(void)
{
	if (atomic_load(&ask))
		return;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		/* Only if it is there already; never closed, as GPU runtimes must not be. */
		void *library = dlopen(runtimes[i].library, RTLD_LAZY | RTLD_NOLOAD);
		void *symbol = library ? dlsym(library, runtimes[i].function) : NULL;

		if (symbol) {
			atomic_store(&ask, (pointer_attribute_fn)(uintptr_t)symbol);
			return;
		}
	}
}

static int on_gpu(pointer_attribute_fn fn, const void *at)
{
	unsigned int type = 0;

	return at && fn(&type, ATTRIBUTE_MEMORY_TYPE, (uintptr_t)at) == 0 &&
	       type == MEMORY_TYPE_DEVICE;
}

ncclResult_t place_check(const char *function, const void *send, const void *recv, void *stream)
{
	pointer_attribute_fn fn = atomic_load_explicit(&ask, memory_order_relaxed);

	if (stream)
		return error_set(ncclInvalidUsage,
			"%s: stream is %p, but this rcclxd has no GPU support: expected NULL, with "
			"buffers in host memory",
			function, stream);
	if (fn && (on_gpu(fn, send) || on_gpu(fn, recv)))
		return error_set(ncclInvalidUsage,
			"%s: a buffer (%p, %p) is in GPU memory, but this rcclxd has no GPU "
			"support: expected host memory",
			function, send, recv);
	return ncclSuccess;
}
