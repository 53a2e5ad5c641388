/* SPDX-License-Identifier: MIT */
/* Operations as callers hold them: one, or several that are waited for as one. */
#include "op_state.h"

#include "comm.h"
#include "err.h"
#include "session.h"
#include "../shm/rx_clock.h"

#include <stdio.h>
#include <stdlib.h>

struct op_parts {
	struct rcclx_op *handle; /* what the caller gets */
	uint32_t n;
	rcclx_result started; /* first error of starting them, with its text */
	char why[ERR_TEXT_BYTES];
	struct rcclx_op *ops[];
};

struct op_parts *op_parts_new(uint32_t n_max)
{
	struct op_parts *parts =
		calloc(1, sizeof(struct op_parts) + n_max * sizeof(struct rcclx_op *));

	if (!parts)
		return NULL;
	/* Now, because what is started cannot be taken back for lack of memory later. */
	parts->handle = calloc(1, sizeof(*parts->handle));
	if (!parts->handle) {
		free(parts);
		return NULL;
	}
	parts->handle->parts = parts;
	return parts;
}

void op_parts_discard(struct op_parts *parts)
{
	if (!parts)
		return;
	free(parts->handle);
	free(parts);
}

void op_parts_add(struct op_parts *parts, struct rcclx_op *op)
{
	parts->ops[parts->n++] = op;
}

rcclx_result op_parts_join(struct op_parts *parts, rcclx_result started, struct rcclx_op **op_p)
{
	bool alone = parts->n == 1 && started == RCCLX_OK;

	if (alone || (started != RCCLX_OK && parts->n == 0)) {
		if (alone)
			*op_p = parts->ops[0];
		op_parts_discard(parts);
		return started;
	}
	parts->started = started;
	if (started != RCCLX_OK)
		(void)snprintf(parts->why, sizeof(parts->why), "%s", rcclx_last_error());
	*op_p = parts->handle;
	return RCCLX_OK;
}

static bool is_finished(const struct rcclx_op *op)
{
	if (!op->parts)
		return op->finished;
	for (uint32_t i = 0; i < op->parts->n; i++)
		if (!op->parts->ops[i]->finished)
			return false;
	return true;
}

/* Of finished parts: the first error, in the order of the calls. */
static rcclx_result parts_result(const struct op_parts *parts)
{
	if (parts->started != RCCLX_OK)
		return err_set(parts->started, "%s", parts->why);
	for (uint32_t i = 0; i < parts->n; i++)
		if (parts->ops[i]->result != RCCLX_OK)
			return op_again(parts->ops[i]);
	return RCCLX_OK;
}

static rcclx_result wait_any(struct rcclx_op *op, uint64_t deadline_ns)
{
	if (!op->parts)
		return op_wait_until(op, deadline_ns);
	for (uint32_t i = 0; i < op->parts->n; i++) {
		rcclx_result r = op_wait_until(op->parts->ops[i], deadline_ns);

		if (!op->parts->ops[i]->finished)
			return r;
	}
	return parts_result(op->parts);
}

static rcclx_result usable(const struct rcclx_op *op)
{
	if (!op->parts)
		return session_usable(op->client);
	return op->parts->n > 0 ? session_usable(op->parts->ops[0]->client) : RCCLX_OK;
}

rcclx_result rcclx_op_wait(struct rcclx_op *op, uint64_t timeout_ns)
{
	rcclx_result r = RCCLX_OK;

	if (!op)
		return err_set(RCCLX_ERR_INVALID, "rcclx_op_wait: op is NULL");
	r = usable(op);
	if (r != RCCLX_OK)
		return r;
	return wait_any(op, timeout_ns == 0 ? 0 : rx_deadline_ns(timeout_ns));
}

rcclx_result rcclx_op_test(struct rcclx_op *op)
{
	return rcclx_op_wait(op, 0);
}

static void dispose_any(struct rcclx_op *op)
{
	struct op_parts *parts = op->parts;

	if (!parts) {
		op_dispose(op);
		return;
	}
	for (uint32_t i = 0; i < parts->n; i++)
		op_dispose(parts->ops[i]);
	free(parts);
	free(op);
}

rcclx_result rcclx_op_free(struct rcclx_op *op)
{
	rcclx_result r = RCCLX_OK;

	if (!op)
		return RCCLX_OK;
	r = usable(op);
	if (r != RCCLX_OK)
		return r;
	if (!is_finished(op))
		(void)wait_any(op, 0);
	if (!is_finished(op))
		return err_set(RCCLX_ERR_BUSY,
			"rcclx_op_free: the operation is not complete; wait for it, or abort the "
			"communicator");
	dispose_any(op);
	return RCCLX_OK;
}

static rcclx_result give_up_any(struct rcclx_op *op)
{
	struct op_parts *parts = op->parts;

	if (!parts)
		return op_give_up(op);
	/* The first that misses its time aborts its communicator; others of it end with that. */
	for (uint32_t i = 0; i < parts->n; i++) {
		(void)op_wait_until(parts->ops[i], 0);
		if (!parts->ops[i]->finished)
			(void)op_give_up(parts->ops[i]);
	}
	return parts_result(parts);
}

rcclx_result op_finish(struct rcclx_op *op, uint64_t timeout_ns)
{
	rcclx_result r = wait_any(op, timeout_ns == 0 ? RX_FOREVER : rx_deadline_ns(timeout_ns));

	if (!is_finished(op))
		r = give_up_any(op);
	dispose_any(op);
	return r;
}
