/* SPDX-License-Identifier: MIT */
/* rcclx-perf's command line. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include "../../shm/rx_base.h"

#define PERF_SIZES_MAX 256u

struct perf_coll;

struct perf_options {
	const struct perf_coll *coll;
	bool all;         /* every collective in turn, as each allows; coll is the first */
	uint32_t n_ranks; /* 0: not given */
	uint64_t min_bytes;
	uint64_t max_bytes;
	uint64_t factor;                /* >= 2 */
	uint64_t sizes[PERF_SIZES_MAX]; /* bytes; instead of the range, unless there are none */
	uint32_t n_sizes;
	uint32_t dtype; /* enum rx_dtype */
	uint32_t op;    /* enum rx_redop */
	uint32_t root;
	uint32_t n_iterations; /* 0: as many as fit the time for one size */
	uint32_t n_warmup;
	uint32_t executor;  /* RCCLX_EXECUTOR_* */
	uint32_t precision; /* RCCLX_PRECISION_EXACT, _FP8 or _INT8 */
	bool show_error;    /* of results, against fp64 */
	uint64_t link_rate; /* bytes per second between ranks; 0: as fast as it goes */
	uint32_t timeout_s; /* longest time for one size */
	uint64_t seed;
	const char *socket;     /* NULL: librcclx searches */
	const char *tuning_dir; /* of the private daemon; NULL: none */
	const char *id_file;    /* NULL: chosen from the environment */
	bool registered;        /* buffers from rcclx_mem_alloc() */
	bool private_daemon;
	bool in_place;
	bool check;
	bool touch; /* write inputs and read results between timed calls */
	bool json;
	bool pin;
	/* Set by the launching process for the ranks that it starts. */
	bool spawned;
	uint32_t rank;
	int id_fd;
};

enum perf_parsed {
	PERF_PARSED_RUN,  /* go on */
	PERF_PARSED_DONE, /* help or version was asked for and printed */
	PERF_PARSED_BAD,  /* wrong; explained on stderr */
};

/** perf_options_parse() - argv into @options_p, which is written only for PERF_PARSED_RUN */
enum perf_parsed perf_options_parse(int argc, char **argv, struct perf_options *options_p);

/** perf_parse_size() - bytes with an optional K, M or G (powers of 1024); false if it is none */
RX_WARN_UNUSED bool perf_parse_size(const char *text, uint64_t *bytes_p);

/** perf_parse_rate() - bytes per second: a number, K, M or G (powers of 1000), B/s; false if none
 */
RX_WARN_UNUSED bool perf_parse_rate(const char *text, uint64_t *rate_p);

/** perf_parse_number() - decimal number in [min, max]; false if it is none */
RX_WARN_UNUSED bool perf_parse_number(
	const char *text, uint64_t min, uint64_t max, uint64_t *number_p);

/** perf_options_for() - of @all, those of @coll: what it does not have is left out */
struct perf_options perf_options_for(const struct perf_options *all, const struct perf_coll *coll);

/**
 * perf_size_at() - size @i to measure, bytes; false: there are no more
 *
 * Of a range, each is the factor times the one before; after 0 comes one element.
 */
RX_WARN_UNUSED bool perf_size_at(const struct perf_options *options, uint32_t i, uint64_t *bytes_p);

#endif
