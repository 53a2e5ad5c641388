/* SPDX-License-Identifier: MIT */
#include "rx_check.h"

#include "../shm/rx_result.h"

#include <string.h>

/* Length of the UTF-8 sequence at @s, or 0 when it is none. No surrogates, no overlong forms. */
static size_t utf8_sequence(const unsigned char *s)
{
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t n = 0;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	if (s[0] == 0xed)
		high = 0x9f;
	if (s[0] == 0xf0)
		low = 0x90;
	if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* C0, DEL, and C1 (U+0080 to U+009F): terminals take those for commands, too. */
static bool is_control(const unsigned char *s)
{
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

bool rx_check_text(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);
	const unsigned char *s = (const unsigned char *)text;

	if (len > max)
		return false;
	while (*s) {
		size_t n = utf8_sequence(s);

		if (n == 0 || is_control(s))
			return false;
		s += n;
	}
	return true;
}

static const char *check_hello(const struct rx_msg_hello *m)
{
	if (!rx_check_text(m->program, RX_NAME_MAX))
		return "program name too long or not plain text";
	if (m->version_min > m->version_max)
		return "version window is empty";
	return NULL;
}

static const char *check_hello_reply(const struct rx_msg_hello_reply *m)
{
	if (m->instance.len != RX_INSTANCE_BYTES)
		return "daemon instance has the wrong length";
	if (!rx_check_text(m->daemon_version, RX_NAME_MAX))
		return "daemon version is not plain text";
	return NULL;
}

static const char *check_comm_join(const struct rx_msg_comm_join *m)
{
	if (m->id.len != RX_UNIQUE_ID_BYTES)
		return "unique id has the wrong length";
	if (m->n_ranks == 0 || m->n_ranks > RX_MAX_RANKS)
		return "number of ranks out of range";
	if (m->rank >= m->n_ranks)
		return "rank out of range";
	if (!rx_check_text(m->name, RX_NAME_MAX))
		return "communicator name too long or not plain text";
	if (m->cpus.len > RX_CPUS_BYTES)
		return "set of CPUs too long";
	if (m->device.len != 0 && m->device.len != RX_GPU_UUID_BYTES)
		return "number of a device has the wrong length";
	return NULL;
}

static const char *check_error(const struct rx_msg_error *m)
{
	if (m->code <= RX_OK)
		return "error without an error code";
	if (!rx_check_text(m->text, RX_ERROR_TEXT_MAX))
		return "error text too long or not plain text";
	return NULL;
}

/* The path of the socket is the operator's, in whatever encoding: only its length counts. */
static const char *check_status(const struct rx_msg_admin_status_reply *m)
{
	if (!rx_check_text(m->version, RX_NAME_MAX) || !rx_check_text(m->state, RX_NAME_MAX) ||
		!rx_check_text(m->backend, RX_NAME_MAX))
		return "status of the daemon is not plain text";
	if (strlen(m->socket) > RX_ERROR_TEXT_MAX)
		return "path of the socket too long";
	for (size_t i = 0; i < m->n_limits; i++)
		if (!rx_check_text(m->limits[i].name, RX_NAME_MAX))
			return "name of a limit is not plain text";
	return NULL;
}

static const char *check_sessions(const struct rx_msg_admin_sessions_reply *m)
{
	for (size_t i = 0; i < m->n_sessions; i++)
		if (!rx_check_text(m->sessions[i].program, RX_NAME_MAX))
			return "program name too long or not plain text";
	return NULL;
}

static const char *check_rank_info(const struct rx_rank_info *rank, uint32_t n_ranks)
{
	if (rank->rank >= n_ranks)
		return "rank out of range";
	if (!rx_check_text(rank->status, RX_NAME_MAX) ||
		!rx_check_text(rank->op, RX_ERROR_TEXT_MAX))
		return "state of a rank is not plain text";
	return NULL;
}

static const char *check_comm_info(const struct rx_comm_info *comm)
{
	const char *why = NULL;

	if (comm->n_ranks > RX_MAX_RANKS || comm->n_members > comm->n_ranks)
		return "communicator with too many ranks";
	if (!rx_check_text(comm->name, RX_NAME_MAX) || !rx_check_text(comm->state, RX_NAME_MAX) ||
		!rx_check_text(comm->shares, RX_NAME_MAX) ||
		!rx_check_text(comm->precision, RX_ERROR_TEXT_MAX) ||
		!rx_check_text(comm->kernels, RX_ERROR_TEXT_MAX) ||
		!rx_check_text(comm->reason, RX_ERROR_TEXT_MAX))
		return "state of a communicator is not plain text";
	for (size_t i = 0; i < comm->n_members && !why; i++)
		why = check_rank_info(&comm->members[i], comm->n_ranks);
	return why;
}

static const char *check_comms(const struct rx_msg_admin_comms_reply *m)
{
	const char *why = NULL;

	for (size_t i = 0; i < m->n_comms && !why; i++)
		why = check_comm_info(&m->comms[i]);
	return why;
}

/* Paths of files are the operator's, in whatever encoding: only their length counts. */
static const char *check_tuning(const struct rx_msg_admin_tuning_reply *m)
{
	if (strlen(m->dir) > RX_ERROR_TEXT_MAX)
		return "path of the tuning files too long";
	for (size_t i = 0; i < m->n_rows; i++) {
		const struct rx_tuning_row *row = &m->rows[i];
		const char *const texts[] = {row->flat_max_from, row->flat_max_shared_from,
			row->chunk_from, row->direct_min_from, row->stream_min_from,
			row->low_precision_min_from, row->single_min_from,
			row->device_flat_max_from, row->device_tree_min_from,
			row->device_slots_min_from, row->device_push_min_from};

		if (row->ranks == 0 || row->ranks > RX_MAX_RANKS)
			return "number of ranks out of range";
		for (size_t t = 0; t < RX_ARRAY_SIZE(texts); t++)
			if (strlen(texts[t]) > RX_ERROR_TEXT_MAX)
				return "source of a threshold too long";
	}
	return NULL;
}

static const char *check_topology(const struct rx_msg_admin_topology_reply *m)
{
	for (size_t i = 0; i < m->n_objects; i++)
		if (!rx_check_text(m->objects[i].kind, RX_NAME_MAX) ||
			!rx_check_text(m->objects[i].cpus, RX_FRAME_MAX))
			return "part of the node is not plain text";
	return NULL;
}

/* What the numbers mean is the backend's to check. */
static const char *check_gpu_register(const struct rx_msg_gpu_register *m)
{
	if (m->n_pieces == 0 || m->n_pieces > RX_GPU_PIECES_MAX)
		return "number of pieces out of range";
	for (size_t i = 0; i < m->n_pieces; i++) {
		const struct rx_gpu_piece *piece = &m->pieces[i];

		if (piece->bytes == 0 || piece->uuid.len != RX_GPU_UUID_BYTES ||
			piece->handle.len > RX_GPU_HANDLE_MAX)
			return "a piece of device memory that makes no sense";
	}
	return m->rows.len <= RX_GPU_ROWS_MAX ? NULL : "rows of a sample too long";
}

static const char *check_slab_reply(const struct rx_msg_slab_reply *m)
{
	if (m->uuid.len != RX_GPU_UUID_BYTES || m->handle.len != RX_GPU_HANDLE_MAX ||
		m->rows.len != RX_SLAB_ROWS || m->bytes < RX_SLAB_ROWS || m->part_bytes == 0 ||
		!rx_range_ok(m->part_offset, m->part_bytes, m->bytes))
		return "a slab that makes no sense";
	return NULL;
}

static const char *check_kernels_ready(const struct rx_msg_kernels_ready *m)
{
	return rx_check_text(m->why, RX_DEVICE_TEXT_MAX) ? NULL
							 : "reason too long or not plain text";
}

static const char *check_device(const struct rx_device_info *device)
{
	if (device->index >= RX_GPU_DEVICES_MAX || device->uuid.len != RX_GPU_UUID_BYTES)
		return "number of a device out of range";
	if (!rx_check_text(device->name, RX_NAME_MAX) ||
		!rx_check_text(device->arch, RX_NAME_MAX) ||
		!rx_check_text(device->pci, RX_NAME_MAX) ||
		!rx_check_text(device->state, RX_NAME_MAX) ||
		!rx_check_text(device->error, RX_DEVICE_TEXT_MAX) ||
		!rx_check_text(device->copied, RX_DEVICE_TEXT_MAX) ||
		!rx_check_text(device->direct, RX_DEVICE_TEXT_MAX))
		return "state of a device is not plain text";
	return NULL;
}

static const char *check_devices(const struct rx_msg_admin_devices_reply *m)
{
	const char *why = NULL;

	if (!rx_check_text(m->state, RX_NAME_MAX) || !rx_check_text(m->backend, RX_NAME_MAX) ||
		!rx_check_text(m->reason, RX_ERROR_TEXT_MAX))
		return "state of the devices is not plain text";
	for (size_t i = 0; i < m->n_devices && !why; i++)
		why = check_device(&m->devices[i]);
	return why;
}

const char *rx_check_msg(const struct rx_msg *msg)
{
	switch (msg->type) {
	case RX_MSG_HELLO:
		return check_hello(&msg->hello);
	case RX_MSG_HELLO_REPLY:
		return check_hello_reply(&msg->hello_reply);
	case RX_MSG_ERROR:
		return check_error(&msg->error);
	case RX_MSG_UNIQUE_ID_REPLY:
		return msg->unique_id_reply.id.len == RX_UNIQUE_ID_BYTES
			       ? NULL
			       : "unique id has the wrong length";
	case RX_MSG_COMM_JOIN:
		return check_comm_join(&msg->comm_join);
	case RX_MSG_MEM_ALLOC:
		return msg->mem_alloc.bytes > 0 ? NULL : "allocation of 0 bytes";
	case RX_MSG_MEM_REGISTER:
		return msg->mem_register.bytes > 0 ? NULL : "registration of 0 bytes";
	case RX_MSG_GPU_REGISTER:
		return check_gpu_register(&msg->gpu_register);
	case RX_MSG_SLAB_GET:
		return msg->slab_get.rank < RX_MAX_RANKS ? NULL : "rank out of range";
	case RX_MSG_SLAB_REPLY:
		return check_slab_reply(&msg->slab_reply);
	case RX_MSG_KERNELS_READY:
		return check_kernels_ready(&msg->kernels_ready);
	case RX_MSG_ADMIN_STATUS_REPLY:
		return check_status(&msg->admin_status_reply);
	case RX_MSG_ADMIN_SESSIONS_REPLY:
		return check_sessions(&msg->admin_sessions_reply);
	case RX_MSG_ADMIN_COMMS_REPLY:
		return check_comms(&msg->admin_comms_reply);
	case RX_MSG_ADMIN_TUNING_REPLY:
		return check_tuning(&msg->admin_tuning_reply);
	case RX_MSG_ADMIN_TOPOLOGY_REPLY:
		return check_topology(&msg->admin_topology_reply);
	case RX_MSG_ADMIN_DEVICES_REPLY:
		return check_devices(&msg->admin_devices_reply);
	default:
		return NULL;
	}
}
