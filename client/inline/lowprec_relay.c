/* SPDX-License-Identifier: MIT */
/*
 * All-gather, reduce-scatter and all-to-all in low precision: as relay_staged() in relay.c, with
 * the same reasons why four buffers need no further waiting. Here a rank takes its own block from
 * its staging, too, so that it comes out as everybody's.
 */
#include "lowprec.h"

#define DEPTH 4u

static_assert(DEPTH <= RX_STAGE_IN + RX_STAGE_OUT, "staging chunks");

/* How the slots are shared out: one block for each taker, or one for all of them. */
struct slots {
	uint64_t stride; /* bytes between the takers' blocks */
	uint64_t room;   /* elements of a block */
};

static struct slots slots_for(const struct inline_run *run)
{
	bool personal = rx_coll_personal(run->call->sig.coll);
	uint64_t bytes = personal ? RX_CHUNK_BYTES / run->comm->n_ranks : RX_CHUNK_BYTES;
	struct slots slots = {.stride = bytes / RX_CACHE_LINE * RX_CACHE_LINE};

	slots.room = lowprec_room(slots.stride);
	return slots;
}

static uint8_t *slot_of(const struct inline_run *run, uint32_t rank, uint64_t k)
{
	return rx_fabric_chunk(&run->comm->fabric, rank, (uint32_t)(k % DEPTH));
}

/* Piece @k of a block of @count elements; its count is 0 behind the end. */
static struct lowprec_piece piece_of(const struct slots *slots, uint64_t k, uint64_t count)
{
	uint64_t first = k * slots->room;

	return (struct lowprec_piece){
		.first = first,
		.count = first < count ? rx_min_u64(slots->room, count - first) : 0,
		.room = slots->room,
	};
}

static void put_for(struct lowprec *lp, const struct slots *slots, uint64_t k, uint32_t taker)
{
	struct inline_run *run = lp->run;
	struct block from = shape_out(run, taker);
	struct lowprec_piece piece = piece_of(slots, k, from.count);
	bool personal = rx_coll_personal(run->call->sig.coll);
	uint8_t *slot = slot_of(run, run->comm->rank, k) + (personal ? taker * slots->stride : 0);

	if (piece.count > 0)
		lowprec_put(lp, slot, &piece, from.at + piece.first * run->size,
			rx_coll_reduces(run->call->sig.coll));
}

static void put(struct lowprec *lp, const struct slots *slots, uint64_t k)
{
	const struct rcclx_comm *comm = lp->run->comm;

	if (!rx_coll_personal(lp->run->call->sig.coll)) {
		put_for(lp, slots, k, comm->rank);
		return;
	}
	for (uint32_t taker = 0; taker < comm->n_ranks; taker++)
		put_for(lp, slots, k, taker);
}

static uint64_t offset_for_me(const struct inline_run *run, const struct slots *slots)
{
	return rx_coll_personal(run->call->sig.coll) ? run->comm->rank * slots->stride : 0;
}

static void take_sum(struct lowprec *lp, const struct slots *slots, uint64_t k)
{
	struct inline_run *run = lp->run;
	const struct rx_op_sig *sig = &run->call->sig;
	struct block to = shape_in(run, run->comm->rank);
	struct lowprec_piece piece = piece_of(slots, k, to.count);
	uint8_t *from[RX_MAX_RANKS];
	float sums[LOWPREC_SUMS];
	uint64_t n = 0;

	if (piece.count == 0)
		return;
	for (uint32_t rank = 0; rank < run->comm->n_ranks; rank++)
		from[rank] = slot_of(run, rank, k) + offset_for_me(run, slots);
	lowprec_moved(lp, (run->comm->n_ranks - 1) * piece.count,
		(run->comm->n_ranks - 1) * rx_mx_bytes(piece.count));
	for (uint64_t at = 0; at < piece.count; at += n) {
		n = rx_min_u64(LOWPREC_SUMS, piece.count - at);
		lowprec_sum(lp, from, &piece, at, n, sums);
		rx_mx_finish(sums, RX_FLOAT32, sums, n, sig->op, run->comm->n_ranks);
		lowprec_check_sums(lp, from, &piece, at, n, sums);
		rx_mx_finish(to.at + (piece.first + at) * run->size, sig->dtype, sums, n, RX_SUM,
			run->comm->n_ranks);
	}
}

static void take_blocks(struct lowprec *lp, const struct slots *slots, uint64_t k)
{
	struct inline_run *run = lp->run;
	const struct rcclx_comm *comm = run->comm;

	for (uint32_t i = 1; i <= comm->n_ranks; i++) {
		/* Start behind the own rank, so that not all read from one peer at once. */
		uint32_t peer = (comm->rank + i) % comm->n_ranks;
		struct block to = shape_in(run, peer);
		struct lowprec_piece piece = piece_of(slots, k, to.count);

		if (piece.count == 0)
			continue;
		if (peer != comm->rank)
			lowprec_moved(lp, piece.count, rx_mx_bytes(piece.count));
		lowprec_take(lp, slot_of(run, peer, k) + offset_for_me(run, slots), &piece, 0,
			piece.count, to.at + piece.first * run->size);
	}
}

rcclx_result lowprec_relay(struct lowprec *lp)
{
	struct inline_run *run = lp->run;
	struct slots slots = slots_for(run);
	uint64_t n_rounds = (run->max_count - 1) / slots.room + 1;
	uint32_t first_step = run->comm->step;

	for (uint64_t k = 0; k <= n_rounds; k++) {
		rcclx_result r = RCCLX_OK;

		if (k < n_rounds) {
			put(lp, &slots, k);
			run_step(run);
		}
		if (k == 0)
			continue;
		r = wait_all(&run->wait, RX_WAIT_STEP, first_step + (uint32_t)k);
		if (r != RCCLX_OK)
			return r;
		if (rx_coll_reduces(run->call->sig.coll))
			take_sum(lp, &slots, k - 1);
		else
			take_blocks(lp, &slots, k - 1);
	}
	return RCCLX_OK;
}
