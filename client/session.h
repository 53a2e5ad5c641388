/* SPDX-License-Identifier: MIT */
/* A connection as callers know it: socket, rings, memory, operations. */
#ifndef CLIENT_SESSION_H
#define CLIENT_SESSION_H

#include "rcclx.h"
#include "bounce.h"
#include "conn.h"
#include "gates.h"
#include "gpu.h"
#include "mem.h"
#include "op.h"
#include "stage.h"

struct rcclx_client {
	uint64_t epoch; /* of fork_guard.h */
	struct conn conn;
	uint64_t session_id;
	uint64_t max_alloc_bytes;
	struct rx_map s_map; /* submissions: writable */
	struct rx_map d_map; /* completions: read-only */
	int doorbell;
	struct op_queue ops;
	struct mem_table mem;
	struct bounce_cache bounce;
	struct gpu_table gpu;
	struct gates gates;
	struct stages stages;
	_Atomic uint32_t n_comms;
};

/** session_usable() - RCCLX_ERR_FORKED in a forked child, with text; else RCCLX_OK. Cheap. */
rcclx_result session_usable(const struct rcclx_client *client);

/** session_lost() - has the daemon ended the session, or died? One poll(2) at most. No text. */
bool session_lost(struct rcclx_client *client);

/** session_lost_error() - RCCLX_ERR_DAEMON_LOST with its text */
rcclx_result session_lost_error(const struct rcclx_client *client);

#endif
