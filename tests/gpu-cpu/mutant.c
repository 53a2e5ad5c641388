/* SPDX-License-Identifier: MIT */
/*
 * Two launches that gather through slots, add up in low precision, in rounds, and gather straight
 * from each other's send, which they write again as soon as their launch has ended. Built with
 * ThreadSanitizer by mutations.sh, whole and with barriers that are broken on purpose.
 */
#include "../../kernels/device/copy.hip"
#include "../../kernels/device/mx.hip"
#include "gpu_cpu.h"

#include <pthread.h>
#include <stdio.h>

#define COUNT      64u
#define SUMS       1000u /* of which a slot has room for a part */
#define SLOT_BYTES RX_DEV_SLOT_MIN(2)
#define N_ROUNDS   4

static struct rx_dev_sync sync_of[2];
static uint8_t slot_of[2][RX_DEV_SLOT_TOTAL(SLOT_BYTES)] __attribute__((aligned(64)));
static uint32_t send_of[2][COUNT];
static uint32_t recv_of[2][2 * COUNT];
static float term_of[2][SUMS];
static float sum_of[2][SUMS];
static bool wrong;

static void run_copy(const void *args)
{
	rx_copy(*(const struct rx_dev_args *)args);
}

static void run_mx(const void *args)
{
	rx_mx_f32(*(const struct rx_dev_args *)args);
}

static void gather(uint32_t rank, uint8_t algorithm, uint32_t flags, uint32_t value)
{
	struct rx_dev_args args = {
		.abi = RX_DEV_ABI,
		.coll = RX_ALL_GATHER,
		.dtype = RX_UINT32,
		.algorithm = algorithm,
		.flags = flags,
		.n_ranks = 2,
		.launch = rank,
		.n_launches = 2,
		.elem_bytes = 4,
		.count = COUNT,
		.local = 1ull << rank,
		.slot_bytes = SLOT_BYTES,
		.sync = {&sync_of[0], &sync_of[1]},
		.send = {send_of[0], send_of[1]},
		.recv = {recv_of[0], recv_of[1]},
		.slot = {slot_of[0], slot_of[1]},
	};

	for (uint32_t i = 0; i < COUNT; i++)
		send_of[rank][i] = value + rank;
	gpu_cpu_run(run_copy, &args, 1, 2);
	for (uint32_t i = 0; i < 2 * COUNT; i++) {
		if (recv_of[rank][i] != value + i / COUNT)
			__atomic_store_n(&wrong, true, __ATOMIC_RELAXED);
	}
}

static void add_up(uint32_t rank, float value)
{
	struct rx_dev_args args = {
		.abi = RX_DEV_ABI,
		.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.algorithm = RX_DEV_TREE,
		.n_ranks = 2,
		.launch = rank,
		.n_launches = 2,
		.elem_bytes = 4,
		.count = SUMS,
		.local = 1ull << rank,
		.slot_bytes = SLOT_BYTES,
		.sync = {&sync_of[0], &sync_of[1]},
		.send = {term_of[0], term_of[1]},
		.recv = {sum_of[0], sum_of[1]},
		.slot = {slot_of[0], slot_of[1]},
	};

	for (uint32_t i = 0; i < SUMS; i++)
		term_of[rank][i] = value;
	gpu_cpu_run(run_mx, &args, 1, 8);
	for (uint32_t i = 0; i < SUMS; i++) {
		if (sum_of[rank][i] != 2 * value)
			__atomic_store_n(&wrong, true, __ATOMIC_RELAXED);
	}
}

static void *run_rank(void *arg)
{
	uint32_t rank = *(const uint32_t *)arg;

	for (uint32_t i = 0; i < N_ROUNDS; i++) {
		gather(rank, RX_DEV_FLAT, 0, 10 * i);
		add_up(rank, (float)(i + 1));
		gather(rank, RX_DEV_DIRECT, RX_DEV_ENTRY | RX_DEV_EXIT, 10 * i + 5);
	}
	return NULL;
}

int main(void)
{
	static uint32_t ranks[2] = {0, 1};
	pthread_t threads[2];

	for (uint32_t r = 0; r < 2; r++) {
		if (pthread_create(&threads[r], NULL, run_rank, &ranks[r]) != 0)
			return 2;
	}
	for (uint32_t r = 0; r < 2; r++)
		(void)pthread_join(threads[r], NULL);
	printf("results are %s\n", wrong ? "wrong" : "right");
	return wrong ? 3 : 0;
}
