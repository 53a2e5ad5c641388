/* SPDX-License-Identifier: MIT */
/*
 * The cache of mappings.
 *
 * One mapping per allocation of an owner, found by the allocation's identity. A mapping is in the
 * list of maps while it is referenced or may be wanted again; it leaves it for the quarantine when
 * neither is so, and is unmapped there when the device has nothing to do: the runtime may wait for
 * all streams when it unmaps, and whoever used the mapping may not be finished.
 */
#include "gpu_impl.h"

#include <stdlib.h>
#include <string.h>

static uint64_t end_of(const struct rx_gpu_memory *memory)
{
	return memory->base + memory->bytes;
}

static bool same_device(const struct rx_gpu_memory *a, const struct rx_gpu_memory *b)
{
	return memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0;
}

bool gpu_same_piece(const struct rx_gpu_export *a, const struct rx_gpu_export *b)
{
	const struct rx_gpu_memory *x = &a->memory;
	const struct rx_gpu_memory *y = &b->memory;

	if (x->base != y->base || x->bytes != y->bytes || x->kind != y->kind || x->id != y->id ||
		!same_device(x, y))
		return false;
	/* Without a number the handle has to tell a new allocation from an old one. */
	return x->id != 0 || x->kind != RX_GPU_MEM_PLAIN ||
	       memcmp(a->handle, b->handle, sizeof(a->handle)) == 0;
}

/* ---- leaving ---- */

static void quarantine(struct rx_gpu_map *map)
{
	rx_list_unlink(&map->link);
	rx_list_push(&map->device->quarantined, &map->link);
	map->device->stats.n_quarantined++;
}

/* No new use; those who hold a reference may finish. */
static void retire(struct rx_gpu_map *map)
{
	map->alive = false;
	if (map->n_refs == 0)
		quarantine(map);
}

static void forget(struct rx_gpu_map *map, bool unmap)
{
	struct rx_gpu_device *device = map->device;

	device->stats.n_maps--;
	device->stats.mapped_bytes -= map->bytes;
	rx_list_unlink(&map->link);
	if (unmap)
		gpu_unmap(map);
	else
		free(map);
}

uint32_t gpu_device_reap(struct rx_gpu_device *device)
{
	struct gpu_scope scope = {0};

	if (device->stats.n_quarantined == 0 || device->lost.result != RX_GPU_OK ||
		gpu_enter(device, &scope, NULL) != RX_GPU_OK)
		return device->stats.n_quarantined;
	if (gpu_streams_idle(device)) {
		rx_list_for_each_safe (pos, &device->quarantined) {
			forget(rx_list_entry(pos, struct rx_gpu_map, link), true);
			device->stats.n_quarantined--;
		}
	}
	gpu_leave(device->gpu, &scope);
	return device->stats.n_quarantined;
}

void gpu_maps_free(struct rx_gpu_device *device, bool unmap)
{
	rx_list_for_each_safe (pos, &device->maps)
		forget(rx_list_entry(pos, struct rx_gpu_map, link), unmap);
	rx_list_for_each_safe (pos, &device->quarantined)
		forget(rx_list_entry(pos, struct rx_gpu_map, link), unmap);
}

void gpu_map_release(struct rx_gpu_map *map)
{
	if (map && --map->n_refs == 0 && !map->alive)
		quarantine(map);
}

static bool covers(const struct rx_gpu_map *map, uint64_t address)
{
	for (uint32_t i = 0; i < map->n_pieces; i++) {
		if (map->pieces[i].export.memory.base == address)
			return true;
	}
	return false;
}

void gpu_owner_freed(struct rx_gpu_device *device, uint64_t owner, uint64_t base)
{
	rx_list_for_each_safe (pos, &device->maps) {
		struct rx_gpu_map *map = rx_list_entry(pos, struct rx_gpu_map, link);

		if (map->alive && map->owner == owner && covers(map, base))
			retire(map);
	}
	(void)gpu_device_reap(device);
}

void gpu_owner_gone(struct rx_gpu_device *device, uint64_t owner)
{
	rx_list_for_each_safe (pos, &device->maps) {
		struct rx_gpu_map *map = rx_list_entry(pos, struct rx_gpu_map, link);

		if (map->alive && map->owner == owner)
			retire(map);
	}
	(void)gpu_device_reap(device);
}

/* ---- importing ---- */

static int check_device(
	struct rx_gpu_device *device, const uint8_t *uuid, struct rx_gpu_error *error)
{
	const struct rx_gpu *gpu = device->gpu;
	int can = 0;

	for (uint32_t i = 0; i < gpu->n_devices; i++) {
		if (memcmp(gpu->devices[i].info.uuid, uuid, sizeof(gpu->devices[i].info.uuid)) != 0)
			continue;
		if (i == device->index ||
			(gpu->sym.can_access(&can, (int)device->index, (int)i) == GPU_SUCCESS &&
				can))
			return RX_GPU_OK;
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0,
			"device %u cannot reach the memory of device %u", device->index, i);
	}
	return gpu_fail(error, RX_GPU_E_INVALID, 0, "memory of a device that is not here");
}

/* They come from another process: nothing about them is taken for granted. */
static int check_exports(struct rx_gpu_device *device, const struct rx_gpu_export *exports,
	const int *fds, uint32_t n, struct rx_gpu_error *error)
{
	const struct rx_gpu_memory *first = &exports[0].memory;
	uint64_t end = 0;

	if (n == 0 || n > RX_GPU_MAX_PIECES)
		return gpu_fail(error, RX_GPU_E_INVALID, 0, "%u pieces of memory, expected 1 to %u",
			n, RX_GPU_MAX_PIECES);
	if (first->kind != RX_GPU_MEM_VIRTUAL && (first->kind != RX_GPU_MEM_PLAIN || n != 1))
		return gpu_fail(error, RX_GPU_E_INVALID, 0, "this kind of memory is not exported");
	if (first->kind == RX_GPU_MEM_VIRTUAL &&
		!(atomic_load_explicit(
			  &device->gpu->devices[device->index].caps, memory_order_relaxed) &
			RX_GPU_CAP_FD))
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0,
			"this device does not import memory by file descriptor");
	for (uint32_t i = 0; i < n; i++) {
		const struct rx_gpu_memory *memory = &exports[i].memory;

		if (memory->kind != first->kind || !same_device(memory, first) ||
			(i > 0 && memory->base != end) || memory->bytes == 0 ||
			!rx_add_u64(memory->base, memory->bytes, &end))
			return gpu_fail(error, RX_GPU_E_INVALID, 0,
				"piece %u of the memory does not fit the others", i);
		if (memory->kind == RX_GPU_MEM_VIRTUAL && fds[i] < 0)
			return gpu_fail(
				error, RX_GPU_E_INVALID, 0, "piece %u has no descriptor", i);
	}
	return check_device(device, first->uuid, error);
}

/* The pieces are the map's first ones: offsets are the same in both. */
static bool has_all(const struct rx_gpu_map *map, const struct rx_gpu_export *exports, uint32_t n)
{
	if (n > map->n_pieces)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (!gpu_same_piece(&map->pieces[i].export, &exports[i]))
			return false;
	}
	return true;
}

/* The owner has other memory now where this mapping's was. */
static bool is_stale(const struct rx_gpu_map *map, const struct rx_gpu_export *exports, uint32_t n)
{
	for (uint32_t i = 0; i < map->n_pieces; i++) {
		const struct rx_gpu_export *old = &map->pieces[i].export;

		for (uint32_t k = 0; k < n; k++) {
			if (old->memory.base < end_of(&exports[k].memory) &&
				exports[k].memory.base < end_of(&old->memory) &&
				!gpu_same_piece(old, &exports[k]))
				return true;
		}
	}
	return false;
}

static struct rx_gpu_map *find(struct rx_gpu_device *device, uint64_t owner,
	const struct rx_gpu_export *exports, uint32_t n)
{
	struct rx_gpu_map *found = NULL;

	rx_list_for_each_safe (pos, &device->maps) {
		struct rx_gpu_map *map = rx_list_entry(pos, struct rx_gpu_map, link);

		if (!map->alive || map->owner != owner)
			continue;
		if (!found && has_all(map, exports, n))
			found = map;
		else if (is_stale(map, exports, n))
			retire(map);
	}
	return found;
}

static int make_room(struct rx_gpu_device *device, struct rx_gpu_error *error)
{
	uint32_t max = device->gpu->max_maps;

	if (device->stats.n_maps >= max)
		(void)gpu_device_reap(device);
	rx_list_for_each_safe (pos, &device->maps) {
		struct rx_gpu_map *map = rx_list_entry(pos, struct rx_gpu_map, link);

		if (device->stats.n_maps < max)
			break;
		if (map->n_refs == 0) { /* the oldest */
			retire(map);
			(void)gpu_device_reap(device);
			break;
		}
	}
	if (device->stats.n_maps < max)
		return RX_GPU_OK;
	return gpu_fail(error, RX_GPU_E_LIMIT, 0, "%u mappings on device %u are all there may be",
		max, device->index);
}

int gpu_import(struct rx_gpu_device *device, uint64_t owner, const struct rx_gpu_export *exports,
	const int *fds, uint32_t n, struct rx_gpu_map **map_p, struct rx_gpu_error *error)
{
	struct rx_gpu_map *map = NULL;
	struct gpu_scope scope = {0};
	int result = gpu_device_state(device, error);

	if (result == RX_GPU_OK)
		result = check_exports(device, exports, fds, n, error);
	if (result != RX_GPU_OK)
		return result;
	map = find(device, owner, exports, n);
	if (map) {
		map->n_refs++;
		device->stats.n_cache_hits++;
		*map_p = map;
		return RX_GPU_OK;
	}
	result = make_room(device, error);
	if (result == RX_GPU_OK)
		result = gpu_enter(device, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = gpu_map_new(device, owner, exports, fds, n, &map, error);
	gpu_leave(device->gpu, &scope);
	if (result != RX_GPU_OK)
		return result;
	rx_list_push(&device->maps, &map->link);
	device->stats.n_imports++;
	device->stats.n_maps++;
	device->stats.mapped_bytes += map->bytes;
	*map_p = map;
	return RX_GPU_OK;
}

/* ---- using ---- */

static const char *const whys[RX_GPU_WHY_N] = {
	[RX_GPU_WHY_KIND] = "of its kind",
	[RX_GPU_WHY_REFUSED] = "the runtime refused it",
	[RX_GPU_WHY_LIMIT] = "there are too many",
	[RX_GPU_WHY_CONSTANT] = "its contents are too plain to prove anything",
	[RX_GPU_WHY_REPLICA] = "another mapping shows the same contents",
	[RX_GPU_WHY_DIFFERENT] = "its contents changed while they were compared",
	[RX_GPU_WHY_WRONG] = "it shows other memory",
};

int gpu_map_address(struct rx_gpu_map *map, uint64_t offset, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error)
{
	if (!map->alive)
		return gpu_fail(error, RX_GPU_E_GONE, 0, "the owner has freed this memory");
	if (!rx_range_ok(offset, bytes, map->bytes))
		return gpu_fail(error, RX_GPU_E_INVALID, 0,
			"%llu bytes at %llu of a mapping of %llu", (unsigned long long)bytes,
			(unsigned long long)offset, (unsigned long long)map->bytes);
	for (uint32_t i = 0; i < map->n_pieces; i++) {
		const struct gpu_piece *piece = &map->pieces[i];
		uint64_t start = piece->at - map->address;

		if (piece->verdict == RX_GPU_PROVEN || start >= offset + bytes ||
			start + piece->export.memory.bytes <= offset)
			continue;
		gpu_count_copied(map->device, piece->why);
		return gpu_fail(error, RX_GPU_E_UNPROVEN, 0, "the mapping is not proven: %s",
			whys[piece->why]);
	}
	*address_p = map->address + offset;
	return RX_GPU_OK;
}

void gpu_map_info(const struct rx_gpu_map *map, struct rx_gpu_map_info *info_p)
{
	struct rx_gpu_map_info info = {.address = map->address,
		.bytes = map->bytes,
		.base = map->pieces[0].export.memory.base,
		.owner = map->owner,
		.verdict = RX_GPU_PROVEN,
		.n_refs = map->n_refs,
		.alive = map->alive};

	/* One wrong piece counts more than one that is open. */
	for (uint32_t i = 0; i < map->n_pieces; i++) {
		const struct gpu_piece *piece = &map->pieces[i];

		if (piece->verdict == RX_GPU_PROVEN || info.verdict == RX_GPU_WRONG)
			continue;
		info.verdict = piece->verdict;
		info.why = piece->why;
	}
	*info_p = info;
}
