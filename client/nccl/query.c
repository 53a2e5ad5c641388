/* SPDX-License-Identifier: MIT */
/* What there is to know about the library and about a communicator. */
#include "api.h"
#include "comm.h"

#include <string.h>

ncclResult_t ncclGetVersion(int *version)
{
	if (!version)
		return error_set(ncclInvalidArgument, "ncclGetVersion: version is NULL");
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}
NCCL_TWIN(ncclGetVersion);

/* Numbers that exist once the communicator is formed. */
static ncclResult_t get(
	const ncclComm_t comm, const char *function, size_t offset, const char *what, int *value_p)
{
	ncclResult_t r = comm_check(comm, function);

	if (r == ncclSuccess && !value_p)
		r = error_set(ncclInvalidArgument, "%s: %s is NULL", function, what);
	if (r == ncclSuccess && !atomic_load(&comm->comm))
		r = error_set(ncclInvalidUsage, "%s: comm is not formed", function);
	if (r == ncclSuccess)
		memcpy(value_p, (const char *)comm + offset, sizeof(*value_p));
	return r;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
	return get(comm, "ncclCommCount", offsetof(struct ncclComm, n_ranks), "count", count);
}
NCCL_TWIN(ncclCommCount);

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	return get(comm, "ncclCommUserRank", offsetof(struct ncclComm, rank), "rank", rank);
}
NCCL_TWIN(ncclCommUserRank);

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
	return get(comm, "ncclCommCuDevice", offsetof(struct ncclComm, device), "device", device);
}
NCCL_TWIN(ncclCommCuDevice);

static ncclResult_t async_error(const struct ncclComm *comm)
{
	int32_t state = atomic_load(&comm->state);

	/* What was in it when it was revoked has failed, as it should. */
	if (state != ncclInProgress && (atomic_load(&comm->closed) & COMM_REVOKED))
		return ncclSuccess;
	if (state != ncclSuccess)
		return (ncclResult_t)state;
	return error_quiet(
		rcclx_comm_status(atomic_load(&comm->comm)), comm->options.knows_timeout);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
	ncclResult_t r = comm_check(comm, "ncclCommGetAsyncError");

	if (r != ncclSuccess)
		return r;
	if (!asyncError)
		return error_set(ncclInvalidArgument, "ncclCommGetAsyncError: asyncError is NULL");
	*asyncError = async_error(comm);
	return ncclSuccess;
}
NCCL_TWIN(ncclCommGetAsyncError);

/* As far as the caller's struct, of whichever version, has room for it. */
static void fill(ncclCommProperties_t *props, const void *values, size_t from, size_t to)
{
	if (props->size < from)
		return;
	memcpy((char *)props + from, (const char *)values + from,
		(props->size < to ? props->size : to) - from);
}

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props)
{
	const size_t first = offsetof(ncclCommProperties_t, rank);
	ncclCommProperties_t values = {0};
	ncclResult_t r = get(comm, "ncclCommQueryProperties", offsetof(struct ncclComm, rank),
		"props", props ? &values.rank : NULL);

	if (r != ncclSuccess)
		return r;
	if (props->magic != NCCL_API_MAGIC || props->size < first)
		return error_set(ncclInvalidArgument,
			"ncclCommQueryProperties: props does not begin as it should: fill it with "
			"its initialiser macro");
	values.nRanks = comm->n_ranks;
	values.cudaDev = comm->device;
	values.nvmlDev = comm->device;
	/* Every rank is a team of its own as far as kernels are concerned. */
	values.nLsaTeams = comm->n_ranks;
	fill(props, &values, first, sizeof(values));
	return ncclSuccess;
}
NCCL_TWIN(ncclCommQueryProperties);

/* ---- teams: the world, and each rank alone ---- */

static ncclTeam_t world(ncclComm_t comm, const char *function)
{
	ncclTeam_t team = {0, 0, 0};

	if (comm_check(comm, function) == ncclSuccess)
		team = (ncclTeam_t){comm->n_ranks, comm->rank, 1};
	return team;
}

ncclTeam_t ncclTeamWorld(ncclComm_t comm)
{
	return world(comm, "ncclTeamWorld");
}
NCCL_TWIN(ncclTeamWorld);

ncclTeam_t ncclTeamRail(ncclComm_t comm)
{
	return world(comm, "ncclTeamRail");
}
NCCL_TWIN(ncclTeamRail);

ncclTeam_t ncclTeamLsa(ncclComm_t comm)
{
	ncclTeam_t team = {0, 0, 0};

	if (comm_check(comm, "ncclTeamLsa") == ncclSuccess)
		team = (ncclTeam_t){1, 0, 1};
	return team;
}
NCCL_TWIN(ncclTeamLsa);

int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank)
{
	if (comm_check(comm, "ncclTeamRankToWorld") != ncclSuccess)
		return -1;
	return comm->rank + (rank - team.rank) * team.stride;
}
NCCL_TWIN(ncclTeamRankToWorld);

int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank)
{
	if (comm_check(comm, "ncclTeamRankToLsa") != ncclSuccess)
		return -1;
	return (rank - team.rank) * team.stride;
}
NCCL_TWIN(ncclTeamRankToLsa);

int ncclLLA2ACalcSlots(int maxElts, int maxEltSize)
{
	(void)maxElts;
	(void)maxEltSize;
	return 0;
}
NCCL_TWIN(ncclLLA2ACalcSlots);

/* ---- GPU memory that a communicator holds: none ---- */

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
	ncclResult_t r = comm_enter(comm, "ncclCommSuspend");

	if (r != ncclSuccess)
		return r;
	if (flags != NCCL_SUSPEND_MEM)
		r = error_set(ncclInvalidArgument,
			"ncclCommSuspend: flags is 0x%x, expected NCCL_SUSPEND_MEM (1)",
			(unsigned int)flags);
	else
		atomic_fetch_or(&comm->closed, COMM_SUSPENDED);
	comm_leave(comm);
	return r;
}
NCCL_TWIN(ncclCommSuspend);

ncclResult_t ncclCommResume(ncclComm_t comm)
{
	ncclResult_t r = comm_check(comm, "ncclCommResume");

	if (r == ncclSuccess)
		atomic_fetch_and(&comm->closed, ~COMM_SUSPENDED);
	return r;
}
NCCL_TWIN(ncclCommResume);

ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)
{
	ncclResult_t r = comm_check(comm, "ncclCommMemStats");

	if (r != ncclSuccess)
		return r;
	if (!value || (unsigned int)stat > ncclStatGpuMemTotal)
		return error_set(ncclInvalidArgument,
			"ncclCommMemStats: stat is %d, expected 0 to %d; value is %p", (int)stat,
			ncclStatGpuMemTotal, (void *)value);
	*value = stat == ncclStatGpuMemSuspended &&
		 (atomic_load(&comm->closed) & COMM_SUSPENDED) != 0;
	return ncclSuccess;
}
NCCL_TWIN(ncclCommMemStats);
