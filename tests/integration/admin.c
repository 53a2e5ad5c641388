/* SPDX-License-Identifier: MIT */
#include "admin.h"
#include "raw.h"

#include <stdio.h>
#include <string.h>

static struct raw_reply reply;

static int ask(struct raw *raw, enum rx_msg_type type, uint64_t after, enum rx_msg_type answer)
{
	struct rx_msg msg = {.type = type, .admin_list = {.after = after}};

	return raw_ask(raw, &msg, &reply) && reply.msg.type == answer ? 0 : -1;
}

static void read_limits(struct admin_status *status)
{
	const struct rx_msg_admin_status_reply *r = &reply.msg.admin_status_reply;

	status->violations = r->violations;
	status->ops_done = r->ops_done;
	for (size_t i = 0; i < r->n_limits; i++) {
		if (strcmp(r->limits[i].name, "regions") == 0)
			status->n_regions = r->limits[i].used;
		if (strcmp(r->limits[i].name, "bytes") == 0)
			status->n_bytes = r->limits[i].used;
		if (strcmp(r->limits[i].name, "low_precision_scratch_bytes") == 0) {
			status->scratch_bytes = r->limits[i].used;
			status->scratch_limit = r->limits[i].limit;
		}
	}
}

static int count_sessions(struct raw *raw, uint32_t *n_p)
{
	const struct rx_msg_admin_sessions_reply *r = &reply.msg.admin_sessions_reply;
	uint64_t after = 0;

	do {
		if (ask(raw, RX_MSG_ADMIN_SESSIONS, after, RX_MSG_ADMIN_SESSIONS_REPLY) != 0)
			return -1;
		*n_p += (uint32_t)r->n_sessions;
		if (r->n_sessions > 0)
			after = r->sessions[r->n_sessions - 1].id;
	} while (r->more);
	return 0;
}

static int count_comms(struct raw *raw, uint32_t *n_p)
{
	const struct rx_msg_admin_comms_reply *r = &reply.msg.admin_comms_reply;
	uint64_t after = 0;

	do {
		if (ask(raw, RX_MSG_ADMIN_COMMS, after, RX_MSG_ADMIN_COMMS_REPLY) != 0)
			return -1;
		*n_p += (uint32_t)r->n_comms;
		if (r->n_comms > 0)
			after = r->comms[r->n_comms - 1].id;
	} while (r->more);
	return 0;
}

int admin_status(const char *path, struct admin_status *status_p)
{
	struct admin_status status = {0};
	struct raw raw;
	int r = -1;

	if (raw_connect(&raw, path))
		r = ask(&raw, RX_MSG_ADMIN_STATUS, 0, RX_MSG_ADMIN_STATUS_REPLY);
	if (r == 0) {
		read_limits(&status);
		r = count_sessions(&raw, &status.n_sessions);
	}
	if (r == 0)
		r = count_comms(&raw, &status.n_comms);
	raw_close(&raw);
	if (r == 0)
		*status_p = status;
	return r;
}

static void take_comm(const struct rx_comm_info *info, struct admin_comm *comm)
{
	*comm = (struct admin_comm){
		.n_ranks = info->n_ranks,
		.stalled_ns = info->stalled_ns,
		.over_budget = info->over_budget,
		.precision_ops = info->precision_ops,
		.exact_bytes = info->exact_bytes,
		.wire_bytes = info->wire_bytes,
		.blocks = info->precision_blocks,
		.saturated_blocks = info->saturated_blocks,
		.flushed_blocks = info->flushed_blocks,
		.special_blocks = info->special_blocks,
		.sampled_blocks = info->sampled_blocks,
		.worst_error_ppm = info->worst_error_ppm,
	};
	(void)snprintf(comm->precision, sizeof(comm->precision), "%s", info->precision);
	(void)snprintf(comm->state, sizeof(comm->state), "%s", info->state);
	for (size_t i = 0; i < info->n_members; i++) {
		const struct rx_rank_info *rank = &info->members[i];

		if (rank->late)
			comm->late |= 1ull << rank->rank;
		if (rank->rank == 0)
			(void)snprintf(comm->op, sizeof(comm->op), "%s", rank->op);
	}
}

int admin_comm(const char *path, uint32_t index, struct admin_comm *comm_p)
{
	const struct rx_msg_admin_comms_reply *list = &reply.msg.admin_comms_reply;
	struct raw raw;
	int r = -1;

	if (raw_connect(&raw, path))
		r = ask(&raw, RX_MSG_ADMIN_COMMS, 0, RX_MSG_ADMIN_COMMS_REPLY);
	raw_close(&raw);
	if (r != 0 || index >= list->n_comms)
		return -1;
	take_comm(&list->comms[index], comm_p);
	return 0;
}
