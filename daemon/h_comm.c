/* SPDX-License-Identifier: MIT */
/* Handlers of communicators. */
#include "dispatch.h"

#include "comm.h"
#include "daemon.h"
#include "inline_kernels.h"
#include "peer.h"
#include "reply.h"
#include "session.h"
#include "stall.h"
#include "../kernels/precision.h"

void h_unique_id_get(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	uint8_t id[RX_UNIQUE_ID_BYTES];
	struct rx_msg answer = {
		.type = RX_MSG_UNIQUE_ID_REPLY,
		.serial = msg->serial,
		.unique_id_reply = {.id = {id, sizeof(id)}},
	};
	int r = uniqueid_make(peer->daemon->instance, id);

	(void)fds;
	if (r)
		reply_failure(peer, msg->serial, r, "cannot make an id");
	else
		reply(peer, &answer, NULL, 0);
}

void h_comm_join(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	const struct rx_msg_comm_join *join = &msg->comm_join;
	const char *refusal = daemon_refuses(peer->daemon);
	struct rx_precision precision;

	(void)fds;
	if (refusal) {
		reply_error(peer, msg->serial, RX_ERR_DENIED, 0, "%s", refusal);
		return;
	}
	precision = (struct rx_precision){
		.flags = join->precision_flags,
		.sample_every = join->precision_sample_every,
		.budget_ppm = join->precision_budget_ppm,
		.min_bytes = join->precision_min_bytes,
		.link_rate = join->link_rate,
	};
	refusal = rx_precision_ok(&precision);
	if (refusal) {
		reply_error(peer, msg->serial, RX_ERR_INVALID, 0, "low precision: %s", refusal);
		return;
	}
	comm_join(peer->session, &(struct comm_join){
					 .serial = msg->serial,
					 .key = join->id.data,
					 .n_ranks = join->n_ranks,
					 .rank = join->rank,
					 .form_timeout_ns = join->form_timeout_ns,
					 .op_timeout_ns = join->op_timeout_ns,
					 .name = join->name,
					 .cpus = topology_mask(join->cpus.data, join->cpus.len),
					 .precision = precision,
					 .gpu = join->gpu,
					 .device = join->device.len ? join->device.data : NULL,
					 .concurrent = join->concurrent,
				 });
}

static void reply_no_member(struct peer *peer, uint32_t serial, uint32_t handle)
{
	reply_error(peer, serial, RX_ERR_INVALID, 0,
		"no membership of this session has the handle %u", handle);
}

void h_comm_leave(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct member *member = member_find(peer->session, msg->comm_leave.member);

	(void)fds;
	if (!member) {
		reply_no_member(peer, msg->serial, msg->comm_leave.member);
		return;
	}
	member_gone(member, RX_MEMBER_LEFT);
	reply_ok(peer, msg->serial);
}

void h_comm_abort(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct member *member = member_find(peer->session, msg->comm_abort.member);
	uint32_t reason = msg->comm_abort.reason;
	uint32_t other = UINT32_MAX;
	struct rx_op_sig sig[2];

	(void)fds;
	if (reason != RX_ABORT_USER && reason != RX_ABORT_ERROR && reason != RX_ABORT_DEADLINE) {
		peer_violation(peer, "aborted a communicator for a reason that is not its own");
		return;
	}
	if (!member) {
		reply_no_member(peer, msg->serial, msg->comm_abort.member);
		return;
	}
	if (reason == RX_ABORT_ERROR && inline_kernels_mismatch(member, &other, sig))
		comm_abort(member->comm, RX_ABORT_MISMATCH, member->rank, other, sig);
	else
		comm_abort(member->comm, reason, member->rank, UINT32_MAX, NULL);
	reply_ok(peer, msg->serial);
}

void h_stall_hint(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct member *member = member_find(peer->session, msg->stall_hint.member);

	(void)fds;
	/* It may have left meanwhile. */
	if (member)
		stall_hint(member);
}

void h_over_budget(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct member *member = member_find(peer->session, msg->over_budget.member);
	struct rx_precision_counts counts;

	(void)fds;
	if (!member)
		return;
	counts = rx_fabric_counts(&member->comm->fabric, member->rank);
	comm_over_budget(member->comm, member->rank, counts.error_ppm);
}
