/* SPDX-License-Identifier: MIT */
/*
 * A tiny allreduce takes as long as a few cache misses. Blocks of the wide folds would be filled
 * from memory that has just been written in smaller pieces, for which loads wait; here elements are
 * loaded as they were stored: in sixteens of bytes, and the rest one by one.
 */
#include "reduce_small.h"

#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Other environments are for those who set and restore it. */
static bool default_environment(void)
{
	return (_mm_getcsr() & ~0x3fu) == 0x1f80;
}
#else
static bool default_environment(void)
{
	return false;
}
#endif

typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef double v2d __attribute__((vector_size(16)));
typedef int64_t v2l __attribute__((vector_size(16)));
typedef uint32_t v4u __attribute__((vector_size(16)));
typedef uint64_t v2u __attribute__((vector_size(16)));

/* A sum that is no number gets the canonical bits. */
static v4f finish_v4f(v4f v)
{
	v4i nan = v != v;

	return (v4f)(((v4i)v & ~nan) | (nan & 0x7fc00000));
}

static v2d finish_v2d(v2d v)
{
	v2l nan = v != v;

	return (v2d)(((v2l)v & ~nan) | (nan & 0x7ff8000000000000));
}

static v4u finish_v4u(v4u v)
{
	return v;
}

static v2u finish_v2u(v2u v)
{
	return v;
}

/* An element alone is the first of a vector of zeros. */
#define SUM_SMALL(vec, type)                                                                       \
	static void sum_##vec(const struct rx_reduce_args *args)                                   \
	{                                                                                          \
		const uint64_t lanes = sizeof(vec) / sizeof(type);                                 \
		uint64_t at = 0;                                                                   \
                                                                                                   \
		while (at < args->count) {                                                         \
			bool whole = args->count - at >= lanes;                                    \
			vec sum = {0};                                                             \
                                                                                                   \
			for (uint32_t s = 0; s < args->n_src; s++) {                               \
				const type *from = (const type *)args->src[s] + at;                \
				vec v = {0};                                                       \
                                                                                                   \
				if (whole)                                                         \
					memcpy(&v, from, sizeof(v));                               \
				else                                                               \
					v[0] = *from;                                              \
				sum = s == 0 ? v : sum + v;                                        \
			}                                                                          \
			sum = finish_##vec(sum);                                                   \
			if (whole)                                                                 \
				memcpy((type *)args->dst[0] + at, &sum, sizeof(sum));              \
			else                                                                       \
				((type *)args->dst[0])[at] = sum[0];                               \
			at += whole ? lanes : 1;                                                   \
		}                                                                                  \
	}

SUM_SMALL(v4f, float)
SUM_SMALL(v2d, double)
SUM_SMALL(v4u, uint32_t)
SUM_SMALL(v2u, uint64_t)

bool rx_reduce_small(const struct rx_reduce_args *args)
{
	if (args->op != RX_SUM || args->n_dst != 1 || args->stream || !default_environment())
		return false;
	switch (args->dtype) {
	case RX_FLOAT32:
		sum_v4f(args);
		return true;
	case RX_FLOAT64:
		sum_v2d(args);
		return true;
	case RX_INT32:
	case RX_UINT32:
		sum_v4u(args);
		return true;
	case RX_INT64:
	case RX_UINT64:
		sum_v2u(args);
		return true;
	default:
		return false;
	}
}
