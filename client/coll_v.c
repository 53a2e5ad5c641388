/* SPDX-License-Identifier: MIT */
/* The variable collectives: checks of their counts and displacements, then as the others. */
#include "rcclx.h"

#include "call.h"
#include "comm.h"
#include "err.h"

#include <string.h>

#define ULL(x) ((unsigned long long)(x))

/* One side of a call: blocks of counts[r] elements at displs[r]; displs NULL: one after the other.
 */
struct side {
	const char *name;
	const void *base;
	const uint64_t *counts;
	const uint64_t *displs;
};

/* Bytes from base to the end of the last block; 0: no data. */
static rcclx_result side_bytes(
	const struct args_coll *args, const struct side *side, uint64_t *bytes_p)
{
	uint64_t next = 0;
	uint64_t elements = 0;

	if (!side->counts)
		return err_set(RCCLX_ERR_INVALID,
			"%s: the counts of %s are NULL, expected %u numbers, one per rank",
			args->function, side->name, args->n_ranks);
	for (uint32_t rank = 0; rank < args->n_ranks; rank++) {
		uint64_t first = side->displs ? side->displs[rank] : next;
		uint64_t end = 0;

		if (!rx_add_u64(first, side->counts[rank], &end))
			return err_set(RCCLX_ERR_INVALID,
				"%s: block %u of %s, %llu elements at %llu, is out of range",
				args->function, rank, side->name, ULL(side->counts[rank]),
				ULL(first));
		next = end;
		if (side->counts[rank] > 0)
			elements = rx_max_u64(elements, end);
	}
	if (!rx_mul_u64(elements, rx_dtype_size(args->dtype), bytes_p))
		return err_set(RCCLX_ERR_INVALID,
			"%s: %s has %llu %s elements: that is no 64-bit number of bytes",
			args->function, side->name, ULL(elements), rx_dtype_name(args->dtype));
	return *bytes_p > 0 ? args_buffer(args, side->name, side->base, *bytes_p) : RCCLX_OK;
}

/* Two ranks' blocks on one place would make the result depend on who comes last. */
static rcclx_result check_blocks_apart(const struct args_coll *args, const struct side *side)
{
	for (uint32_t a = 0; a < args->n_ranks; a++) {
		for (uint32_t b = a + 1; b < args->n_ranks; b++) {
			uint64_t x = side->displs[a];
			uint64_t y = side->displs[b];

			if (side->counts[a] == 0 || side->counts[b] == 0)
				continue;
			if (x < y + side->counts[b] && y < x + side->counts[a])
				return err_set(RCCLX_ERR_INVALID,
					"%s: blocks %u and %u of %s overlap (at %llu and %llu)",
					args->function, a, b, side->name, ULL(x), ULL(y));
		}
	}
	return RCCLX_OK;
}

static bool overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
	uintptr_t x = (uintptr_t)a;
	uintptr_t y = (uintptr_t)b;

	return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

/* In place: the small buffer has to be its own rank's block of the large one. */
static rcclx_result check_in_place(const struct args_coll *args, const void *large,
	uint64_t large_bytes, const void *small, uint64_t small_bytes, uint64_t own_first)
{
	if (!overlap(large, large_bytes, small, small_bytes) ||
		(uintptr_t)small == (uintptr_t)large + own_first * rx_dtype_size(args->dtype))
		return RCCLX_OK;
	return err_set(RCCLX_ERR_INVALID,
		"%s: send (%p) and recv (%p) overlap; in place, the smaller one has to be element "
		"%llu of the larger one, this rank's block",
		args->function, args->send, args->recv, ULL(own_first));
}

/* What all ranks have to agree on is more than an op's description has room for. FNV-1a. */
static uint64_t hash_counts(const uint64_t *counts, uint32_t n)
{
	const uint8_t *bytes = (const uint8_t *)counts;
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n * sizeof(*counts); i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	return hash;
}

static rcclx_result begin(struct rcclx_comm *comm, struct args_coll *args,
	const struct rcclx_call_config *config, struct call *call)
{
	rcclx_result r = RCCLX_OK;

	memset(call, 0, sizeof(*call));
	call->comm = comm;
	r = call_config(args->function, comm, config, &call->config);
	if (r != RCCLX_OK)
		return r;
	args->n_ranks = comm->n_ranks;
	args->rank = comm->rank;
	args->scalar = call->config.scalar;
	r = args_types(args);
	if (r != RCCLX_OK)
		return r;
	call->request.sig.coll = args->coll;
	call->request.sig.dtype = (uint8_t)args->dtype;
	call->request.sig.op = (uint8_t)args->op;
	if (rx_coll_reduces(args->coll) && args->op == RX_PREMUL_SUM)
		memcpy(&call->request.imm, args->scalar, rx_dtype_size(args->dtype));
	return RCCLX_OK;
}

static void set_buffers(
	struct call *call, const struct args_coll *args, uint64_t send_bytes, uint64_t recv_bytes)
{
	call->request.send = send_bytes > 0 ? args->send : NULL;
	call->request.recv = recv_bytes > 0 ? args->recv : NULL;
	call->request.send_bytes = send_bytes;
	call->request.recv_bytes = recv_bytes;
}

static rcclx_result prepare_gather(struct rcclx_comm *comm, struct args_coll *args,
	const uint64_t *counts, const uint64_t *displs, const struct rcclx_call_config *config,
	struct call *call)
{
	struct side recv = {"recv", args->recv, counts, displs};
	uint64_t recv_bytes = 0;
	uint64_t send_bytes = 0;
	rcclx_result r = begin(comm, args, config, call);

	if (r == RCCLX_OK && !displs)
		r = err_set(RCCLX_ERR_INVALID, "%s: displs is NULL", args->function);
	if (r == RCCLX_OK)
		r = side_bytes(args, &recv, &recv_bytes);
	if (r == RCCLX_OK)
		r = check_blocks_apart(args, &recv);
	if (r != RCCLX_OK)
		return r;
	send_bytes = counts[comm->rank] * rx_dtype_size(args->dtype);
	if (send_bytes > 0)
		r = args_buffer(args, "send", args->send, send_bytes);
	if (r == RCCLX_OK)
		r = check_in_place(
			args, args->recv, recv_bytes, args->send, send_bytes, displs[comm->rank]);
	set_buffers(call, args, send_bytes, recv_bytes);
	call->request.sig.count = hash_counts(counts, comm->n_ranks);
	call->request.v = (struct rx_counts){.recv_counts = counts, .recv_displs = displs};
	call_set_precision(call, rx_counts_sum(counts, comm->n_ranks));
	return r;
}

static rcclx_result prepare_scatter(struct rcclx_comm *comm, struct args_coll *args,
	const uint64_t *counts, const struct rcclx_call_config *config, struct call *call)
{
	struct side send = {"send", args->send, counts, NULL};
	uint64_t send_bytes = 0;
	uint64_t recv_bytes = 0;
	uint64_t own_first = 0;
	rcclx_result r = begin(comm, args, config, call);

	if (r == RCCLX_OK)
		r = side_bytes(args, &send, &send_bytes);
	if (r != RCCLX_OK)
		return r;
	for (uint32_t rank = 0; rank < comm->rank; rank++)
		own_first += counts[rank];
	recv_bytes = counts[comm->rank] * rx_dtype_size(args->dtype);
	if (recv_bytes > 0)
		r = args_buffer(args, "recv", args->recv, recv_bytes);
	if (r == RCCLX_OK)
		r = check_in_place(args, args->send, send_bytes, args->recv, recv_bytes, own_first);
	set_buffers(call, args, send_bytes, recv_bytes);
	call->request.sig.count = hash_counts(counts, comm->n_ranks);
	call->request.v = (struct rx_counts){.send_counts = counts};
	call_set_precision(call, rx_counts_sum(counts, comm->n_ranks));
	return r;
}

static rcclx_result prepare_all_to_all(struct rcclx_comm *comm, struct args_coll *args,
	const struct rx_counts *v, const struct rcclx_call_config *config, struct call *call)
{
	struct side send = {"send", args->send, v->send_counts, v->send_displs};
	struct side recv = {"recv", args->recv, v->recv_counts, v->recv_displs};
	uint64_t send_bytes = 0;
	uint64_t recv_bytes = 0;
	rcclx_result r = begin(comm, args, config, call);

	if (r == RCCLX_OK && (!v->send_displs || !v->recv_displs))
		r = err_set(RCCLX_ERR_INVALID, "%s: %s is NULL", args->function,
			v->send_displs ? "recv_displs" : "send_displs");
	if (r == RCCLX_OK)
		r = side_bytes(args, &send, &send_bytes);
	if (r == RCCLX_OK)
		r = side_bytes(args, &recv, &recv_bytes);
	if (r == RCCLX_OK)
		r = check_blocks_apart(args, &recv);
	if (r == RCCLX_OK && overlap(args->send, send_bytes, args->recv, recv_bytes))
		r = err_set(RCCLX_ERR_INVALID,
			"%s: send (%p) and recv (%p) overlap; this collective has no in-place form",
			args->function, args->send, args->recv);
	set_buffers(call, args, send_bytes, recv_bytes);
	call->request.v = *v;
	call_set_precision(call, 0);
	return r;
}

#define ARGS(coll_, ...) ((struct args_coll){.function = __func__, .coll = coll_, __VA_ARGS__})

rcclx_result rcclx_all_gather_v(struct rcclx_comm *comm, const void *send, void *recv,
	const uint64_t *counts, const uint64_t *displs, uint32_t dtype,
	const struct rcclx_call_config *config)
{
	struct args_coll args = ARGS(RX_ALL_GATHER_V, .send = send, .recv = recv, .dtype = dtype);
	struct call call;
	rcclx_result r = prepare_gather(comm, &args, counts, displs, config, &call);

	return r != RCCLX_OK ? r : call_run(&call);
}

rcclx_result rcclx_all_gather_v_start(struct rcclx_comm *comm, const void *send, void *recv,
	const uint64_t *counts, const uint64_t *displs, uint32_t dtype,
	const struct rcclx_call_config *config, struct rcclx_op **op_p)
{
	struct args_coll args = ARGS(RX_ALL_GATHER_V, .send = send, .recv = recv, .dtype = dtype);
	struct call call;
	rcclx_result r = prepare_gather(comm, &args, counts, displs, config, &call);

	return r != RCCLX_OK ? r : call_start(args.function, &call, op_p);
}

rcclx_result rcclx_reduce_scatter_v(struct rcclx_comm *comm, const void *send, void *recv,
	const uint64_t *counts, uint32_t dtype, uint32_t op, const struct rcclx_call_config *config)
{
	struct args_coll args =
		ARGS(RX_REDUCE_SCATTER_V, .send = send, .recv = recv, .dtype = dtype, .op = op);
	struct call call;
	rcclx_result r = prepare_scatter(comm, &args, counts, config, &call);

	return r != RCCLX_OK ? r : call_run(&call);
}

rcclx_result rcclx_reduce_scatter_v_start(struct rcclx_comm *comm, const void *send, void *recv,
	const uint64_t *counts, uint32_t dtype, uint32_t op, const struct rcclx_call_config *config,
	struct rcclx_op **op_p)
{
	struct args_coll args =
		ARGS(RX_REDUCE_SCATTER_V, .send = send, .recv = recv, .dtype = dtype, .op = op);
	struct call call;
	rcclx_result r = prepare_scatter(comm, &args, counts, config, &call);

	return r != RCCLX_OK ? r : call_start(args.function, &call, op_p);
}

rcclx_result rcclx_all_to_all_v(struct rcclx_comm *comm, const void *send,
	const uint64_t *send_counts, const uint64_t *send_displs, void *recv,
	const uint64_t *recv_counts, const uint64_t *recv_displs, uint32_t dtype,
	const struct rcclx_call_config *config)
{
	struct args_coll args = ARGS(RX_ALL_TO_ALL_V, .send = send, .recv = recv, .dtype = dtype);
	struct rx_counts v = {send_counts, send_displs, recv_counts, recv_displs};
	struct call call;
	rcclx_result r = prepare_all_to_all(comm, &args, &v, config, &call);

	return r != RCCLX_OK ? r : call_run(&call);
}

rcclx_result rcclx_all_to_all_v_start(struct rcclx_comm *comm, const void *send,
	const uint64_t *send_counts, const uint64_t *send_displs, void *recv,
	const uint64_t *recv_counts, const uint64_t *recv_displs, uint32_t dtype,
	const struct rcclx_call_config *config, struct rcclx_op **op_p)
{
	struct args_coll args = ARGS(RX_ALL_TO_ALL_V, .send = send, .recv = recv, .dtype = dtype);
	struct rx_counts v = {send_counts, send_displs, recv_counts, recv_displs};
	struct call call;
	rcclx_result r = prepare_all_to_all(comm, &args, &v, config, &call);

	return r != RCCLX_OK ? r : call_start(args.function, &call, op_p);
}
