/* SPDX-License-Identifier: MIT */
/*
 * Between plain structs and protobuf-c's. A row of the table below joins a message type, its
 * generated descriptor, and the pairs of fields that correspond. Rows with scalars and texts only
 * are copied field by field from that list; the lists of the admin replies nest.
 */
#include "rx_msg.h"

#include "rx_check.h"
#include "proto/rcclx.pb-c.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum field_kind {
	FIELD_U32, /* uint32, int32, fixed32 */
	FIELD_U64,
	FIELD_BOOL,
	FIELD_TEXT,
	FIELD_BYTES,
	FIELD_LIST, /* repeated message: pointer and count on both sides */
};

struct field_pair {
	enum field_kind kind;
	uint32_t ours;   /* offset in our struct */
	uint32_t theirs; /* offset in the generated struct */
	uint32_t ours_n; /* FIELD_LIST: offset of the count */
	uint32_t theirs_n;
	const struct layout *element; /* FIELD_LIST */
};

struct layout {
	const ProtobufCMessageDescriptor *descriptor;
	size_t size; /* of our struct */
	const struct field_pair *fields;
	size_t n_fields;
};

#define PAIR(kind, our, their, name)                                                               \
	{                                                                                          \
		kind, offsetof(our, name), offsetof(their, name), 0, 0, NULL                       \
	}
#define U32(our, their, name)   PAIR(FIELD_U32, our, their, name)
#define U64(our, their, name)   PAIR(FIELD_U64, our, their, name)
#define BOOL(our, their, name)  PAIR(FIELD_BOOL, our, their, name)
#define TEXT(our, their, name)  PAIR(FIELD_TEXT, our, their, name)
#define BYTES(our, their, name) PAIR(FIELD_BYTES, our, their, name)
#define LIST(our, our_n, their, name, element)                                                     \
	{                                                                                          \
		FIELD_LIST, offsetof(our, name), offsetof(their, name), offsetof(our, our_n),      \
			offsetof(their, n_##name), element                                         \
	}

#define LAYOUT(name, our, generated, ...)                                                          \
	static const struct field_pair name##_fields[] = {__VA_ARGS__};                            \
	static const struct layout name##_layout = {&rcclx__##generated##__descriptor,             \
		sizeof(our), name##_fields, RX_ARRAY_SIZE(name##_fields)}

#define EMPTY_LAYOUT(name, generated)                                                              \
	static const struct layout name##_layout = {&rcclx__##generated##__descriptor, 0, NULL, 0}

EMPTY_LAYOUT(unique_id_get, unique_id_get);
EMPTY_LAYOUT(admin_status, admin_status);
EMPTY_LAYOUT(admin_drain, admin_drain);
EMPTY_LAYOUT(ok, ok);

#define O struct rx_msg_hello
#define T Rcclx__Hello
LAYOUT(hello, O, hello, U32(O, T, version_min), U32(O, T, version_max), U64(O, T, features),
	U32(O, T, abi), TEXT(O, T, program), U32(O, T, sq_entries), U64(O, T, pid));
#undef O
#undef T
#define O struct rx_msg_hello_reply
#define T Rcclx__HelloReply
LAYOUT(hello_reply, O, hello_reply, U32(O, T, version), U64(O, T, features), U64(O, T, session_id),
	TEXT(O, T, daemon_version), U32(O, T, sq_entries), BYTES(O, T, instance),
	U64(O, T, max_alloc_bytes));
#undef O
#undef T
LAYOUT(ping, struct rx_msg_ping, ping, U64(struct rx_msg_ping, Rcclx__Ping, token));
LAYOUT(pong, struct rx_msg_ping, pong, U64(struct rx_msg_ping, Rcclx__Pong, token));
#define O struct rx_msg_error
#define T Rcclx__Error
LAYOUT(error, O, error, U32(O, T, code), TEXT(O, T, text), U64(O, T, ranks));
#undef O
#undef T
LAYOUT(unique_id_reply, struct rx_msg_unique_id_reply, unique_id_reply,
	BYTES(struct rx_msg_unique_id_reply, Rcclx__UniqueIdReply, id));
#define O struct rx_msg_comm_join
#define T Rcclx__CommJoin
LAYOUT(comm_join, O, comm_join, BYTES(O, T, id), U32(O, T, n_ranks), U32(O, T, rank),
	U64(O, T, form_timeout_ns), U64(O, T, op_timeout_ns), TEXT(O, T, name), BYTES(O, T, cpus),
	U32(O, T, precision_flags), U32(O, T, precision_sample_every),
	U32(O, T, precision_budget_ppm), U64(O, T, precision_min_bytes), U64(O, T, link_rate),
	BOOL(O, T, gpu), BYTES(O, T, device), BOOL(O, T, concurrent));
#undef O
#undef T
#define O struct rx_msg_comm_ready
#define T Rcclx__CommReady
LAYOUT(comm_ready, O, comm_ready, U32(O, T, member), U64(O, T, comm_id), U64(O, T, arena_bytes),
	U64(O, T, tuning_epoch));
#undef O
#undef T
LAYOUT(comm_leave, struct rx_msg_member, comm_leave,
	U32(struct rx_msg_member, Rcclx__CommLeave, member));
#define O struct rx_msg_comm_abort
#define T Rcclx__CommAbort
LAYOUT(comm_abort, O, comm_abort, U32(O, T, member), U32(O, T, reason));
#undef O
#undef T
LAYOUT(stall_hint, struct rx_msg_member, stall_hint,
	U32(struct rx_msg_member, Rcclx__StallHint, member));
LAYOUT(over_budget, struct rx_msg_member, over_budget,
	U32(struct rx_msg_member, Rcclx__OverBudget, member));
LAYOUT(mem_alloc, struct rx_msg_mem_alloc, mem_alloc,
	U64(struct rx_msg_mem_alloc, Rcclx__MemAlloc, bytes));
#define O struct rx_msg_mem_register
#define T Rcclx__MemRegister
LAYOUT(mem_register, O, mem_register, U64(O, T, bytes), U64(O, T, offset));
#undef O
#undef T
#define O struct rx_msg_mem_reply
#define T Rcclx__MemReply
LAYOUT(mem_reply, O, mem_reply, U32(O, T, handle), U64(O, T, region_id), U64(O, T, bytes));
#undef O
#undef T
LAYOUT(mem_free, struct rx_msg_mem_free, mem_free,
	U32(struct rx_msg_mem_free, Rcclx__MemFree, handle));
#define O struct rx_msg_mem_import
#define T Rcclx__MemImport
LAYOUT(mem_import, O, mem_import, U32(O, T, member), U64(O, T, region_id));
#undef O
#undef T
#define O struct rx_msg_mem_import_reply
#define T Rcclx__MemImportReply
LAYOUT(mem_import_reply, O, mem_import_reply, U64(O, T, bytes), U64(O, T, offset));
#undef O
#undef T
#define O struct rx_gpu_piece
#define T Rcclx__GpuPiece
LAYOUT(gpu_piece, O, gpu_piece, U64(O, T, start), U64(O, T, bytes), U64(O, T, id),
	BYTES(O, T, uuid), U32(O, T, kind), BYTES(O, T, handle));
#undef O
#undef T
#define O struct rx_msg_gpu_register
#define T Rcclx__GpuRegister
LAYOUT(gpu_register, O, gpu_register, LIST(O, n_pieces, T, pieces, &gpu_piece_layout),
	U64(O, T, sample_offset), U64(O, T, sample_bytes), U64(O, T, sample_seed),
	BYTES(O, T, rows), U32(O, T, flags));
#undef O
#undef T
LAYOUT(gates_open, struct rx_msg_gates_open, gates_open,
	U32(struct rx_msg_gates_open, Rcclx__GatesOpen, handle));
#define O struct rx_msg_gpu_reply
#define T Rcclx__GpuReply
LAYOUT(gpu_reply, O, gpu_reply, U32(O, T, handle), U32(O, T, why));
#undef O
#undef T
#define O struct rx_msg_slab_get
#define T Rcclx__SlabGet
LAYOUT(slab_get, O, slab_get, U32(O, T, member), U32(O, T, rank));
#undef O
#undef T
#define O struct rx_msg_slab_reply
#define T Rcclx__SlabReply
LAYOUT(slab_reply, O, slab_reply, U64(O, T, start), U64(O, T, bytes), U64(O, T, id),
	BYTES(O, T, uuid), BYTES(O, T, handle), BYTES(O, T, rows), U64(O, T, part_offset),
	U64(O, T, part_bytes), U32(O, T, max_blocks));
#undef O
#undef T
#define O struct rx_msg_kernels_ready
#define T Rcclx__KernelsReady
LAYOUT(kernels_ready, O, kernels_ready, U32(O, T, member), U32(O, T, cell), TEXT(O, T, why));
#undef O
#undef T
LAYOUT(admin_list, struct rx_msg_admin_list, admin_list,
	U64(struct rx_msg_admin_list, Rcclx__AdminList, after));
#define O struct rx_limit_info
#define T Rcclx__Limit
LAYOUT(limit, O, limit, TEXT(O, T, name), U64(O, T, used), U64(O, T, limit));
#undef O
#undef T
#define O struct rx_msg_admin_status_reply
#define T Rcclx__AdminStatusReply
LAYOUT(admin_status_reply, O, admin_status_reply, TEXT(O, T, version), U64(O, T, pid),
	U64(O, T, uptime_ns), TEXT(O, T, state), TEXT(O, T, socket), TEXT(O, T, backend),
	LIST(O, n_limits, T, limits, &limit_layout), U64(O, T, sessions_total),
	U64(O, T, comms_total), U64(O, T, ops_done), U64(O, T, ops_failed), U64(O, T, log_dropped),
	U64(O, T, violations), U64(O, T, reloads));
#undef O
#undef T
#define O struct rx_session_info
#define T Rcclx__SessionInfo
LAYOUT(session_info, O, session_info, U64(O, T, id), U32(O, T, pid), U32(O, T, uid), U32(O, T, gid),
	TEXT(O, T, program), U64(O, T, connected_ns), U32(O, T, n_members), U32(O, T, n_regions),
	U64(O, T, region_bytes), U64(O, T, ring_bytes), U32(O, T, ops_in_flight),
	U64(O, T, ops_done));
#undef O
#undef T
#define O struct rx_msg_admin_sessions_reply
#define T Rcclx__AdminSessionsReply
LAYOUT(admin_sessions_reply, O, admin_sessions_reply,
	LIST(O, n_sessions, T, sessions, &session_info_layout), BOOL(O, T, more));
#undef O
#undef T
#define O struct rx_rank_info
#define T Rcclx__RankInfo
LAYOUT(rank_info, O, rank_info, U32(O, T, rank), U64(O, T, session_id), U32(O, T, pid),
	U32(O, T, uid), TEXT(O, T, status), U64(O, T, op_seq), TEXT(O, T, op),
	U64(O, T, queued_seq), BOOL(O, T, late));
#undef O
#undef T
#define O struct rx_comm_info
#define T Rcclx__CommInfo
LAYOUT(comm_info, O, comm_info, U64(O, T, id), TEXT(O, T, name), TEXT(O, T, state),
	U32(O, T, n_ranks), U64(O, T, arena_bytes),
	LIST(O, n_members, T, members, &rank_info_layout), U64(O, T, stalled_ns),
	TEXT(O, T, reason), U64(O, T, ops_done), U32(O, T, ops_queued), U64(O, T, age_ns),
	U32(O, T, n_cores), BOOL(O, T, cores_shared), TEXT(O, T, shares), U64(O, T, tuning_epoch),
	TEXT(O, T, precision), BOOL(O, T, over_budget), U64(O, T, precision_ops),
	U64(O, T, exact_bytes), U64(O, T, wire_bytes), U64(O, T, precision_blocks),
	U64(O, T, saturated_blocks), U64(O, T, flushed_blocks), U64(O, T, special_blocks),
	U64(O, T, sampled_blocks), U64(O, T, error_ppm), U64(O, T, worst_error_ppm),
	TEXT(O, T, kernels));
#undef O
#undef T
#define O struct rx_msg_admin_comms_reply
#define T Rcclx__AdminCommsReply
LAYOUT(admin_comms_reply, O, admin_comms_reply, LIST(O, n_comms, T, comms, &comm_info_layout),
	BOOL(O, T, more));
#undef O
#undef T
#define O struct rx_tuning_row
#define T Rcclx__TuningRow
LAYOUT(tuning_row, O, tuning_row, U32(O, T, coll), U32(O, T, ranks), U32(O, T, flat_max),
	U32(O, T, flat_max_shared), U32(O, T, chunk), U64(O, T, direct_min), U64(O, T, stream_min),
	TEXT(O, T, flat_max_from), TEXT(O, T, flat_max_shared_from), TEXT(O, T, chunk_from),
	TEXT(O, T, direct_min_from), TEXT(O, T, stream_min_from), U32(O, T, low_precision_min),
	TEXT(O, T, low_precision_min_from), U32(O, T, single_min), TEXT(O, T, single_min_from),
	U64(O, T, device_flat_max), U64(O, T, device_tree_min), U64(O, T, device_slots_min),
	U64(O, T, device_push_min), TEXT(O, T, device_flat_max_from),
	TEXT(O, T, device_tree_min_from), TEXT(O, T, device_slots_min_from),
	TEXT(O, T, device_push_min_from));
#undef O
#undef T
#define O struct rx_msg_admin_tuning_reply
#define T Rcclx__AdminTuningReply
LAYOUT(admin_tuning_reply, O, admin_tuning_reply, U64(O, T, epoch), TEXT(O, T, dir),
	LIST(O, n_rows, T, rows, &tuning_row_layout), BOOL(O, T, more));
#undef O
#undef T
#define O struct rx_topology_object
#define T Rcclx__TopologyObject
LAYOUT(topology_object, O, topology_object, TEXT(O, T, kind), U32(O, T, index), TEXT(O, T, cpus),
	U32(O, T, n_cores), U64(O, T, bytes));
#undef O
#undef T
#define O struct rx_msg_admin_topology_reply
#define T Rcclx__AdminTopologyReply
LAYOUT(admin_topology_reply, O, admin_topology_reply, U32(O, T, n_packages), U32(O, T, n_numa),
	U32(O, T, n_l3), U32(O, T, n_l2), U32(O, T, n_cores), U32(O, T, n_pus),
	LIST(O, n_objects, T, objects, &topology_object_layout), BOOL(O, T, more));
#undef O
#undef T

#define O struct rx_device_info
#define T Rcclx__DeviceInfo
LAYOUT(device_info, O, device_info, U32(O, T, index), TEXT(O, T, name), TEXT(O, T, arch),
	TEXT(O, T, pci), BYTES(O, T, uuid), U64(O, T, memory_bytes), U32(O, T, n_units),
	U64(O, T, peers), TEXT(O, T, state), TEXT(O, T, error), U64(O, T, n_launches),
	U64(O, T, n_imports), U64(O, T, n_proofs), U64(O, T, mapped_bytes), U32(O, T, n_maps),
	U32(O, T, n_quarantined), TEXT(O, T, copied), U64(O, T, n_ops), U64(O, T, n_op_bytes),
	U64(O, T, n_failures), U64(O, T, scratch_bytes), U64(O, T, scratch_high_bytes),
	U64(O, T, slab_bytes), U64(O, T, slab_used_bytes), U64(O, T, exchange_bytes),
	U64(O, T, n_exchange_ops), TEXT(O, T, direct), U64(O, T, n_staged_ops));
#undef O
#undef T
#define O struct rx_msg_admin_devices_reply
#define T Rcclx__AdminDevicesReply
LAYOUT(admin_devices_reply, O, admin_devices_reply, TEXT(O, T, state), TEXT(O, T, backend),
	TEXT(O, T, reason), LIST(O, n_devices, T, devices, &device_info_layout), BOOL(O, T, more));
#undef O
#undef T

static const struct layout *const layouts[RX_MSG_TYPE_N] = {
	[RX_MSG_HELLO] = &hello_layout,
	[RX_MSG_PING] = &ping_layout,
	[RX_MSG_UNIQUE_ID_GET] = &unique_id_get_layout,
	[RX_MSG_COMM_JOIN] = &comm_join_layout,
	[RX_MSG_COMM_LEAVE] = &comm_leave_layout,
	[RX_MSG_COMM_ABORT] = &comm_abort_layout,
	[RX_MSG_STALL_HINT] = &stall_hint_layout,
	[RX_MSG_OVER_BUDGET] = &over_budget_layout,
	[RX_MSG_MEM_ALLOC] = &mem_alloc_layout,
	[RX_MSG_MEM_REGISTER] = &mem_register_layout,
	[RX_MSG_MEM_FREE] = &mem_free_layout,
	[RX_MSG_MEM_IMPORT] = &mem_import_layout,
	[RX_MSG_GPU_REGISTER] = &gpu_register_layout,
	[RX_MSG_GATES_OPEN] = &gates_open_layout,
	[RX_MSG_SLAB_GET] = &slab_get_layout,
	[RX_MSG_KERNELS_READY] = &kernels_ready_layout,
	[RX_MSG_ADMIN_STATUS] = &admin_status_layout,
	[RX_MSG_ADMIN_SESSIONS] = &admin_list_layout,
	[RX_MSG_ADMIN_COMMS] = &admin_list_layout,
	[RX_MSG_ADMIN_DRAIN] = &admin_drain_layout,
	[RX_MSG_ADMIN_TUNING] = &admin_list_layout,
	[RX_MSG_ADMIN_TOPOLOGY] = &admin_list_layout,
	[RX_MSG_ADMIN_DEVICES] = &admin_list_layout,
	[RX_MSG_OK] = &ok_layout,
	[RX_MSG_ERROR] = &error_layout,
	[RX_MSG_HELLO_REPLY] = &hello_reply_layout,
	[RX_MSG_PONG] = &pong_layout,
	[RX_MSG_UNIQUE_ID_REPLY] = &unique_id_reply_layout,
	[RX_MSG_COMM_READY] = &comm_ready_layout,
	[RX_MSG_MEM_REPLY] = &mem_reply_layout,
	[RX_MSG_MEM_IMPORT_REPLY] = &mem_import_reply_layout,
	[RX_MSG_GPU_REPLY] = &gpu_reply_layout,
	[RX_MSG_SLAB_REPLY] = &slab_reply_layout,
	[RX_MSG_ADMIN_STATUS_REPLY] = &admin_status_reply_layout,
	[RX_MSG_ADMIN_SESSIONS_REPLY] = &admin_sessions_reply_layout,
	[RX_MSG_ADMIN_COMMS_REPLY] = &admin_comms_reply_layout,
	[RX_MSG_ADMIN_TUNING_REPLY] = &admin_tuning_reply_layout,
	[RX_MSG_ADMIN_TOPOLOGY_REPLY] = &admin_topology_reply_layout,
	[RX_MSG_ADMIN_DEVICES_REPLY] = &admin_devices_reply_layout,
};

static const struct layout *layout_of(enum rx_msg_type type)
{
	return (uint32_t)type < RX_MSG_TYPE_N ? layouts[type] : NULL;
}

/*
 * ---- ours to theirs ----
 *
 * The arena of packing is also charged with what only the receiver will allocate, so that a
 * message that could not be decoded is not sent: it would end an innocent session. A page of many
 * small list entries needs far more memory than its bytes on the wire.
 */

/* Decoding a message with a list: protobuf-c's notes, 32 bytes a field seen, in doubling slabs. */
#define SCAN_BYTES  (2u * 32u)
#define SCAN_FIELDS 16u /* most fields beside the list */

static ProtobufCMessage *to_wire(
	const struct layout *layout, const uint8_t *ours, struct rx_arena *arena);

static bool charge(struct rx_arena *arena, size_t bytes)
{
	return rx_arena_alloc(arena, bytes) != NULL;
}

static bool list_to_wire(
	const struct field_pair *f, const uint8_t *ours, uint8_t *theirs, struct rx_arena *arena)
{
	const uint8_t *elements = NULL;
	ProtobufCMessage **list = NULL;
	size_t n = 0;

	memcpy(&n, ours + f->ours_n, sizeof(n));
	memcpy(&elements, ours + f->ours, sizeof(elements));
	if (n > RX_FRAME_MAX)
		return false;
	list = rx_arena_alloc(arena, n * sizeof(*list));
	if (!list || !charge(arena, n * f->element->size) ||
		!charge(arena, (n + SCAN_FIELDS) * SCAN_BYTES))
		return false;
	for (size_t i = 0; i < n; i++) {
		list[i] = to_wire(f->element, elements + i * f->element->size, arena);
		if (!list[i])
			return false;
	}
	memcpy(theirs + f->theirs, &list, sizeof(list));
	memcpy(theirs + f->theirs_n, &n, sizeof(n));
	return true;
}

static bool bytes_to_wire(const uint8_t *from, uint8_t *to, struct rx_arena *arena)
{
	struct rx_bytes bytes;
	ProtobufCBinaryData data;

	memcpy(&bytes, from, sizeof(bytes));
	data.data = (uint8_t *)(uintptr_t)bytes.data;
	data.len = bytes.len;
	memcpy(to, &data, sizeof(data));
	return charge(arena, bytes.len);
}

static bool text_to_wire(const uint8_t *from, uint8_t *to, struct rx_arena *arena)
{
	const char *text = NULL;

	memcpy(&text, from, sizeof(text));
	if (!text)
		text = "";
	memcpy(to, &text, sizeof(text));
	return charge(arena, strlen(text) + 1);
}

static bool field_to_wire(
	const struct field_pair *f, const uint8_t *ours, uint8_t *theirs, struct rx_arena *arena)
{
	const uint8_t *from = ours + f->ours;
	uint8_t *to = theirs + f->theirs;
	protobuf_c_boolean flag = 0;

	switch (f->kind) {
	case FIELD_U32:
		memcpy(to, from, 4);
		return true;
	case FIELD_U64:
		memcpy(to, from, 8);
		return true;
	case FIELD_BOOL:
		flag = *(const bool *)from;
		memcpy(to, &flag, sizeof(flag));
		return true;
	case FIELD_TEXT:
		return text_to_wire(from, to, arena);
	case FIELD_BYTES:
		return bytes_to_wire(from, to, arena);
	case FIELD_LIST:
		return list_to_wire(f, ours, theirs, arena);
	}
	return false;
}

static ProtobufCMessage *to_wire(
	const struct layout *layout, const uint8_t *ours, struct rx_arena *arena)
{
	ProtobufCMessage *message = rx_arena_alloc(arena, layout->descriptor->sizeof_message);

	if (!message)
		return NULL;
	protobuf_c_message_init(layout->descriptor, message);
	for (size_t i = 0; i < layout->n_fields; i++)
		if (!field_to_wire(&layout->fields[i], ours, (uint8_t *)message, arena))
			return NULL;
	return message;
}

/* ---- theirs to ours ---- */

static bool from_wire(const struct layout *layout, const ProtobufCMessage *message, uint8_t *ours,
	struct rx_arena *arena);

static bool list_from_wire(
	const struct field_pair *f, const uint8_t *theirs, uint8_t *ours, struct rx_arena *arena)
{
	ProtobufCMessage *const *list = NULL;
	uint8_t *elements = NULL;
	size_t n = 0;

	memcpy(&n, theirs + f->theirs_n, sizeof(n));
	memcpy(&list, theirs + f->theirs, sizeof(list));
	elements = rx_arena_alloc(arena, n * f->element->size);
	if (!elements)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!from_wire(f->element, list[i], elements + i * f->element->size, arena))
			return false;
	memcpy(ours + f->ours, &elements, sizeof(elements));
	memcpy(ours + f->ours_n, &n, sizeof(n));
	return true;
}

static void bytes_from_wire(const uint8_t *from, uint8_t *to)
{
	ProtobufCBinaryData data;
	struct rx_bytes bytes;

	memcpy(&data, from, sizeof(data));
	bytes.data = data.data;
	bytes.len = data.len;
	memcpy(to, &bytes, sizeof(bytes));
}

static bool field_from_wire(
	const struct field_pair *f, const uint8_t *theirs, uint8_t *ours, struct rx_arena *arena)
{
	const uint8_t *from = theirs + f->theirs;
	uint8_t *to = ours + f->ours;
	protobuf_c_boolean flag = 0;

	switch (f->kind) {
	case FIELD_U32:
		memcpy(to, from, 4);
		return true;
	case FIELD_U64:
		memcpy(to, from, 8);
		return true;
	case FIELD_BOOL:
		memcpy(&flag, from, sizeof(flag));
		*(bool *)to = flag != 0;
		return true;
	case FIELD_TEXT:
		memcpy(to, from, sizeof(const char *));
		return true;
	case FIELD_BYTES:
		bytes_from_wire(from, to);
		return true;
	case FIELD_LIST:
		return list_from_wire(f, theirs, ours, arena);
	}
	return false;
}

static bool from_wire(const struct layout *layout, const ProtobufCMessage *message, uint8_t *ours,
	struct rx_arena *arena)
{
	for (size_t i = 0; i < layout->n_fields; i++)
		if (!field_from_wire(&layout->fields[i], (const uint8_t *)message, ours, arena))
			return false;
	return true;
}

/* ---- public ---- */

/* All union members start where the union does. */
static uint8_t *body(const struct rx_msg *msg)
{
	return (uint8_t *)(uintptr_t)msg + offsetof(struct rx_msg, hello);
}

/* Build the generated struct in @arena; NULL when the message cannot be packed. */
static ProtobufCMessage *build(const struct rx_msg *msg, struct rx_arena *arena)
{
	const struct layout *layout = layout_of(msg->type);

	rx_arena_reset(arena);
	return layout ? to_wire(layout, body(msg), arena) : NULL;
}

int rx_msg_pack(const struct rx_msg *msg, uint8_t *buf, size_t cap, size_t *len_p)
{
	struct rx_arena *arena = malloc(sizeof(*arena));
	ProtobufCMessage *message = NULL;
	int r = RX_MSG_E_TOO_BIG;

	if (!arena)
		return -ENOMEM;
	message = build(msg, arena);
	if (message && protobuf_c_message_get_packed_size(message) <= cap) {
		*len_p = protobuf_c_message_pack(message, buf);
		r = 0;
	}
	free(arena);
	return r;
}

size_t rx_msg_packed_size(const struct rx_msg *msg)
{
	struct rx_arena *arena = malloc(sizeof(*arena));
	ProtobufCMessage *message = arena ? build(msg, arena) : NULL;
	size_t size = message ? protobuf_c_message_get_packed_size(message) : SIZE_MAX;

	free(arena);
	return size;
}

static void *decode_alloc(void *data, size_t bytes)
{
	return rx_arena_alloc(data, bytes);
}

/* The arena goes as a whole. */
static void decode_free(void *data, void *pointer)
{
	(void)data;
	(void)pointer;
}

int rx_msg_unpack(enum rx_msg_type type, uint32_t serial, const uint8_t *payload, size_t len,
	struct rx_arena *arena, struct rx_msg *msg_p, const char **why_p)
{
	const struct layout *layout = layout_of(type);
	ProtobufCAllocator allocator = {decode_alloc, decode_free, arena};
	ProtobufCMessage *message = NULL;
	struct rx_msg msg = {.type = type, .serial = serial};

	rx_arena_reset(arena);
	*why_p = "unknown message type";
	if (!layout)
		return RX_MSG_E_MALFORMED;
	message = protobuf_c_message_unpack(layout->descriptor, &allocator, len, payload);
	if (!message || !from_wire(layout, message, body(&msg), arena)) {
		*why_p = arena->exhausted ? "message needs too much memory" : "malformed message";
		return arena->exhausted ? RX_MSG_E_TOO_BIG : RX_MSG_E_MALFORMED;
	}
	*why_p = rx_check_msg(&msg);
	if (*why_p)
		return RX_MSG_E_MALFORMED;
	*msg_p = msg;
	return 0;
}
