/* SPDX-License-Identifier: MIT */
#include "gpu_words.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define N_SLOTS 128u

struct slot {
	_Atomic uint64_t done[RX_GPU_DEVICES_MAX];
	_Atomic uint64_t status; /* the low half is written by kernels */
	_Atomic uint64_t abort;  /* the low half is read by them */
	uint64_t pad[6];         /* slots do not share cache lines */
};

struct gpu_words {
	struct slot *slots;
	uint64_t address; /* as devices see them; 0: not registered yet */
	bool used[N_SLOTS];
	uint32_t next; /* where to look for a free one */
};

#define SLOTS_BYTES rx_align_up(N_SLOTS * sizeof(struct slot), 4096)

struct gpu_words *gpu_words_new(void)
{
	struct gpu_words *words = calloc(1, sizeof(*words));

	if (!words)
		return NULL;
	words->slots =
		mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (words->slots == MAP_FAILED) {
		free(words);
		return NULL;
	}
	return words;
}

struct gpu_words *gpu_words_free(struct gpu_words *words, struct gpu *gpu)
{
	if (!words)
		return NULL;
	if (words->address && gpu)
		(void)gpu_ops(gpu)->host_unregister(gpu_runtime(gpu), words->slots, NULL);
	if (!words->address || gpu)
		(void)munmap(words->slots, SLOTS_BYTES);
	free(words);
	return NULL;
}

uint32_t gpu_words_take(struct gpu_words *words)
{
	for (uint32_t i = 0; i < N_SLOTS; i++) {
		uint32_t slot = (words->next + i) % N_SLOTS;

		if (words->used[slot])
			continue;
		words->used[slot] = true;
		words->next = slot + 1;
		memset(&words->slots[slot], 0, sizeof(words->slots[slot]));
		return slot;
	}
	return UINT32_MAX;
}

static int find(struct gpu *gpu, const void *word, uint64_t *address_p, struct rx_gpu_error *error)
{
	struct gpu_words *words = gpu_words(gpu);
	int r = 0;

	if (!words->address)
		r = gpu_ops(gpu)->host_register(
			gpu_runtime(gpu), words->slots, SLOTS_BYTES, &words->address, error);
	if (r == 0)
		*address_p = words->address +
			     (uint64_t)((const char *)word - (const char *)words->slots);
	return r;
}

int gpu_words_address(struct gpu *gpu, uint32_t slot, uint32_t device, uint64_t *address_p,
	struct rx_gpu_error *error)
{
	return find(gpu, &gpu_words(gpu)->slots[slot].done[device], address_p, error);
}

int gpu_words_status(
	struct gpu *gpu, uint32_t slot, uint64_t *address_p, struct rx_gpu_error *error)
{
	return find(gpu, &gpu_words(gpu)->slots[slot].status, address_p, error);
}

int gpu_words_abort_address(
	struct gpu *gpu, uint32_t slot, uint64_t *address_p, struct rx_gpu_error *error)
{
	return find(gpu, &gpu_words(gpu)->slots[slot].abort, address_p, error);
}

void gpu_words_abort(struct gpu *gpu, uint32_t slot)
{
	atomic_store_explicit(&gpu_words(gpu)->slots[slot].abort, 1, memory_order_relaxed);
}

uint32_t gpu_words_complaint(struct gpu *gpu, uint32_t slot)
{
	return (uint32_t)atomic_load_explicit(
		&gpu_words(gpu)->slots[slot].status, memory_order_relaxed);
}

void gpu_words_again(struct gpu *gpu, uint32_t slot)
{
	for (uint32_t i = 0; i < RX_GPU_DEVICES_MAX; i++)
		atomic_store_explicit(
			&gpu_words(gpu)->slots[slot].done[i], 0, memory_order_relaxed);
}

bool gpu_words_is_done(struct gpu *gpu, uint32_t slot, uint32_t device)
{
	/* Acquire: what the device wrote before, in host memory, is seen afterwards. */
	return atomic_load_explicit(
		       &gpu_words(gpu)->slots[slot].done[device], memory_order_acquire) != 0;
}

uint32_t gpu_words_put(struct gpu *gpu, uint32_t slot)
{
	struct gpu_words *words = gpu_words(gpu);

	words->used[slot] = false;
	return (uint32_t)atomic_load_explicit(&words->slots[slot].status, memory_order_relaxed);
}
