/* SPDX-License-Identifier: MIT */
/*
 * Op k of a communicator is what each rank posts as its k-th. The queue holds the ops that some
 * rank has posted and that are not complete, in order of k without gaps; member.next_op is a
 * member's place in it, so that posting needs no search. The first op runs when all ranks have
 * posted it: one at a time per communicator, in order, as on a stream; communicators are
 * independent of each other, so it does not matter in which order ranks use several.
 *
 * A rank that has gone posts nothing more. From its first missing op on everything fails
 * (comm.fail_from), without queueing.
 *
 * Memory: an op exists only while an entry of some session's ring is in flight, and those are
 * bounded, or while it waits with a refused entry, and those are counted (member.n_bad).
 */
#include "op_impl.h"

#include "answer.h"
#include "daemon.h"
#include "entry.h"
#include "gpu_run.h"
#include "loop.h"
#include "region.h"
#include "stall.h"
#include "../shm/rx_clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void op_set_state(struct op *op, enum op_state state)
{
	static const uint8_t allowed[_OP_STATE_N] = {
		[OP_QUEUED] = 1 << OP_WAIT_MEMBERS | 1 << OP_FAILED,
		[OP_WAIT_MEMBERS] = 1 << OP_RUNNING | 1 << OP_FAILED,
		[OP_RUNNING] = 1 << OP_DONE | 1 << OP_FAILED,
	};

	assert(allowed[op->state] & (1 << state));
	op->state = state;
}

static struct outcome lost_outcome(const struct comm *comm)
{
	return (struct outcome){.result = RX_ERR_PEER_LOST, .peer_rank = comm->fail_rank};
}

static void answer_part(struct op *op, uint32_t rank, struct outcome outcome)
{
	struct op_part *part = &op->parts[rank];

	if (!part->posted || part->answered)
		return;
	part->answered = true;
	gate_release(&part->gate);
	answer(op->comm->members[rank], part->user_data, part->opno, outcome);
}

static void answer_all(struct op *op, struct outcome outcome)
{
	for (uint32_t rank = 0; rank < op->comm->n_ranks; rank++)
		answer_part(op, rank, outcome);
}

struct op *op_alloc(struct comm *comm, uint64_t number)
{
	size_t n = comm->n_ranks;
	size_t parts_bytes = n * sizeof(struct op_part);
	size_t arrays_bytes =
		n * (sizeof(void *) + sizeof(void *) + sizeof(uint64_t) + sizeof(struct rx_counts));
	struct op *op = calloc(1, sizeof(*op) + parts_bytes + arrays_bytes);

	if (!op)
		return NULL;
	op->comm = comm;
	op->number = number;
	op->send = (void *)((char *)op->parts + parts_bytes);
	op->recv = (void **)(op->send + n);
	op->scalars = (uint64_t *)(op->recv + n);
	op->counts = (struct rx_counts *)(op->scalars + n);
	rx_list_init(&op->link);
	return op;
}

static struct op *op_new(struct comm *comm, uint64_t number)
{
	struct op *op = op_alloc(comm, number);

	if (!op)
		return NULL;
	rx_list_push(&comm->ops, &op->link);
	comm->n_ops++;
	comm->daemon->n_ops++;
	return op;
}

void op_dispose(struct op *op)
{
	for (uint32_t rank = 0; rank < op->comm->n_ranks; rank++) {
		(void)region_unref(op->parts[rank].send);
		(void)region_unref(op->parts[rank].recv);
		gate_deinit(&op->parts[rank].gate);
		free(op->parts[rank].words);
		op->comm->members[rank]->n_bad -= op->parts[rank].bad;
	}
	rx_list_unlink(&op->link);
	(void)gpu_run_free(op->gpu);
	free(op);
}

/* It is complete, everybody has been answered. */
static void op_free(struct op *op, enum op_state state)
{
	struct comm *comm = op->comm;

	op_set_state(op, state);
	if (state == OP_DONE)
		comm->daemon->stats.ops_done++;
	else
		comm->daemon->stats.ops_failed++;
	comm->ops_done += state == OP_DONE;
	comm->n_ops--;
	comm->daemon->n_ops--;
	op_dispose(op);
}

static struct op *first_op(const struct comm *comm)
{
	return rx_list_empty(&comm->ops) ? NULL : rx_list_entry(comm->ops.next, struct op, link);
}

/* ---- waiting: reports and deadlines ---- */

static uint64_t deadline_of(const struct op *op)
{
	uint64_t timeout_ns = op->comm->fabric.ctl->op_timeout_ns;

	return timeout_ns > UINT64_MAX - op->wait_start_ns ? RX_FOREVER
							   : op->wait_start_ns + timeout_ns;
}

/* When the next op needs a look; RX_FOREVER: never. */
static uint64_t next_look(const struct op *op)
{
	uint64_t when = deadline_of(op);

	if (op->state == OP_WAIT_MEMBERS && !op->reported)
		when = rx_min_u64(
			when, op->wait_start_ns + op->comm->daemon->config.stall_report_ns);
	return when;
}

/*
 * Not moved when it is set for an earlier time already: it may then fire for an op that is long
 * complete, looks, and is set anew if need be. Cheaper than setting it for every op.
 */
static void arm(struct comm *comm)
{
	const struct op *op = first_op(comm);
	uint64_t when = op ? next_look(op) : RX_FOREVER;
	uint64_t now = 0;

	if (when == RX_FOREVER)
		return;
	if (loop_timer_is_set(comm->op_timer) && comm->op_look_ns <= when)
		return;
	comm->op_look_ns = when;
	now = rx_now_ns();
	loop_timer_set(comm->op_timer, when > now ? when - now : 0);
}

static uint64_t missing(const struct op *op)
{
	uint64_t ranks = 0;

	for (uint32_t rank = 0; rank < op->comm->n_ranks; rank++)
		if (!op->parts[rank].posted)
			ranks |= 1ull << rank;
	return ranks;
}

static const struct rx_op_sig *any_sig(const struct op *op)
{
	for (uint32_t rank = 0; rank < op->comm->n_ranks; rank++)
		if (op->parts[rank].posted)
			return &op->parts[rank].sig;
	return NULL;
}

void op_on_timer(void *owner)
{
	struct comm *comm = owner;
	struct op *op = first_op(comm);
	uint64_t now = rx_now_ns();

	if (!op || comm->state != COMM_READY)
		return;
	if (now >= deadline_of(op)) {
		uint64_t ranks = missing(op);
		uint32_t rank = ranks ? (uint32_t)__builtin_ctzll(ranks) : UINT32_MAX;

		comm_abort(comm, RX_ABORT_DEADLINE, rank, UINT32_MAX, NULL);
		return;
	}
	if (op->state == OP_WAIT_MEMBERS && !op->reported &&
		now - op->wait_start_ns >= comm->daemon->config.stall_report_ns) {
		op->reported = true;
		stall_log_late(comm, any_sig(op), now - op->wait_start_ns, missing(op));
	}
	arm(comm);
}

/* ---- running ---- */

static void advance(struct comm *comm);

void op_over(struct op *op)
{
	struct comm *comm = op->comm;
	int r = op->run_result;

	assert(comm->running == op);
	comm->running = NULL;
	answer_all(op, outcome_of_run(comm, r));
	op_free(op, r == 0 ? OP_DONE : OP_FAILED);
	/* Its outputs are in an unknown state, and so is the device. */
	if (r == -EIO)
		comm_abort(comm, RX_ABORT_DEVICE, UINT32_MAX, UINT32_MAX, NULL);
	advance(comm);
	comm_release(comm);
}

static void answer_no_memory(struct op *op)
{
	answer_all(op, (struct outcome){.result = RX_ERR_NO_MEMORY, .peer_rank = UINT32_MAX});
	op_free(op, OP_FAILED);
}

static void run(struct op *op)
{
	op_set_state(op, OP_RUNNING);
	op->comm->running = op;
	atomic_init(&op->job.cancelled, 0);
	if (op_run(op) == 0)
		return;
	op->comm->running = NULL;
	answer_no_memory(op);
}

uint32_t op_first_odd(const struct op *op)
{
	uint32_t rank = 1;

	while (rank < op->comm->n_ranks && rx_sig_equal(&op->parts[rank].sig, &op->parts[0].sig))
		rank++;
	return rank;
}

/* Everybody is told of a rank that called something else than itself. */
static void answer_mismatch(struct op *op, uint32_t odd)
{
	for (uint32_t rank = 0; rank < op->comm->n_ranks; rank++) {
		bool as_first = rx_sig_equal(&op->parts[rank].sig, &op->parts[0].sig);
		uint32_t peer = as_first ? odd : 0;

		answer_part(op, rank,
			(struct outcome){
				.result = RX_ERR_MISMATCH,
				.peer_rank = peer,
				.sig = &op->parts[peer].sig,
			});
	}
}

/* Everybody has called the same; false when their numbers do not fit, and all have been told. */
static bool check_counts(struct op *op)
{
	const struct rx_op_sig *sig = &op->parts[0].sig;
	uint32_t n_ranks = op->comm->n_ranks;
	struct rx_clash clash;

	if (!rx_coll_is_v(sig->coll) || rx_counts_agree(sig->coll, op->counts, n_ranks, 0, &clash))
		return true;
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		bool agree = rx_counts_agree(sig->coll, op->counts, n_ranks, rank, &clash);

		/* As they do not fit, there is something to tell each. */
		assert(!agree);
		(void)agree;
		answer_part(op, rank,
			(struct outcome){
				.result = RX_ERR_MISMATCH,
				.peer_rank = clash.rank[clash.rank[0] == rank],
				.sig = sig,
				.clash = &clash,
			});
	}
	return false;
}

static uint32_t first_bad(const struct op *op)
{
	uint32_t rank = 0;

	while (rank < op->comm->n_ranks && !op->parts[rank].bad)
		rank++;
	return rank;
}

/* All ranks have posted it and it is the first: run it, or say why not. */
static void begin(struct op *op)
{
	struct comm *comm = op->comm;
	uint32_t bad = first_bad(op);
	uint32_t odd = op_first_odd(op);

	if (op->reported)
		stall_log_over(comm, rx_now_ns() - op->wait_start_ns);
	if (bad < comm->n_ranks) {
		answer_all(op, (struct outcome){.result = RX_ERR_INVALID, .peer_rank = bad});
		op_free(op, OP_FAILED);
	} else if (odd < comm->n_ranks) {
		answer_mismatch(op, odd);
		op_free(op, OP_FAILED);
	} else if (!check_counts(op)) {
		op_free(op, OP_FAILED);
	} else {
		run(op);
	}
}

static void advance(struct comm *comm)
{
	while (!comm->running && comm->state == COMM_READY) {
		struct op *op = first_op(comm);

		if (!op)
			return;
		if (op->state == OP_QUEUED) {
			op_set_state(op, OP_WAIT_MEMBERS);
			op->wait_start_ns = rx_now_ns();
		}
		if (op->n_posted == comm->n_ranks)
			begin(op);
		else if (op->state == OP_WAIT_MEMBERS) {
			arm(comm);
			return;
		}
	}
	if (comm->running)
		arm(comm);
}

/* ---- posting ---- */

/* The op that @member posts next, made if it is the first to post it. NULL: no memory. */
static struct op *next_op(struct member *member)
{
	struct comm *comm = member->comm;
	struct op *op = member->next_op;

	if (op)
		return op;
	op = op_new(comm, member->n_posted);
	if (!op)
		return NULL;
	/* Others who have posted everything so far find it here. */
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		struct member *other = comm->members[rank];

		if (!other->next_op && other->n_posted == op->number)
			other->next_op = op;
	}
	return op;
}

bool op_keep_words(
	struct op *op, const struct member *member, const struct rx_sqe *sqe, const uint64_t *words)
{
	uint32_t n_ranks = op->comm->n_ranks;
	size_t bytes = rx_counts_words(sqe->coll, n_ranks) * sizeof(*words);
	uint64_t *copy = NULL;

	op->scalars[member->rank] = sqe->imm;
	if (bytes == 0)
		return true;
	copy = malloc(bytes);
	if (!copy)
		return false;
	memcpy(copy, words, bytes);
	op->parts[member->rank].words = copy;
	op->counts[member->rank] = rx_counts_of(sqe->coll, n_ranks, copy);
	op->scalars[member->rank] = copy[0];
	return true;
}

void op_put_part(struct op *op, const struct member *member, const struct rx_sqe *sqe,
	struct region *send, struct region *recv, const struct gate *gate)
{
	struct op_part *part = &op->parts[member->rank];

	assert(!part->posted);
	*part = (struct op_part){
		.posted = true,
		.opno = sqe->opno,
		.user_data = sqe->user_data,
		.sig = entry_sig(sqe),
		.send = send ? region_ref(send) : NULL,
		.recv = recv ? region_ref(recv) : NULL,
		.send_offset = sqe->send_offset,
		.recv_offset = sqe->recv_offset,
		.words = part->words,
		.gate = gate_keep(gate),
	};
	op->n_posted++;
}

static void post(struct op *op, struct member *member, const struct rx_sqe *sqe,
	struct region *send, struct region *recv, const struct gate *gate)
{
	assert(op->number == member->n_posted);
	op_put_part(op, member, sqe, send, recv, gate);
	member->next_op = op->link.next == &op->comm->ops
				  ? NULL
				  : rx_list_entry(op->link.next, struct op, link);
}

/* False: that was one too many, and the communicator has been aborted. */
static bool refuse(struct op *op, struct member *member)
{
	op->parts[member->rank].bad = true;
	member->n_bad++;
	answer_part(op, member->rank,
		(struct outcome){.result = RX_ERR_INVALID, .peer_rank = UINT32_MAX});
	if (member->n_bad <= ANSWER_MOST_BAD)
		return true;
	comm_abort(op->comm, RX_ABORT_ERROR, member->rank, UINT32_MAX, NULL);
	return false;
}

void op_post(struct member *member, const struct rx_sqe *sqe, struct region *send,
	struct region *recv, const uint64_t *words, bool bad, const struct gate *gate)
{
	struct comm *comm = member->comm;
	struct op *op = NULL;

	if (comm->state == COMM_READY && member->n_posted < comm->fail_from) {
		op = next_op(member);
		if (!op || (!bad && !op_keep_words(op, member, sqe, words))) {
			comm_abort(comm, RX_ABORT_ERROR, member->rank, UINT32_MAX, NULL);
			op = NULL;
		}
	}
	if (!op) {
		gate_release(gate);
		answer(member, sqe->user_data, sqe->opno,
			comm->state == COMM_READY ? lost_outcome(comm) : outcome_of_abort(comm));
		member->n_posted++;
		return;
	}
	post(op, member, sqe, bad ? NULL : send, bad ? NULL : recv, gate);
	member->n_posted++;
	if (bad && !refuse(op, member))
		return;
	if (op == first_op(comm))
		advance(comm);
}

/* ---- failing ---- */

void op_fail_all(struct comm *comm)
{
	rx_list_for_each_safe (pos, &comm->ops) {
		struct op *op = rx_list_entry(pos, struct op, link);

		if (op == comm->running) {
			exec_cancel(&op->job);
			continue;
		}
		answer_all(op, outcome_of_abort(comm));
		op_free(op, OP_FAILED);
	}
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		comm->members[rank]->next_op = NULL;
	loop_timer_stop(comm->op_timer);
}

void op_member_gone(struct member *member)
{
	struct comm *comm = member->comm;

	if (member->n_posted < comm->fail_from) {
		comm->fail_from = member->n_posted;
		comm->fail_rank = member->rank;
	}
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		struct member *other = comm->members[rank];

		if (other->next_op && other->next_op->number >= comm->fail_from)
			other->next_op = NULL;
	}
	rx_list_for_each_safe (pos, &comm->ops) {
		struct op *op = rx_list_entry(pos, struct op, link);

		if (op->number >= comm->fail_from) {
			answer_all(op, lost_outcome(comm));
			op_free(op, OP_FAILED);
		} else if (op != comm->running) {
			/* The running one is answered when the worker has let go of its memory. */
			answer_part(op, member->rank,
				(struct outcome){
					.result = RX_ERR_ABORTED,
					.peer_rank = UINT32_MAX,
				});
		}
	}
}

/* ---- looking ---- */

struct op *op_waiting(const struct comm *comm)
{
	struct op *op = first_op(comm);

	return op && op->state == OP_WAIT_MEMBERS ? op : NULL;
}

uint64_t op_missing(const struct comm *comm)
{
	const struct op *op = op_waiting(comm);

	if (op)
		return missing(op);
	return comm->running && comm->running->gpu ? gpu_run_missing(comm->running->gpu) : 0;
}

const struct op_part *op_pending_of(const struct comm *comm, uint32_t poster, uint32_t missing_rank)
{
	rx_list_for_each (pos, &comm->ops) {
		const struct op *op = rx_list_entry(pos, struct op, link);

		if (op->parts[poster].posted && !op->parts[missing_rank].posted)
			return &op->parts[poster];
	}
	return NULL;
}
