/* SPDX-License-Identifier: MIT */
/* The kernel that backend.c needs, for a machine with nvcc alone. */
#include "../../kernels/device/device_abi.h"

static __device__ void put(uint64_t *word, uint64_t value)
{
	asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

static __device__ uint64_t get(const uint64_t *word)
{
	uint64_t value;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
	return value;
}

extern "C" __global__ void rx_words(struct rx_dev_words words)
{
	uint64_t start = 0;
	uint64_t now = 0;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	if (words.first)
		put(words.first, words.first_value);
	while (words.wait && get(words.wait) != words.wait_value) {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
		if (now - start > words.wait_ticks)
			break;
	}
	if (words.last)
		put(words.last, words.last_value);
}
