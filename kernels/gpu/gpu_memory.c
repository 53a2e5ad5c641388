/* SPDX-License-Identifier: MIT */
/* Device memory of our own: allocations that are shared, and a pool for one operation's scratch. */
#include "gpu_impl.h"

#include <stdlib.h>
#include <string.h>

#define SCRATCH_ALIGN 256u

/* Cleared, so that no process sees what another one left. */
static int clear(
	struct rx_gpu_device *device, uint64_t address, uint64_t bytes, struct rx_gpu_error *error)
{
	const struct gpu_sym *sym = &device->gpu->sym;
	void *stream = device->proof->native;
	int result = gpu_device_check(
		device, sym->mem_set(address, 0, bytes, stream), "clearing memory", error);

	if (result == RX_GPU_OK)
		result = gpu_device_check(
			device, sym->stream_sync(stream), "clearing memory", error);
	return result;
}

static int alloc_here(struct rx_gpu_device *device, uint64_t bytes, bool words, uint64_t *address_p,
	struct rx_gpu_error *error)
{
	const struct gpu_sym *sym = &device->gpu->sym;
	uint64_t address = 0;
	int native =
		words ? gpu_alloc_words(sym, &address, bytes) : sym->mem_alloc(&address, bytes);
	int result = gpu_device_check(device, native, "allocating device memory", error);

	if (result != RX_GPU_OK)
		return result;
	result = clear(device, address, bytes, error);
	if (result == RX_GPU_OK)
		*address_p = address;
	else if (device->lost.result == RX_GPU_OK)
		(void)sym->mem_free(address);
	return result;
}

static int alloc(struct rx_gpu_device *device, uint64_t bytes, bool words, uint64_t *address_p,
	struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	int result = gpu_device_state(device, error);

	if (result != RX_GPU_OK)
		return result;
	if (bytes == 0)
		return gpu_fail(error, RX_GPU_E_INVALID, 0, "an allocation of no bytes");
	result = gpu_enter(device, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = alloc_here(device, bytes, words, address_p, error);
	gpu_leave(device->gpu, &scope);
	return result;
}

int gpu_alloc(struct rx_gpu_device *device, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error)
{
	return alloc(device, bytes, false, address_p, error);
}

int gpu_alloc_shared(struct rx_gpu_device *device, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error)
{
	return alloc(device, bytes, true, address_p, error);
}

void gpu_free(struct rx_gpu_device *device, uint64_t address)
{
	struct gpu_scope scope = {0};
	int result = RX_GPU_OK;

	if (address == 0 || device->lost.result != RX_GPU_OK ||
		gpu_enter(device, &scope, NULL) != RX_GPU_OK)
		return;
	result = gpu_device_check(
		device, device->gpu->sym.mem_free(address), "freeing memory", NULL);
	(void)result; /* what cannot be freed stays; a lost device is noted */
	gpu_leave(device->gpu, &scope);
}

int gpu_clear(
	struct rx_gpu_device *device, uint64_t address, uint64_t bytes, struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	int result = gpu_device_state(device, error);

	if (result == RX_GPU_OK)
		result = gpu_enter(device, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = clear(device, address, bytes, error);
	gpu_leave(device->gpu, &scope);
	return result;
}

/* ---- scratch ---- */

static int make_pool(struct rx_gpu_device *device, struct rx_gpu_error *error)
{
	uint64_t base = 0;
	int result = gpu_alloc(device, device->gpu->scratch_bytes, &base, error);

	if (result != RX_GPU_OK)
		return result;
	device->scratch.base = base;
	device->scratch.bytes = device->gpu->scratch_bytes;
	return RX_GPU_OK;
}

static int make_room(struct gpu_scratch *pool, struct rx_gpu_error *error)
{
	uint32_t room = pool->room ? pool->room * 2 : 16;
	struct gpu_block *grown = NULL;

	if (pool->n < pool->room)
		return RX_GPU_OK;
	grown = realloc(pool->blocks, room * sizeof(*grown));
	if (!grown)
		return gpu_fail(error, RX_GPU_E_MEMORY, 0, "no memory for the scratch pool's list");
	pool->blocks = grown;
	pool->room = room;
	return RX_GPU_OK;
}

/* Return: index at which a block of @bytes fits before the next, or pool->n + 1: nowhere. */
static uint32_t find_gap(const struct gpu_scratch *pool, uint64_t bytes, uint64_t *offset_p)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i <= pool->n; i++) {
		uint64_t end = i < pool->n ? pool->blocks[i].offset : pool->bytes;

		if (end - at >= bytes) {
			*offset_p = at;
			return i;
		}
		if (i < pool->n)
			at = pool->blocks[i].offset + pool->blocks[i].bytes;
	}
	return pool->n + 1;
}

int gpu_scratch_get(struct rx_gpu_device *device, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error)
{
	struct gpu_scratch *pool = &device->scratch;
	uint64_t offset = 0;
	uint32_t at = 0;
	int result = gpu_device_state(device, error);

	if (result != RX_GPU_OK)
		return result;
	if (bytes == 0 || bytes > device->gpu->scratch_bytes)
		return gpu_fail(error, RX_GPU_E_LIMIT, 0,
			"%llu bytes of scratch memory, where 1 to %llu are allowed",
			(unsigned long long)bytes, (unsigned long long)device->gpu->scratch_bytes);
	bytes = rx_min_u64(rx_align_up(bytes, SCRATCH_ALIGN), device->gpu->scratch_bytes);
	if (pool->base == 0)
		result = make_pool(device, error);
	if (result == RX_GPU_OK)
		result = make_room(pool, error);
	if (result != RX_GPU_OK)
		return result;
	at = find_gap(pool, bytes, &offset);
	if (at > pool->n)
		return RX_GPU_BUSY;
	memmove(&pool->blocks[at + 1], &pool->blocks[at], (pool->n - at) * sizeof(*pool->blocks));
	pool->blocks[at] = (struct gpu_block){.offset = offset, .bytes = bytes};
	pool->n++;
	device->stats.scratch_bytes += bytes;
	device->stats.scratch_high_bytes =
		rx_max_u64(device->stats.scratch_high_bytes, device->stats.scratch_bytes);
	*address_p = pool->base + offset;
	return RX_GPU_OK;
}

void gpu_scratch_put(struct rx_gpu_device *device, uint64_t address)
{
	struct gpu_scratch *pool = &device->scratch;

	for (uint32_t i = 0; i < pool->n; i++) {
		if (pool->base + pool->blocks[i].offset != address)
			continue;
		device->stats.scratch_bytes -= pool->blocks[i].bytes;
		pool->n--;
		memmove(&pool->blocks[i], &pool->blocks[i + 1],
			(pool->n - i) * sizeof(*pool->blocks));
		return;
	}
}
