/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic that ranks would do among each other (doc/low-precision.md), piece by piece: a
 * piece of every input is read before that piece of any output is written, so that buffers may be
 * in place, or the same for several ranks.
 */
#include "host_lowprec.h"

#include "host_coll.h"

#include <assert.h>
#include <errno.h>

#define BLOCK       RX_MX_BLOCK
#define BLOCK_BYTES (BLOCK * (sizeof(float) + sizeof(uint16_t)) + 1) /* sums, wire, scale */
#define PIECE_MAX   (HOST_LOWPREC_SCRATCH_MAX / BLOCK_BYTES * BLOCK)
#define SAMPLES_MAX (PIECE_MAX / BLOCK / 128 + 1)

struct work {
	const struct host_coll_args *args;
	struct host_lowprec *lp;
	const struct rx_mx_codec *codec;
	uint32_t size;
	uint64_t room; /* elements of a piece */
	float *sums;
	uint8_t *wire; /* elements, or bfloat16 */
	uint8_t *scales;
	double exact[SAMPLES_MAX][BLOCK]; /* of the checked blocks of a piece */
};

static void work_init(struct work *w, const struct host_coll_args *args)
{
	struct host_lowprec *lp = args->lowprec;
	uint64_t bytes = rx_min_u64(lp->scratch_bytes, HOST_LOWPREC_SCRATCH_MAX);

	w->args = args;
	w->lp = lp;
	w->codec = rx_mx_codec_of(lp->format);
	w->size = rx_dtype_size(args->dtype);
	w->room = bytes / BLOCK_BYTES * BLOCK;
	w->sums = lp->scratch;
	w->wire = (uint8_t *)lp->scratch + w->room * sizeof(float);
	w->scales = w->wire + w->room * sizeof(uint16_t);
}

static uint64_t piece_count(const struct work *w, uint64_t at, uint64_t count)
{
	return rx_min_u64(w->room, count - at);
}

/* ---- adding up ---- */

/* Elements [at, at + n) of what is folded, of each rank. */
struct inputs {
	const uint8_t *from[RX_MAX_RANKS];
};

static void sum_exactly(struct work *w, const struct inputs *in, uint64_t at, uint64_t n)
{
	const struct host_coll_args *args = w->args;
	uint64_t sample = 0;

	for (uint64_t block = rx_precision_check_next(&w->lp->work.check, at / BLOCK);
		block <= (at + n - 1) / BLOCK; block += w->lp->work.check.every) {
		uint64_t first = block * BLOCK;
		uint32_t count = (uint32_t)rx_min_u64(BLOCK, at + n - first);
		double *exact = w->exact[sample++];
		float values[BLOCK];

		for (uint32_t rank = 0; rank < args->n_ranks; rank++) {
			rx_precision_widen(
				values, in->from[rank] + first * w->size, args->dtype, count);
			for (uint32_t i = 0; i < count; i++)
				exact[i] = (rank > 0 ? exact[i] : 0) + (double)values[i];
		}
		for (uint32_t i = 0; args->op == RX_AVG && i < count; i++)
			exact[i] /= args->n_ranks;
	}
}

/* Compares with what sum_exactly() found. */
static void check_sums(struct work *w, uint64_t at, uint64_t n, const float *got)
{
	uint64_t sample = 0;

	for (uint64_t block = rx_precision_check_next(&w->lp->work.check, at / BLOCK);
		block <= (at + n - 1) / BLOCK; block += w->lp->work.check.every)
		rx_precision_check_add(&w->lp->work.check, w->exact[sample++],
			got + (block * BLOCK - at),
			(uint32_t)rx_min_u64(BLOCK, at + n - block * BLOCK));
}

static void add_up(struct work *w, const struct inputs *in, uint64_t at, uint64_t n)
{
	const struct host_coll_args *args = w->args;

	for (uint32_t rank = 0; rank < args->n_ranks; rank++) {
		w->codec->encode(w->wire, w->scales, in->from[rank] + at * w->size, args->dtype, n,
			&w->lp->work.stats);
		w->codec->decode_add(w->sums, w->wire, w->scales, n, rank == 0);
	}
	if (args->op == RX_AVG)
		rx_mx_finish(w->sums, RX_FLOAT32, w->sums, n, RX_AVG, args->n_ranks);
	sum_exactly(w, in, at, n);
}

/* Allreduce: the sums travel as well. */
static void spread_sums(struct work *w, uint64_t at, uint64_t n)
{
	const struct host_coll_args *args = w->args;
	bool bf16 = w->lp->bf16;

	if (bf16) {
		rx_mx_finish(w->wire, RX_BFLOAT16, w->sums, n, RX_SUM, 1);
		rx_precision_widen(w->sums, w->wire, RX_BFLOAT16, (uint32_t)n);
	} else {
		w->codec->encode(w->wire, w->scales, w->sums, RX_FLOAT32, n, &w->lp->work.stats);
	}
	for (uint32_t rank = 0; rank < args->n_ranks; rank++) {
		uint8_t *to = (uint8_t *)args->recv[rank] + at * w->size;

		if (bf16)
			rx_mx_finish(to, args->dtype, w->sums, n, RX_SUM, 1);
		else
			w->codec->decode(to, args->dtype, w->wire, w->scales, n, false);
	}
	if (w->lp->work.check.every == 0)
		return;
	if (!bf16)
		w->codec->decode(w->sums, RX_FLOAT32, w->wire, w->scales, n, false);
	check_sums(w, at, n, w->sums);
}

static int all_reduce(struct work *w)
{
	const struct host_coll_args *args = w->args;
	struct inputs in;
	uint64_t n = 0;

	for (uint32_t rank = 0; rank < args->n_ranks; rank++)
		in.from[rank] = args->send[rank];
	for (uint64_t at = 0; at < args->count; at += n) {
		if (!host_coll_go_on(args))
			return -ECANCELED;
		n = piece_count(w, at, args->count);
		add_up(w, &in, at, n);
		spread_sums(w, at, n);
	}
	return 0;
}

/* @count elements of all inputs from @first on, into one output. */
static int sum_into(struct work *w, uint64_t first, uint64_t count, void *out)
{
	const struct host_coll_args *args = w->args;
	struct inputs in;
	uint64_t n = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && count > 0; rank++)
		in.from[rank] = (const uint8_t *)args->send[rank] + first * w->size;
	for (uint64_t at = 0; at < count; at += n) {
		if (!host_coll_go_on(args))
			return -ECANCELED;
		n = piece_count(w, at, count);
		add_up(w, &in, at, n);
		check_sums(w, at, n, w->sums);
		rx_mx_finish((uint8_t *)out + at * w->size, args->dtype, w->sums, n, RX_SUM, 1);
	}
	return 0;
}

/* Elements of @rank's block of a reduce-scatter. */
static uint64_t result_count(const struct host_coll_args *args, uint32_t rank)
{
	return rx_coll_is_v(args->coll) ? args->counts[0].send_counts[rank] : args->count;
}

static int reduce_scatter(struct work *w)
{
	const struct host_coll_args *args = w->args;
	uint64_t first = 0;
	int r = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && r == 0; rank++) {
		uint64_t count = result_count(args, rank);

		r = sum_into(w, first, count, args->recv[rank]);
		first += count;
	}
	return r;
}

/* ---- copying ---- */

/* The error of a single encoding, of the piece that was read from @src. */
static void check_copy(struct work *w, const uint8_t *src, uint64_t at, uint64_t n)
{
	for (uint64_t block = rx_precision_check_next(&w->lp->work.check, at / BLOCK);
		block <= (at + n - 1) / BLOCK; block += w->lp->work.check.every) {
		uint64_t first = block * BLOCK - at;
		uint32_t count = (uint32_t)rx_min_u64(BLOCK, n - first);
		float values[BLOCK];
		float got[BLOCK];

		rx_precision_widen(values, src + (at + first) * w->size, w->args->dtype, count);
		for (uint32_t i = 0; i < count; i++)
			w->exact[0][i] = (double)values[i];
		w->codec->decode(
			got, RX_FLOAT32, w->wire + first, w->scales + first / BLOCK, count, false);
		rx_precision_check_add(&w->lp->work.check, w->exact[0], got, count);
	}
}

/* One block into @n_dst places. */
static int copy_block(
	struct work *w, const uint8_t *src, uint64_t count, uint8_t *const *dst, uint32_t n_dst)
{
	uint64_t n = 0;

	for (uint64_t at = 0; at < count; at += n) {
		if (!host_coll_go_on(w->args))
			return -ECANCELED;
		n = piece_count(w, at, count);
		w->codec->encode(w->wire, w->scales, src + at * w->size, w->args->dtype, n,
			&w->lp->work.stats);
		check_copy(w, src, at, n);
		for (uint32_t i = 0; i < n_dst; i++)
			w->codec->decode(dst[i] + at * w->size, w->args->dtype, w->wire, w->scales,
				n, false);
	}
	return 0;
}

/* ---- blocks that are copied: where @from's block for @to lies, and where it goes ---- */

static uint64_t sent_count(const struct host_coll_args *args, uint32_t from, uint32_t to)
{
	switch (args->coll) {
	case RX_ALL_GATHER_V:
		return args->counts[0].recv_counts[from];
	case RX_ALL_TO_ALL_V:
		return args->counts[from].send_counts[to];
	default:
		return args->count;
	}
}

static const uint8_t *sent_at(const struct work *w, uint32_t from, uint32_t to)
{
	const struct host_coll_args *args = w->args;
	uint64_t first = 0;

	if (args->coll == RX_ALL_TO_ALL_V)
		first = args->counts[from].send_displs[to];
	else if (args->coll == RX_ALL_TO_ALL)
		first = to * args->count;
	return (const uint8_t *)args->send[from] + first * w->size;
}

static uint8_t *received_at(const struct work *w, uint32_t from, uint32_t to)
{
	const struct host_coll_args *args = w->args;
	uint64_t first =
		rx_coll_is_v(args->coll) ? args->counts[to].recv_displs[from] : from * args->count;

	return (uint8_t *)args->recv[to] + first * w->size;
}

static int all_gather(struct work *w)
{
	const struct host_coll_args *args = w->args;
	uint8_t *dst[RX_MAX_RANKS];
	int r = 0;

	for (uint32_t from = 0; from < args->n_ranks && r == 0; from++) {
		uint64_t count = sent_count(args, from, from);

		/* Without elements there may be no buffers. */
		if (count == 0)
			continue;
		for (uint32_t to = 0; to < args->n_ranks; to++)
			dst[to] = received_at(w, from, to);
		r = copy_block(w, sent_at(w, from, from), count, dst, args->n_ranks);
	}
	return r;
}

static int all_to_all(struct work *w)
{
	const struct host_coll_args *args = w->args;
	int r = 0;

	for (uint32_t from = 0; from < args->n_ranks; from++) {
		for (uint32_t to = 0; to < args->n_ranks && r == 0; to++) {
			uint64_t count = sent_count(args, from, to);
			uint8_t *dst = NULL;

			if (count == 0)
				continue;
			dst = received_at(w, from, to);
			r = copy_block(w, sent_at(w, from, to), count, &dst, 1);
		}
	}
	return r;
}

static int run(struct work *w)
{
	switch (w->args->coll) {
	case RX_ALL_REDUCE:
		return all_reduce(w);
	case RX_ALL_GATHER:
	case RX_ALL_GATHER_V:
		return all_gather(w);
	case RX_REDUCE_SCATTER:
	case RX_REDUCE_SCATTER_V:
		return reduce_scatter(w);
	case RX_ALL_TO_ALL:
	case RX_ALL_TO_ALL_V:
		return all_to_all(w);
	default:
		return -ENOTSUP;
	}
}

int host_lowprec_run(const struct host_coll_args *args)
{
	struct work w;
	int r = 0;

	if (!rx_mx_takes(args->dtype))
		return -ENOTSUP;
	work_init(&w, args);
	r = run(&w);
	if (r == 0)
		rx_precision_traffic(&args->lowprec->work, &(struct rx_precision_message){
								   .coll = args->coll,
								   .dtype = args->dtype,
								   .n_ranks = args->n_ranks,
								   .count = args->count,
								   .counts = args->counts,
								   .bf16 = args->lowprec->bf16,
							   });
	return r;
}
