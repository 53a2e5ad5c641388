/* SPDX-License-Identifier: MIT */
/*
 * What a program does with its GPU runtime, for tests that play the user: the same for both
 * families, found by dlsym() in the test double. Functions that return int return the runtime's own
 * numbers, 0 being success.
 */
#ifndef RX_GPU_EMU_USER_H
#define RX_GPU_EMU_USER_H

#include <stdint.h>

struct emu_user {
	/* Plain memory of @device; 0: none. What is freed is overwritten with EMU_POISON. */
	uint64_t (*alloc)(uint32_t device, uint64_t bytes);
	int (*free)(uint64_t address);
	/* Virtual memory of @n_pieces, one after the other; 0: none. */
	uint64_t (*alloc_pieces)(uint32_t device, uint64_t piece_bytes, uint32_t n_pieces);
	int (*free_pieces)(uint64_t address, uint64_t piece_bytes, uint32_t n_pieces);
	/* Copies between host memory and the device's; over when they return. */
	void (*write)(uint64_t to, const void *from, uint64_t bytes);
	void (*read)(void *to, uint64_t from, uint64_t bytes);

	/* Of the calling thread, from now on. */
	int (*set_device)(uint32_t device);
	/* NULL: the default stream */
	void *(*stream_new)(uint32_t device);
	int (*stream_free)(void *stream);
	int (*stream_sync)(void *stream);
	/* RX_GPU_OK-like 0: all done; 600: not yet */
	int (*stream_query)(void *stream);
	/* Host memory that is not registered is copied before it returns. */
	int (*copy)(void *stream, uint64_t to, uint64_t from, uint64_t bytes);
	/* The stream does nothing for so long, as a kernel would that computes. */
	int (*busy)(void *stream, uint32_t ms);
	int (*host_register)(void *memory, uint64_t bytes, uint64_t *address_p);
	int (*host_unregister)(void *memory);

	void *(*event_new)(void);
	void (*event_free)(void *event);
	int (*event_record)(void *event, void *stream);
	int (*event_wait)(void *event, void *stream);

	/* Modes: 0 nobody, 1 this thread, 2 any may call what waits for devices meanwhile. */
	int (*capture_begin)(void *stream, int mode);
	int (*capture_end)(void *stream, void **graph_p);
	int (*graph_nodes)(void *graph, uint64_t *n_p);
	int (*graph_launch)(void *graph, void *stream);
	/* Replays that were launched go on. */
	void (*graph_free)(void *graph);

	/* Faults as in RX_GPU_EMU, from now on; NULL: those of the environment again */
	void (*set_faults)(const char *faults);
};

#define EMU_USER_SYMBOL "emu_user"
#define EMU_POISON      0xee

#endif
