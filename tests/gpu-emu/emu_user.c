/* SPDX-License-Identifier: MIT */
/* The user's side of the test double: one table for both families. */
#include "emu_user.h"
#include "emu.h"

#include <stdlib.h>
#include <string.h>

static uint64_t user_alloc(uint32_t device, uint64_t bytes)
{
	int before = emu_set_current((int)device);
	uint64_t address = 0;
	int native = emu_mem_alloc(&address, bytes);

	(void)emu_set_current(before);
	return native == GPU_SUCCESS ? address : 0;
}

static uint64_t user_alloc_pieces(uint32_t device, uint64_t piece_bytes, uint32_t n_pieces)
{
	return emu_alloc_pieces((int)device, piece_bytes, n_pieces);
}

static int device_of(uint64_t address)
{
	int device = -1;

	/* Virtual memory of others has none. */
	(void)emu_pointer_attribute(&device, GPU_POINTER_DEVICE, address);
	return device < 0 ? 0 : device;
}

/* For good: a test that goes on after this tests nothing. */
static void *reach_or_abort(uint64_t address, uint64_t bytes)
{
	void *at = emu_reach(address, bytes, device_of(address));

	if (!at)
		abort();
	return at;
}

static void user_write(uint64_t to, const void *from, uint64_t bytes)
{
	memcpy(reach_or_abort(to, bytes), from, bytes);
}

static void user_read(void *to, uint64_t from, uint64_t bytes)
{
	memcpy(to, reach_or_abort(from, bytes), bytes);
}

static int user_set_device(uint32_t device)
{
#if defined(RX_GPU_CUDA)
	return emu_context_push((void *)(uintptr_t)(device + 1));
#else
	return emu_device_set((int)device);
#endif
}

static void *user_stream_new(uint32_t device)
{
	int before = emu_set_current((int)device);
	void *stream = NULL;
	int native = emu_stream_create(&stream, GPU_STREAM_NON_BLOCKING, 0);

	(void)emu_set_current(before);
	return native == GPU_SUCCESS ? stream : NULL;
}

static int user_copy(void *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
#if defined(RX_GPU_CUDA)
	return emu_copy(to, from, bytes, stream);
#else
	return emu_copy(to, from, bytes, GPU_MEMCPY_DEFAULT, stream);
#endif
}

static int user_busy(void *stream, uint32_t ms)
{
	return emu_put(
		stream, &(struct emu_work){.kind = WORK_NAP, .value = ms * UINT64_C(1000000)});
}

static int user_host_register(void *memory, uint64_t bytes, uint64_t *address_p)
{
	int native = emu_host_register(memory, bytes, GPU_HOST_PORTABLE_MAPPED);

	return native == GPU_SUCCESS ? emu_host_address(address_p, memory, 0) : native;
}

static void *user_event_new(void)
{
	return calloc(1, sizeof(struct emu_event));
}

static void user_event_free(void *event)
{
	free(event);
}

static int user_event_record(void *event, void *stream)
{
	return emu_event_record(event, stream);
}

static int user_event_wait(void *event, void *stream)
{
	return emu_event_wait(event, stream);
}

static int user_graph_nodes(void *graph, uint64_t *n_p)
{
	size_t n = 0;
	int native = emu_graph_nodes(graph, NULL, &n);

	*n_p = n;
	return native;
}

EMU_EXPORT extern const struct emu_user emu_user;
EMU_EXPORT const struct emu_user emu_user = {
	.alloc = user_alloc,
	.free = emu_mem_free,
	.alloc_pieces = user_alloc_pieces,
	.free_pieces = emu_free_pieces,
	.write = user_write,
	.read = user_read,
	.set_device = user_set_device,
	.stream_new = user_stream_new,
	.stream_free = emu_stream_destroy,
	.stream_sync = emu_stream_sync,
	.stream_query = emu_stream_query,
	.copy = user_copy,
	.busy = user_busy,
	.host_register = user_host_register,
	.host_unregister = emu_host_unregister,
	.event_new = user_event_new,
	.event_free = user_event_free,
	.event_record = user_event_record,
	.event_wait = user_event_wait,
	.capture_begin = emu_capture_begin,
	.capture_end = emu_capture_end,
	.graph_nodes = user_graph_nodes,
	.graph_launch = emu_graph_launch,
	.graph_free = emu_graph_put,
	.set_faults = emu_set_faults,
};
