/* SPDX-License-Identifier: MIT */
/*
 * Handlers of the admin socket. Lists come in pages: entries are added while the packed reply
 * still fits into a frame, and the asker continues after the last id it got.
 */
#include "dispatch.h"

#include "captured.h"
#include "comm.h"
#include "comm_mem.h"
#include "daemon.h"
#include "entry.h"
#include "inline_kernels.h"
#include "op.h"
#include "p2p.h"
#include "peer.h"
#include "reply.h"
#include "scratch.h"
#include "session.h"
#include "../kernels/precision.h"
#include "../shm/rx_clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE_BYTES    (RX_FRAME_MAX - (uint32_t)sizeof(struct rx_frame_header))
#define PAGE_SESSIONS 256u
#define PAGE_COMMS    64u
#define OP_TEXT_BYTES 96u
#define REASON_BYTES  96u

/* ---- status ---- */

static size_t fill_limits(struct daemon *daemon, struct rx_limit_info *limits, char names[][32])
{
	struct accounts *accounts = &daemon->accounts;
	size_t n = 0;

	for (enum account_kind kind = 0; kind < _ACCOUNT_N; kind++) {
		limits[n++] = (struct rx_limit_info){
			.name = account_kind_name(kind),
			.used = accounts->used[kind],
			.limit = accounts->limit[kind],
		};
		(void)snprintf(
			names[kind], sizeof(names[kind]), "%s_per_uid", account_kind_name(kind));
		limits[n++] = (struct rx_limit_info){
			.name = names[kind],
			.used = account_highest(accounts, kind),
			.limit = accounts->limit_per_uid[kind],
		};
	}
	limits[n++] = (struct rx_limit_info){
		.name = "low_precision_scratch_bytes",
		.used = scratch_bytes(daemon->scratch),
		.limit = daemon->config.scratch_bytes,
	};
	return n;
}

void h_admin_status(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct daemon *daemon = peer->daemon;
	struct rx_limit_info limits[2 * _ACCOUNT_N + 1];
	char names[_ACCOUNT_N][32];
	struct rx_msg answer = {.type = RX_MSG_ADMIN_STATUS_REPLY, .serial = msg->serial};

	(void)fds;
	answer.admin_status_reply = (struct rx_msg_admin_status_reply){
		.version = RX_DAEMON_VERSION,
		.pid = (uint64_t)getpid(),
		.uptime_ns = rx_now_ns() - daemon->start_ns,
		.state = daemon->state == DAEMON_SERVING ? "serving" : "draining",
		.socket = daemon->socket_path,
		.backend = "host",
		.limits = limits,
		.n_limits = fill_limits(daemon, limits, names),
		.sessions_total = daemon->stats.sessions,
		.comms_total = daemon->stats.comms,
		.ops_done = daemon->stats.ops_done,
		.ops_failed = daemon->stats.ops_failed,
		.log_dropped = rx_log_dropped(),
		.violations = daemon->stats.violations,
		.reloads = daemon->stats.reloads,
	};
	reply(peer, &answer, NULL, 0);
}

/* ---- sessions ---- */

static void fill_session(struct rx_session_info *info, const struct session *session)
{
	*info = (struct rx_session_info){
		.id = session->id,
		.pid = (uint32_t)session->pid,
		.uid = (uint32_t)session->uid,
		.gid = (uint32_t)session->peer->gid,
		.program = session->program,
		.connected_ns = rx_now_ns() - session->peer->connected_ns,
		.n_members = session->n_members,
		.n_regions = session->n_regions,
		.region_bytes = session->region_bytes,
		.ring_bytes = session->ring_charge.amount,
		.ops_in_flight = session->n_in_flight,
		.ops_done = session->ops_done,
	};
}

void h_admin_sessions(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct rx_session_info infos[PAGE_SESSIONS];
	struct rx_msg answer = {.type = RX_MSG_ADMIN_SESSIONS_REPLY, .serial = msg->serial};
	struct rx_msg_admin_sessions_reply *page = &answer.admin_sessions_reply;
	uint64_t id = msg->admin_list.after;

	(void)fds;
	page->sessions = infos;
	for (;;) {
		const struct session *session = rx_idmap_next(&peer->daemon->sessions, id, &id);

		if (!session)
			break;
		page->more = true;
		if (page->n_sessions == PAGE_SESSIONS)
			break;
		fill_session(&infos[page->n_sessions], session);
		page->n_sessions++;
		if (rx_msg_packed_size(&answer) > PAGE_BYTES) {
			page->n_sessions--;
			break;
		}
		page->more = false;
	}
	reply(peer, &answer, NULL, 0);
}

/* ---- communicators ---- */

/* The strings and lists that a page of communicators points to. */
struct comm_texts {
	struct rx_rank_info ranks[RX_MAX_RANKS];
	char ops[RX_MAX_RANKS][OP_TEXT_BYTES];
	char reason[REASON_BYTES];
	char precision[RX_PRECISION_TEXT];
};

struct comm_page {
	struct rx_comm_info infos[PAGE_COMMS];
	struct comm_texts texts[PAGE_COMMS];
};

static const char *member_status_name(const struct member *member)
{
	static const char *const names[RX_MEMBER_N] = {
		[RX_MEMBER_ALIVE] = "alive",
		[RX_MEMBER_LEFT] = "left",
		[RX_MEMBER_DEAD] = "dead",
	};

	return member ? names[member->status] : "missing";
}

/* Sends and receives that wait for their counterpart. */
struct p2p_view {
	uint64_t ranks; /* bitmap of those who wait */
	struct rx_op_sig sigs[RX_MAX_RANKS];
};

/* What the rank waits for in the queue, else what it last did inline. False: nothing yet. */
static bool last_op(const struct comm *comm, const struct p2p_view *p2p, uint32_t rank,
	struct rx_op_sig *sig_p, uint64_t *op_seq_p)
{
	const struct op *op = op_waiting(comm);
	struct rx_line_view view = {0};

	if (comm->state != COMM_FORMING)
		view = rx_fabric_view(&comm->fabric, rank);
	*op_seq_p = view.seq;
	if (op && op->parts[rank].posted)
		*sig_p = op->parts[rank].sig;
	else if (p2p->ranks >> rank & 1)
		*sig_p = p2p->sigs[rank];
	else if (view.seq > 0)
		*sig_p = view.sig;
	else
		return false;
	return true;
}

static void fill_rank(struct comm_texts *texts, const struct comm *comm, const struct p2p_view *p2p,
	uint32_t rank)
{
	struct rx_rank_info *info = &texts->ranks[rank];
	const struct member *member = comm->members[rank];
	struct rx_op_sig sig;

	*info = (struct rx_rank_info){.rank = rank, .status = member_status_name(member)};
	if (last_op(comm, p2p, rank, &sig, &info->op_seq)) {
		sig_describe(&sig, texts->ops[rank], OP_TEXT_BYTES);
		info->op = texts->ops[rank];
	}
	if (!member)
		return;
	info->session_id = member->session_id;
	info->pid = (uint32_t)member->pid;
	info->uid = (uint32_t)member->uid;
	info->queued_seq = member->n_posted;
}

/* Late for an inline op, or missing in a queued one: bitmap, and for how long. */
static uint64_t late_ranks(const struct comm *comm, uint64_t *stalled_ns_p)
{
	const struct op *op = op_waiting(comm);
	uint64_t now = rx_now_ns();
	uint64_t stalled_ns = 0;
	uint64_t late = p2p_late(comm, &stalled_ns);
	uint64_t since_ns = now;

	late |= inline_kernels_late(comm->kernels, &since_ns);
	stalled_ns = rx_max_u64(stalled_ns, now - since_ns);
	if (comm->stall.late) {
		late |= comm->stall.late;
		stalled_ns = rx_max_u64(stalled_ns, now - comm->stall.since_ns);
	}
	if (op && now - op->wait_start_ns >= comm->daemon->config.stall_report_ns) {
		late |= op_missing(comm);
		stalled_ns = rx_max_u64(stalled_ns, now - op->wait_start_ns);
	}
	*stalled_ns_p = stalled_ns;
	return late;
}

/* Of all ranks, and of what the daemon does for them. */
static void fill_precision(
	struct rx_comm_info *info, struct comm_texts *texts, const struct comm *comm)
{
	struct rx_precision_counts sum = comm->precision;
	uint64_t n_inline = 0;

	captured_account(comm, &sum);
	/* Each rank has counted an inline op. */
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		struct rx_precision_counts counts = rx_fabric_counts(&comm->fabric, rank);

		n_inline = rx_max_u64(n_inline, counts.n_ops);
		counts.n_ops = 0;
		rx_precision_add(&sum, &counts);
	}
	if (n_inline > 0)
		rx_precision_add(&sum, &(struct rx_precision_counts){.n_ops = n_inline});
	rx_precision_describe(&comm->fabric.ctl->precision, texts->precision);
	info->precision = texts->precision;
	info->over_budget = comm->over_budget;
	info->precision_ops = sum.n_ops;
	info->exact_bytes = sum.exact_bytes;
	info->wire_bytes = sum.wire_bytes;
	info->precision_blocks = sum.n_blocks;
	info->saturated_blocks = sum.n_saturated;
	info->flushed_blocks = sum.n_flushed;
	info->special_blocks = sum.n_special;
	info->sampled_blocks = sum.n_sampled;
	info->error_ppm = sum.error_ppm;
	info->worst_error_ppm = sum.worst_ppm;
}

static void fill_comm(struct rx_comm_info *info, struct comm_texts *texts, const struct comm *comm)
{
	struct p2p_view p2p;
	uint64_t late = 0;

	p2p.ranks = p2p_waiting(comm, p2p.sigs);
	*info = (struct rx_comm_info){
		.id = comm->id,
		.name = comm->name,
		.state = comm_state_name(comm->state),
		.n_ranks = comm->n_ranks,
		.arena_bytes = comm->state == COMM_FORMING ? 0 : comm_mem_bytes(comm->n_ranks),
		.members = texts->ranks,
		.n_members = comm->n_ranks,
		.reason = texts->reason,
		.ops_done = comm->ops_done,
		.ops_queued = comm->n_ops,
		.age_ns = rx_now_ns() - comm->created_ns,
	};
	if (comm->state != COMM_FORMING) {
		info->n_cores = comm->place.n_cores;
		info->cores_shared = comm->place.cores_shared;
		info->shares = topology_share_name(comm->place.share);
		info->tuning_epoch = comm->fabric.ctl->tuning.epoch;
		info->kernels = comm->kernels_why;
		fill_precision(info, texts, comm);
	}
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		fill_rank(texts, comm, &p2p, rank);
	late = late_ranks(comm, &info->stalled_ns);
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		texts->ranks[rank].late = late >> rank & 1;
	if (comm->abort_rank < comm->n_ranks && comm->reason != RX_ABORT_NONE)
		(void)snprintf(texts->reason, REASON_BYTES, "%s (rank %u)",
			comm_reason_text(comm->reason), comm->abort_rank);
	else
		(void)snprintf(texts->reason, REASON_BYTES, "%s", comm_reason_text(comm->reason));
}

static void fill_comms(
	struct daemon *daemon, uint64_t after, struct comm_page *buffers, struct rx_msg *answer)
{
	struct rx_msg_admin_comms_reply *page = &answer->admin_comms_reply;
	uint64_t id = after;

	page->comms = buffers->infos;
	for (;;) {
		const struct comm *comm = rx_idmap_next(&daemon->comms, id, &id);
		size_t n = page->n_comms;

		if (!comm)
			break;
		page->more = true;
		if (n == PAGE_COMMS)
			break;
		fill_comm(&buffers->infos[n], &buffers->texts[n], comm);
		page->n_comms++;
		if (rx_msg_packed_size(answer) > PAGE_BYTES) {
			page->n_comms--;
			break;
		}
		page->more = false;
	}
}

void h_admin_comms(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct comm_page *buffers = malloc(sizeof(*buffers));
	struct rx_msg answer = {.type = RX_MSG_ADMIN_COMMS_REPLY, .serial = msg->serial};

	(void)fds;
	if (!buffers) {
		reply_failure(peer, msg->serial, -ENOMEM, "cannot list communicators");
		return;
	}
	fill_comms(peer->daemon, msg->admin_list.after, buffers, &answer);
	reply(peer, &answer, NULL, 0);
	free(buffers);
}

/* ---- drain ---- */

void h_admin_drain(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	(void)fds;
	daemon_drain(peer->daemon);
	reply_ok(peer, msg->serial);
}
