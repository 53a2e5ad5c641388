/* SPDX-License-Identifier: MIT */
/*
 * Sessions with entries stand in a queue; a turn of the loop takes a bounded number of entries,
 * a few from each session in rotation, so that nobody waits behind somebody else's flood.
 *
 * An entry is copied once, the copy is checked, and only the copy is used.
 */
#include "ringsrv.h"

#include "captured.h"
#include "comm.h"
#include "daemon.h"
#include "entry.h"
#include "gate.h"
#include "gpu.h"
#include "loop.h"
#include "op.h"
#include "p2p.h"
#include "peer.h"
#include "region.h"
#include "session.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_result.h"
#include "../shm/rx_wake.h"

#include <errno.h>
#include <inttypes.h>

#define TURN_ENTRIES    64u
#define SESSION_ENTRIES 16u
#define DEVICES_POLL_US 100u
#define LOOKS_PER_TURN  16u

/* Doorbells without entries, in a row and within a window: no honest client gets there. */
#define STORM_BELLS     1024u
#define STORM_WINDOW_NS RX_NS_PER_SEC

static bool is_busy(const struct daemon *daemon)
{
	return daemon->busy_until_ns > 0 && rx_now_ns() < daemon->busy_until_ns;
}

/*
 * While polling busily, and once more when that ends: look at every ring that is awake. The turn
 * after the end puts them to sleep.
 */
static bool poll_busily(struct daemon *daemon)
{
	struct session *session = NULL;
	uint64_t id = 0;

	if (daemon->busy_until_ns == 0)
		return false;
	if (!is_busy(daemon)) {
		daemon->busy_until_ns = 0;
		gpu_watch(daemon->gpu, false);
	}
	if (gpu_take_done(daemon->gpu))
		return true;
	while ((session = rx_idmap_next(&daemon->sessions, id, &id)) != NULL)
		if (!session->ring.need_wakeup)
			ringsrv_look(session);
	return !rx_list_empty(&daemon->ready);
}

static void on_turn(uv_idle_t *idle)
{
	struct daemon *daemon = idle->data;

	if (ringsrv_turn(daemon))
		return;
	/* What libuv does in between takes longer than a look. */
	for (uint32_t i = 0; i < LOOKS_PER_TURN && daemon->busy_until_ns > 0; i++)
		if (poll_busily(daemon))
			return;
	if (daemon->busy_until_ns == 0 && rx_list_empty(&daemon->ready))
		(void)uv_idle_stop(idle);
}

void ringsrv_look(struct session *session)
{
	struct daemon *daemon = session->daemon;

	if (!rx_list_empty(&session->ready_link))
		return;
	rx_list_push(&daemon->ready, &session->ready_link);
	daemon->turn.data = daemon;
	(void)uv_idle_start(&daemon->turn, on_turn);
}

static uint32_t most_in_flight(const struct session *session)
{
	/* No more than the limit when the session began: see h_hello(). */
	return session->ring.cq_entries;
}

void ringsrv_resume(struct session *session)
{
	/* While the ring sleeps the doorbell wakes it; awake and not queued means: was full. */
	if (!session->ring.need_wakeup && session->n_in_flight < most_in_flight(session))
		ringsrv_look(session);
}

static void count_empty_bell(struct session *session)
{
	uint64_t now = rx_now_ns();

	if (session->n_empty_bells == 0 || now - session->storm_start_ns > STORM_WINDOW_NS) {
		session->n_empty_bells = 0;
		session->storm_start_ns = now;
	}
	if (++session->n_empty_bells >= STORM_BELLS)
		peer_violation(session->peer, "rings its doorbell without need");
}

void ringsrv_bell(void *owner, int events)
{
	struct session *session = owner;
	int r = 0;

	(void)events;
	if (session->peer->state == PEER_CLOSING)
		return;
	r = rx_doorbell_drain(session->doorbell);
	if (r < 0)
		peer_violation(session->peer, "spoilt its doorbell");
	if (r <= 0)
		return;
	count_empty_bell(session);
	rx_ring_awake(&session->ring);
	ringsrv_look(session);
}

static void refuse(struct session *session, const struct rx_sqe *sqe)
{
	struct rx_cqe cqe = {
		.user_data = sqe->user_data,
		.result = RX_ERR_INVALID,
		.peer_rank = UINT32_MAX,
		.opno = sqe->opno,
	};

	session_complete(session, &cqe);
}

/* The numbers of a variable collective, if it is one: copied once, and only the copy is used. */
static const char *fetch_words(
	const struct member *member, const struct rx_sqe *sqe, uint64_t words[RX_COUNTS_WORDS_MAX])
{
	struct region *region =
		rx_coll_is_v(sqe->coll) ? region_find(member->session, sqe->root) : NULL;
	const char *why = NULL;
	uint32_t n_words = 0;

	if (entry_check_words(sqe, member->comm->n_ranks, region != NULL,
		    region ? region->bytes : 0, &n_words, &why) != 0)
		return why;
	if (n_words == 0)
		return NULL;
	if (region_map(region) != 0)
		return "the memory of the counts cannot be mapped";
	region_copy(region, sqe->imm, words, n_words * sizeof(words[0]));
	return NULL;
}

/* Does the entry fit what its handles stand for, and is that memory there? */
static bool check(const struct member *member, const struct rx_sqe *sqe, struct region **send,
	struct region **recv, uint64_t words[RX_COUNTS_WORDS_MAX])
{
	struct entry_facts facts = {
		.n_ranks = member->comm->n_ranks,
		.rank = member->rank,
		.send_known = *send != NULL,
		.recv_known = *recv != NULL,
		.send_bytes = *send ? (*send)->bytes : 0,
		.recv_bytes = *recv ? (*recv)->bytes : 0,
		.words = words,
	};
	struct rx_extent extent = {0};
	const char *why = fetch_words(member, sqe, words);

	if (!why && entry_check(sqe, &facts, &extent, &why) == 0) {
		*send = extent.send > 0 ? *send : NULL;
		*recv = extent.recv > 0 ? *recv : NULL;
		if ((*send && region_map(*send) != 0) || (*recv && region_map(*recv) != 0))
			why = "the memory cannot be mapped writable";
	}
	if (why)
		rx_debug("session=%" PRIu64 " comm=%" PRIu64 " rank=%u bad entry: %s",
			member->session_id, member->comm->id, member->rank, why);
	return !why;
}

static void serve(struct session *session, const struct rx_sqe *sqe)
{
	struct member *member = member_find(session, sqe->member);
	struct region *send = region_find(session, sqe->send_region);
	struct region *recv = region_find(session, sqe->recv_region);
	struct gate gate = {0};
	uint64_t words[RX_COUNTS_WORDS_MAX];
	bool good = gate_find(session, sqe, &gate) == 0;

	session->n_in_flight++;
	if (!member) {
		gate_release(&gate);
		refuse(session, sqe);
		return;
	}
	good = good && check(member, sqe, &send, &recv, words);
	send = good ? send : NULL;
	recv = good ? recv : NULL;
	if (gate.bell)
		captured_post(member, sqe, send, recv, words, !good, &gate);
	else if (entry_is_p2p(sqe))
		p2p_post(member, sqe, send, recv, !good, &gate);
	else
		op_post(member, sqe, send, recv, words, !good, &gate);
}

/*
 * Operations on devices take as long as waking up does, and come one after the other: this thread
 * would wake up for the entry, and again for the end of the operation.
 */
void ringsrv_stay_awake(const struct session *session)
{
	struct daemon *daemon = session->daemon;
	uint64_t us = daemon->config.waiting.busy_poll_us;

	us = session->has_exported || session->gates ? rx_max_u64(us, DEVICES_POLL_US) : us;
	if (us == 0)
		return;
	if (daemon->busy_until_ns == 0)
		gpu_watch(daemon->gpu, true);
	daemon->busy_until_ns = rx_max_u64(daemon->busy_until_ns, rx_now_ns() + us * 1000);
	daemon->turn.data = daemon;
	(void)uv_idle_start(&daemon->turn, on_turn);
}

/* At most @budget entries; their number, or -EPROTO. */
static int take_some(struct session *session, uint32_t budget)
{
	uint32_t n_taken = 0;
	struct rx_sqe sqe;

	while (n_taken < budget && session->n_in_flight < most_in_flight(session) &&
		session->peer->state != PEER_CLOSING) {
		int r = rx_ring_take(&session->ring, &sqe);

		if (r < 0)
			return r;
		if (r == 0)
			break;
		serve(session, &sqe);
		n_taken++;
	}
	if (n_taken > 0) {
		rx_ring_publish_head(&session->ring);
		session->n_empty_bells = 0;
		ringsrv_stay_awake(session);
	}
	return (int)n_taken;
}

/* True when the session has more to take now. */
static bool serve_session(struct session *session, uint32_t *budget)
{
	uint32_t most = *budget < SESSION_ENTRIES ? *budget : SESSION_ENTRIES;
	int n_taken = take_some(session, most);

	if (n_taken < 0)
		peer_violation(session->peer, "impossible index in the submission ring");
	if (session->peer->state == PEER_CLOSING)
		return false;
	*budget -= (uint32_t)n_taken;
	if ((uint32_t)n_taken == most)
		return true;
	/* Full of ops in flight: completions bring it back, see ringsrv_resume(). */
	if (session->n_in_flight >= most_in_flight(session))
		return false;
	if (is_busy(session->daemon) || !rx_ring_prepare_sleep(&session->ring))
		return false;
	rx_ring_awake(&session->ring);
	return true;
}

bool ringsrv_turn(struct daemon *daemon)
{
	uint32_t budget = TURN_ENTRIES;

	while (budget > 0 && !rx_list_empty(&daemon->ready)) {
		struct session *session =
			rx_list_entry(daemon->ready.next, struct session, ready_link);

		rx_list_unlink(&session->ready_link);
		if (serve_session(session, &budget))
			rx_list_push(&daemon->ready, &session->ready_link);
	}
	return !rx_list_empty(&daemon->ready);
}
