/* SPDX-License-Identifier: MIT */
/*
 * Every inline operation starts the same way: the rank writes what it wants into its entry, tells
 * its peers, and waits until all have done so. Then all ranks hold the same facts (what each asked
 * for, where each one's memory is), so that each finds the same mismatch and the same plan alone.
 */
#include "inline.h"

#include "err.h"
#include "inline_all_reduce.h"
#include "mem.h"
#include "../shm/rx_clock.h"

#include <string.h>

static uint64_t message_bytes(const struct inline_call *call)
{
	return call->sig.count * rx_dtype_size(call->sig.dtype);
}

static struct rx_plan_query plan_query(const struct inline_run *run)
{
	const struct rx_op_sig *sig = &run->call->sig;

	return (struct rx_plan_query){
		.coll = sig->coll,
		.dtype = sig->dtype,
		.op = sig->op,
		.n_ranks = run->comm->n_ranks,
		.count = sig->count,
		.cores_shared = run->comm->yield,
	};
}

static void fill_bufs(
	struct rx_entry_bufs *bufs, struct rcclx_client *client, const struct inline_call *call)
{
	struct mem_ref send;
	struct mem_ref recv;

	memset(bufs, 0, sizeof(*bufs));
	if (!mem_find(client, call->send, message_bytes(call), &send) ||
		!mem_find(client, call->recv, message_bytes(call), &recv))
		return;
	bufs->send_region = send.region_id;
	bufs->send_offset = send.offset;
	bufs->recv_region = recv.region_id;
	bufs->recv_offset = recv.offset;
}

/* Write the own entry, with the data itself where the message is small, and announce it. */
static void announce(struct inline_run *run, bool small)
{
	struct rcclx_comm *comm = run->comm;
	const struct inline_call *call = run->call;
	uint32_t seq = comm->seq + 1;
	struct rx_entry *entry = &comm->fabric.lines[comm->rank].entry[seq & 1];
	uint64_t bytes = message_bytes(call);

	entry->sig = call->sig;
	entry->imm = call->imm;
	if (!small)
		fill_bufs(&entry->bufs, comm->client, call);
	else if (bytes <= RX_ENTRY_PAYLOAD && bytes > 0)
		memcpy(entry->payload, call->send, bytes);
	else if (bytes > 0)
		rx_copy(rx_fabric_flat(&comm->fabric, comm->rank, seq), call->send, bytes, false);
	comm->seq = seq;
	rx_fabric_publish(&comm->fabric, comm->rank, seq);
}

static bool sig_equal(const struct rx_op_sig *a, const struct rx_op_sig *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/*
 * Wait for the peers' entries and compare. All ranks look at all entries before any of them
 * reports, so that a mismatch is one for every rank, and the next op starts in step.
 */
static rcclx_result gather_entries(struct inline_run *run, bool small, bool *all_registered_p)
{
	struct rcclx_comm *comm = run->comm;
	uint32_t odd_rank = UINT32_MAX;
	struct rx_op_sig odd_sig = {0};
	bool all_registered = !small;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		const struct rx_entry *entry = &comm->fabric.lines[rank].entry[comm->seq & 1];
		rcclx_result r = wait_peer(&run->wait, RX_WAIT_ENTRY, rank, comm->seq);
		struct rx_op_sig sig;

		if (r != RCCLX_OK)
			return r;
		sig = entry->sig;
		if (!sig_equal(&sig, &run->call->sig) && odd_rank == UINT32_MAX) {
			odd_rank = rank;
			odd_sig = sig;
		}
		run->scalars[rank] = entry->imm;
		if (small)
			continue;
		run->bufs[rank] = entry->bufs;
		all_registered &= run->bufs[rank].send_region != 0;
	}
	*all_registered_p = all_registered;
	if (odd_rank != UINT32_MAX)
		return comm_mismatch(comm, &run->call->sig, odd_rank, &odd_sig);
	return RCCLX_OK;
}

static rcclx_result execute(struct inline_run *run)
{
	if (run->call->sig.count == 0)
		return RCCLX_OK;
	switch (run->call->sig.coll) {
	case RX_ALL_REDUCE:
		return inline_all_reduce(run);
	default:
		return err_set(RCCLX_ERR_INTERNAL, "the inline executor cannot do %s",
			rx_coll_name(run->call->sig.coll));
	}
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
	const struct rx_tuning *tuning = rx_tuning_default();
	struct inline_run run;
	struct rx_plan_query query;
	bool small = false;
	rcclx_result r = RCCLX_OK;

	/* Not initialised as a whole: clearing room for 64 ranks would cost more than a small op.
	 */
	run.comm = comm;
	run.call = call;
	run.wait = (struct wait_ctx){comm, &call->sig, op_deadline(comm, call)};
	query = plan_query(&run);
	small = rx_plan_is_small(&query, tuning);
	announce(&run, small);
	r = gather_entries(&run, small, &query.all_registered);
	if (r != RCCLX_OK)
		return r;
	run.plan = rx_plan_make(&query, tuning);
	return execute(&run);
}
