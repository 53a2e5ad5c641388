/* SPDX-License-Identifier: MIT */
#include "comm.h"

#include "debug.h"
#include "../../shm/rx_base.h"
#include "../../shm/rx_clock.h"

#include <stdlib.h>
#include <time.h>

#define MAGIC   0x6d6d6f63786c6363u
#define POLL_NS (RX_NS_PER_MS / 5)
/* Blocked calls return within 200 ms of an abort. */
#define STOP_NS (150 * RX_NS_PER_MS)

struct ncclComm *comm_new(const struct options *options, int n_ranks, int rank)
{
	struct ncclComm *comm = calloc(1, sizeof(*comm));

	if (!comm) {
		(void)error_set(ncclSystemError, "out of memory for a communicator");
		return NULL;
	}
	comm->magic = MAGIC;
	atomic_init(&comm->refs, 1);
	atomic_init(&comm->state, ncclInProgress);
	comm->options = *options;
	comm->n_ranks = n_ranks;
	comm->rank = rank;
	redops_init(&comm->redops);
	ranges_init(&comm->ranges);
	return comm;
}

static void comm_free(struct ncclComm *comm)
{
	struct rcclx_comm *formed = atomic_load(&comm->comm);

	if (formed && rcclx_comm_destroy(formed) != RCCLX_OK)
		debug_log(DEBUG_WARN, "%s", rcclx_last_error());
	if (comm->connection)
		connection_put(comm->connection);
	redops_deinit(&comm->redops);
	ranges_deinit(&comm->ranges);
	comm->magic = 0;
	free(comm);
}

ncclResult_t comm_check(const struct ncclComm *comm, const char *function)
{
	if (comm && comm->magic == MAGIC && !(atomic_load(&comm->closed) & COMM_GONE))
		return ncclSuccess;
	return error_set(ncclInvalidArgument, "%s: comm (%p) is no communicator, or was destroyed",
		function, (const void *)comm);
}

void comm_again(struct ncclComm *comm)
{
	atomic_fetch_add_explicit(&comm->refs, 1, memory_order_relaxed);
}

void comm_leave(struct ncclComm *comm)
{
	if (atomic_fetch_sub_explicit(&comm->refs, 1, memory_order_acq_rel) == 1)
		comm_free(comm);
}

static ncclResult_t in_progress(const char *function)
{
	return error_set(ncclInvalidUsage,
		"%s: what was started on this communicator before is still in progress: wait until "
		"ncclCommGetAsyncError() reports something else than ncclInProgress",
		function);
}

/* Why comm_enter() refuses. */
static ncclResult_t refuse(const struct ncclComm *comm, const char *function)
{
	uint32_t closed = atomic_load(&comm->closed);
	int32_t state = atomic_load(&comm->state);

	if (state == ncclInProgress)
		return in_progress(function);
	if (closed & COMM_FINALIZED)
		return error_set(ncclInvalidUsage, "%s: comm was finalized", function);
	if (closed & COMM_REVOKED)
		return error_set(ncclInvalidUsage, "%s: comm was revoked: shrink it, or destroy it",
			function);
	if (closed & COMM_SUSPENDED)
		return error_set(ncclInvalidUsage, "%s: comm is suspended: resume it", function);
	return (ncclResult_t)state; /* its text was set when it failed */
}

ncclResult_t comm_enter(struct ncclComm *comm, const char *function)
{
	ncclResult_t r = comm_check(comm, function);

	if (r != ncclSuccess)
		return r;
	if (atomic_load_explicit(&comm->closed, memory_order_relaxed) != 0 ||
		atomic_load_explicit(&comm->state, memory_order_acquire) != ncclSuccess)
		return refuse(comm, function);
	comm_again(comm);
	return ncclSuccess;
}

ncclResult_t comm_enter_failed(struct ncclComm *comm, const char *function)
{
	ncclResult_t r = comm_check(comm, function);

	if (r != ncclSuccess)
		return r;
	if (atomic_load(&comm->state) == ncclInProgress)
		return in_progress(function);
	if (!atomic_load(&comm->comm))
		return error_set(ncclInvalidUsage, "%s: comm was never formed", function);
	comm_again(comm);
	return ncclSuccess;
}

void comm_formed(struct ncclComm *comm, struct rcclx_comm *formed, struct connection *connection)
{
	comm->connection = connection;
	comm->rank = (int)rcclx_comm_rank(formed);
	comm->n_ranks = (int)rcclx_comm_size(formed);
	atomic_store(&comm->comm, formed);
	/* comm_stop() came before there was anything to abort: one of the two sees the other. */
	if (atomic_load(&comm->closed) & COMM_GONE)
		(void)rcclx_comm_abort(formed);
}

bool comm_await_idle(struct ncclComm *comm, uint64_t ns)
{
	uint64_t deadline_ns = rx_deadline_ns(ns);

	while (atomic_load(&comm->refs) > 1) {
		if (rx_now_ns() >= deadline_ns)
			return false;
		(void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
	return true;
}

void comm_stop(struct ncclComm *comm)
{
	struct rcclx_comm *formed = atomic_load(&comm->comm);

	if (formed)
		(void)rcclx_comm_abort(formed);
	(void)comm_await_idle(comm, STOP_NS);
}

ncclResult_t comm_result(const struct ncclComm *comm, rcclx_result result)
{
	return result == RCCLX_OK ? ncclSuccess : error_of(result, comm->options.knows_timeout);
}
