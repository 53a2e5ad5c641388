/* SPDX-License-Identifier: MIT */
/*
 * Low precision in the inline executor: slots, sums, checking and counting. The algorithms are in
 * lowprec_allreduce.c and lowprec_relay.c; the arithmetic is defined in doc/low-precision.md.
 */
#include "lowprec.h"

#include "link.h"

#include <string.h>

#define BLOCK        RX_MX_BLOCK
#define BLOCK_BYTES  (BLOCK + 1u)            /* elements and scale */
#define SAMPLE_BYTES (BLOCK * sizeof(float)) /* a checked block's exact values */

uint64_t lowprec_room(uint64_t bytes)
{
	/* Of so many blocks in a row at most one is checked. */
	const uint64_t run_bytes = RX_PRECISION_SAMPLE_MIN * BLOCK_BYTES + SAMPLE_BYTES;
	uint64_t blocks = bytes / run_bytes * RX_PRECISION_SAMPLE_MIN;
	uint64_t rest = bytes % run_bytes;

	if (rest > SAMPLE_BYTES)
		blocks += (rest - SAMPLE_BYTES) / BLOCK_BYTES;
	return blocks * BLOCK;
}

static uint8_t *scales_of(uint8_t *slot, const struct lowprec_piece *piece)
{
	return slot + piece->room;
}

/* Where the exact values of checked block @block are. */
static uint8_t *sample_of(
	const struct lowprec *lp, uint8_t *slot, const struct lowprec_piece *piece, uint64_t block)
{
	uint64_t first = rx_precision_check_next(&lp->work.check, piece->first / BLOCK);

	return slot + rx_mx_bytes(piece->room) +
	       (block - first) / lp->work.check.every * SAMPLE_BYTES;
}

/* Elements of block @block of a piece, which may end within it. */
static uint32_t block_count(const struct lowprec_piece *piece, uint64_t block)
{
	return (uint32_t)rx_min_u64(BLOCK, piece->first + piece->count - block * BLOCK);
}

static void check_own(struct lowprec *lp, uint8_t *slot, const struct lowprec_piece *piece,
	uint64_t block, const float *values)
{
	uint32_t n = block_count(piece, block);
	uint64_t at = block * BLOCK - piece->first;
	double exact[BLOCK];
	float got[BLOCK];

	lp->codec->decode(
		got, RX_FLOAT32, slot + at, scales_of(slot, piece) + at / BLOCK, n, false);
	for (uint32_t i = 0; i < n; i++)
		exact[i] = (double)values[i];
	rx_precision_check_add(&lp->work.check, exact, got, n);
}

void lowprec_put(struct lowprec *lp, uint8_t *slot, const struct lowprec_piece *piece,
	const void *src, bool summed)
{
	uint32_t dtype = lp->run->call->sig.dtype;
	uint64_t last = (piece->first + piece->count - 1) / BLOCK;

	lp->codec->encode(slot, scales_of(slot, piece), src, dtype, piece->count, &lp->work.stats);
	for (uint64_t block = rx_precision_check_next(&lp->work.check, piece->first / BLOCK);
		block <= last; block += lp->work.check.every) {
		uint64_t at = block * BLOCK - piece->first;
		float values[BLOCK] = {0};

		rx_precision_widen(values, (const uint8_t *)src + at * lp->run->size, dtype,
			block_count(piece, block));
		if (summed)
			memcpy(sample_of(lp, slot, piece, block), values, sizeof(values));
		else
			check_own(lp, slot, piece, block, values);
	}
}

void lowprec_take(const struct lowprec *lp, const uint8_t *slot, const struct lowprec_piece *piece,
	uint64_t at, uint64_t count, void *dst)
{
	lp->codec->decode(dst, lp->run->call->sig.dtype, slot + at, slot + piece->room + at / BLOCK,
		count, lp->run->plan.stream);
}

void lowprec_sum(const struct lowprec *lp, uint8_t *const slots[],
	const struct lowprec_piece *piece, uint64_t at, uint64_t count, float *sums)
{
	for (uint32_t rank = 0; rank < lp->run->comm->n_ranks; rank++)
		lp->codec->decode_add(sums, slots[rank] + at,
			scales_of(slots[rank], piece) + at / BLOCK, count, rank == 0);
}

/* The exact sum of one checked block. */
static void sum_exactly(const struct lowprec *lp, uint8_t *const slots[],
	const struct lowprec_piece *piece, uint64_t block, double exact[BLOCK])
{
	uint32_t n_ranks = lp->run->comm->n_ranks;
	float values[BLOCK];

	memset(exact, 0, BLOCK * sizeof(*exact));
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		memcpy(values, sample_of(lp, slots[rank], piece, block), sizeof(values));
		for (uint32_t i = 0; i < BLOCK; i++)
			exact[i] += (double)values[i];
	}
	for (uint32_t i = 0; lp->run->call->sig.op == RX_AVG && i < BLOCK; i++)
		exact[i] /= n_ranks;
}

void lowprec_check_sums(struct lowprec *lp, uint8_t *const slots[],
	const struct lowprec_piece *piece, uint64_t at, uint64_t count, const float *got)
{
	uint64_t first = (piece->first + at) / BLOCK;
	uint64_t last = (piece->first + at + count - 1) / BLOCK;
	double exact[BLOCK];

	for (uint64_t block = rx_precision_check_next(&lp->work.check, first); block <= last;
		block += lp->work.check.every) {
		sum_exactly(lp, slots, piece, block, exact);
		rx_precision_check_add(&lp->work.check, exact, got + (block - first) * BLOCK,
			block_count(piece, block));
	}
}

void lowprec_moved(struct lowprec *lp, uint64_t count, uint64_t wire)
{
	lp->work.exact_bytes += count * lp->run->size;
	lp->work.wire_bytes += wire;
	link_moved(lp->run->comm, wire);
}

/* ---- the operation ---- */

/* The most that one rank sends: all ranks have the whole matrix of counts. */
static bool is_large(const struct inline_run *run)
{
	const struct rcclx_comm *comm = run->comm;
	const struct rx_fabric_ctl *ctl = comm->fabric.ctl;

	return rx_precision_large(counts_most_sent(run), run->call->sig.dtype,
		rx_precision_min(
			&ctl->precision, &ctl->tuning, run->call->sig.coll, comm->n_ranks));
}

bool lowprec_asked(const struct inline_run *run)
{
	return run->call->sig.flags & RX_SIG_FLAGS;
}

bool lowprec_found_over(const struct rcclx_comm *comm)
{
	return comm->found_over ||
	       atomic_load_explicit(&comm->fabric.ctl->over_budget, memory_order_relaxed) != 0;
}

bool lowprec_agreed(struct inline_run *run)
{
	struct rcclx_comm *comm = run->comm;

	if (!lowprec_asked(run))
		return false;
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		if (run->bufs[rank].over_budget == 1)
			atomic_store_explicit(&comm->over_budget, 1, memory_order_relaxed);
	if (comm_over_budget(comm))
		return false;
	return !(run->call->sig.flags & RX_SIG_IF_LARGE) || is_large(run);
}

/* What was done, for the daemon; and whether the errors are above the budget. */
static void account(const struct lowprec *lp)
{
	struct rcclx_comm *comm = lp->run->comm;
	const struct rx_precision *precision = &comm->fabric.ctl->precision;
	uint64_t ppm = rx_precision_account(&comm->counts, &lp->work);

	rx_fabric_count(&comm->fabric, comm->rank, &comm->counts);
	if (precision->budget_ppm == 0 || ppm <= precision->budget_ppm || comm->found_over)
		return;
	comm->found_over = true;
	comm_tell_over_budget(comm);
}

rcclx_result lowprec_run(struct inline_run *run)
{
	struct lowprec lp = {
		.run = run,
		.codec = rx_mx_codec_of(rx_precision_format(run->call->sig.flags)),
	};
	rcclx_result r = RCCLX_OK;

	rx_precision_check_init(
		&lp.work.check, run->comm->fabric.ctl->precision.sample_every, run->comm->seq);
	r = run->call->sig.coll == RX_ALL_REDUCE ? lowprec_allreduce(&lp) : lowprec_relay(&lp);
	if (r == RCCLX_OK)
		account(&lp);
	return r;
}
