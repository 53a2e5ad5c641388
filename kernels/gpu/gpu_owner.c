/* SPDX-License-Identifier: MIT */
/* What a client's process does with its own runtime. */
#include "gpu_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- pointers ---- */

static int attribute(const struct rx_gpu *gpu, int which, uint64_t address, int otherwise)
{
	/* Some attributes are wider than the documentation says. */
	uint64_t value = 0;

	if (gpu->sym.pointer_attribute(&value, which, address) != GPU_SUCCESS)
		return otherwise;
	return (int)value;
}

static bool has_pieces(const struct rx_gpu *gpu, uint64_t address)
{
	uint64_t handle = 0;

	if (!gpu->sym.vmm_retain || !gpu->sym.vmm_release ||
		gpu->sym.vmm_retain(&handle, address) != GPU_SUCCESS)
		return false;
	(void)gpu->sym.vmm_release(handle);
	return true;
}

static uint32_t kind_of(const struct rx_gpu *gpu, uint64_t address)
{
	uint64_t pool = 0;

	if ((attribute(gpu, GPU_POINTER_MANAGED, address, 0) & 1) != 0)
		return RX_GPU_MEM_MANAGED;
#if defined(RX_GPU_CUDA)
	if (attribute(gpu, GPU_POINTER_IPC, address, 0) & 1)
		return RX_GPU_MEM_PLAIN;
#endif
	if (gpu->sym.pointer_attribute(&pool, GPU_POINTER_POOL, address) == GPU_SUCCESS && pool)
		return RX_GPU_MEM_POOL;
	return has_pieces(gpu, address) ? RX_GPU_MEM_VIRTUAL
					: GPU_PICK(RX_GPU_MEM_POOL, RX_GPU_MEM_PLAIN);
}

/* Of virtual memory the physical piece counts: the addresses may have had another one before. */
uint64_t gpu_identify(struct rx_gpu *gpu, uint64_t address, uint32_t kind)
{
	uint64_t id = 0;

#if defined(RX_GPU_CUDA)
	if (kind == RX_GPU_MEM_VIRTUAL &&
		gpu->sym.pointer_attribute(&id, GPU_POINTER_BLOCK_ID, address) == GPU_SUCCESS && id)
		return id;
#else
	(void)kind;
#endif
	id = 0;
	return gpu->sym.pointer_attribute(&id, GPU_POINTER_ID, address) == GPU_SUCCESS ? id : 0;
}

int gpu_describe(struct rx_gpu *gpu, uint64_t address, struct rx_gpu_memory *memory_p,
	struct rx_gpu_error *error)
{
	struct rx_gpu_memory memory = {.kind = RX_GPU_MEM_HOST};
	size_t bytes = 0;
	int device = attribute(gpu, GPU_POINTER_DEVICE, address, -1);
	int result = RX_GPU_OK;

	if (!gpu_is_device_type(gpu, attribute(gpu, GPU_POINTER_TYPE, address, -1))) {
		*memory_p = memory;
		return RX_GPU_OK;
	}
	result = gpu_check(&gpu->sym, gpu->sym.address_range(&memory.base, &bytes, address),
		"asking what a pointer belongs to", error);
	if (result != RX_GPU_OK)
		return result;
	if (device < 0 || (uint32_t)device >= gpu->n_devices)
		return gpu_fail(error, RX_GPU_E_INVALID, 0,
			"%#llx is memory of device %d, which this process does not have",
			(unsigned long long)address, device);
	memory.bytes = bytes;
	memory.device = (uint32_t)device;
	memory.kind = kind_of(gpu, address);
	memory.id = gpu_identify(gpu, address, memory.kind);
	memcpy(memory.uuid, gpu->devices[device].info.uuid, sizeof(memory.uuid));
	*memory_p = memory;
	return RX_GPU_OK;
}

/* ---- exporting ---- */

static int export_plain(
	struct rx_gpu *gpu, struct rx_gpu_export *export, struct rx_gpu_error *error)
{
	struct gpu_ipc_handle handle = {0};
	struct gpu_scope scope = {0};
	int result = gpu_enter_pointer(gpu, export->memory.base, &scope, error);

	if (result != RX_GPU_OK)
		return result;
	result = gpu_check(&gpu->sym, gpu->sym.ipc_get(&handle, export->memory.base),
		"making a handle for an allocation", error);
	gpu_leave(gpu, &scope);
	memcpy(export->handle, handle.bytes, sizeof(export->handle));
	return result;
}

static int export_piece(struct rx_gpu *gpu, const struct rx_gpu_export *export, int *fd_p,
	struct rx_gpu_error *error)
{
	uint64_t handle = 0;
	int fd = -1;
	int result = gpu_check(&gpu->sym, gpu->sym.vmm_retain(&handle, export->memory.base),
		"taking a piece of virtual memory", error);

	if (result != RX_GPU_OK)
		return result;
	if (gpu->sym.vmm_export(&fd, handle, GPU_HANDLE_TYPE_FD, 0) != GPU_SUCCESS)
		result = gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0,
			"this virtual memory was made without leave to share it by file descriptor");
	(void)gpu->sym.vmm_release(handle);
	if (result != RX_GPU_OK)
		return result;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
		(void)close(fd);
		return gpu_fail(error, RX_GPU_E_FAILED, 0,
			"a descriptor that cannot be closed on exec: %s", strerror(errno));
	}
	*fd_p = fd;
	return RX_GPU_OK;
}

static int export_one(struct rx_gpu *gpu, uint64_t address, struct rx_gpu_export *export, int *fd_p,
	struct rx_gpu_error *error)
{
	int result = gpu_describe(gpu, address, &export->memory, error);

	*fd_p = -1;
	if (result != RX_GPU_OK)
		return result;
	switch (export->memory.kind) {
	case RX_GPU_MEM_PLAIN:
		return export_plain(gpu, export, error);
	case RX_GPU_MEM_VIRTUAL:
		if (gpu->sym.vmm_export)
			return export_piece(gpu, export, fd_p, error);
		return gpu_fail(
			error, RX_GPU_E_UNSUPPORTED, 0, "this runtime cannot share virtual memory");
	case RX_GPU_MEM_MANAGED:
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0, "managed memory cannot be shared");
	case RX_GPU_MEM_POOL:
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0,
			"memory of a stream-ordered pool cannot be shared");
	default:
		return gpu_fail(error, RX_GPU_E_INVALID, 0, "%#llx is not device memory",
			(unsigned long long)address);
	}
}

int gpu_export(struct rx_gpu *gpu, uint64_t address, uint64_t bytes, struct rx_gpu_export *exports,
	int *fds, uint32_t max, uint32_t *n_p, struct rx_gpu_error *error)
{
	uint64_t end = 0;
	uint64_t at = address;
	uint32_t n = 0;
	int result = RX_GPU_OK;

	if (bytes == 0 || !rx_add_u64(address, bytes, &end))
		return gpu_fail(error, RX_GPU_E_INVALID, 0, "an empty or endless range");
	while (at < end && result == RX_GPU_OK) {
		struct rx_gpu_export one = {0};
		int fd = -1;

		if (n == max) {
			result = gpu_fail(error, RX_GPU_E_LIMIT, 0,
				"the buffer lies across more than %u pieces of memory", max);
			break;
		}
		result = export_one(gpu, at, &one, &fd, error);
		if (result != RX_GPU_OK)
			break;
		exports[n] = one;
		fds[n++] = fd;
		at = one.memory.base + one.memory.bytes;
		if (at < end && one.memory.kind != RX_GPU_MEM_VIRTUAL)
			result = gpu_fail(error, RX_GPU_E_INVALID, 0,
				"the buffer is longer than the allocation that it begins in");
	}
	if (result == RX_GPU_OK) {
		*n_p = n;
		return RX_GPU_OK;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
		fds[i] = -1;
	}
	return result;
}

/* ---- samples ---- */

/* The range may lie across pieces of virtual memory, as a buffer does. */
static int check_sample(struct rx_gpu *gpu, uint64_t base, const struct rx_gpu_sample *sample,
	struct rx_gpu_error *error)
{
	struct rx_gpu_memory memory = {0};
	uint64_t at = base;
	uint64_t end = 0;
	int result = RX_GPU_OK;

	if (sample->bytes == 0 || !rx_add_u64(base, sample->offset, &end) ||
		!rx_add_u64(end, sample->bytes, &end))
		return gpu_fail(
			error, RX_GPU_E_INVALID, 0, "a sample of nothing, or of everything");
	while (at < end) {
		result = gpu_describe(gpu, at, &memory, error);
		if (result != RX_GPU_OK)
			return result;
		if (memory.kind == RX_GPU_MEM_HOST || memory.base != at ||
			(at != base && memory.kind != RX_GPU_MEM_VIRTUAL))
			return gpu_fail(error, RX_GPU_E_INVALID, 0,
				"a sample of %llu bytes at %llu leaves the allocation at %#llx",
				(unsigned long long)sample->bytes,
				(unsigned long long)sample->offset, (unsigned long long)base);
		at += memory.bytes;
	}
	return RX_GPU_OK;
}

int gpu_sample(struct rx_gpu *gpu, uint64_t base, const struct rx_gpu_sample *sample, void *stream,
	void *rows, struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	bool registered = attribute(gpu, GPU_POINTER_TYPE, (uintptr_t)rows, -1) >= 0;
	int result = check_sample(gpu, base, sample, error);

	if (result != RX_GPU_OK)
		return result;
	result = gpu_enter_pointer(gpu, base, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = gpu_check(&gpu->sym, gpu_copy_rows(&gpu->sym, stream, sample, base, rows, false),
		"reading a sample", error);
	if (result == RX_GPU_OK && !registered)
		result = gpu_check(
			&gpu->sym, gpu->sym.stream_sync(stream), "reading a sample", error);
	gpu_leave(gpu, &scope);
	return result;
}

static int fill_now(struct rx_gpu *gpu, uint64_t base, const struct rx_gpu_sample *sample,
	uint8_t *rows, struct rx_gpu_error *error)
{
	void *stream = NULL;
	int result =
		gpu_check(&gpu->sym, gpu->sym.stream_create(&stream, GPU_STREAM_NON_BLOCKING, 0),
			"making a stream", error);

	if (result != RX_GPU_OK)
		return result;
	result = gpu_check(&gpu->sym, gpu_copy_rows(&gpu->sym, stream, sample, base, rows, true),
		"marking memory", error);
	if (result == RX_GPU_OK)
		result =
			gpu_check(&gpu->sym, gpu->sym.stream_sync(stream), "marking memory", error);
	(void)gpu->sym.stream_destroy(stream);
	return result;
}

int gpu_sample_fill(struct rx_gpu *gpu, uint64_t base, const struct rx_gpu_sample *sample,
	struct rx_gpu_error *error)
{
	uint8_t rows[RX_GPU_SAMPLE_BYTES];
	struct gpu_scope scope = {0};
	int result = check_sample(gpu, base, sample, error);

	if (result != RX_GPU_OK)
		return result;
	for (size_t done = 0; done < sizeof(rows);) {
		ssize_t n = getrandom(rows + done, sizeof(rows) - done, 0);

		if (n < 0 && errno != EINTR)
			return gpu_fail(
				error, RX_GPU_E_FAILED, 0, "no random bytes: %s", strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	result = gpu_enter_pointer(gpu, base, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = fill_now(gpu, base, sample, rows, error);
	gpu_leave(gpu, &scope);
	return result;
}

/* ---- host memory ---- */

int gpu_host_register(struct rx_gpu *gpu, void *memory, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	uint64_t address = 0;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int result = RX_GPU_OK;

	if ((uintptr_t)memory % page != 0 || bytes == 0 || bytes % page != 0)
		return gpu_fail(error, RX_GPU_E_INVALID, 0,
			"host memory is registered in whole pages of %llu bytes",
			(unsigned long long)page);
	result = gpu_enter_any(gpu, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = gpu_check(&gpu->sym,
		gpu->sym.host_register(memory, bytes, GPU_HOST_PORTABLE_MAPPED),
		"registering host memory", error);
	if (result == RX_GPU_OK) {
		result = gpu_check(&gpu->sym, gpu->sym.host_address(&address, memory, 0),
			"asking where devices see host memory", error);
		if (result != RX_GPU_OK)
			(void)gpu->sym.host_unregister(memory);
	}
	gpu_leave(gpu, &scope);
	if (result == RX_GPU_OK)
		*address_p = address;
	return result;
}

int gpu_host_unregister(struct rx_gpu *gpu, void *memory, struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	int result = gpu_enter_any(gpu, &scope, error);

	if (result != RX_GPU_OK)
		return result;
	result = gpu_check(
		&gpu->sym, gpu->sym.host_unregister(memory), "letting go of host memory", error);
	gpu_leave(gpu, &scope);
	return result;
}

/* ---- streams ---- */

int gpu_capture(struct rx_gpu *gpu, void *stream, uint32_t *capture_p, uint64_t *id_p,
	struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	int status = 0;
	unsigned long long id = 0;
	int result = gpu_enter_any(gpu, &scope, error);

	if (result != RX_GPU_OK)
		return result;
	if (gpu->sym.capture_info)
		result = gpu_check(&gpu->sym,
			gpu->sym.capture_info(stream, &status, &id, NULL, NULL, NULL),
			"asking whether a stream is captured", error);
	else if (gpu->sym.stream_capturing)
		result = gpu_check(&gpu->sym, gpu->sym.stream_capturing(stream, &status),
			"asking whether a stream is captured", error);
	gpu_leave(gpu, &scope);
	if (result != RX_GPU_OK)
		return result;
	*capture_p = status == 0   ? RX_GPU_CAPTURE_NONE
		     : status == 1 ? RX_GPU_CAPTURE_ACTIVE
				   : RX_GPU_CAPTURE_BROKEN;
	*id_p = id;
	return RX_GPU_OK;
}

int gpu_device_of_stream(
	struct rx_gpu *gpu, void *stream, uint32_t *device_p, struct rx_gpu_error *error)
{
	int device = -1;
	int result = gpu_check(&gpu->sym, gpu_stream_device(gpu, stream, &device),
		"asking for a stream's device", error);

	if (result != RX_GPU_OK)
		return result;
	if (device < 0 || (uint32_t)device >= gpu->n_devices)
		return gpu_fail(error, RX_GPU_E_INVALID, 0,
			"a stream of device %d, which this process does not have", device);
	*device_p = (uint32_t)device;
	return RX_GPU_OK;
}

void gpu_capture_mode(struct rx_gpu *gpu, int *mode)
{
	if (gpu->sym.capture_mode)
		(void)gpu->sym.capture_mode(mode);
}

/* The recorded operation must be one that graphs know: some runtimes do it at once instead. */
static int check_stream(
	struct rx_gpu *gpu, void *stream, uint64_t address, struct rx_gpu_error *error)
{
	uint32_t capture = RX_GPU_CAPTURE_NONE;
	uint64_t id = 0;
	bool records = false;
	int result = RX_GPU_OK;

	if (!gpu->sym.stream_write64 || !gpu->sym.stream_wait64)
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0,
			"this runtime's streams do not write and wait for words");
	if (address == 0 || address % 8 != 0)
		return gpu_fail(error, RX_GPU_E_INVALID, 0,
			"%#llx is not the address of a 64-bit word", (unsigned long long)address);
	result = gpu_capture(gpu, stream, &capture, &id, error);
	if (result != RX_GPU_OK || capture == RX_GPU_CAPTURE_NONE)
		return result;
	for (uint32_t i = 0; i < gpu->n_devices; i++)
		records |= atomic_load_explicit(&gpu->devices[i].caps, memory_order_relaxed) &
			   RX_GPU_CAP_CAPTURE_MEM;
	if (!records)
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0,
			"the stream is captured, and this runtime does not record writes of words");
	return RX_GPU_OK;
}

int gpu_stream_write(struct rx_gpu *gpu, void *stream, uint64_t address, uint64_t value,
	struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	int result = check_stream(gpu, stream, address, error);

	if (result == RX_GPU_OK)
		result = gpu_enter_any(gpu, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = gpu_check(&gpu->sym, gpu->sym.stream_write64(stream, address, value, 0),
		"letting a stream write a word", error);
	gpu_leave(gpu, &scope);
	return result;
}

int gpu_stream_wait(struct rx_gpu *gpu, void *stream, uint64_t address, uint64_t value,
	uint32_t wait, struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	int compare = wait == RX_GPU_WAIT_EQ ? GPU_WAIT_EQ : GPU_WAIT_GEQ;
	int result = check_stream(gpu, stream, address, error);

	if (result == RX_GPU_OK)
		result = gpu_enter_any(gpu, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = gpu_check(&gpu->sym, gpu_wait64(&gpu->sym, stream, address, value, compare),
		"letting a stream wait for a word", error);
	gpu_leave(gpu, &scope);
	return result;
}
