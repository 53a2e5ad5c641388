/* SPDX-License-Identifier: MIT */
/* The collectives of equal counts, send and recv: each says what it is, call.c does the rest. */
#include "rcclx.h"

#include "call.h"
#include "comm.h"
#include "gpu.h"
#include "group.h"
#include "inline/fast.h"
#include "../kernels/coll_types.h"

/* Nothing is asked for but, perhaps, a time limit. */
static bool is_plain(const struct rcclx_call_config *config)
{
	return !config ||
	       (config->size == sizeof(*config) && config->executor <= RCCLX_EXECUTOR_INLINE &&
		       config->precision <= RCCLX_PRECISION_EXACT && config->flags == 0 &&
		       !config->stream);
}

static rcclx_result run(
	struct rcclx_comm *comm, struct args_coll args, const struct rcclx_call_config *config)
{
	struct call call;
	rcclx_result r = RCCLX_OK;

	/* Whatever is wrong is found, and said, below. */
	if (comm && is_plain(config) && !group_is_open() && !gpu_is_there() &&
		comm_usable(comm) == RCCLX_OK && comm->fabric.ctl->gpu == 0 &&
		fast_run(comm, &args, config ? config->timeout_ns : 0, &r))
		return r;
	r = call_prepare(comm, &args, config, &call);
	return r != RCCLX_OK ? r : call_run(&call);
}

static rcclx_result start(struct rcclx_comm *comm, struct args_coll args,
	const struct rcclx_call_config *config, struct rcclx_op **op_p)
{
	struct call call;
	rcclx_result r = call_prepare(comm, &args, config, &call);

	return r != RCCLX_OK ? r : call_start(args.function, &call, op_p);
}

/* For the texts, the function that was called. */
#define ARGS(coll_, ...) ((struct args_coll){.function = __func__, .coll = coll_, __VA_ARGS__})

rcclx_result rcclx_barrier(struct rcclx_comm *comm, const struct rcclx_call_config *config)
{
	return run(comm, ARGS(RX_BARRIER, .count = 0), config);
}

rcclx_result rcclx_barrier_start(
	struct rcclx_comm *comm, const struct rcclx_call_config *config, struct rcclx_op **op_p)
{
	return start(comm, ARGS(RX_BARRIER, .count = 0), config, op_p);
}

rcclx_result rcclx_all_reduce(struct rcclx_comm *comm, const void *send, void *recv, uint64_t count,
	uint32_t dtype, uint32_t op, const struct rcclx_call_config *config)
{
	return run(comm,
		ARGS(RX_ALL_REDUCE, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.op = op),
		config);
}

rcclx_result rcclx_all_reduce_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t op, const struct rcclx_call_config *config,
	struct rcclx_op **op_p)
{
	return start(comm,
		ARGS(RX_ALL_REDUCE, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.op = op),
		config, op_p);
}

rcclx_result rcclx_all_gather(struct rcclx_comm *comm, const void *send, void *recv, uint64_t count,
	uint32_t dtype, const struct rcclx_call_config *config)
{
	return run(comm,
		ARGS(RX_ALL_GATHER, .send = send, .recv = recv, .count = count, .dtype = dtype),
		config);
}

rcclx_result rcclx_all_gather_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, const struct rcclx_call_config *config,
	struct rcclx_op **op_p)
{
	return start(comm,
		ARGS(RX_ALL_GATHER, .send = send, .recv = recv, .count = count, .dtype = dtype),
		config, op_p);
}

rcclx_result rcclx_reduce_scatter(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t op, const struct rcclx_call_config *config)
{
	return run(comm,
		ARGS(RX_REDUCE_SCATTER, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.op = op),
		config);
}

rcclx_result rcclx_reduce_scatter_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t op, const struct rcclx_call_config *config,
	struct rcclx_op **op_p)
{
	return start(comm,
		ARGS(RX_REDUCE_SCATTER, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.op = op),
		config, op_p);
}

rcclx_result rcclx_all_to_all(struct rcclx_comm *comm, const void *send, void *recv, uint64_t count,
	uint32_t dtype, const struct rcclx_call_config *config)
{
	return run(comm,
		ARGS(RX_ALL_TO_ALL, .send = send, .recv = recv, .count = count, .dtype = dtype),
		config);
}

rcclx_result rcclx_all_to_all_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, const struct rcclx_call_config *config,
	struct rcclx_op **op_p)
{
	return start(comm,
		ARGS(RX_ALL_TO_ALL, .send = send, .recv = recv, .count = count, .dtype = dtype),
		config, op_p);
}

rcclx_result rcclx_broadcast(struct rcclx_comm *comm, const void *send, void *recv, uint64_t count,
	uint32_t dtype, uint32_t root, const struct rcclx_call_config *config)
{
	return run(comm,
		ARGS(RX_BROADCAST, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.root = root),
		config);
}

rcclx_result rcclx_broadcast_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t root, const struct rcclx_call_config *config,
	struct rcclx_op **op_p)
{
	return start(comm,
		ARGS(RX_BROADCAST, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.root = root),
		config, op_p);
}

rcclx_result rcclx_reduce(struct rcclx_comm *comm, const void *send, void *recv, uint64_t count,
	uint32_t dtype, uint32_t op, uint32_t root, const struct rcclx_call_config *config)
{
	return run(comm,
		ARGS(RX_REDUCE, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.op = op, .root = root),
		config);
}

rcclx_result rcclx_reduce_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t op, uint32_t root,
	const struct rcclx_call_config *config, struct rcclx_op **op_p)
{
	return start(comm,
		ARGS(RX_REDUCE, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.op = op, .root = root),
		config, op_p);
}

rcclx_result rcclx_gather(struct rcclx_comm *comm, const void *send, void *recv, uint64_t count,
	uint32_t dtype, uint32_t root, const struct rcclx_call_config *config)
{
	return run(comm,
		ARGS(RX_GATHER, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.root = root),
		config);
}

rcclx_result rcclx_gather_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t root, const struct rcclx_call_config *config,
	struct rcclx_op **op_p)
{
	return start(comm,
		ARGS(RX_GATHER, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.root = root),
		config, op_p);
}

rcclx_result rcclx_scatter(struct rcclx_comm *comm, const void *send, void *recv, uint64_t count,
	uint32_t dtype, uint32_t root, const struct rcclx_call_config *config)
{
	return run(comm,
		ARGS(RX_SCATTER, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.root = root),
		config);
}

rcclx_result rcclx_scatter_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t root, const struct rcclx_call_config *config,
	struct rcclx_op **op_p)
{
	return start(comm,
		ARGS(RX_SCATTER, .send = send, .recv = recv, .count = count, .dtype = dtype,
			.root = root),
		config, op_p);
}

rcclx_result rcclx_send(struct rcclx_comm *comm, const void *send, uint64_t count, uint32_t dtype,
	uint32_t peer, const struct rcclx_call_config *config)
{
	return run(comm, ARGS(RX_SEND, .send = send, .count = count, .dtype = dtype, .root = peer),
		config);
}

rcclx_result rcclx_send_start(struct rcclx_comm *comm, const void *send, uint64_t count,
	uint32_t dtype, uint32_t peer, const struct rcclx_call_config *config,
	struct rcclx_op **op_p)
{
	return start(comm,
		ARGS(RX_SEND, .send = send, .count = count, .dtype = dtype, .root = peer), config,
		op_p);
}

rcclx_result rcclx_recv(struct rcclx_comm *comm, void *recv, uint64_t count, uint32_t dtype,
	uint32_t peer, const struct rcclx_call_config *config)
{
	return run(comm, ARGS(RX_RECV, .recv = recv, .count = count, .dtype = dtype, .root = peer),
		config);
}

rcclx_result rcclx_recv_start(struct rcclx_comm *comm, void *recv, uint64_t count, uint32_t dtype,
	uint32_t peer, const struct rcclx_call_config *config, struct rcclx_op **op_p)
{
	return start(comm,
		ARGS(RX_RECV, .recv = recv, .count = count, .dtype = dtype, .root = peer), config,
		op_p);
}
