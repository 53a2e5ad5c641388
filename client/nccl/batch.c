/* SPDX-License-Identifier: MIT */
/*
 * Order within a batch: communicators are made first, all at the same time, since ranks of one
 * process may wait for each other there. Then sends and receives are handed to the daemon, the
 * collectives of each communicator follow one by one in the caller's order, and last the transfers
 * are waited for.
 *
 * Communicators wait for different peers, and several ranks of one for each other; so each has a
 * thread. A collective in a group is thus executed exactly as one outside of it, and fits to ranks
 * that have called it without a group, or in another one.
 */
#include "batch.h"

#include "together.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- filling ---- */

static bool grow(void *table_p, uint32_t n, uint32_t *room_p, size_t bytes)
{
	void **table = table_p;
	uint32_t room = *room_p ? 2 * *room_p : 8;
	void *grown = NULL;

	if (n < *room_p)
		return true;
	grown = reallocarray(*table, room, bytes);
	if (!grown) {
		(void)error_set(ncclSystemError, "out of memory for a group");
		return false;
	}
	*table = grown;
	*room_p = room;
	return true;
}

bool batch_add_making(struct batch *batch, const struct making *making)
{
	if (!grow(&batch->makings, batch->n_makings, &batch->makings_room, sizeof(*making)))
		return false;
	batch->makings[batch->n_makings++] = *making;
	return true;
}

bool batch_add_call(struct batch *batch, const struct call *call)
{
	struct call kept = *call;

	if (!call_keep(&kept))
		return false;
	if (!grow(&batch->calls, batch->n_calls, &batch->calls_room, sizeof(kept))) {
		free(kept.copies);
		return false;
	}
	batch->calls[batch->n_calls++] = kept;
	return true;
}

/* ---- making communicators ---- */

static void run_making(void *item)
{
	struct making *making = item;

	making->result = making->run(making);
}

static ncclResult_t no_thread(int r)
{
	return error_set(ncclSystemError, "cannot start a thread: %s", strerror(r));
}

static void run_makings(struct batch *batch)
{
	int r = together_run(run_making, batch->makings, sizeof(*batch->makings), batch->n_makings);

	for (uint32_t i = 0; i < batch->n_makings && r; i++)
		batch->makings[i].result = no_thread(r);
}

/* A caller that blocks gets no handle of what could not be made. */
static void end_making(const struct making *making, bool background)
{
	struct ncclComm *child = making->child;

	free(making->excluded);
	if (making->parent) {
		if (background)
			atomic_store(&making->parent->state, making->result);
		comm_leave(making->parent);
	}
	if (!child)
		return;
	if (making->result != ncclSuccess && !background) {
		*making->handle_p = NULL;
		atomic_fetch_or(&child->closed, COMM_GONE);
		comm_leave(child);
	} else {
		atomic_store(&child->state, making->result);
	}
	comm_leave(child);
}

void batch_drop_making(const struct making *making)
{
	struct making dropped = *making;

	dropped.result = ncclSystemError;
	end_making(&dropped, false);
}

/* ---- calls ---- */

/* The collectives of one communicator. */
struct lane {
	const struct batch *batch;
	const struct ncclComm *comm;
	ncclResult_t result;
};

static void note(ncclResult_t *first, ncclResult_t r)
{
	if (*first == ncclSuccess)
		*first = r;
}

static void run_lane(void *item)
{
	struct lane *lane = item;
	const struct batch *batch = lane->batch;

	for (uint32_t i = 0; i < batch->n_calls; i++)
		if (batch->calls[i].comm == lane->comm && !call_moves(&batch->calls[i]))
			note(&lane->result, call_run(&batch->calls[i]));
}

/* Room for n_calls. Return: how many there are. */
static uint32_t find_lanes(const struct batch *batch, struct lane *lanes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < batch->n_calls; i++) {
		const struct ncclComm *comm = batch->calls[i].comm;
		uint32_t known = 0;

		while (known < n && lanes[known].comm != comm)
			known++;
		if (known == n && !call_moves(&batch->calls[i]))
			lanes[n++] = (struct lane){.batch = batch, .comm = comm};
	}
	return n;
}

static ncclResult_t run_collectives(const struct batch *batch)
{
	struct lane *lanes = calloc(batch->n_calls, sizeof(*lanes));
	uint32_t n = lanes ? find_lanes(batch, lanes) : 0;
	ncclResult_t first = ncclSuccess;
	int r = lanes ? together_run(run_lane, lanes, sizeof(*lanes), n) : ENOMEM;

	if (r)
		first = error_set(
			ncclSystemError, "no memory or thread for a group: %s", strerror(r));
	for (uint32_t i = 0; i < n; i++)
		note(&first, lanes[i].result);
	free(lanes);
	return first;
}

static bool any_in_stream(const struct batch *batch)
{
	for (uint32_t i = 0; i < batch->n_calls; i++)
		if (batch->calls[i].in_stream)
			return true;
	return false;
}

/*
 * In the caller's thread, whose device is the current one and whose capture it may be, and without
 * waiting for streams: all are started before any stream waits.
 */
static ncclResult_t run_in_streams(const struct batch *batch)
{
	ncclResult_t first = ncclSuccess;

	(void)rcclx_group_start();
	for (uint32_t i = 0; i < batch->n_calls; i++)
		note(&first, call_run(&batch->calls[i]));
	note(&first, comm_result(batch->calls[0].comm, rcclx_group_end()));
	return first;
}

/* NULL in @op_p: there are none, or none could be started. */
static ncclResult_t start_transfers(const struct batch *batch, struct rcclx_op **op_p)
{
	ncclResult_t first = ncclSuccess;
	uint32_t n = 0;

	for (uint32_t i = 0; i < batch->n_calls; i++)
		n += call_moves(&batch->calls[i]);
	if (n == 0)
		return ncclSuccess;
	(void)rcclx_group_start();
	for (uint32_t i = 0; i < batch->n_calls; i++)
		if (call_moves(&batch->calls[i]))
			note(&first, call_run(&batch->calls[i]));
	note(&first, comm_result(batch->calls[0].comm, rcclx_group_end_start(op_p)));
	return first;
}

static ncclResult_t run_calls(const struct batch *batch)
{
	struct rcclx_op *op = NULL;
	ncclResult_t first = start_transfers(batch, &op);

	note(&first, run_collectives(batch));
	if (op) {
		note(&first, comm_result(batch->calls[0].comm, rcclx_op_wait(op, RCCLX_FOREVER)));
		note(&first, comm_result(batch->calls[0].comm, rcclx_op_free(op)));
	}
	return first;
}

/* ---- the whole ---- */

static void release(struct batch *batch)
{
	free(batch->makings);
	free(batch->calls);
	*batch = (struct batch){0};
}

static ncclResult_t run(struct batch *batch, bool background)
{
	ncclResult_t first = ncclSuccess;
	ncclResult_t calls = ncclSuccess;

	run_makings(batch);
	for (uint32_t i = 0; i < batch->n_makings; i++) {
		note(&first, batch->makings[i].result);
		end_making(&batch->makings[i], background);
	}
	if (batch->n_calls > 0)
		calls = any_in_stream(batch) ? run_in_streams(batch) : run_calls(batch);
	note(&first, calls);
	for (uint32_t i = 0; i < batch->n_calls; i++) {
		if (background)
			atomic_store(&batch->calls[i].comm->state, calls);
		call_end(&batch->calls[i]);
	}
	release(batch);
	return first;
}

static void *run_in_background(void *arg)
{
	struct batch *batch = arg;

	(void)run(batch, true);
	free(batch);
	return NULL;
}

static void set_in_progress(struct batch *batch, ncclResult_t state)
{
	for (uint32_t i = 0; i < batch->n_makings; i++)
		if (batch->makings[i].parent)
			atomic_store(&batch->makings[i].parent->state, state);
	for (uint32_t i = 0; i < batch->n_calls; i++)
		atomic_store(&batch->calls[i].comm->state, state);
}

static ncclResult_t start(struct batch *batch)
{
	struct batch *moved = malloc(sizeof(*moved));
	pthread_t thread;
	int r = 0;

	if (!moved) {
		batch_discard(batch);
		return error_set(ncclSystemError, "out of memory for a group");
	}
	*moved = *batch;
	*batch = (struct batch){0};
	set_in_progress(moved, ncclInProgress);
	r = together_start_thread(&thread, run_in_background, moved);
	if (r != 0) {
		set_in_progress(moved, ncclSuccess);
		batch_discard(moved);
		free(moved);
		return no_thread(r);
	}
	(void)pthread_detach(thread);
	return ncclInProgress;
}

/* A call in a stream returns at once anyway. */
static bool all_block(const struct batch *batch)
{
	if (batch->n_makings == 0 && any_in_stream(batch))
		return true;
	for (uint32_t i = 0; i < batch->n_makings; i++) {
		const struct making *making = &batch->makings[i];
		const struct ncclComm *comm = making->parent ? making->parent : making->child;

		if (!comm->options.blocking)
			return false;
	}
	for (uint32_t i = 0; i < batch->n_calls; i++)
		if (!batch->calls[i].comm->options.blocking)
			return false;
	return true;
}

ncclResult_t batch_execute(struct batch *batch)
{
	return all_block(batch) ? run(batch, false) : start(batch);
}

void batch_discard(struct batch *batch)
{
	for (uint32_t i = 0; i < batch->n_makings; i++) {
		batch->makings[i].result = ncclInvalidUsage;
		end_making(&batch->makings[i], false);
	}
	for (uint32_t i = 0; i < batch->n_calls; i++)
		call_end(&batch->calls[i]);
	release(batch);
}

ncclResult_t batch_start_call(const struct call *call)
{
	struct batch batch = {0};

	if (!batch_add_call(&batch, call)) {
		comm_leave(call->comm);
		return ncclSystemError;
	}
	return batch_execute(&batch);
}
