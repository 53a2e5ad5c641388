/* SPDX-License-Identifier: MIT */
/*
 * The peer's side of bench.sh: MPI_Allreduce of floats, measured exactly as rcclx-perf measures.
 * Every call is timed on every rank, the slowest rank counts, ranks are pinned to core
 * (rank mod cores). One JSON object per size.
 *
 * Usage: mpi_allreduce [largest size in bytes, default 64 MiB]
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SMALLEST       8u
#define N_WARMUP       5
#define BUDGET_US      80000.0
#define ITERATIONS_MIN 20
#define ITERATIONS_MAX 20000
#define PAGE           4096u

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void pin(int rank)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)(rank % sysconf(_SC_NPROCESSORS_ONLN)), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("mpi_allreduce: not pinned");
}

/* Times @n calls; afterwards us[i] is the slowest rank's time of call i, on all ranks. */
static void time_calls(const float *in, float *out, int count, double *us, int n)
{
	for (int i = 0; i < n; i++) {
		double start = now_us();

		MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		us[i] = now_us() - start;
	}
	MPI_Allreduce(MPI_IN_PLACE, us, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	qsort(us, (size_t)n, sizeof(*us), by_value);
}

static int iterations(double us_per_call)
{
	double n = BUDGET_US / us_per_call;

	if (n < ITERATIONS_MIN)
		return ITERATIONS_MIN;
	return n > ITERATIONS_MAX ? ITERATIONS_MAX : (int)n;
}

static void measure(const float *in, float *out, size_t bytes, int rank, int n_ranks)
{
	static double us[ITERATIONS_MAX];
	int count = (int)(bytes / sizeof(float));
	int n = 0;

	memset(out, 0, bytes);
	time_calls(in, out, count, us, N_WARMUP);
	n = iterations(us[N_WARMUP / 2]);
	time_calls(in, out, count, us, n);
	for (int i = 0; i < count; i++) {
		if (out[i] != (float)n_ranks) {
			fprintf(stderr, "mpi_allreduce: rank %d: wrong result\n", rank);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	if (rank > 0)
		return;
	printf("{\"bytes\": %zu, \"ranks\": %d, \"time_us_p50\": %.2f, \"time_us_p99\": %.2f}\n",
		bytes, n_ranks, us[n / 2], us[(size_t)n * 99 / 100]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	size_t largest = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)64 << 20;
	int rank = 0, n_ranks = 0;
	float *in = NULL, *out = NULL;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
	pin(rank);
	largest = (largest + PAGE - 1) / PAGE * PAGE;
	in = aligned_alloc(PAGE, largest);
	out = aligned_alloc(PAGE, largest);
	if (!in || !out) {
		fprintf(stderr, "mpi_allreduce: no memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < largest / sizeof(float); i++)
		in[i] = 1;
	for (size_t bytes = SMALLEST; bytes <= largest; bytes *= 2)
		measure(in, out, bytes, rank, n_ranks);
	free(in);
	free(out);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
