/* SPDX-License-Identifier: MIT */
/*
 * Communicators and memberships. FORMING until every rank has joined, then READY, then perhaps
 * ABORTED; freed when the last member has gone and no worker runs for it. Loop thread only.
 */
#ifndef DAEMON_COMM_H
#define DAEMON_COMM_H

#include "account.h"
#include "topology.h"
#include "../proto/rx_proto.h"
#include "../shm/rx_fabric.h"
#include "../shm/rx_list.h"

struct daemon;
struct gpu_streams;
struct inline_kernels;
struct loop_timer;
struct op;
struct p2p;
struct session;

enum comm_state { COMM_FORMING, COMM_READY, COMM_ABORTED, _COMM_STATE_N };

struct member {
	struct comm *comm;
	struct session *session; /* NULL once it has left or died */
	struct rx_list session_link;
	uint64_t id; /* in daemon->members while it has a session; short form is its handle */
	uint32_t rank;
	uint32_t serial; /* of its CommJoin, answered when all ranks have come */
	enum rx_member_status status;
	/* Kept for reports when the session has gone. */
	uint64_t session_id;
	pid_t pid;
	uid_t uid;
	uint64_t op_timeout_ns;
	struct cpu_mask cpus;
	struct rx_precision precision;
	bool gpu;        /* its process has a GPU runtime */
	bool has_device; /* and a device, of this number: */
	uint8_t device[RX_GPU_UUID_BYTES];
	bool concurrent;    /* on which kernels of several processes run at the same time */
	uint64_t n_posted;  /* daemon ops */
	struct op *next_op; /* of the op it posts next, if another rank has posted that */
	uint32_t n_bad;     /* its refused entries in ops and transfers that are not complete */
	struct charge comm_charge;
	struct charge bytes_charge; /* its share of the arena, for as long as the arena exists */
};

/* A wait that somebody told us of; see stall.c. */
struct stall {
	struct loop_timer *timer; /* set while a stall is watched */
	uint32_t hinter;          /* rank that waits */
	uint64_t since_ns;
	uint64_t late; /* bitmap of ranks; 0: no stall */
	uint32_t seq;  /* of the hinter */
	uint32_t step;
	struct rx_op_sig sig; /* of the op in question */
	bool reported;
};

struct comm {
	struct daemon *daemon;
	struct rx_list bucket_link; /* of daemon->comm_buckets */
	uint64_t id;
	uint8_t key[RX_UNIQUE_ID_BYTES];
	char name[RX_NAME_MAX + 1];
	enum comm_state state;
	uint32_t n_ranks;
	uint32_t n_joined;
	uint32_t n_present; /* members with a session */
	struct member *members[RX_MAX_RANKS];
	uint64_t created_ns;
	uint64_t form_deadline_ns; /* the first of the joiners' */
	uint64_t form_timeout_ns;  /* that joiner's, for the text */
	struct loop_timer *timer;  /* FORMING: the deadline; READY: grace after a death */
	uint32_t dead_rank;        /* READY, timer set: who died first */

	struct rx_map ctl_map;   /* read-write */
	struct rx_map lines_map; /* read-only, without the staging */
	struct rx_fabric fabric;
	struct topology_place place; /* of its ranks, once it is formed */

	/* Why it is ABORTED. */
	enum rx_abort_reason reason;
	uint32_t abort_rank;
	uint32_t abort_other;

	/* Collectives for the daemon, in the order in which they were posted; see op.c. */
	struct rx_list ops;
	uint32_t n_ops; /* with the transfers of p2p */
	struct op *running;
	struct loop_timer *op_timer;
	uint64_t op_look_ns; /* when op_timer fires, if it is set */
	uint64_t fail_from;  /* ops from this number on miss a rank that has gone: */
	uint32_t fail_rank;  /* this one */
	uint64_t ops_done;

	struct rx_precision_counts precision; /* of its ops that the daemon has executed */
	bool over_budget;                     /* of errors: nothing in low precision any more */

	struct p2p *p2p; /* sends and receives; NULL before the first */

	struct gpu_streams *streams; /* on devices; NULL before the first op there */

	struct inline_kernels *kernels; /* that its ranks may run; NULL: they may not */
	char kernels_why[RX_DEVICE_TEXT_MAX + 48];

	struct rx_list captured; /* recorded in graphs; see captured.c */
	uint32_t n_captured;

	struct stall stall;
};

struct comm_join {
	uint32_t serial;
	const uint8_t *key; /* RX_UNIQUE_ID_BYTES */
	uint32_t n_ranks;
	uint32_t rank;
	uint64_t form_timeout_ns; /* 0: the daemon's default */
	uint64_t op_timeout_ns;   /* 0: none */
	const char *name;
	struct cpu_mask cpus;
	struct rx_precision precision;
	bool gpu;
	const uint8_t *device; /* RX_GPU_UUID_BYTES; NULL: unknown */
	bool concurrent;
};

/** comm_join() - a rank asks to join; it is answered here or when the communicator is formed */
void comm_join(struct session *session, const struct comm_join *join);

/** member_find() - the session's own membership by its handle, or NULL */
struct member *member_find(struct session *session, uint32_t handle);

/** member_handle() - the session-local handle */
uint32_t member_handle(const struct member *member);

/**
 * member_gone() - the rank has left (RX_MEMBER_LEFT) or its session ends (RX_MEMBER_DEAD)
 *
 * May free the communicator and with it @member.
 */
void member_gone(struct member *member, enum rx_member_status status);

/**
 * comm_bury() - abort it if a rank has died, instead of leaving the others a while to finish
 *
 * Return: true when it is aborted, for whatever reason.
 */
bool comm_bury(struct comm *comm);

/** comm_abort() - READY to ABORTED: tell the members, fail what is queued; later calls do nothing
 * @sig: both sides of RX_ABORT_MISMATCH, else NULL
 */
void comm_abort(struct comm *comm, enum rx_abort_reason reason, uint32_t rank, uint32_t other,
	const struct rx_op_sig *sig);

/** comm_over_budget() - @rank has found errors above the budget (UINT32_MAX: the daemon has) */
void comm_over_budget(struct comm *comm, uint32_t rank, uint64_t error_ppm);

/** comm_shut_down() - the daemon stops: fail the forming, abort the formed. May free @comm. */
void comm_shut_down(struct comm *comm);

/** comm_release() - free @comm if nobody needs it any more */
void comm_release(struct comm *comm);

/** comm_set_state() - the transitions, in one place */
void comm_set_state(struct comm *comm, enum comm_state state);

/** comm_state_name(), comm_reason_text() - for people */
const char *comm_state_name(enum comm_state state);
const char *comm_reason_text(enum rx_abort_reason reason);

/** comm_streams() - made on first use; NULL: no memory */
struct gpu_streams *comm_streams(struct comm *comm);

/** comm_pid() - of @rank, 0 when it never came */
uint32_t comm_pid(const struct comm *comm, uint32_t rank);

/** comm_has_session() - is one of the members of @session? */
bool comm_has_session(const struct comm *comm, const struct session *session);

#endif
