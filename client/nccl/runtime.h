/* SPDX-License-Identifier: MIT */
/*
 * The GPU runtime that the process has loaded, for what NCCL's interface needs of it besides the
 * collectives. CUDA by its driver's interface, HIP by its own: the functions used are alike.
 */
#ifndef NCCL_RUNTIME_H
#define NCCL_RUNTIME_H

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

/* Each returns 0, or the runtime's number for what went wrong. */
struct runtime {
	int (*pointer_attribute)(void *data, int attribute, uintptr_t pointer);
	int (*current_device)(int *device);
	union {
		int (*cuda)(uintptr_t to, uintptr_t from, size_t bytes, void *stream);
		int (*hip)(uintptr_t to, uintptr_t from, size_t bytes, int kind, void *stream);
	} copy;
	int (*await_stream)(void *stream);
	int (*allocate)(uintptr_t *at, size_t bytes);
	int (*release)(uintptr_t at);
	bool is_hip;
};

/** runtime_look() - find out whether there is one; cheap, repeatable, from any thread */
void runtime_look(void);

/** runtime_get() - what was found, for ever; NULL: nothing so far */
const struct runtime *runtime_get(void);

/** runtime_device() - the thread's current device; 0 without a runtime */
int runtime_device(void);

/** runtime_has() - is @at memory that only devices reach, or that they share with the host? */
bool runtime_has(const struct runtime *runtime, const void *at);

/** runtime_read() - @bytes at @from when @stream has come so far; blocks. Error: with a text */
ncclResult_t runtime_read(
	const char *function, void *to, const void *from, size_t bytes, void *stream);

#endif
