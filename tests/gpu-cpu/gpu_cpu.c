/* SPDX-License-Identifier: MIT */
#include "gpu_cpu.h"
#include "../../kernels/device/device.h"

#include <pthread.h>
#include <sched.h>
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
};

struct cpu_thread {
	struct cpu_block *block;
	uint32_t index;
	pthread_t id;
};

static _Thread_local const struct cpu_thread *self;

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

static void *run_thread(void *arg)
{
	self = arg;
	self->block->grid->kernel(self->block->grid->args);
	return NULL;
}

static void give_up(const char *what)
{
	fprintf(stderr, "gpu_cpu: %s\n", what);
	abort();
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
