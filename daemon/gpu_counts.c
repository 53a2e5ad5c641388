/* SPDX-License-Identifier: MIT */
#include "gpu_counts.h"

#include "../kernels/device/device_abi.h"
#include "../kernels/precision.h"

#include <string.h>

#define DEVICE_BYTES (RX_DEV_MAX_BLOCKS * sizeof(struct rx_dev_mx_counts))

static struct rx_dev_mx_counts *part_of(const struct gpu_host *table, uint32_t device)
{
	return (struct rx_dev_mx_counts *)((char *)table->memory + device * DEVICE_BYTES);
}

int gpu_counts_make(struct gpu *gpu, struct gpu_host *table, struct rx_gpu_error *error)
{
	return gpu_host_make(gpu, table, gpu_n_devices(gpu) * DEVICE_BYTES,
		"what is counted in low precision", error);
}

uint64_t gpu_counts_begin(struct gpu_host *table, uint32_t device)
{
	memset(part_of(table, device), 0, DEVICE_BYTES);
	return table->address + device * DEVICE_BYTES;
}

static void add(_Atomic uint64_t *count, uint64_t n)
{
	atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

void gpu_counts_add(
	struct gpu_counts *counts, const struct gpu_host *table, struct gpu *gpu, uint64_t devices)
{
	for (uint32_t device = 0; device < gpu_n_devices(gpu); device++) {
		const struct rx_dev_mx_counts *part = part_of(table, device);

		for (uint32_t i = 0; i < RX_DEV_MAX_BLOCKS && devices >> device & 1; i++) {
			add(&counts->n_blocks, part[i].n_blocks);
			add(&counts->n_saturated, part[i].n_saturated);
			add(&counts->n_flushed, part[i].n_flushed);
			add(&counts->n_special, part[i].n_special);
		}
	}
}

void gpu_counts_op(struct gpu_counts *counts)
{
	add(&counts->n_ops, 1);
}

static uint64_t get(const _Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_relaxed);
}

void gpu_counts_account(const struct gpu_counts *counts, const struct rx_precision_work *work,
	struct rx_precision_counts *sum)
{
	uint64_t n_ops = get(&counts->n_ops);
	const struct rx_precision_counts more = {
		.n_ops = n_ops,
		.exact_bytes = n_ops * work->exact_bytes,
		.wire_bytes = n_ops * work->wire_bytes,
		.n_blocks = get(&counts->n_blocks),
		.n_saturated = get(&counts->n_saturated),
		.n_flushed = get(&counts->n_flushed),
		.n_special = get(&counts->n_special),
	};

	rx_precision_add(sum, &more);
}
