/* SPDX-License-Identifier: MIT */
/*
 * Every type, operation and instruction set against the oracle, bit for bit, through all shapes of
 * buffers: counts around the vector sizes, alignments, several destinations, in place, streaming.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../kernels/host/reduce_small.h"
#include "../oracle/oracle.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#define MAX_COUNT 4097u
#define MAX_DST   5u
#define GUARD     192u
#define ROOM      (MAX_COUNT * 8 + 3 * GUARD)
#define FILLER    0xa5

static const uint64_t counts[] = {
	0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1000, MAX_COUNT};

static uint8_t src_room[RX_MAX_RANKS][ROOM] __attribute__((aligned(64)));
static uint8_t dst_room[MAX_DST][ROOM] __attribute__((aligned(64)));
static uint8_t inputs[RX_MAX_RANKS][MAX_COUNT * 8];
static uint8_t expected[MAX_COUNT * 8];

/* How the buffers of a run lie. */
struct shape {
	uint32_t n_dst;
	unsigned alignment; /* which of the patterns in src_at() and dst_at() */
	bool in_place;
	bool stream;
};

struct problem {
	uint32_t dtype;
	uint32_t op;
	uint32_t n_src;
	uint32_t size;
	uint64_t scalars[RX_MAX_RANKS];
};

static uint8_t *src_at(const struct problem *p, unsigned alignment, uint32_t s)
{
	static const uint32_t odd[] = {0, 1, 1, 3};
	uint32_t elements = alignment == 2 ? s % 5 : odd[alignment];

	return src_room[s] + GUARD + elements * p->size;
}

static uint8_t *dst_at(const struct problem *p, unsigned alignment, uint32_t d)
{
	static const uint32_t odd[] = {0, 0, 1, 5};
	uint32_t elements = alignment == 2 ? 1 + 3 * d : odd[alignment];

	return dst_room[d] + GUARD + elements * p->size;
}

static void place_source(const struct problem *p, unsigned alignment, uint32_t s)
{
	memset(src_room[s], FILLER, GUARD + 8 * p->size);
	memcpy(src_at(p, alignment, s), inputs[s], (size_t)MAX_COUNT * p->size);
}

/* Are there only filler bytes in [from, to)? */
static bool untouched(const uint8_t *from, const uint8_t *to)
{
	for (; from < to; from++) {
		if (*from != FILLER)
			return false;
	}
	return true;
}

/* In place, the first destinations are the last and the first source. */
static uint8_t *output(const struct problem *p, const struct shape *shape, uint32_t d)
{
	if (shape->in_place && d == 0)
		return src_at(p, shape->alignment, p->n_src - 1);
	if (shape->in_place && d == 1 && p->n_src > 1)
		return src_at(p, shape->alignment, 0);
	return dst_at(p, shape->alignment, d);
}

static bool is_source(const struct problem *p, const struct shape *shape, uint32_t d)
{
	return output(p, shape, d) != dst_at(p, shape->alignment, d);
}

static void check_output(const struct problem *p, const struct shape *shape, uint32_t d,
	uint64_t count, enum rx_isa isa)
{
	uint8_t *at = output(p, shape, d);
	uint64_t bytes = count * p->size;
	bool clean = false;

	if (memcmp(at, expected, bytes) != 0) {
		uint64_t i = 0;

		while (memcmp(at + i * p->size, expected + i * p->size, p->size) == 0)
			i++;
		print_error("element %llu\n", (unsigned long long)i);
		goto fail;
	}
	if (is_source(p, shape, d))
		clean = untouched(at - GUARD / 2, at) &&
			memcmp(at + bytes, inputs[d == 0 ? p->n_src - 1 : 0] + bytes,
				MAX_COUNT * p->size - bytes) == 0;
	else
		clean = untouched(at - GUARD / 2, at) &&
			untouched(at + bytes, at + bytes + GUARD / 2);
	if (clean)
		return;
	print_error("bytes outside of the output changed\n");
fail:
	print_error("%s %s %s n_src=%u n_dst=%u dst=%u count=%llu alignment=%u in_place=%d "
		    "stream=%d\n",
		rx_isa_name(isa), rx_dtype_name(p->dtype), rx_redop_name(p->op), p->n_src,
		shape->n_dst, d, (unsigned long long)count, shape->alignment, shape->in_place,
		shape->stream);
	fail();
}

/* Instead of an instruction set: by rx_reduce_small(), where it does it. */
#define SMALL RX_ISA_N

static uint32_t n_small; /* folds that it has done */

static void reduce_small(const struct rx_reduce_args *args)
{
	if (rx_reduce_small(args))
		n_small++;
	else
		rx_reduce(args);
}

static void run_once(
	const struct problem *p, const struct shape *shape, uint64_t count, enum rx_isa isa)
{
	const void *src[RX_MAX_RANKS];
	void *dst[MAX_DST];
	struct rx_reduce_args args = {
		.src = src,
		.n_src = p->n_src,
		.dst = dst,
		.n_dst = shape->n_dst,
		.count = count,
		.dtype = (uint8_t)p->dtype,
		.op = (uint8_t)p->op,
		.stream = shape->stream,
		.n_avg = p->n_src,
		.scalars = p->op == RX_PREMUL_SUM ? p->scalars : NULL,
	};

	for (uint32_t s = 0; s < p->n_src; s++)
		src[s] = src_at(p, shape->alignment, s);
	for (uint32_t d = 0; d < shape->n_dst; d++) {
		dst[d] = output(p, shape, d);
		if (!is_source(p, shape, d))
			memset((uint8_t *)dst[d] - GUARD / 2, FILLER, count * p->size + GUARD);
	}
	if (isa == SMALL)
		reduce_small(&args);
	else
		rx_reduce_with(isa, &args);
	for (uint32_t d = 0; d < shape->n_dst; d++) {
		check_output(p, shape, d, count, isa);
		if (is_source(p, shape, d))
			place_source(p, shape->alignment, d == 0 ? p->n_src - 1 : 0);
	}
}

static void run_counts(const struct problem *p, const struct shape *shape)
{
	for (int isa = 0; isa < RX_ISA_N; isa++) {
		if (!rx_isa_available((enum rx_isa)isa))
			continue;
		for (size_t c = 0; c < RX_ARRAY_SIZE(counts); c++)
			run_once(p, shape, counts[c], (enum rx_isa)isa);
	}
	for (size_t c = 0; c < RX_ARRAY_SIZE(counts); c++)
		if (counts[c] * p->size <= RX_SMALL_BYTES)
			run_once(p, shape, counts[c], SMALL);
}

static void run_shapes(const struct problem *p)
{
	static const uint32_t n_dsts[] = {1, 2, 5};

	for (unsigned alignment = 0; alignment < 4; alignment++) {
		for (uint32_t s = 0; s < p->n_src; s++)
			place_source(p, alignment, s);
		for (unsigned other = 0; other < 12; other++) {
			struct shape shape = {
				.n_dst = n_dsts[other / 4],
				.alignment = alignment,
				.in_place = other & 1,
				.stream = other & 2,
			};

			run_counts(p, &shape);
		}
	}
}

static void set_problem(struct problem *p, uint32_t dtype, uint32_t op, uint32_t n_src,
	uint64_t seed, enum oracle_data kind)
{
	const void *src[RX_MAX_RANKS];

	*p = (struct problem){
		.dtype = dtype, .op = op, .n_src = n_src, .size = rx_dtype_size(dtype)};
	for (uint32_t s = 0; s < n_src; s++) {
		src[s] = inputs[s];
		oracle_fill(inputs[s], dtype, 0, MAX_COUNT, s, seed, kind);
		oracle_fill(&p->scalars[s], dtype, 0, 1, s, seed + 1, kind);
	}
	for (uint64_t i = 0; i < MAX_COUNT; i++)
		oracle_fold(dtype, op, n_src, src, i, p->scalars, expected + i * p->size);
}

static void run_matrix(enum oracle_data kind, const uint32_t *n_srcs, size_t n_n_srcs)
{
	struct problem problem;

	for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
		for (uint32_t op = 0; op < RX_REDOP_N; op++) {
			for (size_t n = 0; n < n_n_srcs; n++) {
				set_problem(&problem, dtype, op, n_srcs[n], 11 * n + op, kind);
				run_shapes(&problem);
			}
		}
	}
}

static void test_normal_values(void **state)
{
	static const uint32_t n_srcs[] = {1, 2, 5};

	(void)state;
	run_matrix(ORACLE_NORMAL, n_srcs, RX_ARRAY_SIZE(n_srcs));
}

static void test_wild_values(void **state)
{
	static const uint32_t n_srcs[] = {1, 2, 3, 8};

	(void)state;
	run_matrix(ORACLE_WILD, n_srcs, RX_ARRAY_SIZE(n_srcs));
}

/* As many sources as there can be; fewer shapes, since only their number is new. */
static void test_64_sources(void **state)
{
	struct problem p;

	(void)state;
	for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
		for (uint32_t op = 0; op < RX_REDOP_N; op++) {
			unsigned alignment = (dtype + op) % 4;
			struct shape shape = {
				.n_dst = 2, .alignment = alignment, .in_place = op & 1};

			set_problem(&p, dtype, op, RX_MAX_RANKS, 64, ORACLE_NORMAL);
			for (uint32_t s = 0; s < p.n_src; s++)
				place_source(&p, alignment, s);
			run_counts(&p, &shape);
		}
	}
}

/* Buffers that end at a page that may not be touched, and buffers that begin behind one. */
static void test_nothing_beside_the_buffers(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, page * 7, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	for (size_t i = 1; i < 7; i += 2)
		assert_int_equal(mprotect(map + i * page, page, PROT_READ | PROT_WRITE), 0);
	for (uint64_t bytes = 8; bytes < 700; bytes += 8) {
		for (unsigned end = 0; end < 2; end++) {
			size_t from = end ? page - bytes : 0;
			const void *src[] = {map + page + from, map + 3 * page + from};
			void *dst[] = {map + 5 * page + from};
			struct rx_reduce_args args = {
				.src = src, .n_src = 2, .dst = dst, .n_dst = 1, .n_avg = 2};

			for (unsigned i = 0; i < 2u * RX_ISA_N * RX_DTYPE_N; i++) {
				enum rx_isa isa = i % RX_ISA_N;

				args.stream = i / RX_ISA_N % 2;
				args.dtype = (uint8_t)(i / RX_ISA_N / 2);
				args.count = bytes / rx_dtype_size(args.dtype);
				if (rx_isa_available(isa))
					rx_reduce_with(isa, &args);
			}
		}
	}
	assert_int_equal(munmap(map, page * 7), 0);
}

/* The divisor is the communicator's size, whatever is folded here. */
static void test_average_by_any_number(void **state)
{
	static const uint32_t divisors[] = {1, 2, 3, 7, 64, 100, 128, 255, 256, 300, 65536, 100000};
	static const int32_t values[] = {INT32_MIN, INT32_MIN + 1, -301, -300, -7, -2, -1, 0, 1, 6,
		7, 64, 127, 255, 299, 300, INT32_MAX};
	int32_t out32[RX_ARRAY_SIZE(values)];
	int8_t out8[sizeof(values)];
	float outf[RX_ARRAY_SIZE(values)];
	const void *src[] = {values};
	void *dst[] = {out32};
	struct rx_reduce_args args = {.src = src, .n_src = 1, .dst = dst, .n_dst = 1, .op = RX_AVG};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(divisors) * RX_ISA_N; i++) {
		enum rx_isa isa = i % RX_ISA_N;

		args.n_avg = divisors[i / RX_ISA_N];
		if (!rx_isa_available(isa))
			continue;
		dst[0] = out32;
		args.dtype = RX_INT32;
		args.count = RX_ARRAY_SIZE(values);
		rx_reduce_with(isa, &args);
		dst[0] = out8;
		args.dtype = RX_INT8;
		args.count = sizeof(values);
		rx_reduce_with(isa, &args);
		dst[0] = outf;
		args.dtype = RX_FLOAT32;
		args.count = RX_ARRAY_SIZE(values);
		rx_reduce_with(isa, &args);
		for (size_t v = 0; v < RX_ARRAY_SIZE(values); v++) {
			float f = 0;

			assert_int_equal(out32[v], values[v] / (int64_t)args.n_avg);
			memcpy(&f, &values[v], sizeof(f));
			f /= (float)args.n_avg;
			if (f == f)
				assert_memory_equal(&outf[v], &f, sizeof(f));
		}
		for (size_t v = 0; v < sizeof(values); v++)
			assert_int_equal(
				out8[v], ((const int8_t *)values)[v] / (int64_t)args.n_avg);
	}
}

#if defined(__SSE2__)
/* What a process has done to its floating point unit must not reach the sum, nor be undone. */
static void test_float_environment(void **state)
{
	const uint32_t flush_to_zero = 0x8040;
	const uint32_t round_up = 0x4000;
	static const uint32_t dtypes[] = {
		RX_FLOAT32, RX_FLOAT64, RX_FLOAT16, RX_BFLOAT16, RX_FLOAT8E4M3, RX_FLOAT8E5M2};
	uint32_t before = _mm_getcsr();
	uint32_t odd = (before & ~0x3fu) | flush_to_zero | round_up;
	struct problem p;

	(void)state;
	for (size_t t = 0; t < RX_ARRAY_SIZE(dtypes); t++) {
		for (uint32_t op = 0; op < RX_REDOP_N; op++) {
			struct shape shape = {.n_dst = 1};

			set_problem(&p, dtypes[t], op, 3, 5, ORACLE_WILD);
			for (uint32_t s = 0; s < p.n_src; s++)
				place_source(&p, 0, s);
			_mm_setcsr(odd);
			n_small = 0;
			run_counts(&p, &shape);
			assert_int_equal(n_small, 0);
			assert_int_equal(_mm_getcsr() & ~0x3fu, odd);
			_mm_setcsr(before);
		}
	}
}
#endif

static void test_instruction_sets(void **state)
{
	(void)state;
	assert_true(rx_isa_available(RX_ISA_SCALAR));
	assert_true(rx_isa_available(rx_isa_best()));
	assert_false(rx_isa_available(RX_ISA_N));
	for (int isa = (int)rx_isa_best() + 1; isa < RX_ISA_N; isa++)
		assert_false(rx_isa_available((enum rx_isa)isa));
	assert_string_equal(rx_isa_name(RX_ISA_SCALAR), "scalar");
	assert_string_equal(rx_isa_name(RX_ISA_AVX512), "avx512");
	assert_string_equal(rx_isa_name(RX_ISA_N), "?");
}

/* What it is there for, it does. */
static void test_small(void **state)
{
	static const uint32_t dtypes[] = {
		RX_INT32, RX_UINT32, RX_INT64, RX_UINT64, RX_FLOAT32, RX_FLOAT64};
	const struct shape shape = {.n_dst = 1};
	struct problem p;

	(void)state;
	for (size_t t = 0; t < RX_ARRAY_SIZE(dtypes); t++) {
		set_problem(&p, dtypes[t], RX_SUM, 3, 7, ORACLE_WILD);
		for (uint32_t s = 0; s < p.n_src; s++)
			place_source(&p, 0, s);
		n_small = 0;
		run_counts(&p, &shape);
#if defined(__x86_64__)
		assert_int_not_equal(n_small, 0);
#endif
	}
}

static void test_copy(void **state)
{
	static const uint64_t sizes[] = {0, 1, 63, 64, 65, 127, 128, 129, 1000, 4096, 10000};

	(void)state;
	oracle_fill(src_room[0], RX_UINT8, 0, ROOM, 0, 1, ORACLE_WILD);
	for (size_t s = 0; s < RX_ARRAY_SIZE(sizes); s++) {
		for (unsigned offset = 0; offset < 66; offset++) {
			for (unsigned stream = 0; stream < 2; stream++) {
				uint8_t *dst = dst_room[0] + GUARD + offset;
				const uint8_t *src = src_room[0] + offset / 3;

				memset(dst_room[0], FILLER, sizeof(dst_room[0]));
				rx_copy(dst, src, sizes[s], stream);
				assert_memory_equal(dst, src, sizes[s]);
				assert_true(untouched(dst_room[0], dst));
				assert_true(untouched(dst + sizes[s], dst_room[1]));
			}
		}
	}
	rx_copy(src_room[0], src_room[0], ROOM, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normal_values),
		cmocka_unit_test(test_wild_values),
		cmocka_unit_test(test_64_sources),
		cmocka_unit_test(test_nothing_beside_the_buffers),
		cmocka_unit_test(test_average_by_any_number),
#if defined(__SSE2__)
		cmocka_unit_test(test_float_environment),
#endif
		cmocka_unit_test(test_instruction_sets),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
