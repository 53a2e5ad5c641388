/* SPDX-License-Identifier: MIT */
#include "entry.h"

#include "../kernels/coll_types.h"
#include "../kernels/host/host_coll.h"

#include <inttypes.h>
#include <stdio.h>

bool entry_moves_data(const struct rx_sqe *sqe)
{
	return sqe->coll != RX_BARRIER && sqe->count > 0;
}

/* One buffer of @bytes at @offset of a region. */
static const char *check_buffer(
	bool known, uint64_t region_bytes, uint64_t offset, uint64_t bytes, uint32_t size)
{
	if (!known)
		return "the memory handle is not one of this session";
	if (offset % size != 0)
		return "the buffer is not aligned to its type";
	if (!rx_range_ok(offset, bytes, region_bytes))
		return "the buffer is not inside the region";
	return NULL;
}

static const char *check_all_reduce(const struct rx_sqe *sqe, const struct entry_facts *facts)
{
	uint32_t size = rx_dtype_size(sqe->dtype);
	uint64_t bytes = 0;
	const char *why = NULL;

	if (size == 0)
		return "unknown data type";
	if (sqe->op >= RX_REDOP_N)
		return "unknown reduction";
	if (!rx_mul_u64(sqe->count, size, &bytes))
		return "the count is too large";
	if (sqe->count == 0)
		return NULL;
	why = check_buffer(facts->send_known, facts->send_bytes, sqe->send_offset, bytes, size);
	if (why)
		return why;
	return check_buffer(facts->recv_known, facts->recv_bytes, sqe->recv_offset, bytes, size);
}

static const char *check(const struct rx_sqe *sqe, const struct entry_facts *facts)
{
	if (!host_coll_supported(sqe->coll))
		return "this collective does not exist here";
	if (sqe->flags != RX_SQE_F_NONE)
		return "unknown flags";
	if (sqe->root != 0)
		return "this collective has no root";
	if (sqe->coll == RX_ALL_REDUCE)
		return check_all_reduce(sqe, facts);
	return sqe->count == 0 ? NULL : "a barrier has no data";
}

int entry_check(const struct rx_sqe *sqe, const struct entry_facts *facts, const char **why_p)
{
	const char *why = check(sqe, facts);

	if (!why)
		return 0;
	*why_p = why;
	return ENTRY_E_BAD;
}

struct rx_op_sig entry_sig(const struct rx_sqe *sqe)
{
	return (struct rx_op_sig){
		.coll = sqe->coll,
		.dtype = sqe->dtype,
		.op = sqe->op,
		.flags = sqe->flags,
		.root = sqe->root,
		.count = sqe->count,
	};
}

void sig_describe(const struct rx_op_sig *sig, char *text, size_t bytes)
{
	if (sig->coll == RX_BARRIER)
		(void)snprintf(text, bytes, "barrier");
	else if (rx_coll_reduces(sig->coll))
		(void)snprintf(text, bytes, "%s of %" PRIu64 " %s, %s", rx_coll_name(sig->coll),
			sig->count, rx_dtype_name(sig->dtype), rx_redop_name(sig->op));
	else
		(void)snprintf(text, bytes, "%s of %" PRIu64 " %s", rx_coll_name(sig->coll),
			sig->count, rx_dtype_name(sig->dtype));
}
