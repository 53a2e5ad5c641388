/* SPDX-License-Identifier: MIT */
/* One allreduce of the matrix: data, expectation by the oracle, call, comparison bit for bit. */
#ifndef TEST_MATRIX_H
#define TEST_MATRIX_H

#include "world.h"

#define MATRIX_GUARD 64u /* bytes around buffers that nobody may touch */
#define MATRIX_SHIFT 64u /* consecutive ops use data shifted by one element more */

enum matrix_memory {
	MATRIX_REGISTERED,
	MATRIX_PRIVATE,
	MATRIX_MIXED, /* odd ranks registered, even ranks private */
	MATRIX_MEMORY_N
};

struct matrix_case {
	uint64_t count;
	uint32_t executor;
	enum matrix_memory memory;
	bool in_place;
	uint32_t misalign; /* elements */
};

/* A rank's state. */
struct matrix {
	struct rank_ctx *ctx;
	struct rcclx_client *client;
	struct rcclx_comm *comm;
	uint32_t dtype;
	uint32_t op;
	uint32_t size;              /* bytes of an element */
	uint64_t max_bytes;         /* what the buffers hold */
	uint8_t *buffers[2][2];     /* [registered][receive] */
	uint8_t *inputs[WORLD_MAX]; /* matrix_prepare(): every rank's data */
	uint8_t *expected;
	uint64_t scalars[WORLD_MAX];
	uint32_t shift;
};

/** matrix_open() - join the communicator of all ranks, buffers for @max_bytes */
int matrix_open(struct matrix *m, struct rank_ctx *ctx, uint64_t max_bytes);
int matrix_close(struct matrix *m);

/** matrix_prepare() - data and expectation for counts up to @max_count of a type and operation */
int matrix_prepare(struct matrix *m, uint32_t dtype, uint32_t op, uint64_t max_count);

/** matrix_run() - one operation, every element compared; matrix_prepare() came first */
int matrix_run(struct matrix *m, const struct matrix_case *c);

/**
 * matrix_run_large() - one operation of any count; elements at borders and a sample in between
 * compared with the oracle, the whole result with that of rank 0
 *
 * @hash_p: receives a hash of the result, for comparison between executors
 */
int matrix_run_large(struct matrix *m, const struct matrix_case *c, uint32_t dtype, uint32_t op,
	uint64_t *hash_p);

#endif
