/* SPDX-License-Identifier: MIT */
/*
 * What the machine's memory allows: each of some cores copies a buffer of its own at the same time,
 * through the cache and past it. One JSON object per way and number of cores; gbs counts each
 * copied byte once, though it is read and written.
 *
 * Usage: copy_bandwidth [bytes per core, default 64 MiB]
 */
#include "../../kernels/host/copy.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define N_COPIES  21
#define CORES_MAX 2
#define ALIGNMENT (2ul << 20) /* of huge pages */

struct worker {
	pthread_t thread;
	pthread_barrier_t *barrier;
	int core;
	uint64_t bytes;
	bool stream;
	double us[N_COPIES];
};

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void *new_buffer(uint64_t bytes)
{
	void *buffer = aligned_alloc(ALIGNMENT, rx_align_up(bytes, ALIGNMENT));

	if (!buffer) {
		fprintf(stderr, "copy_bandwidth: no memory\n");
		exit(EXIT_FAILURE);
	}
	(void)madvise(buffer, bytes, MADV_HUGEPAGE);
	memset(buffer, 1, bytes);
	return buffer;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	void *src = NULL, *dst = NULL;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)worker->core, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0)
		fprintf(stderr, "copy_bandwidth: not pinned\n");
	src = new_buffer(worker->bytes);
	dst = new_buffer(worker->bytes);
	for (int i = 0; i < N_COPIES; i++) {
		double start = 0;

		(void)pthread_barrier_wait(worker->barrier);
		start = now_us();
		rx_copy(dst, src, worker->bytes, worker->stream);
		worker->us[i] = now_us() - start;
	}
	free(src);
	free(dst);
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(int n_cores, uint64_t bytes, bool stream)
{
	static struct worker workers[CORES_MAX];
	pthread_barrier_t barrier;
	double us[N_COPIES] = {0};

	(void)pthread_barrier_init(&barrier, NULL, (unsigned int)n_cores);
	for (int i = 0; i < n_cores; i++) {
		workers[i] = (struct worker){
			.barrier = &barrier, .core = i, .bytes = bytes, .stream = stream};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
			fprintf(stderr, "copy_bandwidth: no thread\n");
			exit(EXIT_FAILURE);
		}
	}
	for (int i = 0; i < n_cores; i++) {
		(void)pthread_join(workers[i].thread, NULL);
		for (int k = 0; k < N_COPIES; k++)
			us[k] = workers[i].us[k] > us[k] ? workers[i].us[k] : us[k];
	}
	(void)pthread_barrier_destroy(&barrier);
	qsort(us, N_COPIES, sizeof(*us), by_value);
	printf("{\"collective\": \"copy\", \"ranks\": %d, \"bytes\": %llu, \"stream\": %s, "
	       "\"time_us_p50\": %.3f, \"gbs\": %.3f}\n",
		n_cores, (unsigned long long)bytes, stream ? "true" : "false", us[N_COPIES / 2],
		(double)bytes * n_cores / us[N_COPIES / 2] / 1e3);
}

int main(int argc, char **argv)
{
	uint64_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 64ull << 20;
	long n_cores = sysconf(_SC_NPROCESSORS_ONLN);

	for (int cores = 1; cores <= CORES_MAX && cores <= n_cores; cores++) {
		measure(cores, bytes, false);
		measure(cores, bytes, true);
	}
	return EXIT_SUCCESS;
}
