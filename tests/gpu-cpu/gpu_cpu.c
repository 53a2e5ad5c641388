/* SPDX-License-Identifier: MIT */
#include "gpu_cpu.h"
#include "../../kernels/device/device.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct cpu_grid {
	gpu_cpu_fn kernel;
	const void *args;
	uint32_t n_blocks;
	uint32_t n_threads;
};

struct cpu_block {
	const struct cpu_grid *grid;
	uint32_t index;
	pthread_barrier_t barrier;
	struct dev_shared shared;
	uint64_t more[64];
};

struct cpu_thread {
	struct cpu_block *block;
	uint32_t index;
	uint32_t n_told;
	_Atomic uint32_t told; /* how often this thread has said something to its group */
	uint32_t said[2];      /* the last two times */
	pthread_t id;
};

static _Thread_local struct cpu_thread *self;

static void give_up(const char *what)
{
	fprintf(stderr, "gpu_cpu: %s\n", what);
	abort();
}

uint32_t rx_cpu_thread(void)
{
	return self->index;
}

uint32_t rx_cpu_n_threads(void)
{
	return self->block->grid->n_threads;
}

uint32_t rx_cpu_block(void)
{
	return self->block->index;
}

uint32_t rx_cpu_n_blocks(void)
{
	return self->block->grid->n_blocks;
}

void rx_cpu_meet_block(void)
{
	if (self->block->grid->n_threads > 1)
		(void)pthread_barrier_wait(&self->block->barrier);
}

struct dev_shared *rx_cpu_shared(void)
{
	return &self->block->shared;
}

void *rx_cpu_shared_more(size_t bytes)
{
	if (bytes > sizeof(self->block->more))
		give_up("no room for what threads share");
	return self->block->more;
}

uint64_t rx_cpu_clock(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whoever is waited for needs a core, which the waiting threads may all have. */
void rx_cpu_pause(void)
{
	static _Thread_local uint32_t n_pauses;
	struct timespec nap = {0, 20000};

	if (++n_pauses % 8)
		(void)sched_yield();
	else
		(void)nanosleep(&nap, NULL);
}

/* Who has said this has read all that was said before: two places do. */
uint32_t rx_cpu_group_max(uint32_t v, uint32_t width)
{
	struct cpu_thread *group = self - self->index % width;
	uint32_t turn = ++self->n_told;
	uint32_t max = 0;

	self->said[turn % 2] = v;
	atomic_store_explicit(&self->told, turn, memory_order_release);
	for (uint32_t i = 0; i < width; i++) {
		while ((int32_t)(atomic_load_explicit(&group[i].told, memory_order_acquire) -
				 turn) < 0)
			rx_cpu_pause();
		if (group[i].said[turn % 2] > max)
			max = group[i].said[turn % 2];
	}
	return max;
}

static void *run_thread(void *arg)
{
	self = arg;
	self->block->grid->kernel(self->block->grid->args);
	return NULL;
}

void gpu_cpu_run(gpu_cpu_fn kernel, const void *args, uint32_t n_blocks, uint32_t n_threads)
{
	struct cpu_grid grid = {kernel, args, n_blocks, n_threads};
	struct cpu_block *blocks = calloc(n_blocks, sizeof(*blocks));
	struct cpu_thread *threads = calloc((size_t)n_blocks * n_threads, sizeof(*threads));

	if (!blocks || !threads)
		give_up("no memory");
	for (uint32_t b = 0; b < n_blocks; b++) {
		blocks[b].grid = &grid;
		blocks[b].index = b;
		if (pthread_barrier_init(&blocks[b].barrier, NULL, n_threads) != 0)
			give_up("no barrier");
	}
	for (uint32_t i = 0; i < n_blocks * n_threads; i++) {
		threads[i].block = &blocks[i / n_threads];
		threads[i].index = i % n_threads;
		if (pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) != 0)
			give_up("no thread");
	}
	for (uint32_t i = 0; i < n_blocks * n_threads; i++)
		(void)pthread_join(threads[i].id, NULL);
	for (uint32_t b = 0; b < n_blocks; b++)
		(void)pthread_barrier_destroy(&blocks[b].barrier);
	free(threads);
	free(blocks);
}
