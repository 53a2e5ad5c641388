/* SPDX-License-Identifier: MIT */
#include "dispatch.h"

#include "daemon.h"
#include "peer.h"

#include <string.h>

typedef void (*handler_fn)(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);

static const handler_fn handlers[RX_MSG_TYPE_N] = {
	[RX_MSG_HELLO] = h_hello,
	[RX_MSG_PING] = h_ping,
	[RX_MSG_UNIQUE_ID_GET] = h_unique_id_get,
	[RX_MSG_COMM_JOIN] = h_comm_join,
	[RX_MSG_COMM_LEAVE] = h_comm_leave,
	[RX_MSG_COMM_ABORT] = h_comm_abort,
	[RX_MSG_STALL_HINT] = h_stall_hint,
	[RX_MSG_OVER_BUDGET] = h_over_budget,
	[RX_MSG_MEM_ALLOC] = h_mem_alloc,
	[RX_MSG_MEM_REGISTER] = h_mem_register,
	[RX_MSG_MEM_FREE] = h_mem_free,
	[RX_MSG_MEM_IMPORT] = h_mem_import,
	[RX_MSG_GPU_REGISTER] = h_gpu_register,
	[RX_MSG_GATES_OPEN] = h_gates_open,
	[RX_MSG_SLAB_GET] = h_slab_get,
	[RX_MSG_KERNELS_READY] = h_kernels_ready,
	[RX_MSG_ADMIN_STATUS] = h_admin_status,
	[RX_MSG_ADMIN_SESSIONS] = h_admin_sessions,
	[RX_MSG_ADMIN_COMMS] = h_admin_comms,
	[RX_MSG_ADMIN_DRAIN] = h_admin_drain,
	[RX_MSG_ADMIN_TUNING] = h_admin_tuning,
	[RX_MSG_ADMIN_TOPOLOGY] = h_admin_topology,
	[RX_MSG_ADMIN_DEVICES] = h_admin_devices,
};

/* May this peer send this message now? NULL, or why not. */
static const char *check_state(const struct peer *peer, const struct rx_frame *frame)
{
	const struct rx_frame_header *header = &frame->header;
	const struct rx_msg_info *info = rx_msg_info(header->type);
	unsigned int from = peer->admin ? RX_FROM_ADMIN : RX_FROM_CLIENT;

	if (!info || !(info->from & from) || !handlers[header->type])
		return "sent a message that does not belong on this socket";
	if (peer->state == PEER_ACCEPTED && header->type != RX_MSG_HELLO)
		return "sent a message before Hello";
	if (peer->state == PEER_READY && header->type == RX_MSG_HELLO)
		return "sent Hello twice";
	if (header->n_fds < info->fds_min || header->n_fds > info->fds_max)
		return "sent a message with a wrong number of descriptors";
	if (info->needs_serial && header->serial == 0)
		return "sent a request without a serial";
	return NULL;
}

static void serve(struct peer *peer, struct rx_frame *frame)
{
	const struct rx_frame_header *header = &frame->header;
	const char *why = check_state(peer, frame);
	struct rx_msg msg;

	if (!why && rx_msg_unpack(header->type, header->serial, frame->payload, header->bytes,
			    &peer->daemon->arena, &msg, &why) == 0) {
		handlers[header->type](peer, &msg, &frame->fds);
		return;
	}
	peer_violation(peer, why ? why : "sent a message that cannot be decoded");
}

bool dispatch_one(struct peer *peer)
{
	struct rx_frame *frame = &peer->daemon->frame;
	const char *why = "sent garbage";
	int r = rx_frame_recv(peer->fd, frame, &why);

	switch (r) {
	case RX_FRAME_OK:
		serve(peer, frame);
		rx_fdset_close(&frame->fds);
		return true;
	case RX_FRAME_E_AGAIN:
		return false;
	case RX_FRAME_E_VIOLATION:
	case RX_FRAME_E_NO_FDS:
		peer_violation(peer, why);
		return false;
	case RX_FRAME_E_CLOSED:
		break;
	default:
		rx_log_limited(daemon_log_limit(peer->daemon, peer->uid, "recv"), RX_LOG_INFO,
			"pid=%u uid=%u cannot be read from: %s", (uint32_t)peer->pid,
			(uint32_t)peer->uid, strerror(-r));
	}
	peer_end(peer);
	return false;
}
