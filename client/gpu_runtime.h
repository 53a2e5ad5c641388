/* SPDX-License-Identifier: MIT */
/* The process's GPU runtime: calls of the backend with texts for errors. After gpu_is_there(). */
#ifndef CLIENT_GPU_RUNTIME_H
#define CLIENT_GPU_RUNTIME_H

#include "rcclx.h"
#include "../kernels/rx_backend.h"

/** gpu_identify() - rx_backend_v1.identify(); gpu_describe() has been called */
uint64_t gpu_identify(uint64_t address, uint32_t kind);

/** gpu_describe() - what is behind @address. Return: enum rx_gpu_result, without a text. */
RX_WARN_UNUSED int gpu_describe(const void *address, struct rx_gpu_memory *memory_p);

/** gpu_export() - RCCLX_OK with *n_p 0: this memory cannot be shared */
rcclx_result gpu_export(const void *address, uint64_t bytes, struct rx_gpu_export *exports,
	int *fds, uint32_t max, uint32_t *n_p);

/**
 * gpu_sample() - the rows of @sample, RX_GPU_SAMPLE_BYTES, of @memory; blocks
 * @idle: nothing works on them; else they are read beside whatever does
 */
rcclx_result gpu_sample(const struct rx_gpu_memory *memory, const struct rx_gpu_sample *sample,
	bool idle, void *rows);

/** gpu_reach_host() - let devices reach [@memory, @memory + @bytes), whole pages, for ever */
rcclx_result gpu_reach_host(void *memory, uint64_t bytes, uint64_t *address_p);

/**
 * gpu_alloc_marked() - memory of @device that can be shared, filled so that it can be proven
 * @sample, @rows: receive what proves it
 */
rcclx_result gpu_alloc_marked(uint32_t device, uint64_t bytes, struct rx_gpu_sample *sample,
	void *rows, uint64_t *address_p);

/** gpu_free() - memory from gpu_alloc_marked(), which no stream uses any more; may block */
void gpu_free(uint32_t device, uint64_t address);

/* ---- kernels of ours, on memory of the daemon's ---- */

/** gpu_current() - device that this thread uses. False: none. @concurrent_p: as in rx_backend.h */
bool gpu_current(uint32_t *device_p, uint8_t uuid[16], bool *concurrent_p);

/** gpu_ticks() - @ns by the clock of @device; 0 for RX_FOREVER */
uint64_t gpu_ticks(uint32_t device, uint64_t ns);

/**
 * gpu_map_shared() - map memory of the daemon's for @device, for as long as the process lives
 * @rows, @n_rows: its first bytes, which have to be there
 */
rcclx_result gpu_map_shared(uint32_t device, const struct rx_gpu_export *shared,
	const uint8_t *rows, uint32_t n_rows, uint64_t *address_p);

/** gpu_find_kernel() - load it now, so that launching it does not wait for that */
rcclx_result gpu_find_kernel(uint32_t device, const char *name);

/* ---- streams ---- */

struct gpu_stream {
	void *native;
	uint32_t device;
	bool captured;    /* what is put into it is recorded in a graph */
	uint64_t capture; /* number of the capture; 0: unknown */
};

/** gpu_stream_look() - what @stream is up to */
rcclx_result gpu_stream_look(void *stream, struct gpu_stream *stream_p);

/** gpu_capture_mode() - as in rx_backend.h */
void gpu_capture_mode(int *mode);

/** gpu_copy_in_stream() - in the order of @stream */
rcclx_result gpu_copy_in_stream(
	const struct gpu_stream *stream, uint64_t to, uint64_t from, uint64_t bytes);

/** gpu_stream_begin() - *@word = @value, after what is in @stream */
rcclx_result gpu_stream_begin(const struct gpu_stream *stream, uint64_t word, uint64_t value);

/**
 * gpu_stream_end() - @stream goes on when *@word is not behind @value
 *
 * Where it is recorded: when they are equal, and sets *@word to 0 then.
 */
rcclx_result gpu_stream_end(const struct gpu_stream *stream, uint64_t word, uint64_t value);

/** gpu_launch() - a kernel into @stream */
rcclx_result gpu_launch(const struct gpu_stream *stream, const struct rx_gpu_launch *launch);

#endif
