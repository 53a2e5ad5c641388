/* SPDX-License-Identifier: MIT */
/*
 * Kernels of the test double: those of kernels/device, compiled for the CPU. What they are given
 * are addresses as the device sees them; they run with those where the memory is.
 */
#include "emu.h"
#include "../gpu-cpu/gpu_cpu.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

/* Each is a thread of the CPU; results do not depend on their number. */
#define MAX_THREADS 8u

#define N_SPECIAL 2u

static const char module[] = "a module";
static const char *const special[N_SPECIAL] = {"emu_stuck", "emu_crash"};

/* ---- modules ---- */

int emu_module_load(void **module_p, const void *image)
{
	int native = emu_forbid();

	if (native != GPU_SUCCESS)
		return native;
	if (!image)
		return EMU_INVALID_IMAGE;
	if (emu_fault("no-code", emu_current()))
		return GPU_NO_BINARY;
	*module_p = (void *)(uintptr_t)module;
	return GPU_SUCCESS;
}

int emu_module_unload(void *given)
{
	return given == module ? GPU_SUCCESS : GPU_INVALID_VALUE;
}

static bool is_special(const void *function)
{
	return function == special[0] || function == special[1];
}

int emu_module_function(void **function_p, void *given, const char *name)
{
	gpu_cpu_fn kernel = gpu_cpu_find(name);

	if (given != module)
		return GPU_INVALID_VALUE;
	if (kernel)
		memcpy(function_p, &kernel, sizeof(kernel));
	for (size_t i = 0; i < N_SPECIAL && !kernel; i++) {
		if (strcmp(special[i], name) == 0) {
			*function_p = (void *)(uintptr_t)special[i];
			return GPU_SUCCESS;
		}
	}
	return kernel ? GPU_SUCCESS : GPU_NOT_FOUND;
}

/* ---- launching ---- */

int emu_launch(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
	void *stream, void **args, void **extra)
{
	struct emu_work work = {.kind = WORK_KERNEL, .object = function};

	(void)shared_bytes;
	if (args || !grid_x || !block_x || block_x > RX_DEV_MAX_THREADS ||
		grid_y * grid_z * block_y * block_z != 1 || extra[0] != (void *)GPU_LAUNCH_ARGS ||
		extra[2] != (void *)GPU_LAUNCH_ARGS_BYTES || extra[4] != (void *)GPU_LAUNCH_END)
		return GPU_INVALID_VALUE;
	if (emu_fault("launch-fails", emu_stream_of(stream)->device))
		return 701; /* too many resources */
	work.args_bytes = *(size_t *)extra[3];
	if (work.args_bytes > sizeof(work.args))
		return GPU_INVALID_VALUE;
	memcpy(work.args, extra[1], work.args_bytes);
	work.n_blocks = grid_x;
	work.n_threads = block_x < MAX_THREADS ? block_x : MAX_THREADS;
	return emu_put(stream, &work);
}

/* ---- arguments ---- */

/* *@pointer becomes where the memory is. False: there is none, or the device does not reach it. */
static bool find(void *pointer, int device)
{
	uint64_t address = 0;
	void *at = NULL;

	memcpy(&address, pointer, sizeof(address));
	if (!address)
		return true;
	at = emu_reach(address, 1, device);
	memcpy(pointer, &at, sizeof(at));
	return at;
}

static bool find_words(struct rx_dev_words *words, int device)
{
	return find(&words->first, device) && find(&words->wait, device) &&
	       find(&words->last, device) && find(&words->abort, device) &&
	       find(&words->status, device);
}

static bool find_args(struct rx_dev_args *args, int device)
{
	bool found = find(&args->abort, device) && find(&args->status, device) &&
		     find(&args->blocks, device) && find(&args->counts, device);

	for (uint32_t i = 0; i < args->n_launches && found; i++)
		found = find(&args->sync[i], device);
	for (uint32_t i = 0; i < args->n_ranks && found; i++)
		found = find(&args->send[i], device) && find(&args->recv[i], device) &&
			find(&args->slot[i], device) && find(&args->done[i], device);
	return found;
}

/* Others than those known here: whatever is an address of memory. */
static void find_all(unsigned char *args, size_t bytes, int device)
{
	for (size_t at = 0; at + 8 <= bytes; at += 8) {
		uint64_t address = 0;
		void *memory = NULL;

		memcpy(&address, args + at, sizeof(address));
		memory = emu_reach(address, 1, device);
		if (memory)
			memcpy(args + at, &memory, sizeof(memory));
	}
}

static void nap_ms(uint32_t ms)
{
	(void)nanosleep(
		&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* Until its first word is not 0, or the process ends. */
static void be_stuck(const struct rx_dev_words *words, int device)
{
	const _Atomic uint64_t *until = (const _Atomic uint64_t *)words->wait;

	while (!emu_lost(device) && (!until || atomic_load(until) == 0))
		nap_ms(1);
}

static void run_special(const char *name, void *args, int device)
{
	if (name == special[0] && find_words(args, device))
		be_stuck(args, device);
	else
		emu_lose(device, EMU_ILLEGAL_ADDRESS);
}

static void run_on_cpu(const struct emu_work *work, void *args)
{
	gpu_cpu_fn kernel = NULL;

	memcpy(&kernel, &work->object, sizeof(kernel));
	gpu_cpu_run(kernel, args, work->n_blocks, work->n_threads);
}

void emu_kernel_run(const struct emu_work *work, int device)
{
	union {
		unsigned char bytes[sizeof(work->args)];
		struct rx_dev_args args;
		struct rx_dev_words words;
	} own;
	bool found = true;

	memcpy(own.bytes, work->args, sizeof(own.bytes));
	if (is_special(work->object)) {
		run_special(work->object, &own, device);
		return;
	}
	if (emu_fault("lost", device))
		emu_lose(device, EMU_LAUNCH_FAILED);
	if (work->args_bytes == sizeof(struct rx_dev_args)) {
		if (emu_fault("stuck", device))
			be_stuck(&(struct rx_dev_words){0}, device);
		if (emu_fault("slow", device))
			nap_ms(300);
		found = find_args(&own.args, device);
		if (emu_fault("args", device))
			own.args.abi = RX_DEV_ABI + 1;
	} else if (work->args_bytes == sizeof(struct rx_dev_words)) {
		found = find_words(&own.words, device);
	} else {
		find_all(own.bytes, work->args_bytes, device);
	}
	if (!found)
		emu_lose(device, EMU_ILLEGAL_ADDRESS);
	if (!emu_lost(device))
		run_on_cpu(work, &own);
}
