/* SPDX-License-Identifier: MIT */
/*
 * A thread's open group. At its end all calls are handed to the daemon before any of them is waited
 * for, so that sends and receives, several communicators, and several ranks of one communicator in
 * one thread cannot block each other. A call that cannot be started does not keep the others from
 * being: their peers wait for them.
 */
#include "group.h"

#include "comm.h"
#include "err.h"
#include "stream.h"

#include <stdlib.h>

#define GROUP_CALLS_MAX 65536u

struct group {
	uint32_t depth;
	struct create_list creates;
	struct call *calls;
	uint32_t n_calls;
	uint32_t n_allocated;
};

static _Thread_local struct group group;

bool group_is_open(void)
{
	return group.depth > 0;
}

static rcclx_result keep(const struct call *call)
{
	if (group.n_calls == group.n_allocated) {
		uint32_t n = group.n_allocated ? 2 * group.n_allocated : 16;
		struct call *calls = NULL;

		if (n > GROUP_CALLS_MAX)
			return err_set(RCCLX_ERR_LIMIT, "more than %u calls in one group",
				GROUP_CALLS_MAX);
		calls = reallocarray(group.calls, n, sizeof(*calls));
		if (!calls)
			return err_set(RCCLX_ERR_NO_MEMORY, "out of memory for a group");
		group.calls = calls;
		group.n_allocated = n;
	}
	group.calls[group.n_calls++] = *call;
	return RCCLX_OK;
}

rcclx_result group_add(const struct call *call)
{
	if (call->config.executor == RCCLX_EXECUTOR_INLINE)
		return err_set(RCCLX_ERR_INVALID,
			"RCCLX_EXECUTOR_INLINE in a group: calls in groups are executed by the "
			"daemon");
	return keep(call);
}

rcclx_result group_add_create(const struct create_request *request)
{
	return create_list_add(&group.creates, request);
}

rcclx_result rcclx_group_start(void)
{
	group.depth++;
	return RCCLX_OK;
}

static bool in_stream(const struct call *call)
{
	return (call->config.flags & RCCLX_CALL_IN_STREAM) != 0;
}

/* The longest limit of the calls; one without limit makes the group wait without. */
static uint64_t timeout_of(const struct call *calls, uint32_t n)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (in_stream(&calls[i]))
			continue;
		if (calls[i].config.timeout_ns == 0)
			return 0;
		longest = rx_max_u64(longest, calls[i].config.timeout_ns);
	}
	return longest;
}

/* Start all. The first error is returned; @parts holds what started and has to be waited for. */
static rcclx_result start_all(
	struct op_parts *parts, struct stream_call *streams, const struct call *calls, uint32_t n)
{
	struct err_first first = {0};
	uint32_t n_streams = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct rcclx_op *op = NULL;
		rcclx_result r = RCCLX_OK;

		if (in_stream(&calls[i])) {
			r = stream_begin(&calls[i], i, &streams[n_streams]);
			n_streams += r == RCCLX_OK;
		} else {
			r = call_start_now(&calls[i], &op);
			if (r == RCCLX_OK)
				op_parts_add(parts, op);
		}
		err_first_note(&first, r);
	}
	/* Only now may a stream wait: it has to come to the others. Kernels do not wait for them.
	 */
	err_first_note(&first, stream_launch(streams, n_streams));
	for (uint32_t i = 0; i < n_streams; i++)
		err_first_note(&first, stream_end(&streams[i]));
	return err_first_return(&first);
}

static rcclx_result end(struct rcclx_op **op_p, uint64_t *timeout_ns_p)
{
	struct call *calls = group.calls;
	uint32_t n = group.n_calls;
	struct stream_call *streams = NULL;
	struct op_parts *parts = NULL;
	rcclx_result r = RCCLX_OK;

	group.calls = NULL;
	group.n_calls = group.n_allocated = 0;
	*timeout_ns_p = timeout_of(calls, n);
	parts = op_parts_new(n);
	streams = calloc((size_t)n + 1, sizeof(*streams));
	if (!parts || !streams) {
		op_parts_discard(parts);
		free(streams);
		free(calls);
		return err_set(RCCLX_ERR_NO_MEMORY, "out of memory for a group");
	}
	r = start_all(parts, streams, calls, n);
	free(streams);
	free(calls);
	return op_parts_join(parts, r, op_p);
}

static rcclx_result close_level(const char *function)
{
	if (group.depth == 0)
		return err_set(RCCLX_ERR_INVALID, "%s: no group is open in this thread", function);
	group.depth--;
	return RCCLX_OK;
}

/* Communicators first: calls of the group may not use them yet, but others wait for them. */
static rcclx_result end_creates(void)
{
	struct create_list list = group.creates;

	group.creates = (struct create_list){0};
	return create_list_run(&list);
}

rcclx_result rcclx_group_end(void)
{
	struct err_first first = {0};
	struct rcclx_op *op = NULL;
	uint64_t timeout_ns = 0;
	rcclx_result r = close_level("rcclx_group_end");

	if (r != RCCLX_OK || group.depth > 0)
		return r;
	err_first_note(&first, end_creates());
	if (group.n_calls > 0) {
		r = end(&op, &timeout_ns);
		if (r == RCCLX_OK)
			r = op_finish(op, timeout_ns);
		err_first_note(&first, r);
	}
	return err_first_return(&first);
}

rcclx_result rcclx_group_end_start(struct rcclx_op **op_p)
{
	struct err_first first = {0};
	uint64_t timeout_ns = 0;
	rcclx_result r = RCCLX_OK;

	if (!op_p)
		return err_set(RCCLX_ERR_INVALID, "rcclx_group_end_start: op_p is NULL");
	if (group.depth > 1)
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_group_end_start: this group is inside another one; end it with "
			"rcclx_group_end() and start the outermost");
	r = close_level("rcclx_group_end_start");
	if (r != RCCLX_OK)
		return r;
	err_first_note(&first, end_creates());
	err_first_note(&first, end(op_p, &timeout_ns));
	return err_first_return(&first);
}
