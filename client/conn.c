/* SPDX-License-Identifier: MIT */
/*
 * Leader and followers. A thread that waits for a reply while nobody reads the socket becomes the
 * leader: it reads for all, hands each reply to the thread whose serial it has, and passes the
 * lead on when its own has come. The others sleep on the condition. Replies may come in any order;
 * that of CommJoin comes only when all ranks have joined.
 *
 * A reply to nobody, because its thread has given up, is undone: memory is freed, a communicator
 * left, descriptors closed. If no thread waits for anything, it lies in the socket until one does.
 *
 * Nothing here waits for longer than WAIT_NS without a look at the clock and the socket.
 */
#include "conn.h"

#include "err.h"
#include "../proto/rx_frame.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_NS       (100 * RX_NS_PER_MS)
#define REQUEST_BYTES 8192u /* the largest is GpuRegister */

/* While an answer takes long by right: how often to ask whether the daemon lives. */
#define PROBE_EVERY_NS (2 * RX_NS_PER_SEC)

/* One per connection: too large for stacks. */
struct conn_buffer {
	struct rx_frame frame;
	struct rx_arena arena;
};

struct call {
	struct rx_list link;
	uint32_t serial;
	bool done;
	bool no_fds; /* the reply came without its descriptors */
	struct conn_reply *reply;
};

static int init_sync(struct conn *conn)
{
	pthread_condattr_t attr;
	int r = pthread_condattr_init(&attr);

	if (r != 0)
		return -r;
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	r = pthread_cond_init(&conn->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	if (r != 0)
		return -r;
	r = pthread_mutex_init(&conn->lock, NULL);
	if (r != 0)
		(void)pthread_cond_destroy(&conn->changed);
	return -r;
}

int conn_open(struct conn *conn, int fd)
{
	RX_CLOSE int guard = fd;
	RX_FREE struct conn_buffer *buffer = malloc(sizeof(*buffer));
	int r = 0;

	if (!buffer)
		return -ENOMEM;
	*conn = (struct conn){.fd = -1};
	r = init_sync(conn);
	if (r < 0)
		return r;
	rx_list_init(&conn->calls);
	conn->fd = rx_steal_fd(&guard);
	conn->buffer = rx_steal(buffer);
	return 0;
}

void conn_close(struct conn *conn)
{
	(void)close(conn->fd);
	conn->fd = -1;
	free(conn->buffer);
	(void)pthread_mutex_destroy(&conn->lock);
	(void)pthread_cond_destroy(&conn->changed);
}

rcclx_result conn_lost_error(const struct conn *conn)
{
	const char *why = "it hung up";

	/* Nothing is read, so nothing changes, after that. */
	if (atomic_load_explicit(&conn->lost, memory_order_acquire))
		why = conn->said[0] ? conn->said : conn->lost_why;
	return err_set(RCCLX_ERR_DAEMON_LOST,
		"the daemon ended the session or died (%s); create a new connection and "
		"communicator",
		why);
}

/* Call with the lock held. */
static void set_lost(struct conn *conn, const char *why)
{
	if (atomic_load_explicit(&conn->lost, memory_order_relaxed))
		return;
	conn->lost_why = why;
	atomic_store_explicit(&conn->lost, true, memory_order_release);
}

bool conn_lost(struct conn *conn)
{
	struct pollfd p = {.fd = conn->fd};

	if (atomic_load_explicit(&conn->lost, memory_order_relaxed))
		return true;
	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

/* ---- sending ---- */

/* Longest of the waits in a row: until @deadline_ns, at most WAIT_NS; in ms, rounded up. */
static int slice_ms(uint64_t deadline_ns)
{
	uint64_t now = rx_now_ns();
	uint64_t ns = deadline_ns > now ? rx_min_u64(deadline_ns - now, WAIT_NS) : 0;

	return (int)((ns + RX_NS_PER_MS - 1) / RX_NS_PER_MS);
}

/* Return: RX_FRAME_OK; RX_FRAME_E_AGAIN no room until the deadline; RX_FRAME_E_CLOSED; -errno */
static int send_msg(struct conn *conn, const struct rx_msg *msg, uint32_t serial, const int *fds,
	uint32_t n_fds, uint64_t deadline_ns)
{
	uint8_t payload[REQUEST_BYTES];
	size_t bytes = 0;

	if (rx_msg_pack(msg, payload, sizeof(payload), &bytes) != 0)
		return -EMSGSIZE;
	for (;;) {
		struct pollfd p = {.fd = conn->fd, .events = POLLOUT};
		int r = rx_frame_send(conn->fd, msg->type, serial, payload, bytes, fds, n_fds);

		if (r != RX_FRAME_E_AGAIN || rx_now_ns() >= deadline_ns)
			return r;
		(void)poll(&p, 1, slice_ms(deadline_ns));
	}
}

/* Call with the lock held. 0 is not a serial. */
static uint32_t next_serial(struct conn *conn)
{
	conn->last_serial++;
	if (conn->last_serial == 0)
		conn->last_serial = 1;
	return conn->last_serial;
}

bool conn_post(struct conn *conn, const struct rx_msg *msg, uint32_t room_ms)
{
	return send_msg(conn, msg, 0, NULL, 0, rx_deadline_ns(room_ms * RX_NS_PER_MS)) ==
	       RX_FRAME_OK;
}

static struct rx_msg free_memory(uint32_t handle)
{
	return (struct rx_msg){.type = RX_MSG_MEM_FREE, .mem_free = {.handle = handle}};
}

static struct rx_msg leave(uint32_t member)
{
	return (struct rx_msg){.type = RX_MSG_COMM_LEAVE, .comm_leave = {.member = member}};
}

void conn_forget_memory(struct conn *conn, uint32_t handle)
{
	struct rx_msg msg = free_memory(handle);

	(void)conn_post(conn, &msg, 0);
}

void conn_forget_member(struct conn *conn, uint32_t member)
{
	struct rx_msg msg = leave(member);

	(void)conn_post(conn, &msg, 0);
}

/* ---- receiving ---- */

/* Behind what was kept before, cut where there is no more room. */
static void keep_bytes(struct conn_reply *reply, size_t *used, struct rx_bytes *bytes)
{
	size_t room = sizeof(reply->data) - *used;

	bytes->len = bytes->len < room ? bytes->len : room;
	if (bytes->len > 0)
		memcpy(reply->data + *used, bytes->data, bytes->len);
	bytes->data = reply->data + *used;
	*used += bytes->len;
}

static void keep_text(struct conn_reply *reply, const char **text)
{
	(void)snprintf(reply->text, sizeof(reply->text), "%s", *text);
	*text = reply->text;
}

/* Move @msg out of the reader's buffer. */
static void keep(struct conn_reply *reply, const struct rx_msg *msg)
{
	size_t used = 0;

	reply->msg = *msg;
	switch (msg->type) {
	case RX_MSG_ERROR:
		keep_text(reply, &reply->msg.error.text);
		break;
	case RX_MSG_HELLO_REPLY:
		keep_text(reply, &reply->msg.hello_reply.daemon_version);
		keep_bytes(reply, &used, &reply->msg.hello_reply.instance);
		break;
	case RX_MSG_UNIQUE_ID_REPLY:
		keep_bytes(reply, &used, &reply->msg.unique_id_reply.id);
		break;
	case RX_MSG_SLAB_REPLY:
		keep_bytes(reply, &used, &reply->msg.slab_reply.uuid);
		keep_bytes(reply, &used, &reply->msg.slab_reply.handle);
		keep_bytes(reply, &used, &reply->msg.slab_reply.rows);
		break;
	default:
		break;
	}
}

static struct call *find_call(struct conn *conn, uint32_t serial)
{
	rx_list_for_each (link, &conn->calls) {
		struct call *call = rx_list_entry(link, struct call, link);

		if (call->serial == serial && !call->done)
			return call;
	}
	return NULL;
}

/* Nobody wants @msg (any more): give back what it gives. */
static void undo(struct conn *conn, const struct rx_msg *msg)
{
	struct rx_msg answer = {.type = RX_MSG_NONE};

	if (msg->type == RX_MSG_COMM_READY)
		answer = leave(msg->comm_ready.member);
	else if (msg->type == RX_MSG_MEM_REPLY)
		answer = free_memory(msg->mem_reply.handle);
	else if (msg->type == RX_MSG_GPU_REPLY && msg->gpu_reply.handle != 0)
		answer = free_memory(msg->gpu_reply.handle);
	else
		return;
	/* With no room in the socket the daemon keeps it until the session ends. */
	(void)send_msg(conn, &answer, 0, NULL, 0, 0);
}

/* Call with the lock held. An error that answers nothing: why the daemon will hang up. */
static void remember(struct conn *conn, const struct rx_msg_error *error)
{
	conn->said_code = error->code > RCCLX_OK && error->code < RCCLX_ERR_N
				  ? error->code
				  : RCCLX_ERR_DAEMON_LOST;
	(void)snprintf(conn->said, sizeof(conn->said), "%s", error->text);
}

/* Call with the lock held. NULL in @fds: they are lost. */
static void dispatch(struct conn *conn, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct call *call = find_call(conn, msg->serial);

	if (!call) {
		if (msg->serial == 0 && msg->type == RX_MSG_ERROR)
			remember(conn, &msg->error);
		undo(conn, msg);
		if (fds)
			rx_fdset_close(fds);
		return;
	}
	keep(call->reply, msg);
	call->no_fds = !fds;
	if (fds) {
		call->reply->fds = *fds;
		*fds = RX_FDSET_INIT;
	}
	call->done = true;
	(void)pthread_cond_broadcast(&conn->changed);
}

/* Decode what is in the buffer. NULL, or why the daemon cannot be understood. */
static const char *decode(struct conn_buffer *buffer, struct rx_msg *msg_p)
{
	const struct rx_frame_header *header = &buffer->frame.header;
	const struct rx_msg_info *info = rx_msg_info(header->type);
	const char *why = NULL;

	if (!info || !(info->from & RX_FROM_DAEMON))
		return "it sent a message that only clients send";
	if (rx_msg_unpack(header->type, header->serial, buffer->frame.payload, header->bytes,
		    &buffer->arena, msg_p, &why) != 0)
		return why ? why : "it sent a message that cannot be decoded";
	return NULL;
}

/* The leader's turn, without the lock: at most one message, at most WAIT_NS. */
static void read_one(struct conn *conn, uint64_t deadline_ns)
{
	struct pollfd p = {.fd = conn->fd, .events = POLLIN};
	struct rx_msg msg = {.type = RX_MSG_NONE};
	const char *why = NULL;
	int r = RX_FRAME_OK;

	if (poll(&p, 1, slice_ms(deadline_ns)) <= 0)
		return;
	r = rx_frame_recv(conn->fd, &conn->buffer->frame, &why);
	if (r == RX_FRAME_E_AGAIN)
		return;
	if (r == RX_FRAME_OK || r == RX_FRAME_E_NO_FDS) {
		why = decode(conn->buffer, &msg);
		if (why)
			rx_fdset_close(&conn->buffer->frame.fds);
	} else if (r == RX_FRAME_E_CLOSED) {
		why = "it hung up";
	} else if (!why) {
		why = "its socket cannot be read";
	}
	(void)pthread_mutex_lock(&conn->lock);
	if (why)
		set_lost(conn, why);
	else
		dispatch(conn, &msg, r == RX_FRAME_OK ? &conn->buffer->frame.fds : NULL);
	(void)pthread_mutex_unlock(&conn->lock);
}

/* ---- waiting ---- */

static void follow(struct conn *conn, uint64_t deadline_ns)
{
	uint64_t now = rx_now_ns();
	uint64_t until = rx_min_u64(deadline_ns, now + WAIT_NS);
	struct timespec ts = {
		.tv_sec = (time_t)(until / RX_NS_PER_SEC),
		.tv_nsec = (long)(until % RX_NS_PER_SEC),
	};

	(void)pthread_cond_timedwait(&conn->changed, &conn->lock, &ts);
}

static rcclx_result no_answer(const struct rx_msg *request)
{
	const struct rx_msg_info *info = rx_msg_info(request->type);

	return err_set(RCCLX_ERR_TIMEOUT,
		"the daemon has not answered in time (to %s); is it stopped or overloaded?",
		info ? info->name : "a request");
}

/* A question on the side, see conn_wait.patient. */
struct probe {
	struct call call;
	struct conn_reply reply;
	bool asked;        /* and not answered */
	uint64_t since_ns; /* when it was to be asked, or the last answer came */
};

/* Call with the lock held. */
static void probe_end(struct probe *probe)
{
	if (probe->asked)
		rx_list_unlink(&probe->call.link);
	probe->asked = false;
}

/* Call with the lock held. False: the daemon has not answered for too long. */
static bool probe_daemon(struct conn *conn, struct probe *probe)
{
	const struct rx_msg ping = {.type = RX_MSG_PING};
	uint64_t now = rx_now_ns();

	if (probe->asked && probe->call.done) {
		probe_end(probe);
		probe->since_ns = now;
	}
	if (!probe->asked && now - probe->since_ns >= PROBE_EVERY_NS) {
		probe->call = (struct call){.serial = next_serial(conn), .reply = &probe->reply};
		probe->asked = send_msg(conn, &ping, probe->call.serial, NULL, 0, 0) == RX_FRAME_OK;
		if (probe->asked)
			rx_list_push(&conn->calls, &probe->call.link);
	}
	return now - probe->since_ns < PROBE_EVERY_NS + CONN_TIMEOUT_NS;
}

static bool cancelled(const struct conn_wait *wait)
{
	return wait->cancel && atomic_load_explicit(wait->cancel, memory_order_acquire) != 0;
}

/* Call with the lock held; it is held again at the end. */
static rcclx_result wait_done(struct conn *conn, const struct call *call,
	const struct rx_msg *request, const struct conn_wait *wait)
{
	struct probe probe = {.asked = false, .since_ns = rx_now_ns()};
	bool leader = false;
	rcclx_result r = RCCLX_OK;

	while (!call->done) {
		if (atomic_load_explicit(&conn->lost, memory_order_relaxed))
			r = conn_lost_error(conn);
		else if (cancelled(wait))
			r = err_set(RCCLX_ERR_ABORTED, "aborted by this process");
		else if (rx_now_ns() >= wait->deadline_ns ||
			 (wait->patient && !probe_daemon(conn, &probe)))
			r = no_answer(request);
		if (r != RCCLX_OK)
			break;
		if (!leader && conn->reading) {
			follow(conn, wait->deadline_ns);
			continue;
		}
		leader = true;
		conn->reading = true;
		(void)pthread_mutex_unlock(&conn->lock);
		read_one(conn, wait->deadline_ns);
		(void)pthread_mutex_lock(&conn->lock);
	}
	probe_end(&probe);
	if (leader) {
		conn->reading = false;
		(void)pthread_cond_broadcast(&conn->changed);
	}
	return r;
}

/* The reply is of no use: give back what it gives. */
static rcclx_result no_descriptors(
	struct conn *conn, const struct rx_msg *request, const struct rx_msg *answer)
{
	undo(conn, answer);
	return err_set(RCCLX_ERR_NO_MEMORY,
		"this process had no file descriptors free for the daemon's answer (to %s): close "
		"some, or raise the limit of open files (ulimit -n)",
		rx_msg_info(request->type)->name);
}

/* A reply came: is it the one that was meant? */
static rcclx_result check_reply(struct conn *conn, const struct rx_msg *request,
	enum rx_msg_type expect, struct conn_reply *reply)
{
	const struct rx_msg *msg = &reply->msg;
	rcclx_result r = RCCLX_OK;

	if (msg->type == expect)
		return RCCLX_OK;
	if (msg->type == RX_MSG_ERROR && msg->error.code > RCCLX_OK &&
		msg->error.code < RCCLX_ERR_N) {
		r = err_set(msg->error.code, "%s",
			msg->error.text[0] ? msg->error.text : rcclx_strerror(msg->error.code));
	} else {
		r = err_set(RCCLX_ERR_INTERNAL,
			"the daemon answered %s with %s, which is no answer to it",
			rx_msg_info(request->type)->name, rx_msg_info(msg->type)->name);
		undo(conn, msg);
	}
	rx_fdset_close(&reply->fds);
	return r;
}

/* Sent, or closed: what the daemon said before it hung up may still be there to read. */
static rcclx_result send_request(struct conn *conn, const struct rx_msg *request, uint32_t serial,
	const int *fds, uint32_t n_fds, uint64_t deadline_ns)
{
	int r = send_msg(conn, request, serial, fds, n_fds, deadline_ns);

	if (r == RX_FRAME_OK || r == RX_FRAME_E_CLOSED)
		return RCCLX_OK;
	if (r == RX_FRAME_E_AGAIN)
		return no_answer(request);
	return err_errno(r, "sending a request to the daemon");
}

rcclx_result conn_call(struct conn *conn, const struct rx_msg *request, int fd,
	enum rx_msg_type expect, const struct conn_wait *wait, struct conn_reply *reply_p)
{
	return conn_call_fds(conn, request, &fd, fd < 0 ? 0 : 1, expect, wait, reply_p);
}

rcclx_result conn_call_fds(struct conn *conn, const struct rx_msg *request, const int *fds,
	uint32_t n_fds, enum rx_msg_type expect, const struct conn_wait *wait,
	struct conn_reply *reply_p)
{
	struct call call = {.reply = reply_p};
	rcclx_result r = RCCLX_OK;

	reply_p->fds = RX_FDSET_INIT;
	/* Waits for the reply before it asks, so that the reply finds it. */
	(void)pthread_mutex_lock(&conn->lock);
	call.serial = next_serial(conn);
	rx_list_push(&conn->calls, &call.link);
	(void)pthread_mutex_unlock(&conn->lock);
	r = send_request(conn, request, call.serial, fds, n_fds, wait->deadline_ns);
	(void)pthread_mutex_lock(&conn->lock);
	if (r == RCCLX_OK)
		r = wait_done(conn, &call, request, wait);
	rx_list_unlink(&call.link);
	(void)pthread_mutex_unlock(&conn->lock);
	if (r == RCCLX_OK && call.no_fds)
		return no_descriptors(conn, request, &reply_p->msg);
	if (r == RCCLX_OK)
		return check_reply(conn, request, expect, reply_p);
	rx_fdset_close(&reply_p->fds);
	return r;
}

void conn_reply_deinit(struct conn_reply *reply)
{
	rx_fdset_close(&reply->fds);
}
