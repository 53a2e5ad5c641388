/* SPDX-License-Identifier: MIT */
/*
 * A recorded call is an op that stands in no queue. When all ranks have recorded it the worker has
 * all it needs to make it, and this thread hears of a replay only when one fails.
 *
 * A graph cannot be told that its communicator is gone, and its streams wait for the gate whatever
 * happens. So a gate is known to the worker from the moment it is posted until its member leaves,
 * which then, in its own process, lets the streams go on; in between replays of what has failed
 * end at once.
 */
#include "captured.h"

#include "answer.h"
#include "daemon.h"
#include "entry.h"
#include "gpu_bells.h"
#include "gpu_mem.h"
#include "op_impl.h"
#include "region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of one communicator; each takes memory as long as that exists. */
#define CAPTURED_MAX 16384u

enum { SOURCE, DESTINATION };

struct captured_gate {
	struct captured *captured;
	struct gpu_job attach;
	struct gpu_job detach;
	bool attached; /* or going to be */
	bool leaving;  /* detach is submitted */
	int result;    /* worker: of attaching */
};

struct captured {
	struct rx_list link; /* of comm->captured */
	struct comm *comm;
	struct op *op;
	bool is_transfer;
	uint32_t source;
	uint32_t destination;
	struct gpu_run *run;
	struct gpu_job complete;
	struct gpu_job failing; /* to the worker */
	struct gpu_job failed;  /* from the worker */
	bool is_failing;
	uint32_t n_jobs; /* submitted and not handed back */
	uint32_t n_gates;
	struct captured_gate gates[];
};

static struct gpu *gpu_of(const struct captured *captured)
{
	return captured->comm->daemon->gpu;
}

static bool is_attached(const struct captured *captured)
{
	for (uint32_t i = 0; i < captured->n_gates; i++)
		if (captured->gates[i].attached)
			return true;
	return false;
}

/* ---- life ---- */

static void account(const struct captured *captured, struct rx_precision_counts *sum)
{
	if (captured->run)
		gpu_counts_account(&captured->run->found, &captured->run->work, sum);
}

static void captured_free(struct captured *captured)
{
	struct comm *comm = captured->comm;
	uint64_t n = captured->run
			     ? atomic_load_explicit(&captured->run->n_replays, memory_order_relaxed)
			     : 0;

	comm->ops_done += n;
	comm->daemon->stats.ops_done += n;
	account(captured, &comm->precision);
	rx_list_unlink(&captured->link);
	comm->n_captured--;
	(void)gpu_run_free(captured->run);
	if (captured->op)
		op_dispose(captured->op);
	free(captured);
}

static void on_failed(struct gpu_job *job)
{
	struct captured *captured = rx_container_of(job, struct captured, failed);
	struct comm *comm = captured->comm;

	if (captured->run->gone && comm_bury(comm))
		return;
	rx_err("comm=%" PRIu64 " name=\"%s\" a replay failed: %s", comm->id, comm->name,
		captured->run->error);
	comm_abort(comm, RX_ABORT_DEVICE, UINT32_MAX, UINT32_MAX, NULL);
}

/* In the worker; once, as later replays are not made. */
static void on_replay_failed(struct gpu_run *run)
{
	struct captured *captured = run->owner;

	gpu_tell(run->gpu, &captured->failed);
}

static struct captured *captured_new(struct comm *comm, const struct rx_sqe *sqe, uint32_t rank)
{
	bool is_transfer = entry_is_p2p(sqe);
	uint32_t n_gates = is_transfer ? 2 : comm->n_ranks;
	struct captured *captured =
		calloc(1, sizeof(*captured) + n_gates * sizeof(captured->gates[0]));

	if (!captured)
		return NULL;
	rx_list_push(&comm->captured, &captured->link);
	comm->n_captured++;
	captured->comm = comm;
	captured->n_gates = n_gates;
	captured->is_transfer = is_transfer;
	captured->source = sqe->coll == RX_SEND ? rank : sqe->root;
	captured->destination = sqe->coll == RX_SEND ? sqe->root : rank;
	captured->failed.done = on_failed;
	captured->op = op_alloc(comm, 0);
	captured->run = gpu_run_new(comm->daemon->gpu, comm->n_ranks);
	if (!captured->op || !captured->run) {
		captured_free(captured);
		return NULL;
	}
	for (uint32_t i = 0; i < n_gates; i++)
		captured->gates[i].captured = captured;
	captured->run->standing = true;
	captured->run->owner = captured;
	captured->run->over = on_replay_failed;
	captured->run->cancelled = &captured->op->job.cancelled;
	captured->run->needed = n_gates == 64 ? UINT64_MAX : (1ull << n_gates) - 1;
	atomic_init(&captured->run->closed, captured->run->needed);
	return captured;
}

/* ---- jobs ---- */

static struct captured_gate *gate_of(struct gpu_job *job, size_t offset)
{
	return (struct captured_gate *)((char *)job - offset);
}

static uint32_t number_of(const struct captured_gate *gate)
{
	return (uint32_t)(gate - gate->captured->gates);
}

static void submit(struct captured *captured, struct gpu_job *job)
{
	captured->n_jobs++;
	gpu_submit(gpu_of(captured), job);
}

/* Nobody can come to it any more, and no job is under way. */
static void job_over(struct captured *captured)
{
	struct comm *comm = captured->comm;

	captured->n_jobs--;
	if (captured->n_jobs > 0 || is_attached(captured))
		return;
	captured_free(captured);
	comm_release(comm);
}

static bool attach(struct gpu_job *job, struct gpu *gpu)
{
	struct captured_gate *gate = gate_of(job, offsetof(struct captured_gate, attach));

	gate->result = gpu_bells_add(gpu_bells(gpu), gate->captured->run, number_of(gate));
	return true;
}

static void on_attached(struct gpu_job *job)
{
	struct captured_gate *gate = gate_of(job, offsetof(struct captured_gate, attach));

	if (gate->result)
		comm_abort(gate->captured->comm, RX_ABORT_ERROR, UINT32_MAX, UINT32_MAX, NULL);
	job_over(gate->captured);
}

static bool fail(struct gpu_job *job, struct gpu *gpu)
{
	(void)gpu;
	gpu_run_fail(rx_container_of(job, struct captured, failing)->run);
	return true;
}

static void on_told(struct gpu_job *job)
{
	job_over(rx_container_of(job, struct captured, failing));
}

static void start_failing(struct captured *captured)
{
	if (captured->is_failing)
		return;
	captured->is_failing = true;
	exec_cancel(&captured->op->job);
	captured->failing.run = fail;
	captured->failing.done = on_told;
	submit(captured, &captured->failing);
}

static bool detach_when_idle(struct gpu_job *job, struct gpu *gpu, bool give_up)
{
	struct captured_gate *gate = gate_of(job, offsetof(struct captured_gate, detach));

	(void)give_up; /* the replay itself gives up then */
	if (gate->captured->run->active)
		return false;
	gpu_bells_remove(gpu_bells(gpu), gate->captured->run, number_of(gate));
	return true;
}

static bool detach(struct gpu_job *job, struct gpu *gpu)
{
	return detach_when_idle(job, gpu, false);
}

static void on_detached(struct gpu_job *job)
{
	struct captured_gate *gate = gate_of(job, offsetof(struct captured_gate, detach));

	gate->attached = false;
	job_over(gate->captured);
}

/* ---- when all ranks have recorded it ---- */

static int fill_transfer(struct captured *captured)
{
	const struct op_part *from = &captured->op->parts[captured->source];
	const struct op_part *to = &captured->op->parts[captured->destination];
	struct gpu_run *run = captured->run;
	uint64_t bytes = from->sig.count * rx_dtype_size(from->sig.dtype);

	if (from->send && gpu_mem_prepare(from->send))
		return -ENOMEM;
	if (to->recv && gpu_mem_prepare(to->recv))
		return -ENOMEM;
	run->send[captured->source] = (struct gpu_buffer){from->send, from->send_offset, bytes};
	run->recv[captured->destination] = (struct gpu_buffer){to->recv, to->recv_offset, bytes};
	run->streams = comm_streams(captured->comm);
	run->coll = RX_SEND;
	run->dtype = from->sig.dtype;
	run->root = captured->source;
	run->peer = captured->destination;
	run->count = from->sig.count;
	return run->streams ? 0 : -ENOMEM;
}

/* The gates are there already, since each was posted. */
static int fill(struct captured *captured)
{
	return captured->is_transfer ? fill_transfer(captured)
				     : op_fill_run(captured->op, captured->run);
}

/* Do the sides of it fit? If not, @sigs are two that do not, of the ranks @ranks. */
static bool fits(const struct captured *captured, uint32_t ranks[2], struct rx_op_sig sigs[2])
{
	const struct op *op = captured->op;
	struct rx_clash clash;

	if (captured->is_transfer) {
		ranks[0] = captured->source;
		ranks[1] = captured->destination;
		sigs[0] = op->parts[ranks[0]].sig;
		sigs[1] = op->parts[ranks[1]].sig;
		return ranks[0] == ranks[1] ||
		       (sigs[0].count == sigs[1].count && sigs[0].dtype == sigs[1].dtype);
	}
	ranks[0] = 0;
	ranks[1] = op_first_odd(op);
	if (ranks[1] == captured->comm->n_ranks && rx_coll_is_v(op->parts[0].sig.coll) &&
		!rx_counts_agree(
			op->parts[0].sig.coll, op->counts, captured->comm->n_ranks, 0, &clash)) {
		ranks[0] = clash.rank[0];
		ranks[1] = clash.rank[1];
	}
	if (ranks[1] == captured->comm->n_ranks)
		return true;
	sigs[0] = op->parts[ranks[0]].sig;
	sigs[1] = op->parts[ranks[1]].sig;
	return false;
}

static bool complete(struct gpu_job *job, struct gpu *gpu)
{
	struct captured *captured = rx_container_of(job, struct captured, complete);

	if (gpu_run_complete(captured->run))
		gpu_begin(gpu, &captured->run->job);
	return true;
}

static void on_complete(struct gpu_job *job)
{
	job_over(rx_container_of(job, struct captured, complete));
}

static void finish_recording(struct captured *captured)
{
	struct rx_op_sig sigs[2];
	uint32_t ranks[2];

	if (!fits(captured, ranks, sigs)) {
		comm_abort(captured->comm, RX_ABORT_MISMATCH, ranks[0], ranks[1], sigs);
		return;
	}
	/* Processors do not make replays: there is nobody to tell this thread of them. */
	if (fill(captured) || (!op_uses_devices(captured->op) && captured->run->count > 0)) {
		comm_abort(captured->comm, RX_ABORT_ERROR, UINT32_MAX, UINT32_MAX, NULL);
		return;
	}
	captured->complete.run = complete;
	captured->complete.done = on_complete;
	submit(captured, &captured->complete);
}

/* ---- posting ---- */

static uint32_t gate_number(
	const struct captured *captured, const struct member *member, const struct rx_sqe *sqe)
{
	if (!captured->is_transfer)
		return member->rank;
	return sqe->coll == RX_SEND ? SOURCE : DESTINATION;
}

/* Does @member's call belong to it? Then *i_p is the gate's number. */
static bool is_for(const struct captured *captured, const struct member *member,
	const struct rx_sqe *sqe, uint32_t *i_p)
{
	bool is_send = sqe->coll == RX_SEND;
	uint32_t i = gate_number(captured, member, sqe);

	if (captured->is_failing || captured->gates[i].attached)
		return false;
	if (captured->is_transfer &&
		(captured->source != (is_send ? member->rank : sqe->root) ||
			captured->destination != (is_send ? sqe->root : member->rank)))
		return false;
	*i_p = i;
	return true;
}

/* The first that @member's call is missing in, else a new one; NULL: no memory, or too many. */
static struct captured *match(const struct member *member, const struct rx_sqe *sqe, uint32_t *i_p)
{
	struct comm *comm = member->comm;
	struct captured *found = NULL;

	/* From the end: what others wait for is there, and before it what is complete. */
	for (struct rx_list *pos = comm->captured.prev; pos != &comm->captured; pos = pos->prev) {
		struct captured *captured = rx_list_entry(pos, struct captured, link);

		if (captured->is_transfer != entry_is_p2p(sqe))
			continue;
		if (is_for(captured, member, sqe, i_p))
			found = captured;
		else if (!captured->is_transfer)
			break; /* it has recorded this one, so all before */
	}
	if (found || comm->n_captured >= CAPTURED_MAX)
		return found;
	found = captured_new(comm, sqe, member->rank);
	if (found)
		*i_p = gate_number(found, member, sqe);
	return found;
}

/* A transfer to oneself has both sides in one part. */
static void put(struct captured *captured, uint32_t i, const struct member *member,
	const struct rx_sqe *sqe, struct region *send, struct region *recv, const struct gate *gate)
{
	struct op_part *part = &captured->op->parts[member->rank];

	if (part->posted) {
		if (sqe->coll == RX_SEND) {
			part->send = send ? region_ref(send) : NULL;
			part->send_offset = sqe->send_offset;
			part->sig = entry_sig(sqe);
		} else {
			part->recv = recv ? region_ref(recv) : NULL;
			part->recv_offset = sqe->recv_offset;
		}
		captured->op->n_posted++;
	} else {
		op_put_part(captured->op, member, sqe, send, recv, gate);
		part->answered = true;
	}
	captured->run->gates[i] = *gate;
}

static bool record(struct member *member, const struct rx_sqe *sqe, struct region *send,
	struct region *recv, const uint64_t *words, const struct gate *gate)
{
	uint32_t i = 0;
	struct captured *captured = match(member, sqe, &i);
	struct captured_gate *mine = NULL;

	if (!captured)
		return false;
	if (!op_keep_words(captured->op, member, sqe, words)) {
		if (captured->n_jobs == 0 && !is_attached(captured))
			captured_free(captured);
		return false;
	}
	put(captured, i, member, sqe, send, recv, gate);
	mine = &captured->gates[i];
	mine->attached = true;
	mine->attach.run = attach;
	mine->attach.done = on_attached;
	submit(captured, &mine->attach);
	if (captured->op->n_posted == captured->n_gates)
		finish_recording(captured);
	return true;
}

void captured_post(struct member *member, const struct rx_sqe *sqe, struct region *send,
	struct region *recv, const uint64_t *words, bool bad, const struct gate *gate)
{
	struct comm *comm = member->comm;
	struct outcome outcome = {.result = RX_OK, .peer_rank = UINT32_MAX};

	if (comm->state == COMM_READY && comm->n_present == comm->n_ranks &&
		(bad || !record(member, sqe, send, recv, words, gate)))
		comm_abort(comm, RX_ABORT_ERROR, member->rank, UINT32_MAX, NULL);
	if (comm->state != COMM_READY)
		outcome = outcome_of_abort(comm);
	else if (comm->n_present != comm->n_ranks)
		outcome =
			(struct outcome){.result = RX_ERR_PEER_LOST, .peer_rank = comm->fail_rank};
	answer(member, sqe->user_data, sqe->opno, outcome);
}

/* ---- looking ---- */

void captured_account(const struct comm *comm, struct rx_precision_counts *sum)
{
	rx_list_for_each (pos, &comm->captured)
		account(rx_list_entry(pos, struct captured, link), sum);
}

/* ---- the end ---- */

void captured_fail_all(struct comm *comm)
{
	rx_list_for_each (pos, &comm->captured)
		start_failing(rx_list_entry(pos, struct captured, link));
}

static void leave(struct captured *captured, uint32_t i)
{
	struct captured_gate *gate = &captured->gates[i];

	if (!gate->attached || gate->leaving)
		return;
	gate->leaving = true;
	gate->detach.run = detach;
	gate->detach.poll = detach_when_idle;
	gate->detach.done = on_detached;
	submit(captured, &gate->detach);
}

void captured_member_gone(struct member *member)
{
	rx_list_for_each (pos, &member->comm->captured) {
		struct captured *captured = rx_list_entry(pos, struct captured, link);

		start_failing(captured);
		if (!captured->is_transfer)
			leave(captured, member->rank);
		if (captured->is_transfer && captured->source == member->rank)
			leave(captured, SOURCE);
		if (captured->is_transfer && captured->destination == member->rank)
			leave(captured, DESTINATION);
	}
}
