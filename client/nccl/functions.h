/* SPDX-License-Identifier: MIT */
/*
 * Every function of the NCCL and RCCL interface that we export, and how far it goes. What rcclxctl
 * abi-check tells, what the tests call one by one, and what nccl(7) has to say the same of; each
 * has a twin with a "p" in front.
 */
#ifndef NCCL_FUNCTIONS_H
#define NCCL_FUNCTIONS_H

enum nccl_answer {
	NCCL_WORKS,   /* as NCCL's */
	NCCL_REMARK,  /* works, with a difference that nccl(7) tells */
	NCCL_REFUSED, /* answers ncclInvalidUsage, with a sentence in ncclGetLastError() */
};

/* F(name, answer), in the order of nccl.h. */
#define NCCL_FUNCTIONS(F)                                                                          \
	F(ncclGetVersion, NCCL_WORKS)                                                              \
	F(ncclGetErrorString, NCCL_WORKS)                                                          \
	F(ncclGetLastError, NCCL_WORKS)                                                            \
	F(ncclResetDebugInit, NCCL_WORKS)                                                          \
	F(ncclGetUniqueId, NCCL_WORKS)                                                             \
	F(ncclCommInitRank, NCCL_WORKS)                                                            \
	F(ncclCommInitRankConfig, NCCL_WORKS)                                                      \
	F(ncclCommInitRankScalable, NCCL_REMARK)                                                   \
	F(ncclCommInitAll, NCCL_REMARK)                                                            \
	F(ncclCommSplit, NCCL_WORKS)                                                               \
	F(ncclCommShrink, NCCL_WORKS)                                                              \
	F(ncclCommGrow, NCCL_REFUSED)                                                              \
	F(ncclCommGetUniqueId, NCCL_REFUSED)                                                       \
	F(ncclCommFinalize, NCCL_WORKS)                                                            \
	F(ncclCommDestroy, NCCL_WORKS)                                                             \
	F(ncclCommAbort, NCCL_WORKS)                                                               \
	F(ncclCommRevoke, NCCL_REMARK)                                                             \
	F(ncclCommGetAsyncError, NCCL_WORKS)                                                       \
	F(ncclCommCount, NCCL_WORKS)                                                               \
	F(ncclCommCuDevice, NCCL_REMARK)                                                           \
	F(ncclCommUserRank, NCCL_WORKS)                                                            \
	F(ncclCommQueryProperties, NCCL_REMARK)                                                    \
	F(ncclCommSuspend, NCCL_REMARK)                                                            \
	F(ncclCommResume, NCCL_REMARK)                                                             \
	F(ncclCommMemStats, NCCL_REMARK)                                                           \
	F(ncclMemAlloc, NCCL_REMARK)                                                               \
	F(ncclMemFree, NCCL_WORKS)                                                                 \
	F(ncclCommRegister, NCCL_REMARK)                                                           \
	F(ncclCommDeregister, NCCL_WORKS)                                                          \
	F(ncclCommWindowRegister, NCCL_REMARK)                                                     \
	F(ncclCommWindowDeregister, NCCL_WORKS)                                                    \
	F(ncclWinGetUserPtr, NCCL_WORKS)                                                           \
	F(ncclRedOpCreatePreMulSum, NCCL_REMARK)                                                   \
	F(ncclRedOpDestroy, NCCL_WORKS)                                                            \
	F(ncclAllReduce, NCCL_WORKS)                                                               \
	F(ncclAllReduceWithBias, NCCL_REMARK)                                                      \
	F(ncclAllGather, NCCL_WORKS)                                                               \
	F(ncclReduceScatter, NCCL_WORKS)                                                           \
	F(ncclReduce, NCCL_WORKS)                                                                  \
	F(ncclBroadcast, NCCL_WORKS)                                                               \
	F(ncclBcast, NCCL_WORKS)                                                                   \
	F(ncclAlltoAll, NCCL_WORKS)                                                                \
	F(ncclAllToAll, NCCL_WORKS)                                                                \
	F(ncclAlltoAllv, NCCL_WORKS)                                                               \
	F(ncclAllToAllv, NCCL_WORKS)                                                               \
	F(ncclGather, NCCL_WORKS)                                                                  \
	F(ncclScatter, NCCL_WORKS)                                                                 \
	F(ncclSend, NCCL_REMARK)                                                                   \
	F(ncclRecv, NCCL_REMARK)                                                                   \
	F(ncclAllReduceConfig, NCCL_REMARK)                                                        \
	F(ncclAllGatherConfig, NCCL_REMARK)                                                        \
	F(ncclReduceScatterConfig, NCCL_REMARK)                                                    \
	F(ncclReduceConfig, NCCL_REMARK)                                                           \
	F(ncclBroadcastConfig, NCCL_REMARK)                                                        \
	F(ncclAlltoAllConfig, NCCL_REMARK)                                                         \
	F(ncclGatherConfig, NCCL_REMARK)                                                           \
	F(ncclScatterConfig, NCCL_REMARK)                                                          \
	F(ncclGroupStart, NCCL_WORKS)                                                              \
	F(ncclGroupEnd, NCCL_REMARK)                                                               \
	F(ncclGroupSimulateEnd, NCCL_REMARK)                                                       \
	F(ncclPutSignal, NCCL_REFUSED)                                                             \
	F(ncclSignal, NCCL_REFUSED)                                                                \
	F(ncclWaitSignal, NCCL_REFUSED)                                                            \
	F(ncclParamBind, NCCL_REMARK)                                                              \
	F(ncclParamGetI8, NCCL_REMARK)                                                             \
	F(ncclParamGetI16, NCCL_REMARK)                                                            \
	F(ncclParamGetI32, NCCL_REMARK)                                                            \
	F(ncclParamGetI64, NCCL_REMARK)                                                            \
	F(ncclParamGetU8, NCCL_REMARK)                                                             \
	F(ncclParamGetU16, NCCL_REMARK)                                                            \
	F(ncclParamGetU32, NCCL_REMARK)                                                            \
	F(ncclParamGetU64, NCCL_REMARK)                                                            \
	F(ncclParamGetStr, NCCL_REMARK)                                                            \
	F(ncclParamGet, NCCL_REMARK)                                                               \
	F(ncclParamGetParameter, NCCL_REMARK)                                                      \
	F(ncclParamGetAllParameterKeys, NCCL_REMARK)                                               \
	F(ncclParamDumpAll, NCCL_REMARK)                                                           \
	F(ncclDevCommCreate, NCCL_REFUSED)                                                         \
	F(ncclDevCommDestroy, NCCL_REFUSED)                                                        \
	F(ncclGetLsaDevicePointer, NCCL_REFUSED)                                                   \
	F(ncclGetPeerDevicePointer, NCCL_REFUSED)                                                  \
	F(ncclGetMultimemDevicePointer, NCCL_REFUSED)                                              \
	F(ncclGetLsaMultimemDevicePointer, NCCL_REFUSED)                                           \
	F(ncclLsaBarrierCreateRequirement, NCCL_REFUSED)                                           \
	F(ncclGinBarrierCreateRequirement, NCCL_REFUSED)                                           \
	F(ncclLLA2ACreateRequirement, NCCL_REFUSED)                                                \
	F(ncclLLA2ACalcSlots, NCCL_REMARK)                                                         \
	F(ncclTeamWorld, NCCL_REMARK)                                                              \
	F(ncclTeamLsa, NCCL_REMARK)                                                                \
	F(ncclTeamRail, NCCL_REMARK)                                                               \
	F(ncclTeamRankToWorld, NCCL_REMARK)                                                        \
	F(ncclTeamRankToLsa, NCCL_REMARK)                                                          \
	F(mscclLoadAlgo, NCCL_REFUSED)                                                             \
	F(mscclRunAlgo, NCCL_REFUSED)                                                              \
	F(mscclUnloadAlgo, NCCL_REFUSED)                                                           \
	F(ncclShardedRelayMultiGroupAllReduce, NCCL_REFUSED)                                       \
	F(ncclShardedRelayMultiGroupReduceScatter, NCCL_REFUSED)                                   \
	F(ncclShardedRelayMultiGroupAllGather, NCCL_REFUSED)                                       \
	F(ncclShardedRelayMultiGroupAllToAll, NCCL_REFUSED)

#endif
