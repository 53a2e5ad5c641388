/* SPDX-License-Identifier: MIT */
#include "gpu_launch.h"

#include "gpu_exchange.h"
#include "gpu_mem.h"
#include "gpu_streams.h"
#include "gpu_words.h"
#include "../kernels/coll_extent.h"
#include "../kernels/coll_types.h"
#include "../kernels/device/device_abi.h"

#include <stdio.h>

/* Enough to hide memory latency; a device has this many blocks at once per compute unit. */
#define BLOCKS_PER_UNIT 2u
#define BLOCK_THREADS   512u
#define THREAD_BYTES    64u /* per thread, before another block is worth it */

uint32_t gpu_launch_first(const struct gpu_run *run)
{
	return (uint32_t)__builtin_ctzll(run->devices);
}

static uint32_t device_of(const struct gpu_run *run, uint32_t rank)
{
	uint32_t device = gpu_mem_device(run->recv[rank].region);

	if (device == UINT32_MAX)
		device = gpu_mem_device(run->send[rank].region);
	return device;
}

/* Every device that somebody's buffer is on. */
uint64_t gpu_launch_devices(const struct gpu_run *run)
{
	uint64_t devices = 0;

	/* One side's device does it, the receiver's if it has one. */
	if (run->coll == RX_SEND) {
		uint32_t device = device_of(run, run->peer);

		if (device == UINT32_MAX)
			device = device_of(run, run->root);
		return device == UINT32_MAX ? 0 : 1ull << device;
	}
	for (uint32_t rank = 0; rank < run->n_ranks; rank++) {
		uint32_t device = device_of(run, rank);

		if (device != UINT32_MAX)
			devices |= 1ull << device;
	}
	return devices;
}

uint64_t gpu_launch_ranks(const struct gpu_run *run, uint32_t device)
{
	uint64_t ranks = 0;

	for (uint32_t rank = 0; rank < run->n_ranks; rank++) {
		uint32_t own = device_of(run, rank);

		if ((own == UINT32_MAX ? gpu_launch_first(run) : own) == device)
			ranks |= 1ull << rank;
	}
	return ranks;
}

uint64_t gpu_launch_bytes(const struct gpu_run *run, uint32_t device)
{
	uint64_t bytes = 0;

	for (uint64_t left = gpu_launch_ranks(run, device); left; left &= left - 1) {
		uint32_t rank = (uint32_t)__builtin_ctzll(left);

		bytes += run->send[rank].bytes + run->recv[rank].bytes;
	}
	return bytes;
}

static int address_of(struct gpu_run *run, uint32_t rank, bool recv, uint32_t device,
	uint64_t *address_p, struct rx_gpu_error *error)
{
	const struct gpu_buffer *buffer = recv ? &run->recv[rank] : &run->send[rank];

	*address_p = 0;
	if (run->stage.phase != GPU_STAGE_NONE) {
		*address_p = gpu_stage_address(run, rank, recv);
		return 0;
	}
	if (!buffer->region)
		return 0;
	return gpu_mem_address(
		run->gpu, buffer->region, device, buffer->offset, buffer->bytes, address_p, error);
}

static int fill_buffers(
	struct gpu_run *run, uint32_t device, struct rx_dev_args *args, struct rx_gpu_error *error)
{
	for (uint32_t rank = 0; rank < run->n_ranks; rank++) {
		uint64_t send = 0;
		uint64_t recv = 0;
		int r = address_of(run, rank, false, device, &send, error);

		if (r == 0)
			r = address_of(run, rank, true, device, &recv, error);
		if (r)
			return r;
		/* NOLINTBEGIN(performance-no-int-to-ptr): the device's addresses */
		args->send[rank] = (const void *)(uintptr_t)send;
		args->recv[rank] = (void *)(uintptr_t)recv;
		/* NOLINTEND(performance-no-int-to-ptr) */
		args->scalar[rank] = run->scalars ? run->scalars[rank] : 0;
	}
	return 0;
}

static const char *kernel_of(const struct gpu_run *run, char name[32])
{
	if (!run->low && !rx_coll_reduces(run->coll))
		return RX_DEV_COPY_NAME;
	(void)snprintf(name, 32, "%s%s", run->low ? RX_DEV_MX_PREFIX : RX_DEV_REDUCE_PREFIX,
		rx_dtype_suffix(run->dtype));
	return name;
}

static uint32_t n_threads_of(const struct gpu_run *run, uint32_t device)
{
	uint64_t warps = rx_max_u64(1, gpu_info(run->gpu, device)->warp) * 8;
	uint32_t n = (uint32_t)rx_min_u64(BLOCK_THREADS, warps);

	return run->low ? (uint32_t)rx_align_up(n, RX_DEV_MX_THREADS) : n;
}

uint32_t gpu_launch_blocks(const struct gpu_run *run, uint32_t device)
{
	const struct rx_gpu_device_info *info = gpu_info(run->gpu, device);
	uint64_t most = rx_max_u64(1, (uint64_t)info->n_units * BLOCKS_PER_UNIT);
	uint64_t bytes = 0;
	uint64_t blocks = 0;

	for (uint32_t rank = 0; rank < run->n_ranks; rank++)
		bytes = rx_max_u64(bytes, rx_max_u64(run->send[rank].bytes, run->recv[rank].bytes));
	blocks = bytes / (n_threads_of(run, device) * THREAD_BYTES) + 1;
	return (uint32_t)rx_min_u64(blocks, rx_min_u64(most, RX_DEV_MAX_BLOCKS));
}

/* Ranks of a device have its slots in turn. */
static void fill_set(const struct gpu_run *run, struct rx_dev_args *args)
{
	const struct gpu_set *set = run->streams->set;
	uint64_t bytes = RX_DEV_SLOT_BYTES(args->slot_bytes, set->n_blocks);
	uint32_t launch = 0;

	for (uint64_t left = run->devices; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		uint64_t slot = set->on[i].slots;

		/* NOLINTBEGIN(performance-no-int-to-ptr): the device's addresses */
		args->sync[launch++] = (struct rx_dev_sync *)(uintptr_t)set->on[i].sync;
		for (uint64_t ranks = gpu_launch_ranks(run, i); ranks && slot; ranks &= ranks - 1) {
			args->slot[__builtin_ctzll(ranks)] = (void *)(uintptr_t)slot;
			slot += bytes;
		}
		/* NOLINTEND(performance-no-int-to-ptr) */
	}
}

static int fill_waiting(
	struct gpu_run *run, uint32_t device, struct rx_dev_args *args, struct rx_gpu_error *error)
{
	uint64_t word = 0;
	int r = 0;

	if (!run->plan.meets)
		return 0;
	r = gpu_words_abort_address(run->gpu, run->slot, &word, error);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): the device's address */
	args->abort = (const uint32_t *)(uintptr_t)word;
	args->wait_ticks = gpu_exchange_ticks(run->gpu, device);
	args->slot_bytes = gpu_exchange_slot_bytes(run->gpu);
	fill_set(run, args);
	return r;
}

static uint32_t flags_of(const struct gpu_run *run)
{
	return (run->plan.push ? RX_DEV_PUSH : 0) |
	       (run->low && run->sums_bf16 ? RX_DEV_SUMS_BF16 : 0);
}

int gpu_launch(struct gpu_run *run, uint32_t device, void *stream, struct rx_gpu_error *error)
{
	char name[32];
	struct rx_dev_args args = {
		.abi = RX_DEV_ABI,
		.coll = run->coll,
		.dtype = run->dtype,
		.op = run->op,
		.algorithm = (uint8_t)run->plan.algorithm,
		.flags = flags_of(run),
		.n_ranks = run->n_ranks,
		.root = run->root,
		.peer = run->peer,
		.launch = (uint32_t)__builtin_popcountll(run->devices & ((1ull << device) - 1)),
		.n_launches = (uint32_t)__builtin_popcountll(run->devices),
		.n_avg = run->n_ranks,
		.elem_bytes = rx_dtype_size(run->dtype),
		.count = run->stage.phase != GPU_STAGE_NONE ? run->stage.count : run->count,
		.local = gpu_launch_ranks(run, device),
	};
	struct rx_gpu_launch launch = {
		.kernel = kernel_of(run, name),
		.args = &args,
		.args_bytes = sizeof(args),
		.n_threads = n_threads_of(run, device),
		.n_blocks = run->plan.meets ? run->n_blocks : gpu_launch_blocks(run, device),
	};
	uint64_t status = 0;
	int r = fill_buffers(run, device, &args, error);

	if (r == 0)
		r = gpu_words_status(run->gpu, run->slot, &status, error);
	if (r == 0)
		r = fill_waiting(run, device, &args, error);
	if (r)
		return r;
	/* NOLINTBEGIN(performance-no-int-to-ptr): the device's addresses */
	args.status = (uint32_t *)(uintptr_t)status;
	if (run->counts)
		args.blocks = (const struct rx_dev_block *)(uintptr_t)run->streams->blocks.address;
	if (run->low)
		args.counts = (struct rx_dev_mx_counts *)(uintptr_t)gpu_counts_begin(
			&run->streams->counts, device);
	/* NOLINTEND(performance-no-int-to-ptr) */
	return gpu_ops(run->gpu)->launch(gpu_opened(run->gpu, device), stream, &launch, error);
}
