/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous operations against the daemon's end of the rings, which the test plays itself, and
 * what a communicator says when something has happened.
 */
#include "fake_daemon.h"

#include "../../client/comm.h"
#include "../../client/err.h"
#include "../../client/session.h"
#include "../../kernels/coll_types.h"
#include "../../shm/rx_clock.h"
#include "../../shm/rx_wake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE       4096u
#define SQ_ENTRIES 8u
#define CQ_ENTRIES 16u

struct fixture {
	struct fake *fake;
	struct rcclx_client *client;
	struct rx_fabric_ctl *ctl;
	struct rx_line *lines;
	struct rcclx_comm comm;
};

/* Rank 1 of 3, member 9. */
static void open_comm(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->fake = fake_listen(fake_session, NULL);
	assert_int_equal(rcclx_connect(f->fake->path, NULL, &f->client), RCCLX_OK);
	f->ctl = aligned_alloc(PAGE, PAGE);
	f->lines = aligned_alloc(PAGE, PAGE);
	assert_non_null(f->ctl);
	assert_non_null(f->lines);
	memset(f->ctl, 0, PAGE);
	memset(f->lines, 0, PAGE);
	for (uint32_t rank = 0; rank < 3; rank++)
		f->ctl->pid[rank] = 100 + rank;
	f->comm.client = f->client;
	f->comm.rank = 1;
	f->comm.n_ranks = 3;
	f->comm.member = 9;
	f->comm.fabric =
		(struct rx_fabric){.ctl = f->ctl, .lines = f->lines, .n_ranks = f->comm.n_ranks};
	f->comm.lanes = op_lanes_open(&f->client->ops, f->comm.n_ranks);
	assert_non_null(f->comm.lanes);
}

static void close_comm(struct fixture *f)
{
	assert_int_equal(atomic_load(&f->comm.n_ops), 0);
	import_clear(&f->comm.imports);
	op_lanes_close(&f->client->ops, f->comm.lanes, f->comm.n_ranks);
	assert_int_equal(rcclx_disconnect(f->client), RCCLX_OK);
	fake_join(f->fake);
	free(f->ctl);
	free(f->lines);
}

static struct rcclx_op *start(struct fixture *f, const float *send, float *recv, uint64_t count)
{
	struct rcclx_op *op = NULL;

	assert_int_equal(rcclx_all_reduce_start(
				 &f->comm, send, recv, count, RCCLX_FLOAT32, RCCLX_SUM, NULL, &op),
		RCCLX_OK);
	return op;
}

static struct rcclx_op *start_barrier(struct fixture *f)
{
	struct rcclx_op *op = NULL;

	assert_int_equal(rcclx_barrier_start(&f->comm, NULL, &op), RCCLX_OK);
	return op;
}

/* The daemon's next entry. */
static struct rx_sqe take(struct fixture *f)
{
	struct rx_sqe sqe;

	assert_int_equal(rx_ring_take(&f->fake->ring, &sqe), 1);
	rx_ring_publish_head(&f->fake->ring);
	return sqe;
}

static void complete_with(struct fixture *f, struct rx_cqe cqe)
{
	assert_int_equal(rx_ring_complete(&f->fake->ring, &cqe), 0);
	rx_ring_announce(&f->fake->ring);
}

static void complete(struct fixture *f, const struct rx_sqe *sqe, int32_t result)
{
	complete_with(
		f, (struct rx_cqe){
			   .user_data = sqe->user_data, .result = result, .peer_rank = UINT32_MAX});
}

/* The daemon's view of what an entry points to. */
static float *region_at(struct fixture *f, uint32_t handle, uint64_t offset, struct rx_map *map)
{
	assert_in_range(handle, 1, FAKE_REGIONS);
	assert_int_equal(rx_map_open(map, f->fake->region_fds[handle - 1],
				 f->fake->region_bytes[handle - 1], RX_MAP_RW),
		0);
	return (float *)(void *)((char *)map->addr + offset);
}

/* ---- the way of the data ---- */

static void test_private_memory(void **state)
{
	struct fixture f;
	struct rx_map map = RX_MAP_INIT;
	const float send[4] = {1, 2, 3, 4};
	float recv[4] = {0};
	float *seen = NULL;
	struct rcclx_op *op = NULL;
	struct rx_sqe sqe;

	(void)state;
	open_comm(&f);
	op = start(&f, send, recv, 4);
	sqe = take(&f);
	assert_int_equal(sqe.member, 9);
	assert_int_equal(sqe.opno, 1);
	assert_int_equal(sqe.coll, RX_ALL_REDUCE);
	assert_int_equal(sqe.dtype, RX_FLOAT32);
	assert_int_equal(sqe.count, 4);
	assert_int_equal(sqe.flags, 0);
	seen = region_at(&f, sqe.send_region, sqe.send_offset, &map);
	assert_memory_equal(seen, send, sizeof(send));
	assert_int_equal(sqe.recv_region, sqe.send_region);
	assert_int_equal(sqe.recv_offset, sqe.send_offset);
	assert_int_equal(rcclx_op_test(op), RCCLX_ERR_TIMEOUT);
	assert_text("all_reduce of 4 float32, sum is not complete yet");
	for (int i = 0; i < 4; i++)
		seen[i] *= 10;
	assert_true(recv[0] == 0);
	complete(&f, &sqe, RCCLX_OK);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_OK);
	assert_true(recv[0] == 10 && recv[3] == 40);
	/* The result stays; the data is not copied again. */
	recv[0] = -1;
	assert_int_equal(rcclx_op_test(op), RCCLX_OK);
	assert_true(recv[0] == -1);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	rx_map_close(&map);
	close_comm(&f);
}

static void test_registered_memory(void **state)
{
	struct fixture f;
	void *memory = NULL;
	float *data = NULL;
	float private[4] = {1, 2, 3, 4};
	struct rcclx_op *op = NULL;
	struct rx_sqe sqe;
	uint32_t n_allocs = 0;

	(void)state;
	open_comm(&f);
	assert_int_equal(rcclx_mem_alloc(f.client, PAGE, &memory), RCCLX_OK);
	data = memory;
	n_allocs = atomic_load(&f.fake->n_allocs);
	op = start(&f, data + 4, data + 16, 4);
	sqe = take(&f);
	assert_int_equal(sqe.send_region, 1);
	assert_int_equal(sqe.send_offset, 16);
	assert_int_equal(sqe.recv_offset, 64);
	complete(&f, &sqe, RCCLX_OK);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	/* From private to registered memory: in place there, no bounce memory. */
	op = start(&f, private, data, 4);
	sqe = take(&f);
	assert_memory_equal(data, private, sizeof(private));
	assert_int_equal(sqe.send_offset, sqe.recv_offset);
	complete(&f, &sqe, RCCLX_OK);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	assert_int_equal(atomic_load(&f.fake->n_allocs), n_allocs);
	/* The other way round. */
	op = start(&f, data, private, 4);
	sqe = take(&f);
	assert_int_equal(sqe.send_region, 1);
	assert_int_not_equal(sqe.recv_region, 1);
	complete(&f, &sqe, RCCLX_OK);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	assert_int_equal(rcclx_mem_free(f.client, memory), RCCLX_OK);
	close_comm(&f);
}

/* ---- variable collectives ---- */

/* Rank 1 of 3: what the daemon finds where the entry points. */
static const uint64_t *numbers_of(struct fixture *f, const struct rx_sqe *sqe, struct rx_map *map)
{
	assert_int_equal(sqe->imm % 8, 0);
	assert_int_equal(sqe->count, 0);
	return (const uint64_t *)(const void *)region_at(f, sqe->root, sqe->imm, map);
}

/* Blocks apart from each other in private memory; what is between them is not the call's. */
static void test_v_private(void **state)
{
	static const uint64_t words[] = {0, 2, 0, 1, 0, 2, 2, 1, 2, 1, 0, 1, 3};
	uint64_t send_counts[3] = {2, 0, 1};
	uint64_t send_displs[3] = {5, 1000, 2};
	uint64_t recv_counts[3] = {1, 2, 1};
	uint64_t recv_displs[3] = {6, 0, 4};
	const float send[7] = {0, 0, 3, 0, 0, 1, 2};
	float recv[8];
	struct rx_map map = RX_MAP_INIT;
	struct rx_map data = RX_MAP_INIT;
	struct rcclx_op *op = NULL;
	struct fixture f;
	struct rx_sqe sqe;
	float *at = NULL;

	(void)state;
	open_comm(&f);
	for (uint32_t i = 0; i < 8; i++)
		recv[i] = -1;
	assert_int_equal(rcclx_all_to_all_v_start(&f.comm, send, send_counts, send_displs, recv,
				 recv_counts, recv_displs, RCCLX_FLOAT32, NULL, &op),
		RCCLX_OK);
	sqe = take(&f);
	assert_int_equal(sqe.coll, RX_ALL_TO_ALL_V);
	assert_memory_equal(numbers_of(&f, &sqe, &map), words, sizeof(words));
	at = region_at(&f, sqe.send_region, sqe.send_offset, &data);
	assert_true(at[0] == 1 && at[1] == 2 && at[2] == 3);
	rx_map_close(&data);
	at = region_at(&f, sqe.recv_region, sqe.recv_offset, &data);
	for (uint32_t i = 0; i < 4; i++)
		at[i] = (float)(10 + i);
	/* The arrays are the caller's again. */
	memset(recv_counts, 0xff, sizeof(recv_counts));
	memset(recv_displs, 0xff, sizeof(recv_displs));
	complete(&f, &sqe, RCCLX_OK);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	const float expected[8] = {11, 12, -1, -1, 13, -1, 10, -1};
	assert_memory_equal(recv, expected, sizeof(expected));
	rx_map_close(&data);
	rx_map_close(&map);
	close_comm(&f);
}

/* Blocks that are sent may overlap: then the whole is sent as it is. */
static void test_v_overlapping(void **state)
{
	static const uint64_t words[] = {0, 3, 3, 3, 1, 0, 1, 0, 0, 0, 0, 0, 0};
	static const uint64_t counts[3] = {3, 3, 3};
	static const uint64_t displs[3] = {1, 0, 1};
	static const uint64_t none[3] = {0, 0, 0};
	const float send[4] = {1, 2, 3, 4};
	struct rx_map map = RX_MAP_INIT;
	struct rx_map data = RX_MAP_INIT;
	struct rcclx_op *op = NULL;
	struct fixture f;
	struct rx_sqe sqe;

	(void)state;
	open_comm(&f);
	assert_int_equal(rcclx_all_to_all_v_start(&f.comm, send, counts, displs, NULL, none, none,
				 RCCLX_FLOAT32, NULL, &op),
		RCCLX_OK);
	sqe = take(&f);
	assert_memory_equal(numbers_of(&f, &sqe, &map), words, sizeof(words));
	assert_int_equal(sqe.recv_region, RX_REGION_NONE);
	assert_memory_equal(region_at(&f, sqe.send_region, sqe.send_offset, &data), send, 16);
	complete(&f, &sqe, RCCLX_OK);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	rx_map_close(&data);
	rx_map_close(&map);
	close_comm(&f);
}

/* Registered memory is used where it lies, with the caller's displacements. */
static void test_v_registered(void **state)
{
	static const uint64_t counts[3] = {4, 2, 0};
	static const uint64_t displs[3] = {20, 3, 0};
	static const uint64_t words[] = {0, 4, 2, 0, 20, 3, 0};
	struct rx_map map = RX_MAP_INIT;
	struct rcclx_op *op = NULL;
	void *memory = NULL;
	struct fixture f;
	struct rx_sqe sqe;
	float *data = NULL;

	(void)state;
	open_comm(&f);
	assert_int_equal(rcclx_mem_alloc(f.client, PAGE, &memory), RCCLX_OK);
	data = memory;
	/* In place. */
	assert_int_equal(rcclx_all_gather_v_start(&f.comm, data + 8 + 3, data + 8, counts, displs,
				 RCCLX_FLOAT32, NULL, &op),
		RCCLX_OK);
	sqe = take(&f);
	assert_memory_equal(numbers_of(&f, &sqe, &map), words, sizeof(words));
	assert_int_equal(sqe.send_region, 1);
	assert_int_equal(sqe.recv_region, 1);
	assert_int_equal(sqe.recv_offset, 32);
	assert_int_equal(sqe.send_offset, 44);
	complete(&f, &sqe, RCCLX_OK);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	assert_int_equal(rcclx_mem_free(f.client, memory), RCCLX_OK);
	rx_map_close(&map);
	close_comm(&f);
}

static void test_v_scalar(void **state)
{
	static const uint64_t counts[3] = {1, 0, 1};
	static const uint64_t words[] = {0x3c01, 1, 0, 1};
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	const uint16_t scalar = 0x3c01;
	const uint16_t send[2] = {1, 2};
	struct rx_map map = RX_MAP_INIT;
	struct rcclx_op *op = NULL;
	struct fixture f;
	struct rx_sqe sqe;

	(void)state;
	open_comm(&f);
	config.scalar = &scalar;
	assert_int_equal(rcclx_reduce_scatter_v_start(&f.comm, send, NULL, counts, RCCLX_FLOAT16,
				 RCCLX_PREMUL_SUM, &config, &op),
		RCCLX_OK);
	sqe = take(&f);
	assert_memory_equal(numbers_of(&f, &sqe, &map), words, sizeof(words));
	complete_with(&f, (struct rx_cqe){.user_data = sqe.user_data,
				  .result = RCCLX_ERR_MISMATCH,
				  .peer_rank = 2,
				  .clash = 1,
				  .clash_rank = {1, 2},
				  .clash_block = 0,
				  .clash_count = {1, 5}});
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_ERR_MISMATCH);
	assert_text("reduce_scatter_v of float16, premul_sum");
	assert_text("the count of rank 0 is 1 on rank 1, and 5 on rank 2");
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	assert_int_equal(rcclx_comm_status(&f.comm), RCCLX_OK);
	rx_map_close(&map);
	close_comm(&f);
}

static void test_no_data(void **state)
{
	struct fixture f;
	struct rcclx_op *ops[2] = {NULL, NULL};
	struct rx_sqe sqe;

	(void)state;
	open_comm(&f);
	ops[0] = start(&f, NULL, NULL, 0);
	ops[1] = start_barrier(&f);
	for (uint32_t i = 0; i < 2; i++) {
		sqe = take(&f);
		assert_int_equal(sqe.opno, i + 1);
		assert_int_equal(sqe.send_region, RX_REGION_NONE);
		assert_int_equal(sqe.recv_region, RX_REGION_NONE);
		complete(&f, &sqe, RCCLX_OK);
	}
	/* In any order. */
	assert_int_equal(rcclx_op_wait(ops[1], RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_wait(ops[0], RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_free(ops[0]), RCCLX_OK);
	assert_int_equal(rcclx_op_free(ops[1]), RCCLX_OK);
	assert_int_equal(atomic_load(&f.fake->n_allocs), 0);
	close_comm(&f);
}

static void test_scalar(void **state)
{
	struct fixture f;
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	const uint16_t scalar = 0x3c01;
	uint16_t data = 1;
	struct rcclx_op *op = NULL;
	struct rx_sqe sqe;

	(void)state;
	open_comm(&f);
	config.scalar = &scalar;
	assert_int_equal(rcclx_all_reduce_start(&f.comm, &data, &data, 1, RCCLX_FLOAT16,
				 RCCLX_PREMUL_SUM, &config, &op),
		RCCLX_OK);
	sqe = take(&f);
	assert_int_equal(sqe.imm, 0x3c01);
	complete(&f, &sqe, RCCLX_OK);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	close_comm(&f);
}

/* ---- more than there is room for ---- */

/* The daemon's next entry, which a thread of the library may have to bring. */
static struct rx_sqe take_soon(struct fixture *f)
{
	uint64_t deadline_ns = rx_deadline_ns(10 * RX_NS_PER_SEC);
	struct rx_sqe sqe = {0};
	int r = 0;

	while (r == 0 && rx_now_ns() < deadline_ns) {
		r = rx_ring_take(&f->fake->ring, &sqe);
		if (r == 0)
			(void)usleep(100);
	}
	assert_int_equal(r, 1);
	rx_ring_publish_head(&f->fake->ring);
	return sqe;
}

static void finish_all(struct rcclx_op **ops, uint32_t n, rcclx_result expected)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(rcclx_op_wait(ops[i], RCCLX_FOREVER), expected);
		assert_int_equal(rcclx_op_free(ops[i]), RCCLX_OK);
	}
}

/* Ranks of the fixture's communicator have 7 lanes, of which 6 have nothing to do. */
#define MANY     100u
#define MOST_NOW (CQ_ENTRIES - 6)

static void test_more_than_fits(void **state)
{
	struct fixture f;
	struct rcclx_op *ops[MANY] = {NULL};
	struct rcclx_op *send = NULL;
	struct rx_sqe sqes[MOST_NOW];
	struct rx_sqe other;

	(void)state;
	open_comm(&f);
	/* Nobody takes them: the submission ring is full after the first few. */
	for (uint32_t i = 0; i < MANY; i++)
		ops[i] = start_barrier(&f);
	assert_int_equal(f.client->ops.feeder, OP_FEEDER_RUNS);
	for (uint32_t i = 0; i < MOST_NOW; i++) {
		sqes[i] = take_soon(&f);
		assert_int_equal(sqes[i].opno, i + 1);
	}
	/* Others keep their slots: a send goes at once, before the barriers that wait. */
	assert_int_equal(rcclx_send_start(&f.comm, NULL, 0, RCCLX_INT8, 2, NULL, &send), RCCLX_OK);
	other = take_soon(&f);
	assert_int_equal(other.coll, RX_SEND);
	assert_int_equal(other.opno, MANY + 1);
	complete(&f, &other, RCCLX_OK);
	assert_int_equal(rcclx_op_wait(send, RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_free(send), RCCLX_OK);
	/* Nobody waits now, and what is complete makes room for the next, in their order. */
	for (uint32_t i = 0; i < MANY; i++) {
		complete(&f, &sqes[i % MOST_NOW], RCCLX_OK);
		if (i + MOST_NOW >= MANY)
			continue;
		sqes[i % MOST_NOW] = take_soon(&f);
		assert_int_equal(sqes[i % MOST_NOW].opno, i + MOST_NOW + 1);
		assert_int_equal(rx_ring_take(&f.fake->ring, &other), 0);
	}
	finish_all(ops, MANY, RCCLX_OK);
	close_comm(&f);
}

/* The communicator ends: those that wait end with it, and the daemon never sees them. */
static void test_end_while_waiting(void **state)
{
	struct fixture f;
	struct rcclx_op *ops[MANY] = {NULL};
	struct rx_sqe sqe;

	(void)state;
	open_comm(&f);
	for (uint32_t i = 0; i < MANY; i++)
		ops[i] = start_barrier(&f);
	atomic_store(&f.ctl->abort, RX_ABORT_USER);
	finish_all(ops, MANY, RCCLX_ERR_ABORTED);
	for (uint32_t i = 0; i < SQ_ENTRIES; i++)
		assert_int_equal(take(&f).opno, i + 1);
	assert_int_equal(rx_ring_take(&f.fake->ring, &sqe), 0);
	close_comm(&f);
}

/* Each lane has a slot for as many lanes as there are slots, and then it is said. */
static void test_limits(void **state)
{
	struct fixture f;
	struct rcclx_op *ops[CQ_ENTRIES] = {NULL};
	struct rcclx_op *more = NULL;
	struct op_lane *lanes = NULL;
	struct rx_sqe sqe;

	(void)state;
	open_comm(&f);
	lanes = f.comm.lanes;
	f.comm.n_ranks = CQ_ENTRIES + 1;
	f.comm.lanes = op_lanes_open(&f.client->ops, f.comm.n_ranks);
	for (uint32_t i = 0; i < CQ_ENTRIES; i++) {
		assert_int_equal(
			rcclx_send_start(&f.comm, NULL, 0, RCCLX_INT8, i, NULL, &ops[i]), RCCLX_OK);
		sqe = take(&f);
		assert_int_equal(sqe.root, i);
	}
	assert_int_equal(rcclx_send_start(&f.comm, NULL, 0, RCCLX_INT8, CQ_ENTRIES, NULL, &more),
		RCCLX_ERR_LIMIT);
	assert_text("sq_entries");
	assert_null(more);
	complete(&f, &sqe, RCCLX_OK);
	/* Taken by the start itself. */
	assert_int_equal(
		rcclx_send_start(&f.comm, NULL, 0, RCCLX_INT8, CQ_ENTRIES, NULL, &more), RCCLX_OK);
	finish_all(&ops[CQ_ENTRIES - 1], 1, RCCLX_OK);
	atomic_store(&f.ctl->abort, RX_ABORT_USER);
	finish_all(ops, CQ_ENTRIES - 1, RCCLX_ERR_ABORTED);
	finish_all(&more, 1, RCCLX_ERR_ABORTED);
	op_lanes_close(&f.client->ops, f.comm.lanes, f.comm.n_ranks);
	f.comm.n_ranks = 3;
	f.comm.lanes = lanes;
	close_comm(&f);
}

static void test_busy(void **state)
{
	struct fixture f;
	struct rcclx_op *op = NULL;
	struct rx_sqe sqe;
	uint64_t before = 0;

	(void)state;
	open_comm(&f);
	op = start_barrier(&f);
	sqe = take(&f);
	assert_int_equal(rcclx_op_free(op), RCCLX_ERR_BUSY);
	assert_int_equal(rcclx_comm_destroy(&f.comm), RCCLX_ERR_BUSY);
	assert_text("1 asynchronous operations");
	before = now_ms();
	assert_int_equal(rcclx_op_wait(op, 30 * RX_NS_PER_MS), RCCLX_ERR_TIMEOUT);
	assert_true(now_ms() - before >= 29);
	complete(&f, &sqe, RCCLX_OK);
	/* Complete, though nobody has looked. */
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	close_comm(&f);
}

/* ---- hostile completions ---- */

static void test_strange_completions(void **state)
{
	struct fixture f;
	struct rcclx_op *op = NULL;
	struct rx_sqe sqe;
	struct rx_sqe next;

	(void)state;
	open_comm(&f);
	op = start_barrier(&f);
	sqe = take(&f);
	complete_with(&f, (struct rx_cqe){.user_data = UINT64_MAX});
	complete_with(&f, (struct rx_cqe){.user_data = sqe.user_data + (1ull << 32)});
	complete_with(&f, (struct rx_cqe){.user_data = CQ_ENTRIES});
	complete_with(&f, (struct rx_cqe){.user_data = sqe.user_data + 1});
	assert_int_equal(rcclx_op_test(op), RCCLX_ERR_TIMEOUT);
	complete(&f, &sqe, 99);
	/* The same once more, when its slot is somebody else's. */
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_ERR_INTERNAL);
	assert_text("99");
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	op = start_barrier(&f);
	next = take(&f);
	complete(&f, &sqe, RCCLX_OK);
	assert_int_equal(rcclx_op_test(op), RCCLX_ERR_TIMEOUT);
	complete(&f, &next, -5);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_ERR_INTERNAL);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	/* None of that has spoiled the communicator. */
	assert_int_equal(rcclx_comm_status(&f.comm), RCCLX_OK);
	close_comm(&f);
}

/* ---- how operations fail ---- */

static rcclx_result fail_with(struct fixture *f, struct rx_cqe cqe)
{
	struct rcclx_op *op = start_barrier(f);
	struct rx_sqe sqe = take(f);
	rcclx_result r = RCCLX_OK;

	cqe.user_data = sqe.user_data;
	complete_with(f, cqe);
	r = rcclx_op_wait(op, RCCLX_FOREVER);
	/* And again the same, with the same words. */
	(void)err_set(RCCLX_ERR_BUSY, "something else");
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), r);
	assert_string_not_equal(rcclx_last_error(), "something else");
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	return r;
}

static void test_mismatch(void **state)
{
	const struct rx_op_sig theirs = {
		.coll = RX_ALL_REDUCE, .dtype = RX_FLOAT64, .op = RX_MAX, .count = 12};
	struct rx_cqe cqe = {.result = RCCLX_ERR_MISMATCH, .peer_rank = 2, .peer_count = 12};
	struct fixture f;

	(void)state;
	open_comm(&f);
	memcpy(&cqe.peer_sig, &theirs, sizeof(cqe.peer_sig));
	assert_int_equal(fail_with(&f, cqe), RCCLX_ERR_MISMATCH);
	assert_text("rank 1 called barrier, rank 2 called all_reduce of 12 float64, max");
	/* Good for further operations. */
	assert_int_equal(rcclx_comm_status(&f.comm), RCCLX_OK);
	/* A rank that does not exist is not named. */
	cqe.peer_rank = 3;
	assert_int_equal(fail_with(&f, cqe), RCCLX_ERR_MISMATCH);
	assert_null(strstr(rcclx_last_error(), "rank 3"));
	close_comm(&f);
}

static void test_peer_lost(void **state)
{
	struct rx_cqe cqe = {.result = RCCLX_ERR_PEER_LOST, .peer_rank = 2};
	struct rcclx_op *op = NULL;
	struct fixture f;

	(void)state;
	open_comm(&f);
	assert_int_equal(fail_with(&f, cqe), RCCLX_ERR_PEER_LOST);
	assert_text("rank 2 (pid 102) died during barrier");
	/* Sticky, with the first reason. */
	assert_int_equal(rcclx_barrier_start(&f.comm, NULL, &op), RCCLX_ERR_PEER_LOST);
	assert_text("rank 2 (pid 102)");
	assert_text("unusable since");
	assert_int_equal(rcclx_barrier(&f.comm, NULL), RCCLX_ERR_PEER_LOST);
	assert_int_equal(rcclx_comm_status(&f.comm), RCCLX_ERR_PEER_LOST);
	assert_null(op);
	close_comm(&f);
}

static void test_other_failures(void **state)
{
	struct rx_cqe cqe = {.result = RCCLX_ERR_NO_MEMORY, .peer_rank = UINT32_MAX};
	struct fixture f;

	(void)state;
	open_comm(&f);
	assert_int_equal(fail_with(&f, cqe), RCCLX_ERR_NO_MEMORY);
	assert_text("could not execute barrier: out of memory");
	assert_int_equal(rcclx_comm_status(&f.comm), RCCLX_OK);
	cqe = (struct rx_cqe){.result = RCCLX_ERR_TIMEOUT, .peer_rank = 0, .peer_pid = 100};
	assert_int_equal(fail_with(&f, cqe), RCCLX_ERR_TIMEOUT);
	assert_text("rank 0 (pid 100) did not come");
	assert_int_equal(rcclx_comm_status(&f.comm), RCCLX_ERR_TIMEOUT);
	close_comm(&f);
}

static void test_daemon_closes(void **state)
{
	struct fixture f;
	struct rcclx_op *ops[2] = {NULL, NULL};
	struct rx_sqe sqe;

	(void)state;
	open_comm(&f);
	ops[0] = start_barrier(&f);
	ops[1] = start_barrier(&f);
	sqe = take(&f);
	complete(&f, &sqe, RCCLX_OK);
	rx_ring_close(&f.fake->ring);
	/* What was complete before it closed is complete. */
	assert_int_equal(rcclx_op_wait(ops[0], RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_wait(ops[1], RCCLX_FOREVER), RCCLX_ERR_DAEMON_LOST);
	assert_int_equal(rcclx_op_free(ops[0]), RCCLX_OK);
	assert_int_equal(rcclx_op_free(ops[1]), RCCLX_OK);
	close_comm(&f);
}

/* ---- abort ---- */

static void test_abort_keeps_bounce_memory(void **state)
{
	struct fixture f;
	float data[4] = {1, 2, 3, 4};
	struct rcclx_op *op = NULL;
	struct bounce block = BOUNCE_INIT;
	struct rx_sqe sqe;

	(void)state;
	open_comm(&f);
	op = start(&f, data, data, 4);
	sqe = take(&f);
	assert_int_equal(rcclx_comm_abort(&f.comm), RCCLX_OK);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_ERR_ABORTED);
	assert_text("rank 1 called rcclx_comm_abort()");
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	assert_int_equal(rcclx_barrier(&f.comm, NULL), RCCLX_ERR_ABORTED);
	/* The daemon may still be at it: nobody else gets the block. */
	assert_int_equal(bounce_get(f.client, 16, &block), RCCLX_OK);
	assert_int_not_equal(block.offset, sqe.send_offset);
	bounce_put(f.client, &block);
	complete(&f, &sqe, RCCLX_ERR_ABORTED);
	/* Any operation of the client takes the completion. */
	atomic_store(&f.comm.abort_called, 0);
	atomic_store(&f.comm.failed, RCCLX_OK);
	op = start_barrier(&f);
	complete(&f, &(struct rx_sqe){.user_data = take(&f).user_data}, RCCLX_OK);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_OK);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	assert_int_equal(bounce_get(f.client, 16, &block), RCCLX_OK);
	assert_int_equal(block.offset, sqe.send_offset);
	bounce_put(f.client, &block);
	assert_true(data[0] == 1 && data[3] == 4);
	close_comm(&f);
}

static void *abort_soon(void *arg)
{
	(void)usleep(30000);
	return (void *)(intptr_t)rcclx_comm_abort(arg);
}

static void test_abort_wakes(void **state)
{
	struct fixture f;
	struct rcclx_op *op = NULL;
	pthread_t thread;
	void *result = NULL;

	(void)state;
	open_comm(&f);
	op = start_barrier(&f);
	assert_int_equal(pthread_create(&thread, NULL, abort_soon, &f.comm), 0);
	assert_int_equal(rcclx_op_wait(op, RCCLX_FOREVER), RCCLX_ERR_ABORTED);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((intptr_t)result, RCCLX_OK);
	/* A second one changes nothing. */
	assert_int_equal(rcclx_comm_abort(&f.comm), RCCLX_OK);
	assert_int_equal(rcclx_op_free(op), RCCLX_OK);
	/* Never completed: forgotten with the session. */
	close_comm(&f);
}

/* ---- blocking calls by the daemon ---- */

/* Completes what comes, a moment later, as the daemon would. */
static void *answer_one(void *arg)
{
	struct fixture *f = arg;
	struct rx_sqe sqe;

	for (int i = 0; i < 2000; i++) {
		if (rx_ring_take(&f->fake->ring, &sqe) == 1) {
			rx_ring_publish_head(&f->fake->ring);
			(void)usleep(5000);
			complete(f, &sqe, RCCLX_OK);
			return NULL;
		}
		(void)usleep(5000);
	}
	return "no entry came";
}

static void test_blocking_by_daemon(void **state)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct fixture f;
	pthread_t thread;
	void *failure = NULL;

	(void)state;
	open_comm(&f);
	config.executor = RCCLX_EXECUTOR_DAEMON;
	assert_int_equal(pthread_create(&thread, NULL, answer_one, &f), 0);
	assert_int_equal(rcclx_barrier(&f.comm, &config), RCCLX_OK);
	assert_int_equal(pthread_join(thread, &failure), 0);
	assert_null(failure);
	config.timeout_ns = 40 * RX_NS_PER_MS;
	uint64_t before = now_ms();
	assert_int_equal(rcclx_barrier(&f.comm, &config), RCCLX_ERR_TIMEOUT);
	assert_true(now_ms() - before >= 39);
	assert_text("barrier did not complete within the time given");
	assert_text("rank 0 (pid 100), rank 2 (pid 102)");
	assert_int_equal(rcclx_comm_status(&f.comm), RCCLX_ERR_TIMEOUT);
	close_comm(&f);
}

/* ---- the control page in words ---- */

static void expect_fault(
	struct fixture *f, enum rx_abort_reason reason, rcclx_result expected, const char *part)
{
	const struct rx_op_sig sig = {
		.coll = RX_ALL_REDUCE, .dtype = RX_INT8, .op = RX_MIN, .count = 5};

	atomic_store(&f->ctl->abort, (uint32_t)reason);
	assert_int_equal(comm_fault(&f->comm, UINT32_MAX, &sig), expected);
	assert_text(part);
	assert_int_equal(comm_usable(&f->comm), expected);
	assert_int_equal(rcclx_comm_status(&f->comm), expected);
}

static void test_abort_reasons(void **state)
{
	struct fixture f;

	(void)state;
	open_comm(&f);
	f.ctl->abort_rank = 2;
	f.ctl->abort_other = 0;
	f.ctl->abort_sig[0] = (struct rx_op_sig){.coll = RX_BARRIER};
	f.ctl->abort_sig[1] = (struct rx_op_sig){.coll = RX_BROADCAST, .count = 3, .root = 1};
	assert_int_equal(comm_fault(&f.comm, 0, NULL), RCCLX_OK);
	expect_fault(&f, RX_ABORT_USER, RCCLX_ERR_ABORTED, "rank 2 (pid 102) aborted");
	expect_fault(&f, RX_ABORT_PEER_LOST, RCCLX_ERR_PEER_LOST,
		"rank 2 (pid 102) died during all_reduce of 5 int8, min");
	expect_fault(&f, RX_ABORT_MISMATCH, RCCLX_ERR_MISMATCH,
		"rank 2 called barrier, rank 0 called broadcast of 3 int8, root 1");
	expect_fault(&f, RX_ABORT_DEADLINE, RCCLX_ERR_TIMEOUT, "rank 2 (pid 102)");
	expect_fault(&f, RX_ABORT_SHUTDOWN, RCCLX_ERR_DAEMON_LOST, "shutting down");
	expect_fault(&f, RX_ABORT_ERROR, RCCLX_ERR_ABORTED, "could not go on");
	/* Nobody in particular; a number that does not exist. */
	f.ctl->abort_rank = UINT32_MAX;
	expect_fault(&f, RX_ABORT_N, RCCLX_ERR_ABORTED, "a rank aborted");
	/* The own abort comes first. */
	atomic_store(&f.comm.abort_called, 1);
	assert_int_equal(comm_fault(&f.comm, 0, NULL), RCCLX_ERR_ABORTED);
	assert_text("this process");
	close_comm(&f);
}

static void test_member_status(void **state)
{
	struct fixture f;

	(void)state;
	open_comm(&f);
	atomic_store(&f.ctl->status[2], RX_MEMBER_LEFT);
	assert_int_equal(comm_fault(&f.comm, 0, NULL), RCCLX_OK);
	assert_int_equal(comm_fault(&f.comm, UINT32_MAX, NULL), RCCLX_OK);
	assert_int_equal(comm_fault(&f.comm, 2, NULL), RCCLX_ERR_PEER_LOST);
	assert_text("rank 2 (pid 102) has left");
	/* Nobody else has failed for that. */
	assert_int_equal(rcclx_comm_status(&f.comm), RCCLX_OK);
	assert_int_equal(comm_usable(&f.comm), RCCLX_OK);
	/* Whoever asks is told, whoever is in an operation that needs nothing of it goes on. */
	atomic_store(&f.ctl->status[2], RX_MEMBER_DEAD);
	assert_int_equal(rcclx_comm_status(&f.comm), RCCLX_ERR_PEER_LOST);
	assert_int_equal(comm_usable(&f.comm), RCCLX_OK);
	assert_int_equal(comm_fault(&f.comm, 2, NULL), RCCLX_ERR_PEER_LOST);
	assert_text("rank 2 (pid 102) died");
	close_comm(&f);
}

static void test_descriptions(void **state)
{
	struct rx_op_sig sig = {.coll = RX_ALL_REDUCE, .dtype = RX_BFLOAT16, .count = 1024};
	char text[96];
	char small[8];

	(void)state;
	comm_describe(&sig, text, sizeof(text));
	assert_string_equal(text, "all_reduce of 1024 bfloat16, sum");
	sig.coll = RX_ALL_GATHER;
	comm_describe(&sig, text, sizeof(text));
	assert_string_equal(text, "all_gather of 1024 bfloat16");
	sig.coll = RX_REDUCE;
	sig.root = 3;
	comm_describe(&sig, text, sizeof(text));
	assert_string_equal(text, "reduce of 1024 bfloat16, sum, root 3");
	sig.coll = RX_ALL_TO_ALL_V;
	comm_describe(&sig, text, sizeof(text));
	assert_string_equal(text, "all_to_all_v of counts #400 bfloat16");
	/* A peer's entry may hold anything. */
	memset(&sig, 0xff, sizeof(sig));
	comm_describe(&sig, text, sizeof(text));
	assert_string_equal(text, "? of 18446744073709551615 ?");
	sig.coll = RX_BARRIER;
	comm_describe(&sig, small, sizeof(small));
	assert_string_equal(small, "barrier");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_private_memory),
		FAKE_TEST(test_registered_memory),
		FAKE_TEST(test_v_private),
		FAKE_TEST(test_v_overlapping),
		FAKE_TEST(test_v_registered),
		FAKE_TEST(test_v_scalar),
		FAKE_TEST(test_no_data),
		FAKE_TEST(test_scalar),
		FAKE_TEST(test_more_than_fits),
		FAKE_TEST(test_end_while_waiting),
		FAKE_TEST(test_limits),
		FAKE_TEST(test_busy),
		FAKE_TEST(test_strange_completions),
		FAKE_TEST(test_mismatch),
		FAKE_TEST(test_peer_lost),
		FAKE_TEST(test_other_failures),
		FAKE_TEST(test_daemon_closes),
		FAKE_TEST(test_abort_keeps_bounce_memory),
		FAKE_TEST(test_abort_wakes),
		FAKE_TEST(test_blocking_by_daemon),
		FAKE_TEST(test_abort_reasons),
		FAKE_TEST(test_member_status),
		FAKE_TEST(test_descriptions),
	};

	return cmocka_run_group_tests_name("op", tests, NULL, NULL);
}
