/* SPDX-License-Identifier: MIT */
#include "call.h"

#include "batch.h"
#include "group.h"
#include "place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(size_t) == sizeof(uint64_t), "counts are handed on as they are");

bool call_moves(const struct call *call)
{
	return call->kind == CALL_SEND || call->kind == CALL_RECV;
}

static bool reduces(const struct call *call)
{
	return call->kind == CALL_ALL_REDUCE || call->kind == CALL_REDUCE_SCATTER ||
	       call->kind == CALL_REDUCE;
}

static bool has_root(const struct call *call)
{
	return call->kind == CALL_REDUCE || call->kind == CALL_BROADCAST ||
	       call->kind == CALL_GATHER || call->kind == CALL_SCATTER || call_moves(call);
}

static ncclResult_t bad_op(const struct call *call, const char *why)
{
	return error_set(
		ncclInvalidArgument, "%s: op is %d, %s", call->function, (int)call->op, why);
}

/* A reduction that the caller has made becomes the library's, with its scalar. */
static ncclResult_t resolve_op(struct call *call)
{
	struct redop redop;

	if ((unsigned int)call->op < ncclNumOps)
		return ncclSuccess;
	if (!redops_find(&call->comm->redops, call->op, &redop))
		return bad_op(call,
			"expected 0 to 4, or one that ncclRedOpCreatePreMulSum() has made for this "
			"communicator");
	if (redop.dtype != call->dtype)
		return bad_op(call, "which was made for another datatype");
	call->op = (ncclRedOp_t)RCCLX_PREMUL_SUM;
	return redop_read(&redop, call->function, call->stream, &call->scalar);
}

/* What librcclx cannot know; it checks the rest when the call is executed. */
static ncclResult_t check(struct call *call)
{
	ncclResult_t r =
		place_find(call->function, call->send, call->recv, call->stream, &call->in_stream);

	if (r != ncclSuccess)
		return r;
	if ((unsigned int)call->dtype >= ncclNumTypes)
		return error_set(ncclInvalidArgument, "%s: datatype is %d, expected 0 to %d",
			call->function, (int)call->dtype, ncclNumTypes - 1);
	if (has_root(call) && (call->root < 0 || call->root >= call->comm->n_ranks))
		return error_set(ncclInvalidArgument, "%s: %s is %d, expected 0 to %d",
			call->function, call_moves(call) ? "peer" : "root", call->root,
			call->comm->n_ranks - 1);
	for (int i = 0; call->kind == CALL_ALL_TO_ALL_V && i < CALL_ARRAYS; i++)
		if (!call->arrays[i])
			return error_set(ncclInvalidArgument,
				"%s: an array of counts or displacements is NULL", call->function);
	return reduces(call) ? resolve_op(call) : ncclSuccess;
}

bool call_keep(struct call *call)
{
	size_t n = (size_t)call->comm->n_ranks;

	if (call->kind != CALL_ALL_TO_ALL_V)
		return true;
	call->copies = reallocarray(NULL, n, CALL_ARRAYS * sizeof(size_t));
	if (!call->copies) {
		(void)error_set(ncclSystemError, "%s: out of memory", call->function);
		return false;
	}
	for (size_t i = 0; i < CALL_ARRAYS; i++) {
		memcpy(call->copies + i * n, call->arrays[i], n * sizeof(size_t));
		call->arrays[i] = call->copies + i * n;
	}
	return true;
}

void call_end(struct call *call)
{
	free(call->copies);
	comm_leave(call->comm);
}

ncclResult_t call_issue(struct call *call)
{
	ncclResult_t r = comm_enter(call->comm, call->function);

	if (r != ncclSuccess)
		return group_note(r);
	r = check(call);
	if (r == ncclSuccess && group_is_open())
		return group_add_call(call);
	if (r == ncclSuccess && !call->comm->options.blocking)
		return batch_start_call(call);
	if (r == ncclSuccess)
		r = call_run(call);
	else
		(void)group_note(r);
	comm_leave(call->comm);
	return r;
}

static const uint64_t *array(const struct call *call, int which)
{
	return (const uint64_t *)call->arrays[which];
}

static rcclx_result execute(const struct call *call, const struct rcclx_call_config *config)
{
	struct rcclx_comm *comm = atomic_load_explicit(&call->comm->comm, memory_order_relaxed);
	uint32_t dtype = (uint32_t)call->dtype;
	uint32_t op = (uint32_t)call->op;
	uint32_t root = (uint32_t)call->root;

	switch (call->kind) {
	case CALL_ALL_REDUCE:
		return rcclx_all_reduce(
			comm, call->send, call->recv, call->count, dtype, op, config);
	case CALL_ALL_GATHER:
		return rcclx_all_gather(comm, call->send, call->recv, call->count, dtype, config);
	case CALL_REDUCE_SCATTER:
		return rcclx_reduce_scatter(
			comm, call->send, call->recv, call->count, dtype, op, config);
	case CALL_REDUCE:
		return rcclx_reduce(
			comm, call->send, call->recv, call->count, dtype, op, root, config);
	case CALL_BROADCAST:
		return rcclx_broadcast(
			comm, call->send, call->recv, call->count, dtype, root, config);
	case CALL_ALL_TO_ALL:
		return rcclx_all_to_all(comm, call->send, call->recv, call->count, dtype, config);
	case CALL_ALL_TO_ALL_V:
		return rcclx_all_to_all_v(comm, call->send, array(call, CALL_SEND_COUNTS),
			array(call, CALL_SEND_DISPLS), call->recv, array(call, CALL_RECV_COUNTS),
			array(call, CALL_RECV_DISPLS), dtype, config);
	case CALL_GATHER:
		return rcclx_gather(comm, call->send, call->recv, call->count, dtype, root, config);
	case CALL_SCATTER:
		return rcclx_scatter(
			comm, call->send, call->recv, call->count, dtype, root, config);
	case CALL_SEND:
		return rcclx_send(comm, call->send, call->count, dtype, root, config);
	case CALL_RECV:
		return rcclx_recv(comm, call->recv, call->count, dtype, root, config);
	}
	__builtin_unreachable();
}

ncclResult_t call_run(const struct call *call)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;

	if (call->op != (ncclRedOp_t)RCCLX_PREMUL_SUM && !call->in_stream)
		return comm_result(call->comm, execute(call, NULL));
	if (call->op == (ncclRedOp_t)RCCLX_PREMUL_SUM)
		config.scalar = &call->scalar;
	if (call->in_stream) {
		config.flags = RCCLX_CALL_IN_STREAM;
		config.stream = call->stream;
	}
	return comm_result(call->comm, execute(call, &config));
}
