/* SPDX-License-Identifier: MIT */
/*
 * Everything around the loops (fold_isa.c): which instruction set, factors, alignment, and a
 * floating point environment that is the same in every process.
 */
#include "reduce.h"

#include "convert.h"
#include "float_env.h"
#include "fold.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* From here on it pays to bring the destination to a cache line boundary first. */
#define ALIGN_MIN_BYTES 1024u
/* Destinations of different alignment are streamed from a copy of this size. */
#define TILE_BYTES 4096u

#define LINE_MASK (RX_CACHE_LINE - 1)

static const struct {
	const char *name;
	const struct rx_fold_table *table; /* NULL: not in this build */
} isas[RX_ISA_N] = {
	[RX_ISA_SCALAR] = {"scalar", &rx_fold_scalar},
#if defined(__x86_64__)
	[RX_ISA_AVX2] = {"avx2", &rx_fold_avx2},
	[RX_ISA_AVX512] = {"avx512", &rx_fold_avx512},
	[RX_ISA_NEON] = {"neon", NULL},
#elif defined(__aarch64__)
	[RX_ISA_AVX2] = {"avx2", NULL},
	[RX_ISA_AVX512] = {"avx512", NULL},
	[RX_ISA_NEON] = {"neon", &rx_fold_neon},
#else
	[RX_ISA_AVX2] = {"avx2", NULL},
	[RX_ISA_AVX512] = {"avx512", NULL},
	[RX_ISA_NEON] = {"neon", NULL},
#endif
};

#if defined(__x86_64__)
static bool cpu_has_f16c(void)
{
	uint32_t eax = 0;
	uint32_t ebx = 0;
	uint32_t ecx = 0;
	uint32_t edx = 0;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

static bool cpu_has(enum rx_isa isa)
{
	switch (isa) {
	case RX_ISA_SCALAR:
		return true;
	case RX_ISA_AVX2:
		return __builtin_cpu_supports("avx2") && cpu_has_f16c();
	case RX_ISA_AVX512:
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
		       cpu_has_f16c();
	default:
		return false;
	}
}
#else
static bool cpu_has(enum rx_isa isa)
{
	return isas[isa].table;
}
#endif

const char *rx_isa_name(enum rx_isa isa)
{
	return isa < RX_ISA_N ? isas[isa].name : "?";
}

bool rx_isa_available(enum rx_isa isa)
{
	return isa < RX_ISA_N && isas[isa].table && cpu_has(isa);
}

enum rx_isa rx_isa_best(void)
{
	/* Asking the CPU traps in a virtual machine; threads that ask twice get the same. */
	static _Atomic int known = -1;
	static const enum rx_isa order[] = {RX_ISA_AVX512, RX_ISA_AVX2, RX_ISA_NEON};
	int best = atomic_load_explicit(&known, memory_order_relaxed);

	if (rx_likely(best >= 0))
		return (enum rx_isa)best;
	best = RX_ISA_SCALAR;
	for (size_t i = RX_ARRAY_SIZE(order); i-- > 0;) {
		if (rx_isa_available(order[i]))
			best = (int)order[i];
	}
	atomic_store_explicit(&known, best, memory_order_relaxed);
	return (enum rx_isa)best;
}

/* The bits of a value of @dtype, as a factor in the type that accumulates it. */
static union rx_factor factor_of(uint32_t dtype, uint64_t bits)
{
	union rx_factor factor = {.u64 = bits};

	switch (dtype) {
	case RX_FLOAT16:
		factor.f32 = rx_widen_f16((uint16_t)bits);
		break;
	case RX_BFLOAT16:
		factor.f32 = rx_widen_bf16((uint16_t)bits);
		break;
	case RX_FLOAT8E4M3:
		factor.f32 = rx_widen_e4m3((uint8_t)bits);
		break;
	case RX_FLOAT8E5M2:
		factor.f32 = rx_widen_e5m2((uint8_t)bits);
		break;
	case RX_INT8:
	case RX_UINT8:
		factor.u8 = (uint8_t)bits;
		break;
	case RX_INT32:
	case RX_UINT32:
	case RX_FLOAT32:
		factor.u32 = (uint32_t)bits;
		break;
	default:
		break;
	}
	return factor;
}

/* Dividing by a power of two is multiplying by its inverse, to the bit, and much faster. */
static void prepare_average(struct rx_fold *fold, uint32_t dtype)
{
	fold->avg_times = fold->n_avg <= 64 && (fold->n_avg & (fold->n_avg - 1)) == 0;
	if (dtype == RX_FLOAT64)
		fold->avg_factor.f64 = fold->avg_times ? 1.0 / fold->n_avg : fold->n_avg;
	else
		fold->avg_factor.f32 =
			fold->avg_times ? 1.0f / (float)fold->n_avg : (float)fold->n_avg;
}

/* Are all destinations equally far from a cache line boundary? */
static bool aligned_alike(const struct rx_fold *fold)
{
	uintptr_t first = (uintptr_t)fold->dst[0];

	for (uint32_t d = 1; d < fold->n_dst; d++) {
		if (((uintptr_t)fold->dst[d] ^ first) & LINE_MASK)
			return false;
	}
	return true;
}

static void fold_aligned(rx_fold_fn fn, struct rx_fold *fold, uint64_t bytes, bool stream)
{
	uint64_t head = -(uintptr_t)fold->dst[0] & LINE_MASK;

	if (bytes < ALIGN_MIN_BYTES || head == 0)
		head = 0;
	else
		fn(fold, 0, head);
	fold->stream = stream;
	fn(fold, head, bytes);
}

/*
 * How far @dst can be written once [0, done) is folded: whole cache lines, but for the end of the
 * buffer.
 */
static uint64_t lines_until(const void *dst, uint64_t done, uint64_t bytes)
{
	if (done == 0 || done == bytes)
		return done;
	return done - (((uintptr_t)dst + done) & LINE_MASK);
}

/*
 * Destinations of different alignment: fold into a tile, then stream the whole lines of it to each
 * destination. What belongs to a line that the tile does not complete waits in front of the next
 * tile, so that no line is written in two pieces.
 */
static void fold_apart(rx_fold_fn fn, const struct rx_fold *fold, uint64_t bytes)
{
	uint8_t room[RX_CACHE_LINE + TILE_BYTES] __attribute__((aligned(RX_CACHE_LINE)));
	uint8_t *tile = room + RX_CACHE_LINE;
	const void *src[RX_MAX_RANKS];
	void *dst[1] = {tile};
	struct rx_fold part = *fold;

	part.src = src;
	part.dst = dst;
	part.n_dst = 1;
	for (uint64_t at = 0; at < bytes; at += TILE_BYTES) {
		uint64_t size = rx_min_u64(bytes - at, TILE_BYTES);

		for (uint32_t s = 0; s < fold->n_src; s++)
			src[s] = (const uint8_t *)fold->src[s] + at;
		fn(&part, 0, size);
		for (uint32_t d = 0; d < fold->n_dst; d++) {
			uint64_t first = lines_until(fold->dst[d], at, bytes);
			uint64_t end = lines_until(fold->dst[d], at + size, bytes);

			rx_copy_unfenced(
				(uint8_t *)fold->dst[d] + first, tile + first - at, end - first);
		}
		memcpy(room, room + TILE_BYTES, RX_CACHE_LINE);
	}
}

static void fold_all(rx_fold_fn fn, struct rx_fold *fold, uint64_t bytes, bool stream)
{
	bool worth_streaming = stream && bytes >= ALIGN_MIN_BYTES;

	if (worth_streaming && !aligned_alike(fold))
		fold_apart(fn, fold, bytes);
	else
		fold_aligned(fn, fold, bytes, worth_streaming);
	if (worth_streaming)
		rx_stream_fence();
}

void rx_reduce_with(enum rx_isa isa, const struct rx_reduce_args *args)
{
	rx_fold_fn fn = isas[isa].table->fn[args->dtype][args->op];
	struct rx_fold fold;
	rx_float_env before = rx_float_env_enter();

	/* Not all of it: the scales are large and for one operation only. */
	fold.src = args->src;
	fold.dst = args->dst;
	fold.n_src = args->n_src;
	fold.n_dst = args->n_dst;
	fold.stream = false;
	fold.n_avg = args->n_avg;
	if (args->op == RX_AVG)
		prepare_average(&fold, args->dtype);
	if (args->op == RX_PREMUL_SUM) {
		for (uint32_t s = 0; s < args->n_src; s++)
			fold.scale[s] = factor_of(args->dtype, args->scalars[s]);
	}
	if (args->count > 0)
		fold_all(fn, &fold, args->count * rx_dtype_size(args->dtype), args->stream);
	rx_float_env_leave(before);
}

void rx_reduce(const struct rx_reduce_args *args)
{
	rx_reduce_with(rx_isa_best(), args);
}
