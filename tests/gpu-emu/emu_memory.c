/* SPDX-License-Identifier: MIT */
/* The test double's memory: allocations, what pointers belong to, sharing between processes. */
#include "emu.h"
#include "emu_user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE        4096u
#define HOST_BIT    (UINT64_C(1) << 62) /* in addresses of registered host memory */
#define ALL_DEVICES UINT32_MAX

/* Twice as many addresses: those that devices use, which are empty, and those of the memory. */
struct range {
	uint64_t base;
	uint64_t bytes;
};

struct memory {
	uint64_t base;
	uint64_t bytes;
	uint64_t id;
	uint8_t *alias;
	int device;
	int fd;
	uint32_t reached_by; /* bit d: device d; virtual memory and that of others */
	bool virtual_piece;
	bool mapped_here; /* of another process, by handle */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range ranges[4096];
static struct memory memories[4096];
static uint64_t next_id = 1;
static struct {
	void *memory;
	size_t bytes;
} registered[1024];
static int previous_fd = -1;

/* ---- tables: under the lock ---- */

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

static struct memory *add(const struct memory *memory)
{
	for (size_t i = 0; i < RX_ARRAY_SIZE(memories); i++) {
		if (memories[i].bytes)
			continue;
		memories[i] = *memory;
		memories[i].id = next_id++;
		return &memories[i];
	}
	return NULL;
}

/* Host memory, as the host or as devices call it, is @bytes of it registered? */
static uint8_t *find_registered(uint64_t address, uint64_t bytes)
{
	uint64_t host = address & ~HOST_BIT;

	for (size_t i = 0; i < RX_ARRAY_SIZE(registered); i++) {
		uint64_t base = (uintptr_t)registered[i].memory;

		if (base && host >= base && rx_range_ok(host - base, bytes, registered[i].bytes))
			return (uint8_t *)(uintptr_t)host;
	}
	return NULL;
}

static bool may_reach(const struct memory *memory, int device)
{
	return memory->reached_by >> device & 1 ||
	       (memory->device >= 0 && emu_reaches(device, memory->device));
}

/* Neighbours in virtual memory are neighbours among the aliases. */
static uint8_t *find_alias(uint64_t address, uint64_t bytes, int device)
{
	struct memory *memory = find(address);
	uint8_t *alias = memory ? memory->alias + (address - memory->base) : NULL;
	uint64_t left = bytes;

	while (memory && may_reach(memory, device)) {
		uint64_t here = memory->base + memory->bytes - address;

		if (left <= here)
			return alias;
		left -= here;
		address += here;
		memory = memory->virtual_piece ? find(address) : NULL;
	}
	return NULL;
}

void *emu_reach(uint64_t address, uint64_t bytes, int device)
{
	uint8_t *at = NULL;

	pthread_mutex_lock(&lock);
	at = address & HOST_BIT ? find_registered(address, bytes)
				: find_alias(address, bytes, device);
	pthread_mutex_unlock(&lock);
	return at;
}

static bool is_in_range(uint64_t address)
{
	bool is = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RX_ARRAY_SIZE(ranges) && !is; i++)
		is = ranges[i].bytes && address >= ranges[i].base &&
		     address - ranges[i].base < ranges[i].bytes;
	pthread_mutex_unlock(&lock);
	return is;
}

void *emu_reach_any(uint64_t address, uint64_t bytes, int device)
{
	return address & HOST_BIT || is_in_range(address) ? emu_reach(address, bytes, device)
							  : (void *)(uintptr_t)address;
}

bool emu_is_pageable(uint64_t address)
{
	bool is = false;

	if (address & HOST_BIT || is_in_range(address))
		return false;
	pthread_mutex_lock(&lock);
	is = !find_registered(address, 1);
	pthread_mutex_unlock(&lock);
	return is;
}

/* ---- addresses ---- */

static uint64_t reserve(uint64_t bytes)
{
	uint64_t stride = bytes + PAGE;
	void *at = mmap(NULL, 2 * stride, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t base = 0;

	if (at == MAP_FAILED)
		return 0;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RX_ARRAY_SIZE(ranges) && !base; i++) {
		if (ranges[i].bytes)
			continue;
		base = (uintptr_t)at;
		ranges[i] = (struct range){.base = base, .bytes = bytes};
	}
	pthread_mutex_unlock(&lock);
	if (!base)
		(void)munmap(at, 2 * stride);
	return base;
}

static int unreserve(uint64_t base)
{
	int native = GPU_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RX_ARRAY_SIZE(ranges); i++) {
		if (!ranges[i].bytes || ranges[i].base != base)
			continue;
		(void)munmap((void *)(uintptr_t)base, 2 * (ranges[i].bytes + PAGE));
		ranges[i] = (struct range){0};
		native = GPU_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return native;
}

static uint8_t *alias_of(uint64_t address, uint64_t bytes)
{
	uint8_t *alias = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RX_ARRAY_SIZE(ranges); i++) {
		const struct range *range = &ranges[i];

		if (range->bytes && address >= range->base &&
			rx_range_ok(address - range->base, bytes, range->bytes))
			alias = (uint8_t *)(uintptr_t)(address + range->bytes + PAGE);
	}
	pthread_mutex_unlock(&lock);
	return alias;
}

/* Shows @fd at @given->base, and takes @fd. */
static int map(const struct memory *given)
{
	struct memory memory = *given;
	bool added = false;

	memory.alias = alias_of(memory.base, memory.bytes);
	if (memory.alias && mmap(memory.alias, memory.bytes, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_FIXED, memory.fd, 0) != MAP_FAILED) {
		pthread_mutex_lock(&lock);
		added = add(&memory);
		pthread_mutex_unlock(&lock);
	}
	if (!added)
		(void)close(memory.fd);
	return added ? GPU_SUCCESS : GPU_INVALID_VALUE;
}

static void unmap(struct memory *memory)
{
	(void)mmap(memory->alias, memory->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		-1, 0);
	(void)close(memory->fd);
	*memory = (struct memory){0};
}

/* ---- allocations ---- */

static int make_fd(uint64_t bytes)
{
	int fd = memfd_create("rx-gpu-emu", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

static int show(uint64_t *address_p, const struct memory *given)
{
	struct memory memory = *given;
	int native = GPU_OUT_OF_MEMORY;

	memory.base = memory.fd >= 0 ? reserve(memory.bytes) : 0;
	if (memory.base)
		native = map(&memory);
	else if (memory.fd >= 0)
		(void)close(memory.fd);
	if (native == GPU_SUCCESS)
		*address_p = memory.base;
	return native;
}

static int allocate(uint64_t *address_p, size_t bytes)
{
	uint64_t whole = rx_align_up(bytes, PAGE);
	int native = emu_forbid();

	if (native != GPU_SUCCESS || emu_lost(emu_current()))
		return native ? native : emu_lost(emu_current());
	return show(address_p, &(struct memory){.bytes = whole,
				       .device = emu_current(),
				       .fd = bytes ? make_fd(whole) : -1});
}

int emu_mem_alloc(uint64_t *address_p, size_t bytes)
{
	return allocate(address_p, bytes);
}

#if defined(RX_GPU_HIP)
int emu_alloc_flags(uint64_t *address_p, size_t bytes, unsigned int flags)
{
	return flags ? allocate(address_p, bytes) : GPU_INVALID_VALUE;
}
#endif

static int device_of(uint64_t address, bool mapped_here)
{
	const struct memory *memory = NULL;
	int device = -1;

	pthread_mutex_lock(&lock);
	memory = find(address);
	if (memory && memory->base == address && memory->mapped_here == mapped_here &&
		!memory->virtual_piece)
		device = memory->device;
	pthread_mutex_unlock(&lock);
	return device;
}

/* As the real ones, waits for everything that the device still has to do. */
static int release(uint64_t address, bool mapped_here)
{
	struct memory *memory = NULL;
	int device = device_of(address, mapped_here);
	int native = emu_forbid();

	if (device < 0 || native != GPU_SUCCESS)
		return native ? native : GPU_INVALID_VALUE;
	emu_drain(mapped_here ? emu_current() : device);
	pthread_mutex_lock(&lock);
	memory = find(address);
	if (memory) {
		if (!mapped_here)
			memset(memory->alias, EMU_POISON, memory->bytes);
		unmap(memory);
	}
	pthread_mutex_unlock(&lock);
	return memory ? unreserve(address) : GPU_INVALID_VALUE;
}

int emu_mem_free(uint64_t address)
{
	return release(address, false);
}

/* What an owner's allocator does with cuMemCreate() and hipMemCreate(). */
uint64_t emu_alloc_pieces(int device, uint64_t piece_bytes, uint32_t n)
{
	uint64_t base = reserve(piece_bytes * n);
	int native = base ? GPU_SUCCESS : GPU_OUT_OF_MEMORY;

	for (uint32_t i = 0; i < n && native == GPU_SUCCESS; i++)
		native = map(&(struct memory){.base = base + i * piece_bytes,
			.bytes = piece_bytes,
			.device = device,
			.fd = make_fd(piece_bytes),
			.reached_by = ALL_DEVICES,
			.virtual_piece = true});
	return native == GPU_SUCCESS ? base : 0;
}

int emu_free_pieces(uint64_t address, uint64_t piece_bytes, uint32_t n)
{
	int native = emu_vmm_unmap(address, piece_bytes * n);

	return native == GPU_SUCCESS ? emu_vmm_unreserve(address, piece_bytes * n) : native;
}

/* ---- what pointers belong to ---- */

int emu_pointer_attribute(void *value_p, int attribute, uint64_t address)
{
	int native = GPU_SUCCESS;
	struct memory *memory = NULL;

	pthread_mutex_lock(&lock);
	memory = find(address);
	if (!memory && !(find_registered(address, 1) && attribute == GPU_POINTER_TYPE))
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

int emu_host_register(void *memory, size_t bytes, unsigned int flags)
{
	int native = emu_forbid();
	bool done = false;

	(void)flags;
	if (native != GPU_SUCCESS)
		return native;
	pthread_mutex_lock(&lock);
	if (find_registered((uintptr_t)memory, 1))
		native = GPU_HOST_ALREADY_REGISTERED;
	for (size_t i = 0; i < RX_ARRAY_SIZE(registered) && native == GPU_SUCCESS && !done; i++) {
		if (registered[i].memory)
			continue;
		registered[i].memory = memory;
		registered[i].bytes = bytes;
		done = true;
	}
	pthread_mutex_unlock(&lock);
	return native ? native : done ? GPU_SUCCESS : GPU_OUT_OF_MEMORY;
}

int emu_host_address(uint64_t *address_p, void *memory, unsigned int flags)
{
	bool found = false;

	(void)flags;
	pthread_mutex_lock(&lock);
	found = find_registered((uintptr_t)memory, 1);
	pthread_mutex_unlock(&lock);
	if (found)
		*address_p = (uintptr_t)memory | HOST_BIT;
	return found ? GPU_SUCCESS : GPU_INVALID_VALUE;
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
	const struct memory *memory = NULL;
	struct handle handle = {.pid = getpid()};
	bool shared = false;

	pthread_mutex_lock(&lock);
	memory = find(address);
	if (memory && !memory->virtual_piece && !memory->mapped_here) {
		handle.fd = memory->fd;
		handle.bytes = memory->bytes;
		handle.device = memory->device;
		memset(handle_p, 0, sizeof(*handle_p));
		memcpy(handle_p->bytes, &handle, sizeof(handle));
		shared = true;
	}
	pthread_mutex_unlock(&lock);
	return shared ? GPU_SUCCESS : GPU_INVALID_VALUE;
}

/* What a faulty runtime would map: the descriptor of something else of that size, or @fd. */
static int mix_up(int fd, uint64_t bytes)
{
	int other = fd;

	pthread_mutex_lock(&lock);
	if (emu_fault("import-wrong", emu_current()))
		other = memfd_create("rx-gpu-emu-wrong", MFD_CLOEXEC);
	else if (emu_fault("import-previous", emu_current()) && previous_fd >= 0)
		other = fcntl(previous_fd, F_DUPFD_CLOEXEC, 0);
	if (other != fd) {
		(void)ftruncate(other, (off_t)bytes);
		(void)close(fd);
	}
	if (previous_fd >= 0)
		(void)close(previous_fd);
	previous_fd = fcntl(other, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&lock);
	return other;
}

int emu_ipc_open(uint64_t *address_p, struct gpu_ipc_handle given, unsigned int flags)
{
	struct handle handle;
	char path[64];
	struct stat st = {0};
	int fd = -1;

	memcpy(&handle, given.bytes, sizeof(handle));
	if (emu_fault("import-fails", emu_current()))
		return GPU_NOT_SUPPORTED;
	/*
	 * The process that made it has no use for the handle, says the real ones' manual. There is
	 * one flag, 1 in both headers, and HIP refuses to go without it.
	 */
	if (flags != 1 || handle.pid == getpid() || handle.device < 0 ||
		handle.device >= EMU_N_DEVICES || !emu_can_reach(emu_current(), handle.device))
		return GPU_INVALID_VALUE;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.pid, handle.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) != 0 || (uint64_t)st.st_size != handle.bytes)) {
		(void)close(fd);
		fd = -1;
	}
	if (fd < 0)
		return GPU_INVALID_VALUE;
	return show(address_p, &(struct memory){.bytes = handle.bytes,
				       .device = handle.device,
				       .fd = mix_up(fd, handle.bytes),
				       .reached_by = 1u << emu_current(),
				       .mapped_here = true});
}

int emu_ipc_close(uint64_t address)
{
	return release(address, true);
}

/* A handle of virtual memory is a descriptor. */
int emu_vmm_retain(uint64_t *handle_p, uint64_t address)
{
	const struct memory *memory = NULL;
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

	if (mine < 0 || type != GPU_HANDLE_TYPE_FD || emu_fault("import-fails", emu_current()) ||
		fstat(mine, &st) != 0) {
		if (mine >= 0)
			(void)close(mine);
		return GPU_INVALID_VALUE;
	}
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
	uint64_t at = flags == 0 && bytes % PAGE == 0 ? reserve(bytes) : 0;

	(void)align;
	(void)hint;
	if (!at)
		return GPU_OUT_OF_MEMORY;
	*address_p = at;
	return GPU_SUCCESS;
}

int emu_vmm_map(
	uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags)
{
	struct stat st = {0};
	int fd = fcntl((int)handle, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return GPU_INVALID_VALUE;
	if (offset != 0 || flags != 0 || fstat(fd, &st) != 0 || bytes > (size_t)st.st_size) {
		(void)close(fd);
		return GPU_INVALID_VALUE;
	}
	return map(&(struct memory){.base = address,
		.bytes = bytes,
		.device = -1, /* whoever is given access */
		.fd = fd,
		.virtual_piece = true});
}

/* Whole pieces only. */
static int for_pieces(uint64_t address, uint64_t bytes, uint32_t reached_by)
{
	uint64_t end = address + bytes;
	int native = GPU_SUCCESS;

	pthread_mutex_lock(&lock);
	while (address < end && native == GPU_SUCCESS) {
		struct memory *memory = find(address);

		if (!memory || !memory->virtual_piece || memory->base != address ||
			memory->bytes > end - address) {
			native = GPU_INVALID_VALUE;
			break;
		}
		address += memory->bytes;
		if (reached_by)
			memory->reached_by |= reached_by;
		else
			unmap(memory);
	}
	pthread_mutex_unlock(&lock);
	return native;
}

int emu_vmm_access(uint64_t address, size_t bytes, const struct gpu_access *access, size_t n)
{
	if (n != 1 || access->flags != GPU_ACCESS_READ_WRITE ||
		access->location_type != GPU_LOCATION_DEVICE)
		return GPU_INVALID_VALUE;
	return for_pieces(address, bytes, 1u << access->location_id);
}

int emu_vmm_unmap(uint64_t address, size_t bytes)
{
	return for_pieces(address, bytes, 0);
}

int emu_vmm_unreserve(uint64_t address, size_t bytes)
{
	(void)bytes;
	return unreserve(address);
}
