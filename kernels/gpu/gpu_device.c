/* SPDX-License-Identifier: MIT */
/* Opening and closing a device, and what is kept about it. */
#include "gpu_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int gpu_device_check(
	struct rx_gpu_device *device, int native, const char *what, struct rx_gpu_error *error)
{
	struct rx_gpu_error mine = {0};
	int result = gpu_check(&device->gpu->sym, native, what, &mine);

	if (result == RX_GPU_E_DEVICE && device->lost.result == RX_GPU_OK)
		device->lost = mine;
	if (error && result != RX_GPU_OK && result != RX_GPU_BUSY)
		*error = mine;
	return result;
}

int gpu_device_state(const struct rx_gpu_device *device, struct rx_gpu_error *error)
{
	if (device->lost.result == RX_GPU_OK)
		return RX_GPU_OK;
	if (error)
		*error = device->lost;
	return RX_GPU_E_DEVICE;
}

void gpu_device_stats(const struct rx_gpu_device *device, struct rx_gpu_stats *stats_p)
{
	*stats_p = device->stats;
}

void gpu_count_copied(struct rx_gpu_device *device, uint32_t why)
{
	if (why < RX_GPU_WHY_N)
		device->stats.n_copied[why]++;
}

/* ---- opening ---- */

/* Host memory that proofs are read into, and that capturing is tried out with. */
static int make_proof_memory(struct rx_gpu_device *device, struct rx_gpu_error *error)
{
	void *memory = mmap(
		NULL, GPU_PROOF_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t address = 0;
	int result = RX_GPU_OK;

	if (memory == MAP_FAILED)
		return gpu_fail(error, RX_GPU_E_MEMORY, 0, "no memory for proofs");
	(void)madvise(memory, GPU_PROOF_BYTES, MADV_DONTFORK);
	result = gpu_host_register(device->gpu, memory, GPU_PROOF_BYTES, &address, error);
	if (result != RX_GPU_OK) {
		(void)munmap(memory, GPU_PROOF_BYTES);
		return result;
	}
	device->proof_rows = memory;
	device->proof_address = address;
	return RX_GPU_OK;
}

/*
 * Whether writes of words are recorded is in no table: some runtimes do them at once while they
 * record, and say nothing. So it is tried: nothing may be written, and the graph must have a node.
 */
static bool try_capture(struct rx_gpu_device *device)
{
	const struct gpu_sym *sym = &device->gpu->sym;
	_Atomic uint64_t *word = (_Atomic uint64_t *)device->proof_rows;
	void *stream = device->proof->native;
	void *graph = NULL;
	size_t n = 0;
	bool recorded = false;

	if (!sym->capture_begin || !sym->capture_end || !sym->graph_nodes || !sym->graph_destroy)
		return false;
	atomic_store_explicit(word, 0, memory_order_relaxed);
	if (sym->capture_begin(stream, GPU_CAPTURE_THREAD_LOCAL) != GPU_SUCCESS)
		return false;
	recorded = sym->stream_write64(stream, device->proof_address, 1, 0) == GPU_SUCCESS;
	if (sym->capture_end(stream, &graph) != GPU_SUCCESS || !graph)
		return false;
	recorded &= sym->graph_nodes(graph, NULL, &n) == GPU_SUCCESS && n > 0;
	(void)sym->graph_destroy(graph);
	if (sym->stream_sync(stream) != GPU_SUCCESS)
		return false;
	return recorded && atomic_load_explicit(word, memory_order_relaxed) == 0;
}

static int load_kernels(struct rx_gpu_device *device, struct rx_gpu_error *error)
{
	struct rx_gpu *gpu = device->gpu;
	int result =
		gpu_code_find(gpu, gpu->devices[device->index].info.arch, &device->code, error);

	if (result == RX_GPU_OK)
		result = gpu_check(&gpu->sym,
			gpu->sym.module_load(&device->module, device->code.image),
			"loading the kernels", error);
	return result;
}

static int set_up(struct rx_gpu_device *device, struct rx_gpu_error *error)
{
	struct rx_gpu *gpu = device->gpu;
	struct gpu_seen *seen = &gpu->devices[device->index];
	uint32_t caps = atomic_load_explicit(&seen->caps, memory_order_relaxed);
	int result = load_kernels(device, &device->no_code);

	/* A client copies without them, on devices that there is no code for. */
	if (result == RX_GPU_E_UNSUPPORTED && gpu->is_client)
		result = RX_GPU_OK;
	else if (result != RX_GPU_OK && error)
		*error = device->no_code;
	if (result == RX_GPU_OK)
		result = gpu_stream_new(device, false, &device->proof, error);
	if (result == RX_GPU_OK)
		result = make_proof_memory(device, error);
	if (result != RX_GPU_OK)
		return result;
	if ((caps & RX_GPU_CAP_STREAM_MEM) && try_capture(device))
		(void)atomic_fetch_or_explicit(
			&seen->caps, RX_GPU_CAP_CAPTURE_MEM, memory_order_relaxed);
	/* In a client the contexts are the user's. */
	if (!gpu->is_client)
		gpu_enable_peers(device);
	return RX_GPU_OK;
}

/* Everything but the context; the device is idle, or lost. */
static void tear_down(struct rx_gpu_device *device)
{
	const struct gpu_sym *sym = &device->gpu->sym;
	bool usable = device->lost.result == RX_GPU_OK;

	rx_list_for_each_safe (pos, &device->streams)
		gpu_stream_free(device, rx_list_entry(pos, struct gpu_stream, link));
	gpu_stream_free(device, device->proof);
	gpu_maps_free(device, usable);
	if (device->proof_rows && usable &&
		gpu_host_unregister(device->gpu, device->proof_rows, NULL) == RX_GPU_OK)
		(void)munmap(device->proof_rows, GPU_PROOF_BYTES);
	if (device->scratch.base && usable)
		(void)sym->mem_free(device->scratch.base);
	if (device->module && usable)
		(void)sym->module_unload(device->module);
	for (uint32_t i = 0; i < device->n_functions; i++)
		free((char *)device->functions[i].name);
	free(device->functions);
	free(device->scratch.blocks);
	free(device->code.owned);
}

static void release(struct rx_gpu_device *device)
{
#if defined(RX_GPU_CUDA)
	if (device->context && device->lost.result == RX_GPU_OK)
		(void)device->gpu->sym.primary_release((int)device->index);
#endif
	atomic_fetch_sub_explicit(&device->gpu->n_open, 1, memory_order_relaxed);
	free(device);
}

int gpu_device_open(struct rx_gpu *gpu, uint32_t index, struct rx_gpu_device **device_p,
	struct rx_gpu_error *error)
{
	struct rx_gpu_device *device = NULL;
	struct gpu_scope scope = {0};
	int result = RX_GPU_OK;

	if (index >= gpu->n_devices)
		return gpu_fail(error, RX_GPU_E_INVALID, 0, "there is no device %u: there are %u",
			index, gpu->n_devices);
	device = calloc(1, sizeof(*device));
	if (!device)
		return gpu_fail(error, RX_GPU_E_MEMORY, 0, "no memory for a device");
	device->gpu = gpu;
	device->index = index;
	rx_list_init(&device->streams);
	rx_list_init(&device->maps);
	rx_list_init(&device->quarantined);
	atomic_fetch_add_explicit(&gpu->n_open, 1, memory_order_relaxed);
	GPU_ONLY_CUDA(
		result = gpu_check(&gpu->sym, gpu->sym.primary_retain(&device->context, (int)index),
			"making a context", error);)
	if (result == RX_GPU_OK)
		result = gpu_enter(device, &scope, error);
	if (result != RX_GPU_OK) {
		release(device);
		return result;
	}
	result = set_up(device, error);
	if (result != RX_GPU_OK)
		tear_down(device);
	gpu_leave(gpu, &scope);
	if (result == RX_GPU_OK)
		*device_p = device;
	else
		release(device);
	return result;
}

int gpu_device_close(struct rx_gpu_device *device)
{
	struct rx_gpu *gpu = device->gpu;
	struct gpu_scope scope = {0};
	bool idle = false;

	if (device->lost.result == RX_GPU_OK && gpu_enter(device, &scope, NULL) == RX_GPU_OK) {
		idle = gpu_streams_idle(device) &&
		       gpu_device_check(device, gpu->sym.stream_query(device->proof->native),
			       "asking a stream", NULL) == RX_GPU_OK;
		if (!idle && device->lost.result == RX_GPU_OK) {
			gpu_leave(gpu, &scope);
			return RX_GPU_BUSY;
		}
	}
	tear_down(device);
	gpu_leave(gpu, &scope);
	release(device);
	return RX_GPU_OK;
}
