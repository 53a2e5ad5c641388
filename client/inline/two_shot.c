/* SPDX-License-Identifier: MIT */
/*
 * Two-shot through staging, pipelined: allreduce and reduce of private memory.
 *
 * A message is cut into chunks, a chunk into one part per rank. In round k a rank copies chunk k
 * into its staging (all but its own part), folds its part of chunk k - 1, and collects the peers'
 * results of chunk k - 2. It announces a step after the copy and one after the fold. Three buffers
 * of each kind need no further waiting: copying chunk k replaces chunk k - 3, whose folds the rank
 * has waited for in round k - 1; folding chunk k - 1 replaces the result of chunk k - 4, which
 * every peer collected before it announced the copy of chunk k - 1 that this fold has waited for.
 *
 * Reduce-scatter + all-gather: Rabenseifner, "Optimization of Collective Reduction Operations"
 * (2004); here each rank reads the peers' parts itself, as the direct-access kernels on GPUs do.
 */
#include "link.h"
#include "shape.h"

struct two_shot {
	struct inline_run *run;
	const uint8_t *send;
	uint8_t *recv; /* NULL where this rank gets no result */
	uint64_t n_chunks;
	uint32_t first_step;
};

static uint64_t chunk_first(const struct two_shot *ts, uint64_t k)
{
	return k * ts->run->plan.chunk_count;
}

static uint64_t chunk_count(const struct two_shot *ts, uint64_t k)
{
	return rx_min_u64(ts->run->plan.chunk_count, ts->run->max_count - chunk_first(ts, k));
}

static struct rx_part chunk_part(const struct two_shot *ts, uint64_t k, uint32_t rank)
{
	return rx_part_of(chunk_count(ts, k), ts->run->size, ts->run->comm->n_ranks, rank);
}

static uint8_t *stage_in(const struct two_shot *ts, uint32_t rank, uint64_t k)
{
	return rx_fabric_chunk(&ts->run->comm->fabric, rank, (uint32_t)(k % RX_STAGE_IN));
}

static uint8_t *stage_out(const struct two_shot *ts, uint32_t rank, uint64_t k)
{
	return rx_fabric_chunk(
		&ts->run->comm->fabric, rank, RX_STAGE_IN + (uint32_t)(k % RX_STAGE_OUT));
}

/* Everything but the own part, which nobody else reads. */
static void copy_in(struct two_shot *ts, uint64_t k)
{
	uint32_t size = ts->run->size;
	uint32_t me = ts->run->comm->rank;
	const uint8_t *src = ts->send + chunk_first(ts, k) * size;
	struct rx_part mine = chunk_part(ts, k, me);
	uint64_t after = mine.first + mine.count;
	uint8_t *dst = stage_in(ts, me, k);

	rx_copy(dst, src, mine.first * size, false);
	rx_copy(dst + after * size, src + after * size, (chunk_count(ts, k) - after) * size, false);
	run_step(ts->run);
}

static void fold(struct two_shot *ts, uint64_t k)
{
	uint32_t size = ts->run->size;
	uint32_t me = ts->run->comm->rank;
	struct rx_part part = chunk_part(ts, k, me);
	struct rx_reduce_args args = run_reduce_args(ts->run);
	uint64_t user_offset = (chunk_first(ts, k) + part.first) * size;
	const void *src[RX_MAX_RANKS];
	void *dst[2] = {stage_out(ts, me, k)};

	args.n_dst = 1;
	if (ts->recv != NULL)
		dst[args.n_dst++] = ts->recv + user_offset;
	for (uint32_t rank = 0; rank < ts->run->comm->n_ranks; rank++)
		src[rank] = stage_in(ts, rank, k) + part.first * size;
	src[me] = ts->send + user_offset;
	args.src = src;
	args.dst = dst;
	args.count = part.count;
	link_moved(ts->run->comm, (ts->run->comm->n_ranks - 1) * part.count * size);
	if (part.count > 0)
		rx_reduce(&args);
	run_step(ts->run);
}

static void collect(struct two_shot *ts, uint64_t k)
{
	const struct rcclx_comm *comm = ts->run->comm;
	uint32_t size = ts->run->size;
	uint8_t *recv = NULL;

	if (ts->recv == NULL)
		return;
	recv = ts->recv + chunk_first(ts, k) * size;
	for (uint32_t i = 1; i < comm->n_ranks; i++) {
		/* Start behind the own rank, so that not all read from one peer at once. */
		uint32_t rank = (comm->rank + i) % comm->n_ranks;
		struct rx_part part = chunk_part(ts, k, rank);

		link_moved(ts->run->comm, part.count * size);
		rx_copy(recv + part.first * size, stage_out(ts, rank, k), part.count * size,
			ts->run->plan.stream);
	}
}

/*
 * Steps after which a rank has copied (folded) chunk k. Rounds announce
 * copy 0 | copy 1, fold 0 | copy 2, fold 1 | ... | fold n - 1.
 */
static uint32_t step_copied(const struct two_shot *ts, uint64_t k)
{
	return ts->first_step + (uint32_t)(k == 0 ? 1 : 2 * k);
}

static uint32_t step_folded(const struct two_shot *ts, uint64_t k)
{
	return ts->first_step + (uint32_t)(k + 1 < ts->n_chunks ? 2 * k + 3 : 2 * k + 2);
}

static rcclx_result one_round(struct two_shot *ts, uint64_t k)
{
	rcclx_result r = RCCLX_OK;

	if (k < ts->n_chunks)
		copy_in(ts, k);
	if (k >= 1 && k - 1 < ts->n_chunks) {
		r = wait_all(&ts->run->wait, RX_WAIT_STEP, step_copied(ts, k - 1));
		if (r != RCCLX_OK)
			return r;
		fold(ts, k - 1);
	}
	if (k >= 2) {
		r = wait_all(&ts->run->wait, RX_WAIT_STEP, step_folded(ts, k - 2));
		if (r != RCCLX_OK)
			return r;
		collect(ts, k - 2);
	}
	return RCCLX_OK;
}

rcclx_result two_shot_staged(struct inline_run *run)
{
	bool takes = shape_takes(&run->call->sig, run->comm->rank);
	struct two_shot ts = {
		.run = run,
		.send = run->call->send,
		.recv = takes ? run->call->recv : NULL,
		.n_chunks = (run->max_count - 1) / run->plan.chunk_count + 1,
		.first_step = run->comm->step,
	};

	for (uint64_t k = 0; k < ts.n_chunks + 2; k++) {
		rcclx_result r = one_round(&ts, k);

		if (r != RCCLX_OK)
			return r;
	}
	return RCCLX_OK;
}
