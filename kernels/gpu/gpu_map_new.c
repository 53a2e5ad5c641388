/* SPDX-License-Identifier: MIT */
/* Mapping another process's memory, and giving the mapping back. */
#include "gpu_impl.h"

#include <stdlib.h>
#include <string.h>

/* What the runtime mapped, as opposed to what the owner claims. */
static int check_plain(const struct rx_gpu_map *map, uint64_t address, struct rx_gpu_error *error)
{
	const struct gpu_sym *sym = &map->device->gpu->sym;
	uint64_t base = 0;
	size_t bytes = 0;
	int result = gpu_check(
		sym, sym->address_range(&base, &bytes, address), "looking at a mapping", error);

	if (result != RX_GPU_OK)
		return result;
	if (base > address || !rx_range_ok(address - base, map->bytes, bytes))
		return gpu_fail(error, RX_GPU_E_INVALID, 0,
			"the owner says %llu bytes, and the mapping has %llu",
			(unsigned long long)map->bytes, (unsigned long long)bytes);
	return RX_GPU_OK;
}

static int map_plain(struct rx_gpu_map *map, struct rx_gpu_error *error)
{
	struct rx_gpu_device *device = map->device;
	struct gpu_ipc_handle handle = {0};
	uint64_t address = 0;
	int result = RX_GPU_OK;

	memcpy(handle.bytes, map->pieces[0].export.handle, sizeof(handle.bytes));
	result = gpu_device_check(device,
		device->gpu->sym.ipc_open(&address, handle, GPU_IPC_LAZY_PEER),
		"opening another process's allocation", error);
	if (result != RX_GPU_OK)
		return result;
	result = check_plain(map, address, error);
	if (result != RX_GPU_OK) {
		(void)device->gpu->sym.ipc_close(address);
		return result;
	}
	map->address = map->pieces[0].at = address;
	map->n_mapped = 1;
	return RX_GPU_OK;
}

static int map_piece(struct rx_gpu_map *map, struct gpu_piece *piece, int fd, uint64_t at,
	struct rx_gpu_error *error)
{
	struct rx_gpu_device *device = map->device;
	const struct gpu_sym *sym = &device->gpu->sym;
	struct gpu_access access = {
		GPU_LOCATION_DEVICE, (int32_t)device->index, GPU_ACCESS_READ_WRITE};
	uint64_t bytes = piece->export.memory.bytes;
	uint64_t handle = 0;
	int result = gpu_device_check(device, gpu_vmm_import(device->gpu, fd, &handle),
		"importing another process's memory", error);

	if (result != RX_GPU_OK)
		return result;
	result = gpu_device_check(device, sym->vmm_map(at, bytes, 0, handle, 0),
		"mapping another process's memory", error);
	/* The mapping keeps the memory; the handle is not needed any more. */
	(void)sym->vmm_release(handle);
	if (result != RX_GPU_OK)
		return result;
	result = gpu_device_check(device, sym->vmm_access(at, bytes, &access, 1),
		"asking for access to another process's memory", error);
	if (result != RX_GPU_OK) {
		(void)sym->vmm_unmap(at, bytes);
		return result;
	}
	piece->at = at;
	map->n_mapped++;
	return RX_GPU_OK;
}

static int map_pieces(struct rx_gpu_map *map, const int *fds, struct rx_gpu_error *error)
{
	struct rx_gpu_device *device = map->device;
	uint64_t at = 0;
	int result = gpu_device_check(device,
		device->gpu->sym.vmm_reserve(&map->address, map->bytes, 0, 0, 0),
		"reserving addresses", error);

	if (result != RX_GPU_OK)
		return result;
	map->reserved = true;
	at = map->address;
	for (uint32_t i = 0; i < map->n_pieces && result == RX_GPU_OK; i++) {
		result = map_piece(map, &map->pieces[i], fds[i], at, error);
		at += map->pieces[i].export.memory.bytes;
	}
	return result;
}

/* What fails here stays mapped; whether the device is lost is all that matters. */
static void note(struct rx_gpu_device *device, int native)
{
	int result = gpu_device_check(device, native, "unmapping memory", NULL);

	(void)result;
}

void gpu_unmap(struct rx_gpu_map *map)
{
	struct rx_gpu_device *device = map->device;
	const struct gpu_sym *sym = &device->gpu->sym;

	if (map->reserved) {
		for (uint32_t i = 0; i < map->n_mapped; i++)
			note(device, sym->vmm_unmap(map->pieces[i].at,
					     map->pieces[i].export.memory.bytes));
		note(device, sym->vmm_unreserve(map->address, map->bytes));
	} else if (map->n_mapped == 1) {
		note(device, sym->ipc_close(map->address));
	}
	free(map);
}

int gpu_map_new(struct rx_gpu_device *device, uint64_t owner, const struct rx_gpu_export *exports,
	const int *fds, uint32_t n, struct rx_gpu_map **map_p, struct rx_gpu_error *error)
{
	struct rx_gpu_map *map = calloc(1, sizeof(*map) + n * sizeof(map->pieces[0]));
	int result = RX_GPU_OK;

	if (!map)
		return gpu_fail(error, RX_GPU_E_MEMORY, 0, "no memory for a mapping");
	rx_list_init(&map->link);
	map->device = device;
	map->owner = owner;
	map->alive = true;
	map->n_refs = 1;
	map->n_pieces = n;
	for (uint32_t i = 0; i < n; i++) {
		map->pieces[i].export = exports[i];
		map->pieces[i].why = RX_GPU_WHY_CONSTANT;
		map->bytes += exports[i].memory.bytes;
	}
	result = exports[0].memory.kind == RX_GPU_MEM_PLAIN ? map_plain(map, error)
							    : map_pieces(map, fds, error);
	if (result == RX_GPU_OK)
		*map_p = map;
	else
		gpu_unmap(map);
	return result;
}
