/* SPDX-License-Identifier: MIT */
/*
 * The session's rings as operations see them. A slot belongs to an operation from its submission to
 * its completion. Whoever waits takes all completions and leaves them with the operations that they
 * belong to; operations whose caller has given them up are freed then.
 *
 * More operations than there is room for wait in their lanes. Whoever takes completions hands some
 * of them to the daemon, and as their caller may be elsewhere, a thread does so while there are
 * any.
 *
 * Nobody can block himself that way, whatever the ranks post first: the daemon matches lanes
 * apart from each other, so it is enough that each of them goes on. A lane with nothing in flight
 * always finds a slot, because lanes that have something in flight leave one for each of the others
 * (for up to half of the slots: so many lanes may be in use at the same time).
 */
#include "op_state.h"

#include "comm.h"
#include "err.h"
#include "session.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_wake.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* A full submission ring is normal while the daemon wakes up: not yet worth a thread. */
#define FULL_RING_NS   (2 * RX_NS_PER_MS)
#define FULL_RING_STEP 50000

struct op_slot {
	struct rcclx_op *op; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

/* ---- slots ---- */

int op_queue_init(
	struct op_queue *queue, const struct rx_map *s, const struct rx_map *d, uint32_t sq_entries)
{
	int r = 0;

	*queue = (struct op_queue){0};
	r = rx_ring_init(&queue->ring, s, d, sq_entries);
	if (r < 0)
		return r;
	rx_list_init(&queue->lanes);
	queue->n_slots = queue->ring.cq_entries;
	queue->n_free = queue->n_slots;
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

void op_queue_stop(struct op_queue *queue)
{
	bool join = false;

	(void)pthread_mutex_lock(&queue->lock);
	queue->stop = true;
	join = queue->feeder != OP_FEEDER_NONE;
	(void)pthread_mutex_unlock(&queue->lock);
	op_queue_wake(queue);
	if (join)
		(void)pthread_join(queue->feeder_thread, NULL);
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

/* ---- lanes ---- */

static uint32_t n_lanes(uint32_t n_ranks)
{
	return 1 + 2 * n_ranks;
}

struct op_lane *op_lanes_open(struct op_queue *queue, uint32_t n_ranks)
{
	struct op_lane *lanes = calloc(n_lanes(n_ranks), sizeof(*lanes));

	if (!lanes)
		return NULL;
	for (uint32_t i = 0; i < n_lanes(n_ranks); i++) {
		rx_list_init(&lanes[i].waiting);
		rx_list_init(&lanes[i].link);
	}
	(void)pthread_mutex_lock(&queue->lock);
	queue->n_idle += n_lanes(n_ranks);
	(void)pthread_mutex_unlock(&queue->lock);
	return lanes;
}

void op_lanes_close(struct op_queue *queue, struct op_lane *lanes, uint32_t n_ranks)
{
	(void)pthread_mutex_lock(&queue->lock);
	for (uint32_t i = 0; i < n_lanes(n_ranks); i++)
		assert(lanes[i].n_in_flight == 0 && rx_list_empty(&lanes[i].waiting));
	queue->n_idle -= n_lanes(n_ranks);
	(void)pthread_mutex_unlock(&queue->lock);
	free(lanes);
}

static struct op_lane *lane_of(const struct rcclx_comm *comm, const struct rx_op_sig *sig)
{
	switch (sig->coll) {
	case RX_SEND:
		return &comm->lanes[1 + sig->root];
	case RX_RECV:
		return &comm->lanes[1 + comm->n_ranks + sig->root];
	default:
		return &comm->lanes[0];
	}
}

static void lane_enter(struct op_queue *queue, struct op_lane *lane)
{
	queue->n_idle -= lane->n_in_flight == 0;
	lane->n_in_flight++;
}

static void lane_leave(struct op_queue *queue, struct op_lane *lane)
{
	lane->n_in_flight--;
	queue->n_idle += lane->n_in_flight == 0;
}

/* May one more operation of the lane have a slot? */
static bool lane_has_room(const struct op_queue *queue, const struct op_lane *lane)
{
	if (lane->n_in_flight == 0)
		return queue->n_free > 0;
	return queue->n_free >
	       (queue->n_idle < queue->n_slots / 2 ? queue->n_idle : queue->n_slots / 2);
}

/* ---- completions ---- */

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
	queue->n_free++;
	if (op->lane)
		lane_leave(queue, op->lane);
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
		if (op->in_stream)
			op_over_in_stream(op);
		else
			free(op);
		op = next;
	}
}

/* ---- submitting ---- */

/* Call with the lock held. -EAGAIN: the ring is full; -ENOSPC: so many in flight. */
static int submit_locked(struct op_queue *queue, struct rcclx_op *op, bool *wake_p)
{
	uint32_t index = queue->free_head;
	bool wake = false;
	int r = 0;

	if (!lane_has_room(queue, op->lane))
		return -ENOSPC;
	op->sqe.user_data = user_data(queue, index);
	r = rx_ring_submit(&queue->ring, &op->sqe, &wake);
	if (r < 0)
		return r;
	*wake_p |= wake;
	queue->free_head = queue->slots[index].next_free;
	queue->slots[index].op = op;
	queue->n_free--;
	lane_enter(queue, op->lane);
	return 0;
}

static void stop_waiting(struct rcclx_op *op)
{
	rx_list_unlink(&op->link);
	if (rx_list_empty(&op->lane->waiting))
		rx_list_unlink(&op->lane->link);
}

/* Call with the lock held. As many as there is room for, in turn; true: the ring is full. */
static bool feed_locked(struct op_queue *queue, bool *wake_p)
{
	bool fed = true;

	while (fed) {
		fed = false;
		rx_list_for_each_safe (pos, &queue->lanes) {
			struct op_lane *lane = rx_list_entry(pos, struct op_lane, link);
			struct rcclx_op *op =
				rx_list_entry(lane->waiting.next, struct rcclx_op, link);
			int r = submit_locked(queue, op, wake_p);

			if (r == -EAGAIN)
				return true;
			if (r < 0)
				continue;
			fed = true;
			stop_waiting(op);
		}
	}
	return false;
}

/* The entries are out; a doorbell that fails means a daemon that is gone, as waiting finds. */
static void ring_if(const struct rcclx_client *client, bool wake)
{
	if (wake)
		(void)rx_doorbell_ring(client->doorbell);
}

/* Takes what is there, and makes use of the room; is @op complete, if it is one? */
static bool take(struct rcclx_client *client, const struct rcclx_op *op)
{
	struct op_queue *queue = &client->ops;
	struct rcclx_op *abandoned = NULL;
	bool completed = false;
	bool wake = false;

	(void)pthread_mutex_lock(&queue->lock);
	abandoned = reap_locked(queue);
	(void)feed_locked(queue, &wake);
	completed = op && op->completed;
	(void)pthread_mutex_unlock(&queue->lock);
	ring_if(client, wake);
	free_abandoned(client, abandoned);
	return completed;
}

bool op_reap(struct rcclx_op *op)
{
	return take(op->client, op);
}

void op_take_completions(struct rcclx_client *client)
{
	(void)take(client, NULL);
}

/* Call with the lock held. Those that wait for room, which the daemon never hears of. */
static struct rcclx_op *take_back(struct rcclx_comm *comm, struct op_lane *lane)
{
	struct rcclx_op *taken = NULL;

	rx_list_for_each_safe (pos, &lane->waiting) {
		struct rcclx_op *op = rx_list_entry(pos, struct rcclx_op, link);

		if (!op->in_stream)
			continue;
		stop_waiting(op);
		op->comm = NULL;
		atomic_fetch_sub(&comm->n_in_stream, 1);
		op->next = taken;
		taken = op;
	}
	return taken;
}

void op_forget_in_stream(struct rcclx_comm *comm)
{
	struct rcclx_client *client = comm->client;
	struct op_queue *queue = &client->ops;

	for (uint32_t i = 0; i < n_lanes(comm->n_ranks); i++) {
		struct rcclx_op *taken = NULL;

		(void)pthread_mutex_lock(&queue->lock);
		taken = take_back(comm, &comm->lanes[i]);
		(void)pthread_mutex_unlock(&queue->lock);
		free_abandoned(client, taken);
	}
	(void)pthread_mutex_lock(&queue->lock);
	for (uint32_t i = 0; i < queue->n_slots; i++) {
		struct rcclx_op *op = queue->slots[i].op;

		if (!op || !op->in_stream || op->comm != comm)
			continue;
		lane_leave(queue, op->lane);
		op->lane = NULL;
		op->comm = NULL;
		atomic_fetch_sub(&comm->n_in_stream, 1);
	}
	(void)pthread_mutex_unlock(&queue->lock);
	/* Threads that have one in their hands are about to put it away. */
	while (atomic_load(&comm->n_in_stream) > 0)
		(void)sched_yield();
}

/* ---- waiting for room ---- */

static void *feed(void *arg)
{
	struct rcclx_client *client = arg;
	struct op_queue *queue = &client->ops;
	bool over = false;

	while (!over) {
		uint32_t event = rx_ring_event(&queue->ring);
		struct rcclx_op *abandoned = NULL;
		bool lost = session_lost(client);
		bool wake = false;
		bool full = false;

		(void)pthread_mutex_lock(&queue->lock);
		abandoned = reap_locked(queue);
		full = feed_locked(queue, &wake);
		over = rx_list_empty(&queue->lanes) || queue->stop || lost;
		if (over)
			queue->feeder = OP_FEEDER_ENDED;
		(void)pthread_mutex_unlock(&queue->lock);
		ring_if(client, wake);
		free_abandoned(client, abandoned);
		if (!over && full)
			(void)nanosleep(&(struct timespec){.tv_nsec = FULL_RING_STEP}, NULL);
		else if (!over)
			rx_ring_sleep(&queue->ring, event, RX_SLEEP_NS);
	}
	return NULL;
}

/* Call with the lock held. Signals are for the program's own threads. Return: 0 or -errno. */
static int start_feeder(struct rcclx_client *client)
{
	struct op_queue *queue = &client->ops;
	sigset_t all;
	sigset_t before;
	int r = 0;

	if (queue->feeder == OP_FEEDER_RUNS)
		return 0;
	/* It does nothing more that needs the lock. */
	if (queue->feeder == OP_FEEDER_ENDED)
		(void)pthread_join(queue->feeder_thread, NULL);
	queue->feeder = OP_FEEDER_NONE;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&queue->feeder_thread, NULL, feed, client);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		queue->feeder = OP_FEEDER_RUNS;
	return -r;
}

/* Call with the lock held. Return: 0 or -errno. */
static int wait_for_room(struct rcclx_op *op)
{
	struct op_queue *queue = &op->client->ops;
	int r = start_feeder(op->client);

	if (r < 0)
		return r;
	rx_list_push(&op->lane->waiting, &op->link);
	if (rx_list_empty(&op->lane->link))
		rx_list_push(&queue->lanes, &op->lane->link);
	return 0;
}

/* Call with the lock held. 0; -EAGAIN: try again in a moment; -ENOSPC: too many; other -errno. */
static int submit_or_wait(struct rcclx_op *op, bool last, bool *wake_p)
{
	struct op_queue *queue = &op->client->ops;
	bool first = rx_list_empty(&op->lane->waiting);
	int r = first ? submit_locked(queue, op, wake_p) : -EBUSY;

	if (r == 0 || (r == -EAGAIN && !last))
		return r;
	if (r == -ENOSPC && op->lane->n_in_flight == 0)
		return r;
	return wait_for_room(op);
}

static rcclx_result too_many(const struct rcclx_client *client)
{
	return err_set(RCCLX_ERR_LIMIT,
		"too many asynchronous operations of different kinds in flight (%u, to and from "
		"different ranks or of different communicators): wait for some, or connect with "
		"more sq_entries than %u",
		client->ops.n_slots, client->ops.ring.sq_entries);
}

rcclx_result op_submit(struct rcclx_op *op)
{
	struct rcclx_client *client = op->client;
	struct op_queue *queue = &client->ops;
	uint64_t deadline_ns = 0;
	int r = 0;

	rx_list_init(&op->link);
	op->lane = lane_of(op->comm, &op->sig);
	for (;;) {
		struct rcclx_op *abandoned = NULL;
		bool last = deadline_ns > 0 && rx_now_ns() >= deadline_ns;
		bool wake = false;

		(void)pthread_mutex_lock(&queue->lock);
		if (queue->n_free < queue->n_slots / 2 || deadline_ns > 0) {
			abandoned = reap_locked(queue);
			(void)feed_locked(queue, &wake);
		}
		r = submit_or_wait(op, last, &wake);
		(void)pthread_mutex_unlock(&queue->lock);
		ring_if(client, wake);
		free_abandoned(client, abandoned);
		if (r != -EAGAIN)
			break;
		if (deadline_ns == 0)
			deadline_ns = rx_deadline_ns(FULL_RING_NS);
		(void)nanosleep(&(struct timespec){.tv_nsec = FULL_RING_STEP}, NULL);
	}
	if (r == -ENOSPC)
		return too_many(client);
	return r < 0 ? err_errno(r, "starting a thread for operations that wait for room")
		     : RCCLX_OK;
}

bool op_abandon(struct rcclx_op *op)
{
	struct op_queue *queue = &op->client->ops;
	bool over = false;

	(void)pthread_mutex_lock(&queue->lock);
	over = op->completed;
	if (!over && !rx_list_empty(&op->link)) {
		stop_waiting(op);
		over = true;
	} else if (!over) {
		op->abandoned = true;
		lane_leave(queue, op->lane);
		op->lane = NULL;
	}
	(void)pthread_mutex_unlock(&queue->lock);
	return over;
}
