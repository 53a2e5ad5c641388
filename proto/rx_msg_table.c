/* SPDX-License-Identifier: MIT */
/* Facts of each message type, in one table. */
#include "rx_msg.h"

#define NEEDS_SERIAL true
#define MAY_BE_ALONE false

static const struct rx_msg_info table[RX_MSG_TYPE_N] = {
	[RX_MSG_HELLO] = {"Hello", RX_FROM_CLIENT, 0, 0, NEEDS_SERIAL},
	[RX_MSG_PING] = {"Ping", RX_FROM_CLIENT | RX_FROM_ADMIN, 0, 0, NEEDS_SERIAL},
	[RX_MSG_UNIQUE_ID_GET] = {"UniqueIdGet", RX_FROM_CLIENT, 0, 0, NEEDS_SERIAL},
	[RX_MSG_COMM_JOIN] = {"CommJoin", RX_FROM_CLIENT, 0, 0, NEEDS_SERIAL},
	[RX_MSG_COMM_LEAVE] = {"CommLeave", RX_FROM_CLIENT, 0, 0, MAY_BE_ALONE},
	[RX_MSG_COMM_ABORT] = {"CommAbort", RX_FROM_CLIENT, 0, 0, MAY_BE_ALONE},
	[RX_MSG_STALL_HINT] = {"StallHint", RX_FROM_CLIENT, 0, 0, MAY_BE_ALONE},
	[RX_MSG_OVER_BUDGET] = {"OverBudget", RX_FROM_CLIENT, 0, 0, MAY_BE_ALONE},
	[RX_MSG_MEM_ALLOC] = {"MemAlloc", RX_FROM_CLIENT, 0, 0, NEEDS_SERIAL},
	[RX_MSG_MEM_REGISTER] = {"MemRegister", RX_FROM_CLIENT, 1, 1, NEEDS_SERIAL},
	[RX_MSG_MEM_FREE] = {"MemFree", RX_FROM_CLIENT, 0, 0, MAY_BE_ALONE},
	[RX_MSG_MEM_IMPORT] = {"MemImport", RX_FROM_CLIENT, 0, 0, NEEDS_SERIAL},
	/* A descriptor for each piece, or none. */
	[RX_MSG_GPU_REGISTER] = {"GpuRegister", RX_FROM_CLIENT, 0, RX_GPU_PIECES_MAX, NEEDS_SERIAL},
	[RX_MSG_GATES_OPEN] = {"GatesOpen", RX_FROM_CLIENT, 0, 0, NEEDS_SERIAL},
	[RX_MSG_SLAB_GET] = {"SlabGet", RX_FROM_CLIENT, 0, 0, NEEDS_SERIAL},
	[RX_MSG_KERNELS_READY] = {"KernelsReady", RX_FROM_CLIENT, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_STATUS] = {"AdminStatus", RX_FROM_ADMIN, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_SESSIONS] = {"AdminSessions", RX_FROM_ADMIN, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_COMMS] = {"AdminComms", RX_FROM_ADMIN, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_DRAIN] = {"AdminDrain", RX_FROM_ADMIN, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_TUNING] = {"AdminTuning", RX_FROM_ADMIN, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_TOPOLOGY] = {"AdminTopology", RX_FROM_ADMIN, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_DEVICES] = {"AdminDevices", RX_FROM_ADMIN, 0, 0, NEEDS_SERIAL},
	[RX_MSG_OK] = {"Ok", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ERROR] = {"Error", RX_FROM_DAEMON, 0, 0, MAY_BE_ALONE},
	[RX_MSG_HELLO_REPLY] = {"HelloReply", RX_FROM_DAEMON, 3, 3, NEEDS_SERIAL},
	[RX_MSG_PONG] = {"Pong", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
	[RX_MSG_UNIQUE_ID_REPLY] = {"UniqueIdReply", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
	[RX_MSG_COMM_READY] = {"CommReady", RX_FROM_DAEMON, 2, 2, NEEDS_SERIAL},
	/* One descriptor answers MemAlloc, none MemRegister. */
	[RX_MSG_MEM_REPLY] = {"MemReply", RX_FROM_DAEMON, 0, 1, NEEDS_SERIAL},
	[RX_MSG_MEM_IMPORT_REPLY] = {"MemImportReply", RX_FROM_DAEMON, 1, 1, NEEDS_SERIAL},
	[RX_MSG_GPU_REPLY] = {"GpuReply", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
	[RX_MSG_SLAB_REPLY] = {"SlabReply", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_STATUS_REPLY] = {"AdminStatusReply", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_SESSIONS_REPLY] = {"AdminSessionsReply", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_COMMS_REPLY] = {"AdminCommsReply", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_TUNING_REPLY] = {"AdminTuningReply", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_TOPOLOGY_REPLY] = {"AdminTopologyReply", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
	[RX_MSG_ADMIN_DEVICES_REPLY] = {"AdminDevicesReply", RX_FROM_DAEMON, 0, 0, NEEDS_SERIAL},
};

const struct rx_msg_info *rx_msg_info(uint32_t type)
{
	return type < RX_MSG_TYPE_N && table[type].name ? &table[type] : NULL;
}
