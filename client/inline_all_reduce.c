/* SPDX-License-Identifier: MIT */
/*
 * Tiny and flat (one-shot): every rank's data lies in the arena when the op is announced; each
 * rank folds everything. Double buffers replace the exit barrier: a rank overwrites what it sent
 * for op s at op s + 2, and nobody announces s + 1 before having read s.
 *
 * Staged (two-shot, pipelined): a message is cut into chunks, a chunk into one part per rank. In
 * round k a rank copies chunk k into its staging (all but its own part), folds its part of chunk
 * k - 1, and collects the peers' results of chunk k - 2. It announces a step after the copy and
 * one after the fold. Three buffers of each kind need no further waiting: copying chunk k replaces
 * chunk k - 3, whose folds the rank has seen when it collected it in round k - 1; folding chunk
 * k - 1 replaces the result of chunk k - 4, which every peer collected before it announced the copy
 * of chunk k - 1 that this fold has waited for.
 *
 * Direct (two-shot over registered memory): a rank folds its part straight from everybody's input
 * into everybody's output. One barrier after it, since peers read this rank's input and write its
 * output.
 *
 * Reduce-scatter + all-gather: Rabenseifner, "Optimization of Collective Reduction Operations"
 * (2004); here each rank reads the peers' parts itself, as the direct-access kernels on GPUs do.
 */
#include "inline_all_reduce.h"

#include "err.h"
#include "import.h"

static struct rx_reduce_args reduce_args(const struct inline_run *run)
{
	const struct rx_op_sig *sig = &run->call->sig;

	return (struct rx_reduce_args){
		.n_src = run->comm->n_ranks,
		.dtype = sig->dtype,
		.op = sig->op,
		.n_avg = run->comm->n_ranks,
		.scalars = sig->op == RX_PREMUL_SUM ? run->scalars : NULL,
	};
}

static void all_reduce_flat(struct inline_run *run, bool tiny)
{
	const struct rcclx_comm *comm = run->comm;
	struct rx_reduce_args args = reduce_args(run);
	const void *src[RX_MAX_RANKS];
	void *dst[1] = {run->call->recv};

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		const struct rx_entry *entry = &comm->fabric.lines[rank].entry[comm->seq & 1];

		src[rank] = tiny ? (const void *)entry->payload
				 : rx_fabric_flat(&comm->fabric, rank, comm->seq);
	}
	args.src = src;
	args.dst = dst;
	args.n_dst = 1;
	args.count = run->call->sig.count;
	rx_reduce(&args);
}

/* ---- staged ---- */

struct staged {
	struct inline_run *run;
	uint32_t size; /* bytes of an element */
	uint64_t n_chunks;
	uint32_t n_published; /* steps of this op announced so far */
	uint32_t first_step;
};

static uint64_t chunk_first(const struct staged *st, uint64_t k)
{
	return k * st->run->plan.chunk_count;
}

static uint64_t chunk_count(const struct staged *st, uint64_t k)
{
	return rx_min_u64(st->run->plan.chunk_count, st->run->call->sig.count - chunk_first(st, k));
}

static struct rx_part chunk_part(const struct staged *st, uint64_t k, uint32_t rank)
{
	return rx_part_of(chunk_count(st, k), st->size, st->run->comm->n_ranks, rank);
}

static uint8_t *stage_in(const struct staged *st, uint32_t rank, uint64_t k)
{
	return rx_fabric_chunk(&st->run->comm->fabric, rank, (uint32_t)(k % RX_STAGE_IN));
}

static uint8_t *stage_out(const struct staged *st, uint32_t rank, uint64_t k)
{
	return rx_fabric_chunk(
		&st->run->comm->fabric, rank, RX_STAGE_IN + (uint32_t)(k % RX_STAGE_OUT));
}

static void publish_step(struct rcclx_comm *comm)
{
	comm->step++;
	rx_fabric_step(&comm->fabric, comm->rank, comm->step);
}

/* Everything but the own part, which nobody else reads. */
static void staged_copy_in(struct staged *st, uint64_t k)
{
	struct rcclx_comm *comm = st->run->comm;
	const uint8_t *src = (const uint8_t *)st->run->call->send + chunk_first(st, k) * st->size;
	struct rx_part mine = chunk_part(st, k, comm->rank);
	uint64_t after = mine.first + mine.count;
	uint8_t *dst = stage_in(st, comm->rank, k);

	rx_copy(dst, src, mine.first * st->size, false);
	rx_copy(dst + after * st->size, src + after * st->size,
		(chunk_count(st, k) - after) * st->size, false);
	publish_step(comm);
}

static void staged_fold(struct staged *st, uint64_t k)
{
	struct rcclx_comm *comm = st->run->comm;
	struct rx_part part = chunk_part(st, k, comm->rank);
	struct rx_reduce_args args = reduce_args(st->run);
	uint64_t user_first = (chunk_first(st, k) + part.first) * st->size;
	const void *src[RX_MAX_RANKS];
	void *dst[2] = {(uint8_t *)st->run->call->recv + user_first, stage_out(st, comm->rank, k)};

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		src[rank] = stage_in(st, rank, k) + part.first * st->size;
	src[comm->rank] = (const uint8_t *)st->run->call->send + user_first;
	args.src = src;
	args.dst = dst;
	args.n_dst = 2;
	args.count = part.count;
	if (part.count > 0)
		rx_reduce(&args);
	publish_step(comm);
}

static void staged_collect(struct staged *st, uint64_t k)
{
	struct rcclx_comm *comm = st->run->comm;
	uint8_t *recv = (uint8_t *)st->run->call->recv + chunk_first(st, k) * st->size;

	for (uint32_t i = 1; i < comm->n_ranks; i++) {
		/* Start behind the own rank, so that not all read from one peer at once. */
		uint32_t rank = (comm->rank + i) % comm->n_ranks;
		struct rx_part part = chunk_part(st, k, rank);

		rx_copy(recv + part.first * st->size, stage_out(st, rank, k), part.count * st->size,
			st->run->plan.stream);
	}
}

/*
 * Steps of this op after which all have copied chunk k (folded chunk k). Rounds announce
 * copy 0 | copy 1, fold 0 | copy 2, fold 1 | ... | fold n - 1.
 */
static uint32_t step_copied(const struct staged *st, uint64_t k)
{
	return st->first_step + (uint32_t)(k == 0 ? 1 : 2 * k);
}

static uint32_t step_folded(const struct staged *st, uint64_t k)
{
	return st->first_step + (uint32_t)(k + 1 < st->n_chunks ? 2 * k + 3 : 2 * k + 2);
}

static rcclx_result all_reduce_staged(struct inline_run *run)
{
	struct staged st = {
		.run = run,
		.size = rx_dtype_size(run->call->sig.dtype),
		.first_step = run->comm->step,
	};
	rcclx_result r = RCCLX_OK;

	st.n_chunks = (run->call->sig.count - 1) / run->plan.chunk_count + 1;
	for (uint64_t k = 0; k < st.n_chunks + 2; k++) {
		if (k < st.n_chunks)
			staged_copy_in(&st, k);
		if (k >= 1 && k - 1 < st.n_chunks) {
			r = wait_all(&run->wait, RX_WAIT_STEP, step_copied(&st, k - 1));
			if (r != RCCLX_OK)
				return r;
			staged_fold(&st, k - 1);
		}
		if (k >= 2) {
			r = wait_all(&run->wait, RX_WAIT_STEP, step_folded(&st, k - 2));
			if (r != RCCLX_OK)
				return r;
			staged_collect(&st, k - 2);
		}
	}
	return RCCLX_OK;
}

/* ---- direct ---- */

static rcclx_result map_peers(struct inline_run *run, const struct rx_part *part, uint32_t size,
	const void **src, void **dst)
{
	struct rcclx_comm *comm = run->comm;
	uint64_t bytes = run->call->sig.count * size;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		const struct rx_entry_bufs *bufs = &run->bufs[rank];
		void *send = NULL;
		void *recv = NULL;
		rcclx_result r =
			import_find(comm, bufs->send_region, bufs->send_offset, bytes, &send);

		if (r == RCCLX_OK)
			r = import_find(comm, bufs->recv_region, bufs->recv_offset, bytes, &recv);
		if (r != RCCLX_OK)
			return r;
		src[rank] = (const uint8_t *)send + part->first * size;
		dst[rank] = (uint8_t *)recv + part->first * size;
	}
	return RCCLX_OK;
}

static rcclx_result all_reduce_direct(struct inline_run *run)
{
	struct rcclx_comm *comm = run->comm;
	uint32_t size = rx_dtype_size(run->call->sig.dtype);
	struct rx_part part = rx_part_of(run->call->sig.count, size, comm->n_ranks, comm->rank);
	struct rx_reduce_args args = reduce_args(run);
	const void *src[RX_MAX_RANKS];
	void *dst[RX_MAX_RANKS];
	rcclx_result r = map_peers(run, &part, size, src, dst);

	if (r != RCCLX_OK) {
		/* The peers wait for this rank's part: they must hear that it will not come. */
		comm_give_up(comm, RX_ABORT_ERROR);
		return comm_fail(comm, r);
	}
	args.src = src;
	args.dst = dst;
	args.n_dst = comm->n_ranks;
	args.count = part.count;
	args.stream = run->plan.stream;
	if (part.count > 0)
		rx_reduce(&args);
	publish_step(comm);
	return wait_all(&run->wait, RX_WAIT_STEP, comm->step);
}

rcclx_result inline_all_reduce(struct inline_run *run)
{
	switch (run->plan.algorithm) {
	case RX_ALG_TINY:
		all_reduce_flat(run, true);
		return RCCLX_OK;
	case RX_ALG_FLAT:
		all_reduce_flat(run, false);
		return RCCLX_OK;
	case RX_ALG_DIRECT:
		return all_reduce_direct(run);
	default:
		return all_reduce_staged(run);
	}
}
