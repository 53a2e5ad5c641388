/* SPDX-License-Identifier: MIT */
/*
 * Input. Messages are read and served one at a time, a bounded number per turn of the loop; what
 * is left keeps the socket readable. Data that came before a hang-up is served first, unless the
 * process is dead: then nobody wants the answers.
 *
 * Output. A message is sent at once, or queued with duplicates of its descriptors when the socket
 * is full. The queue is bounded: a peer that does not read its answers ends.
 */
#include "peer.h"

#include "daemon.h"
#include "dispatch.h"
#include "loop.h"
#include "session.h"
#include "../proto/rx_fdset.h"
#include "../proto/rx_frame.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 6.5; the headers of older systems do not know it. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define MESSAGES_PER_TURN 32u
#define OUT_FRAMES_MAX    256u
#define OUT_BYTES_MAX     (1u << 20)
#define HELLO_TIMEOUT_NS  (10 * RX_NS_PER_SEC)
#define PEER_FDS          2u /* socket and pidfd */

struct out_frame {
	struct rx_list link;
	enum rx_msg_type type;
	uint32_t serial;
	size_t bytes;
	uint32_t n_fds;
	int fds[RX_FRAME_FDS_MAX];
	uint8_t data[];
};

void peer_set_state(struct peer *peer, enum peer_state state)
{
	assert(state > peer->state);
	peer->state = state;
	if (state == PEER_READY)
		peer->hello_timer = loop_timer_free(peer->hello_timer);
}

/* ---- end ---- */

void peer_end(struct peer *peer)
{
	if (peer->state == PEER_CLOSING)
		return;
	peer_set_state(peer, PEER_CLOSING);
	peer->poll = loop_poll_free(peer->poll);
	peer->pid_poll = loop_poll_free(peer->pid_poll);
	peer->hello_timer = loop_timer_free(peer->hello_timer);
	rx_list_push(&peer->daemon->ending, &peer->ending_link);
}

void peer_violation(struct peer *peer, const char *reason)
{
	if (peer->state == PEER_CLOSING)
		return;
	peer->daemon->stats.violations++;
	rx_log_limited(daemon_log_limit(peer->daemon, peer->uid, reason), RX_LOG_WARN,
		"pid=%u uid=%u session=%" PRIu64 " ended for breaking the protocol: %s",
		(uint32_t)peer->pid, (uint32_t)peer->uid, peer->session ? peer->session->id : 0,
		reason);
	peer_end(peer);
}

static void out_frame_free(struct peer *peer, struct out_frame *frame)
{
	for (uint32_t i = 0; i < frame->n_fds; i++)
		rx_closep(&frame->fds[i]);
	peer->n_out--;
	peer->out_bytes -= frame->bytes;
	rx_list_unlink(&frame->link);
	free(frame);
}

static void log_end(const struct peer *peer)
{
	const struct session *session = peer->session;

	if (session)
		rx_log_limited(daemon_log_limit(peer->daemon, peer->uid, "session end"),
			RX_LOG_INFO,
			"session=%" PRIu64 " pid=%u uid=%u program=\"%s\" ops=%" PRIu64 " ended",
			session->id, (uint32_t)session->pid, (uint32_t)session->uid,
			session->program, session->ops_done);
}

void peer_free(struct peer *peer)
{
	struct daemon *daemon = peer->daemon;

	assert(peer->state == PEER_CLOSING);
	log_end(peer);
	peer->session = session_free(peer->session);
	while (!rx_list_empty(&peer->out))
		out_frame_free(peer, rx_list_entry(peer->out.next, struct out_frame, link));
	rx_list_unlink(&peer->ending_link);
	rx_list_unlink(&peer->link);
	rx_closep(&peer->fd);
	rx_closep(&peer->pidfd);
	charge_release(&peer->fd_charge);
	free(peer);
	daemon_show_status(daemon);
}

/* ---- output ---- */

static void watch(struct peer *peer)
{
	loop_poll_set(peer->poll,
		UV_READABLE | UV_DISCONNECT | (rx_list_empty(&peer->out) ? 0 : UV_WRITABLE));
}

static void send_queued(struct peer *peer)
{
	while (!rx_list_empty(&peer->out)) {
		struct out_frame *frame = rx_list_entry(peer->out.next, struct out_frame, link);
		int r = rx_frame_send(peer->fd, frame->type, frame->serial, frame->data,
			frame->bytes, frame->fds, frame->n_fds);

		if (r == RX_FRAME_E_AGAIN)
			break;
		if (r) {
			peer_end(peer);
			return;
		}
		out_frame_free(peer, frame);
	}
	watch(peer);
}

/* The packed message is in daemon->payload. */
static int queue(
	struct peer *peer, const struct rx_msg *msg, size_t bytes, const int *fds, uint32_t n_fds)
{
	struct out_frame *frame = NULL;

	if (peer->n_out >= OUT_FRAMES_MAX || peer->out_bytes + bytes > OUT_BYTES_MAX) {
		peer_violation(peer, "does not read what it is sent");
		return 0;
	}
	frame = malloc(sizeof(*frame) + bytes);
	if (!frame)
		return -ENOMEM;
	memcpy(frame->data, peer->daemon->payload, bytes);
	frame->type = msg->type;
	frame->serial = msg->serial;
	frame->bytes = bytes;
	frame->n_fds = 0;
	rx_list_push(&peer->out, &frame->link);
	peer->n_out++;
	peer->out_bytes += bytes;
	for (uint32_t i = 0; i < n_fds; i++) {
		int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);

		if (fd < 0) {
			int r = -errno;

			out_frame_free(peer, frame);
			return r;
		}
		frame->fds[frame->n_fds++] = fd;
	}
	watch(peer);
	return 0;
}

int peer_send(struct peer *peer, const struct rx_msg *msg, const int *fds, uint32_t n_fds)
{
	struct daemon *daemon = peer->daemon;
	size_t bytes = 0;
	int r = 0;

	if (peer->state == PEER_CLOSING)
		return 0;
	if (rx_msg_pack(msg, daemon->payload, sizeof(daemon->payload), &bytes) != 0)
		return -EMSGSIZE;
	if (rx_list_empty(&peer->out)) {
		r = rx_frame_send(
			peer->fd, msg->type, msg->serial, daemon->payload, bytes, fds, n_fds);
		if (r == RX_FRAME_E_CLOSED)
			peer_end(peer);
		if (r != RX_FRAME_E_AGAIN)
			return r < 0 ? r : 0;
	}
	return queue(peer, msg, bytes, fds, n_fds);
}

/* ---- input ---- */

static bool is_dead(const struct peer *peer)
{
	struct pollfd pfd = {.fd = peer->pidfd, .events = POLLIN};

	return peer->pidfd >= 0 && poll(&pfd, 1, 0) == 1;
}

static void read_messages(struct peer *peer)
{
	for (uint32_t i = 0; i < MESSAGES_PER_TURN && peer->state != PEER_CLOSING; i++)
		if (!dispatch_one(peer))
			return;
}

static void on_socket(void *owner, int events)
{
	struct peer *peer = owner;

	if ((events & UV_DISCONNECT) && is_dead(peer)) {
		peer_end(peer);
		return;
	}
	if (events & UV_WRITABLE)
		send_queued(peer);
	if (peer->state != PEER_CLOSING && (events & (UV_READABLE | UV_DISCONNECT)))
		read_messages(peer);
	/* libuv has stopped watching if there was an error condition: messages may be left. */
	if (peer->state != PEER_CLOSING)
		watch(peer);
}

static void on_pid(void *owner, int events)
{
	(void)events;
	peer_end(owner);
}

static void on_hello_timer(void *owner)
{
	struct peer *peer = owner;

	rx_log_limited(daemon_log_limit(peer->daemon, peer->uid, "hello"), RX_LOG_INFO,
		"pid=%u uid=%u closed: it sent no Hello", (uint32_t)peer->pid, (uint32_t)peer->uid);
	peer_end(peer);
}

/* ---- begin ---- */

static int open_pidfd(struct peer *peer)
{
	socklen_t bytes = sizeof(peer->pidfd);

	if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERPIDFD, &peer->pidfd, &bytes) == 0)
		return 0;
	peer->pidfd = -1;
	if (errno != ENOPROTOOPT)
		return -errno;
	/* An older kernel. The pid may be another process by now: then its end ends this peer. */
	if (peer->pid <= 0)
		return 0;
	peer->pidfd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
	return peer->pidfd < 0 ? -errno : 0;
}

static int identify(struct peer *peer)
{
	struct ucred cred = {0};
	socklen_t bytes = sizeof(cred);

	if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0)
		return -errno;
	peer->pid = cred.pid;
	peer->uid = cred.uid;
	peer->gid = cred.gid;
	if (!policy_may_connect(&peer->daemon->policy, peer->admin, peer->uid)) {
		rx_log_limited(daemon_log_limit(peer->daemon, peer->uid, "policy"), RX_LOG_WARN,
			"pid=%u uid=%u may not connect", (uint32_t)peer->pid, (uint32_t)peer->uid);
		return -EPERM;
	}
	return open_pidfd(peer);
}

static int start(struct peer *peer)
{
	uv_loop_t *loop = peer->daemon->loop;
	int r = loop_poll_new(
		loop, peer->fd, UV_READABLE | UV_DISCONNECT, on_socket, peer, &peer->poll);

	if (!r && peer->pidfd >= 0)
		r = loop_poll_new(loop, peer->pidfd, UV_READABLE, on_pid, peer, &peer->pid_poll);
	if (!r && !peer->admin)
		r = loop_timer_new(loop, on_hello_timer, peer, &peer->hello_timer);
	return r;
}

int peer_new(struct daemon *daemon, int *fd, bool admin)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	int r = 0;

	if (!peer)
		return -ENOMEM;
	peer->daemon = daemon;
	peer->admin = admin;
	peer->state = admin ? PEER_READY : PEER_ACCEPTED;
	peer->connected_ns = rx_now_ns();
	peer->fd = *fd;
	peer->pidfd = -1;
	rx_list_init(&peer->link);
	rx_list_init(&peer->ending_link);
	rx_list_init(&peer->out);
	r = identify(peer);
	if (!r)
		r = account_charge(
			&daemon->accounts, peer->uid, ACCOUNT_FDS, PEER_FDS, &peer->fd_charge);
	if (!r)
		r = start(peer);
	if (r) {
		peer->poll = loop_poll_free(peer->poll);
		peer->pid_poll = loop_poll_free(peer->pid_poll);
		rx_closep(&peer->pidfd);
		charge_release(&peer->fd_charge);
		free(peer);
		return r;
	}
	(void)rx_steal_fd(fd);
	rx_list_push(&daemon->peers, &peer->link);
	if (peer->hello_timer)
		loop_timer_set(peer->hello_timer, HELLO_TIMEOUT_NS);
	return 0;
}
