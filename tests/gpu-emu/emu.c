/* SPDX-License-Identifier: MIT */
/*
 * A test double of the GPU runtimes: the functions that kernels/gpu calls, under the symbols of HIP
 * or CUDA, without a GPU. Not a simulator: timing, caches and scopes are those of the host.
 *
 * Eight devices. Device memory is a memfd, so that other processes can map it: a handle names the
 * process and its descriptor, virtual memory is the descriptor. A stream is a thread that works off
 * a queue. Kernels are a few functions below.
 *
 * Faults, a comma-separated list in RX_GPU_EMU:
 *	no-device        no devices
 *	import-fails     other processes' memory cannot be mapped
 *	import-wrong     shows memory of zeros instead
 *	import-previous  shows what was mapped before instead
 *	no-capture       writes of words are done while they should be recorded
 *	no-words         streams cannot write and wait for words
 */
#include "emu.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- state ---- */

struct memory {
	uint64_t base;
	uint64_t bytes;
	uint64_t id;
	int device;
	int fd;
	bool virtual_piece;
	bool mapped_here; /* of another process */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory memories[4096];
static uint64_t next_id = 1;
static struct {
	void *memory;
	size_t bytes;
} registered[256];
static int previous_fd = -1;
static _Thread_local int current_device;

static bool fault(const char *name)
{
	const char *faults = getenv("RX_GPU_EMU");
	size_t length = strlen(name);

	while (faults && *faults) {
		const char *end = strchrnul(faults, ',');

		if ((size_t)(end - faults) == length && strncmp(faults, name, length) == 0)
			return true;
		faults = *end ? end + 1 : end;
	}
	return false;
}

/* Under the lock. */
static struct memory *find(uint64_t address)
{
	for (size_t i = 0; i < RX_ARRAY_SIZE(memories); i++) {
		struct memory *memory = &memories[i];

		if (memory->bytes && address >= memory->base &&
			address - memory->base < memory->bytes)
			return memory;
	}
	return NULL;
}

static bool is_registered(uint64_t address)
{
	for (size_t i = 0; i < RX_ARRAY_SIZE(registered); i++) {
		if (registered[i].memory && address >= (uintptr_t)registered[i].memory &&
			address - (uintptr_t)registered[i].memory < registered[i].bytes)
			return true;
	}
	return false;
}

static int add(const struct memory *memory)
{
	for (size_t i = 0; i < RX_ARRAY_SIZE(memories); i++) {
		if (memories[i].bytes)
			continue;
		memories[i] = *memory;
		memories[i].id = next_id++;
		return GPU_SUCCESS;
	}
	return GPU_OUT_OF_MEMORY;
}

/* @address_p: where; *address_p == 0: anywhere. */
static int allocate(uint64_t *address_p, size_t bytes, bool virtual_piece)
{
	size_t whole = rx_align_up(bytes, 4096);
	int fd = memfd_create("rx-gpu-emu", MFD_CLOEXEC);
	void *at = MAP_FAILED;
	int native = GPU_OUT_OF_MEMORY;

	if (fd >= 0 && ftruncate(fd, (off_t)whole) == 0)
		at = mmap((void *)(uintptr_t)*address_p, whole, PROT_READ | PROT_WRITE,
			MAP_SHARED | (*address_p ? MAP_FIXED : 0), fd, 0);
	if (at == MAP_FAILED) {
		if (fd >= 0)
			(void)close(fd);
		return native;
	}
	pthread_mutex_lock(&lock);
	native = add(&(struct memory){.base = (uintptr_t)at,
		.bytes = whole,
		.device = current_device,
		.fd = fd,
		.virtual_piece = virtual_piece});
	pthread_mutex_unlock(&lock);
	*address_p = (uintptr_t)at;
	return native;
}

static int release(uint64_t address, bool mapped_here)
{
	int native = GPU_INVALID_VALUE;
	struct memory *memory = NULL;

	pthread_mutex_lock(&lock);
	memory = find(address);
	if (memory && memory->base == address && memory->mapped_here == mapped_here) {
		(void)munmap((void *)(uintptr_t)address, memory->bytes);
		if (memory->fd >= 0)
			(void)close(memory->fd);
		*memory = (struct memory){0};
		native = GPU_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return native;
}

int emu_virtual_alloc(uint64_t *address_p, size_t bytes, uint32_t n_pieces)
{
	void *range = mmap(NULL, bytes * n_pieces, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int native = range == MAP_FAILED ? GPU_OUT_OF_MEMORY : GPU_SUCCESS;

	for (uint32_t i = 0; i < n_pieces && native == GPU_SUCCESS; i++) {
		uint64_t at = (uintptr_t)range + i * bytes;

		native = allocate(&at, bytes, true);
	}
	*address_p = (uintptr_t)range;
	return native;
}

/* ---- devices ---- */

int emu_init(unsigned int flags)
{
	return flags == 0 ? GPU_SUCCESS : GPU_INVALID_VALUE;
}

int emu_version(int *version_p)
{
	*version_p = GPU_PICK(13000, 70200000);
	return GPU_SUCCESS;
}

int emu_device_count(int *n_p)
{
	*n_p = fault("no-device") ? 0 : EMU_N_DEVICES;
	return *n_p ? GPU_SUCCESS : GPU_NO_DEVICE;
}

int emu_device_name(char *name, int len, int dev)
{
	(void)snprintf(name, (size_t)len, "test double %d", dev);
	return GPU_SUCCESS;
}

int emu_device_uuid(uint8_t *uuid, int dev)
{
	memcpy(uuid, "rx-gpu-emu-0000", 16);
	uuid[11] = (uint8_t)('0' + dev);
	return GPU_SUCCESS;
}

int emu_device_pci(char *id, int len, int dev)
{
	(void)snprintf(id, (size_t)len, "0000:%02x:00.0", dev + 1);
	return GPU_SUCCESS;
}

int emu_device_memory(size_t *n_p, int dev)
{
	(void)dev;
	*n_p = (size_t)1 << 30;
	return GPU_SUCCESS;
}

int emu_device_attribute(int *value_p, int attribute, int dev)
{
	(void)dev;
	*value_p = attribute == GPU_ATTR_WARP ? 32 : attribute == GPU_ATTR_UNITS ? 4 : 1;
	if (attribute == GPU_ATTR_STREAM_MEM)
		*value_p = !fault("no-words");
	if (attribute == GPU_ATTR_MAJOR)
		*value_p = 9;
	return GPU_SUCCESS;
}

int emu_can_access(int *can_p, int dev, int peer)
{
	*can_p = dev != peer;
	return GPU_SUCCESS;
}

int emu_peer_attribute(int *value_p, int attribute, int from, int to)
{
	(void)attribute;
	*value_p = from != to;
	return GPU_SUCCESS;
}

int emu_pointer_attribute(void *value_p, int attribute, uint64_t address)
{
	int native = GPU_SUCCESS;
	struct memory *memory = NULL;

	pthread_mutex_lock(&lock);
	memory = find(address);
	if (!memory && !(is_registered(address) && attribute == GPU_POINTER_TYPE))
		native = GPU_INVALID_VALUE;
	else if (attribute == GPU_POINTER_TYPE)
		*(int *)value_p = memory ? GPU_MEMORY_TYPE_DEVICE : 1;
	else if (attribute == GPU_POINTER_ID || attribute == GPU_POINTER_BLOCK_ID)
		*(uint64_t *)value_p = memory->id;
	else if (attribute == GPU_POINTER_DEVICE)
		*(int *)value_p = memory->device;
	else if (attribute == GPU_POINTER_IPC)
		*(int *)value_p = !memory->virtual_piece;
	else if (attribute == GPU_POINTER_MANAGED)
		*(int *)value_p = 0;
	else if (attribute == GPU_POINTER_CONTEXT)
		*(void **)value_p = (void *)(uintptr_t)(memory->device + 1);
	else
		native = GPU_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return native;
}

int emu_address_range(uint64_t *base_p, size_t *bytes_p, uint64_t address)
{
	struct memory *memory = NULL;

	pthread_mutex_lock(&lock);
	memory = find(address);
	if (memory) {
		*base_p = memory->base;
		*bytes_p = memory->bytes;
	}
	pthread_mutex_unlock(&lock);
	return memory ? GPU_SUCCESS : GPU_INVALID_VALUE;
}

int emu_mem_alloc(uint64_t *address_p, size_t bytes)
{
	*address_p = 0;
	return allocate(address_p, bytes, false);
}

int emu_mem_free(uint64_t address)
{
	return release(address, false);
}

int emu_host_register(void *memory, size_t bytes, unsigned int flags)
{
	int native = GPU_OUT_OF_MEMORY;

	(void)flags;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RX_ARRAY_SIZE(registered) && native != GPU_SUCCESS; i++) {
		if (registered[i].memory)
			continue;
		registered[i].memory = memory;
		registered[i].bytes = bytes;
		native = GPU_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return native;
}

int emu_host_address(uint64_t *address_p, void *memory, unsigned int flags)
{
	(void)flags;
	*address_p = (uintptr_t)memory;
	return GPU_SUCCESS;
}

int emu_host_unregister(void *memory)
{
	int native = GPU_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RX_ARRAY_SIZE(registered); i++) {
		if (registered[i].memory == memory) {
			registered[i].memory = NULL;
			native = GPU_SUCCESS;
		}
	}
	pthread_mutex_unlock(&lock);
	return native;
}

/* ---- between processes ---- */

struct handle {
	int32_t pid;
	int32_t fd;
	uint64_t bytes;
	int32_t device;
};

int emu_ipc_get(struct gpu_ipc_handle *handle_p, uint64_t address)
{
	struct memory *memory = NULL;
	struct handle handle = {.pid = getpid()};

	pthread_mutex_lock(&lock);
	memory = find(address);
	if (memory && !memory->virtual_piece) {
		handle.fd = memory->fd;
		handle.bytes = memory->bytes;
		handle.device = memory->device;
		memset(handle_p, 0, sizeof(*handle_p));
		memcpy(handle_p->bytes, &handle, sizeof(handle));
	}
	pthread_mutex_unlock(&lock);
	return memory ? GPU_SUCCESS : GPU_INVALID_VALUE;
}

/* What a faulty runtime would map: the descriptor of something else of that size, or @fd. */
static int mix_up(int fd, uint64_t bytes)
{
	int other = fd;

	if (fault("import-wrong"))
		other = memfd_create("rx-gpu-emu-wrong", MFD_CLOEXEC);
	else if (fault("import-previous") && previous_fd >= 0)
		other = fcntl(previous_fd, F_DUPFD_CLOEXEC, 0);
	if (other != fd) {
		(void)ftruncate(other, (off_t)bytes);
		(void)close(fd);
	}
	if (previous_fd >= 0)
		(void)close(previous_fd);
	previous_fd = fcntl(other, F_DUPFD_CLOEXEC, 0);
	return other;
}

int emu_ipc_open(uint64_t *address_p, struct gpu_ipc_handle given, unsigned int flags)
{
	struct handle handle;
	char path[64];
	int fd = -1;
	void *at = MAP_FAILED;
	int native = GPU_INVALID_VALUE;

	(void)flags;
	memcpy(&handle, given.bytes, sizeof(handle));
	if (fault("import-fails"))
		return GPU_NOT_SUPPORTED;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.pid, handle.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return GPU_INVALID_VALUE;
	fd = mix_up(fd, handle.bytes);
	at = mmap(NULL, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED) {
		pthread_mutex_lock(&lock);
		native = add(&(struct memory){.base = (uintptr_t)at,
			.bytes = handle.bytes,
			.device = handle.device,
			.fd = fd,
			.mapped_here = true});
		pthread_mutex_unlock(&lock);
		*address_p = (uintptr_t)at;
	}
	return native;
}

int emu_ipc_close(uint64_t address)
{
	return release(address, true);
}

/* A handle of virtual memory is a descriptor. */
int emu_vmm_retain(uint64_t *handle_p, uint64_t address)
{
	struct memory *memory = NULL;
	int fd = -1;

	pthread_mutex_lock(&lock);
	memory = find(address);
	if (memory && memory->virtual_piece)
		fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&lock);
	if (fd < 0)
		return GPU_INVALID_VALUE;
	*handle_p = (uint64_t)fd;
	return GPU_SUCCESS;
}

int emu_vmm_export(void *fd_p, uint64_t handle, int type, unsigned long long flags)
{
	int fd = fcntl((int)handle, F_DUPFD_CLOEXEC, 0);

	if (fd < 0 || type != GPU_HANDLE_TYPE_FD || flags != 0)
		return GPU_INVALID_VALUE;
	*(int *)fd_p = fd;
	return GPU_SUCCESS;
}

int emu_vmm_import(uint64_t *handle_p, uintptr_t fd, int type)
{
	int mine = fcntl((int)fd, F_DUPFD_CLOEXEC, 0);
	struct stat st = {0};

	if (mine < 0 || type != GPU_HANDLE_TYPE_FD || fault("import-fails") ||
		fstat(mine, &st) != 0)
		return GPU_INVALID_VALUE;
	*handle_p = (uint64_t)mix_up(mine, (uint64_t)st.st_size);
	return GPU_SUCCESS;
}

int emu_vmm_release(uint64_t handle)
{
	return close((int)handle) == 0 ? GPU_SUCCESS : GPU_INVALID_VALUE;
}

int emu_vmm_reserve(
	uint64_t *address_p, size_t bytes, size_t align, uint64_t hint, unsigned long long flags)
{
	void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)align;
	(void)hint;
	if (at == MAP_FAILED || flags != 0)
		return GPU_OUT_OF_MEMORY;
	*address_p = (uintptr_t)at;
	return GPU_SUCCESS;
}

int emu_vmm_map(
	uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags)
{
	struct stat st = {0};

	if (offset != 0 || flags != 0 || fstat((int)handle, &st) != 0 || bytes > (size_t)st.st_size)
		return GPU_INVALID_VALUE;
	return mmap((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, (int)handle, 0) == MAP_FAILED
		       ? GPU_INVALID_VALUE
		       : GPU_SUCCESS;
}

int emu_vmm_access(uint64_t address, size_t bytes, const struct gpu_access *access, size_t n)
{
	(void)address;
	(void)bytes;
	return n == 1 && access->flags == GPU_ACCESS_READ_WRITE ? GPU_SUCCESS : GPU_INVALID_VALUE;
}

int emu_vmm_unmap(uint64_t address, size_t bytes)
{
	return mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED
		       ? GPU_INVALID_VALUE
		       : GPU_SUCCESS;
}

int emu_vmm_unreserve(uint64_t address, size_t bytes)
{
	return munmap((void *)(uintptr_t)address, bytes) == 0 ? GPU_SUCCESS : GPU_INVALID_VALUE;
}

/* ---- the rest differs ---- */

#if defined(RX_GPU_CUDA)

static _Thread_local void *contexts[16];
static _Thread_local int n_contexts;

static void follow(void)
{
	current_device = n_contexts ? (int)(uintptr_t)contexts[n_contexts - 1] - 1 : 0;
}

int emu_error_name(int code, const char **name_p)
{
	(void)code;
	*name_p = "TEST_DOUBLE";
	return GPU_SUCCESS;
}

int emu_primary_retain(void **context_p, int dev)
{
	*context_p = (void *)(uintptr_t)(dev + 1);
	return GPU_SUCCESS;
}

int emu_primary_release(int dev)
{
	(void)dev;
	return GPU_SUCCESS;
}

int emu_primary_state(int dev, unsigned int *flags_p, int *active_p)
{
	(void)dev;
	*flags_p = 0;
	*active_p = 1;
	return GPU_SUCCESS;
}

int emu_context_push(void *context)
{
	if (!context || n_contexts == (int)RX_ARRAY_SIZE(contexts))
		return GPU_INVALID_VALUE;
	contexts[n_contexts++] = context;
	follow();
	return GPU_SUCCESS;
}

int emu_context_pop(void **context_p)
{
	if (n_contexts == 0)
		return 201;
	*context_p = contexts[--n_contexts];
	follow();
	return GPU_SUCCESS;
}

int emu_context_get(void **context_p)
{
	*context_p = n_contexts ? contexts[n_contexts - 1] : NULL;
	return GPU_SUCCESS;
}

int emu_context_peer(void *context, unsigned int flags)
{
	(void)context;
	return flags ? GPU_INVALID_VALUE : GPU_PEER_ALREADY_ENABLED;
}

#else

EMU_EXPORT const char *hipGetErrorName(int code);
const char *hipGetErrorName(int code)
{
	(void)code;
	return "TEST_DOUBLE";
}

int emu_properties(void *properties, int dev)
{
	(void)dev;
	/* Somewhere, as in the real ones. */
	memcpy((char *)properties + 1160, "gfx942:sramecc+:xnack-", 23);
	return GPU_SUCCESS;
}

int emu_properties_v5(void *properties, int dev)
{
	return emu_properties(properties, dev);
}

int emu_device_set(int dev)
{
	if (dev < 0 || dev >= EMU_N_DEVICES)
		return 101;
	current_device = dev;
	return GPU_SUCCESS;
}

int emu_device_get(int *dev_p)
{
	*dev_p = current_device;
	return GPU_SUCCESS;
}

int emu_device_peer(int peer, unsigned int flags)
{
	return peer == current_device || flags ? GPU_INVALID_VALUE : GPU_PEER_ALREADY_ENABLED;
}

int emu_link_hops(int from, int to, uint32_t *type_p, uint32_t *hops_p)
{
	*type_p = 2;
	*hops_p = from != to;
	return GPU_SUCCESS;
}

int emu_alloc_flags(uint64_t *address_p, size_t bytes, unsigned int flags)
{
	*address_p = 0;
	return flags ? allocate(address_p, bytes, false) : GPU_INVALID_VALUE;
}

#endif
