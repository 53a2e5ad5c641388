/* SPDX-License-Identifier: MIT */
/*
 * Messages as plain C structs, and their way to and from the wire. rx_msg.c is the only code that
 * knows the generated protobuf-c types. Fields are explained in rcclx.proto.
 */
#ifndef RX_MSG_H
#define RX_MSG_H

#include "rx_arena.h"
#include "rx_proto.h"

struct rx_bytes {
	const uint8_t *data;
	size_t len;
};

struct rx_msg_hello {
	uint32_t version_min;
	uint32_t version_max;
	uint64_t features;
	uint32_t abi;
	const char *program;
	uint32_t sq_entries;
	uint64_t pid;
};

struct rx_msg_hello_reply {
	uint32_t version;
	uint64_t features;
	uint64_t session_id;
	const char *daemon_version;
	uint32_t sq_entries;
	struct rx_bytes instance;
	uint64_t max_alloc_bytes;
};

struct rx_msg_ping {
	uint64_t token;
};

struct rx_msg_error {
	int32_t code;
	const char *text;
	uint64_t ranks;
};

struct rx_msg_unique_id_reply {
	struct rx_bytes id;
};

struct rx_msg_comm_join {
	struct rx_bytes id;
	uint32_t n_ranks;
	uint32_t rank;
	uint64_t form_timeout_ns;
	uint64_t op_timeout_ns;
	const char *name;
	struct rx_bytes cpus;
	uint32_t precision_flags;
	uint32_t precision_sample_every;
	uint32_t precision_budget_ppm;
	uint64_t precision_min_bytes;
	uint64_t link_rate;
	bool gpu;
	struct rx_bytes device;
	bool concurrent;
};

struct rx_msg_comm_ready {
	uint32_t member;
	uint64_t comm_id;
	uint64_t arena_bytes;
	uint64_t tuning_epoch;
};

struct rx_msg_member {
	uint32_t member;
};

struct rx_msg_comm_abort {
	uint32_t member;
	uint32_t reason;
};

struct rx_msg_mem_alloc {
	uint64_t bytes;
};

struct rx_msg_mem_register {
	uint64_t bytes;
	uint64_t offset;
};

struct rx_msg_mem_reply {
	uint32_t handle;
	uint64_t region_id;
	uint64_t bytes;
};

struct rx_msg_mem_free {
	uint32_t handle;
};

struct rx_msg_mem_import {
	uint32_t member;
	uint64_t region_id;
};

struct rx_msg_mem_import_reply {
	uint64_t bytes;
	uint64_t offset;
};

struct rx_gpu_piece {
	uint64_t start;
	uint64_t bytes;
	uint64_t id;
	struct rx_bytes uuid;
	uint32_t kind;
	struct rx_bytes handle;
};

struct rx_msg_gpu_register {
	struct rx_gpu_piece *pieces;
	size_t n_pieces;
	uint64_t sample_offset;
	uint64_t sample_bytes;
	uint64_t sample_seed;
	struct rx_bytes rows;
	uint32_t flags;
};

struct rx_msg_gates_open {
	uint32_t handle;
};

struct rx_msg_gpu_reply {
	uint32_t handle;
	uint32_t why;
};

struct rx_msg_slab_get {
	uint32_t member;
	uint32_t rank;
};

struct rx_msg_slab_reply {
	uint64_t start;
	uint64_t bytes;
	uint64_t id;
	struct rx_bytes uuid;
	struct rx_bytes handle;
	struct rx_bytes rows;
	uint64_t part_offset;
	uint64_t part_bytes;
	uint32_t max_blocks;
};

struct rx_msg_kernels_ready {
	uint32_t member;
	uint32_t cell;
	const char *why;
};

struct rx_msg_admin_list {
	uint64_t after;
};

struct rx_limit_info {
	const char *name;
	uint64_t used;
	uint64_t limit;
};

struct rx_msg_admin_status_reply {
	const char *version;
	uint64_t pid;
	uint64_t uptime_ns;
	const char *state;
	const char *socket;
	const char *backend;
	struct rx_limit_info *limits;
	size_t n_limits;
	uint64_t sessions_total;
	uint64_t comms_total;
	uint64_t ops_done;
	uint64_t ops_failed;
	uint64_t log_dropped;
	uint64_t violations;
	uint64_t reloads;
};

struct rx_session_info {
	uint64_t id;
	uint32_t pid;
	uint32_t uid;
	uint32_t gid;
	const char *program;
	uint64_t connected_ns;
	uint32_t n_members;
	uint32_t n_regions;
	uint64_t region_bytes;
	uint64_t ring_bytes;
	uint32_t ops_in_flight;
	uint64_t ops_done;
};

struct rx_msg_admin_sessions_reply {
	struct rx_session_info *sessions;
	size_t n_sessions;
	bool more;
};

struct rx_rank_info {
	uint32_t rank;
	uint64_t session_id;
	uint32_t pid;
	uint32_t uid;
	const char *status;
	uint64_t op_seq;
	const char *op;
	uint64_t queued_seq;
	bool late;
};

struct rx_comm_info {
	uint64_t id;
	const char *name;
	const char *state;
	uint32_t n_ranks;
	uint64_t arena_bytes;
	struct rx_rank_info *members;
	size_t n_members;
	uint64_t stalled_ns;
	const char *reason;
	uint64_t ops_done;
	uint32_t ops_queued;
	uint64_t age_ns;
	uint32_t n_cores;
	bool cores_shared;
	const char *shares;
	uint64_t tuning_epoch;
	const char *precision;
	bool over_budget;
	uint64_t precision_ops;
	uint64_t exact_bytes;
	uint64_t wire_bytes;
	uint64_t precision_blocks;
	uint64_t saturated_blocks;
	uint64_t flushed_blocks;
	uint64_t special_blocks;
	uint64_t sampled_blocks;
	uint64_t error_ppm;
	uint64_t worst_error_ppm;
	const char *kernels;
};

struct rx_msg_admin_comms_reply {
	struct rx_comm_info *comms;
	size_t n_comms;
	bool more;
};

struct rx_tuning_row {
	uint32_t coll;
	uint32_t ranks;
	uint32_t flat_max;
	uint32_t flat_max_shared;
	uint32_t chunk;
	uint64_t direct_min;
	uint64_t stream_min;
	uint32_t low_precision_min;
	const char *flat_max_from;
	const char *flat_max_shared_from;
	const char *chunk_from;
	const char *direct_min_from;
	const char *stream_min_from;
	const char *low_precision_min_from;
	uint32_t single_min;
	const char *single_min_from;
	uint64_t device_flat_max;
	uint64_t device_tree_min;
	uint64_t device_slots_min;
	uint64_t device_push_min;
	const char *device_flat_max_from;
	const char *device_tree_min_from;
	const char *device_slots_min_from;
	const char *device_push_min_from;
};

struct rx_msg_admin_tuning_reply {
	uint64_t epoch;
	const char *dir;
	struct rx_tuning_row *rows;
	size_t n_rows;
	bool more;
};

struct rx_topology_object {
	const char *kind;
	uint32_t index;
	const char *cpus;
	uint32_t n_cores;
	uint64_t bytes;
};

struct rx_msg_admin_topology_reply {
	uint32_t n_packages;
	uint32_t n_numa;
	uint32_t n_l3;
	uint32_t n_l2;
	uint32_t n_cores;
	uint32_t n_pus;
	struct rx_topology_object *objects;
	size_t n_objects;
	bool more;
};

struct rx_device_info {
	uint32_t index;
	const char *name;
	const char *arch;
	const char *pci;
	struct rx_bytes uuid;
	uint64_t memory_bytes;
	uint32_t n_units;
	uint64_t peers;
	const char *state;
	const char *error;
	uint64_t n_launches;
	uint64_t n_imports;
	uint64_t n_proofs;
	uint64_t mapped_bytes;
	uint32_t n_maps;
	uint32_t n_quarantined;
	const char *copied;
	uint64_t n_ops;
	uint64_t n_op_bytes;
	uint64_t n_failures;
	uint64_t scratch_bytes;
	uint64_t scratch_high_bytes;
	uint64_t slab_bytes;
	uint64_t slab_used_bytes;
	uint64_t exchange_bytes;
	uint64_t n_exchange_ops;
	const char *direct;
	uint64_t n_staged_ops;
};

struct rx_msg_admin_devices_reply {
	const char *state;
	const char *backend;
	const char *reason;
	struct rx_device_info *devices;
	size_t n_devices;
	bool more;
};

/* Strings are never NULL after unpacking; NULL is packed as "". */
struct rx_msg {
	enum rx_msg_type type;
	uint32_t serial;
	union {
		struct rx_msg_hello hello;
		struct rx_msg_hello_reply hello_reply;
		struct rx_msg_ping ping;
		struct rx_msg_ping pong;
		struct rx_msg_error error;
		struct rx_msg_unique_id_reply unique_id_reply;
		struct rx_msg_comm_join comm_join;
		struct rx_msg_comm_ready comm_ready;
		struct rx_msg_member comm_leave;
		struct rx_msg_comm_abort comm_abort;
		struct rx_msg_member stall_hint;
		struct rx_msg_member over_budget;
		struct rx_msg_mem_alloc mem_alloc;
		struct rx_msg_mem_register mem_register;
		struct rx_msg_mem_reply mem_reply;
		struct rx_msg_mem_free mem_free;
		struct rx_msg_mem_import mem_import;
		struct rx_msg_mem_import_reply mem_import_reply;
		struct rx_msg_gpu_register gpu_register;
		struct rx_msg_gpu_reply gpu_reply;
		struct rx_msg_gates_open gates_open;
		struct rx_msg_slab_get slab_get;
		struct rx_msg_slab_reply slab_reply;
		struct rx_msg_kernels_ready kernels_ready;
		struct rx_msg_admin_list
			admin_list; /* sessions, comms, tuning, topology, devices */
		struct rx_msg_admin_status_reply admin_status_reply;
		struct rx_msg_admin_sessions_reply admin_sessions_reply;
		struct rx_msg_admin_comms_reply admin_comms_reply;
		struct rx_msg_admin_tuning_reply admin_tuning_reply;
		struct rx_msg_admin_topology_reply admin_topology_reply;
		struct rx_msg_admin_devices_reply admin_devices_reply;
	};
};

enum rx_msg_from {
	RX_FROM_CLIENT = 1, /* on the control socket, to the daemon */
	RX_FROM_ADMIN = 2,  /* on the admin socket, to the daemon */
	RX_FROM_DAEMON = 4,
};

struct rx_msg_info {
	const char *name;
	unsigned int from; /* enum rx_msg_from */
	uint32_t fds_min;
	uint32_t fds_max;
	bool needs_serial; /* serial 0 is refused; elsewhere 0 means that nobody waits for an answer
			    */
};

/** rx_msg_info() - facts of a message type; NULL for a number that is none */
const struct rx_msg_info *rx_msg_info(uint32_t type);

enum {
	RX_MSG_E_MALFORMED = 1, /* not a message of this type */
	RX_MSG_E_TOO_BIG = 2,   /* does not fit */
};

/**
 * rx_msg_pack() - payload of @msg into @buf
 * Return: 0 and *len_p; RX_MSG_E_TOO_BIG when @cap bytes do not suffice, when decoding would
 *         need more than RX_DECODE_ARENA, or for a type that is none; -ENOMEM.
 */
RX_WARN_UNUSED int rx_msg_pack(const struct rx_msg *msg, uint8_t *buf, size_t cap, size_t *len_p);

/**
 * rx_msg_packed_size() - bytes that rx_msg_pack() would need; SIZE_MAX when it cannot pack it
 *
 * For whoever sends lists in pages: add entries while the size is at most a frame's payload. Then
 * the receiver can decode the page, too.
 */
size_t rx_msg_packed_size(const struct rx_msg *msg);

/**
 * rx_msg_unpack() - decode and check (rx_check.h) a payload
 * @arena:  reset first; what *msg_p points to lives there
 * @why_p:  receives a static sentence when the message is refused
 * Return: 0; RX_MSG_E_MALFORMED; RX_MSG_E_TOO_BIG it needs more memory than the arena has.
 */
RX_WARN_UNUSED int rx_msg_unpack(enum rx_msg_type type, uint32_t serial, const uint8_t *payload,
	size_t len, struct rx_arena *arena, struct rx_msg *msg_p, const char **why_p);

#endif
