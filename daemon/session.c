/* SPDX-License-Identifier: MIT */
/*
 * Order of the teardown. First the ring: no more entries are taken, so nothing new starts. Then
 * the memberships: each communicator marks the rank as dead and fails what waits for it; from here
 * on no op holds a pointer to this session. Then memory: the session's references go, those of
 * running ops stay until the worker is done. Then the client is told, and the rings are unmapped.
 */
#include "session.h"

#include "comm.h"
#include "daemon.h"
#include "gpu_mem.h"
#include "loop.h"
#include "peer.h"
#include "region.h"
#include "ringsrv.h"
#include "slab.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_memfd.h"
#include "../shm/rx_wake.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Kept open per session: the doorbell. */
#define SESSION_FDS 1u

static int charge(struct session *session, uint32_t sq_entries)
{
	struct accounts *accounts = &session->daemon->accounts;
	uint64_t bytes = rx_ring_s_bytes(sq_entries) + rx_ring_d_bytes(sq_entries);
	int r = account_charge(
		accounts, session->uid, ACCOUNT_SESSIONS, 1, &session->session_charge);

	if (!r)
		r = account_charge(
			accounts, session->uid, ACCOUNT_BYTES, bytes, &session->ring_charge);
	if (!r)
		r = account_charge(
			accounts, session->uid, ACCOUNT_FDS, SESSION_FDS, &session->fd_charge);
	return r;
}

static int make_rings(struct session *session, uint32_t sq_entries, int *s_p, int *d_p)
{
	uint64_t s_bytes = rx_ring_s_bytes(sq_entries);
	uint64_t d_bytes = rx_ring_d_bytes(sq_entries);
	RX_CLOSE int s = -1;
	RX_CLOSE int d = -1;
	int r = rx_memfd_new("rcclx-ring-s", s_bytes, RX_MEMFD_SHARED, &s);

	if (!r)
		r = rx_memfd_new("rcclx-ring-d", d_bytes, RX_MEMFD_ONE_WRITER, &d);
	if (!r)
		r = rx_map_open(&session->s_map, s, s_bytes, RX_MAP_RO | RX_MAP_DONTFORK);
	if (!r)
		r = rx_map_open(&session->d_map, d, d_bytes, RX_MAP_RW | RX_MAP_DONTFORK);
	if (!r)
		r = rx_memfd_seal_writer(d);
	if (!r)
		r = rx_ring_init(&session->ring, &session->s_map, &session->d_map, sq_entries);
	if (r)
		return r;
	*s_p = rx_steal_fd(&s);
	*d_p = rx_steal_fd(&d);
	return 0;
}

static int watch_doorbell(struct session *session)
{
	int r = rx_doorbell_new(&session->doorbell);

	if (r)
		return r;
	return loop_poll_new(session->daemon->loop, session->doorbell, UV_READABLE, ringsrv_bell,
		session, &session->bell);
}

static void release(struct session *session)
{
	session->bell = loop_poll_free(session->bell);
	rx_closep(&session->doorbell);
	rx_map_close(&session->s_map);
	rx_map_close(&session->d_map);
	charge_release(&session->fd_charge);
	charge_release(&session->ring_charge);
	charge_release(&session->session_charge);
	free(session);
}

int session_new(struct peer *peer, const char *program, uint32_t sq_entries,
	struct session **session_p, struct session_fds *fds_p)
{
	struct session *session = calloc(1, sizeof(*session));
	RX_CLOSE int s = -1;
	RX_CLOSE int d = -1;
	int r = 0;

	if (!session)
		return -ENOMEM;
	session->daemon = peer->daemon;
	session->peer = peer;
	session->pid = peer->pid;
	session->uid = peer->uid;
	session->doorbell = -1;
	rx_list_init(&session->ready_link);
	rx_list_init(&session->announce_link);
	rx_list_init(&session->members);
	rx_list_init(&session->regions);
	rx_list_init(&session->slabs);
	(void)snprintf(session->program, sizeof(session->program), "%s", program);
	r = charge(session, sq_entries);
	if (!r)
		r = make_rings(session, sq_entries, &s, &d);
	if (!r)
		r = watch_doorbell(session);
	if (!r)
		r = rx_idmap_add(&session->daemon->sessions, session, &session->id);
	if (r) {
		release(session);
		return r;
	}
	/* From its first entry on, the client rings. Nobody has the ring yet: it is empty. */
	if (rx_ring_prepare_sleep(&session->ring))
		ringsrv_look(session);
	session->daemon->stats.sessions++;
	*fds_p = (struct session_fds){
		.s = rx_steal_fd(&s),
		.d = rx_steal_fd(&d),
		.doorbell = session->doorbell,
	};
	*session_p = session;
	return 0;
}

struct session *session_free(struct session *session)
{
	if (!session)
		return NULL;
	session->bell = loop_poll_free(session->bell);
	rx_list_unlink(&session->ready_link);
	while (!rx_list_empty(&session->members))
		member_gone(rx_list_entry(session->members.next, struct member, session_link),
			RX_MEMBER_DEAD);
	session->gates = region_unref(session->gates);
	while (!rx_list_empty(&session->regions))
		region_close(rx_list_entry(session->regions.next, struct region, link));
	gpu_mem_session_gone(session);
	slab_session_gone(session);
	rx_list_unlink(&session->announce_link);
	assert(session->n_members == 0 && session->n_regions == 0);
	rx_ring_announce(&session->ring);
	rx_ring_close(&session->ring);
	(void)rx_idmap_remove(&session->daemon->sessions, session->id);
	release(session);
	return NULL;
}

void session_complete(struct session *session, const struct rx_cqe *cqe)
{
	int r = 0;

	if (session->peer->state == PEER_CLOSING)
		return;
	r = rx_ring_complete(&session->ring, cqe);
	if (r) {
		peer_violation(session->peer, r == -ENOSPC
						      ? "more completions than it takes"
						      : "impossible index in the completion ring");
		return;
	}
	assert(session->n_in_flight > 0);
	session->n_in_flight--;
	session->ops_done++;
	ringsrv_stay_awake(session);
	if (rx_list_empty(&session->announce_link))
		rx_list_push(&session->daemon->announce, &session->announce_link);
}

void session_announce(struct session *session)
{
	rx_list_unlink(&session->announce_link);
	rx_ring_announce(&session->ring);
	ringsrv_resume(session);
}
