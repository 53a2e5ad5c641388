/* SPDX-License-Identifier: MIT */
#include "runtime.h"

#include "error.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* Both runtimes have the same numbers for these. */
enum { ATTRIBUTE_MEMORY_TYPE = 2, MEMORY_TYPE_DEVICE = 2 };

/* hipMemcpyDefault */
#define KIND_BY_ADDRESS 4

#define N_FUNCTIONS 6u
#define N_LIBRARIES 4u

static const struct family {
	const char *libraries[N_LIBRARIES];
	const char *functions[N_FUNCTIONS]; /* in the order of struct runtime */
} families[] = {
	{{"libcuda.so.1"}, {"cuPointerGetAttribute", "cuCtxGetDevice", "cuMemcpyAsync",
				   "cuStreamSynchronize", "cuMemAlloc_v2", "cuMemFree_v2"}},
	{{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"},
		{"hipPointerGetAttribute", "hipGetDevice", "hipMemcpyAsync", "hipStreamSynchronize",
			"hipMalloc", "hipFree"}},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct runtime found;
static _Atomic(const struct runtime *) current;

static_assert(offsetof(struct runtime, is_hip) == N_FUNCTIONS * sizeof(void *), "functions first");

/*
 * Only if it is loaded already; a library is never closed, as GPU runtimes must not be.
 * RTLD_DEFAULT, where the symbols are the program's, is NULL.
 */
static bool find_library(const struct family *family, void **library_p)
{
	*library_p = RTLD_DEFAULT;
	if (dlsym(RTLD_DEFAULT, family->functions[0]))
		return true;
	for (size_t i = 0; i < N_LIBRARIES && family->libraries[i]; i++) {
		*library_p = dlopen(family->libraries[i], RTLD_LAZY | RTLD_NOLOAD);
		if (*library_p)
			return true;
	}
	return false;
}

static bool load(const struct family *family, void *library)
{
	void *functions[N_FUNCTIONS];

	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		functions[i] = dlsym(library, family->functions[i]);
		if (!functions[i])
			return false;
	}
	memcpy(&found, functions, sizeof(functions));
	found.is_hip = family == &families[1];
	return true;
}

void runtime_look(void)
{
	if (runtime_get())
		return;
	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && !runtime_get(); i++) {
		void *library = NULL;

		if (find_library(&families[i], &library) && load(&families[i], library))
			atomic_store_explicit(&current, &found, memory_order_release);
	}
	(void)pthread_mutex_unlock(&lock);
}

const struct runtime *runtime_get(void)
{
	return atomic_load_explicit(&current, memory_order_acquire);
}

int runtime_device(void)
{
	const struct runtime *runtime = runtime_get();
	int device = 0;

	return runtime && runtime->current_device(&device) == 0 ? device : 0;
}

bool runtime_has(const struct runtime *runtime, const void *at)
{
	unsigned int type = 0;

	return at && runtime->pointer_attribute(&type, ATTRIBUTE_MEMORY_TYPE, (uintptr_t)at) == 0 &&
	       type == MEMORY_TYPE_DEVICE;
}

static int copy_to_host(
	const struct runtime *runtime, void *to, uintptr_t from, size_t bytes, void *stream)
{
	return runtime->is_hip
		       ? runtime->copy.hip((uintptr_t)to, from, bytes, KIND_BY_ADDRESS, stream)
		       : runtime->copy.cuda((uintptr_t)to, from, bytes, stream);
}

ncclResult_t runtime_read(
	const char *function, void *to, const void *from, size_t bytes, void *stream)
{
	const struct runtime *runtime = runtime_get();
	int r = 0;

	if (!runtime)
		return error_set(ncclInvalidUsage,
			"%s: %p is to be in GPU memory, but the process has loaded no GPU runtime",
			function, from);
	r = copy_to_host(runtime, to, (uintptr_t)from, bytes, stream);
	if (r == 0)
		r = runtime->await_stream(stream);
	return r == 0 ? ncclSuccess
		      : error_set(ncclUnhandledCudaError,
				"%s: the GPU runtime says %d when a scalar at %p is read; in a "
				"graph that is captured it has to be in host memory",
				function, r, from);
}
