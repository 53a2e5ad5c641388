/* SPDX-License-Identifier: MIT */
#include "gpu_choice.h"

#include "gpu_exchange.h"
#include "gpu_launch.h"
#include "gpu_streams.h"

static struct rx_device_plan plan_of(const struct gpu_run *run)
{
	struct rx_device_query query = {
		.coll = run->coll,
		.n_ranks = run->n_ranks,
		.n_devices = (uint32_t)__builtin_popcountll(run->devices),
		.low = run->low,
	};

	for (uint32_t rank = 0; rank < run->n_ranks; rank++)
		query.bytes = rx_max_u64(
			query.bytes, rx_max_u64(run->send[rank].bytes, run->recv[rank].bytes));
	return rx_device_plan_make(&query, &run->thresholds);
}

bool gpu_choice_waits(const struct gpu_run *run)
{
	return run->devices && !run->stage.devices && plan_of(run).meets;
}

static void fill_need(const struct gpu_run *run, struct gpu_exchange_need *need)
{
	*need = (struct gpu_exchange_need){.devices = run->devices};
	need->n_blocks = gpu_exchange_blocks(run->gpu, run->devices);
	for (uint64_t left = run->devices; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		uint32_t wanted = gpu_launch_blocks(run, i);

		need->n_blocks = wanted < need->n_blocks ? wanted : need->n_blocks;
		if (run->plan.slots)
			need->n_slots[i] = (uint8_t)__builtin_popcountll(gpu_launch_ranks(run, i));
	}
}

void gpu_choice_make(struct gpu_run *run)
{
	struct gpu_exchange_need need;

	run->plan = plan_of(run);
	if (!run->plan.meets)
		return;
	if (!run->stage.devices) {
		fill_need(run, &need);
		run->n_blocks = need.n_blocks;
		if (gpu_exchange_take(run->gpu, &need, &run->streams->set) == GPU_WAITS)
			return;
	}
	run->plan.meets = false;
	run->plan.slots = false;
	run->plan.algorithm = RX_DEV_DIRECT;
}

void gpu_choice_end(struct gpu_run *run, bool failed)
{
	if (!run->plan.meets)
		return;
	gpu_exchange_put(run->gpu, run->devices, run->n_blocks);
	if (failed)
		run->streams->set->broken = true;
	run->plan.meets = false;
}
