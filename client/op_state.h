/* SPDX-License-Identifier: MIT */
/* An operation from the inside: what op.c, op_queue.c and op_parts.c share. */
#ifndef CLIENT_OP_STATE_H
#define CLIENT_OP_STATE_H

#include "err.h"
#include "op.h"
#include "placement.h"

struct rcclx_op {
	struct op_parts *parts; /* several operations in one: nothing else of this is used then */
	struct rcclx_comm
		*comm; /* not to be used once abandoned; in_stream: NULL once it is gone */
	struct rcclx_client *client;
	struct rx_op_sig sig;
	struct rx_sqe sqe;
	struct placement placement;
	/* Under the queue's lock until completed. */
	struct op_lane *lane; /* NULL once abandoned: the communicator may be gone */
	struct rx_list link;  /* of the lane, while it waits for room */
	bool completed;       /* cqe is there */
	bool abandoned;       /* the caller has freed it */
	/* Its caller never had it: a call in the order of a stream. */
	bool in_stream;
	bool captured;
	struct rx_cqe cqe;
	struct rcclx_op *next; /* abandoned ones that have just completed */
	/* Of the thread that waits. */
	bool finished;
	rcclx_result result;
	char text[ERR_TEXT_BYTES];
};

/** op_reap() - take the completions that are there, for whomever; is @op complete? */
bool op_reap(struct rcclx_op *op);

/** op_submit() - hand op->sqe to the daemon, now or when there is room for it */
rcclx_result op_submit(struct rcclx_op *op);

/** op_over_in_stream() - a call in a stream has been completed: note how it ended, and free it */
void op_over_in_stream(struct rcclx_op *op);

/** op_abandon() - the caller has freed it; true: the daemon has nothing more to do with it */
bool op_abandon(struct rcclx_op *op);

/** op_wait_until() - of one operation; RCCLX_ERR_TIMEOUT with op->finished unset: not yet */
rcclx_result op_wait_until(struct rcclx_op *op, uint64_t deadline_ns);

/** op_again() - the result of a finished operation, with its text */
rcclx_result op_again(const struct rcclx_op *op);

/** op_give_up() - the caller's time is over: abort the communicator and finish with that */
rcclx_result op_give_up(struct rcclx_op *op);

/** op_dispose() - free a finished operation, or let it live until the daemon is done with it */
void op_dispose(struct rcclx_op *op);

#endif
