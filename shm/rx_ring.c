/* SPDX-License-Identifier: MIT */
/*
 * Two single-producer single-consumer rings over two regions with one writer each.
 *
 * Pairs of memory orders:
 *   SQ1  client: sq_tail store (seq_cst, so also release)  ->  daemon: sq_tail load (acquire):
 *        the entry is seen before the tail that covers it.
 *   SQ2  daemon: sq_head store (release)  ->  client: sq_head load (acquire): the daemon's copy
 *        out of an entry is finished before the client writes it anew.
 *   CQ1  daemon: cq_tail store (release)  ->  client: cq_tail load (acquire).
 *   CQ2  client: cq_head store (release)  ->  daemon: cq_head load (acquire).
 *   W    client: sq_tail store, need_wakeup load; daemon: need_wakeup store, sq_tail load; all
 *        four seq_cst: at least one side sees the other's store, so either the client rings or
 *        the daemon does not sleep (tests/model/ring.pml).
 *   EV   daemon: cq_tail or closed store, then cq_event store (release), then futex wake; client:
 *        cq_event load (acquire), then the last look at cq_tail and closed, then futex wait for
 *        that cq_event. What the client has missed came with a newer cq_event, and the wait
 *        returns at once.
 *
 * What the other end wrote is only ever compared with a private position: a difference greater
 * than the ring is impossible and ends the session (daemon) or reads as full or empty (client).
 */
#include "rx_ring.h"

#include "rx_wake.h"

#include <errno.h>
#include <string.h>

uint64_t rx_ring_s_bytes(uint32_t sq_entries)
{
	return RX_RING_HEAD_BYTES + (uint64_t)sq_entries * sizeof(struct rx_sqe);
}

uint64_t rx_ring_d_bytes(uint32_t sq_entries)
{
	return RX_RING_HEAD_BYTES + 2 * (uint64_t)sq_entries * sizeof(struct rx_cqe);
}

int rx_ring_init(
	struct rx_ring *ring, const struct rx_map *s, const struct rx_map *d, uint32_t sq_entries)
{
	uint8_t *s_base = NULL;
	uint8_t *d_base = NULL;

	if (sq_entries < 2 || sq_entries > RX_RING_ENTRIES_MAX || (sq_entries & (sq_entries - 1)))
		return -EINVAL;
	s_base = rx_map_at(s, 0, rx_ring_s_bytes(sq_entries));
	d_base = rx_map_at(d, 0, rx_ring_d_bytes(sq_entries));
	if (!s_base || !d_base)
		return -EINVAL;
	*ring = (struct rx_ring){
		.s = (void *)s_base,
		.d = (void *)d_base,
		.sqes = (void *)(s_base + RX_RING_HEAD_BYTES),
		.cqes = (void *)(d_base + RX_RING_HEAD_BYTES),
		.sq_entries = sq_entries,
		.cq_entries = 2 * sq_entries,
	};
	return 0;
}

/* ---- client end ---- */

int rx_ring_submit(struct rx_ring *ring, const struct rx_sqe *sqe, bool *wake_p)
{
	/* SQ2 */
	uint64_t head = atomic_load_explicit(&ring->d->sq_head, memory_order_acquire);

	if (ring->sq_pos - head >= ring->sq_entries)
		return -EAGAIN;
	memcpy(&ring->sqes[ring->sq_pos & (ring->sq_entries - 1)], sqe, sizeof(*sqe));
	ring->sq_pos++;
	/* SQ1, W */
	atomic_store_explicit(&ring->s->sq_tail, ring->sq_pos, memory_order_seq_cst);
	*wake_p = atomic_load_explicit(&ring->d->need_wakeup, memory_order_seq_cst) != 0;
	return 0;
}

bool rx_ring_reap(struct rx_ring *ring, struct rx_cqe *cqe_p)
{
	/* CQ1 */
	uint64_t tail = atomic_load_explicit(&ring->d->cq_tail, memory_order_acquire);
	uint64_t n_ready = tail - ring->cq_pos;

	if (n_ready == 0 || n_ready > ring->cq_entries)
		return false;
	memcpy(cqe_p, &ring->cqes[ring->cq_pos & (ring->cq_entries - 1)], sizeof(*cqe_p));
	ring->cq_pos++;
	/* CQ2 */
	atomic_store_explicit(&ring->s->cq_head, ring->cq_pos, memory_order_release);
	return true;
}

uint32_t rx_ring_event(const struct rx_ring *ring)
{
	/* EV */
	return atomic_load_explicit(&ring->d->cq_event, memory_order_acquire);
}

void rx_ring_sleep(const struct rx_ring *ring, uint32_t seen, uint64_t timeout_ns)
{
	(void)rx_futex_wait(&ring->d->cq_event, seen, timeout_ns);
}

bool rx_ring_closed(const struct rx_ring *ring)
{
	/* EV; what was completed before the close is seen by a reap after this. */
	return atomic_load_explicit(&ring->d->closed, memory_order_acquire) != 0;
}

/* ---- daemon end ---- */

int rx_ring_take(struct rx_ring *ring, struct rx_sqe *sqe_p)
{
	/* SQ1 */
	uint64_t tail = atomic_load_explicit(&ring->s->sq_tail, memory_order_acquire);
	uint64_t n_ready = tail - ring->sq_pos;

	if (n_ready == 0)
		return 0;
	if (n_ready > ring->sq_entries)
		return -EPROTO;
	memcpy(sqe_p, &ring->sqes[ring->sq_pos & (ring->sq_entries - 1)], sizeof(*sqe_p));
	ring->sq_pos++;
	return 1;
}

void rx_ring_publish_head(struct rx_ring *ring)
{
	/* SQ2 */
	atomic_store_explicit(&ring->d->sq_head, ring->sq_pos, memory_order_release);
}

bool rx_ring_prepare_sleep(struct rx_ring *ring)
{
	/* W; when the word is set already, the store that set it has been ordered. */
	if (!ring->need_wakeup) {
		ring->need_wakeup = 1;
		atomic_store_explicit(&ring->d->need_wakeup, 1, memory_order_seq_cst);
	}
	return atomic_load_explicit(&ring->s->sq_tail, memory_order_seq_cst) != ring->sq_pos;
}

void rx_ring_awake(struct rx_ring *ring)
{
	if (!ring->need_wakeup)
		return;
	ring->need_wakeup = 0;
	/* No pair: a client that still sees 1 rings once for nothing. */
	atomic_store_explicit(&ring->d->need_wakeup, 0, memory_order_relaxed);
}

int rx_ring_complete(struct rx_ring *ring, const struct rx_cqe *cqe)
{
	/* CQ2 */
	uint64_t head = atomic_load_explicit(&ring->s->cq_head, memory_order_acquire);
	uint64_t n_used = ring->cq_pos - head;

	if (n_used > ring->cq_entries)
		return -EPROTO;
	if (n_used == ring->cq_entries)
		return -ENOSPC;
	memcpy(&ring->cqes[ring->cq_pos & (ring->cq_entries - 1)], cqe, sizeof(*cqe));
	ring->cq_pos++;
	return 0;
}

static void bump_event(struct rx_ring *ring)
{
	/* One writer: no read-modify-write needed. */
	uint32_t event = atomic_load_explicit(&ring->d->cq_event, memory_order_relaxed);

	/* EV */
	atomic_store_explicit(&ring->d->cq_event, event + 1, memory_order_release);
	rx_futex_wake(&ring->d->cq_event);
}

void rx_ring_announce(struct rx_ring *ring)
{
	/* CQ1, EV */
	atomic_store_explicit(&ring->d->cq_tail, ring->cq_pos, memory_order_release);
	bump_event(ring);
}

void rx_ring_close(struct rx_ring *ring)
{
	/* EV */
	atomic_store_explicit(&ring->d->closed, 1, memory_order_release);
	bump_event(ring);
}
