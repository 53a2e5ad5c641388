/* SPDX-License-Identifier: MIT */
/* Collectives over mapped memory against the oracle: pieces, places, cancelling. */
#include "../../kernels/coll_counts.h"
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

static const uint8_t every[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL,
	RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V,
	RX_ALL_TO_ALL_V};

/* ---- every collective, in one piece of memory ---- */

#define SCENE_RANKS 8u

enum places { PLACE_APART, PLACE_ALL_IN, PLACE_FIRST_IN, PLACE_ODD_IN, PLACES_N };

/* All ranks' buffers side by side, with an element between them that nobody may touch. */
struct scene {
	uint32_t coll;
	uint32_t n_ranks;
	uint32_t root;
	uint32_t dtype;
	uint32_t op;
	uint64_t count;
	uint64_t elements; /* of memory */
	uint8_t *memory;
	uint8_t *before; /* what memory held at the start */
	uint8_t *expected;
	struct rx_extent extent[SCENE_RANKS];
	uint64_t send_at[SCENE_RANKS]; /* element of memory */
	uint64_t recv_at[SCENE_RANKS];
	uint64_t scalars[SCENE_RANKS];
	/* Variable collectives: by rank, in the order of struct rx_counts. */
	uint64_t numbers[SCENE_RANKS][4][SCENE_RANKS];
	struct rx_counts counts[SCENE_RANKS];
};

/* Some blocks are empty, neighbours differ. */
static uint64_t v_count(const struct scene *scene, uint32_t from, uint32_t to)
{
	uint32_t cut = (from * 3 + to * 5) % 7;

	return cut == 3 || scene->count < cut ? 0 : scene->count - cut;
}

static uint64_t n_sent(const struct scene *scene, uint32_t from, uint32_t to)
{
	return v_count(scene, scene->coll == RX_REDUCE_SCATTER_V ? 0 : from,
		scene->coll == RX_ALL_GATHER_V ? 0 : to);
}

/* From the last block to the first, with holes of @gap. */
static void backwards(const uint64_t *counts, uint32_t n, uint64_t gap, uint64_t *displs)
{
	uint64_t next = gap;

	for (uint32_t i = n; i-- > 0;) {
		displs[i] = next;
		next += counts[i] + gap;
	}
}

static void scene_count(struct scene *scene, uint32_t rank)
{
	uint64_t(*numbers)[SCENE_RANKS] = scene->numbers[rank];
	bool exchanges = scene->coll == RX_ALL_TO_ALL_V;
	bool sends = exchanges || scene->coll == RX_REDUCE_SCATTER_V;
	bool gathers = exchanges || scene->coll == RX_ALL_GATHER_V;

	for (uint32_t peer = 0; peer < scene->n_ranks; peer++) {
		numbers[0][peer] = n_sent(scene, rank, peer);
		numbers[2][peer] = n_sent(scene, peer, rank);
	}
	backwards(numbers[0], scene->n_ranks, rank, numbers[1]);
	backwards(numbers[2], scene->n_ranks, rank % 3, numbers[3]);
	scene->counts[rank] = (struct rx_counts){
		.send_counts = sends ? numbers[0] : NULL,
		.send_displs = exchanges ? numbers[1] : NULL,
		.recv_counts = gathers ? numbers[2] : NULL,
		.recv_displs = gathers ? numbers[3] : NULL,
	};
}

static void scene_extent(struct scene *scene, uint32_t rank)
{
	struct rx_extent *extent = &scene->extent[rank];

	if (!rx_coll_is_v(scene->coll)) {
		assert_true(rx_coll_extent(
			scene->coll, scene->count, scene->n_ranks, rank, scene->root, extent));
		return;
	}
	scene_count(scene, rank);
	assert_true(
		rx_counts_extent(scene->coll, &scene->counts[rank], scene->n_ranks, rank, extent));
	extent->in_place_ok = scene->coll != RX_ALL_TO_ALL_V;
	if (scene->coll == RX_ALL_GATHER_V)
		extent->send_in_recv = scene->numbers[rank][3][rank];
	else
		extent->recv_in_send = rx_counts_sum(scene->numbers[rank][0], rank);
}

static bool is_in_place(const struct scene *scene, enum places places, uint32_t rank)
{
	const struct rx_extent *extent = &scene->extent[rank];

	if (!extent->in_place_ok || extent->send == 0 || extent->recv == 0)
		return false;
	return places == PLACE_ALL_IN || (places == PLACE_FIRST_IN && rank == 0) ||
	       (places == PLACE_ODD_IN && rank % 2 == 1);
}

static void scene_place(struct scene *scene, enum places places)
{
	uint64_t at = 1;

	for (uint32_t rank = 0; rank < scene->n_ranks; rank++) {
		const struct rx_extent *extent = &scene->extent[rank];

		scene_extent(scene, rank);
		scene->send_at[rank] = at;
		if (is_in_place(scene, places, rank)) {
			scene->recv_at[rank] = at + extent->recv_in_send;
			scene->send_at[rank] = at + extent->send_in_recv;
			at += rx_max_u64(extent->send, extent->recv) + 1;
		} else {
			scene->recv_at[rank] = at + extent->send + 1;
			at += extent->send + extent->recv + 2;
		}
	}
	scene->elements = at;
}

static void scene_make(struct scene *scene, enum places places)
{
	uint64_t bytes = 0;

	scene_place(scene, places);
	bytes = scene->elements * rx_dtype_size(scene->dtype);
	scene->memory = malloc(bytes);
	scene->before = malloc(bytes);
	scene->expected = malloc(bytes);
	oracle_fill(scene->before, scene->dtype, 0, scene->elements, 0, 7, ORACLE_NORMAL);
	memcpy(scene->memory, scene->before, bytes);
	memcpy(scene->expected, scene->before, bytes);
	for (uint32_t rank = 0; rank < scene->n_ranks; rank++)
		oracle_fill(&scene->scalars[rank], scene->dtype, rank, 1, rank, 9, ORACLE_NORMAL);
}

static void scene_drop(struct scene *scene)
{
	free(scene->memory);
	free(scene->before);
	free(scene->expected);
}

/* Element @k of what the collectives that copy give @rank: whose, and which of its send buffer. */
static void source_of(
	const struct scene *scene, uint32_t rank, uint64_t k, uint32_t *from_p, uint64_t *index_p)
{
	uint64_t block = k / scene->count;

	*from_p = scene->root;
	*index_p = k;
	if (scene->coll == RX_ALL_GATHER || scene->coll == RX_GATHER ||
		scene->coll == RX_ALL_TO_ALL) {
		*from_p = (uint32_t)block;
		*index_p = k % scene->count;
	}
	if (scene->coll == RX_ALL_TO_ALL || scene->coll == RX_SCATTER)
		*index_p += rank * scene->count;
}

static void expect_element(struct scene *scene, uint32_t rank, uint64_t k)
{
	uint32_t size = rx_dtype_size(scene->dtype);
	uint8_t *to = scene->expected + (scene->recv_at[rank] + k) * size;
	const void *src[SCENE_RANKS];
	uint32_t from = 0;
	uint64_t index = 0;

	if (!rx_coll_reduces(scene->coll)) {
		source_of(scene, rank, k, &from, &index);
		memcpy(to, scene->before + (scene->send_at[from] + index) * size, size);
		return;
	}
	for (uint32_t i = 0; i < scene->n_ranks; i++)
		src[i] = scene->before + scene->send_at[i] * size;
	index = scene->coll == RX_REDUCE_SCATTER ? rank * scene->count + k : k;
	if (scene->coll == RX_REDUCE_SCATTER_V)
		index += rx_counts_sum(scene->numbers[0][0], rank);
	oracle_fold(scene->dtype, scene->op, scene->n_ranks, src, index, scene->scalars, to);
}

static void expect_blocks(struct scene *scene, uint32_t rank)
{
	uint32_t size = rx_dtype_size(scene->dtype);

	for (uint32_t from = 0; from < scene->n_ranks; from++) {
		uint64_t first = scene->coll == RX_ALL_TO_ALL_V ? scene->numbers[from][1][rank] : 0;

		memcpy(scene->expected +
				(scene->recv_at[rank] + scene->numbers[rank][3][from]) * size,
			scene->before + (scene->send_at[from] + first) * size,
			n_sent(scene, from, rank) * size);
	}
}

static int scene_run(const struct scene *scene, const _Atomic uint32_t *cancel)
{
	uint32_t size = rx_dtype_size(scene->dtype);
	const void *send[SCENE_RANKS] = {NULL};
	void *recv[SCENE_RANKS] = {NULL};

	for (uint32_t rank = 0; rank < scene->n_ranks; rank++) {
		if (scene->extent[rank].send > 0)
			send[rank] = scene->memory + scene->send_at[rank] * size;
		if (scene->extent[rank].recv > 0)
			recv[rank] = scene->memory + scene->recv_at[rank] * size;
	}
	return host_coll_run(&(struct host_coll_args){
		.coll = (uint8_t)scene->coll,
		.dtype = (uint8_t)scene->dtype,
		.op = (uint8_t)scene->op,
		.n_ranks = scene->n_ranks,
		.root = scene->root,
		.count = rx_coll_is_v(scene->coll) ? 0 : scene->count,
		.counts = scene->counts,
		.send = send,
		.recv = recv,
		.scalars = scene->scalars,
		.cancel = cancel,
	});
}

static void play(struct scene scene, enum places places)
{
	scene_make(&scene, places);
	for (uint32_t rank = 0; rank < scene.n_ranks; rank++) {
		if (scene.counts[rank].recv_counts) {
			expect_blocks(&scene, rank);
			continue;
		}
		for (uint64_t k = 0; k < scene.extent[rank].recv; k++)
			expect_element(&scene, rank, k);
	}
	assert_int_equal(scene_run(&scene, NULL), 0);
	assert_memory_equal(
		scene.memory, scene.expected, scene.elements * rx_dtype_size(scene.dtype));
	scene_drop(&scene);
}

static void play_roots_and_places(struct scene scene)
{
	uint32_t n_roots = rx_coll_has_root(scene.coll) ? scene.n_ranks : 1;

	for (scene.root = 0; scene.root < n_roots; scene.root++)
		for (enum places places = 0; places < PLACES_N; places++)
			play(scene, places);
}

static void test_every_collective(void **state)
{
	static const uint32_t ranks[] = {1, 2, 3, 5, 8};
	static const uint64_t counts[] = {0, 1, 7, 1000};
	static const uint8_t dtypes[] = {RX_UINT8, RX_BFLOAT16, RX_FLOAT32, RX_INT64};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(every); i++)
		for (size_t n = 0; n < RX_ARRAY_SIZE(ranks); n++)
			for (size_t c = 0; c < RX_ARRAY_SIZE(counts); c++)
				play_roots_and_places((struct scene){
					.coll = every[i],
					.n_ranks = ranks[n],
					.dtype = dtypes[(n + c) % RX_ARRAY_SIZE(dtypes)],
					.op = RX_SUM,
					.count = counts[c],
				});
}

/* All types in all collectives, and all operations where there is one. */
static void test_every_type(void **state)
{
	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(every); i++)
		for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++)
			for (uint32_t op = 0; op < (rx_coll_reduces(every[i]) ? RX_REDOP_N : 1u);
				op++)
				play((struct scene){.coll = every[i],
					     .n_ranks = 3,
					     .root = rx_coll_has_root(every[i]) ? 1 : 0,
					     .dtype = dtype,
					     .op = op,
					     .count = 65},
					PLACE_FIRST_IN);
}

static void test_every_piece(void **state)
{
	static const uint64_t counts[] = {(1 << 17) - 1, 1 << 17, (1 << 17) + 1};

	(void)state;
	for (size_t i = 1; i < RX_ARRAY_SIZE(every); i++)
		for (size_t c = 0; c < RX_ARRAY_SIZE(counts); c++)
			play((struct scene){.coll = every[i],
				     .n_ranks = 2,
				     .root = rx_coll_has_root(every[i]) ? 1 : 0,
				     .dtype = RX_UINT64,
				     .op = RX_SUM,
				     .count = counts[c]},
				c % 2 ? PLACE_FIRST_IN : PLACE_APART);
	/* Past the cache. */
	play((struct scene){.coll = RX_BROADCAST,
		     .n_ranks = 2,
		     .dtype = RX_UINT64,
		     .count = (2 << 20) + 3},
		PLACE_FIRST_IN);
}

static void test_every_cancel(void **state)
{
	_Atomic uint32_t cancel = 1;

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(every); i++) {
		struct scene scene = {
			.coll = every[i], .n_ranks = 3, .dtype = RX_FLOAT32, .count = 5};

		scene_make(&scene, PLACE_APART);
		assert_int_equal(scene_run(&scene, &cancel), -ECANCELED);
		assert_memory_equal(scene.memory, scene.before, scene.elements * sizeof(float));
		scene_drop(&scene);
	}
}

/* ---- send and receive ---- */

static void test_transfer(void **state)
{
	static const uint64_t sizes[] = {0, 1, 7, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 17 << 20};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(sizes); i++) {
		uint64_t bytes = sizes[i];
		uint8_t *src = malloc(bytes + 1);
		uint8_t *dst = calloc(1, bytes + 1);
		_Atomic uint64_t n_pieces = 0;
		_Atomic uint32_t cancel = bytes > 0;

		oracle_fill(src, RX_UINT8, 0, bytes + 1, 0, 1, ORACLE_WILD);
		if (bytes > 0)
			assert_int_equal(
				host_coll_transfer(dst, src, bytes, &cancel, NULL), -ECANCELED);
		cancel = 0;
		assert_int_equal(host_coll_transfer(dst, src, bytes, &cancel, &n_pieces), 0);
		assert_memory_equal(dst, src, bytes);
		assert_int_equal(dst[bytes], 0);
		assert_int_equal(n_pieces, (bytes + (1 << 20) - 1) >> 20);
		free(src);
		free(dst);
	}
}

static void test_transfer_overlap(void **state)
{
	uint8_t bytes[100];

	(void)state;
	for (uint8_t k = 0; k < 100; k++)
		bytes[k] = k;
	assert_int_equal(host_coll_transfer(bytes, bytes, 100, NULL, NULL), 0);
	assert_int_equal(host_coll_transfer(bytes + 3, bytes, 90, NULL, NULL), 0);
	for (uint8_t k = 0; k < 100; k++)
		assert_int_equal(bytes[k], k < 3 || k >= 93 ? k : k - 3);
}

static void test_unsupported(void **state)
{
	(void)state;
	assert_true(host_coll_supported(RX_BARRIER));
	assert_true(host_coll_supported(RX_ALL_REDUCE));
	assert_true(host_coll_supported(RX_SCATTER));
	assert_true(host_coll_supported(RX_ALL_TO_ALL_V));
	assert_false(host_coll_supported(RX_SEND));
	assert_false(host_coll_supported(RX_RECV));
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
		cmocka_unit_test(test_every_collective),
		cmocka_unit_test(test_every_type),
		cmocka_unit_test(test_every_piece),
		cmocka_unit_test(test_every_cancel),
		cmocka_unit_test(test_transfer),
		cmocka_unit_test(test_transfer_overlap),
		cmocka_unit_test(test_unsupported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
