/* SPDX-License-Identifier: MIT */
/* Numbers of the control protocol: versions, features, message types, limits. */
#ifndef RX_PROTO_H
#define RX_PROTO_H

#include "../shm/rx_base.h"

#define RX_PROTO_VERSION_MIN 1u
#define RX_PROTO_VERSION_MAX 1u
#define RX_PROTO_FEATURES    0ull

/* Read back wrong by another byte order or word size. */
#define RX_ABI_MAGIC (0x52434c00u | (uint32_t)sizeof(void *))

#define RX_UNIQUE_ID_BYTES 128u
#define RX_INSTANCE_BYTES  16u
#define RX_NAME_MAX        64u /* program and communicator names, longest, without NUL */
#define RX_ERROR_TEXT_MAX  1024u
#define RX_CPUS_BYTES      128u /* longest set of CPUs: the first 1024 */

/* Device memory: what kernels/rx_backend.h calls exports and samples, as they travel. */
#define RX_GPU_UUID_BYTES  16u
#define RX_GPU_HANDLE_MAX  64u
#define RX_GPU_ROWS_MAX    4096u
#define RX_SLAB_ROWS       128u /* that prove a slab: 16 different words */
#define RX_GPU_PIECES_MAX  16u  /* of one buffer; each may bring a descriptor */
#define RX_GPU_DEVICES_MAX 64u
#define RX_DEVICE_TEXT_MAX 256u

/* Packet: 16-byte header, then the payload. */
#define RX_FRAME_MAX     (64u * 1024) /* header included */
#define RX_FRAME_FDS_MAX 16u
#define RX_DECODE_ARENA  (256u * 1024) /* most memory that decoding one message may take */
#define RX_FRAME_MAGIC   0x5852u       /* "RX" */

struct rx_frame_header {
	uint16_t magic;
	uint16_t type;   /* enum rx_msg_type */
	uint32_t bytes;  /* of the payload */
	uint32_t serial; /* replies carry the request's; 0 in messages nobody answers */
	uint16_t n_fds;
	uint16_t reserved; /* 0 */
};

enum rx_msg_type {
	RX_MSG_NONE = 0,
	/* client -> daemon */
	RX_MSG_HELLO = 1,
	RX_MSG_PING = 2,
	RX_MSG_UNIQUE_ID_GET = 3,
	RX_MSG_COMM_JOIN = 4,
	RX_MSG_COMM_LEAVE = 5,
	RX_MSG_COMM_ABORT = 6,
	RX_MSG_STALL_HINT = 7,
	RX_MSG_MEM_ALLOC = 8,
	RX_MSG_MEM_REGISTER = 9,
	RX_MSG_MEM_FREE = 10,
	RX_MSG_MEM_IMPORT = 11,
	RX_MSG_OVER_BUDGET = 12,
	RX_MSG_GPU_REGISTER = 13,
	RX_MSG_GATES_OPEN = 14,
	RX_MSG_SLAB_GET = 15,
	RX_MSG_KERNELS_READY = 16,
	/* admin -> daemon */
	RX_MSG_ADMIN_STATUS = 32,
	RX_MSG_ADMIN_SESSIONS = 33,
	RX_MSG_ADMIN_COMMS = 34,
	RX_MSG_ADMIN_DRAIN = 35,
	RX_MSG_ADMIN_TUNING = 36,
	RX_MSG_ADMIN_TOPOLOGY = 37,
	RX_MSG_ADMIN_DEVICES = 38,
	/* daemon -> client, admin */
	RX_MSG_OK = 64,
	RX_MSG_ERROR = 65,
	RX_MSG_HELLO_REPLY = 66,
	RX_MSG_PONG = 67,
	RX_MSG_UNIQUE_ID_REPLY = 68,
	RX_MSG_COMM_READY = 69,
	RX_MSG_MEM_REPLY = 70,
	RX_MSG_MEM_IMPORT_REPLY = 71,
	RX_MSG_GPU_REPLY = 72,
	RX_MSG_SLAB_REPLY = 73,
	RX_MSG_ADMIN_STATUS_REPLY = 96,
	RX_MSG_ADMIN_SESSIONS_REPLY = 97,
	RX_MSG_ADMIN_COMMS_REPLY = 98,
	RX_MSG_ADMIN_TUNING_REPLY = 99,
	RX_MSG_ADMIN_TOPOLOGY_REPLY = 100,
	RX_MSG_ADMIN_DEVICES_REPLY = 101,
	RX_MSG_TYPE_N
};

#endif
