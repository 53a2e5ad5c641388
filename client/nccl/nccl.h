/* SPDX-License-Identifier: MIT */
/*
 * The C interface of NCCL and RCCL as librccl.so.1 and libnccl.so.2 of rcclxd have it: see nccl(7)
 * for what each function does here. For programs without a GPU toolkit, and for these libraries
 * themselves; a program built against NVIDIA's or AMD's header runs with them just as well.
 *
 * Every function exists a second time with a "p" in front, for profilers that put their own in its
 * place.
 */
#ifndef RCCLX_NCCL_H
#define RCCLX_NCCL_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_MAJOR  2
#define NCCL_MINOR  28
#define NCCL_PATCH  3
#define NCCL_SUFFIX ""
#define NCCL_VERSION(x, y, z)                                                                      \
	(((x) <= 2 && (y) <= 8) ? (x)*1000 + (y)*100 + (z) : (x)*10000 + (y)*100 + (z))
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)

/** A stream of the GPU's runtime, cudaStream_t or hipStream_t; NULL with host memory. */
#ifndef NCCL_STREAM
#define NCCL_STREAM void *
#endif

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct ncclParamHandle *ncclParamHandle_t;

#define NCCL_COMM_NULL       NULL
#define NCCL_UNIQUE_ID_BYTES 128

typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclTimeout = 8, /* only to callers whose header is 2.30 or later */
	ncclNumResults = 9,
} ncclResult_t;

typedef enum {
	ncclInt8 = 0,
	ncclChar = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclInt = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclHalf = 6,
	ncclFloat32 = 7,
	ncclFloat = 7,
	ncclFloat64 = 8,
	ncclDouble = 8,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10, /* OCP */
	ncclFloat8e5m2 = 11, /* OCP */
	ncclNumTypes = 12,
} ncclDataType_t;

typedef enum {
	ncclSum = 0,
	ncclProd = 1,
	ncclMax = 2,
	ncclMin = 3,
	ncclAvg = 4,
	ncclNumOps = 5, /* from here on: made by ncclRedOpCreatePreMulSum() */
	ncclMaxRedOp = 0x7fffffff,
} ncclRedOp_t;

typedef enum {
	ncclScalarDevice = 0,
	ncclScalarHostImmediate = 1,
} ncclScalarResidence_t;

typedef enum {
	ncclStatGpuMemSuspend = 0,
	ncclStatGpuMemSuspended = 1,
	ncclStatGpuMemPersist = 2,
	ncclStatGpuMemTotal = 3,
} ncclCommMemStat_t;

#define NCCL_API_MAGIC        0xcafebeefu
#define NCCL_SIM_INFO_MAGIC   0x74685283u
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT      (-1.0f)
#define NCCL_SPLIT_NOCOLOR    (-1)

#define NCCL_WIN_DEFAULT            0x00
#define NCCL_WIN_COLL_SYMMETRIC     0x01
#define NCCL_WIN_STRICT_ORDERING    0x02
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT   0x01
#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_SUSPEND_MEM    0x01

/** As of 2.28; the libraries take those of 2.14 to 2.31 and of RCCLX, told apart by version. */
typedef struct ncclConfig_v22800 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
	const char *commName;
	int collnetEnable;
	int CTAPolicy;
	int shrinkShare;
	int nvlsCTAs;
	int nChannelsPerNetPeer;
	int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                    \
	{                                                                                          \
		sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT,    \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,       \
			NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,       \
			NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,       \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,       \
			NCCL_CONFIG_UNDEF_INT                                                      \
	}

/** Options of one call, 2.31. */
typedef struct ncclCollConfig_v23100 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	void *ext;
	int minCTAs;
	int maxCTAs;
	int nvlsCTAs;
	int cgaClusterSize;
	const char *algSelection;
	int forceAlgSelection;
	int CTAPolicy;
	uint64_t userProfilerTag;
} ncclCollConfig_t;

typedef struct ncclSimInfo_v22200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                                                  \
	{                                                                                          \
		sizeof(ncclSimInfo_t), NCCL_SIM_INFO_MAGIC, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT    \
	}

typedef struct {
	int opCnt;
	int peer;
	int sigIdx;
	int ctx;
} ncclWaitSignalDesc_t;

/* The device interface's types; only their names matter here. */
typedef struct ncclTeam {
	int nRanks, rank, stride;
} ncclTeam_t;
typedef struct ncclDevComm ncclDevComm_t;
typedef struct ncclDevCommRequirements ncclDevCommRequirements_t;
typedef struct ncclDevResourceRequirements ncclDevResourceRequirements_t;
typedef struct ncclLsaBarrierHandle ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle ncclGinBarrierHandle_t;
typedef struct ncclLLA2AHandle ncclLLA2AHandle_t;
typedef struct ncclMultimemHandle {
	void *mcBasePtr;
} ncclMultimemHandle_t;

/** What a communicator can do: here, nothing from within kernels. */
typedef struct ncclCommProperties {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int rank;
	int nRanks;
	int cudaDev;
	int nvmlDev;
	unsigned char deviceApiSupport;
	unsigned char multimemSupport;
	int ginType;
	int nLsaTeams;
	unsigned char hostRmaSupport;
	int railedGinType;
} ncclCommProperties_t;

typedef int mscclAlgoHandle_t;

#define NCCL_EXPORT __attribute__((visibility("default")))

/* A function and its twin. */
#define NCCL_FUNCTION(type, name, ...)                                                             \
	NCCL_EXPORT type name(__VA_ARGS__);                                                        \
	NCCL_EXPORT type p##name(__VA_ARGS__)

/* ---- versions and errors ---- */

NCCL_FUNCTION(ncclResult_t, ncclGetVersion, int *version);
NCCL_FUNCTION(const char *, ncclGetErrorString, ncclResult_t result);
NCCL_FUNCTION(const char *, ncclGetLastError, ncclComm_t comm);
NCCL_FUNCTION(void, ncclResetDebugInit, void);

/* ---- communicators ---- */

NCCL_FUNCTION(ncclResult_t, ncclGetUniqueId, ncclUniqueId *uniqueId);
NCCL_FUNCTION(ncclResult_t, ncclCommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId commId,
	int rank);
NCCL_FUNCTION(ncclResult_t, ncclCommInitRankConfig, ncclComm_t *comm, int nranks,
	ncclUniqueId commId, int rank, ncclConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclCommInitRankScalable, ncclComm_t *newcomm, int nranks, int myrank,
	int nId, ncclUniqueId *commIds, ncclConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclCommInitAll, ncclComm_t *comms, int ndev, const int *devlist);
NCCL_FUNCTION(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
	ncclConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclCommShrink, ncclComm_t comm, int *excludeRanksList,
	int excludeRanksCount, ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags);
NCCL_FUNCTION(ncclResult_t, ncclCommGrow, ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
	int rank, ncclComm_t *newcomm, ncclConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclCommGetUniqueId, ncclComm_t comm, ncclUniqueId *uniqueId);
NCCL_FUNCTION(ncclResult_t, ncclCommFinalize, ncclComm_t comm);
NCCL_FUNCTION(ncclResult_t, ncclCommDestroy, ncclComm_t comm);
NCCL_FUNCTION(ncclResult_t, ncclCommAbort, ncclComm_t comm);
NCCL_FUNCTION(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int revokeFlags);
NCCL_FUNCTION(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *asyncError);
NCCL_FUNCTION(ncclResult_t, ncclCommCount, const ncclComm_t comm, int *count);
NCCL_FUNCTION(ncclResult_t, ncclCommCuDevice, const ncclComm_t comm, int *device);
NCCL_FUNCTION(ncclResult_t, ncclCommUserRank, const ncclComm_t comm, int *rank);
NCCL_FUNCTION(ncclResult_t, ncclCommQueryProperties, ncclComm_t comm, ncclCommProperties_t *props);
NCCL_FUNCTION(ncclResult_t, ncclCommSuspend, ncclComm_t comm, int flags);
NCCL_FUNCTION(ncclResult_t, ncclCommResume, ncclComm_t comm);
NCCL_FUNCTION(
	ncclResult_t, ncclCommMemStats, ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value);

/* ---- memory ---- */

NCCL_FUNCTION(ncclResult_t, ncclMemAlloc, void **ptr, size_t size);
NCCL_FUNCTION(ncclResult_t, ncclMemFree, void *ptr);
NCCL_FUNCTION(ncclResult_t, ncclCommRegister, const ncclComm_t comm, void *buff, size_t size,
	void **handle);
NCCL_FUNCTION(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void *handle);
NCCL_FUNCTION(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void *buff, size_t size,
	ncclWindow_t *win, int winFlags);
NCCL_FUNCTION(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win);
NCCL_FUNCTION(
	ncclResult_t, ncclWinGetUserPtr, ncclComm_t comm, ncclWindow_t win, void **outUserPtr);

/* ---- operations ---- */

NCCL_FUNCTION(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar,
	ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm);
NCCL_FUNCTION(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm);

/* ---- collectives ---- */

NCCL_FUNCTION(ncclResult_t, ncclAllReduce, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclAllReduceWithBias, const void *sendbuff, void *recvbuff,
	size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, NCCL_STREAM stream,
	const void *acc);
NCCL_FUNCTION(ncclResult_t, ncclAllGather, const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclReduceScatter, const void *sendbuff, void *recvbuff,
	size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
	NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclReduce, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclBroadcast, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclBcast, void *buff, size_t count, ncclDataType_t datatype, int root,
	ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclAlltoAll, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclAllToAll, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclAlltoAllv, const void *sendbuff, const size_t sendcounts[],
	const size_t sdispls[], void *recvbuff, const size_t recvcounts[], const size_t rdispls[],
	ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclAllToAllv, const void *sendbuff, const size_t sendcounts[],
	const size_t sdispls[], void *recvbuff, const size_t recvcounts[], const size_t rdispls[],
	ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclGather, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclScatter, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclSend, const void *sendbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclRecv, void *recvbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclComm_t comm, NCCL_STREAM stream);

/* ---- collectives with options of the call ---- */

NCCL_FUNCTION(ncclResult_t, ncclAllReduceConfig, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, NCCL_STREAM stream,
	const ncclCollConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclAllGatherConfig, const void *sendbuff, void *recvbuff,
	size_t sendcount, ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream,
	const ncclCollConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclReduceScatterConfig, const void *sendbuff, void *recvbuff,
	size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
	NCCL_STREAM stream, const ncclCollConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclReduceConfig, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, NCCL_STREAM stream,
	const ncclCollConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclBroadcastConfig, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, NCCL_STREAM stream,
	const ncclCollConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclAlltoAllConfig, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream,
	const ncclCollConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclGatherConfig, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, NCCL_STREAM stream,
	const ncclCollConfig_t *config);
NCCL_FUNCTION(ncclResult_t, ncclScatterConfig, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, NCCL_STREAM stream,
	const ncclCollConfig_t *config);

/* ---- groups ---- */

NCCL_FUNCTION(ncclResult_t, ncclGroupStart, void);
NCCL_FUNCTION(ncclResult_t, ncclGroupEnd, void);
NCCL_FUNCTION(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t *simInfo);

/* ---- one-sided ---- */

NCCL_FUNCTION(ncclResult_t, ncclPutSignal, const void *localbuff, size_t count,
	ncclDataType_t datatype, int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx,
	int ctx, unsigned int flags, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclSignal, int peer, int sigIdx, int ctx, unsigned int flags,
	ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, ncclWaitSignal, int nDesc, ncclWaitSignalDesc_t *signalDescs,
	ncclComm_t comm, NCCL_STREAM stream);

/* ---- parameters ---- */

NCCL_FUNCTION(ncclResult_t, ncclParamBind, ncclParamHandle_t *out, const char *key);
NCCL_FUNCTION(ncclResult_t, ncclParamGetI8, ncclParamHandle_t h, int8_t *out);
NCCL_FUNCTION(ncclResult_t, ncclParamGetI16, ncclParamHandle_t h, int16_t *out);
NCCL_FUNCTION(ncclResult_t, ncclParamGetI32, ncclParamHandle_t h, int32_t *out);
NCCL_FUNCTION(ncclResult_t, ncclParamGetI64, ncclParamHandle_t h, int64_t *out);
NCCL_FUNCTION(ncclResult_t, ncclParamGetU8, ncclParamHandle_t h, uint8_t *out);
NCCL_FUNCTION(ncclResult_t, ncclParamGetU16, ncclParamHandle_t h, uint16_t *out);
NCCL_FUNCTION(ncclResult_t, ncclParamGetU32, ncclParamHandle_t h, uint32_t *out);
NCCL_FUNCTION(ncclResult_t, ncclParamGetU64, ncclParamHandle_t h, uint64_t *out);
NCCL_FUNCTION(ncclResult_t, ncclParamGetStr, ncclParamHandle_t h, const char **out);
NCCL_FUNCTION(ncclResult_t, ncclParamGet, ncclParamHandle_t h, void *out, int maxLen, int *len);
NCCL_FUNCTION(
	ncclResult_t, ncclParamGetParameter, const char *key, const char **value, int *valueLen);
NCCL_FUNCTION(ncclResult_t, ncclParamGetAllParameterKeys, const char ***table, int *tableLen);
NCCL_FUNCTION(void, ncclParamDumpAll, void);

/* ---- the host's side of the device interface ---- */

NCCL_FUNCTION(ncclResult_t, ncclDevCommCreate, ncclComm_t comm,
	const ncclDevCommRequirements_t *reqs, ncclDevComm_t *outDevComm);
NCCL_FUNCTION(ncclResult_t, ncclDevCommDestroy, ncclComm_t comm, const ncclDevComm_t *devComm);
NCCL_FUNCTION(ncclResult_t, ncclGetLsaDevicePointer, ncclWindow_t window, size_t offset,
	int lsaRank, void **outPtr);
NCCL_FUNCTION(ncclResult_t, ncclGetPeerDevicePointer, ncclWindow_t window, size_t offset, int peer,
	void **outPtr);
NCCL_FUNCTION(ncclResult_t, ncclGetMultimemDevicePointer, ncclWindow_t window, size_t offset,
	ncclMultimemHandle_t multimem, void **outPtr);
NCCL_FUNCTION(ncclResult_t, ncclGetLsaMultimemDevicePointer, ncclWindow_t window, size_t offset,
	void **outPtr);
NCCL_FUNCTION(ncclResult_t, ncclLsaBarrierCreateRequirement, ncclTeam_t team, int nBarriers,
	ncclLsaBarrierHandle_t *outHandle, ncclDevResourceRequirements_t *outReq);
NCCL_FUNCTION(ncclResult_t, ncclGinBarrierCreateRequirement, ncclComm_t comm, ncclTeam_t team,
	int nBarriers, ncclGinBarrierHandle_t *outHandle, ncclDevResourceRequirements_t *outReq);
NCCL_FUNCTION(ncclResult_t, ncclLLA2ACreateRequirement, int nBlocks, int nSlots,
	ncclLLA2AHandle_t *outHandle, ncclDevResourceRequirements_t *outReq);
NCCL_FUNCTION(int, ncclLLA2ACalcSlots, int maxElts, int maxEltSize);
NCCL_FUNCTION(ncclTeam_t, ncclTeamWorld, ncclComm_t comm);
NCCL_FUNCTION(ncclTeam_t, ncclTeamLsa, ncclComm_t comm);
NCCL_FUNCTION(ncclTeam_t, ncclTeamRail, ncclComm_t comm);
NCCL_FUNCTION(int, ncclTeamRankToWorld, ncclComm_t comm, ncclTeam_t team, int rank);
NCCL_FUNCTION(int, ncclTeamRankToLsa, ncclComm_t comm, ncclTeam_t team, int rank);

/* ---- RCCL's and RCCLX's own ---- */

NCCL_FUNCTION(ncclResult_t, mscclLoadAlgo, const char *mscclAlgoFilePath,
	mscclAlgoHandle_t *mscclAlgoHandle, int rank);
NCCL_FUNCTION(ncclResult_t, mscclRunAlgo, const void *sendBuff, const size_t sendCounts[],
	const size_t sDisPls[], void *recvBuff, const size_t recvCounts[], const size_t rDisPls[],
	size_t count, ncclDataType_t dataType, int root, int peer, ncclRedOp_t op,
	mscclAlgoHandle_t mscclAlgoHandle, ncclComm_t comm, NCCL_STREAM stream);
NCCL_FUNCTION(ncclResult_t, mscclUnloadAlgo, mscclAlgoHandle_t mscclAlgoHandle);
NCCL_FUNCTION(ncclResult_t, ncclShardedRelayMultiGroupAllReduce, const void *const *sendBuffs,
	void *const *recvBuffs, const size_t *counts, ncclDataType_t datatype, ncclRedOp_t op,
	ncclComm_t comm, NCCL_STREAM stream, const int *const *allActiveRanks,
	int nActiveRanksPerGroup, int nGroups);
NCCL_FUNCTION(ncclResult_t, ncclShardedRelayMultiGroupReduceScatter, const void *const *sendBuffs,
	void *const *recvBuffs, const size_t *recvCounts, ncclDataType_t datatype, ncclRedOp_t op,
	ncclComm_t comm, NCCL_STREAM stream, const int *const *allActiveRanks,
	int nActiveRanksPerGroup, int nGroups);
NCCL_FUNCTION(ncclResult_t, ncclShardedRelayMultiGroupAllGather, const void *const *sendBuffs,
	void *const *recvBuffs, const size_t *sendCounts, ncclDataType_t datatype, ncclComm_t comm,
	NCCL_STREAM stream, const int *const *allActiveRanks, int nActiveRanksPerGroup,
	int nGroups);
NCCL_FUNCTION(ncclResult_t, ncclShardedRelayMultiGroupAllToAll, const void *const *sendBuffs,
	void *const *recvBuffs, const size_t *segmentCounts, ncclDataType_t datatype,
	ncclComm_t comm, NCCL_STREAM stream, const int *const *allActiveRanks,
	int nActiveRanksPerGroup, int nGroups);

#ifdef __cplusplus
}
#endif

#endif
