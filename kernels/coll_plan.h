/* SPDX-License-Identifier: MIT */
/*
 * The choosing: which algorithm and which piece size serve an operation.
 *
 * Pure: the same values on every rank give the same plan on every rank. Nothing here looks at a
 * pointer, an alignment, the environment or the clock.
 */
#ifndef RX_COLL_PLAN_H
#define RX_COLL_PLAN_H

#include "coll_types.h"
#include "../shm/rx_tuning_abi.h"

enum rx_algorithm {
	RX_ALG_TINY,   /* data travels in the control line; takers fold or copy it from there */
	RX_ALG_FLAT,   /* one-shot: data in the double-buffered slots, one barrier */
	RX_ALG_STAGED, /* through staging, pipelined in chunks; allreduce and reduce: two-shot */
	RX_ALG_DIRECT, /* straight over registered memory; allreduce and reduce: two-shot */
	RX_ALG_SINGLE, /* takers read the private memory of those who give, with the kernel's help
			*/
	RX_ALG_N
};

/** rx_tuning_default() - compiled-in thresholds */
const struct rx_tuning *rx_tuning_default(void);

/** rx_tuning_class() - column of the table for @n_ranks; rx_tuning_class_max(): its largest number
 */
uint32_t rx_tuning_class(uint32_t n_ranks);
uint32_t rx_tuning_class_max(uint32_t tuning_class);

/** rx_tuning_for() - thresholds of a collective; any @coll and @n_ranks */
const struct rx_tuning_entry *rx_tuning_for(
	const struct rx_tuning *tuning, uint32_t coll, uint32_t n_ranks);

struct rx_plan_query {
	uint32_t coll;
	uint32_t dtype;
	uint32_t op;
	uint32_t n_ranks;
	uint64_t count;  /* as the collective defines it; variable ones: the largest block */
	bool registered; /* all memory that peers would touch is registered */
	bool copied;     /* all ranks have copied what they have for others into their flat slots */
	bool reachable;  /* all ranks may read each other's private memory, and it pays */
	bool cores_shared; /* more ranks than cores */
};

/* What a rank does with its data when it announces an op, knowing only its own memory. */
enum rx_early {
	RX_EARLY_COPY,            /* send it along: tiny and flat messages */
	RX_EARLY_COPY_IF_PRIVATE, /* send it along unless its memory is registered */
	RX_EARLY_WAIT,            /* leave it where it is */
};

struct rx_plan {
	enum rx_algorithm algorithm;
	uint64_t chunk_count; /* staged: elements per chunk */
	bool stream;
};

/** rx_plan_early() - the same on all ranks; query->registered, ->copied, ->reachable are not looked
 * at */
enum rx_early rx_plan_early(
	const struct rx_plan_query *query, const struct rx_tuning_entry *thresholds);

/**
 * rx_plan_may_be_single() - could single copy serve it, if the ranks can reach each other?
 *
 * The same on all ranks; query->registered, ->copied and ->reachable are not looked at.
 */
bool rx_plan_may_be_single(
	const struct rx_plan_query *query, const struct rx_tuning_entry *thresholds);

/** rx_plan_make() - plan for @query; query->count * element size must not overflow */
struct rx_plan rx_plan_make(
	const struct rx_plan_query *query, const struct rx_tuning_entry *thresholds);

/**
 * rx_coll_personal() - has a rank a different block for each peer?
 *
 * All-to-all, scatter, and the inputs of reduce-scatter; elsewhere all takers get the same data.
 */
bool rx_coll_personal(uint32_t coll);

/** rx_algorithm_name() - "tiny", "flat", ... */
const char *rx_algorithm_name(enum rx_algorithm algorithm);

/* Part of @rank when @count elements are shared out among @n_ranks. */
struct rx_part {
	uint64_t first;
	uint64_t count; /* may be 0 */
};

/**
 * rx_part_of() - contiguous parts, cut at whole cache lines so that no two ranks write one line
 *
 * Every element is in exactly one part; lower ranks have the full parts.
 */
struct rx_part rx_part_of(uint64_t count, uint32_t element_bytes, uint32_t n_ranks, uint32_t rank);

#endif
