/* SPDX-License-Identifier: MIT */
/*
 * What one client holds: its rings, its memory, its memberships. Made at Hello, ended once, in
 * session_free(). Loop thread only.
 */
#ifndef DAEMON_SESSION_H
#define DAEMON_SESSION_H

#include "account.h"
#include "../proto/rx_proto.h"
#include "../shm/rx_list.h"
#include "../shm/rx_map.h"
#include "../shm/rx_ring.h"

struct daemon;
struct loop_poll;
struct peer;

struct session {
	struct daemon *daemon;
	struct peer *peer; /* owns the session */
	uint64_t id;
	pid_t pid;
	uid_t uid;
	char program[RX_NAME_MAX + 1];
	struct rx_map s_map; /* read-only */
	struct rx_map d_map; /* read-write */
	struct rx_ring ring;
	int doorbell;
	struct loop_poll *bell;
	struct rx_list ready_link;    /* of daemon->ready */
	struct rx_list announce_link; /* of daemon->announce */
	struct rx_list members;
	struct rx_list regions;
	uint32_t n_members;
	uint32_t n_regions;
	uint64_t region_bytes;
	uint32_t n_in_flight; /* entries taken and not completed */
	uint64_t ops_done;
	struct region *gates;   /* a reference; NULL: it makes no calls in streams */
	uint32_t n_registering; /* device memory that is being imported */
	bool has_exported;      /* device memory, ever */
	struct rx_list slabs;   /* that it may have mapped; see slab.c */
	/* Doorbells in a row that came without an entry, since storm_start_ns. */
	uint32_t n_empty_bells;
	uint64_t storm_start_ns;
	struct charge session_charge;
	struct charge ring_charge;
	struct charge fd_charge;
};

/* Descriptors for the client; the caller closes them. */
struct session_fds {
	int s;
	int d;
	int doorbell; /* still the session's own */
};

/**
 * session_new() - make rings and doorbell for @peer
 * @fds_p: what HelloReply carries
 * Return: 0; ACCOUNT_E_*; -errno.
 */
RX_WARN_UNUSED int session_new(struct peer *peer, const char *program, uint32_t sq_entries,
	struct session **session_p, struct session_fds *fds_p);

/**
 * session_free() - the one teardown: members die, memory is given up, rings are closed
 *
 * Returns NULL; NULL is allowed.
 */
struct session *session_free(struct session *session);

/** session_complete() - one completion; published before the loop waits */
void session_complete(struct session *session, const struct rx_cqe *cqe);

/** session_announce() - publish what session_complete() gathered */
void session_announce(struct session *session);

#endif
