/* SPDX-License-Identifier: MIT */
/*
 * An operation starts when all ranks have posted it. Mostly each device then folds or copies for
 * its own ranks straight between their buffers (RX_DEV_DIRECT): a device writes what no other one
 * reads and no other one writes. So no kernel waits for another, ranks that share a device are
 * served by one launch, and communicators cannot block each other in whatever order they come.
 * Where kernels wait for those of other devices (gpu_choice.h), gpu_exchange.h says why they don't
 * block each other either; when one of them cannot start or gives up, the others are told to.
 * Where devices do not reach each other, there are several phases (gpu_stage.h): the next one
 * starts when all devices have written their words of the one before.
 *
 * It is over when every device has written its done word, after everything else in its stream: then
 * no device uses anybody's buffer any more, and all ranks are told at once.
 *
 * A rank belongs to the device of its receive buffer, else of its send buffer; ranks with host
 * memory only, to the first device of the operation, which reaches it through the bus.
 */
#include "gpu_run.h"

#include "gpu_blocks.h"
#include "gpu_choice.h"
#include "gpu_exchange.h"
#include "gpu_launch.h"
#include "gpu_streams.h"
#include "gpu_words.h"
#include "../kernels/device/device_abi.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS_PER_QUERY 256u /* a lost device writes no done word: ask the runtime now and then */

/* ---- in the worker ---- */

static void fail(struct gpu_run *run, uint32_t device, const struct rx_gpu_error *error)
{
	if (run->result == 0) {
		run->result = -EIO;
		run->gone = error->result == RX_GPU_E_GONE;
		(void)snprintf(
			run->error, sizeof(run->error), "device %u: %.200s", device, error->text);
	}
	gpu_note(run->gpu, device, error);
}

static int put(struct gpu_run *run, uint32_t device, void *stream, struct rx_gpu_error *error)
{
	bool copies = run->stage.phase == GPU_STAGE_IN || run->stage.phase == GPU_STAGE_OUT;

	return copies ? gpu_stage_copy(run, device, stream, error)
		      : gpu_launch(run, device, stream, error);
}

static int start_on(struct gpu_run *run, uint32_t device, struct rx_gpu_error *error)
{
	struct rx_gpu_device *opened = gpu_open(run->gpu, device);
	void *stream = NULL;
	uint64_t word = 0;
	int r = 0;

	if (!opened) {
		(void)snprintf(error->text, sizeof(error->text), "it could not be opened");
		return RX_GPU_E_DEVICE;
	}
	r = gpu_streams_open(run->streams, device, &stream, error);
	if (r == 0)
		r = gpu_words_address(run->gpu, run->slot, device, &word, error);
	if (r == 0)
		r = put(run, device, stream, error);
	if (r == 0)
		r = gpu_ops(run->gpu)->signal(opened, stream, word, 1, error);
	return r;
}

static void prepare_tables(struct gpu_run *run)
{
	struct rx_gpu_error error = {0};
	int r = 0;

	if (run->counts)
		r = gpu_blocks_fill(run->gpu, &run->streams->blocks, run->coll, run->counts,
			run->n_ranks, &run->count, &error);
	if (r == 0 && run->low)
		r = gpu_counts_make(run->gpu, &run->streams->counts, &error);
	if (r == 0 && run->stage.devices)
		r = gpu_stage_begin(run, gpu_stage_bytes(run->gpu), &error);
	if (r)
		fail(run, gpu_launch_first(run), &error);
}

/* What has been launched is waited for, also when a later launch failed. */
static void start_phase(struct gpu_run *run)
{
	bool copies = run->stage.phase == GPU_STAGE_IN || run->stage.phase == GPU_STAGE_OUT;
	uint64_t devices = copies ? run->stage.devices : run->devices;

	for (uint32_t i = 0; i < gpu_n_devices(run->gpu) && run->result == 0; i++) {
		struct rx_gpu_error error = {0};

		if (!(devices >> i & 1))
			continue;
		if (start_on(run, i, &error) == 0)
			run->waiting |= 1ull << i;
		else
			fail(run, i, &error);
	}
}

static void start_all(struct gpu_run *run)
{
	prepare_tables(run);
	if (run->result == 0)
		gpu_choice_make(run);
	gpu_exchange_begin(run->gpu);
	start_phase(run);
}

static bool needs_tables(const struct gpu_run *run)
{
	return run->counts || run->low || run->stage.devices;
}

static void know_devices(struct gpu_run *run)
{
	run->devices = gpu_launch_devices(run);
	run->stage.devices = run->devices ? gpu_stage_devices(run) : 0;
}

/* Needs a slot for its done words, and some need what their communicator has once. */
static bool has_room(struct gpu_run *run)
{
	bool alone = needs_tables(run) || gpu_choice_waits(run);

	if (alone && run->streams->user && run->streams->user != run)
		return false;
	if (run->slot == UINT32_MAX)
		run->slot = gpu_words_take(gpu_words(run->gpu));
	if (run->slot == UINT32_MAX)
		return false;
	if (alone)
		run->streams->user = run;
	return true;
}

static bool is_cancelled(const struct gpu_run *run)
{
	return run->cancelled && atomic_load_explicit(run->cancelled, memory_order_relaxed) != 0;
}

static bool gates_are_open(struct gpu_run *run)
{
	uint64_t closed = gpu_run_missing(run);
	uint64_t still = 0;

	if (run->standing || closed == 0)
		return closed == 0;
	for (uint64_t left = closed; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);

		if (!gate_is_open(&run->gates[i]))
			still |= 1ull << i;
	}
	if (still != closed)
		atomic_store_explicit(&run->closed, still, memory_order_relaxed);
	return still == 0;
}

/* True: it runs, or there was nothing to run. */
static bool try_start(struct gpu_run *run)
{
	if (!gates_are_open(run))
		return false;
	if (run->devices && !has_room(run))
		return false;
	run->launched = true;
	if (run->devices)
		start_all(run);
	return true;
}

static bool start(struct gpu_job *job, struct gpu *gpu)
{
	struct gpu_run *run = rx_container_of(job, struct gpu_run, job);
	uint64_t closed = 0;

	(void)gpu;
	know_devices(run);
	run->slot = UINT32_MAX;
	for (uint32_t i = 0; i < run->n_gates; i++)
		if (run->gates[i].word)
			closed |= 1ull << i;
	atomic_store_explicit(&run->closed, closed, memory_order_relaxed);
	(void)try_start(run);
	return false;
}

/* A device that is lost will not finish. */
static void ask(struct gpu_run *run, uint32_t device)
{
	struct rx_gpu_error error = {0};
	int r = gpu_ops(run->gpu)->stream_query(
		gpu_opened(run->gpu, device), run->streams->streams[device], &error);

	if (r == RX_GPU_OK || r == RX_GPU_BUSY)
		return;
	fail(run, device, &error);
	run->waiting &= ~(1ull << device);
}

static void look(struct gpu_run *run)
{
	bool query = ++run->n_looks % LOOKS_PER_QUERY == 0;

	for (uint32_t i = 0; i < gpu_n_devices(run->gpu); i++) {
		if (!(run->waiting >> i & 1))
			continue;
		if (gpu_words_is_done(run->gpu, run->slot, i)) {
			run->waiting &= ~(1ull << i);
			if (gpu_stage_ends(run))
				gpu_count(run->gpu, i, gpu_launch_bytes(run, i),
					run->stage.devices != 0);
		} else if (query) {
			ask(run, i);
		}
	}
}

static void take_status(struct gpu_run *run, uint32_t status)
{
	if (run->result != 0 || status == RX_DEV_OK)
		return;
	run->result = -EIO;
	if (status == RX_DEV_E_ABORTED || (status & 0xff) == RX_DEV_E_TIMEOUT)
		(void)snprintf(run->error, sizeof(run->error),
			"a kernel waited in vain for that of launch %u", status >> 8 & 0xff);
	else
		(void)snprintf(
			run->error, sizeof(run->error), "a kernel gave up with status %#x", status);
}

/* Some have given up, and those that have not may never end: the ranks hear of it now. */
static void look_for_trouble(struct gpu_run *run)
{
	if (!run->plan.meets || !run->waiting || run->told)
		return;
	take_status(run, gpu_words_complaint(run->gpu, run->slot));
	if (run->result == 0)
		return;
	run->told = true;
	gpu_words_abort(run->gpu, run->slot);
	if (run->standing)
		run->over(run);
	else if (run->trouble)
		gpu_tell(run->gpu, &run->alarm);
}

static void count_found(struct gpu_run *run)
{
	bool kernels = run->stage.phase == GPU_STAGE_NONE || run->stage.phase == GPU_STAGE_RUN;

	if (run->result == 0 && run->low && run->devices && kernels)
		gpu_counts_add(&run->found, &run->streams->counts, run->gpu, run->devices);
}

/* All devices have done their part of a phase. True: another one has been started. */
static bool goes_on(struct gpu_run *run, bool give_up)
{
	if (run->stage.phase == GPU_STAGE_NONE)
		return false;
	take_status(run, gpu_words_complaint(run->gpu, run->slot));
	count_found(run);
	if (give_up && !gpu_stage_ends(run))
		run->result = -ECANCELED;
	if (run->result != 0 || is_cancelled(run) || !gpu_stage_next(run))
		return false;
	gpu_words_again(run->gpu, run->slot);
	start_phase(run);
	return true;
}

static void conclude(struct gpu_run *run)
{
	uint32_t status = run->slot == UINT32_MAX ? RX_DEV_OK : gpu_words_put(run->gpu, run->slot);

	run->slot = UINT32_MAX;
	take_status(run, status);
	gpu_choice_end(run, run->result != 0);
	if (run->devices)
		gpu_exchange_end(run->gpu);
	if (is_cancelled(run))
		run->result = -ECANCELED;
	if (!run->stage.devices)
		count_found(run);
	if (run->result == 0 && run->low && run->devices)
		gpu_counts_op(&run->found);
	run->stage.phase = GPU_STAGE_NONE;
}

static void release_gates(struct gpu_run *run)
{
	for (uint32_t i = 0; i < run->n_gates; i++)
		gate_release(&run->gates[i]);
}

static void leave_tables(struct gpu_run *run)
{
	if (run->streams && run->streams->user == run)
		run->streams->user = NULL;
}

static bool poll(struct gpu_job *job, struct gpu *gpu, bool give_up)
{
	struct gpu_run *run = rx_container_of(job, struct gpu_run, job);

	if (!run->launched && (give_up || is_cancelled(run))) {
		run->result = -ECANCELED;
		if (run->slot != UINT32_MAX)
			(void)gpu_words_put(gpu, run->slot);
		leave_tables(run);
		release_gates(run);
		return true;
	}
	if (!run->launched && !try_start(run))
		return false;
	look(run);
	look_for_trouble(run);
	if (run->waiting && !give_up)
		return false;
	if (!run->waiting && goes_on(run, give_up))
		return false;
	if (run->waiting) {
		/* Its words may still be written: the slot is not used again. */
		run->streams->stuck = true;
		run->result = -ECANCELED;
	} else {
		conclude(run);
	}
	leave_tables(run);
	/* Before the ranks are told: afterwards they use their gates again. */
	if (run->devices || run->result != 0)
		release_gates(run);
	gpu_reap_later(gpu);
	return true;
}

static void on_alarm(struct gpu_job *job)
{
	struct gpu_run *run = rx_container_of(job, struct gpu_run, alarm);

	run->trouble(run);
}

static void on_done(struct gpu_job *job)
{
	struct gpu_run *run = rx_container_of(job, struct gpu_run, job);

	run->over(run);
}

/* ---- in the loop thread ---- */

struct gpu_run *gpu_run_new(struct gpu *gpu, uint32_t n_ranks)
{
	uint32_t n_gates = n_ranks < 2 ? 2 : n_ranks;
	size_t bytes =
		2 * (size_t)n_ranks * sizeof(struct gpu_buffer) + n_gates * sizeof(struct gate);
	struct gpu_run *run = calloc(1, sizeof(*run) + bytes);

	if (!run)
		return NULL;
	run->gpu = gpu;
	run->n_ranks = n_ranks;
	run->n_gates = n_gates;
	run->slot = UINT32_MAX;
	run->alarm.done = on_alarm;
	run->recv = run->send + n_ranks;
	run->gates = (struct gate *)(run->recv + n_ranks);
	return run;
}

struct gpu_run *gpu_run_free(struct gpu_run *run)
{
	free(run);
	return NULL;
}

void gpu_run_submit(struct gpu_run *run)
{
	run->job.run = start;
	run->job.poll = poll;
	run->job.done = on_done;
	gpu_submit(run->gpu, &run->job);
}

/* ---- recorded in a graph: in the worker ---- */

/* One replay is over. True: it is not polled until the next one. */
static bool poll_replay(struct gpu_job *job, struct gpu *gpu, bool give_up)
{
	struct gpu_run *run = rx_container_of(job, struct gpu_run, job);

	if (!poll(job, gpu, give_up))
		return false;
	if (run->result == -EIO && !run->told)
		run->over(run);
	run->failed |= run->result != 0;
	atomic_store_explicit(&run->closed, run->needed, memory_order_relaxed);
	atomic_fetch_add_explicit(&run->n_replays, 1, memory_order_relaxed);
	run->launched = false;
	run->active = false;
	for (uint64_t left = run->needed; left; left &= left - 1)
		gate_release_replay(&run->gates[__builtin_ctzll(left)]);
	return true;
}

static bool begin_replay(struct gpu_run *run)
{
	if (!run->complete || gpu_run_missing(run) != 0)
		return false;
	run->job.poll = poll_replay;
	run->active = true;
	run->result = 0;
	run->n_looks = 0;
	return true;
}

bool gpu_run_rung(struct gpu_run *run, uint32_t i)
{
	if (run->failed) {
		gate_release_replay(&run->gates[i]);
		return false;
	}
	atomic_fetch_and_explicit(&run->closed, ~(1ull << i), memory_order_relaxed);
	return begin_replay(run);
}

bool gpu_run_complete(struct gpu_run *run)
{
	run->complete = true;
	know_devices(run);
	return !run->failed && begin_replay(run);
}

void gpu_run_fail(struct gpu_run *run)
{
	uint64_t waiting = run->needed & ~gpu_run_missing(run);

	/* One that is made at the moment ends by itself, as it is cancelled. */
	if (run->failed || run->active)
		return;
	run->failed = true;
	atomic_store_explicit(&run->closed, run->needed, memory_order_relaxed);
	for (; waiting; waiting &= waiting - 1)
		gate_release_replay(&run->gates[__builtin_ctzll(waiting)]);
}
