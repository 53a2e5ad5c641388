/* SPDX-License-Identifier: MIT */
/* Collectives over mapped memory against the oracle: pieces, places, cancelling. */
#include "../../kernels/host/host_coll.h"
#include "../oracle/oracle.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 5u

struct bufs {
	void *send[MOST_RANKS];
	void *recv[MOST_RANKS];
	const void *inputs[MOST_RANKS]; /* what send held at the start */
	uint64_t scalars[MOST_RANKS];
};

static void make(struct bufs *bufs, uint32_t n_ranks, uint32_t dtype, uint64_t count, bool in_place)
{
	uint64_t bytes = (count + 1) * rx_dtype_size(dtype);

	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		void *input = malloc(bytes);

		bufs->send[rank] = malloc(bytes);
		bufs->recv[rank] = in_place ? bufs->send[rank] : malloc(bytes);
		oracle_fill(input, dtype, 0, count + 1, rank, 42, ORACLE_WILD);
		memset(bufs->recv[rank], 0xa5, bytes);
		memcpy(bufs->send[rank], input, bytes);
		oracle_fill(&bufs->scalars[rank], dtype, rank, 1, rank, 43, ORACLE_NORMAL);
		bufs->inputs[rank] = input;
	}
}

static void drop(struct bufs *bufs, uint32_t n_ranks)
{
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		if (bufs->recv[rank] != bufs->send[rank])
			free(bufs->recv[rank]);
		free(bufs->send[rank]);
		free((void *)(uintptr_t)bufs->inputs[rank]);
	}
}

static void check(
	const struct bufs *bufs, uint32_t n_ranks, uint32_t dtype, uint32_t op, uint64_t count)
{
	uint32_t size = rx_dtype_size(dtype);
	uint64_t step = count > 5000 ? 97 : 1;
	uint64_t want = 0;

	for (uint64_t k = 0; k < count; k += step) {
		oracle_fold(dtype, op, n_ranks, bufs->inputs, k, bufs->scalars, &want);
		for (uint32_t rank = 0; rank < n_ranks; rank++)
			assert_memory_equal((const char *)bufs->recv[rank] + k * size, &want, size);
	}
	/* Not an element more. */
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		const uint8_t *after = (const uint8_t *)bufs->recv[rank] + count * size;

		if (bufs->recv[rank] == bufs->send[rank])
			assert_memory_equal(
				after, (const char *)bufs->inputs[rank] + count * size, size);
		else
			assert_int_equal(after[0], 0xa5);
	}
}

static void try(uint32_t n_ranks, uint32_t dtype, uint32_t op, uint64_t count, bool in_place)
{
	struct bufs bufs = {0};
	_Atomic uint64_t n_pieces = 0;
	uint64_t bytes = count * rx_dtype_size(dtype);

	make(&bufs, n_ranks, dtype, count, in_place);
	assert_int_equal(host_coll_run(&(struct host_coll_args){
				 .coll = RX_ALL_REDUCE,
				 .dtype = (uint8_t)dtype,
				 .op = (uint8_t)op,
				 .n_ranks = n_ranks,
				 .count = count,
				 .send = (const void *const *)bufs.send,
				 .recv = bufs.recv,
				 .scalars = bufs.scalars,
				 .n_pieces = &n_pieces,
			 }),
		0);
	check(&bufs, n_ranks, dtype, op, count);
	assert_int_equal(n_pieces, (bytes + (1 << 20) - 1) >> 20);
	drop(&bufs, n_ranks);
}

static void test_matrix(void **state)
{
	static const uint64_t counts[] = {0, 1, 7, 1000};

	(void)state;
	for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++)
		for (uint32_t op = 0; op < RX_REDOP_N; op++)
			for (size_t i = 0; i < RX_ARRAY_SIZE(counts); i++) {
				try(3, dtype, op, counts[i], false);
				try(2, dtype, op, counts[i], true);
			}
	try(1, RX_FLOAT32, RX_SUM, 100, false);
	try(MOST_RANKS, RX_BFLOAT16, RX_AVG, 100, true);
}

/* Around the size of a piece, and where results bypass the cache. */
static void test_pieces(void **state)
{
	(void)state;
	try(2, RX_FLOAT64, RX_SUM, (1 << 17) - 1, false);
	try(2, RX_FLOAT64, RX_SUM, 1 << 17, true);
	try(2, RX_FLOAT64, RX_SUM, (1 << 17) + 1, false);
	try(3, RX_UINT8, RX_MAX, (3 << 20) + 5, true);
	try(2, RX_FLOAT32, RX_SUM, (4 << 20) + 3, false);
}

/* All ranks in one buffer: read before it is written. */
static void test_same_buffer(void **state)
{
	uint32_t values[1000];
	const void *send[3] = {values, values, values};
	void *recv[3] = {values, values, values};

	(void)state;
	for (uint32_t k = 0; k < 1000; k++)
		values[k] = k;
	assert_int_equal(host_coll_run(&(struct host_coll_args){
				 .coll = RX_ALL_REDUCE,
				 .dtype = RX_UINT32,
				 .op = RX_SUM,
				 .n_ranks = 3,
				 .count = 1000,
				 .send = send,
				 .recv = recv,
			 }),
		0);
	for (uint32_t k = 0; k < 1000; k++)
		assert_int_equal(values[k], 3 * k);
}

static void test_cancel(void **state)
{
	_Atomic uint32_t cancel = 1;
	float value[2] = {1, 2};
	const void *send[1] = {&value[0]};
	void *recv[1] = {&value[1]};
	struct host_coll_args args = {
		.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.op = RX_SUM,
		.n_ranks = 1,
		.count = 1,
		.send = send,
		.recv = recv,
		.cancel = &cancel,
	};

	(void)state;
	assert_int_equal(host_coll_run(&args), -ECANCELED);
	assert_true(value[1] == 2);
	cancel = 0;
	assert_int_equal(host_coll_run(&args), 0);
	assert_true(value[1] == 1);
	args.coll = RX_BARRIER;
	assert_int_equal(host_coll_run(&args), 0);
	cancel = 1;
	assert_int_equal(host_coll_run(&args), -ECANCELED);
}

static void test_unsupported(void **state)
{
	(void)state;
	assert_true(host_coll_supported(RX_BARRIER));
	assert_true(host_coll_supported(RX_ALL_REDUCE));
	assert_false(host_coll_supported(RX_COLL_N));
	assert_false(host_coll_supported(UINT32_MAX));
	assert_int_equal(host_coll_run(&(struct host_coll_args){.coll = RX_SEND}), -ENOTSUP);
	assert_int_equal(host_coll_run(&(struct host_coll_args){.coll = 255}), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_same_buffer),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_unsupported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
