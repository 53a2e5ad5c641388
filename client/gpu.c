/* SPDX-License-Identifier: MIT */
/*
 * The process's GPU runtime, and copying with it. The backend's plugin knows how to talk to it;
 * it is loaded only where a runtime is there already.
 */
#include "gpu.h"

#include "err.h"
#include "gpu_runtime.h"
#include "../kernels/backend_load.h"
#include "../proto/rx_proto.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Atomic uint32_t gpu_found;

/* What programs have loaded that use GPUs. */
static const struct marker {
	const char *backend;
	const char *symbol;
	const char *libraries[4];
} markers[] = {
	{"hip", "hipInit",
		{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}},
	{"cuda", "cuInit", {"libcuda.so.1", "libcuda.so"}},
};

static struct {
	pthread_mutex_t lock;
	const struct rx_backend_v1 *ops;
	struct rx_gpu *runtime;
	/* For copies: opened on first use, under the lock. */
	struct copier {
		struct rx_gpu_device *device;
		void *stream;
	} copiers[RX_GPU_DEVICES_MAX];
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- finding it ---- */

static bool is_loaded(const struct marker *marker)
{
	if (dlsym(RTLD_DEFAULT, marker->symbol))
		return true;
	for (size_t i = 0; i < RX_ARRAY_SIZE(marker->libraries) && marker->libraries[i]; i++) {
		void *library = dlopen(marker->libraries[i], RTLD_NOW | RTLD_NOLOAD);

		if (!library)
			continue;
		(void)dlclose(library);
		return true;
	}
	return false;
}

static bool try_backend(const char *name)
{
	const char *dir = secure_getenv("RCCLX_BACKEND_DIR");
	const struct rx_gpu_config config = {
		.size = sizeof(config),
		.flags = RX_GPU_LOADED_ONLY,
		.code_file = secure_getenv("RCCLX_GPU_CODE"),
	};
	const struct rx_backend_v1 *ops = NULL;
	char why[RX_BACKEND_WHY];

	if (rx_backend_load(dir && dir[0] ? dir : PKGLIBDIR, name, &ops, why) ||
		ops->open(&config, &gpu.runtime, NULL))
		return false;
	gpu.ops = ops;
	atomic_store_explicit(&gpu_found, 1, memory_order_release);
	return true;
}

void gpu_look(void)
{
	const char *wanted = secure_getenv("RCCLX_GPU_BACKEND");

	if (gpu_is_there() || (wanted && strcmp(wanted, "none") == 0))
		return;
	(void)pthread_mutex_lock(&gpu.lock);
	if (!gpu.ops && wanted && wanted[0] && strcmp(wanted, "auto") != 0) {
		if (rx_backend_name_ok(wanted))
			(void)try_backend(wanted);
	} else {
		for (size_t i = 0; i < RX_ARRAY_SIZE(markers) && !gpu.ops; i++)
			if (is_loaded(&markers[i]))
				(void)try_backend(markers[i].backend);
	}
	(void)pthread_mutex_unlock(&gpu.lock);
}

/* ---- using it ---- */

static rcclx_result failed(const char *what, int result, const struct rx_gpu_error *error)
{
	return err_set(result == RX_GPU_E_MEMORY ? RCCLX_ERR_NO_MEMORY : RCCLX_ERR_SYSTEM, "%s: %s",
		what, error->text[0] ? error->text : "the GPU runtime refused");
}

int gpu_describe(const void *address, struct rx_gpu_memory *memory_p)
{
	/* Acquire: pairs with the store in try_backend(). */
	if (atomic_load_explicit(&gpu_found, memory_order_acquire) == 0)
		return RX_GPU_E_ABSENT;
	return gpu.ops->describe(gpu.runtime, (uint64_t)(uintptr_t)address, memory_p, NULL);
}

bool gpu_is_device(const void *address)
{
	struct rx_gpu_memory memory = {0};

	/* Managed memory is the host's, too. */
	return address && gpu_describe(address, &memory) == RX_GPU_OK &&
	       memory.kind != RX_GPU_MEM_HOST && memory.kind != RX_GPU_MEM_MANAGED;
}

rcclx_result gpu_export(const void *address, uint64_t bytes, struct rx_gpu_export *exports,
	int *fds, uint32_t max, uint32_t *n_p)
{
	struct rx_gpu_error error = {0};
	int r = gpu.ops->export_memory(
		gpu.runtime, (uint64_t)(uintptr_t)address, bytes, exports, fds, max, n_p, &error);

	if (r == RX_GPU_E_UNSUPPORTED || r == RX_GPU_E_LIMIT) {
		*n_p = 0;
		return RCCLX_OK;
	}
	return r ? failed("exporting device memory", r, &error) : RCCLX_OK;
}

rcclx_result gpu_sample(uint64_t base, const struct rx_gpu_sample *sample, void *rows)
{
	struct rx_gpu_error error = {0};
	int r = gpu.ops->sample(gpu.runtime, base, sample, NULL, rows, &error);

	return r ? failed("reading device memory", r, &error) : RCCLX_OK;
}

/* With the lock held. */
static int open_copier(uint32_t device, struct copier **copier_p, struct rx_gpu_error *error)
{
	struct copier *copier = &gpu.copiers[device];
	int r = 0;

	if (!copier->device)
		r = gpu.ops->device_open(gpu.runtime, device, &copier->device, error);
	if (r == 0 && !copier->stream)
		r = gpu.ops->stream_open(copier->device, false, &copier->stream, error);
	*copier_p = copier;
	return r;
}

static int copy_now(
	uint32_t device, uint64_t to, uint64_t from, uint64_t bytes, struct rx_gpu_error *error)
{
	struct copier *copier = NULL;
	int r = open_copier(device, &copier, error);

	if (r == 0)
		r = gpu.ops->copy(copier->device, copier->stream, to, from, bytes, error);
	if (r)
		return r;
	while ((r = gpu.ops->stream_query(copier->device, copier->stream, error)) == RX_GPU_BUSY)
		(void)sched_yield();
	return r;
}

rcclx_result gpu_copy(void *to, const void *from, uint64_t bytes)
{
	struct rx_gpu_error error = {0};
	struct rx_gpu_memory memory = {0};
	int r = 0;

	if (bytes == 0)
		return RCCLX_OK;
	r = gpu_describe(from, &memory);
	if (r == 0 && memory.kind == RX_GPU_MEM_HOST)
		r = gpu_describe(to, &memory);
	if (r == 0 && memory.kind == RX_GPU_MEM_HOST) {
		memcpy(to, from, bytes);
		return RCCLX_OK;
	}
	(void)pthread_mutex_lock(&gpu.lock);
	if (r == 0)
		r = copy_now(memory.device, (uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from,
			bytes, &error);
	(void)pthread_mutex_unlock(&gpu.lock);
	return r ? failed("copying device memory", r, &error) : RCCLX_OK;
}
