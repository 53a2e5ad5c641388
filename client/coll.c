/* SPDX-License-Identifier: MIT */
/* The collective calls: check what came, then let one of the two executors do it. */
#include "rcclx.h"

#include "args.h"
#include "comm.h"
#include "err.h"
#include "inline/inline.h"
#include "op.h"
#include "../kernels/coll_types.h"
#include "../shm/rx_clock.h"

#include <string.h>

#define CALL_CONFIG_NAME "struct rcclx_call_config"

/* A call whose arguments have been checked. */
struct checked_call {
	struct rcclx_call_config config;
	struct op_request request;
};

static rcclx_result check_config(const char *function, const struct rcclx_comm *comm,
	const struct rcclx_call_config *given, struct checked_call *call)
{
	rcclx_result r = RCCLX_OK;

	if (!comm)
		return err_set(RCCLX_ERR_INVALID, "%s: comm is NULL", function);
	call->config = (struct rcclx_call_config)RCCLX_CALL_CONFIG_INIT;
	r = args_config(given, &call->config, sizeof(call->config), CALL_CONFIG_NAME);
	if (r != RCCLX_OK)
		return r;
	if (call->config.executor > RCCLX_EXECUTOR_DAEMON)
		return err_set(RCCLX_ERR_INVALID,
			"%s: executor is %u, expected RCCLX_EXECUTOR_AUTO (0), _INLINE (1) or "
			"_DAEMON (2)",
			function, call->config.executor);
	return RCCLX_OK;
}

static rcclx_result check_all_reduce(const char *function, const struct rcclx_comm *comm,
	const struct args_reduction *args, void *recv, const struct rcclx_call_config *given,
	struct checked_call *call)
{
	struct args_reduction full = *args;
	uint64_t bytes = 0;
	uint64_t imm = 0;
	rcclx_result r = check_config(function, comm, given, call);

	if (r != RCCLX_OK)
		return r;
	full.scalar = call->config.scalar;
	r = args_reduction(function, &full, &bytes);
	if (r != RCCLX_OK)
		return r;
	if (full.op == RX_PREMUL_SUM)
		memcpy(&imm, full.scalar, rx_dtype_size(full.dtype));
	call->request = (struct op_request){
		.sig =
			{
				.coll = RX_ALL_REDUCE,
				.dtype = (uint8_t)full.dtype,
				.op = (uint8_t)full.op,
				.count = full.count,
			},
		.imm = imm,
		.send = full.send,
		.recv = recv,
		.bytes = bytes,
	};
	return RCCLX_OK;
}

static rcclx_result check_barrier(const char *function, const struct rcclx_comm *comm,
	const struct rcclx_call_config *given, struct checked_call *call)
{
	call->request = (struct op_request){.sig = {.coll = RX_BARRIER}};
	return check_config(function, comm, given, call);
}

static rcclx_result run_inline(struct rcclx_comm *comm, const struct checked_call *call)
{
	const struct op_request *request = &call->request;
	const struct inline_call what = {
		.sig = request->sig,
		.send = request->send,
		.recv = request->recv,
		.imm = request->imm,
		.deadline_ns = call->config.timeout_ns == 0
				       ? RX_FOREVER
				       : rx_deadline_ns(call->config.timeout_ns),
	};

	comm->opno++;
	return inline_run(comm, &what);
}

static rcclx_result run(struct rcclx_comm *comm, const struct checked_call *call)
{
	rcclx_result r = comm_usable(comm);

	if (r != RCCLX_OK)
		return r;
	if (call->config.executor == RCCLX_EXECUTOR_DAEMON)
		return op_run(comm, &call->request, call->config.timeout_ns);
	return run_inline(comm, call);
}

static rcclx_result start(const char *function, struct rcclx_comm *comm,
	const struct checked_call *call, struct rcclx_op **op_p)
{
	rcclx_result r = RCCLX_OK;

	if (!op_p)
		return err_set(RCCLX_ERR_INVALID, "%s: op_p is NULL", function);
	if (call->config.executor == RCCLX_EXECUTOR_INLINE)
		return err_set(RCCLX_ERR_INVALID,
			"%s: RCCLX_EXECUTOR_INLINE is for blocking calls only; a started operation "
			"is executed by the daemon",
			function);
	r = comm_usable(comm);
	return r != RCCLX_OK ? r : op_start(comm, &call->request, op_p);
}

rcclx_result rcclx_all_reduce(struct rcclx_comm *comm, const void *send, void *recv, uint64_t count,
	uint32_t dtype, uint32_t op, const struct rcclx_call_config *config)
{
	const struct args_reduction args = {send, recv, count, dtype, op, NULL};
	struct checked_call call;
	rcclx_result r = check_all_reduce("rcclx_all_reduce", comm, &args, recv, config, &call);

	return r != RCCLX_OK ? r : run(comm, &call);
}

rcclx_result rcclx_barrier(struct rcclx_comm *comm, const struct rcclx_call_config *config)
{
	struct checked_call call;
	rcclx_result r = check_barrier("rcclx_barrier", comm, config, &call);

	return r != RCCLX_OK ? r : run(comm, &call);
}

rcclx_result rcclx_all_reduce_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t op, const struct rcclx_call_config *config,
	struct rcclx_op **op_p)
{
	const char *function = "rcclx_all_reduce_start";
	const struct args_reduction args = {send, recv, count, dtype, op, NULL};
	struct checked_call call;
	rcclx_result r = check_all_reduce(function, comm, &args, recv, config, &call);

	return r != RCCLX_OK ? r : start(function, comm, &call, op_p);
}

rcclx_result rcclx_barrier_start(
	struct rcclx_comm *comm, const struct rcclx_call_config *config, struct rcclx_op **op_p)
{
	struct checked_call call;
	rcclx_result r = check_barrier("rcclx_barrier_start", comm, config, &call);

	return r != RCCLX_OK ? r : start("rcclx_barrier_start", comm, &call, op_p);
}
