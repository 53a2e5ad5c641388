/* SPDX-License-Identifier: MIT */
#include "args_coll.h"

#include "err.h"

#define ULL(x) ((unsigned long long)(x))

rcclx_result args_types(const struct args_coll *args)
{
	if (args->dtype >= RX_DTYPE_N)
		return err_set(RCCLX_ERR_INVALID,
			"%s: dtype is %u, expected RCCLX_INT8 (0) to RCCLX_FLOAT8E5M2 (%d)",
			args->function, args->dtype, RX_DTYPE_N - 1);
	if (!rx_coll_reduces(args->coll))
		return RCCLX_OK;
	if (args->op >= RX_REDOP_N)
		return err_set(RCCLX_ERR_INVALID,
			"%s: op is %u, expected RCCLX_SUM (0) to RCCLX_PREMUL_SUM (%d)",
			args->function, args->op, RX_REDOP_N - 1);
	if (args->op == RX_PREMUL_SUM && !args->scalar)
		return err_set(RCCLX_ERR_INVALID,
			"%s: RCCLX_PREMUL_SUM needs a scalar: set scalar in struct "
			"rcclx_call_config to the address of one %s",
			args->function, rx_dtype_name(args->dtype));
	return RCCLX_OK;
}

static rcclx_result check_root(const struct args_coll *args)
{
	bool p2p = args->coll == RX_SEND || args->coll == RX_RECV;

	if ((!p2p && !rx_coll_has_root(args->coll)) || args->root < args->n_ranks)
		return RCCLX_OK;
	return err_set(RCCLX_ERR_INVALID,
		"%s: %s is %u, expected a rank from 0 to %u of this communicator of %u",
		args->function, p2p ? "peer" : "root", args->root, args->n_ranks - 1,
		args->n_ranks);
}

rcclx_result args_buffer(
	const struct args_coll *args, const char *which, const void *at, uint64_t bytes)
{
	uint32_t size = rx_dtype_size(args->dtype);
	uint64_t end = 0;

	if (!at)
		return err_set(RCCLX_ERR_INVALID,
			"%s: %s is NULL, expected memory of %llu %s elements (%llu bytes)",
			args->function, which, ULL(bytes / size), rx_dtype_name(args->dtype),
			ULL(bytes));
	if ((uintptr_t)at % size != 0)
		return err_set(RCCLX_ERR_INVALID,
			"%s: %s is %p, expected an address that is a multiple of %u, the size of "
			"%s",
			args->function, which, at, size, rx_dtype_name(args->dtype));
	if (!rx_add_u64((uintptr_t)at, bytes, &end))
		return err_set(RCCLX_ERR_INVALID,
			"%s: %s of %llu bytes at %p goes beyond the address space", args->function,
			which, ULL(bytes), at);
	return RCCLX_OK;
}

static rcclx_result too_large(const struct args_coll *args)
{
	return err_set(RCCLX_ERR_INVALID,
		"%s: count is %llu: so many %s elements (on %u ranks) are no 64-bit number of "
		"bytes",
		args->function, ULL(args->count), rx_dtype_name(args->dtype), args->n_ranks);
}

/* Apart, or one inside the other exactly where the collective's in-place rule has it. */
static rcclx_result check_overlap(const struct args_coll *args, const struct rx_extent *extent,
	const struct args_bytes *bytes)
{
	uint32_t size = rx_dtype_size(args->dtype);
	uintptr_t send = (uintptr_t)args->send;
	uintptr_t recv = (uintptr_t)args->recv;

	if (bytes->send == 0 || bytes->recv == 0 || send + bytes->send <= recv ||
		recv + bytes->recv <= send)
		return RCCLX_OK;
	if (!extent->in_place_ok)
		return err_set(RCCLX_ERR_INVALID,
			"%s: send (%p, %llu bytes) and recv (%p, %llu bytes) overlap; this "
			"collective has no in-place form: they have to be apart",
			args->function, args->send, ULL(bytes->send), args->recv, ULL(bytes->recv));
	if (send == recv + extent->send_in_recv * size && extent->recv_in_send == 0)
		return RCCLX_OK;
	if (recv == send + extent->recv_in_send * size && extent->send_in_recv == 0)
		return RCCLX_OK;
	return err_set(RCCLX_ERR_INVALID,
		"%s: send (%p, %llu bytes) and recv (%p, %llu bytes) overlap; in place, %s has to "
		"be %s + %llu elements; otherwise they have to be apart",
		args->function, args->send, ULL(bytes->send), args->recv, ULL(bytes->recv),
		extent->recv_in_send ? "recv" : "send", extent->recv_in_send ? "send" : "recv",
		ULL(extent->recv_in_send ? extent->recv_in_send : extent->send_in_recv));
}

rcclx_result args_coll(const struct args_coll *args, struct args_bytes *bytes_p)
{
	struct args_bytes bytes = {0};
	struct rx_extent extent;
	rcclx_result r = args_types(args);

	if (r == RCCLX_OK)
		r = check_root(args);
	if (r != RCCLX_OK)
		return r;
	if (!rx_coll_extent(
		    args->coll, args->count, args->n_ranks, args->rank, args->root, &extent) ||
		!rx_mul_u64(extent.send, rx_dtype_size(args->dtype), &bytes.send) ||
		!rx_mul_u64(extent.recv, rx_dtype_size(args->dtype), &bytes.recv))
		return too_large(args);
	if (bytes.send > 0)
		r = args_buffer(args, "send", args->send, bytes.send);
	if (r == RCCLX_OK && bytes.recv > 0)
		r = args_buffer(args, "recv", args->recv, bytes.recv);
	if (r == RCCLX_OK)
		r = check_overlap(args, &extent, &bytes);
	if (r == RCCLX_OK)
		*bytes_p = bytes;
	return r;
}
