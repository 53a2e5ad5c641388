/* SPDX-License-Identifier: MIT */
/* The test double's devices, contexts and faults. */
#include "emu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int lost[EMU_N_DEVICES];
static _Atomic bool enabled[EMU_N_DEVICES][EMU_N_DEVICES];
static _Thread_local int current_device;

/* ---- faults ---- */

static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static char faults[256];
static bool faults_known;

void emu_set_faults(const char *list)
{
	pthread_mutex_lock(&fault_lock);
	if (!list)
		list = getenv("RX_GPU_EMU");
	(void)snprintf(faults, sizeof(faults), "%s", list ? list : "");
	faults_known = true;
	pthread_mutex_unlock(&fault_lock);
}

/* With the lock held. */
static void read_faults(char *list, size_t bytes)
{
	const char *env = faults_known ? faults : getenv("RX_GPU_EMU");
	ssize_t n = 0;
	int fd = -1;

	(void)snprintf(list, bytes, "%s", env ? env : "");
	if (list[0] != '@')
		return;
	fd = open(list + 1, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, list, bytes - 1) : -1;
	list[n > 0 ? (size_t)n : 0] = '\0';
	list[strcspn(list, "\n")] = '\0';
	if (fd >= 0)
		(void)close(fd);
}

/* What follows @name: "" or "=1"; NULL when it is not there. */
static const char *find_fault(const char *list, const char *name)
{
	size_t length = strlen(name);

	while (*list) {
		const char *end = strchrnul(list, ',');

		if (strncmp(list, name, length) == 0 &&
			(list + length == end || list[length] == '='))
			return list + length;
		list = *end ? end + 1 : end;
	}
	return NULL;
}

int emu_fault_value(const char *name, int otherwise)
{
	char list[sizeof(faults)];
	const char *rest = NULL;

	pthread_mutex_lock(&fault_lock);
	read_faults(list, sizeof(list));
	pthread_mutex_unlock(&fault_lock);
	rest = find_fault(list, name);
	return rest && *rest == '=' ? atoi(rest + 1) : rest ? -1 : otherwise;
}

bool emu_fault(const char *name, int device)
{
	enum { NOT_THERE = -2 };
	int value = emu_fault_value(name, NOT_THERE);

	return value != NOT_THERE && (value < 0 || device < 0 || value == device);
}

void emu_lose(int device, int native)
{
	int none = 0;

	(void)atomic_compare_exchange_strong(&lost[device], &none, native);
}

int emu_lost(int device)
{
	return atomic_load(&lost[device]);
}

/* ---- devices ---- */

static int n_devices(void)
{
	return emu_fault("no-device", -1) ? 0 : emu_fault_value("devices", EMU_N_DEVICES);
}

int emu_current(void)
{
	return current_device;
}

int emu_set_current(int device)
{
	int before = current_device;

	current_device = device;
	return before;
}

static bool are_apart(int from, int to)
{
	char list[sizeof(faults)];
	const char *rest = NULL;
	char pairs[2][8];

	pthread_mutex_lock(&fault_lock);
	read_faults(list, sizeof(list));
	pthread_mutex_unlock(&fault_lock);
	rest = find_fault(list, "apart");
	if (!rest || *rest != '=')
		return rest;
	(void)snprintf(pairs[0], sizeof(pairs[0]), "%d-%d", from, to);
	(void)snprintf(pairs[1], sizeof(pairs[1]), "%d-%d", to, from);
	/* Devices have one digit. */
	for (rest++; *rest && *rest != ','; rest++)
		if (strncmp(rest, pairs[0], 3) == 0 || strncmp(rest, pairs[1], 3) == 0)
			return true;
	return false;
}

bool emu_can_reach(int from, int to)
{
	int island = emu_fault_value("island", -1);

	return from == to || (from != island && to != island && !are_apart(from, to));
}

bool emu_reaches(int from, int to)
{
	return from == to || (emu_can_reach(from, to) && atomic_load(&enabled[from][to]));
}

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
	*n_p = n_devices();
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
	*value_p = attribute == GPU_ATTR_WARP ? 32 : 1;
	if (attribute == GPU_ATTR_UNITS)
		*value_p = emu_fault_value("units", 2);
	if (attribute == GPU_ATTR_STREAM_MEM)
		*value_p = !emu_fault("no-words", dev);
	if (attribute == GPU_ATTR_MAJOR)
		*value_p = 9;
	if (attribute == GPU_ATTR_MINOR)
		*value_p = 0;
	if (attribute == GPU_ATTR_MPS)
		*value_p = emu_fault("mps", dev);
	if (attribute == GPU_ATTR_WALL_CLOCK)
		*value_p = 1000000; /* rx_cpu_clock() */
	return GPU_SUCCESS;
}

int emu_can_access(int *can_p, int dev, int peer)
{
	*can_p = dev != peer && emu_can_reach(dev, peer);
	return GPU_SUCCESS;
}

int emu_peer_attribute(int *value_p, int attribute, int from, int to)
{
	(void)attribute;
	*value_p = from != to && emu_can_reach(from, to);
	return GPU_SUCCESS;
}

static int enable(int from, int to, unsigned int flags)
{
	if (flags || from == to || to < 0 || to >= EMU_N_DEVICES)
		return GPU_INVALID_VALUE;
	if (!emu_can_reach(from, to))
		return 217; /* peer access unsupported */
	return atomic_exchange(&enabled[from][to], true) ? GPU_PEER_ALREADY_ENABLED : GPU_SUCCESS;
}

/* ---- where the runtimes differ ---- */

#if defined(RX_GPU_CUDA)

static _Thread_local void *contexts[16];
static _Thread_local int n_contexts;

static int device_of(const void *context)
{
	return (int)(uintptr_t)context - 1;
}

static void follow(void)
{
	current_device = n_contexts ? device_of(contexts[n_contexts - 1]) : 0;
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
		return EMU_INVALID_CONTEXT;
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
	return enable(current_device, device_of(context), flags);
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
	if (dev < 0 || dev >= n_devices())
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
	return enable(current_device, peer, flags);
}

int emu_link_hops(int from, int to, uint32_t *type_p, uint32_t *hops_p)
{
	*type_p = 2;
	*hops_p = from != to;
	return GPU_SUCCESS;
}

#endif
