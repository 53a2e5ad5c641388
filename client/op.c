/* SPDX-License-Identifier: MIT */
/*
 * An operation ends for its caller when the daemon has completed it, or when the communicator or
 * the daemon is lost. In the second case the daemon may still read and write the memory: then the
 * operation's slot and bounce memory live on until its completion comes, or the session ends.
 * Whoever waits takes all completions and leaves them with the operations that they belong to.
 */
#include "op.h"

#include "comm.h"
#include "err.h"
#include "placement.h"
#include "session.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_wake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A full submission ring is normal while the daemon wakes up: how long to wait for it. */
#define FULL_RING_NS   (2 * RX_NS_PER_MS)
#define FULL_RING_STEP 50000
/* After giving up: how long to wait for the daemon's account of who was late. */
#define ACCOUNT_NS     (200 * RX_NS_PER_MS)
#define SPINS_PER_LOOK 16u
#define NAMED_MAX      8u

struct rcclx_op {
	struct op_parts *parts;  /* several operations in one: nothing else of this is used then */
	struct rcclx_comm *comm; /* not to be used once abandoned */
	struct rcclx_client *client;
	struct rx_op_sig sig;
	struct placement placement;
	/* Under the queue's lock until completed. */
	bool completed; /* cqe is there */
	bool abandoned; /* the caller has freed it */
	struct rx_cqe cqe;
	struct rcclx_op *next; /* abandoned ones that have just completed */
	/* Of the thread that waits. */
	bool finished;
	rcclx_result result;
	char text[512];
};

struct op_slot {
	struct rcclx_op *op; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

/* ---- slots and completions ---- */

int op_queue_init(
	struct op_queue *queue, const struct rx_map *s, const struct rx_map *d, uint32_t sq_entries)
{
	int r = 0;

	*queue = (struct op_queue){0};
	r = rx_ring_init(&queue->ring, s, d, sq_entries);
	if (r < 0)
		return r;
	queue->n_slots = queue->ring.cq_entries;
	queue->slots = calloc(queue->n_slots, sizeof(*queue->slots));
	if (!queue->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < queue->n_slots; i++)
		queue->slots[i].next_free = i + 1;
	r = pthread_mutex_init(&queue->lock, NULL);
	if (r != 0) {
		free(queue->slots);
		return -r;
	}
	return 0;
}

void op_queue_deinit(struct op_queue *queue)
{
	for (uint32_t i = 0; i < queue->n_slots; i++)
		free(queue->slots[i].op);
	free(queue->slots);
	(void)pthread_mutex_destroy(&queue->lock);
}

void op_queue_wake(const struct op_queue *queue)
{
	rx_futex_wake(&queue->ring.d->cq_event);
}

static uint64_t user_data(const struct op_queue *queue, uint32_t index)
{
	return (uint64_t)queue->slots[index].generation << 32 | index;
}

static struct rcclx_op *release_slot(struct op_queue *queue, uint64_t data)
{
	uint32_t index = (uint32_t)data;
	struct rcclx_op *op = NULL;

	if (index >= queue->n_slots || user_data(queue, index) != data)
		return NULL;
	op = queue->slots[index].op;
	if (!op)
		return NULL;
	queue->slots[index].op = NULL;
	queue->slots[index].generation++;
	queue->slots[index].next_free = queue->free_head;
	queue->free_head = index;
	return op;
}

/* Call with the lock held. Returns abandoned operations that are complete now. */
static struct rcclx_op *reap_locked(struct op_queue *queue)
{
	struct rcclx_op *abandoned = NULL;
	struct rx_cqe cqe;

	while (rx_ring_reap(&queue->ring, &cqe)) {
		struct rcclx_op *op = release_slot(queue, cqe.user_data);

		if (!op)
			continue;
		op->cqe = cqe;
		op->completed = true;
		if (op->abandoned) {
			op->next = abandoned;
			abandoned = op;
		}
	}
	return abandoned;
}

/* Not under the lock: giving memory back may take a round trip. */
static void free_abandoned(struct rcclx_client *client, struct rcclx_op *op)
{
	while (op) {
		struct rcclx_op *next = op->next;

		placement_end(client, &op->placement);
		free(op);
		op = next;
	}
}

/* Takes what is there; is @op complete? */
static bool reap(struct rcclx_op *op)
{
	struct op_queue *queue = &op->client->ops;
	struct rcclx_op *abandoned = NULL;
	bool completed = false;

	(void)pthread_mutex_lock(&queue->lock);
	abandoned = reap_locked(queue);
	completed = op->completed;
	(void)pthread_mutex_unlock(&queue->lock);
	free_abandoned(op->client, abandoned);
	return completed;
}

/* ---- submitting ---- */

/* Call with the lock held. -EAGAIN: the ring is full; -ENOSPC: so many in flight. */
static int submit_locked(
	struct op_queue *queue, struct rcclx_op *op, struct rx_sqe *sqe, bool *wake_p)
{
	uint32_t index = queue->free_head;
	int r = 0;

	if (index == queue->n_slots)
		return -ENOSPC;
	sqe->user_data = user_data(queue, index);
	r = rx_ring_submit(&queue->ring, sqe, wake_p);
	if (r < 0)
		return r;
	queue->free_head = queue->slots[index].next_free;
	queue->slots[index].op = op;
	return 0;
}

static rcclx_result too_many(const struct rcclx_client *client)
{
	return err_set(RCCLX_ERR_LIMIT,
		"too many asynchronous operations in flight (%u submitted and not yet taken by the "
		"daemon, or %u not complete): wait for one, or connect with more sq_entries than %u",
		client->ops.ring.sq_entries, client->ops.n_slots, client->ops.ring.sq_entries);
}

static rcclx_result submit(struct rcclx_op *op, struct rx_sqe *sqe)
{
	struct rcclx_client *client = op->client;
	struct op_queue *queue = &client->ops;
	uint64_t deadline_ns = rx_deadline_ns(FULL_RING_NS);
	bool wake = false;

	for (;;) {
		struct rcclx_op *abandoned = NULL;
		int r = 0;

		(void)pthread_mutex_lock(&queue->lock);
		r = submit_locked(queue, op, sqe, &wake);
		if (r < 0) {
			abandoned = reap_locked(queue);
			r = submit_locked(queue, op, sqe, &wake);
		}
		(void)pthread_mutex_unlock(&queue->lock);
		free_abandoned(client, abandoned);
		if (r == 0)
			break;
		if (r == -ENOSPC || rx_now_ns() >= deadline_ns)
			return too_many(client);
		(void)nanosleep(&(struct timespec){.tv_nsec = FULL_RING_STEP}, NULL);
	}
	/* The entry is out; a doorbell that fails means a daemon that is gone, as waiting finds. */
	if (wake)
		(void)rx_doorbell_ring(client->doorbell);
	return RCCLX_OK;
}

rcclx_result op_start(
	struct rcclx_comm *comm, const struct op_request *request, struct rcclx_op **op_p)
{
	struct rcclx_op *op = calloc(1, sizeof(*op));
	struct rx_sqe sqe = {
		.member = comm->member,
		.opno = comm->opno + 1,
		.coll = request->sig.coll,
		.dtype = request->sig.dtype,
		.op = request->sig.op,
		.root = request->sig.root,
		.count = request->sig.count,
		.imm = request->imm,
		.send_region = RX_REGION_NONE,
		.recv_region = RX_REGION_NONE,
	};
	rcclx_result r = RCCLX_OK;

	if (!op)
		return err_set(RCCLX_ERR_NO_MEMORY, "out of memory for an operation");
	op->comm = comm;
	op->client = comm->client;
	op->sig = request->sig;
	r = placement_begin(op->client, request, &op->placement, &sqe);
	if (r == RCCLX_OK)
		r = submit(op, &sqe);
	if (r != RCCLX_OK) {
		placement_end(op->client, &op->placement);
		free(op);
		return r;
	}
	comm->opno++;
	atomic_fetch_add(&comm->n_ops, 1);
	*op_p = op;
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
	placement_collect(&op->placement);
	return finish(op, RCCLX_OK);
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

static rcclx_result again(const struct rcclx_op *op)
{
	return op->result == RCCLX_OK ? RCCLX_OK : err_set(op->result, "%s", op->text);
}

/* RCCLX_ERR_TIMEOUT with op->finished unset: not yet. */
static rcclx_result wait_until(struct rcclx_op *op, uint64_t deadline_ns)
{
	const struct rx_ring *ring = &op->client->ops.ring;
	uint64_t now = rx_now_ns();
	uint64_t spin_until = now + op->comm->spin_ns;

	if (op->finished)
		return again(op);
	for (;;) {
		/* Before the reap: what comes after it wakes the sleep. */
		uint32_t event = rx_ring_event(ring);
		rcclx_result r = RCCLX_OK;

		if (reap(op))
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
			return reap(op) ? finish_completed(op) : finish(op, r);
		if (now >= deadline_ns)
			return not_yet(op);
		rx_ring_sleep(ring, event, rx_min_u64(RX_SLEEP_NS, deadline_ns - now));
		now = rx_now_ns();
	}
}

/* ---- several in one ---- */

struct op_parts {
	uint32_t n;
	rcclx_result started; /* first error of starting them, with its text */
	char why[512];
	struct rcclx_op *ops[];
};

struct op_parts *op_parts_new(uint32_t n_max)
{
	return calloc(1, sizeof(struct op_parts) + n_max * sizeof(struct rcclx_op *));
}

void op_parts_add(struct op_parts *parts, struct rcclx_op *op)
{
	parts->ops[parts->n++] = op;
}

rcclx_result op_parts_join(struct op_parts *parts, rcclx_result started, struct rcclx_op **op_p)
{
	struct rcclx_op *op = NULL;

	if (started != RCCLX_OK && parts->n == 0) {
		free(parts);
		return started;
	}
	/* What is started cannot be taken back: there has to be something to wait for. */
	op = parts->n == 1 && started == RCCLX_OK ? parts->ops[0] : calloc(1, sizeof(*op));
	if (!op)
		return err_set(RCCLX_ERR_NO_MEMORY, "out of memory for an operation");
	if (parts->n == 1 && started == RCCLX_OK) {
		free(parts);
		*op_p = op;
		return RCCLX_OK;
	}
	parts->started = started;
	if (started != RCCLX_OK)
		(void)snprintf(parts->why, sizeof(parts->why), "%s", rcclx_last_error());
	op->parts = parts;
	*op_p = op;
	return RCCLX_OK;
}

static bool is_finished(const struct rcclx_op *op)
{
	if (!op->parts)
		return op->finished;
	for (uint32_t i = 0; i < op->parts->n; i++)
		if (!op->parts->ops[i]->finished)
			return false;
	return true;
}

/* Of finished parts: the first error, in the order of the calls. */
static rcclx_result parts_result(const struct op_parts *parts)
{
	if (parts->started != RCCLX_OK)
		return err_set(parts->started, "%s", parts->why);
	for (uint32_t i = 0; i < parts->n; i++)
		if (parts->ops[i]->result != RCCLX_OK)
			return again(parts->ops[i]);
	return RCCLX_OK;
}

static rcclx_result wait_any(struct rcclx_op *op, uint64_t deadline_ns)
{
	if (!op->parts)
		return wait_until(op, deadline_ns);
	for (uint32_t i = 0; i < op->parts->n; i++) {
		rcclx_result r = wait_until(op->parts->ops[i], deadline_ns);

		if (!op->parts->ops[i]->finished)
			return r;
	}
	return parts_result(op->parts);
}

static rcclx_result usable(const struct rcclx_op *op)
{
	if (!op->parts)
		return session_usable(op->client);
	return op->parts->n > 0 ? session_usable(op->parts->ops[0]->client) : RCCLX_OK;
}

rcclx_result rcclx_op_wait(struct rcclx_op *op, uint64_t timeout_ns)
{
	rcclx_result r = RCCLX_OK;

	if (!op)
		return err_set(RCCLX_ERR_INVALID, "rcclx_op_wait: op is NULL");
	r = usable(op);
	if (r != RCCLX_OK)
		return r;
	return wait_any(op, timeout_ns == 0 ? 0 : rx_deadline_ns(timeout_ns));
}

rcclx_result rcclx_op_test(struct rcclx_op *op)
{
	return rcclx_op_wait(op, 0);
}

/* ---- the end ---- */

static void dispose(struct rcclx_op *op)
{
	struct op_queue *queue = &op->client->ops;
	bool completed = false;

	atomic_fetch_sub(&op->comm->n_ops, 1);
	(void)pthread_mutex_lock(&queue->lock);
	completed = op->completed;
	op->abandoned = !completed;
	(void)pthread_mutex_unlock(&queue->lock);
	/* Else whoever takes its completion frees it, or the end of the session. */
	if (!completed)
		return;
	placement_end(op->client, &op->placement);
	free(op);
}

static void dispose_any(struct rcclx_op *op)
{
	struct op_parts *parts = op->parts;

	if (!parts) {
		dispose(op);
		return;
	}
	for (uint32_t i = 0; i < parts->n; i++)
		dispose(parts->ops[i]);
	free(parts);
	free(op);
}

rcclx_result rcclx_op_free(struct rcclx_op *op)
{
	rcclx_result r = RCCLX_OK;

	if (!op)
		return RCCLX_OK;
	r = usable(op);
	if (r != RCCLX_OK)
		return r;
	if (!is_finished(op))
		(void)wait_any(op, 0);
	if (!is_finished(op))
		return err_set(RCCLX_ERR_BUSY,
			"rcclx_op_free: the operation is not complete; wait for it, or abort the "
			"communicator");
	dispose_any(op);
	return RCCLX_OK;
}

/* ---- blocking calls ---- */

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
static rcclx_result give_up(struct rcclx_op *op)
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

		completed = reap(op);
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

static rcclx_result give_up_any(struct rcclx_op *op)
{
	struct op_parts *parts = op->parts;

	if (!parts)
		return give_up(op);
	/* The first that misses its time aborts its communicator; others of it end with that. */
	for (uint32_t i = 0; i < parts->n; i++) {
		(void)wait_until(parts->ops[i], 0);
		if (!parts->ops[i]->finished)
			(void)give_up(parts->ops[i]);
	}
	return parts_result(parts);
}

rcclx_result op_finish(struct rcclx_op *op, uint64_t timeout_ns)
{
	rcclx_result r = wait_any(op, timeout_ns == 0 ? RX_FOREVER : rx_deadline_ns(timeout_ns));

	if (!is_finished(op))
		r = give_up_any(op);
	dispose_any(op);
	return r;
}
