/* SPDX-License-Identifier: MIT */
/*
 * Direct: ranks read and write each other's registered memory; no staging. One barrier at the end,
 * since peers read this rank's input and may write its output.
 *
 * Push (allreduce, reduce, gather): a rank folds its part of the message from all inputs into all
 * outputs that want it. Broadcast: the ranks share the copying, a part each. Pull (the others): a
 * rank takes its blocks from the peers' inputs.
 */
#include "shape.h"

#include "link.h"
#include "../err.h"
#include "../import.h"

/* Which memory of the ranks a collective touches from outside. */
enum touch { TOUCH_ALL_SEND = 1, TOUCH_ALL_RECV = 2, TOUCH_ROOT_SEND = 4, TOUCH_ROOT_RECV = 8 };

static unsigned int touches(uint32_t coll)
{
	switch (coll) {
	case RX_ALL_REDUCE:
		return TOUCH_ALL_SEND | TOUCH_ALL_RECV;
	case RX_REDUCE:
		return TOUCH_ALL_SEND | TOUCH_ROOT_RECV;
	case RX_BROADCAST:
		return TOUCH_ROOT_SEND | TOUCH_ALL_RECV;
	case RX_GATHER:
		return TOUCH_ROOT_RECV;
	case RX_SCATTER:
		return TOUCH_ROOT_SEND;
	default:
		return TOUCH_ALL_SEND;
	}
}

/* What peers would touch of @rank. */
struct touched {
	bool send;
	bool recv;
};

static struct touched touched_of(const struct inline_run *run, uint32_t rank)
{
	unsigned int what = touches(run->call->sig.coll);
	bool root = rank == run->call->sig.root;

	return (struct touched){
		.send = (what & TOUCH_ALL_SEND) || (root && (what & TOUCH_ROOT_SEND)),
		.recv = (what & TOUCH_ALL_RECV) || (root && (what & TOUCH_ROOT_RECV)),
	};
}

static bool registered(struct touched touched, const struct rx_entry_bufs *bufs)
{
	return (!touched.send || bufs->send_region != 0) &&
	       (!touched.recv || bufs->recv_region != 0);
}

bool direct_allows(const struct inline_run *run, const struct rx_entry_bufs *bufs)
{
	struct touched touched = touched_of(run, run->comm->rank);

	return (touched.send || touched.recv) && registered(touched, bufs);
}

bool direct_possible(const struct inline_run *run)
{
	for (uint32_t rank = 0; rank < run->comm->n_ranks; rank++)
		if (!registered(touched_of(run, rank), &run->bufs[rank]))
			return false;
	return true;
}

enum side { SIDE_SEND, SIDE_RECV };

/*
 * A peer that announced its memory and was lost has taken it along: then that is the error. So it
 * is if another one was lost: whoever noticed that before this rank may have freed its memory.
 */
static rcclx_result why_not_there(const struct inline_run *run, uint32_t rank)
{
	rcclx_result r = comm_fault(run->comm, rank, &run->call->sig);

	for (uint32_t other = 0; r == RCCLX_OK && other < run->comm->n_ranks; other++)
		r = comm_fault(run->comm, other, &run->call->sig);
	return r == RCCLX_OK ? RCCLX_ERR_INVALID : r;
}

/* Elements [first, first + count) of a rank's buffer, in this process. */
static rcclx_result peer_memory(const struct inline_run *run, enum side side, uint32_t rank,
	uint64_t first, uint64_t count, uint8_t **at_p)
{
	const struct rx_entry_bufs *bufs = &run->bufs[rank];
	uint64_t region = side == SIDE_SEND ? bufs->send_region : bufs->recv_region;
	uint64_t base = side == SIDE_SEND ? bufs->send_offset : bufs->recv_offset;
	uint64_t offset = 0;
	void *at = NULL;
	rcclx_result r = RCCLX_OK;

	/* The peer wrote the base: the sum may be anything. */
	if (!rx_add_u64(base, first * run->size, &offset) || offset % run->size != 0)
		return err_set(RCCLX_ERR_PEER_LOST,
			"rank %u announced an impossible buffer (offset %llu); it is broken", rank,
			(unsigned long long)base);
	r = import_find(run->comm, region, offset, count * run->size, &at);
	if (r == RCCLX_OK)
		*at_p = at;
	return r == RCCLX_ERR_INVALID ? why_not_there(run, rank) : r;
}

static rcclx_result push_fold(struct inline_run *run)
{
	struct rcclx_comm *comm = run->comm;
	struct rx_part part = rx_part_of(run->max_count, run->size, comm->n_ranks, comm->rank);
	struct rx_reduce_args args = run_reduce_args(run);
	uint8_t *src[RX_MAX_RANKS];
	uint8_t *dst[RX_MAX_RANKS];

	if (part.count == 0)
		return RCCLX_OK;
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		rcclx_result r =
			peer_memory(run, SIDE_SEND, rank, part.first, part.count, &src[rank]);

		if (r == RCCLX_OK && shape_takes(&run->call->sig, rank))
			r = peer_memory(
				run, SIDE_RECV, rank, part.first, part.count, &dst[args.n_dst++]);
		if (r != RCCLX_OK)
			return r;
	}
	args.src = (const void *const *)src;
	args.dst = (void *const *)dst;
	args.count = part.count;
	args.stream = run->plan.stream;
	rx_reduce(&args);
	/* All inputs, and all outputs that there are, but for its own. */
	link_moved(
		comm, (comm->n_ranks - 1 + args.n_dst - shape_takes(&run->call->sig, comm->rank)) *
			      part.count * run->size);
	return RCCLX_OK;
}

static rcclx_result push_gather(struct inline_run *run)
{
	const struct rcclx_comm *comm = run->comm;
	struct block from = shape_out(run, comm->rank);
	uint8_t *to = NULL;
	rcclx_result r = RCCLX_OK;

	if (comm->rank == run->call->sig.root)
		return RCCLX_OK;
	r = peer_memory(
		run, SIDE_RECV, run->call->sig.root, comm->rank * run->max_count, from.count, &to);
	if (r != RCCLX_OK)
		return r;
	rx_copy(to, from.at, from.count * run->size, run->plan.stream);
	link_moved(run->comm, from.count * run->size);
	return RCCLX_OK;
}

/* The root's own copy is part of what is shared, unless it is in place. */
static bool broadcast_goes_to(const struct inline_run *run, uint32_t rank)
{
	const struct rx_entry_bufs *bufs = &run->bufs[rank];

	return rank != run->call->sig.root || bufs->send_region != bufs->recv_region ||
	       bufs->send_offset != bufs->recv_offset;
}

static rcclx_result share_broadcast(struct inline_run *run)
{
	const struct rcclx_comm *comm = run->comm;
	uint32_t root = run->call->sig.root;
	struct rx_part part = rx_part_of(run->max_count, run->size, comm->n_ranks, comm->rank);
	uint8_t *from = NULL;
	rcclx_result r = RCCLX_OK;

	if (part.count == 0)
		return RCCLX_OK;
	r = peer_memory(run, SIDE_SEND, root, part.first, part.count, &from);
	for (uint32_t i = 0; i < comm->n_ranks && r == RCCLX_OK; i++) {
		uint32_t rank = (comm->rank + i) % comm->n_ranks;
		uint8_t *to = NULL;

		if (!broadcast_goes_to(run, rank))
			continue;
		r = peer_memory(run, SIDE_RECV, rank, part.first, part.count, &to);
		if (r != RCCLX_OK)
			return r;
		rx_copy(to, from, part.count * run->size, run->plan.stream);
		link_moved(run->comm, part.count * run->size);
	}
	return r;
}

static rcclx_result pull_fold(struct inline_run *run)
{
	struct rcclx_comm *comm = run->comm;
	struct block to = shape_in(run, comm->rank);
	struct rx_reduce_args args = run_reduce_args(run);
	uint8_t *src[RX_MAX_RANKS];
	void *dst[1] = {to.at};

	if (to.count == 0)
		return RCCLX_OK;
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		rcclx_result r = peer_memory(
			run, SIDE_SEND, rank, shape_first_for_me(run, rank), to.count, &src[rank]);

		if (r != RCCLX_OK)
			return r;
	}
	args.src = (const void *const *)src;
	args.dst = dst;
	args.n_dst = 1;
	args.count = to.count;
	args.stream = run->plan.stream;
	rx_reduce(&args);
	link_moved(comm, (comm->n_ranks - 1) * to.count * run->size);
	return RCCLX_OK;
}

static rcclx_result pull_blocks(struct inline_run *run)
{
	const struct rcclx_comm *comm = run->comm;

	for (uint32_t i = 1; i < comm->n_ranks; i++) {
		uint32_t peer = (comm->rank + i) % comm->n_ranks;
		struct block to = shape_in(run, peer);
		uint8_t *from = NULL;
		rcclx_result r = RCCLX_OK;

		if (!shape_gives(&run->call->sig, peer) || to.count == 0)
			continue;
		r = peer_memory(
			run, SIDE_SEND, peer, shape_first_for_me(run, peer), to.count, &from);
		if (r != RCCLX_OK)
			return r;
		rx_copy(to.at, from, to.count * run->size, run->plan.stream);
		link_moved(run->comm, to.count * run->size);
	}
	return RCCLX_OK;
}

static rcclx_result move(struct inline_run *run)
{
	switch (run->call->sig.coll) {
	case RX_ALL_REDUCE:
	case RX_REDUCE:
		return push_fold(run);
	case RX_REDUCE_SCATTER:
	case RX_REDUCE_SCATTER_V:
		return pull_fold(run);
	case RX_GATHER:
		return push_gather(run);
	case RX_BROADCAST:
		return share_broadcast(run);
	default:
		return pull_blocks(run);
	}
}

static bool somebody_is_gone(const struct rcclx_comm *comm)
{
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		if (atomic_load(&comm->fabric.ctl->status[rank]) != RX_MEMBER_ALIVE)
			return true;
	return false;
}

rcclx_result direct_run(struct inline_run *run)
{
	struct rcclx_comm *comm = run->comm;
	rcclx_result r = move(run);

	if (r != RCCLX_OK) {
		/*
		 * The peers wait for this rank's part: they must hear that it will not come. Of a
		 * lost member they hear anyway, and that names the one who is to blame.
		 */
		if (!somebody_is_gone(comm))
			comm_give_up(comm, RX_ABORT_ERROR);
		return comm_fail(comm, r);
	}
	run_step(run);
	if (run->call->sig.coll != RX_BROADCAST)
		shape_copy_own(run);
	return wait_all(&run->wait, RX_WAIT_STEP, comm->step);
}
