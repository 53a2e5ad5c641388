/* SPDX-License-Identifier: MIT */
/*
 * The control socket: requests and their replies, for any number of threads, without a thread of
 * its own. See conn.c.
 */
#ifndef CLIENT_CONN_H
#define CLIENT_CONN_H

#include "rcclx.h"
#include "../proto/rx_msg.h"
#include "../proto/rx_fdset.h"
#include "../shm/rx_list.h"

#include <pthread.h>
#include <stdatomic.h>

/* For requests that the daemon answers at once. */
#define CONN_TIMEOUT_NS (10ull * 1000000000ull)

struct conn_buffer;

struct conn {
	int fd;
	pthread_mutex_t lock;   /* all below but lost, which may be read without it */
	pthread_cond_t changed; /* a reply came, or nobody reads any more */
	struct rx_list calls;   /* of struct call: threads that wait for a reply */
	bool reading;           /* one of them reads the socket, and owns the buffer */
	struct conn_buffer *buffer;
	uint32_t last_serial;
	_Atomic bool lost;
	const char *lost_why; /* a static sentence, once lost */
	/* What the daemon said unasked, which it does before it hangs up. 0: nothing. */
	rcclx_result said_code;
	char said[256];
};

/* How long to wait for a reply. */
struct conn_wait {
	uint64_t deadline_ns;           /* CLOCK_MONOTONIC; RX_FOREVER: no limit */
	const _Atomic uint32_t *cancel; /* give up within 100 ms once it is not 0; NULL: never */
	bool patient; /* others may keep the answer back, but not the daemon: it is asked meanwhile
			 whether it lives, and has CONN_TIMEOUT_NS to say so */
};

/* The bytes of any reply: those of SlabReply are the most. */
#define CONN_REPLY_BYTES (RX_GPU_UUID_BYTES + RX_GPU_HANDLE_MAX + RX_SLAB_ROWS)

/* A reply. Pointers in msg lead into text and data. */
struct conn_reply {
	struct rx_msg msg;
	struct rx_fdset fds;
	char text[RX_ERROR_TEXT_MAX + 1];
	uint8_t data[CONN_REPLY_BYTES];
};

/** conn_open() - take over a connected socket, also on failure. Return: 0 or -errno. */
RX_WARN_UNUSED int conn_open(struct conn *conn, int fd);

/** conn_close() - close the socket; no thread may use it any more */
void conn_close(struct conn *conn);

/**
 * conn_call() - send a request and wait for its reply
 * @request: the serial is filled in here
 * @fd:      sent along; -1: none
 * @expect:  type of the reply; an Error becomes the result, with its text
 * @reply_p: on RCCLX_OK filled, to be ended with conn_reply_deinit()
 *
 * Return: RCCLX_OK; the daemon's error; RCCLX_ERR_TIMEOUT, RCCLX_ERR_ABORTED (cancelled),
 *         RCCLX_ERR_DAEMON_LOST: the reply may still come and is then undone (what it gives is
 *         given back);
 *         RCCLX_ERR_NO_MEMORY: it came without its descriptors, and is undone.
 */
rcclx_result conn_call(struct conn *conn, const struct rx_msg *request, int fd,
	enum rx_msg_type expect, const struct conn_wait *wait, struct conn_reply *reply_p);

/** conn_call_fds() - the same with @n_fds descriptors, which stay the caller's */
rcclx_result conn_call_fds(struct conn *conn, const struct rx_msg *request, const int *fds,
	uint32_t n_fds, enum rx_msg_type expect, const struct conn_wait *wait,
	struct conn_reply *reply_p);

/** conn_reply_deinit() - close the descriptors that were not taken */
void conn_reply_deinit(struct conn_reply *reply);

/**
 * conn_post() - send a message that the daemon does not answer (those that need no serial)
 * @room_ms: how long to wait for room in the socket; 0: not at all
 * Return: false when it was not sent.
 */
bool conn_post(struct conn *conn, const struct rx_msg *msg, uint32_t room_ms);

/** conn_forget_memory() - have the daemon free a region that this process cannot use */
void conn_forget_memory(struct conn *conn, uint32_t handle);

/** conn_forget_member() - leave a communicator that this process cannot use */
void conn_forget_member(struct conn *conn, uint32_t member);

/** conn_lost() - has the daemon hung up? One poll(2) at most */
bool conn_lost(struct conn *conn);

/** conn_lost_error() - RCCLX_ERR_DAEMON_LOST and why */
rcclx_result conn_lost_error(const struct conn *conn);

#endif
