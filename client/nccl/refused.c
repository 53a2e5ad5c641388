/* SPDX-License-Identifier: MIT */
/*
 * What cannot be served: programs find the functions, so that they start, and are told why when
 * they call them.
 */
#include "api.h"
#include "group.h"

static ncclResult_t refuse(const char *function, const char *why)
{
	return group_note(error_set(ncclInvalidUsage, "%s: %s", function, why));
}

#define REFUSED(name, parameters, why)                                                             \
	ncclResult_t name parameters                                                               \
	{                                                                                          \
		return refuse(#name, why);                                                         \
	}                                                                                          \
	NCCL_TWIN(name)

#pragma GCC diagnostic ignored "-Wunused-parameter"

static const char no_growth[] =
	"rcclxd does not let ranks join a communicator that is formed: make a new one of all of them";
static const char one_sided[] =
	"rcclxd has no one-sided operations: use ncclSend() and ncclRecv(), as with NCCL before 2.29";
static const char no_device[] =
	"rcclxd has nothing that kernels could call; ncclCommQueryProperties() says so in "
	"deviceApiSupport";
static const char no_msccl[] = "rcclxd chooses its algorithms itself and loads none";
static const char no_relay[] =
	"rcclxd has no sharded relay: make a communicator for each group, by ncclCommSplit()";

REFUSED(ncclCommGrow,
	(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm,
		ncclConfig_t *config),
	no_growth);
REFUSED(ncclCommGetUniqueId, (ncclComm_t comm, ncclUniqueId *uniqueId), no_growth);

REFUSED(ncclPutSignal,
	(const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
		ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags,
		ncclComm_t comm, NCCL_STREAM stream),
	one_sided);
REFUSED(ncclSignal,
	(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, NCCL_STREAM stream),
	one_sided);
REFUSED(ncclWaitSignal,
	(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, NCCL_STREAM stream),
	one_sided);

REFUSED(ncclDevCommCreate,
	(ncclComm_t comm, const ncclDevCommRequirements_t *reqs, ncclDevComm_t *outDevComm),
	no_device);
REFUSED(ncclDevCommDestroy, (ncclComm_t comm, const ncclDevComm_t *devComm), no_device);
REFUSED(ncclGetLsaDevicePointer, (ncclWindow_t window, size_t offset, int lsaRank, void **outPtr),
	no_device);
REFUSED(ncclGetPeerDevicePointer, (ncclWindow_t window, size_t offset, int peer, void **outPtr),
	no_device);
REFUSED(ncclGetMultimemDevicePointer,
	(ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void **outPtr),
	no_device);
REFUSED(ncclGetLsaMultimemDevicePointer, (ncclWindow_t window, size_t offset, void **outPtr),
	no_device);
REFUSED(ncclLsaBarrierCreateRequirement,
	(ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t *outHandle,
		ncclDevResourceRequirements_t *outReq),
	no_device);
REFUSED(ncclGinBarrierCreateRequirement,
	(ncclComm_t comm, ncclTeam_t team, int nBarriers, ncclGinBarrierHandle_t *outHandle,
		ncclDevResourceRequirements_t *outReq),
	no_device);
REFUSED(ncclLLA2ACreateRequirement,
	(int nBlocks, int nSlots, ncclLLA2AHandle_t *outHandle,
		ncclDevResourceRequirements_t *outReq),
	no_device);

REFUSED(mscclLoadAlgo,
	(const char *mscclAlgoFilePath, mscclAlgoHandle_t *mscclAlgoHandle, int rank), no_msccl);
REFUSED(mscclRunAlgo,
	(const void *sendBuff, const size_t sendCounts[], const size_t sDisPls[], void *recvBuff,
		const size_t recvCounts[], const size_t rDisPls[], size_t count,
		ncclDataType_t dataType, int root, int peer, ncclRedOp_t op,
		mscclAlgoHandle_t mscclAlgoHandle, ncclComm_t comm, NCCL_STREAM stream),
	no_msccl);
REFUSED(mscclUnloadAlgo, (mscclAlgoHandle_t mscclAlgoHandle), no_msccl);

REFUSED(ncclShardedRelayMultiGroupAllReduce,
	(const void *const *sendBuffs, void *const *recvBuffs, const size_t *counts,
		ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, NCCL_STREAM stream,
		const int *const *allActiveRanks, int nActiveRanksPerGroup, int nGroups),
	no_relay);
REFUSED(ncclShardedRelayMultiGroupReduceScatter,
	(const void *const *sendBuffs, void *const *recvBuffs, const size_t *recvCounts,
		ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, NCCL_STREAM stream,
		const int *const *allActiveRanks, int nActiveRanksPerGroup, int nGroups),
	no_relay);
REFUSED(ncclShardedRelayMultiGroupAllGather,
	(const void *const *sendBuffs, void *const *recvBuffs, const size_t *sendCounts,
		ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream,
		const int *const *allActiveRanks, int nActiveRanksPerGroup, int nGroups),
	no_relay);
REFUSED(ncclShardedRelayMultiGroupAllToAll,
	(const void *const *sendBuffs, void *const *recvBuffs, const size_t *segmentCounts,
		ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream,
		const int *const *allActiveRanks, int nActiveRanksPerGroup, int nGroups),
	no_relay);
