/* SPDX-License-Identifier: MIT */
/*
 * The process's GPU runtime, and copying with it. The backend's plugin knows how to talk to it;
 * it is loaded only where a runtime is there already.
 */
#include "gpu.h"

#include "err.h"
#include "gpu_runtime.h"
#include "../kernels/device/device_abi.h"
#include "../kernels/backend_load.h"
#include "../proto/rx_proto.h"
#include "../shm/rx_clock.h"

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

/* A device of ours is for one thread at a time: opened and used under its lock. */
struct copier {
	pthread_mutex_t lock;
	struct rx_gpu_device *device; /* opened on first use */
	void *stream;                 /* for copies */
};

static struct {
	pthread_mutex_t lock; /* while it is looked for */
	const struct rx_backend_v1 *ops;
	struct rx_gpu *runtime;
	struct copier copiers[RX_GPU_DEVICES_MAX];
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
	for (size_t i = 0; i < RX_ARRAY_SIZE(gpu.copiers); i++)
		(void)pthread_mutex_init(&gpu.copiers[i].lock, NULL);
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

uint64_t gpu_identify(uint64_t address, uint32_t kind)
{
	return gpu.ops->identify(gpu.runtime, address, kind);
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

/* Takes its lock, which is to be given back whatever is returned. */
static int take_copier(uint32_t device, struct copier **copier_p, struct rx_gpu_error *error)
{
	struct copier *copier = &gpu.copiers[device];
	int r = 0;

	(void)pthread_mutex_lock(&copier->lock);
	if (rx_unlikely(!copier->device))
		r = gpu.ops->device_open(gpu.runtime, device, &copier->device, error);
	if (r == 0 && rx_unlikely(!copier->stream))
		r = gpu.ops->stream_open(copier->device, false, &copier->stream, error);
	*copier_p = copier;
	return r;
}

static void give_back(struct copier *copier)
{
	(void)pthread_mutex_unlock(&copier->lock);
}

/* A stream of ours, so that nothing that the caller's streams do is waited for. */
rcclx_result gpu_sample(const struct rx_gpu_memory *memory, const struct rx_gpu_sample *sample,
	bool idle, void *rows)
{
	struct rx_gpu_error error = {0};
	struct copier *copier = NULL;
	int r = 0;

	if (!idle)
		r = take_copier(memory->device, &copier, &error);
	if (r == 0)
		r = gpu.ops->sample(gpu.runtime, memory->base, sample,
			copier ? copier->stream : NULL, rows, &error);
	if (copier)
		give_back(copier);
	return r ? failed("reading device memory", r, &error) : RCCLX_OK;
}

static int copy_now(
	uint32_t device, uint64_t to, uint64_t from, uint64_t bytes, struct rx_gpu_error *error)
{
	struct copier *copier = NULL;
	int r = take_copier(device, &copier, error);

	if (r == 0)
		r = gpu.ops->copy(copier->device, copier->stream, to, from, bytes, error);
	while (r == 0 &&
		(r = gpu.ops->stream_query(copier->device, copier->stream, error)) == RX_GPU_BUSY) {
		/* Others may launch meanwhile. */
		give_back(copier);
		(void)sched_yield();
		r = take_copier(device, &copier, error);
	}
	give_back(copier);
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
	if (r == 0)
		r = copy_now(memory.device, (uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from,
			bytes, &error);
	return r ? failed("copying device memory", r, &error) : RCCLX_OK;
}

/* ---- kernels of ours, on memory of the daemon's ---- */

bool gpu_current(uint32_t *device_p, uint8_t uuid[16], bool *concurrent_p)
{
	struct rx_gpu_device_info info = {0};

	if (!gpu_is_there() || gpu.ops->stream_device(gpu.runtime, NULL, device_p, NULL) ||
		gpu.ops->device_info(gpu.runtime, *device_p, &info, NULL))
		return false;
	memcpy(uuid, info.uuid, sizeof(info.uuid));
	*concurrent_p = info.caps & RX_GPU_CAP_CONCURRENT;
	return true;
}

uint64_t gpu_ticks(uint32_t device, uint64_t ns)
{
	struct rx_gpu_device_info info = {0};

	if (ns == RX_FOREVER || gpu.ops->device_info(gpu.runtime, device, &info, NULL))
		return 0;
	return rx_max_u64(1, (uint64_t)((double)ns * info.clock_khz / 1e6));
}

/* With the lock held. A mapping that is there already is found again. */
static int map_shared(struct rx_gpu_device *device, const struct rx_gpu_export *shared,
	const uint8_t *rows, uint32_t n_rows, uint64_t *address_p, struct rx_gpu_error *error)
{
	const struct rx_gpu_sample sample = {.bytes = n_rows};
	uint8_t all[RX_GPU_SAMPLE_BYTES] = {0};
	struct rx_gpu_map *map = NULL;
	uint32_t verdict = RX_GPU_OPEN;
	int r = gpu.ops->import(device, 0, shared, (const int[]){-1}, 1, &map, error);

	if (r)
		return r;
	memcpy(all, rows, n_rows);
	r = gpu.ops->prove(
		map, &sample, all, RX_GPU_PROVE_STABLE | RX_GPU_PROVE_NONCE, &verdict, error);
	if (r == 0 && verdict != RX_GPU_PROVEN) {
		r = RX_GPU_E_UNPROVEN;
		(void)snprintf(error->text, sizeof(error->text),
			"the runtime has mapped something else than the daemon's memory");
	}
	if (r == 0)
		r = gpu.ops->map_address(map, 0, shared->memory.bytes, address_p, error);
	if (r)
		gpu.ops->map_release(map);
	return r;
}

rcclx_result gpu_map_shared(uint32_t device, const struct rx_gpu_export *shared,
	const uint8_t *rows, uint32_t n_rows, uint64_t *address_p)
{
	struct rx_gpu_error error = {0};
	struct copier *copier = NULL;
	int r = 0;

	r = take_copier(device, &copier, &error);
	if (r == 0)
		r = map_shared(copier->device, shared, rows, n_rows, address_p, &error);
	give_back(copier);
	return r ? failed("mapping the daemon's device memory", r, &error) : RCCLX_OK;
}

rcclx_result gpu_find_kernel(uint32_t device, const char *name)
{
	const struct rx_gpu_launch launch = {.kernel = name};
	struct rx_gpu_error error = {0};
	struct copier *copier = NULL;
	int r = take_copier(device, &copier, &error);

	if (r == 0)
		r = gpu.ops->launch(copier->device, NULL, &launch, &error);
	give_back(copier);
	return r ? failed("finding a kernel", r, &error) : RCCLX_OK;
}

static int launch_in(const struct gpu_stream *stream, const struct rx_gpu_launch *launch,
	struct rx_gpu_error *error)
{
	struct copier *copier = NULL;
	int r = take_copier(stream->device, &copier, error);

	if (r == 0)
		r = gpu.ops->launch(copier->device, stream->native, launch, error);
	give_back(copier);
	return r;
}

rcclx_result gpu_launch(const struct gpu_stream *stream, const struct rx_gpu_launch *launch)
{
	struct rx_gpu_error error = {0};
	int r = launch_in(stream, launch, &error);

	return r ? failed("launching a kernel", r, &error) : RCCLX_OK;
}

/* ---- memory and streams, for calls in the order of a stream ---- */

rcclx_result gpu_reach_host(void *memory, uint64_t bytes, uint64_t *address_p)
{
	struct rx_gpu_error error = {0};
	int r = gpu.ops->host_register(gpu.runtime, memory, bytes, address_p, &error);

	return r ? failed("letting devices reach host memory", r, &error) : RCCLX_OK;
}

rcclx_result gpu_alloc_marked(uint32_t device, uint64_t bytes, struct rx_gpu_sample *sample,
	void *rows, uint64_t *address_p)
{
	struct rx_gpu_error error = {0};
	struct copier *copier = NULL;
	uint64_t address = 0;
	int r = 0;

	*sample = (struct rx_gpu_sample){.bytes = bytes, .seed = rx_now_ns()};
	r = take_copier(device, &copier, &error);
	if (r == 0)
		r = gpu.ops->alloc(copier->device, bytes, &address, &error);
	if (r == 0)
		r = gpu.ops->sample_fill(gpu.runtime, address, sample, &error);
	if (r == 0)
		r = gpu.ops->sample(gpu.runtime, address, sample, copier->stream, rows, &error);
	if (r && address)
		gpu.ops->free(copier->device, address);
	give_back(copier);
	if (r)
		return failed("making memory for calls in a stream", r, &error);
	*address_p = address;
	return RCCLX_OK;
}

void gpu_free(uint32_t device, uint64_t address)
{
	struct copier *copier = NULL;

	if (take_copier(device, &copier, NULL) == 0)
		gpu.ops->free(copier->device, address);
	give_back(copier);
}

rcclx_result gpu_copy_in_stream(
	const struct gpu_stream *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
	struct rx_gpu_error error = {0};
	struct copier *copier = NULL;
	int r = 0;

	if (bytes == 0)
		return RCCLX_OK;
	r = take_copier(stream->device, &copier, &error);
	if (r == 0)
		r = gpu.ops->copy(copier->device, stream->native, to, from, bytes, &error);
	give_back(copier);
	return r ? failed("copying in the stream", r, &error) : RCCLX_OK;
}

rcclx_result gpu_stream_look(void *stream, struct gpu_stream *stream_p)
{
	struct rx_gpu_error error = {0};
	uint32_t capture = RX_GPU_CAPTURE_NONE;
	uint64_t id = 0;
	uint32_t device = 0;
	int r = gpu.ops->capture(gpu.runtime, stream, &capture, &id, &error);

	if (r == 0)
		r = gpu.ops->stream_device(gpu.runtime, stream, &device, &error);
	if (r)
		return failed("asking for the state of the stream", r, &error);
	if (capture == RX_GPU_CAPTURE_BROKEN)
		return err_set(RCCLX_ERR_INVALID,
			"the capture of this stream has been invalidated; end it");
	*stream_p = (struct gpu_stream){
		.native = stream,
		.device = device,
		.captured = capture == RX_GPU_CAPTURE_ACTIVE,
		.capture = id,
	};
	return RCCLX_OK;
}

void gpu_capture_mode(int *mode)
{
	if (gpu.ops->capture_mode)
		gpu.ops->capture_mode(gpu.runtime, mode);
}

/* Capturing has to be tried out once, which opening a device does. */
static int know_device(uint32_t device, struct rx_gpu_error *error)
{
	struct copier *copier = NULL;
	int r = take_copier(device, &copier, error);

	give_back(copier);
	return r;
}

/* For graphs of runtimes that do not record what streams do with words. */
static int launch_words(const struct gpu_stream *stream, const struct rx_dev_words *words,
	struct rx_gpu_error *error)
{
	const struct rx_gpu_launch launch = {
		.kernel = RX_DEV_WORDS_NAME,
		.args = words,
		.args_bytes = sizeof(*words),
		.n_blocks = 1,
		.n_threads = 1,
	};

	return launch_in(stream, &launch, error);
}

static bool needs_kernel(const struct gpu_stream *stream)
{
	struct rx_gpu_device_info info = {0};

	return stream->captured &&
	       (gpu.ops->device_info(gpu.runtime, stream->device, &info, NULL) != 0 ||
		       !(info.caps & RX_GPU_CAP_CAPTURE_MEM));
}

rcclx_result gpu_stream_begin(const struct gpu_stream *stream, uint64_t word, uint64_t value)
{
	struct rx_gpu_error error = {0};
	int r = know_device(stream->device, &error);

	if (r == 0 && needs_kernel(stream)) {
		const struct rx_dev_words words = {
			.first =
				(uint64_t *)(uintptr_t)word, /* NOLINT(performance-no-int-to-ptr) */
			.first_value = value,
		};

		r = launch_words(stream, &words, &error);
	} else if (r == 0) {
		r = gpu.ops->stream_write(gpu.runtime, stream->native, word, value, &error);
	}
	return r ? failed("a call in the order of a stream", r, &error) : RCCLX_OK;
}

static int wait_and_reset(
	const struct gpu_stream *stream, uint64_t word, uint64_t value, struct rx_gpu_error *error)
{
	int r = gpu.ops->stream_wait(
		gpu.runtime, stream->native, word, value, RX_GPU_WAIT_EQ, error);

	return r ? r : gpu.ops->stream_write(gpu.runtime, stream->native, word, 0, error);
}

rcclx_result gpu_stream_end(const struct gpu_stream *stream, uint64_t word, uint64_t value)
{
	struct rx_gpu_error error = {0};
	int r = know_device(stream->device, &error);

	if (r == 0 && needs_kernel(stream)) {
		const struct rx_dev_words words = {
			/* NOLINTBEGIN(performance-no-int-to-ptr) */
			.wait = (const uint64_t *)(uintptr_t)word,
			.wait_value = value,
			.last = (uint64_t *)(uintptr_t)word,
			/* NOLINTEND(performance-no-int-to-ptr) */
		};

		r = launch_words(stream, &words, &error);
	} else if (r == 0 && stream->captured) {
		r = wait_and_reset(stream, word, value, &error);
	} else if (r == 0) {
		r = gpu.ops->stream_wait(
			gpu.runtime, stream->native, word, value, RX_GPU_WAIT_GEQ, &error);
	}
	return r ? failed("a call in the order of a stream", r, &error) : RCCLX_OK;
}
