/* SPDX-License-Identifier: MIT */
/* Handlers of the session itself. */
#include "dispatch.h"

#include "daemon.h"
#include "peer.h"
#include "reply.h"
#include "session.h"
#include "../shm/rx_cleanup.h"

#include <inttypes.h>

static bool hello_good(struct peer *peer, const struct rx_msg *msg, uint32_t sq_entries)
{
	const struct rx_msg_hello *hello = &msg->hello;
	const char *refusal = daemon_refuses(peer->daemon);

	if (refusal) {
		reply_error(peer, msg->serial, RX_ERR_DENIED, 0, "%s", refusal);
		return false;
	}
	if (hello->abi != RX_ABI_MAGIC) {
		reply_error(peer, msg->serial, RX_ERR_VERSION, 0,
			"client and daemon differ in byte order or word size");
		return false;
	}
	if (hello->version_min > RX_PROTO_VERSION_MAX ||
		hello->version_max < RX_PROTO_VERSION_MIN) {
		reply_error(peer, msg->serial, RX_ERR_VERSION, 0,
			"rcclxd " RX_DAEMON_VERSION
			" speaks protocol versions %u to %u, the client "
			"%u to %u",
			RX_PROTO_VERSION_MIN, RX_PROTO_VERSION_MAX, hello->version_min,
			hello->version_max);
		return false;
	}
	if (sq_entries < 2 || sq_entries > RX_RING_ENTRIES_MAX ||
		(sq_entries & (sq_entries - 1)) != 0) {
		reply_error(peer, msg->serial, RX_ERR_INVALID, 0,
			"sq_entries must be a power of two from 2 to %u, not %u",
			RX_RING_ENTRIES_MAX, sq_entries);
		return false;
	}
	return true;
}

/* An entry that is left in the ring keeps those behind it from being matched: so none is. */
static uint32_t fit_ring(uint32_t sq_entries, uint64_t ops_in_flight)
{
	while (sq_entries > 2 && 2ull * sq_entries > ops_in_flight)
		sq_entries /= 2;
	return sq_entries;
}

void h_hello(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct daemon *daemon = peer->daemon;
	uint32_t sq_entries =
		msg->hello.sq_entries > 0 ? msg->hello.sq_entries : daemon->config.ring_entries;
	struct session_fds session_fds = {-1, -1, -1};
	struct rx_msg answer = {.type = RX_MSG_HELLO_REPLY, .serial = msg->serial};
	int r = 0;

	(void)fds;
	if (!hello_good(peer, msg, sq_entries))
		return;
	sq_entries = fit_ring(sq_entries, daemon->config.limits.ops_in_flight_per_session);
	r = session_new(peer, msg->hello.program, sq_entries, &peer->session, &session_fds);
	if (r) {
		reply_failure(peer, msg->serial, r, "cannot make a session");
		return;
	}
	peer_set_state(peer, PEER_READY);
	answer.hello_reply = (struct rx_msg_hello_reply){
		.version = RX_PROTO_VERSION_MAX < msg->hello.version_max ? RX_PROTO_VERSION_MAX
									 : msg->hello.version_max,
		.features = msg->hello.features & RX_PROTO_FEATURES,
		.session_id = peer->session->id,
		.daemon_version = RX_DAEMON_VERSION,
		.sq_entries = sq_entries,
		.instance = {daemon->instance, sizeof(daemon->instance)},
		.max_alloc_bytes = daemon->config.limits.bytes_per_uid,
	};
	reply(peer, &answer, (const int[]){session_fds.s, session_fds.d, session_fds.doorbell}, 3);
	rx_closep(&session_fds.s);
	rx_closep(&session_fds.d);
	rx_debug("session=%" PRIu64 " pid=%u uid=%u program=\"%s\" begins", peer->session->id,
		(uint32_t)peer->pid, (uint32_t)peer->uid, peer->session->program);
	daemon_show_status(daemon);
}

void h_ping(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct rx_msg answer = {
		.type = RX_MSG_PONG,
		.serial = msg->serial,
		.pong = {.token = msg->ping.token},
	};

	(void)fds;
	reply(peer, &answer, NULL, 0);
}
