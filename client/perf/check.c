/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "colls.h"
#include "../../kernels/coll_types.h"
#include "../../kernels/codec/mxfp8.h"
#include "../../kernels/precision_check.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN   0x9e3779b97f4a7c15ull
#define SCALARS  UINT64_MAX /* an index that no element has */
#define ELEM_MAX 8u

/* Where the exponent of a floating type is; magnitudes in [1/4, 4) need bias - 2 .. bias + 1. */
struct float_layout {
	uint32_t mantissa_bits;
	uint64_t bias;
};

static const struct float_layout float_layouts[RX_DTYPE_N] = {
	[RX_FLOAT16] = {10, 15},
	[RX_FLOAT32] = {23, 127},
	[RX_FLOAT64] = {52, 1023},
	[RX_BFLOAT16] = {7, 127},
	[RX_FLOAT8E4M3] = {3, 7},
	[RX_FLOAT8E5M2] = {2, 15},
};

/* Finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit. */
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static uint64_t stream_of(const struct perf_data *data, uint32_t rank)
{
	return mix(mix(data->seed + GOLDEN) ^ ((uint64_t)data->iteration << 32 | (rank + 1)));
}

static inline uint64_t element(const struct perf_data *data, uint64_t stream, uint64_t index)
{
	uint64_t random = mix(stream + (index + 1) * GOLDEN);
	const struct float_layout *layout = &float_layouts[data->dtype];
	uint32_t mantissa = layout->mantissa_bits;
	uint32_t size = rx_dtype_size(data->dtype);

	if (layout->bias == 0)
		return random;
	return (random >> 63) << (size * 8 - 1) |
	       (layout->bias - 2 + (random >> 60 & 3)) << mantissa |
	       (random & ((1ull << mantissa) - 1));
}

/* Little-endian: the low bytes are the element. Constant sizes make each a single store. */
static inline void store(uint8_t *out, uint64_t bits, uint32_t size)
{
	switch (size) {
	case 1:
		*out = (uint8_t)bits;
		break;
	case 2:
		memcpy(out, &bits, 2);
		break;
	case 4:
		memcpy(out, &bits, 4);
		break;
	default:
		memcpy(out, &bits, 8);
		break;
	}
}

void perf_data_fill(
	const struct perf_data *data, uint32_t rank, uint64_t first, uint64_t count, void *buf)
{
	uint64_t stream = stream_of(data, rank);
	uint32_t size = rx_dtype_size(data->dtype);
	uint8_t *out = buf;

	for (uint64_t i = 0; i < count; i++)
		store(out + i * size, element(data, stream, first + i), size);
}

uint64_t perf_data_scalar(const struct perf_data *data, uint32_t rank)
{
	uint64_t bits = element(data, stream_of(data, rank), SCALARS);
	uint32_t size = rx_dtype_size(data->dtype);

	return size < ELEM_MAX ? bits & ((1ull << size * 8) - 1) : bits;
}

bool perf_fold_init(struct perf_fold *fold, const struct perf_data *data, uint32_t op,
	const struct perf_coll *coll, const struct perf_layout *layout)
{
	uint32_t n_ranks = layout->n_ranks;

	*fold = (struct perf_fold){.data = *data, .op = op, .coll = coll, .layout = layout};
	for (uint32_t r = 0; r < n_ranks; r++)
		fold->scalars[r] = perf_data_scalar(data, r);
	fold->blocks = calloc((size_t)n_ranks * PERF_FOLD_BLOCK, ELEM_MAX);
	return fold->blocks;
}

void perf_fold_deinit(struct perf_fold *fold)
{
	free(fold->blocks);
	fold->blocks = NULL;
}

/* ---- low precision: the portable codec ---- */

#define MX_SCALES (PERF_FOLD_BLOCK / RX_MX_BLOCK + 2)

/* At most PERF_FOLD_BLOCK and two blocks of elements, from the start of a block on, as takers get
 * them.
 */
static void quantise(
	enum rx_mx_format format, uint32_t dtype, const void *src, uint64_t count, void *out)
{
	const struct rx_mx_table *mx = rx_mx_table_of(format, RX_ISA_SCALAR);
	uint8_t elems[MX_SCALES * RX_MX_BLOCK];
	uint8_t scales[MX_SCALES];

	mx->encode(elems, scales, src, dtype, count, NULL);
	mx->decode(out, dtype, elems, scales, count, false);
}

static void fold_in_low_precision(struct perf_fold *fold, uint64_t first, uint64_t count, void *out)
{
	const struct rx_mx_table *mx = rx_mx_table_of(fold->format, RX_ISA_SCALAR);
	uint32_t dtype = fold->data.dtype;
	uint32_t n_ranks = fold->layout->n_ranks;
	uint8_t elems[PERF_FOLD_BLOCK];
	uint8_t scales[PERF_FOLD_BLOCK / RX_MX_BLOCK];
	float sums[PERF_FOLD_BLOCK];
	uint16_t halves[PERF_FOLD_BLOCK];

	for (uint32_t r = 0; r < n_ranks; r++) {
		perf_data_fill(&fold->data, r, first, count, fold->blocks);
		mx->encode(elems, scales, fold->blocks, dtype, count, NULL);
		mx->decode_add(sums, elems, scales, count, r == 0);
	}
	mx->finish(sums, RX_FLOAT32, sums, count, fold->op, n_ranks);
	if (fold->coll->coll == RX_ALL_REDUCE && fold->gather_bf16) {
		mx->finish(halves, RX_BFLOAT16, sums, count, RX_SUM, n_ranks);
		rx_precision_widen(sums, halves, RX_BFLOAT16, (uint32_t)count);
	} else if (fold->coll->coll == RX_ALL_REDUCE) {
		mx->encode(elems, scales, sums, RX_FLOAT32, count, NULL);
		mx->decode(out, dtype, elems, scales, count, false);
		return;
	}
	mx->finish(out, dtype, sums, count, RX_SUM, n_ranks);
}

/* Elements [first, first + count) of a block of @whole that starts at @at in the sender's data. */
static void copy_in_low_precision(struct perf_fold *fold, uint32_t sender, uint64_t at,
	uint64_t whole, uint64_t first, uint64_t count, void *out)
{
	uint64_t begin = first / RX_MX_BLOCK * RX_MX_BLOCK;
	uint64_t end = rx_min_u64(rx_align_up(first + count, RX_MX_BLOCK), whole);
	uint32_t size = rx_dtype_size(fold->data.dtype);
	uint8_t elements[MX_SCALES * RX_MX_BLOCK * sizeof(float)];
	uint8_t taken[MX_SCALES * RX_MX_BLOCK * sizeof(float)];

	perf_data_fill(&fold->data, sender, at + begin, end - begin, elements);
	quantise(fold->format, fold->data.dtype, elements, end - begin, taken);
	memcpy(out, taken + (first - begin) * size, count * size);
}

/* ---- what is expected ---- */

void perf_fold_all(struct perf_fold *fold, uint64_t first, uint64_t count, void *out)
{
	uint32_t n_ranks = fold->layout->n_ranks;
	const void *src[RX_MAX_RANKS] = {NULL};
	struct rx_reduce_args args = {
		.src = src,
		.n_src = n_ranks,
		.dst = &out,
		.n_dst = 1,
		.count = count,
		.dtype = (uint8_t)fold->data.dtype,
		.op = (uint8_t)fold->op,
		.n_avg = n_ranks,
		.scalars = fold->op == RX_PREMUL_SUM ? fold->scalars : NULL,
	};

	if (fold->in_low_precision) {
		fold_in_low_precision(fold, first, count, out);
		return;
	}
	for (uint32_t r = 0; r < n_ranks; r++) {
		uint8_t *block = fold->blocks + (size_t)r * PERF_FOLD_BLOCK * ELEM_MAX;

		perf_data_fill(&fold->data, r, first, count, block);
		src[r] = block;
	}
	rx_reduce_with(RX_ISA_SCALAR, &args);
}

void perf_expect_folded_block(struct perf_fold *fold, uint64_t first, uint64_t count, void *out)
{
	perf_fold_all(fold, fold->layout->displs[fold->layout->rank] + first, count, out);
}

typedef uint64_t (*sent_at_fn)(
	const struct perf_coll *coll, const struct perf_layout *layout, uint32_t sender);

/* What of the blocks behind each other lies in [first, first + count); sent_at() says where they
 * come from in the senders' messages. */
static void expect_blocks(
	struct perf_fold *fold, uint64_t first, uint64_t count, void *out, sent_at_fn sent_at)
{
	const struct perf_layout *layout = fold->layout;
	uint32_t size = rx_dtype_size(fold->data.dtype);

	for (uint32_t r = 0; r < layout->n_ranks; r++) {
		uint64_t begin = rx_max_u64(first, layout->displs[r]);
		uint64_t end = rx_min_u64(first + count, layout->displs[r] + layout->counts[r]);

		if (begin >= end)
			continue;
		if (fold->in_low_precision) {
			copy_in_low_precision(fold, r, sent_at(fold->coll, layout, r),
				layout->counts[r], begin - layout->displs[r], end - begin,
				(uint8_t *)out + (begin - first) * size);
			continue;
		}
		perf_data_fill(&fold->data, r,
			sent_at(fold->coll, layout, r) + begin - layout->displs[r], end - begin,
			(uint8_t *)out + (begin - first) * size);
	}
}

static uint64_t at_start(const struct perf_coll *coll RX_UNUSED,
	const struct perf_layout *layout RX_UNUSED, uint32_t sender RX_UNUSED)
{
	return 0;
}

void perf_expect_gathered(struct perf_fold *fold, uint64_t first, uint64_t count, void *out)
{
	expect_blocks(fold, first, count, out, at_start);
}

void perf_expect_exchanged(struct perf_fold *fold, uint64_t first, uint64_t count, void *out)
{
	expect_blocks(fold, first, count, out, perf_layout_sent_at);
}

void perf_expect_roots(struct perf_fold *fold, uint64_t first, uint64_t count, void *out)
{
	perf_data_fill(&fold->data, fold->layout->root, first, count, out);
}

void perf_expect_roots_block(struct perf_fold *fold, uint64_t first, uint64_t count, void *out)
{
	const struct perf_layout *layout = fold->layout;

	perf_data_fill(&fold->data, layout->root, layout->displs[layout->rank] + first, count, out);
}

void perf_expect_neighbours(struct perf_fold *fold, uint64_t first, uint64_t count, void *out)
{
	const struct perf_layout *layout = fold->layout;

	perf_data_fill(&fold->data, (layout->rank + layout->n_ranks - 1) % layout->n_ranks, first,
		count, out);
}

uint64_t perf_count_wrong(struct perf_fold *fold, const void *result)
{
	_Alignas(64) uint8_t expected[PERF_FOLD_BLOCK * ELEM_MAX] = {0};
	uint32_t size = rx_dtype_size(fold->data.dtype);
	uint64_t count = fold->layout->recv;
	const uint8_t *got = result;
	uint64_t n_wrong = 0;

	for (uint64_t first = 0; first < count; first += PERF_FOLD_BLOCK) {
		uint64_t n = rx_min_u64(PERF_FOLD_BLOCK, count - first);

		fold->coll->expect(fold, first, n, expected);
		if (memcmp(got + first * size, expected, n * size) == 0)
			continue;
		for (uint64_t i = 0; i < n; i++)
			n_wrong += memcmp(got + (first + i) * size, expected + i * size, size) != 0;
	}
	return n_wrong;
}
