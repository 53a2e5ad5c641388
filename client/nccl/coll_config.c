/* SPDX-License-Identifier: MIT */
/* The collectives with options of the call: all but one of them are hints, and not followed. */
#include "api.h"
#include "group.h"
#include "options.h"

#define FUNCTION(name, parameters, arguments)                                                      \
	ncclResult_t name##Config parameters                                                       \
	{                                                                                          \
		ncclResult_t r = options_check_call(#name "Config", config);                       \
                                                                                                   \
		return r == ncclSuccess ? name arguments : group_note(r);                          \
	}                                                                                          \
	NCCL_TWIN(name##Config)

FUNCTION(ncclAllReduce,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
		ncclRedOp_t op, ncclComm_t comm, NCCL_STREAM stream,
		const ncclCollConfig_t *config),
	(sendbuff, recvbuff, count, datatype, op, comm, stream));

FUNCTION(ncclAllGather,
	(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
		ncclComm_t comm, NCCL_STREAM stream, const ncclCollConfig_t *config),
	(sendbuff, recvbuff, sendcount, datatype, comm, stream));

FUNCTION(ncclReduceScatter,
	(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
		ncclRedOp_t op, ncclComm_t comm, NCCL_STREAM stream,
		const ncclCollConfig_t *config),
	(sendbuff, recvbuff, recvcount, datatype, op, comm, stream));

FUNCTION(ncclReduce,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
		ncclRedOp_t op, int root, ncclComm_t comm, NCCL_STREAM stream,
		const ncclCollConfig_t *config),
	(sendbuff, recvbuff, count, datatype, op, root, comm, stream));

FUNCTION(ncclBroadcast,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
		ncclComm_t comm, NCCL_STREAM stream, const ncclCollConfig_t *config),
	(sendbuff, recvbuff, count, datatype, root, comm, stream));

FUNCTION(ncclAlltoAll,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
		ncclComm_t comm, NCCL_STREAM stream, const ncclCollConfig_t *config),
	(sendbuff, recvbuff, count, datatype, comm, stream));

FUNCTION(ncclGather,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
		ncclComm_t comm, NCCL_STREAM stream, const ncclCollConfig_t *config),
	(sendbuff, recvbuff, count, datatype, root, comm, stream));

FUNCTION(ncclScatter,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
		ncclComm_t comm, NCCL_STREAM stream, const ncclCollConfig_t *config),
	(sendbuff, recvbuff, count, datatype, root, comm, stream));
