/* SPDX-License-Identifier: MIT */
/*
 * How fast is the host reduction? GB/s of input and output together, beside a memcpy of the same
 * size counted the same way.
 *
 * bench_reduce [--op NAME] [--n-src N] [--n-dst N] [--stream] [--isa NAME] [--dtype NAME]
 */
#include "../../kernels/host/reduce.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_BYTES (64ull << 20)
#define MIN_NS    20000000u
#define N_TRIES   3

struct options {
	int op;
	int dtype; /* -1: all */
	int isa;   /* -1: all */
	uint32_t n_src;
	uint32_t n_dst;
	bool stream;
};

struct buffers {
	void *src[RX_MAX_RANKS];
	void *dst[RX_MAX_RANKS];
};

typedef void (*work_fn)(const void *arg);

struct reduce_work {
	enum rx_isa isa;
	struct rx_reduce_args args;
};

struct copy_work {
	void *dst;
	const void *src;
	uint64_t bytes;
	bool stream;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double time_of(work_fn work, const void *arg, uint64_t n_rounds)
{
	uint64_t start = now_ns();

	for (uint64_t i = 0; i < n_rounds; i++)
		work(arg);
	return (double)(now_ns() - start);
}

/* Nanoseconds per call, the best of a few tries. */
static double measure(work_fn work, const void *arg)
{
	uint64_t n_rounds = 1;
	double best = 0;

	while (time_of(work, arg, n_rounds) < MIN_NS / 2)
		n_rounds *= 2;
	for (int i = 0; i < N_TRIES; i++) {
		double ns = time_of(work, arg, n_rounds) / (double)n_rounds;

		if (i == 0 || ns < best)
			best = ns;
	}
	return best;
}

static void do_reduce(const void *arg)
{
	const struct reduce_work *work = arg;

	rx_reduce_with(work->isa, &work->args);
}

static void do_copy(const void *arg)
{
	const struct copy_work *work = arg;

	rx_copy(work->dst, work->src, work->bytes, work->stream);
}

static void *buffer(uint64_t bytes)
{
	void *at = NULL;

	if (posix_memalign(&at, 4096, bytes)) {
		(void)fprintf(stderr, "bench_reduce: out of memory\n");
		exit(1);
	}
	memset(at, 0, bytes);
	return at;
}

static void bench(const struct options *o, const struct buffers *b, enum rx_isa isa, uint32_t dtype,
	uint64_t bytes)
{
	uint64_t scalars[RX_MAX_RANKS] = {0};
	struct reduce_work work = {
		.isa = isa,
		.args = {.src = (const void *const *)b->src,
			.n_src = o->n_src,
			.dst = b->dst,
			.n_dst = o->n_dst,
			.count = bytes / rx_dtype_size(dtype),
			.dtype = (uint8_t)dtype,
			.op = (uint8_t)o->op,
			.stream = o->stream,
			.n_avg = o->n_src,
			.scalars = scalars},
	};
	double ns = measure(do_reduce, &work);

	printf("%-11s %-7s %10llu %12.1f ns %8.2f GB/s\n", rx_dtype_name(dtype), rx_isa_name(isa),
		(unsigned long long)bytes, ns, (double)bytes * (o->n_src + o->n_dst) / ns);
}

static void bench_copy(const struct options *o, const struct buffers *b, uint64_t bytes)
{
	struct copy_work work = {b->dst[0], b->src[0], bytes, o->stream};
	double ns = measure(do_copy, &work);

	printf("%-11s %-7s %10llu %12.1f ns %8.2f GB/s\n", "copy", "-", (unsigned long long)bytes,
		ns, (double)bytes * 2 / ns);
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"op", required_argument, NULL, 'o'},
		{"n-src", required_argument, NULL, 's'},
		{"n-dst", required_argument, NULL, 'd'},
		{"stream", no_argument, NULL, 'n'},
		{"isa", required_argument, NULL, 'i'},
		{"dtype", required_argument, NULL, 't'},
		{NULL, 0, NULL, 0},
	};

	for (int c = 0; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
		if (c == 'o')
			o->op = rx_redop_parse(optarg);
		else if (c == 's')
			o->n_src = (uint32_t)strtoul(optarg, NULL, 10);
		else if (c == 'd')
			o->n_dst = (uint32_t)strtoul(optarg, NULL, 10);
		else if (c == 'n')
			o->stream = true;
		else if (c == 't')
			o->dtype = rx_dtype_parse(optarg);
		else if (c == 'i')
			for (int isa = 0; isa < RX_ISA_N; isa++)
				o->isa = strcmp(rx_isa_name((enum rx_isa)isa), optarg) ? o->isa
										       : isa;
		else
			exit(2);
	}
	if (o->op < 0 || o->n_src < 1 || o->n_src > RX_MAX_RANKS || o->n_dst < 1 ||
		o->n_dst > RX_MAX_RANKS || optind != argc) {
		(void)fprintf(stderr, "bench_reduce: bad option value\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static const uint64_t sizes[] = {8, 64, 1000, 8192, 262144, 4u << 20, MAX_BYTES};
	struct options o = {.op = RX_SUM, .dtype = -1, .isa = -1, .n_src = 2, .n_dst = 1};
	struct buffers b = {{NULL}, {NULL}};

	parse(argc, argv, &o);
	for (uint32_t i = 0; i < o.n_src; i++)
		b.src[i] = buffer(MAX_BYTES);
	for (uint32_t i = 0; i < o.n_dst; i++)
		b.dst[i] = buffer(MAX_BYTES);
	for (size_t s = 0; s < RX_ARRAY_SIZE(sizes); s++) {
		bench_copy(&o, &b, sizes[s]);
		for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
			for (int isa = 0; isa < RX_ISA_N; isa++) {
				if ((o.isa < 0 || o.isa == isa) &&
					(o.dtype < 0 || (uint32_t)o.dtype == dtype) &&
					rx_isa_available((enum rx_isa)isa))
					bench(&o, &b, (enum rx_isa)isa, dtype, sizes[s]);
			}
		}
	}
	for (uint32_t i = 0; i < RX_MAX_RANKS; i++) {
		free(b.src[i]);
		free(b.dst[i]);
	}
	return 0;
}
