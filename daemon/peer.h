/* SPDX-License-Identifier: MIT */
/*
 * One connection: who it is, what waits to be sent to it, and when it ends. Loop thread only.
 *
 * The first of socket hang-up and death of the connecting process ends it.
 */
#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

#include "account.h"
#include "../proto/rx_msg.h"
#include "../shm/rx_list.h"

#include <sys/types.h>

struct daemon;
struct loop_poll;
struct loop_timer;
struct session;

enum peer_state {
	PEER_ACCEPTED, /* control socket: only Hello may come */
	PEER_READY,    /* has said Hello; admin socket: from the start */
	PEER_CLOSING,  /* marked by peer_end(); nothing is read or sent any more */
	_PEER_STATE_N
};

struct peer {
	struct daemon *daemon;
	struct rx_list link;        /* of daemon->peers */
	struct rx_list ending_link; /* of daemon->ending */
	enum peer_state state;
	bool admin;
	pid_t pid; /* 0: of a PID namespace that we do not see */
	uid_t uid;
	gid_t gid;
	uint64_t connected_ns;
	int fd;
	int pidfd; /* -1: the kernel gave none */
	struct loop_poll *poll;
	struct loop_poll *pid_poll;
	struct loop_timer *hello_timer;
	struct rx_list out; /* of struct out_frame */
	uint32_t n_out;
	uint64_t out_bytes;
	struct session *session; /* NULL before Hello, and on the admin socket */
	struct charge fd_charge;
};

/**
 * peer_new() - take over an accepted connection (@fd on success only)
 * Return: 0; ACCOUNT_E_*; -EPERM not one of those who may connect; -ESRCH gone already; -errno.
 */
RX_WARN_UNUSED int peer_new(struct daemon *daemon, int *fd, bool admin);

/** peer_free() - end it now; only daemon_settle() and the final clean-up may */
void peer_free(struct peer *peer);

/** peer_end() - mark it: nothing more is read, the teardown follows in this turn of the loop */
void peer_end(struct peer *peer);

/** peer_violation() - it broke the protocol: one line in the log, and peer_end() */
void peer_violation(struct peer *peer, const char *reason);

/** peer_set_state() - the transitions, in one place */
void peer_set_state(struct peer *peer, enum peer_state state);

/**
 * peer_send() - send @msg, or queue it
 * @fds: n_fds descriptors, which stay the caller's
 * Return: 0, also when the peer is ending; -errno when it cannot be packed or queued.
 */
int peer_send(struct peer *peer, const struct rx_msg *msg, const int *fds, uint32_t n_fds);

#endif
