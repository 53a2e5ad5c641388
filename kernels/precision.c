/* SPDX-License-Identifier: MIT */
#include "precision.h"

#include "coll_plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* The switch of a collective; 0: it has no form in low precision. */
static uint32_t switch_of(uint32_t coll)
{
	switch (coll) {
	case RX_ALL_REDUCE:
		return RX_PRECISION_ALL_REDUCE;
	case RX_ALL_GATHER:
	case RX_ALL_GATHER_V:
		return RX_PRECISION_ALL_GATHER;
	case RX_REDUCE_SCATTER:
	case RX_REDUCE_SCATTER_V:
		return RX_PRECISION_REDUCE_SCATTER;
	case RX_ALL_TO_ALL:
	case RX_ALL_TO_ALL_V:
		return RX_PRECISION_ALL_TO_ALL;
	default:
		return 0;
	}
}

static bool has_dtype(uint32_t dtype)
{
	return dtype == RX_FLOAT32 || dtype == RX_BFLOAT16 || dtype == RX_FLOAT16;
}

static bool has_op(uint32_t coll, uint32_t op)
{
	return !rx_coll_reduces(coll) || op == RX_SUM || op == RX_AVG;
}

uint64_t rx_precision_elements(uint32_t coll, uint64_t count, uint32_t n_ranks)
{
	uint64_t all = 0;

	if (coll == RX_ALL_REDUCE)
		return count;
	return rx_mul_u64(count, n_ranks, &all) ? all : UINT64_MAX;
}

uint64_t rx_precision_min(const struct rx_precision *precision, const struct rx_tuning *tuning,
	uint32_t coll, uint32_t n_ranks)
{
	if (precision->min_bytes > 0)
		return precision->min_bytes;
	return rx_tuning_for(tuning, coll, n_ranks)->low_precision_min;
}

bool rx_precision_large(uint64_t elements, uint32_t dtype, uint64_t min_bytes)
{
	uint64_t bytes = 0;

	return !rx_mul_u64(elements, rx_dtype_size(dtype), &bytes) || bytes >= min_bytes;
}

static enum rx_precision_why decide(const struct rx_precision_query *query,
	const struct rx_precision *precision, uint64_t min_bytes)
{
	if (switch_of(query->coll) == 0)
		return RX_WHY_COLL;
	if (!has_dtype(query->dtype))
		return RX_WHY_DTYPE;
	if (!has_op(query->coll, query->op))
		return RX_WHY_OP;
	if (query->request == RX_PRECISION_EXACT)
		return RX_WHY_EXACT;
	if (query->request == RX_PRECISION_AUTO && !(precision->flags & switch_of(query->coll)))
		return RX_WHY_OFF;
	if (query->n_ranks < 2)
		return RX_WHY_ONE_RANK;
	if (query->over_budget)
		return RX_WHY_OVER_BUDGET;
	if (query->request != RX_PRECISION_AUTO)
		return RX_WHY_REQUESTED;
	if (query->coll == RX_ALL_TO_ALL_V)
		return RX_WHY_IF_LARGE;
	return rx_precision_large(query->elements, query->dtype, min_bytes) ? RX_WHY_LARGE
									    : RX_WHY_SMALL;
}

uint8_t rx_precision_flags(const struct rx_precision_query *query,
	const struct rx_precision *precision, uint64_t min_bytes, enum rx_precision_why *why_p)
{
	enum rx_precision_why why = decide(query, precision, min_bytes);
	bool int8 = query->request == RX_PRECISION_AUTO ? precision->flags & RX_PRECISION_AS_INT8
							: query->request == RX_PRECISION_INT8;

	if (why_p)
		*why_p = why;
	if (why == RX_WHY_IF_LARGE)
		return int8 ? RX_SIG_INT8_IF_LARGE : RX_SIG_FP8_IF_LARGE;
	if (why != RX_WHY_REQUESTED && why != RX_WHY_LARGE)
		return 0;
	return int8 ? RX_SIG_INT8 : RX_SIG_FP8;
}

bool rx_precision_flags_ok(uint32_t flags, uint32_t coll, uint32_t dtype, uint32_t op)
{
	switch (flags) {
	case 0:
		return true;
	case RX_SIG_FP8:
	case RX_SIG_INT8:
		break;
	case RX_SIG_FP8_IF_LARGE:
	case RX_SIG_INT8_IF_LARGE:
		if (coll == RX_ALL_TO_ALL_V)
			break;
		return false;
	default:
		return false;
	}
	return switch_of(coll) != 0 && has_dtype(dtype) && has_op(coll, op);
}

enum rx_mx_format rx_precision_format(uint32_t flags)
{
	return flags & (RX_SIG_INT8 | RX_SIG_INT8_IF_LARGE) ? RX_MX_INT8 : RX_MX_FP8;
}

const char *rx_precision_words(uint32_t flags, uint32_t coll, uint32_t dtype, uint32_t op)
{
	static const char *const words[RX_MX_FORMAT_N] = {
		[RX_MX_FP8] = ", in low precision (fp8)",
		[RX_MX_INT8] = ", in low precision (int8)",
	};

	if (flags == 0 || !rx_precision_flags_ok(flags, coll, dtype, op))
		return "";
	return words[rx_precision_format(flags)];
}

const char *rx_precision_ok(const struct rx_precision *precision)
{
	if (precision->flags & ~(uint32_t)RX_PRECISION_FLAGS)
		return "unknown switches of low precision";
	if (precision->sample_every > 0 && precision->sample_every < RX_PRECISION_SAMPLE_MIN)
		return "more blocks are to be checked than there is room for";
	if (precision->budget_ppm > 0 && precision->sample_every == 0)
		return "an accuracy budget without checking";
	return NULL;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void rx_precision_add(struct rx_precision_counts *sum, const struct rx_precision_counts *more)
{
	sum->n_ops = add(sum->n_ops, more->n_ops);
	sum->exact_bytes = add(sum->exact_bytes, more->exact_bytes);
	sum->wire_bytes = add(sum->wire_bytes, more->wire_bytes);
	sum->n_blocks = add(sum->n_blocks, more->n_blocks);
	sum->n_saturated = add(sum->n_saturated, more->n_saturated);
	sum->n_flushed = add(sum->n_flushed, more->n_flushed);
	sum->n_special = add(sum->n_special, more->n_special);
	sum->n_sampled = add(sum->n_sampled, more->n_sampled);
	sum->error_ppm = rx_max_u64(sum->error_ppm, more->error_ppm);
	sum->worst_ppm = rx_max_u64(sum->worst_ppm, more->worst_ppm);
}

/* snprintf() at the end of what is there; says nothing of what does not fit. */
__attribute__((format(printf, 3, 4))) static void append(
	char text[RX_PRECISION_TEXT], size_t *at, const char *format, ...)
{
	va_list args;
	int n = 0;

	if (*at >= RX_PRECISION_TEXT)
		return;
	va_start(args, format);
	n = vsnprintf(text + *at, RX_PRECISION_TEXT - *at, format, args);
	va_end(args);
	*at += n > 0 ? (size_t)n : 0;
}

void rx_precision_describe(const struct rx_precision *precision, char text[RX_PRECISION_TEXT])
{
	static const char *const names[] = {
		"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
	const char *comma = "";
	size_t at = 0;

	for (uint32_t i = 0; i < RX_ARRAY_SIZE(names); i++) {
		if (!(precision->flags & 1u << i))
			continue;
		append(text, &at, "%s%s", comma, names[i]);
		comma = ", ";
	}
	if (at == 0)
		append(text, &at, "off");
	if (precision->min_bytes > 0)
		append(text, &at, ", from %" PRIu64 " bytes", precision->min_bytes);
	if (precision->flags & RX_PRECISION_AS_INT8)
		append(text, &at, ", as int8");
	if (precision->flags & RX_PRECISION_GATHER_BF16)
		append(text, &at, ", sums as bfloat16");
	if (precision->sample_every > 0)
		append(text, &at, ", one block in %u checked", precision->sample_every);
	if (precision->budget_ppm > 0)
		append(text, &at, ", budget %u ppm", precision->budget_ppm);
	if (precision->link_rate > 0)
		append(text, &at, ", link of %" PRIu64 " bytes/s", precision->link_rate);
}
