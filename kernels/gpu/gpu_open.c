/* SPDX-License-Identifier: MIT */
/* Opening the runtime, and what it says of its devices. */
#include "gpu_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SCRATCH_BYTES (UINT64_C(256) << 20)
#define DEFAULT_MAX_MAPS      1024u

/* A device without a number of its own is known by its place on the bus, on every process alike. */
static void uuid_from_pci(struct rx_gpu_device_info *info)
{
	memcpy(info->uuid, info->pci, sizeof(info->uuid));
}

static uint32_t clock_khz(const struct gpu_sym *sym, int index)
{
#if defined(RX_GPU_HIP)
	enum { USUAL = 100000, LEAST = 10000, MOST = 10000000 };
	int khz = 0;

	if (sym->device_attribute(&khz, GPU_ATTR_WALL_CLOCK, index) != GPU_SUCCESS || khz < LEAST ||
		khz > MOST)
		khz = USUAL;
	return (uint32_t)khz;
#else
	(void)sym;
	(void)index;
	return 1000000; /* the global timer counts nanoseconds */
#endif
}

/*
 * AMD's hardware has queues for several processes. NVIDIA's takes turns, unless a server makes one
 * process of them; where the driver cannot say, it takes turns.
 */
static bool is_concurrent(const struct gpu_sym *sym, int index)
{
#if defined(RX_GPU_CUDA)
	int value = 0;

	return sym->device_attribute(&value, GPU_ATTR_MPS, index) == GPU_SUCCESS && value;
#else
	(void)sym;
	(void)index;
	return true;
#endif
}

static uint32_t find_caps(const struct gpu_sym *sym, int index)
{
	uint32_t caps = RX_GPU_CAP_IPC | RX_GPU_CAP_HOST;
	int value = 0;

	if (sym->stream_write64 && sym->stream_wait64 &&
		sym->device_attribute(&value, GPU_ATTR_STREAM_MEM, index) == GPU_SUCCESS && value)
		caps |= RX_GPU_CAP_STREAM_MEM;
	value = 1;
	GPU_ONLY_CUDA((void)sym->device_attribute(&value, GPU_ATTR_FD, index);)
	if (value && sym->vmm_retain && sym->vmm_export && sym->vmm_import && sym->vmm_reserve &&
		sym->vmm_map && sym->vmm_access && sym->vmm_unmap && sym->vmm_unreserve &&
		sym->vmm_release)
		caps |= RX_GPU_CAP_FD;
	if (is_concurrent(sym, index))
		caps |= RX_GPU_CAP_CONCURRENT;
	return caps;
}

static int look_at_device(struct rx_gpu *gpu, uint32_t index, struct rx_gpu_error *error)
{
	const struct gpu_sym *sym = &gpu->sym;
	struct gpu_seen *seen = &gpu->devices[index];
	struct rx_gpu_device_info *info = &seen->info;
	int dev = (int)index;
	size_t memory = 0;
	int value = 0;
	int result = RX_GPU_OK;

	result = gpu_check(sym, sym->device_name(info->name, sizeof(info->name) - 1, dev),
		"asking for a device's name", error);
	if (result == RX_GPU_OK)
		result = gpu_check(sym, sym->device_memory(&memory, dev),
			"asking for a device's memory", error);
	if (result == RX_GPU_OK)
		result = gpu_check(sym, sym->device_pci(info->pci, sizeof(info->pci), dev),
			"asking for a device's bus number", error);
	if (result != RX_GPU_OK)
		return result;
	info->memory_bytes = memory;
	if (!sym->device_uuid || sym->device_uuid(info->uuid, dev) != GPU_SUCCESS)
		uuid_from_pci(info);
	gpu_arch(sym, dev, info->arch, sizeof(info->arch));
	if (sym->device_attribute(&value, GPU_ATTR_UNITS, dev) == GPU_SUCCESS)
		info->n_units = (uint32_t)value;
	if (sym->device_attribute(&value, GPU_ATTR_WARP, dev) == GPU_SUCCESS)
		info->warp = (uint32_t)value;
	info->clock_khz = clock_khz(sym, dev);
	atomic_init(&seen->caps, find_caps(sym, dev));
	return RX_GPU_OK;
}

static int find_devices(struct rx_gpu *gpu, const char *dev_dir, struct rx_gpu_error *error)
{
	int n = 0;
	int native = gpu->sym.init(0);
	int result = RX_GPU_OK;

	if (native == GPU_SUCCESS)
		native = gpu->sym.device_count(&n);
	if (native != GPU_SUCCESS || n <= 0)
		return gpu_explain_absence(dev_dir, native, error);
	if (gpu->sym.version(&gpu->version) != GPU_SUCCESS)
		gpu->version = 0;
	gpu->n_devices = (uint32_t)rx_min_u64((uint64_t)n, GPU_MAX_DEVICES);
	gpu->devices = calloc(gpu->n_devices, sizeof(*gpu->devices));
	if (!gpu->devices)
		return gpu_fail(
			error, RX_GPU_E_MEMORY, 0, "no memory for %u devices", gpu->n_devices);
	for (uint32_t i = 0; i < gpu->n_devices && result == RX_GPU_OK; i++)
		result = look_at_device(gpu, i, error);
	return result;
}

int gpu_open(const struct rx_gpu_config *config, struct rx_gpu **gpu_p, struct rx_gpu_error *error)
{
	struct rx_gpu_config mine = {0};
	struct rx_gpu *gpu = NULL;
	int result = RX_GPU_OK;

	if (config)
		memcpy(&mine, config, rx_min_u64(config->size, sizeof(mine)));
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu)
		return gpu_fail(
			error, RX_GPU_E_MEMORY, 0, "no memory for the " GPU_NAME " backend");
	(void)pthread_mutex_init(&gpu->primary_lock, NULL);
	gpu->is_client = mine.flags & RX_GPU_LOADED_ONLY;
	gpu->scratch_bytes = mine.scratch_bytes ? mine.scratch_bytes : DEFAULT_SCRATCH_BYTES;
	gpu->max_maps = mine.max_maps ? mine.max_maps : DEFAULT_MAX_MAPS;
	gpu->code_file = mine.code_file ? strdup(mine.code_file) : NULL;
	if (mine.code_file && !gpu->code_file)
		result = gpu_fail(error, RX_GPU_E_MEMORY, 0, "no memory for a path");
	if (result == RX_GPU_OK)
		result = gpu_sym_load(&gpu->sym, mine.library, gpu->is_client, error);
	if (result == RX_GPU_OK)
		result = find_devices(gpu, mine.dev_dir ? mine.dev_dir : "/dev", error);
	if (result != RX_GPU_OK) {
		gpu_close(gpu);
		return result;
	}
	*gpu_p = gpu;
	return RX_GPU_OK;
}

void gpu_close(struct rx_gpu *gpu)
{
	if (!gpu)
		return;
	GPU_ONLY_CUDA(if (gpu->primary)(void) gpu->sym.primary_release(gpu->primary_device);)
	(void)pthread_mutex_destroy(&gpu->primary_lock);
	free(gpu->devices);
	free(gpu->code_file);
	free(gpu);
}

uint32_t gpu_device_count(const struct rx_gpu *gpu)
{
	return gpu->n_devices;
}

static int check_index(const struct rx_gpu *gpu, uint32_t index, struct rx_gpu_error *error)
{
	if (index < gpu->n_devices)
		return RX_GPU_OK;
	return gpu_fail(error, RX_GPU_E_INVALID, 0, "there is no device %u: there are %u", index,
		gpu->n_devices);
}

int gpu_device_info(const struct rx_gpu *gpu, uint32_t device, struct rx_gpu_device_info *info_p,
	struct rx_gpu_error *error)
{
	int result = check_index(gpu, device, error);

	if (result != RX_GPU_OK)
		return result;
	*info_p = gpu->devices[device].info;
	info_p->caps = atomic_load_explicit(&gpu->devices[device].caps, memory_order_relaxed);
	return RX_GPU_OK;
}

int gpu_peer(const struct rx_gpu *gpu, uint32_t from, uint32_t to, struct rx_gpu_peer *peer_p,
	struct rx_gpu_error *error)
{
	const struct gpu_sym *sym = &gpu->sym;
	struct rx_gpu_peer peer = {0};
	int value = 0;
	int result = check_index(gpu, from, error);

	if (result == RX_GPU_OK)
		result = check_index(gpu, to, error);
	if (result != RX_GPU_OK)
		return result;
	if (from == to) {
		*peer_p = (struct rx_gpu_peer){.access = 1, .atomics = 1};
		return RX_GPU_OK;
	}
	result = gpu_check(sym, sym->can_access(&value, (int)from, (int)to),
		"asking for access between devices", error);
	if (result != RX_GPU_OK)
		return result;
	peer.access = value != 0;
	value = 0;
	if (sym->peer_attribute &&
		sym->peer_attribute(&value, GPU_PEER_ATOMICS, (int)from, (int)to) == GPU_SUCCESS)
		peer.atomics = value != 0;
#if defined(RX_GPU_HIP)
	uint32_t type = 0;
	uint32_t hops = 0;

	if (sym->link_hops && sym->link_hops((int)from, (int)to, &type, &hops) == GPU_SUCCESS)
		peer.hops = (uint8_t)rx_min_u64(hops, UINT8_MAX);
#endif
	*peer_p = peer;
	return RX_GPU_OK;
}
