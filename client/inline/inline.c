/* SPDX-License-Identifier: MIT */
/*
 * Every inline operation starts the same way: the rank writes what it wants into its entry, tells
 * its peers, and waits until all have done so. Then all ranks hold the same facts (what each asked
 * for, where each one's memory is), so that each finds the same mismatch and the same plan alone.
 */
#include "inline.h"

#include "fast.h"
#include "link.h"
#include "run.h"
#include "shape.h"
#include "../err.h"
#include "../mem.h"
#include "../../shm/rx_clock.h"

#include <string.h>

void run_step(struct inline_run *run)
{
	struct rcclx_comm *comm = run->comm;

	comm->step++;
	rx_fabric_step(&comm->fabric, comm->rank, comm->step);
}

struct rx_reduce_args run_reduce_args(const struct inline_run *run)
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

static struct rx_plan_query plan_query(const struct inline_run *run)
{
	const struct rx_op_sig *sig = &run->call->sig;

	return (struct rx_plan_query){
		.coll = sig->coll,
		.dtype = sig->dtype,
		.op = sig->op,
		.n_ranks = run->comm->n_ranks,
		.count = run->max_count,
		.cores_shared = run->comm->fabric.ctl->cores_shared != 0,
	};
}

/*
 * Bytes from the start of this rank's buffer to the end of what the call may touch in it. Only
 * memory that lies in one region from the first to the last of them can be given to peers.
 */
static uint64_t extent(const struct inline_run *run, bool recv)
{
	uint32_t last = run->comm->n_ranks - 1;
	const uint8_t *base = recv ? run->call->recv : run->call->send;
	uint64_t end = 0;

	for (uint32_t peer = 0; peer <= last; peer++) {
		struct block block = recv ? shape_in(run, peer) : shape_out(run, peer);

		if (block.count > 0)
			end = rx_max_u64(
				end, (uint64_t)(block.at - base) + block.count * run->size);
	}
	return end;
}

static void fill_bufs(const struct inline_run *run, bool single, struct rx_entry_bufs *bufs)
{
	const struct inline_call *call = run->call;
	struct rcclx_client *client = run->comm->client;
	struct mem_ref ref;

	memset(bufs, 0, sizeof(*bufs));
	if (single) {
		bufs->send_at = (uintptr_t)call->send;
		bufs->reach = reach_state(run->comm);
	}
	if (shape_gives(&call->sig, run->comm->rank) &&
		mem_find(client, call->send, extent(run, false), &ref)) {
		bufs->send_region = ref.region_id;
		bufs->send_offset = ref.offset;
	}
	if (shape_takes(&call->sig, run->comm->rank) &&
		mem_find(client, call->recv, extent(run, true), &ref)) {
		bufs->recv_region = ref.region_id;
		bufs->recv_offset = ref.offset;
	}
}

/* Private memory, and the peers will not read it where it is. */
static bool send_along(const struct inline_run *run, const struct rx_entry_bufs *bufs)
{
	return bufs->reach != RX_REACH_PROVEN && !direct_allows(run, bufs);
}

/* Write the own entry, with the data itself where the plan wants that, and announce it. */
static void announce(struct inline_run *run, enum rx_early early, bool single)
{
	struct rcclx_comm *comm = run->comm;
	uint32_t seq = comm->seq + 1;
	struct rx_entry *entry = &comm->fabric.lines[comm->rank].entry[seq & 1];
	uint8_t *flat = rx_fabric_flat(&comm->fabric, comm->rank, seq);

	entry->sig = run->call->sig;
	entry->imm = run->call->imm;
	if (early == RX_EARLY_COPY) {
		relay_fill(run, run->plan.algorithm == RX_ALG_TINY ? entry->payload : flat);
	} else {
		fill_bufs(run, single, &entry->bufs);
		if (early == RX_EARLY_COPY_IF_PRIVATE && send_along(run, &entry->bufs)) {
			relay_fill(run, flat);
			entry->bufs.copied = 1;
		}
		entry->bufs.over_budget = lowprec_asked(run) && lowprec_found_over(comm);
	}
	if (run->call->sig.coll == RX_ALL_TO_ALL_V)
		counts_fill(run, flat);
	comm->seq = seq;
	rx_fabric_publish(&comm->fabric, comm->rank, seq);
}

/*
 * Wait for the peers' entries and compare. A rank looks at all entries before it reports, so that a
 * mismatch is one for every rank, and the next op starts in step.
 */
static rcclx_result agree(struct inline_run *run, enum rx_early early)
{
	struct rcclx_comm *comm = run->comm;
	uint32_t odd_rank = UINT32_MAX;
	struct rx_op_sig odd_sig = {0};

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		const struct rx_entry *entry = &comm->fabric.lines[rank].entry[comm->seq & 1];
		rcclx_result r = RCCLX_OK;
		struct rx_op_sig sig;

		if (rank != comm->rank)
			r = wait_peer(&run->wait, RX_WAIT_ENTRY, rank, comm->seq);
		if (r != RCCLX_OK)
			return r;
		sig = entry->sig;
		if (!rx_sig_equal(&sig, &run->call->sig) && odd_rank == UINT32_MAX) {
			odd_rank = rank;
			odd_sig = sig;
		}
		run->scalars[rank] = entry->imm;
		if (early != RX_EARLY_COPY)
			run->bufs[rank] = entry->bufs;
	}
	if (odd_rank != UINT32_MAX)
		return comm_mismatch(comm, &run->call->sig, odd_rank, &odd_sig);
	return run->call->sig.coll == RX_ALL_TO_ALL_V ? counts_agree(run) : RCCLX_OK;
}

static bool all_copied(const struct inline_run *run)
{
	for (uint32_t rank = 0; rank < run->comm->n_ranks; rank++)
		if (shape_gives(&run->call->sig, rank) && run->bufs[rank].copied != 1)
			return false;
	return true;
}

static rcclx_result execute(struct inline_run *run)
{
	switch (run->plan.algorithm) {
	case RX_ALG_TINY:
	case RX_ALG_FLAT:
		relay_small(run);
		return RCCLX_OK;
	case RX_ALG_DIRECT:
		return direct_run(run);
	case RX_ALG_SINGLE:
		return single_run(run);
	default:
		break;
	}
	if (run->call->sig.coll == RX_ALL_REDUCE || run->call->sig.coll == RX_REDUCE)
		return two_shot_staged(run);
	return relay_staged(run);
}

/* The sooner of the call's own limit and the communicator's. */
static uint64_t op_deadline(const struct rcclx_comm *comm, const struct inline_call *call)
{
	uint64_t timeout_ns = comm->fabric.ctl->op_timeout_ns;

	if (timeout_ns == RX_FOREVER)
		return call->deadline_ns;
	return rx_min_u64(call->deadline_ns, rx_deadline_ns(timeout_ns));
}

rcclx_result inline_run(struct rcclx_comm *comm, const struct inline_call *call)
{
	const struct rx_tuning_entry *thresholds =
		rx_tuning_for(&comm->fabric.ctl->tuning, call->sig.coll, comm->n_ranks);
	struct inline_run run;
	struct rx_plan_query query;
	enum rx_early early = RX_EARLY_WAIT;
	rcclx_result r = RCCLX_OK;

	/* Not initialised as a whole: clearing room for 64 ranks would cost more than a small op.
	 */
	run.comm = comm;
	run.call = call;
	run.wait = (struct wait_ctx){comm, &call->sig, op_deadline(comm, call)};
	run.size = rx_dtype_size(call->sig.dtype);
	run.max_count = shape_max_count(call, comm->n_ranks);
	query = plan_query(&run);
	early = lowprec_asked(&run) ? RX_EARLY_WAIT : rx_plan_early(&query, thresholds);
	run.plan = rx_plan_make(&query, thresholds);
	announce(&run, early, rx_plan_may_be_single(&query, thresholds));
	r = agree(&run, early);
	if (r != RCCLX_OK)
		return r;
	if (early == RX_EARLY_COPY)
		fast_remember(comm, &call->sig, run.plan.algorithm == RX_ALG_TINY);
	if (run.max_count == 0)
		return RCCLX_OK;
	if (comm->fabric.ctl->precision.link_rate != 0)
		link_begin(comm);
	if (lowprec_agreed(&run))
		return lowprec_run(&run);
	if (early != RX_EARLY_COPY) {
		query.count = run.max_count;
		query.registered = direct_possible(&run);
		query.copied = all_copied(&run);
		query.reachable = true;
		run.plan = rx_plan_make(&query, thresholds);
		if (run.plan.algorithm == RX_ALG_SINGLE && !reach_meet(comm, run.bufs)) {
			query.reachable = false;
			run.plan = rx_plan_make(&query, thresholds);
		}
	}
	/* Exact after all: no one has sent a small message along. */
	if (lowprec_asked(&run) && run.plan.algorithm != RX_ALG_DIRECT)
		run.plan.algorithm = RX_ALG_STAGED;
	return execute(&run);
}
