/* SPDX-License-Identifier: MIT */
/* Where HIP and CUDA do the same in different ways. */
#include "gpu_impl.h"

#include <stdio.h>
#include <string.h>

#if defined(RX_GPU_CUDA)

static int push(
	struct rx_gpu *gpu, void *context, struct gpu_scope *scope, struct rx_gpu_error *error)
{
	int result =
		gpu_check(&gpu->sym, gpu->sym.context_push(context), "taking the context", error);

	scope->entered = result == RX_GPU_OK;
	return result;
}

int gpu_enter(struct rx_gpu_device *device, struct gpu_scope *scope, struct rx_gpu_error *error)
{
	return push(device->gpu, device->context, scope, error);
}

static bool is_active(const struct rx_gpu *gpu, int dev)
{
	unsigned int flags = 0;
	int active = 0;

	return gpu->sym.primary_state(dev, &flags, &active) == GPU_SUCCESS && active;
}

/* One that is in use already, as a context costs hundreds of megabytes. */
static int hold_primary(struct rx_gpu *gpu, struct rx_gpu_error *error)
{
	int dev = 0;

	for (int i = (int)gpu->n_devices - 1; i >= 0; i--) {
		if (is_active(gpu, i))
			dev = i;
	}
	gpu->primary_device = dev;
	return gpu_check(
		&gpu->sym, gpu->sym.primary_retain(&gpu->primary, dev), "making a context", error);
}

int gpu_enter_any(struct rx_gpu *gpu, struct gpu_scope *scope, struct rx_gpu_error *error)
{
	void *context = NULL;

	int result = RX_GPU_OK;

	scope->entered = false;
	if (gpu->sym.context_get(&context) == GPU_SUCCESS && context)
		return RX_GPU_OK;
	(void)pthread_mutex_lock(&gpu->primary_lock);
	if (!gpu->primary)
		result = hold_primary(gpu, error);
	(void)pthread_mutex_unlock(&gpu->primary_lock);
	return result == RX_GPU_OK ? push(gpu, gpu->primary, scope, error) : result;
}

int gpu_enter_pointer(
	struct rx_gpu *gpu, uint64_t address, struct gpu_scope *scope, struct rx_gpu_error *error)
{
	void *context = NULL;

	/* Virtual memory belongs to no context. */
	if (gpu->sym.pointer_attribute(&context, GPU_POINTER_CONTEXT, address) != GPU_SUCCESS ||
		!context)
		return gpu_enter_any(gpu, scope, error);
	return push(gpu, context, scope, error);
}

void gpu_leave(struct rx_gpu *gpu, struct gpu_scope *scope)
{
	void *context = NULL;

	if (scope->entered)
		(void)gpu->sym.context_pop(&context);
	scope->entered = false;
}

int gpu_stream_device(struct rx_gpu *gpu, void *stream, int *device_p)
{
	const struct gpu_sym *sym = &gpu->sym;
	void *context = NULL;
	int native = GPU_NOT_SUPPORTED;

	if (!sym->context_device)
		return native;
	/* The default stream belongs to whatever context the thread has. */
	if (!stream || !sym->stream_context ||
		sym->stream_context(stream, &context) != GPU_SUCCESS || !context)
		return sym->context_device(device_p);
	if (sym->context_push(context) != GPU_SUCCESS)
		return native;
	native = sym->context_device(device_p);
	(void)sym->context_pop(&context);
	return native;
}

int gpu_copy(const struct gpu_sym *sym, void *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
	return sym->copy(to, from, bytes, stream);
}

int gpu_copy_rows(const struct gpu_sym *sym, void *stream, const struct rx_gpu_sample *sample,
	uint64_t base, void *rows, bool to_device)
{
	enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };
	struct gpu_rows_cuda copy = {0};
	uint64_t first = 0;
	uint64_t pitch = 0;
	uint64_t width = 0;

	copy.height = rx_gpu_sample_rows(sample, &first, &pitch, &width);
	copy.width = width;
	if (to_device) {
		copy.from_type = TYPE_HOST;
		copy.from_host = rows;
		copy.from_pitch = width;
		copy.to_type = TYPE_DEVICE;
		copy.to_device = base + first;
		copy.to_pitch = pitch;
	} else {
		copy.from_type = TYPE_DEVICE;
		copy.from_device = base + first;
		copy.from_pitch = pitch;
		copy.to_type = TYPE_HOST;
		copy.to_host = rows;
		copy.to_pitch = width;
	}
	return sym->copy_rows(&copy, stream);
}

int gpu_wait64(
	const struct gpu_sym *sym, void *stream, uint64_t address, uint64_t value, int compare)
{
	return sym->stream_wait64(stream, address, value, (unsigned int)compare);
}

int gpu_vmm_import(const struct rx_gpu *gpu, int fd, uint64_t *handle_p)
{
	return gpu->sym.vmm_import(handle_p, (uintptr_t)fd, GPU_HANDLE_TYPE_FD);
}

void gpu_arch(const struct gpu_sym *sym, int device, char *arch, size_t bytes)
{
	int major = 0;
	int minor = 0;

	(void)sym->device_attribute(&major, GPU_ATTR_MAJOR, device);
	(void)sym->device_attribute(&minor, GPU_ATTR_MINOR, device);
	(void)snprintf(arch, bytes, "sm_%d%d", major, minor);
}

/* Each direction is a setting of one context, towards another one. */
static void enable_peer(const struct gpu_sym *sym, void *context, int to)
{
	void *peer = NULL;
	void *popped = NULL;

	if (sym->primary_retain(&peer, to) != GPU_SUCCESS)
		return;
	if (sym->context_push(context) == GPU_SUCCESS) {
		(void)sym->context_peer(peer, 0);
		(void)sym->context_pop(&popped);
	}
	(void)sym->primary_release(to);
}

void gpu_enable_peers(struct rx_gpu_device *device)
{
	const struct rx_gpu *gpu = device->gpu;
	int self = (int)device->index;

	for (int i = 0; i < (int)gpu->n_devices; i++) {
		void *context = NULL;
		int can = 0;

		if (i == self || !is_active(gpu, i))
			continue;
		if (gpu->sym.can_access(&can, self, i) == GPU_SUCCESS && can)
			enable_peer(&gpu->sym, device->context, i);
		can = 0;
		if (gpu->sym.can_access(&can, i, self) != GPU_SUCCESS || !can ||
			gpu->sym.primary_retain(&context, i) != GPU_SUCCESS)
			continue;
		enable_peer(&gpu->sym, context, self);
		(void)gpu->sym.primary_release(i);
	}
}

int gpu_alloc_words(const struct gpu_sym *sym, uint64_t *address_p, uint64_t bytes)
{
	return sym->mem_alloc(address_p, bytes);
}

bool gpu_is_device_type(const struct rx_gpu *gpu, int type)
{
	(void)gpu;
	return type == GPU_MEMORY_TYPE_DEVICE;
}

#else /* HIP */

/* Encoding of hipRuntimeGetVersion(). */
#define HIP_VERSION(major, minor) ((major)*10000000 + (minor)*100000)

static int enter(struct rx_gpu *gpu, int index, struct gpu_scope *scope, struct rx_gpu_error *error)
{
	int result = gpu_check(
		&gpu->sym, gpu->sym.device_get(&scope->before), "asking for the device", error);

	scope->entered = false;
	if (result != RX_GPU_OK || scope->before == index)
		return result;
	result = gpu_check(&gpu->sym, gpu->sym.device_set(index), "taking the device", error);
	scope->entered = result == RX_GPU_OK;
	return result;
}

int gpu_enter(struct rx_gpu_device *device, struct gpu_scope *scope, struct rx_gpu_error *error)
{
	return enter(device->gpu, (int)device->index, scope, error);
}

int gpu_enter_any(struct rx_gpu *gpu, struct gpu_scope *scope, struct rx_gpu_error *error)
{
	(void)gpu;
	(void)error;
	scope->entered = false;
	return RX_GPU_OK;
}

int gpu_enter_pointer(
	struct rx_gpu *gpu, uint64_t address, struct gpu_scope *scope, struct rx_gpu_error *error)
{
	int index = -1;

	if (gpu->sym.pointer_attribute(&index, GPU_POINTER_DEVICE, address) != GPU_SUCCESS)
		return gpu_enter_any(gpu, scope, error);
	return enter(gpu, index, scope, error);
}

void gpu_leave(struct rx_gpu *gpu, struct gpu_scope *scope)
{
	if (scope->entered)
		(void)gpu->sym.device_set(scope->before);
	scope->entered = false;
}

int gpu_stream_device(struct rx_gpu *gpu, void *stream, int *device_p)
{
	const struct gpu_sym *sym = &gpu->sym;

	if (stream && sym->stream_device && sym->stream_device(stream, device_p) == GPU_SUCCESS)
		return GPU_SUCCESS;
	return sym->device_get(device_p);
}

int gpu_copy(const struct gpu_sym *sym, void *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
	return sym->copy(to, from, bytes, GPU_MEMCPY_DEFAULT, stream);
}

int gpu_copy_rows(const struct gpu_sym *sym, void *stream, const struct rx_gpu_sample *sample,
	uint64_t base, void *rows, bool to_device)
{
	enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2 };
	uint64_t first = 0;
	uint64_t pitch = 0;
	uint64_t width = 0;
	uint32_t n = rx_gpu_sample_rows(sample, &first, &pitch, &width);

	if (to_device)
		return sym->copy_rows(base + first, pitch, (uintptr_t)rows, width, width, n,
			HOST_TO_DEVICE, stream);
	return sym->copy_rows(
		(uintptr_t)rows, width, base + first, pitch, width, n, DEVICE_TO_HOST, stream);
}

int gpu_wait64(
	const struct gpu_sym *sym, void *stream, uint64_t address, uint64_t value, int compare)
{
	return sym->stream_wait64(stream, address, value, (unsigned int)compare, UINT64_MAX);
}

/* Before 7.1 the function wanted the address of the descriptor, as no other function does. */
int gpu_vmm_import(const struct rx_gpu *gpu, int fd, uint64_t *handle_p)
{
	uintptr_t given = gpu->version >= HIP_VERSION(7, 1) ? (uintptr_t)fd : (uintptr_t)&fd;

	return gpu->sym.vmm_import(handle_p, given, GPU_HANDLE_TYPE_FD);
}

/*
 * The struct of properties has another layout in every second release, and the name of the
 * architecture moves in it. It is the only text there that begins with "gfx".
 */
void gpu_arch(const struct gpu_sym *sym, int device, char *arch, size_t bytes)
{
	char properties[16384] = {0};
	const char *found = NULL;
	int native = sym->properties      ? sym->properties(properties, device)
		     : sym->properties_v5 ? sym->properties_v5(properties, device)
					  : GPU_NOT_SUPPORTED;

	if (native == GPU_SUCCESS)
		found = memmem(properties, sizeof(properties) - sizeof("gfx"), "gfx", 3);
	/* "gfx942:sramecc+:xnack-": the features do not matter for our code. */
	(void)snprintf(
		arch, bytes, "%.*s", found ? (int)strcspn(found, ":") : 0, found ? found : "");
}

/* Costs nothing until it is used. Enabled already is fine. */
void gpu_enable_peers(struct rx_gpu_device *device)
{
	const struct rx_gpu *gpu = device->gpu;

	for (int i = 0; i < (int)gpu->n_devices; i++) {
		int can = 0;

		if (i != (int)device->index &&
			gpu->sym.can_access(&can, (int)device->index, i) == GPU_SUCCESS && can)
			(void)gpu->sym.device_peer(i, 0);
	}
}

/* Uncached is better; fine-grained is what older runtimes know. */
int gpu_alloc_words(const struct gpu_sym *sym, uint64_t *address_p, uint64_t bytes)
{
	int native = sym->alloc_flags ? sym->alloc_flags(address_p, bytes, GPU_ALLOC_UNCACHED)
				      : GPU_NOT_SUPPORTED;

	if (native != GPU_SUCCESS && sym->alloc_flags)
		native = sym->alloc_flags(address_p, bytes, GPU_ALLOC_FINE_GRAINED);
	return native;
}

bool gpu_is_device_type(const struct rx_gpu *gpu, int type)
{
	return type == (gpu->version >= HIP_VERSION(6, 0) ? GPU_MEMORY_TYPE_DEVICE
							  : GPU_MEMORY_TYPE_DEVICE_V5);
}

#endif
