/* SPDX-License-Identifier: MIT */
/*
 * A transfer is made by whichever side comes first and waits in the queue of its pair (source,
 * destination). The k-th send of a pair is for its k-th receive, so a queue holds only sends or
 * only receives, and the counterpart of a new entry is the head of the queue or not there yet.
 * A complete transfer goes to a worker at once: nothing orders it after anything else. So sends
 * and receives may be posted in any order by any rank; clients see to it that the ring has room for
 * each pair (client/op_queue.c).
 *
 * Transfers also stand in a list by state, in order of age. All of a communicator have the same
 * patience, so the first of each list is the next to be looked at, and one timer is enough.
 *
 * Memory: a transfer exists only while an entry of some session's ring is in flight, or while it
 * waits with a refused entry, and those are counted (member.n_bad). The queues are made with the
 * first entry, as most communicators never have one.
 */
#include "p2p.h"

#include "answer.h"
#include "daemon.h"
#include "entry.h"
#include "exec.h"
#include "gpu_mem.h"
#include "gpu_run.h"
#include "loop.h"
#include "region.h"
#include "stall.h"
#include "../kernels/host/host_coll.h"
#include "../shm/rx_clock.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum transfer_state {
	TRANSFER_WAITING, /* for its other side */
	TRANSFER_LATE,    /* the same, and that has been reported */
	TRANSFER_RUNNING, /* on a worker */
	_TRANSFER_STATE_N
};

enum { SOURCE, DESTINATION, _SIDE_N };

struct side {
	bool posted;
	bool answered; /* has got its completion */
	bool bad;      /* its entry was refused */
	uint32_t rank;
	uint32_t opno;
	uint64_t user_data;
	struct rx_op_sig sig;
	struct region *region; /* a reference; NULL: no data */
	uint64_t offset;
	struct gate gate; /* of a call in the order of a stream */
};

struct transfer {
	struct comm *comm;
	struct rx_list queue_link; /* of its pair, while it waits */
	struct rx_list state_link;
	enum transfer_state state;
	uint64_t since_ns; /* waiting: posted; RUNNING: complete */
	bool named;        /* in the report */
	/* Belong to the worker while it is RUNNING. */
	struct exec_job job;
	void *dst;
	const void *src;
	uint64_t bytes;
	int run_result;
	struct gpu_run *gpu; /* NULL: no device takes part */

	struct side sides[_SIDE_N];
};

struct p2p {
	struct comm *comm;
	struct loop_timer *timer;
	uint64_t look_ns; /* when it fires, if it is set */
	struct rx_list by_state[_TRANSFER_STATE_N];
	struct rx_list queues[]; /* by source, then destination */
};

static void transfer_set_state(struct transfer *transfer, enum transfer_state state)
{
	static const uint8_t allowed[_TRANSFER_STATE_N] = {
		[TRANSFER_WAITING] = 1 << TRANSFER_LATE | 1 << TRANSFER_RUNNING,
		[TRANSFER_LATE] = 1 << TRANSFER_RUNNING,
	};

	assert(allowed[transfer->state] & (1 << state));
	transfer->state = state;
	rx_list_unlink(&transfer->state_link);
	rx_list_push(&transfer->comm->p2p->by_state[state], &transfer->state_link);
}

/* ---- life ---- */

static void on_timer(void *owner);

static struct p2p *p2p_new(struct comm *comm)
{
	size_t n_queues = (size_t)comm->n_ranks * comm->n_ranks;
	struct p2p *p2p = calloc(1, sizeof(*p2p) + n_queues * sizeof(p2p->queues[0]));

	if (!p2p)
		return NULL;
	p2p->comm = comm;
	for (uint32_t state = 0; state < _TRANSFER_STATE_N; state++)
		rx_list_init(&p2p->by_state[state]);
	for (size_t i = 0; i < n_queues; i++)
		rx_list_init(&p2p->queues[i]);
	if (loop_timer_new(comm->daemon->loop, on_timer, p2p, &p2p->timer) != 0) {
		free(p2p);
		return NULL;
	}
	return p2p;
}

struct p2p *p2p_free(struct p2p *p2p)
{
	if (!p2p)
		return NULL;
	for (uint32_t state = 0; state < _TRANSFER_STATE_N; state++)
		assert(rx_list_empty(&p2p->by_state[state]));
	p2p->timer = loop_timer_free(p2p->timer);
	free(p2p);
	return NULL;
}

static struct rx_list *queue_of(const struct comm *comm, uint32_t source, uint32_t destination)
{
	return &comm->p2p->queues[source * comm->n_ranks + destination];
}

static struct transfer *transfer_new(struct comm *comm, uint32_t source, uint32_t destination)
{
	struct transfer *transfer = calloc(1, sizeof(*transfer));

	if (!transfer)
		return NULL;
	transfer->comm = comm;
	transfer->since_ns = rx_now_ns();
	transfer->sides[SOURCE].rank = source;
	transfer->sides[DESTINATION].rank = destination;
	rx_list_push(queue_of(comm, source, destination), &transfer->queue_link);
	rx_list_push(&comm->p2p->by_state[TRANSFER_WAITING], &transfer->state_link);
	comm->n_ops++;
	comm->daemon->n_ops++;
	return transfer;
}

/* Everybody has been answered. */
static void transfer_free(struct transfer *transfer, bool done)
{
	struct comm *comm = transfer->comm;

	if (done)
		comm->daemon->stats.ops_done++;
	else
		comm->daemon->stats.ops_failed++;
	comm->ops_done += done;
	for (uint32_t i = 0; i < _SIDE_N; i++) {
		struct side *side = &transfer->sides[i];

		side->region = region_unref(side->region);
		gate_deinit(&side->gate);
		comm->members[side->rank]->n_bad -= side->bad;
	}
	rx_list_unlink(&transfer->queue_link);
	rx_list_unlink(&transfer->state_link);
	comm->n_ops--;
	comm->daemon->n_ops--;
	transfer->gpu = gpu_run_free(transfer->gpu);
	free(transfer);
}

/* ---- answering ---- */

static void answer_side(struct transfer *transfer, struct side *side, struct outcome outcome)
{
	if (!side->posted || side->answered)
		return;
	side->answered = true;
	gate_release(&side->gate);
	answer(transfer->comm->members[side->rank], side->user_data, side->opno, outcome);
}

static void answer_both(struct transfer *transfer, struct outcome outcome)
{
	answer_side(transfer, &transfer->sides[SOURCE], outcome);
	answer_side(transfer, &transfer->sides[DESTINATION], outcome);
}

static struct outcome lost_outcome(uint32_t rank)
{
	return (struct outcome){.result = RX_ERR_PEER_LOST, .peer_rank = rank};
}

/* The side that a waiting transfer waits for, and the one that waits. */
static const struct side *missing_side(const struct transfer *transfer)
{
	return &transfer->sides[transfer->sides[SOURCE].posted ? DESTINATION : SOURCE];
}

static const struct side *posted_side(const struct transfer *transfer)
{
	return &transfer->sides[transfer->sides[SOURCE].posted ? SOURCE : DESTINATION];
}

/* ---- waiting: reports and deadlines ---- */

static const struct transfer *first_of(const struct p2p *p2p, enum transfer_state state)
{
	const struct rx_list *list = &p2p->by_state[state];

	return rx_list_empty(list) ? NULL : rx_list_entry(list->next, struct transfer, state_link);
}

/* When the first in @state will have been there for @patience_ns; RX_FOREVER: never. */
static uint64_t end_of_patience(
	const struct p2p *p2p, enum transfer_state state, uint64_t patience_ns)
{
	const struct transfer *first = first_of(p2p, state);

	if (!first || patience_ns > UINT64_MAX - first->since_ns)
		return RX_FOREVER;
	return first->since_ns + patience_ns;
}

/* Not moved when it is set for an earlier time already: it then looks, and is set anew. */
static void arm(struct p2p *p2p)
{
	uint64_t timeout_ns = p2p->comm->fabric.ctl->op_timeout_ns;
	uint64_t report_ns = p2p->comm->daemon->config.stall_report_ns;
	uint64_t when = end_of_patience(p2p, TRANSFER_WAITING, rx_min_u64(report_ns, timeout_ns));
	uint64_t now = 0;

	when = rx_min_u64(when, end_of_patience(p2p, TRANSFER_LATE, timeout_ns));
	when = rx_min_u64(when, end_of_patience(p2p, TRANSFER_RUNNING, timeout_ns));
	if (when == RX_FOREVER)
		return;
	if (loop_timer_is_set(p2p->timer) && p2p->look_ns <= when)
		return;
	p2p->look_ns = when;
	now = rx_now_ns();
	loop_timer_set(p2p->timer, when > now ? when - now : 0);
}

/* Of those that took too long, one that waits: there is a rank to name. NULL: none did. */
static const struct transfer *find_overdue(const struct p2p *p2p, uint64_t now)
{
	static const enum transfer_state order[] = {
		TRANSFER_LATE, TRANSFER_WAITING, TRANSFER_RUNNING};
	uint64_t timeout_ns = p2p->comm->fabric.ctl->op_timeout_ns;

	for (uint32_t i = 0; i < RX_ARRAY_SIZE(order); i++)
		if (now >= end_of_patience(p2p, order[i], timeout_ns))
			return first_of(p2p, order[i]);
	return NULL;
}

/* One line in the log for all that have become late; it names the oldest. */
static void report(struct p2p *p2p, uint64_t now)
{
	uint64_t report_ns = p2p->comm->daemon->config.stall_report_ns;
	const struct transfer *oldest = NULL;
	uint64_t ranks = 0;

	rx_list_for_each_safe (pos, &p2p->by_state[TRANSFER_WAITING]) {
		struct transfer *transfer = rx_list_entry(pos, struct transfer, state_link);

		if (now - transfer->since_ns < report_ns)
			break;
		ranks |= 1ull << missing_side(transfer)->rank;
		transfer_set_state(transfer, TRANSFER_LATE);
		transfer->named = !oldest;
		oldest = oldest ? oldest : transfer;
	}
	if (oldest)
		stall_log_late(p2p->comm, &posted_side(oldest)->sig, now - oldest->since_ns, ranks);
}

static void on_timer(void *owner)
{
	struct p2p *p2p = owner;
	uint64_t now = rx_now_ns();
	const struct transfer *overdue = find_overdue(p2p, now);

	if (overdue) {
		uint32_t rank = overdue->state == TRANSFER_RUNNING ? UINT32_MAX
								   : missing_side(overdue)->rank;

		comm_abort(p2p->comm, RX_ABORT_DEADLINE, rank, UINT32_MAX, NULL);
		return;
	}
	report(p2p, now);
	arm(p2p);
}

/* ---- running ---- */

static void run_in_worker(struct exec_job *job)
{
	struct transfer *transfer = rx_container_of(job, struct transfer, job);
	struct exec *exec = transfer->comm->daemon->exec;

	transfer->run_result = host_coll_transfer(transfer->dst, transfer->src, transfer->bytes,
		&transfer->job.cancelled, exec_pieces(exec));
}

static void finish(struct transfer *transfer)
{
	struct comm *comm = transfer->comm;
	int r = transfer->run_result;

	answer_both(transfer, outcome_of_run(comm, r));
	transfer_free(transfer, r == 0);
	if (r == -EIO)
		comm_abort(comm, RX_ABORT_DEVICE, UINT32_MAX, UINT32_MAX, NULL);
	comm_release(comm);
}

static void on_done(struct exec_job *job)
{
	finish(rx_container_of(job, struct transfer, job));
}

static bool uses_devices(const struct transfer *transfer)
{
	return gpu_mem_device(transfer->sides[SOURCE].region) != UINT32_MAX ||
	       gpu_mem_device(transfer->sides[DESTINATION].region) != UINT32_MAX;
}

static void run_on_host(struct transfer *transfer)
{
	const struct side *from = &transfer->sides[SOURCE];
	const struct side *to = &transfer->sides[DESTINATION];

	transfer->src = region_at(from->region, from->offset);
	transfer->dst = region_at(to->region, to->offset);
	transfer->job.run = run_in_worker;
	transfer->job.done = on_done;
	exec_submit(transfer->comm->daemon->exec, &transfer->job, transfer->bytes);
}

static void on_gpu_over(struct gpu_run *run)
{
	struct transfer *transfer = run->owner;

	transfer->run_result = run->result;
	if (run->gone && comm_bury(transfer->comm))
		transfer->run_result = -ECANCELED;
	if (transfer->run_result == -EIO)
		rx_err("comm=%" PRIu64 " name=\"%s\" a transfer failed: %s", transfer->comm->id,
			transfer->comm->name, run->error);
	/* It was only about the streams. */
	if (run->result == 0 && !uses_devices(transfer))
		run_on_host(transfer);
	else
		finish(transfer);
}

/* 0, or -ENOMEM and nothing was started. */
static int run_on_devices(struct transfer *transfer)
{
	const struct side *from = &transfer->sides[SOURCE];
	const struct side *to = &transfer->sides[DESTINATION];
	struct comm *comm = transfer->comm;
	struct gpu_run *run = gpu_run_new(comm->daemon->gpu, comm->n_ranks);

	transfer->gpu = run;
	if (!run || gpu_mem_prepare(from->region) || gpu_mem_prepare(to->region))
		return -ENOMEM;
	run->streams = comm_streams(comm);
	if (!run->streams)
		return -ENOMEM;
	run->send[from->rank] = (struct gpu_buffer){from->region, from->offset, transfer->bytes};
	run->recv[to->rank] = (struct gpu_buffer){to->region, to->offset, transfer->bytes};
	run->over = on_gpu_over;
	run->owner = transfer;
	run->coll = RX_SEND;
	run->dtype = from->sig.dtype;
	run->root = from->rank;
	run->peer = to->rank;
	run->count = from->sig.count;
	run->gates[SOURCE] = from->gate;
	run->gates[DESTINATION] = to->gate;
	run->cancelled = &transfer->job.cancelled;
	gpu_run_submit(run);
	return 0;
}

static void run(struct transfer *transfer)
{
	const struct side *from = &transfer->sides[SOURCE];
	const struct side *to = &transfer->sides[DESTINATION];

	transfer->bytes = from->sig.count * rx_dtype_size(from->sig.dtype);
	transfer->since_ns = rx_now_ns();
	transfer_set_state(transfer, TRANSFER_RUNNING);
	atomic_init(&transfer->job.cancelled, 0);
	if (!uses_devices(transfer) && !from->gate.word && !to->gate.word) {
		run_on_host(transfer);
	} else if (run_on_devices(transfer)) {
		transfer->run_result = -ENOMEM;
		finish(transfer);
	}
}

/* Each is told what the other one asked. */
static void answer_mismatch(struct transfer *transfer)
{
	for (uint32_t i = 0; i < _SIDE_N; i++) {
		const struct side *other = &transfer->sides[_SIDE_N - 1 - i];

		answer_side(transfer, &transfer->sides[i],
			(struct outcome){
				.result = RX_ERR_MISMATCH,
				.peer_rank = other->rank,
				.sig = &other->sig,
			});
	}
}

/* Both sides are there: run it, or say why not. */
static void begin(struct transfer *transfer)
{
	const struct side *from = &transfer->sides[SOURCE];
	const struct side *to = &transfer->sides[DESTINATION];
	struct comm *comm = transfer->comm;

	rx_list_unlink(&transfer->queue_link);
	if (transfer->named)
		stall_log_over(comm, rx_now_ns() - transfer->since_ns);
	if (from->bad || to->bad) {
		answer_both(transfer, (struct outcome){
					      .result = RX_ERR_INVALID,
					      .peer_rank = from->bad ? from->rank : to->rank,
				      });
		transfer_free(transfer, false);
	} else if (from->sig.count != to->sig.count || from->sig.dtype != to->sig.dtype) {
		answer_mismatch(transfer);
		transfer_free(transfer, false);
	} else if (from->sig.count == 0) {
		answer_both(transfer, (struct outcome){.result = RX_OK, .peer_rank = UINT32_MAX});
		transfer_free(transfer, true);
	} else {
		run(transfer);
	}
	arm(comm->p2p);
}

/* ---- posting ---- */

/* The oldest of the pair that waits for @side, else a new one. NULL: no memory. */
static struct transfer *match(
	struct comm *comm, uint32_t source, uint32_t destination, uint32_t side)
{
	const struct rx_list *queue = NULL;

	if (!comm->p2p)
		comm->p2p = p2p_new(comm);
	if (!comm->p2p)
		return NULL;
	queue = queue_of(comm, source, destination);
	if (!rx_list_empty(queue)) {
		struct transfer *head = rx_list_entry(queue->next, struct transfer, queue_link);

		if (!head->sides[side].posted)
			return head;
	}
	return transfer_new(comm, source, destination);
}

/* Can @member's entry wait for its peer at all? Else it is answered. */
static bool is_possible(
	const struct member *member, const struct rx_sqe *sqe, const struct gate *gate)
{
	const struct comm *comm = member->comm;
	struct outcome outcome = {.result = RX_ERR_INVALID, .peer_rank = UINT32_MAX};

	if (comm->state != COMM_READY)
		outcome = outcome_of_abort(comm);
	else if (sqe->root < comm->n_ranks && comm->members[sqe->root]->session)
		return true;
	else if (sqe->root < comm->n_ranks)
		outcome = lost_outcome(sqe->root);
	gate_release(gate);
	answer(member, sqe->user_data, sqe->opno, outcome);
	return false;
}

static void fill_side(struct transfer *transfer, uint32_t i, const struct rx_sqe *sqe,
	struct region *region, bool bad, const struct gate *gate)
{
	struct side *side = &transfer->sides[i];

	assert(!side->posted);
	side->posted = true;
	side->bad = bad;
	side->opno = sqe->opno;
	side->user_data = sqe->user_data;
	side->sig = entry_sig(sqe);
	side->region = region ? region_ref(region) : NULL;
	side->gate = gate_keep(gate);
	side->offset = i == SOURCE ? sqe->send_offset : sqe->recv_offset;
}

/* False: that was one too many, and the communicator has been aborted. */
static bool refuse(struct transfer *transfer, struct side *side)
{
	struct member *member = transfer->comm->members[side->rank];

	member->n_bad++;
	answer_side(transfer, side,
		(struct outcome){.result = RX_ERR_INVALID, .peer_rank = UINT32_MAX});
	if (member->n_bad <= ANSWER_MOST_BAD)
		return true;
	comm_abort(transfer->comm, RX_ABORT_ERROR, member->rank, UINT32_MAX, NULL);
	return false;
}

void p2p_post(struct member *member, const struct rx_sqe *sqe, struct region *send,
	struct region *recv, bool bad, const struct gate *gate)
{
	struct comm *comm = member->comm;
	uint32_t side = sqe->coll == RX_SEND ? SOURCE : DESTINATION;
	struct transfer *transfer = NULL;

	if (!is_possible(member, sqe, gate))
		return;
	transfer = side == SOURCE ? match(comm, member->rank, sqe->root, side)
				  : match(comm, sqe->root, member->rank, side);
	if (!transfer) {
		comm_abort(comm, RX_ABORT_ERROR, member->rank, UINT32_MAX, NULL);
		gate_release(gate);
		answer(member, sqe->user_data, sqe->opno, outcome_of_abort(comm));
		return;
	}
	fill_side(transfer, side, sqe, side == SOURCE ? send : recv, bad, gate);
	if (bad && !refuse(transfer, &transfer->sides[side]))
		return;
	if (transfer->sides[SOURCE].posted && transfer->sides[DESTINATION].posted)
		begin(transfer);
	else
		arm(comm->p2p);
}

/* ---- failing ---- */

void p2p_fail_all(struct comm *comm)
{
	struct p2p *p2p = comm->p2p;

	if (!p2p)
		return;
	rx_list_for_each (pos, &p2p->by_state[TRANSFER_RUNNING])
		exec_cancel(&rx_list_entry(pos, struct transfer, state_link)->job);
	for (uint32_t state = TRANSFER_WAITING; state <= TRANSFER_LATE; state++) {
		rx_list_for_each_safe (pos, &p2p->by_state[state]) {
			struct transfer *transfer = rx_list_entry(pos, struct transfer, state_link);

			answer_both(transfer, outcome_of_abort(comm));
			transfer_free(transfer, false);
		}
	}
	loop_timer_stop(p2p->timer);
}

/* All that waits in a pair of which @rank is a side: its own entries, or others' for it. */
static void fail_queue(struct rx_list *queue, uint32_t rank)
{
	rx_list_for_each_safe (pos, queue) {
		struct transfer *transfer = rx_list_entry(pos, struct transfer, queue_link);
		struct outcome outcome = lost_outcome(rank);

		if (posted_side(transfer)->rank == rank)
			outcome =
				(struct outcome){.result = RX_ERR_ABORTED, .peer_rank = UINT32_MAX};
		answer_both(transfer, outcome);
		transfer_free(transfer, false);
	}
}

/* What runs needs nothing more from it, and is answered when its memory is not used any more. */
void p2p_member_gone(struct member *member)
{
	struct comm *comm = member->comm;

	if (!comm->p2p)
		return;
	for (uint32_t other = 0; other < comm->n_ranks; other++) {
		fail_queue(queue_of(comm, member->rank, other), member->rank);
		fail_queue(queue_of(comm, other, member->rank), member->rank);
	}
}

/* ---- looking ---- */

bool p2p_is_running(const struct comm *comm)
{
	return comm->p2p && first_of(comm->p2p, TRANSFER_RUNNING);
}

uint64_t p2p_waiting(const struct comm *comm, struct rx_op_sig sigs[RX_MAX_RANKS])
{
	/* From the oldest on. */
	static const enum transfer_state order[] = {TRANSFER_LATE, TRANSFER_WAITING};
	uint64_t ranks = 0;

	for (uint32_t i = 0; comm->p2p && i < RX_ARRAY_SIZE(order); i++) {
		rx_list_for_each (pos, &comm->p2p->by_state[order[i]]) {
			const struct side *side =
				posted_side(rx_list_entry(pos, struct transfer, state_link));

			if (ranks & 1ull << side->rank)
				continue;
			ranks |= 1ull << side->rank;
			sigs[side->rank] = side->sig;
		}
	}
	return ranks;
}

uint64_t p2p_late(const struct comm *comm, uint64_t *waited_ns_p)
{
	const struct transfer *oldest = comm->p2p ? first_of(comm->p2p, TRANSFER_LATE) : NULL;
	uint64_t ranks = 0;

	*waited_ns_p = oldest ? rx_now_ns() - oldest->since_ns : 0;
	if (!oldest)
		return 0;
	rx_list_for_each (pos, &comm->p2p->by_state[TRANSFER_LATE])
		ranks |=
			1ull << missing_side(rx_list_entry(pos, struct transfer, state_link))->rank;
	return ranks;
}
