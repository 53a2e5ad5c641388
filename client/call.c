/* SPDX-License-Identifier: MIT */
#include "call.h"

#include "args.h"
#include "comm.h"
#include "err.h"
#include "gpu.h"
#include "group.h"
#include "stream.h"
#include "session.h"
#include "../kernels/precision.h"
#include "../shm/rx_clock.h"

#include <string.h>

#define CALL_CONFIG_NAME "struct rcclx_call_config"

rcclx_result call_config(const char *function, const struct rcclx_comm *comm,
	const struct rcclx_call_config *given, struct rcclx_call_config *config_p)
{
	rcclx_result r = RCCLX_OK;

	if (!comm)
		return err_set(RCCLX_ERR_INVALID, "%s: comm is NULL", function);
	/* Before a look at the control page, which a forked child has not. */
	r = session_usable(comm->client);
	if (r != RCCLX_OK)
		return r;
	*config_p = (struct rcclx_call_config)RCCLX_CALL_CONFIG_INIT;
	r = args_config(given, config_p, sizeof(*config_p), CALL_CONFIG_NAME);
	if (r != RCCLX_OK)
		return r;
	if (config_p->executor > RCCLX_EXECUTOR_DAEMON)
		return err_set(RCCLX_ERR_INVALID,
			"%s: executor is %u, expected RCCLX_EXECUTOR_AUTO (0), _INLINE (1) or "
			"_DAEMON (2)",
			function, config_p->executor);
	if (config_p->precision > RCCLX_PRECISION_INT8)
		return err_set(RCCLX_ERR_INVALID,
			"%s: precision is %u, expected RCCLX_PRECISION_AUTO (0), _EXACT (1), "
			"_FP8 (2) or _INT8 (3)",
			function, config_p->precision);
	if (config_p->flags & ~(uint32_t)RCCLX_CALL_IN_STREAM)
		return err_set(RCCLX_ERR_INVALID,
			"%s: flags is %u, expected 0 or RCCLX_CALL_IN_STREAM (1)", function,
			config_p->flags);
	if (config_p->flags & RCCLX_CALL_IN_STREAM)
		return stream_check(function, config_p);
	if (config_p->stream)
		return err_set(RCCLX_ERR_INVALID,
			"%s: stream without RCCLX_CALL_IN_STREAM in flags", function);
	return RCCLX_OK;
}

void call_set_precision(struct call *call, uint64_t elements)
{
	const struct rcclx_comm *comm = call->comm;
	struct rx_op_sig *sig = &call->request.sig;
	const struct rx_fabric_ctl *ctl = comm->fabric.ctl;
	const struct rx_precision_query query = {
		.coll = sig->coll,
		.dtype = sig->dtype,
		.op = sig->op,
		.n_ranks = comm->n_ranks,
		.elements = elements,
		.request = call->config.precision,
		.over_budget = comm_over_budget(comm),
	};

	/* The common case, at the cost of one look. */
	if (query.request == RX_PRECISION_AUTO && ctl->precision.flags == 0)
		return;
	sig->flags = rx_precision_flags(&query, &ctl->precision,
		rx_precision_min(&ctl->precision, &ctl->tuning, sig->coll, comm->n_ranks), NULL);
}

static bool is_p2p(uint8_t coll)
{
	return coll == RX_SEND || coll == RX_RECV;
}

rcclx_result call_prepare(struct rcclx_comm *comm, struct args_coll *args,
	const struct rcclx_call_config *config, struct call *call_p)
{
	struct args_bytes bytes = {0};
	struct call call = {.comm = comm};
	rcclx_result r = call_config(args->function, comm, config, &call.config);

	if (r != RCCLX_OK)
		return r;
	args->n_ranks = comm->n_ranks;
	args->rank = comm->rank;
	args->scalar = call.config.scalar;
	if (is_p2p(args->coll) && call.config.executor == RCCLX_EXECUTOR_INLINE)
		return err_set(RCCLX_ERR_INVALID,
			"%s: RCCLX_EXECUTOR_INLINE is for collectives only; send and recv are "
			"executed by the daemon",
			args->function);
	r = args_coll(args, &bytes);
	if (r != RCCLX_OK)
		return r;
	call.request = (struct op_request){
		.sig =
			{
				.coll = args->coll,
				.dtype = (uint8_t)args->dtype,
				.op = (uint8_t)args->op,
				.root = args->root,
				.count = args->count,
			},
		.send = bytes.send > 0 ? args->send : NULL,
		.recv = bytes.recv > 0 ? args->recv : NULL,
		.send_bytes = bytes.send,
		.recv_bytes = bytes.recv,
	};
	if (rx_coll_reduces(args->coll) && args->op == RX_PREMUL_SUM)
		memcpy(&call.request.imm, args->scalar, rx_dtype_size(args->dtype));
	call_set_precision(&call, rx_precision_elements(args->coll, args->count, comm->n_ranks));
	*call_p = call;
	return RCCLX_OK;
}

static rcclx_result run_inline(const struct call *call)
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
		.v = request->v,
	};

	call->comm->opno++;
	return inline_run(call->comm, &what);
}

/* The same on all ranks, whatever memory each of them has: see doc/gpu.md. */
static bool is_for_daemon(const struct call *call)
{
	if (is_p2p(call->request.sig.coll))
		return true;
	if (call->config.executor == RCCLX_EXECUTOR_AUTO)
		return call->comm->fabric.ctl->gpu != 0;
	return call->config.executor == RCCLX_EXECUTOR_DAEMON;
}

/* The ranks cannot do it themselves: their processors do not reach that memory. */
static rcclx_result check_inline(const struct call *call)
{
	if (!gpu_is_there() ||
		(!gpu_is_device(call->request.send) && !gpu_is_device(call->request.recv)))
		return RCCLX_OK;
	if (call->config.executor == RCCLX_EXECUTOR_INLINE)
		return err_set(RCCLX_ERR_INVALID,
			"RCCLX_EXECUTOR_INLINE with device memory: use RCCLX_EXECUTOR_AUTO");
	return err_set(RCCLX_ERR_INVALID,
		"device memory in a communicator that was made before a process of it had "
		"loaded its GPU runtime: make the communicator afterwards");
}

/* A figure of the daemon's full speed must not pass for that of a slow link. */
static rcclx_result refuse_on_link(const struct call *call)
{
	char what[96];

	comm_describe(&call->request.sig, what, sizeof(what));
	return err_set(RCCLX_ERR_INVALID,
		"%s: with RCCLX_LINK_RATE there are only blocking collectives, which the ranks "
		"execute themselves; this one would be executed by the daemon, as fast as it can",
		what);
}

rcclx_result call_start_now(const struct call *call, struct rcclx_op **op_p)
{
	rcclx_result r = comm_usable(call->comm);

	if (r != RCCLX_OK)
		return r;
	if (rx_unlikely(call->comm->fabric.ctl->precision.link_rate != 0))
		return refuse_on_link(call);
	return op_start(call->comm, &call->request, op_p);
}

rcclx_result call_run(const struct call *call)
{
	struct rcclx_op *op = NULL;
	rcclx_result r = RCCLX_OK;

	if (group_is_open())
		return group_add(call);
	if (call->config.flags & RCCLX_CALL_IN_STREAM)
		return stream_run(call);
	r = comm_usable(call->comm);
	if (r != RCCLX_OK)
		return r;
	if (!is_for_daemon(call)) {
		r = check_inline(call);
		return r != RCCLX_OK ? r : run_inline(call);
	}
	r = call_start_now(call, &op);
	return r != RCCLX_OK ? r : op_finish(op, call->config.timeout_ns);
}

rcclx_result call_start(const char *function, const struct call *call, struct rcclx_op **op_p)
{
	if (!op_p)
		return err_set(RCCLX_ERR_INVALID, "%s: op_p is NULL", function);
	if (call->config.executor == RCCLX_EXECUTOR_INLINE)
		return err_set(RCCLX_ERR_INVALID,
			"%s: RCCLX_EXECUTOR_INLINE is for blocking calls only; a started operation "
			"is executed by the daemon",
			function);
	if (call->config.flags & RCCLX_CALL_IN_STREAM)
		return err_set(RCCLX_ERR_INVALID,
			"%s: RCCLX_CALL_IN_STREAM is for the calls without _start, which do not "
			"block then",
			function);
	if (group_is_open())
		return err_set(RCCLX_ERR_INVALID,
			"%s: a group is open in this thread; use the blocking calls in it, and "
			"rcclx_group_end_start() to go on without waiting",
			function);
	return call_start_now(call, op_p);
}
