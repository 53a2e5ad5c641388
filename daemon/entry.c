/* SPDX-License-Identifier: MIT */
#include "entry.h"

#include "../kernels/precision.h"

#include <inttypes.h>
#include <stdio.h>

bool entry_is_p2p(const struct rx_sqe *sqe)
{
	return sqe->coll == RX_SEND || sqe->coll == RX_RECV;
}

/* One buffer of @count elements at @offset of a region. */
static const char *check_buffer(
	bool known, uint64_t region_bytes, uint64_t offset, uint64_t count, uint32_t size)
{
	uint64_t bytes = 0;

	if (count == 0)
		return NULL;
	if (!rx_mul_u64(count, size, &bytes))
		return "the count is too large";
	if (!known)
		return "the memory handle is not one of this session";
	if (offset % size != 0)
		return "the buffer is not aligned to its type";
	if (!rx_range_ok(offset, bytes, region_bytes))
		return "the buffer is not inside the region";
	return NULL;
}

static const char *check_buffers(
	const struct rx_sqe *sqe, const struct entry_facts *facts, const struct rx_extent *extent)
{
	uint32_t size = rx_dtype_size(sqe->dtype);
	const char *why = check_buffer(
		facts->send_known, facts->send_bytes, sqe->send_offset, extent->send, size);

	if (why)
		return why;
	return check_buffer(
		facts->recv_known, facts->recv_bytes, sqe->recv_offset, extent->recv, size);
}

static const char *check_root(const struct rx_sqe *sqe, uint32_t n_ranks)
{
	/* Has been looked at already: it is where the numbers are. */
	if (rx_coll_is_v(sqe->coll))
		return NULL;
	if (entry_is_p2p(sqe))
		return sqe->root < n_ranks ? NULL : "there is no such peer";
	if (rx_coll_has_root(sqe->coll))
		return sqe->root < n_ranks ? NULL : "there is no such root";
	return sqe->root == 0 ? NULL : "this collective has no root";
}

/* What does not depend on the memory. */
static const char *check_call(const struct rx_sqe *sqe, uint32_t n_ranks)
{
	if (sqe->coll >= RX_COLL_N)
		return "this collective does not exist here";
	if (rx_dtype_size(sqe->dtype) == 0)
		return "unknown data type";
	if (rx_coll_reduces(sqe->coll) && sqe->op >= RX_REDOP_N)
		return "unknown reduction";
	if (!rx_coll_reduces(sqe->coll) && sqe->op != 0)
		return "this collective does not reduce";
	if (!rx_precision_flags_ok(sqe->flags & ~RX_SQE_CAPTURED, sqe->coll, sqe->dtype, sqe->op))
		return "unknown flags";
	if (sqe->coll == RX_BARRIER && sqe->count != 0)
		return "a barrier has no data";
	if (rx_coll_is_v(sqe->coll) && sqe->count != 0)
		return "a variable collective has no count in its entry";
	return check_root(sqe, n_ranks);
}

int entry_check_words(const struct rx_sqe *sqe, uint32_t n_ranks, bool known, uint64_t region_bytes,
	uint32_t *n_words_p, const char **why_p)
{
	uint32_t n_words = rx_counts_words(sqe->coll, n_ranks);
	const char *why = NULL;

	if (n_words > 0 && !known)
		why = "the memory handle of the counts is not one of this session";
	else if (n_words > 0 && sqe->imm % sizeof(uint64_t) != 0)
		why = "the counts are not aligned";
	else if (n_words > 0 && !rx_range_ok(sqe->imm, n_words * sizeof(uint64_t), region_bytes))
		why = "the counts are not inside the region";
	if (why) {
		*why_p = why;
		return ENTRY_E_BAD;
	}
	*n_words_p = n_words;
	return 0;
}

static bool find_extent(
	const struct rx_sqe *sqe, const struct entry_facts *facts, struct rx_extent *extent_p)
{
	struct rx_counts counts = {0};

	if (!rx_coll_is_v(sqe->coll))
		return rx_coll_extent(
			sqe->coll, sqe->count, facts->n_ranks, facts->rank, sqe->root, extent_p);
	counts = rx_counts_of(sqe->coll, facts->n_ranks, facts->words);
	return rx_counts_extent(sqe->coll, &counts, facts->n_ranks, facts->rank, extent_p);
}

int entry_check(const struct rx_sqe *sqe, const struct entry_facts *facts,
	struct rx_extent *extent_p, const char **why_p)
{
	struct rx_extent extent = {0};
	const char *why = check_call(sqe, facts->n_ranks);

	if (!why && !find_extent(sqe, facts, &extent))
		why = "the count is too large";
	if (!why)
		why = check_buffers(sqe, facts, &extent);
	if (why) {
		*why_p = why;
		return ENTRY_E_BAD;
	}
	*extent_p = extent;
	return 0;
}

struct rx_op_sig entry_sig(const struct rx_sqe *sqe)
{
	return (struct rx_op_sig){
		.coll = sqe->coll,
		.dtype = sqe->dtype,
		.op = sqe->op,
		.flags = (uint8_t)(sqe->flags & ~RX_SQE_CAPTURED),
		/* Where a rank has its counts is its own affair. */
		.root = rx_coll_is_v(sqe->coll) ? 0 : sqe->root,
		.count = sqe->count,
	};
}

void sig_describe(const struct rx_op_sig *sig, char *text, size_t bytes)
{
	const char *coll = rx_coll_name(sig->coll);
	const char *dtype = rx_dtype_name(sig->dtype);
	char reduction[24] = "";
	char root[24] = "";
	const char *low = rx_precision_words(sig->flags, sig->coll, sig->dtype, sig->op);

	if (sig->coll == RX_BARRIER) {
		(void)snprintf(text, bytes, "barrier");
		return;
	}
	if (rx_coll_reduces(sig->coll))
		(void)snprintf(reduction, sizeof(reduction), ", %s", rx_redop_name(sig->op));
	/* There is no one count; inline they are a checksum. */
	if (rx_coll_is_v(sig->coll)) {
		(void)snprintf(text, bytes, "%s of %s%s%s", coll, dtype, reduction, low);
		return;
	}
	if (rx_coll_has_root(sig->coll))
		(void)snprintf(root, sizeof(root), ", root %" PRIu32, sig->root);
	else if (sig->coll == RX_SEND)
		(void)snprintf(root, sizeof(root), " to rank %" PRIu32, sig->root);
	else if (sig->coll == RX_RECV)
		(void)snprintf(root, sizeof(root), " from rank %" PRIu32, sig->root);
	(void)snprintf(text, bytes, "%s of %" PRIu64 " %s%s%s%s", coll, sig->count, dtype,
		reduction, root, low);
}
