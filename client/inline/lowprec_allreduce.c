/* SPDX-License-Identifier: MIT */
/*
 * Allreduce in low precision: the pipeline of two_shot.c, with the same reasons why three buffers
 * of each kind need no further waiting. In round k a rank encodes chunk k into its staging, adds up
 * its part of chunk k - 1 from everybody's, its own included, encodes the sum and decodes that for
 * itself, and decodes the peers' sums of chunk k - 2: so all ranks get the same.
 */
#include "lowprec.h"

#include <string.h>

struct chunks {
	struct lowprec *lp;
	uint64_t room; /* elements of a chunk */
	uint64_t n;
	uint32_t first_step;
	bool bf16; /* the sums travel so */
};

static struct lowprec_piece chunk_at(const struct chunks *c, uint64_t k)
{
	uint64_t first = k * c->room;

	return (struct lowprec_piece){
		.first = first,
		.count = rx_min_u64(c->room, c->lp->run->max_count - first),
		.room = c->room,
	};
}

/* Parts are cut at whole blocks. */
static struct rx_part part_of(
	const struct chunks *c, const struct lowprec_piece *piece, uint32_t rank)
{
	static_assert(RX_CACHE_LINE % RX_MX_BLOCK == 0, "a byte for each element");
	return rx_part_of(piece->count, 1, c->lp->run->comm->n_ranks, rank);
}

static uint8_t *stage_in(const struct chunks *c, uint32_t rank, uint64_t k)
{
	return rx_fabric_chunk(&c->lp->run->comm->fabric, rank, (uint32_t)(k % RX_STAGE_IN));
}

static uint8_t *stage_out(const struct chunks *c, uint32_t rank, uint64_t k)
{
	return rx_fabric_chunk(
		&c->lp->run->comm->fabric, rank, RX_STAGE_IN + (uint32_t)(k % RX_STAGE_OUT));
}

static void encode(const struct chunks *c, uint64_t k)
{
	struct inline_run *run = c->lp->run;
	struct lowprec_piece piece = chunk_at(c, k);

	lowprec_put(c->lp, stage_in(c, run->comm->rank, k), &piece,
		(const uint8_t *)run->call->send + piece.first * run->size, true);
	run_step(run);
}

/* ---- the sums, in a slot by themselves: element 0 of it is the part's first ---- */

static uint64_t sum_bytes(const struct chunks *c, uint64_t count)
{
	return c->bf16 ? count * sizeof(uint16_t) : rx_mx_bytes(count);
}

static void put_sums(
	const struct chunks *c, uint8_t *slot, uint64_t at, const float *sums, uint64_t count)
{
	if (c->bf16)
		rx_mx_finish(slot + at * sizeof(uint16_t), RX_BFLOAT16, sums, count, RX_SUM, 1);
	else
		c->lp->codec->encode(slot + at, slot + c->room + at / RX_MX_BLOCK, sums, RX_FLOAT32,
			count, &c->lp->work.stats);
}

static void take_sums(const struct chunks *c, const uint8_t *slot, uint64_t at, uint32_t dtype,
	void *dst, uint64_t count, bool stream)
{
	uint32_t size = rx_dtype_size(dtype);
	float values[LOWPREC_SUMS];
	uint64_t n = 0;

	if (!c->bf16) {
		c->lp->codec->decode(
			dst, dtype, slot + at, slot + c->room + at / RX_MX_BLOCK, count, stream);
		return;
	}
	for (uint64_t i = 0; i < count; i += n) {
		n = rx_min_u64(LOWPREC_SUMS, count - i);
		rx_precision_widen(
			values, slot + (at + i) * sizeof(uint16_t), RX_BFLOAT16, (uint32_t)n);
		rx_mx_finish((uint8_t *)dst + i * size, dtype, values, n, RX_SUM, 1);
	}
}

/* A rank's sums to where this rank wants them. */
static void take_part(const struct chunks *c, const struct lowprec_piece *piece,
	struct rx_part part, const uint8_t *slot)
{
	const struct inline_run *run = c->lp->run;

	take_sums(c, slot, 0, run->call->sig.dtype,
		(uint8_t *)run->call->recv + (piece->first + part.first) * run->size, part.count,
		run->plan.stream);
}

static void add_up(const struct chunks *c, uint64_t k)
{
	struct lowprec *lp = c->lp;
	const struct rcclx_comm *comm = lp->run->comm;
	struct lowprec_piece piece = chunk_at(c, k);
	struct rx_part part = part_of(c, &piece, comm->rank);
	uint8_t *out = stage_out(c, comm->rank, k);
	uint8_t *in[RX_MAX_RANKS];
	float sums[LOWPREC_SUMS];
	uint64_t n = 0;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		in[rank] = stage_in(c, rank, k);
	lowprec_moved(lp, (comm->n_ranks - 1) * part.count,
		(comm->n_ranks - 1) * rx_mx_bytes(part.count));
	for (uint64_t at = 0; at < part.count; at += n) {
		n = rx_min_u64(LOWPREC_SUMS, part.count - at);
		lowprec_sum(lp, in, &piece, part.first + at, n, sums);
		if (lp->run->call->sig.op == RX_AVG)
			rx_mx_finish(sums, RX_FLOAT32, sums, n, RX_AVG, comm->n_ranks);
		put_sums(c, out, at, sums, n);
		if (lp->work.check.every == 0)
			continue;
		take_sums(c, out, at, RX_FLOAT32, sums, n, false);
		lowprec_check_sums(lp, in, &piece, part.first + at, n, sums);
	}
	run_step(lp->run);
	take_part(c, &piece, part, out);
}

static void collect(const struct chunks *c, uint64_t k)
{
	const struct inline_run *run = c->lp->run;
	const struct rcclx_comm *comm = run->comm;
	struct lowprec_piece piece = chunk_at(c, k);

	for (uint32_t i = 1; i < comm->n_ranks; i++) {
		/* Start behind the own rank, so that not all read from one peer at once. */
		uint32_t rank = (comm->rank + i) % comm->n_ranks;
		struct rx_part part = part_of(c, &piece, rank);

		if (part.count == 0)
			continue;
		lowprec_moved(c->lp, part.count, sum_bytes(c, part.count));
		take_part(c, &piece, part, stage_out(c, rank, k));
	}
}

/* As in two_shot.c: encode 0 | encode 1, add 0 | encode 2, add 1 | ... | add n - 1. */
static uint32_t step_encoded(const struct chunks *c, uint64_t k)
{
	return c->first_step + (uint32_t)(k == 0 ? 1 : 2 * k);
}

static uint32_t step_added(const struct chunks *c, uint64_t k)
{
	return c->first_step + (uint32_t)(k + 1 < c->n ? 2 * k + 3 : 2 * k + 2);
}

static rcclx_result one_round(const struct chunks *c, uint64_t k)
{
	const struct wait_ctx *wait = &c->lp->run->wait;
	rcclx_result r = RCCLX_OK;

	if (k < c->n)
		encode(c, k);
	if (k >= 1 && k - 1 < c->n) {
		r = wait_all(wait, RX_WAIT_STEP, step_encoded(c, k - 1));
		if (r != RCCLX_OK)
			return r;
		add_up(c, k - 1);
	}
	if (k >= 2) {
		r = wait_all(wait, RX_WAIT_STEP, step_added(c, k - 2));
		if (r != RCCLX_OK)
			return r;
		collect(c, k - 2);
	}
	return RCCLX_OK;
}

rcclx_result lowprec_allreduce(struct lowprec *lp)
{
	const struct rcclx_comm *comm = lp->run->comm;
	struct chunks c = {
		.lp = lp,
		.room = lowprec_room(RX_CHUNK_BYTES) / RX_CACHE_LINE * RX_CACHE_LINE,
		.first_step = comm->step,
		.bf16 = comm->fabric.ctl->precision.flags & RX_PRECISION_GATHER_BF16,
	};

	c.n = (lp->run->max_count - 1) / c.room + 1;
	for (uint64_t k = 0; k < c.n + 2; k++) {
		rcclx_result r = one_round(&c, k);

		if (r != RCCLX_OK)
			return r;
	}
	return RCCLX_OK;
}
