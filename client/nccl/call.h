/* SPDX-License-Identifier: MIT */
/* One call of a collective, a send or a receive: checked, kept in a group, executed. */
#ifndef NCCL_CALL_H
#define NCCL_CALL_H

#include "comm.h"

enum call_kind {
	CALL_ALL_REDUCE,
	CALL_ALL_GATHER,
	CALL_REDUCE_SCATTER,
	CALL_REDUCE,
	CALL_BROADCAST,
	CALL_ALL_TO_ALL,
	CALL_ALL_TO_ALL_V,
	CALL_GATHER,
	CALL_SCATTER,
	CALL_SEND,
	CALL_RECV,
};

/* Of an all-to-all with different counts; elements of each rank. */
enum { CALL_SEND_COUNTS, CALL_SEND_DISPLS, CALL_RECV_COUNTS, CALL_RECV_DISPLS, CALL_ARRAYS };

struct call {
	const char *function;
	enum call_kind kind;
	struct ncclComm *comm; /* entered */
	const void *send;
	void *recv;
	size_t count;
	ncclDataType_t dtype;
	ncclRedOp_t op;
	int root; /* or peer */
	const size_t *arrays[CALL_ARRAYS];
	void *stream;
	bool in_stream;  /* else complete when it returns */
	uint64_t scalar; /* of a reduction that the caller has made; its first bytes */
	size_t *copies;  /* of the arrays, where the call is kept */
};

/**
 * call_issue() - do what the caller asks for, now, in the background, or at the end of the group
 *
 * Return: ncclSuccess; ncclInProgress, on a communicator that does not block; an error, with a text
 */
ncclResult_t call_issue(struct call *call);

/** call_run() - execute; inside a group of librcclx: hand over */
ncclResult_t call_run(const struct call *call);

/** call_moves() - is it a send or a receive? */
bool call_moves(const struct call *call);

/** call_keep() - make it independent of the caller's arrays; false: out of memory, with a text */
bool call_keep(struct call *call);

/** call_end() - it is over: leaves the communicator */
void call_end(struct call *call);

#endif
