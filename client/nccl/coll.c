/* SPDX-License-Identifier: MIT */
/* The collectives, sends and receives as they are called. */
#include "api.h"
#include "call.h"
#include "group.h"

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclAllReduce",
		.kind = CALL_ALL_REDUCE,
		.comm = comm,
		.send = sendbuff,
		.recv = recvbuff,
		.count = count,
		.dtype = datatype,
		.op = op,
		.stream = stream});
}
NCCL_TWIN(ncclAllReduce);

ncclResult_t ncclAllReduceWithBias(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, NCCL_STREAM stream,
	const void *acc)
{
	if (acc)
		return group_note(error_set(ncclInvalidUsage,
			"ncclAllReduceWithBias: acc is %p: rcclxd does not add a bias; expected "
			"NULL",
			acc));
	return call_issue(&(struct call){.function = "ncclAllReduceWithBias",
		.kind = CALL_ALL_REDUCE,
		.comm = comm,
		.send = sendbuff,
		.recv = recvbuff,
		.count = count,
		.dtype = datatype,
		.op = op,
		.stream = stream});
}
NCCL_TWIN(ncclAllReduceWithBias);

ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclAllGather",
		.kind = CALL_ALL_GATHER,
		.comm = comm,
		.send = sendbuff,
		.recv = recvbuff,
		.count = sendcount,
		.dtype = datatype,
		.stream = stream});
}
NCCL_TWIN(ncclAllGather);

ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclReduceScatter",
		.kind = CALL_REDUCE_SCATTER,
		.comm = comm,
		.send = sendbuff,
		.recv = recvbuff,
		.count = recvcount,
		.dtype = datatype,
		.op = op,
		.stream = stream});
}
NCCL_TWIN(ncclReduceScatter);

ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	ncclRedOp_t op, int root, ncclComm_t comm, NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclReduce",
		.kind = CALL_REDUCE,
		.comm = comm,
		.send = sendbuff,
		.recv = recvbuff,
		.count = count,
		.dtype = datatype,
		.op = op,
		.root = root,
		.stream = stream});
}
NCCL_TWIN(ncclReduce);

ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclBroadcast",
		.kind = CALL_BROADCAST,
		.comm = comm,
		.send = sendbuff,
		.recv = recvbuff,
		.count = count,
		.dtype = datatype,
		.root = root,
		.stream = stream});
}
NCCL_TWIN(ncclBroadcast);

ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
	NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclBcast",
		.kind = CALL_BROADCAST,
		.comm = comm,
		.send = buff,
		.recv = buff,
		.count = count,
		.dtype = datatype,
		.root = root,
		.stream = stream});
}
NCCL_TWIN(ncclBcast);

static ncclResult_t all_to_all(const char *function, const void *sendbuff, void *recvbuff,
	size_t count, ncclDataType_t datatype, ncclComm_t comm, void *stream)
{
	return call_issue(&(struct call){.function = function,
		.kind = CALL_ALL_TO_ALL,
		.comm = comm,
		.send = sendbuff,
		.recv = recvbuff,
		.count = count,
		.dtype = datatype,
		.stream = stream});
}

/* NCCL's spelling, and RCCL's. */
ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream)
{
	return all_to_all("ncclAlltoAll", sendbuff, recvbuff, count, datatype, comm, stream);
}
NCCL_TWIN(ncclAlltoAll);

ncclResult_t ncclAllToAll(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, NCCL_STREAM stream)
{
	return all_to_all("ncclAllToAll", sendbuff, recvbuff, count, datatype, comm, stream);
}
NCCL_TWIN(ncclAllToAll);

ncclResult_t ncclAlltoAllv(const void *sendbuff, const size_t sendcounts[], const size_t sdispls[],
	void *recvbuff, const size_t recvcounts[], const size_t rdispls[], ncclDataType_t datatype,
	ncclComm_t comm, NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclAlltoAllv",
		.kind = CALL_ALL_TO_ALL_V,
		.comm = comm,
		.send = sendbuff,
		.recv = recvbuff,
		.dtype = datatype,
		.arrays = {sendcounts, sdispls, recvcounts, rdispls},
		.stream = stream});
}
NCCL_TWIN(ncclAlltoAllv);

ncclResult_t ncclAllToAllv(const void *sendbuff, const size_t sendcounts[], const size_t sdispls[],
	void *recvbuff, const size_t recvcounts[], const size_t rdispls[], ncclDataType_t datatype,
	ncclComm_t comm, NCCL_STREAM stream)
{
	return ncclAlltoAllv(sendbuff, sendcounts, sdispls, recvbuff, recvcounts, rdispls, datatype,
		comm, stream);
}
NCCL_TWIN(ncclAllToAllv);

ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	int root, ncclComm_t comm, NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclGather",
		.kind = CALL_GATHER,
		.comm = comm,
		.send = sendbuff,
		.recv = recvbuff,
		.count = count,
		.dtype = datatype,
		.root = root,
		.stream = stream});
}
NCCL_TWIN(ncclGather);

ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclScatter",
		.kind = CALL_SCATTER,
		.comm = comm,
		.send = sendbuff,
		.recv = recvbuff,
		.count = count,
		.dtype = datatype,
		.root = root,
		.stream = stream});
}
NCCL_TWIN(ncclScatter);

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
	ncclComm_t comm, NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclSend",
		.kind = CALL_SEND,
		.comm = comm,
		.send = sendbuff,
		.count = count,
		.dtype = datatype,
		.root = peer,
		.stream = stream});
}
NCCL_TWIN(ncclSend);

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	ncclComm_t comm, NCCL_STREAM stream)
{
	return call_issue(&(struct call){.function = "ncclRecv",
		.kind = CALL_RECV,
		.comm = comm,
		.recv = recvbuff,
		.count = count,
		.dtype = datatype,
		.root = peer,
		.stream = stream});
}
NCCL_TWIN(ncclRecv);
