/* SPDX-License-Identifier: MIT */
/*
 * Two ranks whose inline kernels come one behind the other, of all algorithms, with messages that
 * need one round or several. Built with ThreadSanitizer by mutations.sh, whole and with marks and
 * slots that are broken on purpose.
 */
#include "../../kernels/device/inline.hip"
#include "gpu_cpu.h"

#include <pthread.h>
#include <stdio.h>

#define N_RANKS    2u
#define MAX_COUNT  9000u /* of which a region has room for a part */
#define SLOT_BYTES RX_INL_SLOT_MIN(N_RANKS)
#define N_CALLS    12u

static struct {
	struct rx_inl_mem mem;
	uint8_t slots[2 * SLOT_BYTES];
} mem_of[N_RANKS] __attribute__((aligned(256)));
static struct rx_inl_page page = {.wait_ticks = 2000000000};
static struct rx_inl_line line_of[N_RANKS];
static uint32_t send_of[N_RANKS][MAX_COUNT];
static uint32_t recv_of[N_RANKS][N_RANKS * MAX_COUNT];
static bool wrong;

static void run_copy(const void *args)
{
	rx_inl_copy(*(const struct rx_inl_args *)args);
}

static void run_fold(const void *args)
{
	rx_inl_u32(*(const struct rx_inl_args *)args);
}

static void call(uint32_t rank, uint32_t coll, uint32_t algorithm, uint32_t count, uint32_t value)
{
	struct rx_inl_args args = {
		.abi = RX_INL_ABI,
		.coll = (uint8_t)coll,
		.dtype = RX_UINT32,
		.algorithm = (uint8_t)algorithm,
		.n_ranks = N_RANKS,
		.elem_bytes = 4,
		.count = count,
		.local = 1u << rank,
		.slot_bytes = SLOT_BYTES,
		.page = &page,
		.mem = {&mem_of[0].mem, &mem_of[1].mem},
	};

	args.send[rank] = send_of[rank];
	args.recv[rank] = recv_of[rank];
	args.line[rank] = &line_of[rank];
	for (uint32_t i = 0; i < count; i++)
		send_of[rank][i] = value + rank;
	gpu_cpu_run(coll == RX_ALL_REDUCE ? run_fold : run_copy, &args, 2, 2);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = coll == RX_ALL_REDUCE ? 2 * value + 1 : value;

		if (recv_of[rank][i] != first ||
			(coll == RX_ALL_GATHER && recv_of[rank][count + i] != value + 1))
			__atomic_store_n(&wrong, true, __ATOMIC_RELAXED);
	}
}

static void *run_rank(void *arg)
{
	uint32_t rank = *(const uint32_t *)arg;

	for (uint32_t i = 0; i < N_CALLS; i++) {
		uint32_t count = i % 4 == 3 ? MAX_COUNT : 300;

		call(rank, i % 3 ? RX_ALL_REDUCE : RX_ALL_GATHER,
			i % 3 == 2 ? RX_INL_TWO_SHOT : RX_INL_FLAT, count, 10 * i);
		if (i % 2)
			call(rank, RX_ALL_REDUCE, RX_INL_WORDS, count, 10 * i + 5);
	}
	return NULL;
}

int main(void)
{
	static uint32_t ranks[N_RANKS] = {0, 1};
	pthread_t threads[N_RANKS];

	for (uint32_t r = 0; r < N_RANKS; r++) {
		if (pthread_create(&threads[r], NULL, run_rank, &ranks[r]) != 0)
			return 2;
	}
	for (uint32_t r = 0; r < N_RANKS; r++)
		(void)pthread_join(threads[r], NULL);
	wrong |= line_of[0].status || line_of[1].status;
	printf("results are %s\n", wrong ? "wrong" : "right");
	return wrong ? 3 : 0;
}
