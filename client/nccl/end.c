/* SPDX-License-Identifier: MIT */
/* The ways in which a communicator ends. */
#include "api.h"
#include "group.h"
#include "../../shm/rx_clock.h"

/* For what runs in the background, at ncclCommDestroy(). */
#define FLUSH_NS (5 * RX_NS_PER_SEC)

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	ncclResult_t r = comm_enter(comm, "ncclCommFinalize");

	if (r != ncclSuccess)
		return r;
	/* Calls have ended before they return, or before the state says so: nothing is left. */
	atomic_fetch_or(&comm->closed, COMM_FINALIZED);
	comm_leave(comm);
	return ncclSuccess;
}
NCCL_TWIN(ncclCommFinalize);

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	ncclResult_t r = ncclSuccess;

	if (!comm)
		return ncclSuccess;
	r = comm_check(comm, "ncclCommDestroy");
	if (r != ncclSuccess)
		return r;
	/* What an open group keeps does not run before the group ends. */
	if (!group_is_open() && !comm_await_idle(comm, FLUSH_NS))
		comm_stop(comm);
	atomic_fetch_or(&comm->closed, COMM_GONE);
	comm_leave(comm);
	return ncclSuccess;
}
NCCL_TWIN(ncclCommDestroy);

/* What does not return in time, because it is not formed yet, frees the communicator itself. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	ncclResult_t r = ncclSuccess;

	if (!comm)
		return ncclSuccess;
	r = comm_check(comm, "ncclCommAbort");
	if (r != ncclSuccess)
		return r;
	atomic_fetch_or(&comm->closed, COMM_GONE);
	comm_stop(comm);
	comm_leave(comm);
	return ncclSuccess;
}
NCCL_TWIN(ncclCommAbort);

ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
	ncclResult_t r = comm_check(comm, "ncclCommRevoke");

	if (r != ncclSuccess)
		return r;
	if (revokeFlags != NCCL_REVOKE_DEFAULT)
		return error_set(ncclInvalidArgument,
			"ncclCommRevoke: revokeFlags is 0x%x, expected NCCL_REVOKE_DEFAULT (0)",
			(unsigned int)revokeFlags);
	atomic_fetch_or(&comm->closed, COMM_REVOKED);
	comm_stop(comm);
	return ncclSuccess;
}
NCCL_TWIN(ncclCommRevoke);
