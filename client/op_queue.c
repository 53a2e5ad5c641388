/* SPDX-License-Identifier: MIT */
/*
 * The session's rings as operations see them. A slot belongs to an operation from its submission to
 * its completion. Whoever waits takes all completions and leaves them with the operations that they
 * belong to; operations whose caller has given them up are freed then.
 */
#include "op_state.h"

#include "comm.h"
#include "err.h"
#include "session.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_wake.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* A full submission ring is normal while the daemon wakes up: how long to wait for it. */
#define FULL_RING_NS   (2 * RX_NS_PER_MS)
#define FULL_RING_STEP 50000

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
bool op_reap(struct rcclx_op *op)
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

rcclx_result op_submit(struct rcclx_op *op, struct rx_sqe *sqe)
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
