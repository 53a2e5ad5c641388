/* SPDX-License-Identifier: MIT */
/*
 * Submission and completion ring of a session, both ends. Geometry lives in private memory on
 * each side; nothing that the other side can write is used as a size or an index unchecked.
 *
 * Threads: one thread at a time per end (the client serialises with a lock of its own).
 */
#ifndef RX_RING_H
#define RX_RING_H

#include "rx_ring_abi.h"
#include "rx_map.h"

struct rx_ring {
	struct rx_ring_s *s; /* client: writable; daemon: read-only mapping */
	struct rx_ring_d *d; /* client: read-only mapping; daemon: writable */
	struct rx_sqe *sqes;
	struct rx_cqe *cqes;
	uint32_t sq_entries;  /* power of two */
	uint32_t cq_entries;  /* power of two, 2 * sq_entries */
	uint64_t sq_pos;      /* own copy: client: tail; daemon: head */
	uint64_t cq_pos;      /* own copy: client: head; daemon: tail */
	uint32_t need_wakeup; /* daemon's own copy of the word it wrote */
};

/** rx_ring_s_bytes(), rx_ring_d_bytes() - size of the regions for a geometry */
uint64_t rx_ring_s_bytes(uint32_t sq_entries);
uint64_t rx_ring_d_bytes(uint32_t sq_entries);

/**
 * rx_ring_init() - attach to both regions
 * Return: 0; -EINVAL when @sq_entries is no power of two in [2, RX_RING_ENTRIES_MAX] or a map
 *         is too small. Keeps pointers into both maps, which must outlive the ring.
 */
RX_WARN_UNUSED int rx_ring_init(
	struct rx_ring *ring, const struct rx_map *s, const struct rx_map *d, uint32_t sq_entries);

/* ---- client end ---- */

/**
 * rx_ring_submit() - publish one entry
 * @wake_p: receives true when the doorbell must be rung
 *
 * The caller keeps ops in flight (submitted, not yet reaped) at most cq_entries: the ring does not
 * count them, and a client with more of them looks hostile to rx_ring_complete().
 *
 * Return: 0, or -EAGAIN when the ring is full or the daemon's head is out of range.
 */
RX_WARN_UNUSED int rx_ring_submit(struct rx_ring *ring, const struct rx_sqe *sqe, bool *wake_p);

/** rx_ring_reap() - take one completion; false when there is none */
RX_WARN_UNUSED bool rx_ring_reap(struct rx_ring *ring, struct rx_cqe *cqe_p);

/** rx_ring_event() - value to hand to rx_ring_sleep(); read it before the last rx_ring_reap() */
uint32_t rx_ring_event(const struct rx_ring *ring);

/** rx_ring_sleep() - sleep until the event word differs from @seen, at most @timeout_ns */
void rx_ring_sleep(const struct rx_ring *ring, uint32_t seen, uint64_t timeout_ns);

/** rx_ring_closed() - did the daemon end the session? */
bool rx_ring_closed(const struct rx_ring *ring);

/* ---- daemon end ---- */

/**
 * rx_ring_take() - copy the next submitted entry
 * Return: 1 taken, 0 none, -EPROTO the client's index is impossible (end the session).
 */
RX_WARN_UNUSED int rx_ring_take(struct rx_ring *ring, struct rx_sqe *sqe_p);

/** rx_ring_publish_head() - tell the client what was taken; once per batch */
void rx_ring_publish_head(struct rx_ring *ring);

/**
 * rx_ring_prepare_sleep() - the daemon is about to wait for the doorbell
 * Return: true when entries came in meanwhile: take them first. (need_wakeup stays set.)
 */
RX_WARN_UNUSED bool rx_ring_prepare_sleep(struct rx_ring *ring);

/** rx_ring_awake() - the daemon looks at the ring again: no doorbell needed meanwhile */
void rx_ring_awake(struct rx_ring *ring);

/**
 * rx_ring_complete() - produce one completion, not yet announced
 * Return: 0; -ENOSPC the client does not reap (bounded by ops in flight <= cq_entries, so this
 *         means it lies); -EPROTO its index is impossible.
 */
RX_WARN_UNUSED int rx_ring_complete(struct rx_ring *ring, const struct rx_cqe *cqe);

/** rx_ring_announce() - publish completions and wake the client */
void rx_ring_announce(struct rx_ring *ring);

/** rx_ring_close() - mark the session as ended and wake the client */
void rx_ring_close(struct rx_ring *ring);

#endif
