/* SPDX-License-Identifier: MIT */
#include "coll_plan.h"

#include "../shm/rx_fabric_abi.h"

static_assert(RX_TUNING_COLLS == RX_COLL_N, "a row of thresholds for each collective");

static const uint32_t class_max[RX_TUNING_CLASSES] = {2, 4, 8, 16, RX_MAX_RANKS};

/*
 * One-shot makes every rank read everybody's data, two-shot needs one barrier more: the fewer
 * ranks, the longer one-shot pays. Registered memory needs no copy in, so it changes over sooner;
 * but not where ranks share cores and each barrier takes them turns.
 * Measured with 2 ranks on 2 cores, and with 4 and 8 that share them (doc/performance.md).
 */
#define THRESHOLDS(flat, shared, direct)                                                           \
	{                                                                                          \
		.flat_max = (flat), .flat_max_shared = (shared), .chunk = RX_CHUNK_BYTES,          \
		.single_min = 16384, .direct_min = (direct), .stream_min = 16ull << 20,            \
		.low_precision_min = 16u << 20                                                     \
	}
#define ROW                                                                                        \
	{                                                                                          \
		THRESHOLDS(RX_FLAT_BYTES, 16384, 4096), THRESHOLDS(16384, 16384, 2048),            \
			THRESHOLDS(8192, 16384, 2048), THRESHOLDS(4096, 4096, 2048),               \
			THRESHOLDS(4096, 4096, 2048)                                               \
	}

const struct rx_tuning *rx_tuning_default(void)
{
	static const struct rx_tuning tuning = {
		.epoch = 0,
		.entries = {ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW},
	};

	return &tuning;
}

uint32_t rx_tuning_class(uint32_t n_ranks)
{
	uint32_t c = 0;

	while (c + 1 < RX_TUNING_CLASSES && n_ranks > class_max[c])
		c++;
	return c;
}

uint32_t rx_tuning_class_max(uint32_t tuning_class)
{
	return class_max[tuning_class < RX_TUNING_CLASSES ? tuning_class : RX_TUNING_CLASSES - 1];
}

const struct rx_tuning_entry *rx_tuning_for(
	const struct rx_tuning *tuning, uint32_t coll, uint32_t n_ranks)
{
	return &tuning->entries[coll < RX_COLL_N ? coll : RX_BARRIER][rx_tuning_class(n_ranks)];
}

bool rx_coll_personal(uint32_t coll)
{
	switch (coll) {
	case RX_REDUCE_SCATTER:
	case RX_REDUCE_SCATTER_V:
	case RX_ALL_TO_ALL:
	case RX_ALL_TO_ALL_V:
	case RX_SCATTER:
		return true;
	default:
		return false;
	}
}

/* What one rank has for others; saturates where a personal message is beyond any threshold. */
static uint64_t query_bytes(const struct rx_plan_query *query)
{
	uint64_t bytes = query->count * rx_dtype_size(query->dtype);

	if (rx_coll_personal(query->coll) && !rx_mul_u64(bytes, query->n_ranks, &bytes))
		return UINT64_MAX;
	return bytes;
}

static uint64_t flat_limit(
	const struct rx_plan_query *query, const struct rx_tuning_entry *thresholds)
{
	uint64_t limit = query->cores_shared ? thresholds->flat_max_shared : thresholds->flat_max;

	return rx_min_u64(limit, RX_FLAT_BYTES);
}

enum rx_early rx_plan_early(
	const struct rx_plan_query *query, const struct rx_tuning_entry *thresholds)
{
	uint64_t bytes = query_bytes(query);

	/* The ranks learn the largest block of an all_to_all_v only from each other. */
	if (query->coll == RX_ALL_TO_ALL_V)
		return RX_EARLY_WAIT;
	if (bytes <= RX_ENTRY_PAYLOAD)
		return RX_EARLY_COPY;
	if (bytes > flat_limit(query, thresholds))
		return RX_EARLY_WAIT;
	if (query->cores_shared || bytes < thresholds->direct_min)
		return RX_EARLY_COPY;
	return RX_EARLY_COPY_IF_PRIVATE;
}

static bool single_serves(const struct rx_plan_query *query)
{
	switch (query->coll) {
	case RX_ALL_GATHER:
	case RX_ALL_GATHER_V:
	case RX_ALL_TO_ALL:
	case RX_ALL_TO_ALL_V:
	case RX_BROADCAST:
	case RX_GATHER:
	case RX_SCATTER:
		return query->n_ranks > 1;
	default:
		return false;
	}
}

bool rx_plan_may_be_single(
	const struct rx_plan_query *query, const struct rx_tuning_entry *thresholds)
{
	if (!single_serves(query))
		return false;
	/* The largest block is not known yet. */
	if (query->coll == RX_ALL_TO_ALL_V)
		return true;
	return query_bytes(query) >= thresholds->single_min &&
	       rx_plan_early(query, thresholds) != RX_EARLY_COPY;
}

static enum rx_algorithm choose(
	const struct rx_plan_query *query, const struct rx_tuning_entry *thresholds)
{
	uint64_t bytes = query_bytes(query);
	enum rx_early early = rx_plan_early(query, thresholds);

	if (early == RX_EARLY_COPY)
		return bytes <= RX_ENTRY_PAYLOAD ? RX_ALG_TINY : RX_ALG_FLAT;
	if (query->registered && bytes >= thresholds->direct_min)
		return RX_ALG_DIRECT;
	if (query->reachable && bytes >= thresholds->single_min && single_serves(query))
		return RX_ALG_SINGLE;
	if (early == RX_EARLY_COPY_IF_PRIVATE && query->copied)
		return RX_ALG_FLAT;
	return RX_ALG_STAGED;
}

struct rx_plan rx_plan_make(
	const struct rx_plan_query *query, const struct rx_tuning_entry *thresholds)
{
	uint64_t chunk = rx_min_u64(thresholds->chunk, RX_CHUNK_BYTES);
	uint32_t size = rx_dtype_size(query->dtype);
	struct rx_plan plan = {
		.algorithm = choose(query, thresholds),
		.stream = query_bytes(query) >= thresholds->stream_min,
	};

	if (size > 0)
		plan.chunk_count = rx_max_u64(chunk, RX_CACHE_LINE) / size;
	return plan;
}

const char *rx_algorithm_name(enum rx_algorithm algorithm)
{
	static const char *const names[RX_ALG_N] = {
		[RX_ALG_TINY] = "tiny",
		[RX_ALG_FLAT] = "flat",
		[RX_ALG_STAGED] = "staged",
		[RX_ALG_DIRECT] = "direct",
		[RX_ALG_SINGLE] = "single",
	};

	return (uint32_t)algorithm < RX_ALG_N ? names[algorithm] : "?";
}

struct rx_part rx_part_of(uint64_t count, uint32_t element_bytes, uint32_t n_ranks, uint32_t rank)
{
	uint64_t line = element_bytes < RX_CACHE_LINE ? RX_CACHE_LINE / element_bytes : 1;
	uint64_t each = count / n_ranks + (count % n_ranks != 0);
	struct rx_part part = {0};

	/* Rounding up to whole lines leaves nothing for the last ranks of a short message. */
	each = rx_align_up(each, line);
	if (each == 0 || rank > count / each)
		return (struct rx_part){.first = count};
	part.first = rank * each;
	part.count = rx_min_u64(each, count - part.first);
	return part;
}
