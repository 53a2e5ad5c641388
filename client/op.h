/* SPDX-License-Identifier: MIT */
/* Asynchronous operations: what the daemon executes, through the session's rings. */
#ifndef CLIENT_OP_H
#define CLIENT_OP_H

#include "rcclx.h"
#include "../kernels/coll_counts.h"
#include "../shm/rx_fabric_abi.h"
#include "../shm/rx_list.h"
#include "../shm/rx_ring.h"

#include <pthread.h>

struct op_slot;

/*
 * Operations of one communicator that the daemon matches in their order: its collectives, the sends
 * to one peer, or the receives from one. Under the queue's lock.
 */
struct op_lane {
	struct rx_list waiting; /* of struct rcclx_op: for room in the rings */
	struct rx_list link;    /* of the queue's lanes, while some wait */
	uint32_t n_in_flight;
};

/* The thread that hands waiting operations to the daemon. */
enum op_feeder { OP_FEEDER_NONE, OP_FEEDER_RUNS, OP_FEEDER_ENDED };

/*
 * What is in flight. A slot belongs to an operation from its submission to its completion, so
 * that no more completions can come than the ring has room for.
 */
struct op_queue {
	pthread_mutex_t lock; /* this end of both rings, the slots, lanes, rcclx_op.completed */
	struct rx_ring ring;
	struct op_slot *slots;
	uint32_t n_slots;
	uint32_t n_free;
	uint32_t free_head;   /* n_slots: none */
	uint32_t n_idle;      /* lanes that have nothing in flight */
	struct rx_list lanes; /* those in which operations wait */
	enum op_feeder feeder;
	pthread_t feeder_thread; /* to be joined unless there is none */
	bool stop;
};

/** op_queue_init() - over the session's mapped regions. Return: 0 or -errno. */
RX_WARN_UNUSED int op_queue_init(struct op_queue *queue, const struct rx_map *s,
	const struct rx_map *d, uint32_t sq_entries);

/** op_queue_stop() - end its thread, while what that uses is still there */
void op_queue_stop(struct op_queue *queue);

/** op_queue_deinit() - forget what never completed; callers have freed their operations */
void op_queue_deinit(struct op_queue *queue);

/** op_lanes_open() - of a communicator of @n_ranks. NULL: no memory */
struct op_lane *op_lanes_open(struct op_queue *queue, uint32_t n_ranks);

/** op_lanes_close() - all its operations have been disposed of */
void op_lanes_close(struct op_queue *queue, struct op_lane *lanes, uint32_t n_ranks);

/** op_queue_wake() - let threads that sleep in an operation look around */
void op_queue_wake(const struct op_queue *queue);

/* An operation whose arguments are checked. */
struct op_request {
	struct rx_op_sig sig;
	uint64_t imm;
	const void *send;
	void *recv;
	uint64_t send_bytes; /* 0: the buffer is not looked at */
	uint64_t recv_bytes;
	struct rx_counts
		v; /* variable collectives: the caller's arrays, needed only at the start */
};

/** op_start() - submit; *op_p is the caller's until rcclx_op_free() */
rcclx_result op_start(
	struct rcclx_comm *comm, const struct op_request *request, struct rcclx_op **op_p);

/* Where a call in the order of a stream meets the daemon, and where its memory is. */
struct op_in_stream {
	uint16_t gate;
	bool captured;
	uint32_t send_region;
	uint32_t recv_region;
	uint64_t send_offset;
	uint64_t recv_offset;
};

/**
 * op_start_in_stream() - submit; nobody holds the operation
 *
 * A failure becomes that of the communicator, see op_take_completions(). Each takes one of
 * rcclx_comm.n_in_stream until it is over.
 */
rcclx_result op_start_in_stream(
	struct rcclx_comm *comm, const struct op_request *request, const struct op_in_stream *what);

/** op_take_completions() - see what has become of operations that nobody waits for */
void op_take_completions(struct rcclx_client *client);

/** op_forget_in_stream() - @comm is about to go, though the daemon has not completed all of them */
void op_forget_in_stream(struct rcclx_comm *comm);

/**
 * op_finish() - wait and free: the end of a blocking call
 * @timeout_ns: 0: no limit. When it passes, the communicators concerned are aborted.
 */
rcclx_result op_finish(struct rcclx_op *op, uint64_t timeout_ns);

/* Several operations that are waited for as one: groups. */
struct op_parts;

/** op_parts_new() - for at most @n_max operations; NULL: no memory */
struct op_parts *op_parts_new(uint32_t n_max);

/** op_parts_discard() - nothing was added; NULL is allowed */
void op_parts_discard(struct op_parts *parts);

/** op_parts_add() - hand over a started operation */
void op_parts_add(struct op_parts *parts, struct rcclx_op *op);

/**
 * op_parts_join() - make one operation of them; @parts is consumed
 * @started: how starting them went; its text is set. The operation will end with it at the latest.
 * Return: RCCLX_OK and *op_p; @started when nothing was started.
 */
rcclx_result op_parts_join(struct op_parts *parts, rcclx_result started, struct rcclx_op **op_p);

#endif
