/* SPDX-License-Identifier: MIT */
/*
 * The peer's side of bench.sh: collectives of MPI with floats, measured exactly as rcclx-perf
 * measures its own. Sizes mean the same, every call is timed on every rank, the slowest rank
 * counts, ranks are pinned to core (rank mod cores), and results are checked. One JSON object per
 * size.
 *
 * Usage: mpi_coll [--touch] {COLLECTIVE SIZE...}...
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_WARMUP       5
#define BUDGET_US      80000.0
#define ITERATIONS_MIN 20
#define ITERATIONS_MAX 20000
#define PAGE           4096u
#define CACHE_LINE     64u
#define ROOT           0

struct job {
	int rank;
	int n_ranks;
	bool touch;
	float *in;
	float *out;
	/* Of the size that is measured. */
	int count;      /* as the call takes it */
	size_t n_bytes; /* in the larger of the two messages */
	size_t in_bytes;
	size_t out_bytes;
};

struct coll {
	const char *name;
	bool blocks;   /* the size is that of a block per rank together */
	bool in_block; /* what a rank sends is one block */
	bool out_block;
	void (*call)(const struct job *job);
	/* What element i of the result is, when rank r sends r + 1 everywhere. */
	double (*expect)(const struct job *job, size_t i);
};

static void call_allreduce(const struct job *job)
{
	MPI_Allreduce(job->in, job->out, job->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void call_allgather(const struct job *job)
{
	MPI_Allgather(
		job->in, job->count, MPI_FLOAT, job->out, job->count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void call_reduce_scatter(const struct job *job)
{
	MPI_Reduce_scatter_block(job->in, job->out, job->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void call_alltoall(const struct job *job)
{
	MPI_Alltoall(
		job->in, job->count, MPI_FLOAT, job->out, job->count, MPI_FLOAT, MPI_COMM_WORLD);
}

/* In place is all that MPI has: beside it goes rcclx-perf broadcast --in-place. */
static void call_bcast(const struct job *job)
{
	MPI_Bcast(job->rank == ROOT ? job->in : job->out, job->count, MPI_FLOAT, ROOT,
		MPI_COMM_WORLD);
}

static void call_reduce(const struct job *job)
{
	MPI_Reduce(job->in, job->out, job->count, MPI_FLOAT, MPI_SUM, ROOT, MPI_COMM_WORLD);
}

static double expect_sum(const struct job *job, size_t i)
{
	(void)i;
	return job->n_ranks * (job->n_ranks + 1) / 2.0;
}

static double expect_block(const struct job *job, size_t i)
{
	return (double)(i / (size_t)job->count) + 1;
}

static double expect_root(const struct job *job, size_t i)
{
	(void)job;
	(void)i;
	return ROOT + 1;
}

static const struct coll colls[] = {
	{"all_reduce", false, false, false, call_allreduce, expect_sum},
	{"all_gather", true, true, false, call_allgather, expect_block},
	{"reduce_scatter", true, false, true, call_reduce_scatter, expect_sum},
	{"all_to_all", true, false, false, call_alltoall, expect_block},
	{"broadcast", false, false, false, call_bcast, expect_root},
	{"reduce", false, false, false, call_reduce, expect_sum},
};

static void die(const char *what, const char *name)
{
	fprintf(stderr, "mpi_coll: %s: %s\n", what, name);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	exit(EXIT_FAILURE);
}

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
		perror("mpi_coll: not pinned");
}

/* As rcclx-perf --touch: a byte of each line of the last result read, of the input written. */
static void touch(const struct job *job)
{
	volatile unsigned char *in = (volatile unsigned char *)job->in;
	volatile unsigned char *out = (volatile unsigned char *)job->out;

	for (size_t i = 0; i < job->out_bytes; i += CACHE_LINE)
		(void)out[i];
	for (size_t i = 0; i < job->in_bytes; i += CACHE_LINE)
		in[i] = in[i];
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Times @n calls; afterwards us[i] is the slowest rank's time of call i, on all ranks. */
static void time_calls(const struct coll *coll, const struct job *job, double *us, int n)
{
	for (int i = 0; i < n; i++) {
		double start = 0;

		if (job->touch)
			touch(job);
		start = now_us();
		coll->call(job);
		us[i] = now_us() - start;
	}
	MPI_Allreduce(MPI_IN_PLACE, us, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	qsort(us, (size_t)n, sizeof(*us), by_value);
}

static int iterations(double us_per_call)
{
	double n = us_per_call > 0 ? BUDGET_US / us_per_call : ITERATIONS_MAX;

	if (n < ITERATIONS_MIN)
		return ITERATIONS_MIN;
	return n > ITERATIONS_MAX ? ITERATIONS_MAX : (int)n;
}

/* Reduce leaves a result on the root only; the root of a broadcast has it already. */
static bool has_result(const struct coll *coll, const struct job *job)
{
	if (coll->call == call_reduce)
		return job->rank == ROOT;
	return coll->call != call_bcast || job->rank != ROOT;
}

static void check(const struct coll *coll, const struct job *job)
{
	for (size_t i = 0; has_result(coll, job) && i < job->out_bytes / sizeof(float); i++)
		if (job->out[i] != (float)coll->expect(job, i))
			die("wrong result", coll->name);
}

static void set_size(const struct coll *coll, struct job *job, size_t bytes)
{
	size_t elements = bytes / sizeof(float), n = (size_t)job->n_ranks, block = elements / n;

	job->count = (int)(coll->blocks ? block : elements);
	job->n_bytes = (coll->blocks ? block * n : elements) * sizeof(float);
	job->in_bytes = coll->in_block ? block * sizeof(float) : job->n_bytes;
	job->out_bytes = coll->out_block ? block * sizeof(float) : job->n_bytes;
}

static float *new_buffer(size_t bytes)
{
	float *buffer = aligned_alloc(PAGE, (bytes + PAGE) / PAGE * PAGE);

	if (!buffer)
		die("no memory", "buffers");
	return buffer;
}

static void measure(const struct coll *coll, struct job *job, size_t bytes)
{
	static double us[ITERATIONS_MAX];
	int n = 0;

	set_size(coll, job, bytes);
	job->in = new_buffer(job->in_bytes);
	job->out = new_buffer(job->out_bytes);
	for (size_t i = 0; i < job->in_bytes / sizeof(float); i++)
		job->in[i] = (float)(job->rank + 1);
	memset(job->out, 0, job->out_bytes);
	time_calls(coll, job, us, N_WARMUP);
	n = iterations(us[N_WARMUP / 2]);
	time_calls(coll, job, us, n);
	check(coll, job);
	free(job->in);
	free(job->out);
	if (job->rank > 0)
		return;
	printf("{\"collective\": \"%s\", \"bytes\": %zu, \"dtype\": \"float32\", \"ranks\": %d, "
	       "\"touch\": %s, \"time_us_p50\": %.3f, \"time_us_p99\": %.3f}\n",
		coll->name, job->n_bytes, job->n_ranks, job->touch ? "true" : "false", us[n / 2],
		us[(size_t)n * 99 / 100]);
	fflush(stdout);
}

static const struct coll *find(const char *name)
{
	for (size_t i = 0; i < sizeof(colls) / sizeof(*colls); i++)
		if (strcmp(colls[i].name, name) == 0)
			return &colls[i];
	die("no such collective", name);
	return NULL;
}

int main(int argc, char **argv)
{
	struct job job = {0};
	const struct coll *coll = NULL;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &job.n_ranks);
	pin(job.rank);
	for (int i = 1; i < argc; i++) {
		char *end = NULL;
		unsigned long long bytes = strtoull(argv[i], &end, 10);

		if (strcmp(argv[i], "--touch") == 0)
			job.touch = true;
		else if (*end)
			coll = find(argv[i]);
		else if (!coll)
			die("a collective comes before its sizes", argv[i]);
		else
			measure(coll, &job, bytes);
	}
	MPI_Finalize();
	return EXIT_SUCCESS;
}
