/* SPDX-License-Identifier: MIT */
/*
 * The steps are those of inline_run() and relay_small(), without what follows from the arguments:
 * they are right, and the plan is the same, since nothing that it depends on changes in the life of
 * a communicator. What is announced is the same, too, so that ranks need not agree on which way
 * they go.
 *
 * The clock is read, and a deadline made of it, only by who has to wait for longer than that takes.
 */
#include "fast.h"

#include "run.h"
#include "../../kernels/coll_extent.h"
#include "../../kernels/host/reduce_small.h"
#include "../../shm/rx_clock.h"

#include <string.h>

#define FIRST_LOOKS 64u

static struct fast_kind *kind_of(
	struct rcclx_comm *comm, uint32_t coll, uint64_t count, uint32_t dtype)
{
	uint64_t mixed = count ^ count >> 3 ^ dtype ^ coll << 1;

	return &comm->fast[mixed % RX_ARRAY_SIZE(comm->fast)];
}

static bool equal(const struct rx_op_sig *a, const struct rx_op_sig *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

void fast_remember(struct rcclx_comm *comm, const struct rx_op_sig *sig, bool tiny)
{
	const struct rx_fabric_ctl *ctl = comm->fabric.ctl;
	struct fast_kind *kind = kind_of(comm, sig->coll, sig->count, sig->dtype);
	uint32_t size = rx_dtype_size(sig->dtype);
	struct rx_extent extent;

	if ((kind->known && equal(&kind->sig, sig)) || sig->flags != 0 ||
		(rx_coll_reduces(sig->coll) && sig->op == RX_PREMUL_SUM) ||
		ctl->precision.flags != 0 || ctl->precision.link_rate != 0)
		return;
	if (!rx_coll_extent(sig->coll, sig->count, comm->n_ranks, comm->rank, sig->root, &extent))
		return;
	/* Their sizes are small: the data has passed through the arena's small slots. */
	*kind = (struct fast_kind){
		.sig = *sig,
		.send_bytes = (uint32_t)(extent.send * size),
		.recv_bytes = (uint32_t)(extent.recv * size),
		.size = size,
		.known = true,
		.tiny = tiny,
		.may_be_same =
			extent.in_place_ok && extent.send_in_recv == 0 && extent.recv_in_send == 0,
	};
}

static bool good_buffer(const struct fast_kind *kind, uintptr_t at, uint32_t bytes)
{
	return bytes == 0 || (at != 0 && (at & (kind->size - 1)) == 0 && at <= UINTPTR_MAX - bytes);
}

/* Of which args_coll() would say so, too; not all of those: in place some have other rules. */
static bool good_buffers(const struct fast_kind *kind, const struct args_coll *args)
{
	uintptr_t send = (uintptr_t)args->send;
	uintptr_t recv = (uintptr_t)args->recv;

	if (!good_buffer(kind, send, kind->send_bytes) ||
		!good_buffer(kind, recv, kind->recv_bytes))
		return false;
	return kind->send_bytes == 0 || kind->recv_bytes == 0 || send + kind->send_bytes <= recv ||
	       recv + kind->recv_bytes <= send || (send == recv && kind->may_be_same);
}

static bool fits(const struct fast_kind *kind, const struct args_coll *args)
{
	return kind->known && kind->sig.count == args->count && kind->sig.coll == args->coll &&
	       kind->sig.dtype == args->dtype && kind->sig.op == args->op &&
	       kind->sig.root == args->root && good_buffers(kind, args);
}

static uint8_t *slot_of(const struct inline_run *run, uint32_t rank)
{
	const struct rcclx_comm *comm = run->comm;

	return run->plan.algorithm == RX_ALG_TINY
		       ? comm->fabric.lines[rank].entry[comm->seq & 1].payload
		       : rx_fabric_flat(&comm->fabric, rank, comm->seq);
}

/* Memory that is then loaded in pieces as they were stored. */
static void put(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	if (bytes > RX_ENTRY_PAYLOAD) {
		memcpy(to, from, bytes);
		return;
	}
	for (; bytes >= 16; bytes -= 16, to += 16, from += 16)
		memcpy(to, from, 16);
	for (; bytes >= 4; bytes -= 4, to += 4, from += 4)
		memcpy(to, from, 4);
	for (; bytes > 0; bytes--)
		*to++ = *from++;
}

static void announce(struct inline_run *run)
{
	struct rcclx_comm *comm = run->comm;
	const struct inline_call *call = run->call;
	struct rx_entry *entry = NULL;

	comm->opno++;
	comm->seq++;
	entry = &comm->fabric.lines[comm->rank].entry[comm->seq & 1];
	entry->sig = call->sig;
	entry->imm = 0;
	if (call->sig.coll == RX_ALL_REDUCE)
		put(slot_of(run, comm->rank), call->send, run->max_count * run->size);
	else
		relay_fill(run, slot_of(run, comm->rank));
	rx_fabric_publish(&comm->fabric, comm->rank, comm->seq);
}

/* The sooner of the call's own limit and the communicator's. */
static uint64_t deadline(const struct rcclx_comm *comm, uint64_t timeout_ns)
{
	return rx_deadline_ns(rx_min_u64(
		timeout_ns == 0 ? RX_FOREVER : timeout_ns, comm->fabric.ctl->op_timeout_ns));
}

static rcclx_result wait_for(struct inline_run *run, uint32_t peer, uint64_t timeout_ns)
{
	const struct rcclx_comm *comm = run->comm;
	/* Where cores are shared, waiting is not for spinning at all. */
	uint32_t n_looks = comm->yield ? 1 : FIRST_LOOKS;

	for (uint32_t i = 0; i < n_looks; i++) {
		if (rx_fabric_reached(&comm->fabric, RX_WAIT_ENTRY, peer, comm->seq))
			return RCCLX_OK;
		rx_cpu_relax();
	}
	run->wait = (struct wait_ctx){run->comm, &run->call->sig, deadline(comm, timeout_ns)};
	return wait_peer(&run->wait, RX_WAIT_ENTRY, peer, comm->seq);
}

/* As agree() of inline.c: all entries before a report. */
static rcclx_result meet(struct inline_run *run, uint64_t timeout_ns)
{
	struct rcclx_comm *comm = run->comm;
	const struct rx_op_sig *mine = &run->call->sig;
	uint32_t odd_rank = UINT32_MAX;
	struct rx_op_sig odd_sig = {0};

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		rcclx_result r = RCCLX_OK;
		struct rx_op_sig sig;

		if (rank == comm->rank)
			continue;
		r = wait_for(run, rank, timeout_ns);
		if (r != RCCLX_OK)
			return r;
		sig = comm->fabric.lines[rank].entry[comm->seq & 1].sig;
		if (!equal(&sig, mine) && odd_rank == UINT32_MAX) {
			odd_rank = rank;
			odd_sig = sig;
		}
	}
	return odd_rank == UINT32_MAX ? RCCLX_OK : comm_mismatch(comm, mine, odd_rank, &odd_sig);
}

static void fold(const struct inline_run *run)
{
	const struct rcclx_comm *comm = run->comm;
	const void *src[RX_MAX_RANKS];
	void *dst[1] = {run->call->recv};
	struct rx_reduce_args args = run_reduce_args(run);

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		src[rank] = slot_of(run, rank);
	src[comm->rank] = run->call->send;
	args.src = src;
	args.dst = dst;
	args.n_dst = 1;
	args.count = run->max_count;
	if (args.count * run->size > RX_SMALL_BYTES || !rx_reduce_small(&args))
		rx_reduce(&args);
}

/*
 * The lines that the next operation of this kind will write, and of which the peers have copies
 * that they do not need any more: with a store to each of them they are here by then.
 */
static void own_next(const struct inline_run *run)
{
	const struct rcclx_comm *comm = run->comm;
	uint8_t *slot = rx_fabric_flat(&comm->fabric, comm->rank, comm->seq + 1);
	uint64_t bytes = run->max_count * run->size;

	for (uint64_t at = 0; at < bytes; at += RX_CACHE_LINE)
		slot[at] = 0;
}

bool fast_run(struct rcclx_comm *comm, const struct args_coll *args, uint64_t timeout_ns,
	rcclx_result *result_p)
{
	const struct fast_kind *kind = kind_of(comm, args->coll, args->count, args->dtype);
	struct inline_call call;
	struct inline_run run;
	rcclx_result r = RCCLX_OK;

	if (!fits(kind, args))
		return false;
	/* What is not set is not looked at; see inline_run(). */
	call.sig = kind->sig;
	call.send = kind->send_bytes > 0 ? args->send : NULL;
	call.recv = kind->recv_bytes > 0 ? args->recv : NULL;
	call.imm = 0;
	run.comm = comm;
	run.call = &call;
	run.plan = (struct rx_plan){.algorithm = kind->tiny ? RX_ALG_TINY : RX_ALG_FLAT};
	run.size = kind->size;
	run.max_count = kind->sig.count;
	announce(&run);
	r = meet(&run, timeout_ns);
	if (r == RCCLX_OK && kind->sig.coll == RX_ALL_REDUCE)
		fold(&run);
	else if (r == RCCLX_OK && run.max_count > 0)
		relay_small(&run);
	*result_p = r;
	if (r == RCCLX_OK && !kind->tiny)
		own_next(&run);
	return true;
}
