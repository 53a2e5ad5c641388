/* SPDX-License-Identifier: MIT */
/*
 * An operation ends for its caller when the daemon has completed it, or when the communicator or
 * the daemon is lost. In the second case the daemon may still read and write the memory: then the
 * operation's slot and bounce memory live on until its completion comes, or the session ends.
 */
#include "op_state.h"

#include "comm.h"
#include "err.h"
#include "gates.h"
#include "session.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_wake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After giving up: how long to wait for the daemon's account of who was late. */
#define ACCOUNT_NS     (200 * RX_NS_PER_MS)
#define SPINS_PER_LOOK 16u
#define NAMED_MAX      8u

static struct rcclx_op *op_new(struct rcclx_comm *comm, const struct op_request *request)
{
	struct rcclx_op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->comm = comm;
	op->client = comm->client;
	op->sig = request->sig;
	op->sqe = (struct rx_sqe){
		.member = comm->member,
		.opno = (uint16_t)(comm->opno + 1),
		.coll = request->sig.coll,
		.dtype = request->sig.dtype,
		.op = request->sig.op,
		.flags = request->sig.flags,
		.root = request->sig.root,
		.count = request->sig.count,
		.imm = request->imm,
		.send_region = RX_REGION_NONE,
		.recv_region = RX_REGION_NONE,
	};
	/* A checksum, for ranks that compare by themselves. */
	if (rx_coll_is_v(op->sig.coll))
		op->sig.count = 0;
	return op;
}

static rcclx_result no_memory(void)
{
	return err_set(RCCLX_ERR_NO_MEMORY, "out of memory for an operation");
}

static void put_away(struct rcclx_op *op)
{
	placement_end(op->client, &op->placement);
	free(op);
}

rcclx_result op_start(
	struct rcclx_comm *comm, const struct op_request *request, struct rcclx_op **op_p)
{
	struct rcclx_op *op = op_new(comm, request);
	rcclx_result r = RCCLX_OK;

	if (!op)
		return no_memory();
	r = placement_begin(comm, request, &op->placement, &op->sqe);
	if (r == RCCLX_OK)
		r = op_submit(op);
	if (r != RCCLX_OK) {
		put_away(op);
		return r;
	}
	comm->opno++;
	atomic_fetch_add(&comm->n_ops, 1);
	*op_p = op;
	return RCCLX_OK;
}

rcclx_result op_start_in_stream(
	struct rcclx_comm *comm, const struct op_request *request, const struct op_in_stream *what)
{
	struct rcclx_op *op = op_new(comm, request);
	rcclx_result r = RCCLX_OK;

	if (!op)
		return no_memory();
	op->abandoned = true;
	op->in_stream = true;
	op->captured = what->captured;
	if (rx_coll_is_v(op->sig.coll))
		r = placement_words(comm, request, &op->placement, &op->sqe);
	op->sqe.gate = what->gate;
	if (what->captured)
		op->sqe.flags |= RX_SQE_CAPTURED;
	op->sqe.send_region = what->send_region;
	op->sqe.send_offset = what->send_offset;
	op->sqe.recv_region = what->recv_region;
	op->sqe.recv_offset = what->recv_offset;
	/* Before it is out: it may be over at once. */
	atomic_fetch_add(&comm->n_in_stream, 1);
	if (r == RCCLX_OK)
		r = op_submit(op);
	if (r != RCCLX_OK) {
		atomic_fetch_sub(&comm->n_in_stream, 1);
		put_away(op);
		return r;
	}
	comm->opno++;
	return RCCLX_OK;
}

/* ---- how it ended ---- */

static bool is_fatal(rcclx_result result)
{
	switch (result) {
	case RCCLX_ERR_PEER_LOST:
	case RCCLX_ERR_ABORTED:
	case RCCLX_ERR_TIMEOUT:
	case RCCLX_ERR_DAEMON_LOST:
	case RCCLX_ERR_SYSTEM:
		return true;
	default:
		return false;
	}
}

static rcclx_result completed_mismatch(struct rcclx_op *op)
{
	struct rx_op_sig theirs = {.count = op->cqe.peer_count};

	static_assert(offsetof(struct rx_op_sig, count) == sizeof(op->cqe.peer_sig),
		"the other fields are those that travel in peer_sig");
	memcpy(&theirs, &op->cqe.peer_sig, sizeof(op->cqe.peer_sig));
	return comm_mismatch(op->comm, &op->sig, op->cqe.peer_rank, &theirs);
}

/* The ranks have called the same, with numbers that do not fit. */
static rcclx_result completed_clash(const struct rcclx_op *op)
{
	const struct rx_cqe *cqe = &op->cqe;
	unsigned long long here = cqe->clash_count[0];
	unsigned long long there = cqe->clash_count[1];
	char what[96];

	comm_describe(&op->sig, what, sizeof(what));
	if (op->sig.coll == RX_ALL_TO_ALL_V)
		return err_set(RCCLX_ERR_MISMATCH,
			"the ranks disagree about %s: rank %u sends %llu elements to rank %u, "
			"which expects %llu; nothing was moved",
			what, cqe->clash_rank[0], here, cqe->clash_rank[1], there);
	return err_set(RCCLX_ERR_MISMATCH,
		"the ranks disagree about %s: the count of rank %u is %llu on rank %u, and %llu on "
		"rank %u; nothing was moved. All ranks must give the same counts",
		what, cqe->clash_block, here, cqe->clash_rank[0], there, cqe->clash_rank[1]);
}

static rcclx_result completed_late(struct rcclx_op *op)
{
	char what[96];

	comm_describe(&op->sig, what, sizeof(what));
	return err_set(RCCLX_ERR_TIMEOUT,
		"%s: rank %u (pid %u) did not come within the time given; the communicator is "
		"aborted",
		what, op->cqe.peer_rank, op->cqe.peer_pid);
}

/* The completion's result with its text; it comes from shared memory and may be anything. */
static rcclx_result completed_error(struct rcclx_op *op)
{
	const struct rx_cqe *cqe = &op->cqe;
	struct rcclx_comm *comm = op->comm;
	bool named = cqe->peer_rank < comm->n_ranks && cqe->peer_rank != comm->rank;
	rcclx_result r = RCCLX_OK;
	char what[96];

	if (cqe->result == RCCLX_ERR_MISMATCH && rx_coll_is_v(op->sig.coll) && cqe->clash)
		return completed_clash(op);
	if (cqe->result == RCCLX_ERR_MISMATCH && named)
		return completed_mismatch(op);
	if (cqe->result == RCCLX_ERR_PEER_LOST && named)
		return comm_peer_lost(comm, cqe->peer_rank,
			atomic_load(&comm->fabric.ctl->status[cqe->peer_rank]) == RX_MEMBER_LEFT,
			&op->sig);
	if (cqe->result == RCCLX_ERR_TIMEOUT && named)
		return completed_late(op);
	/* The control page knows more than the completion has room for. */
	r = comm_fault(comm, UINT32_MAX, &op->sig);
	if (r != RCCLX_OK)
		return r;
	comm_describe(&op->sig, what, sizeof(what));
	if (cqe->result < 0 || cqe->result >= RCCLX_ERR_N)
		return err_set(RCCLX_ERR_INTERNAL,
			"the daemon completed %s with a result that does not exist (%d)", what,
			cqe->result);
	return err_set(cqe->result, "the daemon could not execute %s: %s", what,
		rcclx_strerror(cqe->result));
}

void op_over_in_stream(struct rcclx_op *op)
{
	struct rcclx_comm *comm = op->comm;
	bool failed = op->completed && op->cqe.result != RCCLX_OK;

	/* The stream goes on, with a result that is none: nothing after it makes sense. */
	if (comm && failed)
		(void)comm_fail(comm, completed_error(op));
	/* The daemon does not look at the bell of a call that it refused. */
	if (comm && failed && op->captured)
		gates_orphan(comm);
	if (!op->captured)
		gates_put(op->sqe.gate);
	free(op);
	if (comm)
		atomic_fetch_sub(&comm->n_in_stream, 1);
}

static rcclx_result finish(struct rcclx_op *op, rcclx_result result)
{
	op->finished = true;
	op->result = result;
	if (result == RCCLX_OK)
		return result;
	(void)snprintf(op->text, sizeof(op->text), "%s", rcclx_last_error());
	return is_fatal(result) ? comm_fail(op->comm, result) : result;
}

static rcclx_result finish_completed(struct rcclx_op *op)
{
	if (op->cqe.result != RCCLX_OK)
		return finish(op, completed_error(op));
	return finish(op, placement_collect(&op->placement));
}

/* ---- waiting ---- */

static rcclx_result look_around(const struct rcclx_op *op)
{
	rcclx_result r = comm_fault(op->comm, UINT32_MAX, &op->sig);

	if (r == RCCLX_OK && session_lost(op->client))
		r = session_lost_error(op->client);
	return r;
}

static rcclx_result not_yet(const struct rcclx_op *op)
{
	char what[96];

	comm_describe(&op->sig, what, sizeof(what));
	return err_set(RCCLX_ERR_TIMEOUT, "%s is not complete yet", what);
}

rcclx_result op_again(const struct rcclx_op *op)
{
	return op->result == RCCLX_OK ? RCCLX_OK : err_set(op->result, "%s", op->text);
}

/* RCCLX_ERR_TIMEOUT with op->finished unset: not yet. */
rcclx_result op_wait_until(struct rcclx_op *op, uint64_t deadline_ns)
{
	const struct rx_ring *ring = &op->client->ops.ring;
	uint64_t now = rx_now_ns();
	uint64_t spin_until = now + op->comm->spin_ns;

	if (op->finished)
		return op_again(op);
	for (;;) {
		/* Before the reap: what comes after it wakes the sleep. */
		uint32_t event = rx_ring_event(ring);
		rcclx_result r = RCCLX_OK;

		if (op_reap(op))
			return finish_completed(op);
		if (now < spin_until && now < deadline_ns) {
			for (uint32_t i = 0; i < SPINS_PER_LOOK; i++)
				rx_cpu_relax();
			now = rx_now_ns();
			continue;
		}
		r = look_around(op);
		/* It may have been completed just before that happened. */
		if (r != RCCLX_OK)
			return op_reap(op) ? finish_completed(op) : finish(op, r);
		if (now >= deadline_ns)
			return not_yet(op);
		rx_ring_sleep(ring, event, rx_min_u64(RX_SLEEP_NS, deadline_ns - now));
		now = rx_now_ns();
	}
}

/* ---- the end ---- */

void op_dispose(struct rcclx_op *op)
{
	struct rcclx_client *client = op->client;
	struct rcclx_comm *comm = op->comm;
	bool over = op_abandon(op);

	atomic_fetch_sub(&comm->n_ops, 1);
	/* Else whoever takes its completion frees it, or the end of the session. */
	if (!over)
		return;
	placement_end(client, &op->placement);
	free(op);
}

/* "rank 1 (pid 17), rank 2 (pid 18), ..." without the own one */
static void name_others(const struct rcclx_comm *comm, char *text, size_t bytes)
{
	size_t used = 0;
	uint32_t n = 0;

	text[0] = '\0';
	for (uint32_t rank = 0; rank < comm->n_ranks && n <= NAMED_MAX; rank++) {
		int length = 0;

		if (rank == comm->rank)
			continue;
		if (n++ == NAMED_MAX)
			length = snprintf(text + used, bytes - used, ", ...");
		else
			length = snprintf(text + used, bytes - used, "%srank %u (pid %u)",
				used ? ", " : "", rank, comm->fabric.ctl->pid[rank]);
		if (length < 0 || (size_t)length >= bytes - used)
			break;
		used += (size_t)length;
	}
}

/*
 * The time of a blocking call is over: abort, so that nobody goes on with half an operation, and
 * wait a moment for the daemon to say who was late.
 */
rcclx_result op_give_up(struct rcclx_op *op)
{
	const struct rx_ring *ring = &op->client->ops.ring;
	struct rcclx_comm *comm = op->comm;
	uint64_t deadline_ns = rx_deadline_ns(ACCOUNT_NS);
	bool completed = false;
	char what[96];
	char others[256];

	comm_give_up(comm, RX_ABORT_DEADLINE);
	for (;;) {
		uint32_t event = rx_ring_event(ring);
		uint64_t now = rx_now_ns();

		completed = op_reap(op);
		if (completed || now >= deadline_ns || session_lost(op->client))
			break;
		rx_ring_sleep(ring, event, deadline_ns - now);
	}
	if (completed && op->cqe.peer_rank < comm->n_ranks && op->cqe.peer_rank != comm->rank)
		return finish(op, completed_late(op));
	comm_describe(&op->sig, what, sizeof(what));
	name_others(comm, others, sizeof(others));
	return finish(op,
		err_set(RCCLX_ERR_TIMEOUT,
			"%s did not complete within the time given, waiting for other ranks (%s) or "
			"for the daemon; the communicator is aborted",
			what, others));
}
