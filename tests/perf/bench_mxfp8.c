/* SPDX-License-Identifier: MIT */
/*
 * How fast is the low-precision codec on one core? GB/s of the values' bytes (what is encoded from
 * or decoded to), beside a memcpy of that many bytes, and as a share of the memcpy. Medians of
 * rounds in which everything takes its turn.
 *
 * bench_mxfp8 [--bytes N] [--rounds N] [--isa NAME] [--dtype NAME] [--format fp8|int8]
 */
#include "../../kernels/codec/mxfp8.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MAX_ROUNDS 101
#define MIN_NS     1000000.0 /* small sizes are repeated until it takes that long */
#define HUGE_PAGE  (2ul << 20)

enum what { COPY, ENCODE, ENCODE_COUNTED, DECODE, DECODE_STREAM, ADD, FINISH, WHAT_N };

static const char *const what_names[WHAT_N] = {
	[COPY] = "memcpy",
	[ENCODE] = "encode",
	[ENCODE_COUNTED] = "encode, counted",
	[DECODE] = "decode",
	[DECODE_STREAM] = "decode, streamed",
	[ADD] = "decode_add",
	[FINISH] = "finish",
};

struct options {
	uint64_t bytes;
	uint64_t rounds;
	int dtype; /* -1: all */
	int isa;   /* -1: all */
	enum rx_mx_format format;
};

struct work {
	const struct rx_mx_table *table;
	uint32_t dtype;
	uint64_t count;
	void *values;
	void *copy;
	float *acc;
	uint8_t *elems;
	uint8_t *scales;
	struct rx_mx_stats stats;
};

static double now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void do_once(struct work *w, enum what what)
{
	switch (what) {
	case COPY:
		memcpy(w->copy, w->values, w->count * rx_dtype_size(w->dtype));
		break;
	case ENCODE:
		w->table->encode(w->elems, w->scales, w->values, w->dtype, w->count, NULL);
		break;
	case ENCODE_COUNTED:
		w->table->encode(w->elems, w->scales, w->values, w->dtype, w->count, &w->stats);
		break;
	case DECODE:
	case DECODE_STREAM:
		w->table->decode(
			w->copy, w->dtype, w->elems, w->scales, w->count, what == DECODE_STREAM);
		break;
	case ADD:
		w->table->decode_add(w->acc, w->elems, w->scales, w->count, false);
		break;
	default:
		w->table->finish(w->copy, w->dtype, w->acc, w->count, RX_SUM, 2);
		break;
	}
}

static double time_once(struct work *w, enum what what)
{
	uint64_t n = 0;
	double start = now_ns();
	double ns = 0;

	do {
		do_once(w, what);
		n++;
		ns = now_ns() - start;
	} while (ns < MIN_NS);
	return ns / (double)n;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static void bench(const struct options *o, struct work *w, enum rx_isa isa)
{
	static double ns[WHAT_N][MAX_ROUNDS];
	double bytes = (double)(w->count * rx_dtype_size(w->dtype));

	w->table = rx_mx_table_of(o->format, isa);
	w->table->encode(w->elems, w->scales, w->values, w->dtype, w->count, NULL);
	for (uint64_t round = 0; round < o->rounds; round++) {
		/* Sums of many rounds would leave the range of usual values. */
		w->table->decode_add(w->acc, w->elems, w->scales, w->count, true);
		for (int what = 0; what < WHAT_N; what++)
			ns[what][round] = time_once(w, (enum what)what);
	}
	for (int what = 0; what < WHAT_N; what++)
		qsort(ns[what], o->rounds, sizeof(ns[what][0]), by_value);
	for (int what = 0; what < WHAT_N; what++) {
		double median = ns[what][o->rounds / 2];

		printf("%-9s %-7s %11.0f  %-16s %7.2f GB/s %5.0f %%\n", rx_dtype_name(w->dtype),
			rx_isa_name(isa), bytes, what_names[what], bytes / median,
			100 * ns[COPY][o->rounds / 2] / median);
	}
}

static void *buffer(uint64_t bytes)
{
	void *at = aligned_alloc(HUGE_PAGE, rx_align_up(bytes, HUGE_PAGE));

	if (!at) {
		(void)fprintf(stderr, "bench_mxfp8: out of memory\n");
		exit(1);
	}
	(void)madvise(at, bytes, MADV_HUGEPAGE);
	memset(at, 0, bytes);
	return at;
}

/* Between -1 and 1; the codec takes as long for any other finite values that are not all tiny. */
static void fill(void *values, uint32_t dtype, uint64_t count)
{
	uint64_t state = 1;

	for (uint64_t i = 0; i < count; i++) {
		float value = 0;

		state = state * 6364136223846793005u + 1442695040888963407u;
		value = (float)(int64_t)state * 0x1p-63f;
		rx_mx_finish(
			(uint8_t *)values + i * rx_dtype_size(dtype), dtype, &value, 1, RX_SUM, 1);
	}
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"bytes", required_argument, NULL, 'b'},
		{"rounds", required_argument, NULL, 'r'},
		{"isa", required_argument, NULL, 'i'},
		{"dtype", required_argument, NULL, 't'},
		{"format", required_argument, NULL, 'f'},
		{NULL, 0, NULL, 0},
	};
	bool bad = false;

	for (int c = 0; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
		if (c == 'b') {
			o->bytes = strtoull(optarg, NULL, 10);
		} else if (c == 'r') {
			o->rounds = strtoull(optarg, NULL, 10);
		} else if (c == 't') {
			o->dtype = rx_dtype_parse(optarg);
			bad |= o->dtype < 0 || !rx_mx_takes((uint32_t)o->dtype);
		} else if (c == 'f') {
			while (o->format < RX_MX_FORMAT_N &&
				strcmp(rx_mx_codec_of(o->format)->name, optarg) != 0)
				o->format++;
			bad |= o->format == RX_MX_FORMAT_N;
		} else if (c == 'i') {
			for (int isa = 0; isa < RX_ISA_N; isa++) {
				if (strcmp(rx_isa_name((enum rx_isa)isa), optarg) == 0)
					o->isa = isa;
			}
			bad |= o->isa < 0;
		} else {
			bad = true;
		}
	}
	if (bad || o->bytes < 4 || o->rounds < 1 || o->rounds > MAX_ROUNDS || optind != argc) {
		(void)fprintf(stderr,
			"usage: bench_mxfp8 [--bytes N] [--rounds 1..%d] [--isa NAME] "
			"[--dtype float32|bfloat16|float16] [--format fp8|int8]\n",
			MAX_ROUNDS);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static const uint32_t dtypes[] = {RX_FLOAT32, RX_BFLOAT16, RX_FLOAT16};
	struct options o = {.bytes = 64u << 20, .rounds = 11, .dtype = -1, .isa = -1};
	struct work w = {0};

	parse(argc, argv, &o);
	w.values = buffer(o.bytes);
	w.copy = buffer(o.bytes);
	w.acc = buffer(2 * o.bytes);
	w.elems = buffer(o.bytes / 2);
	w.scales = buffer(o.bytes / 2);
	for (size_t t = 0; t < RX_ARRAY_SIZE(dtypes); t++) {
		w.dtype = dtypes[t];
		w.count = o.bytes / rx_dtype_size(w.dtype);
		if (o.dtype >= 0 && (uint32_t)o.dtype != w.dtype)
			continue;
		fill(w.values, w.dtype, w.count);
		for (int isa = 0; isa < RX_ISA_N; isa++) {
			if ((o.isa < 0 || o.isa == isa) &&
				rx_mx_table_of(o.format, (enum rx_isa)isa))
				bench(&o, &w, (enum rx_isa)isa);
		}
	}
	free(w.values);
	free(w.copy);
	free(w.acc);
	free(w.elems);
	free(w.scales);
	return 0;
}
