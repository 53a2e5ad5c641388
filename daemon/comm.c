/* SPDX-License-Identifier: MIT */
#include "comm.h"

#include "captured.h"
#include "comm_mem.h"
#include "daemon.h"
#include "gpu_streams.h"
#include "inline_kernels.h"
#include "loop.h"
#include "op.h"
#include "p2p.h"
#include "peer.h"
#include "reply.h"
#include "session.h"
#include "stall.h"
#include "../kernels/precision.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between a member's death and the abort: time for ranks that need nothing more from it. */
#define DEATH_GRACE_NS (250 * RX_NS_PER_MS)

const char *comm_state_name(enum comm_state state)
{
	static const char *const names[_COMM_STATE_N] = {
		[COMM_FORMING] = "forming",
		[COMM_READY] = "ready",
		[COMM_ABORTED] = "aborted",
	};

	return names[state];
}

const char *comm_reason_text(enum rx_abort_reason reason)
{
	static const char *const texts[RX_ABORT_N] = {
		[RX_ABORT_NONE] = "",
		[RX_ABORT_USER] = "a rank called abort",
		[RX_ABORT_PEER_LOST] = "a rank died",
		[RX_ABORT_MISMATCH] = "ranks called different operations",
		[RX_ABORT_DEADLINE] = "an operation took longer than allowed",
		[RX_ABORT_SHUTDOWN] = "the daemon stops",
		[RX_ABORT_ERROR] = "a rank could not go on",
		[RX_ABORT_DEVICE] = "a GPU failed",
	};

	return texts[reason];
}

void comm_set_state(struct comm *comm, enum comm_state state)
{
	assert((comm->state == COMM_FORMING && state == COMM_READY) ||
		(comm->state == COMM_READY && state == COMM_ABORTED));
	comm->state = state;
}

struct gpu_streams *comm_streams(struct comm *comm)
{
	if (!comm->streams)
		comm->streams = gpu_streams_new(comm->daemon->gpu);
	return comm->streams;
}

uint32_t comm_pid(const struct comm *comm, uint32_t rank)
{
	return comm->members[rank] ? (uint32_t)comm->members[rank]->pid : 0;
}

bool comm_has_session(const struct comm *comm, const struct session *session)
{
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		if (comm->members[rank] && comm->members[rank]->session == session)
			return true;
	return false;
}

/* ---- life ---- */

static void comm_free(struct comm *comm)
{
	assert(comm->n_present == 0 && !comm->running && rx_list_empty(&comm->ops));
	comm->p2p = p2p_free(comm->p2p);
	comm->streams = gpu_streams_free(comm->streams);
	comm->kernels = inline_kernels_free(comm->kernels);
	comm_mem_close(comm);
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		if (comm->members[rank])
			charge_release(&comm->members[rank]->bytes_charge);
		free(comm->members[rank]);
	}
	comm->timer = loop_timer_free(comm->timer);
	comm->op_timer = loop_timer_free(comm->op_timer);
	comm->stall.timer = loop_timer_free(comm->stall.timer);
	rx_list_unlink(&comm->bucket_link);
	if (comm->id)
		(void)rx_idmap_remove(&comm->daemon->comms, comm->id);
	free(comm);
}

void comm_release(struct comm *comm)
{
	if (comm->n_present == 0 && !comm->running && !p2p_is_running(comm) &&
		rx_list_empty(&comm->captured))
		comm_free(comm);
}

static void on_timer(void *owner);

static int make_timers(struct comm *comm)
{
	uv_loop_t *loop = comm->daemon->loop;
	int r = loop_timer_new(loop, on_timer, comm, &comm->timer);

	if (!r)
		r = loop_timer_new(loop, op_on_timer, comm, &comm->op_timer);
	if (!r)
		r = loop_timer_new(loop, stall_on_timer, comm, &comm->stall.timer);
	return r;
}

static struct rx_list *bucket_of(struct daemon *daemon, const uint8_t *key)
{
	return &daemon->comm_buckets[uniqueid_hash(key) % COMM_BUCKETS];
}

static int comm_new(struct daemon *daemon, const struct comm_join *join, struct comm **comm_p)
{
	struct comm *comm = calloc(1, sizeof(*comm));
	int r = 0;

	if (!comm)
		return -ENOMEM;
	comm->daemon = daemon;
	memcpy(comm->key, join->key, sizeof(comm->key));
	comm->n_ranks = join->n_ranks;
	comm->created_ns = rx_now_ns();
	comm->form_deadline_ns = RX_FOREVER;
	comm->fail_from = UINT64_MAX;
	rx_list_init(&comm->ops);
	rx_list_init(&comm->captured);
	rx_list_push(bucket_of(daemon, join->key), &comm->bucket_link);
	r = make_timers(comm);
	if (!r)
		r = rx_idmap_add(&daemon->comms, comm, &comm->id);
	if (r) {
		comm_free(comm);
		return r;
	}
	*comm_p = comm;
	return 0;
}

static struct comm *comm_find(struct daemon *daemon, const uint8_t *key)
{
	rx_list_for_each (pos, bucket_of(daemon, key)) {
		struct comm *comm = rx_list_entry(pos, struct comm, bucket_link);

		if (memcmp(comm->key, key, sizeof(comm->key)) == 0)
			return comm;
	}
	return NULL;
}

/* ---- members ---- */

struct member *member_find(struct session *session, uint32_t handle)
{
	struct member *member = rx_idmap_find_short(&session->daemon->members, handle);

	/* Handles of the forming are not given out yet, but can be guessed. */
	if (!member || member->session != session || member->comm->state == COMM_FORMING)
		return NULL;
	return member;
}

uint32_t member_handle(const struct member *member)
{
	return rx_idmap_short(member->id);
}

static int member_charge(struct member *member)
{
	struct accounts *accounts = &member->comm->daemon->accounts;
	uint32_t n_ranks = member->comm->n_ranks;
	uint64_t share = (comm_mem_bytes(n_ranks) + n_ranks - 1) / n_ranks;
	int r = account_charge(accounts, member->uid, ACCOUNT_COMMS, 1, &member->comm_charge);

	if (!r)
		r = account_charge(
			accounts, member->uid, ACCOUNT_BYTES, share, &member->bytes_charge);
	return r;
}

static int member_new(struct comm *comm, struct session *session, const struct comm_join *join)
{
	struct member *member = calloc(1, sizeof(*member));
	int r = 0;

	if (!member)
		return -ENOMEM;
	member->comm = comm;
	member->rank = join->rank;
	member->serial = join->serial;
	member->session_id = session->id;
	member->pid = session->pid;
	member->uid = session->uid;
	member->op_timeout_ns = join->op_timeout_ns;
	member->cpus = join->cpus;
	member->precision = join->precision;
	member->gpu = join->gpu;
	member->has_device = join->device != NULL;
	if (join->device)
		memcpy(member->device, join->device, sizeof(member->device));
	member->concurrent = join->concurrent;
	r = member_charge(member);
	if (!r)
		r = rx_idmap_add(&comm->daemon->members, member, &member->id);
	if (r) {
		charge_release(&member->bytes_charge);
		charge_release(&member->comm_charge);
		free(member);
		return r;
	}
	member->session = session;
	rx_list_push(&session->members, &member->session_link);
	session->n_members++;
	comm->members[join->rank] = member;
	comm->n_joined++;
	comm->n_present++;
	return 0;
}

/* The session has nothing to do with it any more; the struct stays for reports. */
static void member_detach(struct member *member)
{
	member->session->n_members--;
	member->session = NULL;
	rx_list_unlink(&member->session_link);
	(void)rx_idmap_remove(&member->comm->daemon->members, member->id);
	charge_release(&member->comm_charge);
	member->comm->n_present--;
}

/* ---- forming ---- */

/* Tell all who have joined, and forget the communicator. */
static void fail_forming(struct comm *comm, enum rx_result code, uint64_t ranks, const char *text)
{
	rx_info("comm=%" PRIu64 " name=\"%s\" not formed: %s", comm->id, comm->name, text);
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		struct member *member = comm->members[rank];

		if (!member || !member->session)
			continue;
		reply_error(member->session->peer, member->serial, code, ranks, "%s", text);
		member_detach(member);
	}
	comm_free(comm);
}

static uint64_t ranks_missing(const struct comm *comm)
{
	uint64_t ranks = 0;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		if (!comm->members[rank])
			ranks |= 1ull << rank;
	return ranks;
}

/* "rank 3 of 4 has" or "ranks 2, 5 of 8 have" */
static void describe_ranks(const struct comm *comm, uint64_t ranks, char *text, size_t bytes)
{
	bool many = (ranks & (ranks - 1)) != 0;
	size_t at = (size_t)snprintf(text, bytes, many ? "ranks " : "rank ");
	const char *comma = "";

	for (uint32_t rank = 0; rank < comm->n_ranks && at < bytes; rank++) {
		if (!(ranks & 1ull << rank))
			continue;
		at += (size_t)snprintf(text + at, bytes - at, "%s%u", comma, rank);
		comma = ", ";
	}
	if (at < bytes)
		(void)snprintf(text + at, bytes - at, " of %u", comm->n_ranks);
}

static void on_form_timeout(struct comm *comm)
{
	uint64_t ranks = ranks_missing(comm);
	char who[300];
	char text[400];

	describe_ranks(comm, ranks, who, sizeof(who));
	(void)snprintf(text, sizeof(text), "%s did not come within %g s", who,
		(double)comm->form_timeout_ns / 1e9);
	fail_forming(comm, RX_ERR_TIMEOUT, ranks, text);
}

static void on_timer(void *owner)
{
	struct comm *comm = owner;

	if (comm->state == COMM_FORMING)
		on_form_timeout(comm);
	else
		comm_abort(comm, RX_ABORT_PEER_LOST, comm->dead_rank, UINT32_MAX, NULL);
}

bool comm_bury(struct comm *comm)
{
	if (comm->state == COMM_READY && loop_timer_is_set(comm->timer))
		comm_abort(comm, RX_ABORT_PEER_LOST, comm->dead_rank, UINT32_MAX, NULL);
	return comm->state != COMM_READY;
}

static void send_ready(struct comm *comm, const int fds[2])
{
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		struct member *member = comm->members[rank];
		struct rx_msg msg = {
			.type = RX_MSG_COMM_READY,
			.serial = member->serial,
			.comm_ready =
				{
					.member = member_handle(member),
					.comm_id = comm->id,
					.arena_bytes = rx_fabric_arena_bytes(comm->n_ranks),
					.tuning_epoch = comm->fabric.ctl->tuning.epoch,
				},
		};

		reply(member->session->peer, &msg, fds, 2);
	}
}

/*
 * All ranks have come. The first that wants another precision than rank 0: then no one of them gets
 * what it asked for.
 */
static bool precision_agreed(struct comm *comm)
{
	const struct member *first = comm->members[0];
	char sides[2][RX_PRECISION_TEXT];
	char text[2 * RX_PRECISION_TEXT + 400];

	for (uint32_t rank = 1; rank < comm->n_ranks; rank++) {
		const struct member *member = comm->members[rank];

		if (memcmp(&member->precision, &first->precision, sizeof(first->precision)) == 0)
			continue;
		rx_precision_describe(&first->precision, sides[0]);
		rx_precision_describe(&member->precision, sides[1]);
		(void)snprintf(text, sizeof(text),
			"the ranks disagree about low precision: rank 0 (pid %u) has %s; rank %u "
			"(pid %u) has %s; the configuration and the environment (RCCL_LOW_"
			"PRECISION_*, RCCLX_LINK_RATE) have to be the same on all ranks",
			(uint32_t)first->pid, sides[0], rank, (uint32_t)member->pid, sides[1]);
		fail_forming(comm, RX_ERR_MISMATCH, 1ull | 1ull << rank, text);
		return false;
	}
	return true;
}

static void form(struct comm *comm)
{
	RX_CLOSE int ctl_fd = -1;
	RX_CLOSE int arena_fd = -1;
	int r = 0;

	if (!precision_agreed(comm))
		return;
	r = comm_mem_open(comm, &ctl_fd, &arena_fd);
	if (r) {
		char text[160];

		(void)snprintf(text, sizeof(text),
			"the daemon cannot make the communicator's memory: %s", strerror(-r));
		fail_forming(comm, RX_ERR_NO_MEMORY, 0, text);
		return;
	}
	loop_timer_stop(comm->timer);
	inline_kernels_offer(comm);
	comm_set_state(comm, COMM_READY);
	uniqueid_log_add(&comm->daemon->retired, comm->key);
	comm->daemon->stats.comms++;
	rx_debug("comm=%" PRIu64 " name=\"%s\" ranks=%u formed", comm->id, comm->name,
		comm->n_ranks);
	send_ready(comm, (const int[]){ctl_fd, arena_fd});
}

/* Does the join fit the others'? If not, it is answered. */
static bool join_fits(struct session *session, const struct comm_join *join, struct comm *comm)
{
	const struct member *other = NULL;

	if (comm->state != COMM_FORMING) {
		reply_error(session->peer, join->serial, RX_ERR_INVALID, 0,
			"a communicator was formed already under this id; make a new id for each");
		return false;
	}
	for (uint32_t rank = 0; rank < comm->n_ranks && !other; rank++)
		other = comm->members[rank];
	assert(other);
	if (join->n_ranks != comm->n_ranks) {
		reply_error(session->peer, join->serial, RX_ERR_INVALID, 1ull << other->rank,
			"rank %u joins a communicator of %u ranks, but rank %u (pid %u) has joined "
			"it as one of %u",
			join->rank, join->n_ranks, other->rank, (uint32_t)other->pid,
			comm->n_ranks);
		return false;
	}
	other = comm->members[join->rank];
	if (other) {
		reply_error(session->peer, join->serial, RX_ERR_INVALID, 1ull << join->rank,
			"rank %u is taken by pid %u", join->rank, (uint32_t)other->pid);
		return false;
	}
	return true;
}

static bool id_good(struct session *session, const struct comm_join *join)
{
	struct daemon *daemon = session->daemon;
	int r = uniqueid_check(daemon->instance, join->key);
	const char *text = NULL;

	if (r == UNIQUEID_E_FOREIGN)
		text = "the id was made by another rcclxd, or before this one was restarted; all "
		       "ranks must use the daemon that made the id";
	else if (r)
		text = "this is not an id that rcclxd made";
	else if (uniqueid_log_has(&daemon->retired, join->key) && !comm_find(daemon, join->key))
		text = "a communicator was formed already under this id; make a new id for each";
	if (text)
		reply_error(session->peer, join->serial, RX_ERR_INVALID, 0, "%s", text);
	return !text;
}

static void set_form_deadline(struct comm *comm, const struct comm_join *join)
{
	uint64_t timeout_ns = join->form_timeout_ns > 0 ? join->form_timeout_ns
							: comm->daemon->config.form_timeout_ns;
	uint64_t deadline_ns = rx_deadline_ns(timeout_ns);

	if (deadline_ns >= comm->form_deadline_ns)
		return;
	comm->form_deadline_ns = deadline_ns;
	comm->form_timeout_ns = timeout_ns;
	loop_timer_set(comm->timer, timeout_ns);
}

void comm_join(struct session *session, const struct comm_join *join)
{
	struct comm *comm = NULL;
	int r = 0;

	if (!id_good(session, join))
		return;
	comm = comm_find(session->daemon, join->key);
	if (comm && !join_fits(session, join, comm))
		return;
	if (!comm)
		r = comm_new(session->daemon, join, &comm);
	if (!r)
		r = member_new(comm, session, join);
	if (r) {
		reply_failure(session->peer, join->serial, r, "cannot join the communicator");
		if (comm)
			comm_release(comm);
		return;
	}
	if (comm->name[0] == '\0')
		(void)snprintf(comm->name, sizeof(comm->name), "%s", join->name);
	set_form_deadline(comm, join);
	if (comm->n_joined == comm->n_ranks)
		form(comm);
}

/* ---- ending ---- */

static void lost_while_forming(struct comm *comm, uint32_t rank, pid_t pid)
{
	char text[160];

	(void)snprintf(text, sizeof(text),
		"rank %u (pid %u) died before the communicator was formed", rank, (uint32_t)pid);
	fail_forming(comm, RX_ERR_PEER_LOST, 1ull << rank, text);
}

static void gone_when_formed(struct member *member, enum rx_member_status status)
{
	struct comm *comm = member->comm;

	op_member_gone(member);
	p2p_member_gone(member);
	captured_member_gone(member);
	inline_kernels_member_gone(member);
	member_detach(member);
	member->status = status;
	comm_mem_status(comm, member->rank, status);
	if (comm->n_present == 0) {
		loop_timer_stop(comm->timer);
		stall_clear(comm);
		op_fail_all(comm);
		p2p_fail_all(comm);
		comm_release(comm);
		return;
	}
	if (comm->stall.late && comm->stall.hinter == member->rank)
		stall_clear(comm);
	if (status == RX_MEMBER_DEAD && comm->state == COMM_READY &&
		!loop_timer_is_set(comm->timer)) {
		comm->dead_rank = member->rank;
		loop_timer_set(comm->timer, DEATH_GRACE_NS);
	}
}

void member_gone(struct member *member, enum rx_member_status status)
{
	struct comm *comm = member->comm;
	uint32_t rank = member->rank;
	pid_t pid = member->pid;

	if (comm->state == COMM_FORMING) {
		member_detach(member);
		lost_while_forming(comm, rank, pid);
	} else {
		gone_when_formed(member, status);
	}
}

void comm_abort(struct comm *comm, enum rx_abort_reason reason, uint32_t rank, uint32_t other,
	const struct rx_op_sig *sig)
{
	if (comm->state != COMM_READY)
		return;
	comm_set_state(comm, COMM_ABORTED);
	comm->reason = reason;
	comm->abort_rank = rank;
	comm->abort_other = other;
	loop_timer_stop(comm->timer);
	rx_log_limited(daemon_log_limit(comm->daemon, comm->members[0]->uid, "abort"), RX_LOG_INFO,
		"comm=%" PRIu64 " name=\"%s\" rank=%d aborted: %s", comm->id, comm->name, (int)rank,
		comm_reason_text(reason));
	comm_mem_abort(comm, sig);
	stall_clear(comm);
	op_fail_all(comm);
	p2p_fail_all(comm);
	captured_fail_all(comm);
	inline_kernels_abort(comm);
}

void comm_over_budget(struct comm *comm, uint32_t rank, uint64_t error_ppm)
{
	char who[40] = "the daemon";

	if (comm->state != COMM_READY || comm->over_budget)
		return;
	comm->over_budget = true;
	comm_mem_over_budget(comm);
	if (rank < comm->n_ranks)
		(void)snprintf(who, sizeof(who), "rank %u (pid %u)", rank, comm_pid(comm, rank));
	rx_log_limited(daemon_log_limit(comm->daemon, comm->members[0]->uid, "over_budget"),
		RX_LOG_INFO,
		"comm=%" PRIu64 " name=\"%s\" low precision: %s found a relative error of %" PRIu64
		" ppm, above the budget of %u; its operations are exact from now on",
		comm->id, comm->name, who, error_ppm, comm->members[0]->precision.budget_ppm);
}

void comm_shut_down(struct comm *comm)
{
	if (comm->state == COMM_FORMING)
		fail_forming(comm, RX_ERR_DAEMON_LOST, 0, "the daemon stops");
	else
		comm_abort(comm, RX_ABORT_SHUTDOWN, UINT32_MAX, UINT32_MAX, NULL);
}
