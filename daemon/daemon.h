/* SPDX-License-Identifier: MIT */
/*
 * The daemon's state, all of it owned by the loop thread.
 *
 * Ends are deferred: whoever finds that a peer must go calls peer_end(), which only marks it; the
 * teardown runs at the end of the loop's turn (daemon_settle()), when no handler is half way
 * through a list that the teardown changes.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "account.h"
#include "config.h"
#include "latency.h"
#include "policy.h"
#include "stats.h"
#include "uniqueid.h"
#include "../proto/rx_arena.h"
#include "../proto/rx_frame.h"
#include "../shm/rx_idmap.h"
#include "../shm/rx_list.h"

#include <uv.h>

struct exec;
struct gpu;
struct listener;
struct loop_timer;
struct scratch;
struct sd;
struct slabs;
struct topology;
struct tuning;

enum daemon_state {
	DAEMON_SERVING,
	DAEMON_DRAINING, /* no new sessions and communicators; ends with the last session */
	DAEMON_STOPPING, /* the same, and ends with the ops in flight or after a few seconds */
	DAEMON_STOPPED,  /* everything is being freed */
	_DAEMON_STATE_N
};

#define COMM_BUCKETS    256u
#define LOG_LIMIT_SLOTS 64u

struct daemon {
	uv_loop_t *loop;
	enum daemon_state state;
	struct config config;
	struct policy policy;
	struct topology *topology;
	struct tuning *tuning; /* of communicators that are formed from now on */
	uint64_t start_ns;
	uint8_t instance[RX_INSTANCE_BYTES];
	struct accounts accounts;
	struct stats stats;
	struct latency latency;
	struct exec *exec;       /* collectives */
	struct scratch *scratch; /* of its jobs in low precision */
	struct exec *chores;     /* what takes the kernel long: making and freeing large memory */
	struct gpu *gpu;         /* devices, and what is done on them */
	struct slabs *slabs;     /* device memory that clients map */
	struct rx_list kernels_left; /* of communicators that are gone; see inline_kernels.c */
	struct sd *sd;               /* NULL when not started by systemd */
	char *socket_path;
	void (*stopped)(void *owner); /* everything of ours is closing: close the rest */
	void *owner;

	struct listener *control;
	struct listener *admin;

	struct rx_list peers;    /* all connections */
	struct rx_list ending;   /* peers that peer_end() marked */
	struct rx_list ready;    /* sessions with entries to take */
	struct rx_list announce; /* sessions with completions to publish */
	uv_idle_t turn;          /* active while @ready is not empty, and while polling busily */
	uint64_t busy_until_ns;  /* rings are polled until then */
	uv_prepare_t settle;

	struct rx_idmap sessions;
	struct rx_idmap regions;
	struct rx_idmap members;
	struct rx_idmap comms;
	struct rx_list comm_buckets[COMM_BUCKETS]; /* by unique id */
	struct uniqueid_log retired;               /* ids that were formed once */
	uint32_t n_ops;                            /* collectives and transfers queued or running */

	struct loop_timer *stop_timer; /* bounds DAEMON_STOPPING */
	struct loop_timer *once_timer; /* stop when unused for that long; NULL: serve for ever */
	bool was_used;                 /* there were sessions when it was last looked at */
	struct rx_log_limit log_limits[LOG_LIMIT_SLOTS];

	/* One at a time, inside one call. */
	uint8_t payload[RX_FRAME_MAX]; /* of the message being sent */
	struct rx_frame frame;         /* that is being served */
	struct rx_arena arena;         /* of its decoded form */
};

/**
 * daemon_init() - empty state on @loop, and its workers
 * @config:   moved in on success
 * @n_fds:    most descriptors that peers, sessions and memory may take
 */
RX_WARN_UNUSED int daemon_init(struct daemon *daemon, uv_loop_t *loop, struct config *config,
	const struct policy *policy, uint64_t n_fds);

/** daemon_deinit() - after the loop has run dry; asserts that nothing is left */
void daemon_deinit(struct daemon *daemon);

/** daemon_reconfigure() - @config replaces what was; moved in. Some keys wait for a restart. */
void daemon_reconfigure(struct daemon *daemon, struct config *config);

/** daemon_set_tuning() - another table; moved in. The epoch grows if a threshold differs. */
void daemon_set_tuning(struct daemon *daemon, struct tuning *tuning);

/** daemon_set_state() - the transitions, in one place */
void daemon_set_state(struct daemon *daemon, enum daemon_state state);

/** daemon_drain() - no new sessions; stop when the last one has gone */
void daemon_drain(struct daemon *daemon);

/** daemon_stop() - as for SIGTERM; a second call does not wait for ops in flight */
void daemon_stop(struct daemon *daemon);

/**
 * daemon_serve_once() - stop a second after the last session has gone, or when none comes
 *
 * Return: 0 or -errno.
 */
RX_WARN_UNUSED int daemon_serve_once(struct daemon *daemon);

/** daemon_show_status() - tell systemd how many clients there are */
void daemon_show_status(struct daemon *daemon);

/** daemon_refuses() - text why nothing new is taken, NULL: it is */
const char *daemon_refuses(const struct daemon *daemon);

/** daemon_settle() - end peers that were marked, publish completions; before the loop waits */
void daemon_settle(struct daemon *daemon);

/**
 * daemon_log_limit() - rate limit of a message (@site, any constant) of a user
 *
 * Hashed into a fixed table: an unlucky pair of messages shares a limit.
 */
struct rx_log_limit *daemon_log_limit(struct daemon *daemon, uid_t uid, const char *site);

#endif
