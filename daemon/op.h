/* SPDX-License-Identifier: MIT */
/*
 * Collectives that the daemon executes: matched by number on their communicator, one at a time per
 * communicator, each on a worker. Loop thread only.
 */
#ifndef DAEMON_OP_H
#define DAEMON_OP_H

#include "comm.h"
#include "exec.h"
#include "gate.h"
#include "../kernels/host/host_coll.h"
#include "../kernels/host/host_lowprec.h"
#include "../shm/rx_ring_abi.h"

struct gpu_run;
struct region;

enum op_state {
	OP_QUEUED,       /* others of the communicator come first */
	OP_WAIT_MEMBERS, /* the next one: waits for ranks to post it */
	OP_RUNNING,      /* on a worker */
	OP_DONE,
	OP_FAILED,
	_OP_STATE_N
};

/* One rank's side. */
struct op_part {
	bool posted;
	bool answered; /* has got its completion */
	bool bad;      /* its entry was refused */
	uint32_t opno;
	uint64_t user_data;
	struct rx_op_sig sig;
	struct region *send; /* references; NULL: no data */
	struct region *recv;
	uint64_t send_offset;
	uint64_t recv_offset;
	uint64_t *words;  /* variable collectives: scalar, counts, displacements */
	struct gate gate; /* of a call in the order of a stream */
};

struct op {
	struct rx_list link; /* of comm->ops */
	struct comm *comm;
	uint64_t number;
	enum op_state state;
	uint32_t n_posted;
	uint64_t wait_start_ns; /* since when it waits as the next one */
	bool reported;          /* as waiting for ranks */
	/* Belong to the worker while it is RUNNING. */
	struct exec_job job;
	struct host_coll_args args;
	struct host_lowprec lowprec; /* if args points to it */
	int run_result;
	struct gpu_run *gpu; /* NULL: no device takes part */
	/* Of args, by rank. */
	const void **send;
	void **recv;
	uint64_t *scalars;
	struct rx_counts *counts; /* what the parts' words say */
	struct op_part parts[];
};

/**
 * op_post() - @member submits its next op
 * @send, @recv: mapped regions, NULL when the entry moves no data; references are taken
 * @words: of a variable collective, checked; copied. Not looked at in others, or when @bad.
 * @bad: the entry is not to be executed: it fails, for this rank at once, for others when they post
 * @gate: of a call in the order of a stream; a reference is taken
 */
void op_post(struct member *member, const struct rx_sqe *sqe, struct region *send,
	struct region *recv, const uint64_t *words, bool bad, const struct gate *gate);

/** op_fail_all() - the communicator has been aborted: complete what is queued, cancel what runs */
void op_fail_all(struct comm *comm);

/** op_member_gone() - @member will post nothing more: fail what misses it */
void op_member_gone(struct member *member);

/** op_missing() - bitmap of the ranks that the next op waits for; 0: it does not */
uint64_t op_missing(const struct comm *comm);

/** op_waiting() - the op that waits for ranks, or NULL */
struct op *op_waiting(const struct comm *comm);

/** op_pending_of() - first queued op that @poster has posted and @missing has not, or NULL */
const struct op_part *op_pending_of(const struct comm *comm, uint32_t poster, uint32_t missing);

/** op_on_timer() - late ranks and deadlines (a loop_timer_fn; @comm is the owner) */
void op_on_timer(void *comm);

#endif
