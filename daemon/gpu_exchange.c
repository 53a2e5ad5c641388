/* SPDX-License-Identifier: MIT */
#include "gpu_exchange.h"

#include "config.h"
#include "../kernels/device/device_abi.h"
#include "../shm/rx_clock.h"

#include <stdatomic.h>
#include <stdlib.h>

#define SYNC_BYTES rx_align_up(sizeof(struct rx_dev_sync), 4096)
/* Enough to keep links busy; more only makes barriers longer. */
#define BLOCKS_MAX 64u

struct on_device {
	uint32_t n_blocks; /* that run, or will, and wait for other devices */
	/* One writer; others look. */
	_Atomic uint64_t bytes;
	_Atomic uint64_t n_ops;
	_Atomic uint64_t n_direct[_GPU_WHY_DIRECT_N];
};

struct gpu_exchange {
	uint64_t most_bytes;
	uint64_t slot_bytes;
	uint64_t timeout_ns;
	struct rx_list spare;
	uint32_t n_owned;   /* sets that communicators have */
	uint32_t n_running; /* operations */
	struct on_device devices[RX_GPU_DEVICES_MAX];
};

struct gpu_exchange *gpu_exchange_new(const struct config *config)
{
	struct gpu_exchange *exchange = calloc(1, sizeof(*exchange));

	if (!exchange)
		return NULL;
	exchange->most_bytes = config->gpu.exchange_bytes;
	exchange->slot_bytes = config->gpu.slot_bytes;
	exchange->timeout_ns = config->gpu.barrier_timeout_ns;
	rx_list_init(&exchange->spare);
	return exchange;
}

static struct gpu_set *set_of(struct rx_list *link)
{
	return rx_list_entry(link, struct gpu_set, link);
}

struct gpu_exchange *gpu_exchange_free(struct gpu_exchange *exchange)
{
	if (!exchange)
		return NULL;
	while (!rx_list_empty(&exchange->spare)) {
		struct gpu_set *set = set_of(exchange->spare.next);

		rx_list_unlink(&set->link);
		free(set);
	}
	free(exchange);
	return NULL;
}

/* ---- blocks ---- */

/*
 * A unit runs at least one block of any of our kernels, which would not launch otherwise. A quarter
 * of the units is left to kernels of other processes that wait, where those run beside ours.
 */
static uint32_t most_blocks(const struct gpu *gpu, uint32_t device)
{
	uint32_t n_units = gpu_info(gpu, device)->n_units;

	return n_units > 1 ? n_units - n_units / 4 : 1;
}

/* So that two operations find room. */
uint32_t gpu_exchange_blocks(struct gpu *gpu, uint64_t devices)
{
	uint32_t n = BLOCKS_MAX;

	for (uint64_t left = devices; left; left &= left - 1) {
		uint32_t half = most_blocks(gpu, (uint32_t)__builtin_ctzll(left)) / 2;

		n = half < n ? half : n;
	}
	return n ? n : 1;
}

static bool has_blocks(struct gpu *gpu, const struct gpu_exchange_need *need)
{
	for (uint64_t left = need->devices; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);

		if (gpu_exchange(gpu)->devices[i].n_blocks + need->n_blocks > most_blocks(gpu, i))
			return false;
	}
	return true;
}

void gpu_exchange_put(struct gpu *gpu, uint64_t devices, uint32_t n_blocks)
{
	for (uint64_t left = devices; left; left &= left - 1)
		gpu_exchange(gpu)->devices[__builtin_ctzll(left)].n_blocks -= n_blocks;
}

/* ---- memory ---- */

static void count_bytes(struct on_device *device, uint64_t bytes, bool more)
{
	if (more)
		atomic_fetch_add_explicit(&device->bytes, bytes, memory_order_relaxed);
	else
		atomic_fetch_sub_explicit(&device->bytes, bytes, memory_order_relaxed);
}

/* Blocks until the devices are idle. */
static void free_set(struct gpu *gpu, struct gpu_set *set)
{
	for (uint64_t left = set->devices; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		struct rx_gpu_device *opened = gpu_opened(gpu, i);

		if (set->on[i].slots)
			gpu_ops(gpu)->free(opened, set->on[i].slots);
		if (set->on[i].sync)
			gpu_ops(gpu)->free(opened, set->on[i].sync);
		count_bytes(&gpu_exchange(gpu)->devices[i], set->on[i].bytes, false);
	}
	free(set);
}

/* Only when nothing runs: a kernel that never ends would hold this thread. */
static void free_spare(struct gpu *gpu)
{
	struct gpu_exchange *exchange = gpu_exchange(gpu);

	while (exchange->n_running == 0 && !rx_list_empty(&exchange->spare)) {
		struct gpu_set *set = set_of(exchange->spare.next);

		rx_list_unlink(&set->link);
		free_set(gpu, set);
	}
}

static uint64_t slots_bytes(
	const struct gpu_exchange *exchange, uint32_t n_slots, uint32_t n_blocks)
{
	return n_slots * RX_DEV_SLOT_BYTES(exchange->slot_bytes, n_blocks);
}

static bool fits(const struct gpu_set *set, const struct gpu_exchange_need *need)
{
	if (set->broken || set->devices != need->devices || set->n_blocks < need->n_blocks)
		return false;
	for (uint64_t left = need->devices; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);

		if (set->on[i].n_slots < need->n_slots[i])
			return false;
	}
	return true;
}

static bool has_bytes(struct gpu *gpu, const struct gpu_exchange_need *need, uint32_t n_blocks)
{
	const struct gpu_exchange *exchange = gpu_exchange(gpu);

	for (uint64_t left = need->devices; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		uint64_t bytes = SYNC_BYTES + slots_bytes(exchange, need->n_slots[i], n_blocks);

		if (atomic_load_explicit(&exchange->devices[i].bytes, memory_order_relaxed) +
				bytes >
			exchange->most_bytes)
			return false;
	}
	return true;
}

static int make_on(struct gpu *gpu, struct gpu_set *set, uint32_t i, uint32_t n_slots)
{
	struct gpu_exchange *exchange = gpu_exchange(gpu);
	uint64_t bytes = slots_bytes(exchange, n_slots, set->n_blocks);
	struct rx_gpu_device *opened = gpu_open(gpu, i);
	struct rx_gpu_error error = {0};
	int r = opened ? 0 : RX_GPU_E_DEVICE;

	if (r == 0)
		r = gpu_ops(gpu)->alloc_words(opened, SYNC_BYTES, &set->on[i].sync, &error);
	if (r == 0 && n_slots > 0)
		r = gpu_ops(gpu)->alloc(opened, bytes, &set->on[i].slots, &error);
	if (opened && r)
		gpu_note(gpu, i, &error);
	if (set->on[i].sync) {
		set->on[i].n_slots = r == 0 ? n_slots : 0;
		set->on[i].bytes = SYNC_BYTES + (r == 0 ? bytes : 0);
		count_bytes(&exchange->devices[i], set->on[i].bytes, true);
	}
	return r;
}

/* All of a communicator's operations find room in it. */
static enum gpu_why_direct make_set(
	struct gpu *gpu, const struct gpu_exchange_need *need, struct gpu_set **set_p)
{
	struct gpu_exchange *exchange = gpu_exchange(gpu);
	struct gpu_set *set = NULL;
	uint32_t n_blocks = gpu_exchange_blocks(gpu, need->devices);
	int r = 0;

	if (!has_bytes(gpu, need, n_blocks))
		free_spare(gpu);
	if (!has_bytes(gpu, need, n_blocks))
		return GPU_DIRECT_LIMIT;
	set = calloc(1, sizeof(*set));
	if (!set)
		return GPU_DIRECT_MEMORY;
	rx_list_init(&set->link);
	set->n_blocks = n_blocks;
	for (uint64_t left = need->devices; left && r == 0; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);

		set->devices |= 1ull << i;
		r = make_on(gpu, set, i, need->n_slots[i]);
	}
	if (r) {
		/* Parts of it: nobody else's, either. */
		set->broken = true;
		rx_list_push(&exchange->spare, &set->link);
		return GPU_DIRECT_MEMORY;
	}
	*set_p = set;
	return GPU_WAITS;
}

static struct gpu_set *find_spare(struct gpu *gpu, const struct gpu_exchange_need *need)
{
	rx_list_for_each_safe (pos, &gpu_exchange(gpu)->spare) {
		if (!fits(set_of(pos), need))
			continue;
		rx_list_unlink(pos);
		return set_of(pos);
	}
	return NULL;
}

static enum gpu_why_direct find_set(
	struct gpu *gpu, const struct gpu_exchange_need *need, struct gpu_set **set_p)
{
	struct gpu_exchange *exchange = gpu_exchange(gpu);
	enum gpu_why_direct why = GPU_WAITS;
	struct gpu_set *set = *set_p;

	if (set && fits(set, need))
		return GPU_WAITS;
	*set_p = NULL;
	if (set) {
		exchange->n_owned--;
		rx_list_push(&exchange->spare, &set->link);
	}
	set = find_spare(gpu, need);
	if (!set)
		why = make_set(gpu, need, &set);
	if (set) {
		exchange->n_owned++;
		*set_p = set;
	}
	return why;
}

static void count(struct gpu *gpu, uint64_t devices, enum gpu_why_direct why)
{
	for (uint64_t left = devices; left; left &= left - 1) {
		struct on_device *device = &gpu_exchange(gpu)->devices[__builtin_ctzll(left)];

		atomic_fetch_add_explicit(
			why == GPU_WAITS ? &device->n_ops : &device->n_direct[why], 1,
			memory_order_relaxed);
	}
}

static enum gpu_why_direct take(
	struct gpu *gpu, const struct gpu_exchange_need *need, struct gpu_set **set_p)
{
	enum gpu_why_direct why = GPU_WAITS;

	if (gpu_exchange(gpu)->most_bytes == 0)
		return GPU_DIRECT_OFF;
	if (!has_blocks(gpu, need))
		return GPU_DIRECT_BUSY;
	why = find_set(gpu, need, set_p);
	if (why != GPU_WAITS)
		return why;
	for (uint64_t left = need->devices; left; left &= left - 1)
		gpu_exchange(gpu)->devices[__builtin_ctzll(left)].n_blocks += need->n_blocks;
	return GPU_WAITS;
}

enum gpu_why_direct gpu_exchange_take(
	struct gpu *gpu, const struct gpu_exchange_need *need, struct gpu_set **set_p)
{
	enum gpu_why_direct why = take(gpu, need, set_p);

	count(gpu, need->devices, why);
	return why;
}

static void free_if_unused(struct gpu *gpu)
{
	if (gpu_exchange(gpu)->n_owned == 0)
		free_spare(gpu);
}

void gpu_exchange_leave(struct gpu *gpu, struct gpu_set *set)
{
	struct gpu_exchange *exchange = gpu_exchange(gpu);

	if (!set)
		return;
	exchange->n_owned--;
	rx_list_push(&exchange->spare, &set->link);
	free_if_unused(gpu);
}

void gpu_exchange_begin(struct gpu *gpu)
{
	gpu_exchange(gpu)->n_running++;
}

void gpu_exchange_end(struct gpu *gpu)
{
	gpu_exchange(gpu)->n_running--;
	free_if_unused(gpu);
}

/* ---- what kernels are told, and people ---- */

uint64_t gpu_exchange_slot_bytes(const struct gpu *gpu)
{
	return gpu_exchange(gpu)->slot_bytes;
}

uint64_t gpu_exchange_ticks(const struct gpu *gpu, uint32_t device)
{
	uint64_t ms = gpu_exchange(gpu)->timeout_ns / RX_NS_PER_MS;

	return rx_max_u64(1, ms * gpu_info(gpu, device)->clock_khz);
}

void gpu_exchange_view(const struct gpu *gpu, uint32_t index, struct gpu_exchange_view *view_p)
{
	const struct on_device *device = &gpu_exchange(gpu)->devices[index];

	view_p->bytes = atomic_load_explicit(&device->bytes, memory_order_relaxed);
	view_p->n_ops = atomic_load_explicit(&device->n_ops, memory_order_relaxed);
	for (uint32_t why = 0; why < _GPU_WHY_DIRECT_N; why++)
		view_p->n_direct[why] =
			atomic_load_explicit(&device->n_direct[why], memory_order_relaxed);
}
