/* SPDX-License-Identifier: MIT */
/*
 * A test double of a GPU backend: a plugin without a GPU. It lets the tests see what the daemon and
 * the library do with a backend, on any machine, and provoke what real devices rarely do.
 *
 * Device memory is memory of a file, and its address is one that a processor cannot touch: whoever
 * copies from it as if it were the host's crashes.
 *
 * Faults, $RCCLX_FAKE_FAULT of the daemon:
 *	import   imports fail
 *	wrong    imports show other memory than was exported
 *	launch   launches on device 1 fail
 *	lost     device 1 is lost by its first launch
 *	stuck    kernels never end
 *	slow     kernels take 300 ms
 *	status   kernels give up and say so
 *	open     device 1 cannot be opened
 *
 * $RCCLX_FAKE_DEVICES: how many there are, 8 otherwise; of three the last one reaches no other.
 */
#ifndef TEST_FAKE_H
#define TEST_FAKE_H

#include <stdint.h>

/* For programs that play the client: what a GPU runtime would give them, found by dlsym(). */
struct fake_runtime {
	/* 0: no memory. Allocations on even devices have no handle, they travel by descriptor. */
	uint64_t (*alloc)(uint32_t device, uint64_t bytes);
	void (*free)(uint64_t address);
	/* Copies between host memory and the device's. */
	void (*write)(uint64_t to, const void *from, uint64_t bytes);
	void (*read)(void *to, uint64_t from, uint64_t bytes);
};

#define FAKE_RUNTIME_SYMBOL "rcclx_fake_runtime"

#endif
