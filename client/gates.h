/* SPDX-License-Identifier: MIT */
/*
 * This process's side of rx_gate_abi.h: which gates and bells are in use, and a thread that lets
 * streams go on when the daemon cannot any more.
 */
#ifndef CLIENT_GATES_H
#define CLIENT_GATES_H

#include "rcclx.h"
#include "../shm/rx_base.h"
#include "../shm/rx_list.h"

struct rx_cell;

/* A session's part. */
struct gates {
	struct rx_list link; /* of those that the thread watches; empty: it does not */
	struct rcclx_client *client;
	_Atomic uint32_t opened;
	int fd; /* of the session's socket */
};

/* A gate in use, with addresses for streams. */
struct gate_ref {
	uint32_t number;
	uint64_t value; /* eager: of this use */
	uint64_t ready; /* eager */
	uint64_t done;
	uint64_t bell; /* recorded */
};

/* Where kernels of ours, and the daemon, say what they do. */
struct cell_ref {
	uint32_t number;
	struct rx_cell *cell;
	uint64_t address; /* for kernels */
};

/** gates_init() - nothing is opened yet */
void gates_init(struct gates *gates, struct rcclx_client *client);

/**
 * gates_open() - make the process's gates, on the first call, and tell the session's daemon
 *
 * RCCLX_ERR_INVALID, with the reason: the daemon or the GPU runtime cannot do that.
 */
rcclx_result gates_open(struct rcclx_client *client);

/**
 * gates_close() - the session ends
 *
 * Streams that wait for one of its calls go on. Graphs may still be replayed.
 */
void gates_close(struct gates *gates);

/** gates_take() - for one call of @comm. RCCLX_ERR_LIMIT: all are in use. */
rcclx_result gates_take(struct rcclx_comm *comm, struct gate_ref *ref_p);

/** gates_put() - the daemon has completed the call */
void gates_put(uint32_t number);

/**
 * gates_take_captured() - for a call of @comm that is recorded; never given back
 * @capture, @stream: what is recorded, and through which stream; @capture 0: unknown
 * @position: of the call among those that its stream makes at once
 */
rcclx_result gates_take_captured(struct rcclx_comm *comm, uint64_t capture, const void *stream,
	uint32_t position, struct gate_ref *ref_p);

/** gates_take_cell() - for the kernels of @comm's rank; never given back. After gates_open(). */
rcclx_result gates_take_cell(struct rcclx_comm *comm, struct cell_ref *ref_p);

/** gates_release() - no stream waits for a call of @comm any more, and replays end at once */
void gates_release(const struct rcclx_comm *comm);

/** gates_orphan() - replays of @comm's calls end at once: the daemon does not look any more */
void gates_orphan(const struct rcclx_comm *comm);

#endif
