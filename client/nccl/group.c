/* SPDX-License-Identifier: MIT */
#include "group.h"

#include "api.h"

/* A call that was wrong keeps the whole group from being executed, as NCCL has it. */
static _Thread_local struct {
	uint32_t depth;
	ncclResult_t error;
	struct batch batch;
} group;

bool group_is_open(void)
{
	return group.depth > 0;
}

ncclResult_t group_note(ncclResult_t result)
{
	if (group.depth > 0 && group.error == ncclSuccess)
		group.error = result;
	return result;
}

ncclResult_t group_add_call(const struct call *call)
{
	if (batch_add_call(&group.batch, call))
		return ncclSuccess;
	comm_leave(call->comm);
	return group_note(ncclSystemError);
}

ncclResult_t group_make(const struct making *making)
{
	struct batch single = {0};
	struct batch *batch = group.depth > 0 ? &group.batch : &single;

	if (!batch_add_making(batch, making)) {
		batch_drop_making(making);
		return group_note(ncclSystemError);
	}
	return group.depth > 0 ? ncclSuccess : batch_execute(batch);
}

void group_start(void)
{
	group.depth++;
}

ncclResult_t group_end(void)
{
	ncclResult_t error = group.error;

	if (--group.depth > 0)
		return ncclSuccess;
	group.error = ncclSuccess;
	if (error == ncclSuccess)
		return batch_execute(&group.batch);
	batch_discard(&group.batch);
	return error;
}

ncclResult_t ncclGroupStart(void)
{
	group_start();
	return ncclSuccess;
}
NCCL_TWIN(ncclGroupStart);

static ncclResult_t no_group(const char *function)
{
	return error_set(ncclInvalidUsage, "%s: no group is open in this thread", function);
}

ncclResult_t ncclGroupEnd(void)
{
	return group.depth > 0 ? group_end() : no_group("ncclGroupEnd");
}
NCCL_TWIN(ncclGroupEnd);

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
	ncclResult_t r = ncclSuccess;
	ncclResult_t error = group.error;

	if (group.depth == 0)
		return no_group("ncclGroupSimulateEnd");
	if (simInfo)
		r = options_check_sim("ncclGroupSimulateEnd", simInfo);
	if (--group.depth > 0)
		return r;
	group.error = ncclSuccess;
	batch_discard(&group.batch);
	if (r == ncclSuccess && error == ncclSuccess && simInfo)
		simInfo->estimatedTime = NCCL_UNDEF_FLOAT;
	return r == ncclSuccess ? error : r;
}
NCCL_TWIN(ncclGroupSimulateEnd);
