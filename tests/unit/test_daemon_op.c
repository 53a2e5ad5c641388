/* SPDX-License-Identifier: MIT */
/* Collectives of the daemon: matching, running, failing; who is late. */
#include "daemon_fixture.h"

#include "../../kernels/coll_counts.h"
#include "../../shm/rx_clock.h"
#include "../../shm/rx_fabric_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define N      4u
#define FLOATS 300000u /* more than one piece */

/* Clients 0 .. N-1 with a communicator and memory each. */
struct world {
	struct fixture fixture;
	struct client *clients[N];
	struct rank ranks[N];
	struct memory send[N];
	struct memory recv[N];
};

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	fixture_init(&world->fixture);
	*state = world;
	return 0;
}

static void world_start(struct world *world)
{
	fixture_start(&world->fixture);
	for (uint32_t i = 0; i < N; i++) {
		world->clients[i] = client_open(world->fixture.socket);
		memory_alloc(world->clients[i], FLOATS * sizeof(float), &world->send[i]);
		memory_alloc(world->clients[i], FLOATS * sizeof(float), &world->recv[i]);
	}
	ranks_form(world->ranks, world->clients, N);
}

static void world_close_client(struct world *world, uint32_t i)
{
	if (!world->clients[i])
		return;
	rank_unmap(&world->ranks[i]);
	rx_map_close(&world->send[i].map);
	rx_map_close(&world->recv[i].map);
	client_close(world->clients[i]);
	world->clients[i] = NULL;
}

static int teardown(void **state)
{
	struct world *world = *state;

	for (uint32_t i = 0; i < N; i++)
		world_close_client(world, i);
	fixture_stop(&world->fixture);
	free(world);
	return 0;
}

static void submit_all_reduce(struct world *world, uint32_t i, uint64_t user_data, uint64_t count)
{
	struct rx_sqe sqe = all_reduce_entry(
		&world->ranks[i], user_data, &world->send[i], &world->recv[i], count);

	client_submit(world->clients[i], &sqe);
}

static void fill(struct world *world, uint64_t count)
{
	for (uint32_t i = 0; i < N; i++) {
		float *send = world->send[i].map.addr;

		for (uint64_t k = 0; k < count; k++)
			send[k] = (float)(k % 1000 * (i + 1));
		memset(world->recv[i].map.addr, 0xff, FLOATS * sizeof(float));
	}
}

static void check(struct world *world, uint64_t count)
{
	for (uint32_t i = 0; i < N; i++) {
		const float *recv = world->recv[i].map.addr;
		uint32_t after = 0;

		for (uint64_t k = 0; k < count; k++)
			assert_true(recv[k] == (float)(k % 1000 * 10));
		if (count == FLOATS)
			continue;
		memcpy(&after, &recv[count], sizeof(after));
		assert_int_equal(after, UINT32_MAX);
	}
}

static void test_all_reduce(void **state)
{
	static const uint64_t counts[] = {0, 1, 2, 1000, FLOATS};
	struct world *world = *state;

	world_start(world);
	for (size_t c = 0; c < RX_ARRAY_SIZE(counts); c++) {
		fill(world, counts[c]);
		for (uint32_t i = 0; i < N; i++)
			submit_all_reduce(world, i, 100 * c + i, counts[c]);
		for (uint32_t i = 0; i < N; i++) {
			struct rx_cqe cqe = client_reap(world->clients[i]);

			assert_int_equal(cqe.result, RX_OK);
			assert_int_equal(cqe.user_data, 100 * c + i);
			assert_int_equal(cqe.peer_rank, UINT32_MAX);
		}
		check(world, counts[c]);
	}
}

/* Nobody is done before everybody has come, whatever else is in flight. */
static void test_barrier_waits(void **state)
{
	struct world *world = *state;

	world_start(world);
	for (uint32_t i = 0; i < N - 1; i++) {
		struct rx_sqe sqe = barrier_entry(&world->ranks[i], i);

		client_submit(world->clients[i], &sqe);
	}
	client_no_completion(world->clients[0], 50);
	client_submit(world->clients[N - 1], &(struct rx_sqe){.member = world->ranks[N - 1].member,
						     .coll = RX_BARRIER,
						     .user_data = N - 1});
	for (uint32_t i = 0; i < N; i++) {
		struct rx_cqe cqe = client_reap(world->clients[i]);

		assert_int_equal(cqe.result, RX_OK);
		assert_int_equal(cqe.user_data, i);
	}
}

static void test_in_place_and_shared(void **state)
{
	struct world *world = *state;
	struct client *both[2];
	struct rank ranks[2];
	float *values = NULL;

	world_start(world);
	both[0] = world->clients[0];
	both[1] = world->clients[0];
	ranks_form(ranks, both, 2);
	values = world->send[0].map.addr;
	values[0] = 3;
	/* Both ranks, in one process, in the same memory. */
	for (uint32_t i = 0; i < 2; i++) {
		struct rx_sqe sqe =
			all_reduce_entry(&ranks[i], i, &world->send[0], &world->send[0], 1);

		client_submit(both[0], &sqe);
	}
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(client_reap(both[0]).result, RX_OK);
	assert_true(values[0] == 6);
	rank_unmap(&ranks[0]);
	rank_unmap(&ranks[1]);
}

static void expect_mismatch(
	struct world *world, uint32_t i, uint32_t peer, uint64_t peer_count, uint8_t peer_dtype)
{
	struct rx_cqe cqe = client_reap(world->clients[i]);
	struct rx_op_sig sig = {0};

	memcpy(&sig, &cqe.peer_sig, sizeof(cqe.peer_sig));
	assert_int_equal(cqe.result, RX_ERR_MISMATCH);
	assert_int_equal(cqe.peer_rank, peer);
	assert_int_equal(cqe.peer_pid, getpid());
	assert_int_equal(cqe.peer_count, peer_count);
	assert_int_equal(sig.dtype, peer_dtype);
}

static void test_mismatch(void **state)
{
	struct world *world = *state;

	world_start(world);
	fill(world, 10);
	for (uint32_t i = 0; i < N; i++) {
		struct rx_sqe sqe = all_reduce_entry(
			&world->ranks[i], i, &world->send[i], &world->recv[i], i == 2 ? 7 : 8);

		client_submit(world->clients[i], &sqe);
	}
	expect_mismatch(world, 0, 2, 7, RX_FLOAT32);
	expect_mismatch(world, 1, 2, 7, RX_FLOAT32);
	expect_mismatch(world, 2, 0, 8, RX_FLOAT32);
	expect_mismatch(world, 3, 2, 7, RX_FLOAT32);
	/* Nothing was moved, and the communicator is good. */
	assert_int_equal(*(uint32_t *)world->recv[0].map.addr, UINT32_MAX);
	for (uint32_t i = 0; i < N; i++)
		submit_all_reduce(world, i, 50, 10);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(client_reap(world->clients[i]).result, RX_OK);
	check(world, 10);
}

static void test_bad_entries(void **state)
{
	struct world *world = *state;
	struct rx_sqe sqe;
	struct rx_cqe cqe;

	world_start(world);
	sqe = all_reduce_entry(&world->ranks[1], 9, &world->send[1], &world->recv[1], FLOATS);
	sqe.member ^= 5;
	client_submit(world->clients[1], &sqe);
	cqe = client_reap(world->clients[1]);
	assert_int_equal(cqe.result, RX_ERR_INVALID);
	assert_int_equal(cqe.user_data, 9);

	/* Somebody else's memory: fails here at once, and for the others when they come. */
	sqe = all_reduce_entry(&world->ranks[1], 10, &world->send[2], &world->recv[1], 8);
	client_submit(world->clients[1], &sqe);
	cqe = client_reap(world->clients[1]);
	assert_int_equal(cqe.result, RX_ERR_INVALID);
	assert_int_equal(cqe.user_data, 10);
	for (uint32_t i = 0; i < N; i++)
		if (i != 1)
			submit_all_reduce(world, i, i, 8);
	for (uint32_t i = 0; i < N; i++) {
		if (i == 1)
			continue;
		cqe = client_reap(world->clients[i]);
		assert_int_equal(cqe.result, RX_ERR_INVALID);
		assert_int_equal(cqe.peer_rank, 1);
	}
}

/* ---- variable collectives ---- */

#define WORDS_AT (FLOATS * sizeof(float) / 2) /* of the numbers, in send */

static uint64_t *words_of(struct world *world, uint32_t i)
{
	return (uint64_t *)(void *)((char *)world->send[i].map.addr + WORDS_AT);
}

static struct rx_sqe v_entry(struct world *world, uint32_t i, uint8_t coll, const uint64_t *words)
{
	struct rx_sqe sqe =
		all_reduce_entry(&world->ranks[i], 200 + i, &world->send[i], &world->recv[i], 0);

	memcpy(words_of(world, i), words, rx_counts_words(coll, N) * sizeof(words[0]));
	sqe.coll = coll;
	sqe.op = 0;
	sqe.root = world->send[i].handle;
	sqe.imm = WORDS_AT;
	return sqe;
}

/* Rank i has i + 1 elements, and wants them from the last rank's to the first's. */
static const uint64_t gather_words[1 + 2 * N] = {0, 1, 2, 3, 4, 9, 7, 4, 0};

static void check_gathered(struct world *world)
{
	for (uint32_t i = 0; i < N; i++) {
		const float *recv = world->recv[i].map.addr;

		for (uint32_t from = 0; from < N; from++)
			for (uint32_t k = 0; k <= from; k++)
				assert_true(recv[gather_words[1 + N + from] + k] ==
					    (float)(k * (from + 1)));
		assert_int_equal(((const uint32_t *)(const void *)recv)[10], UINT32_MAX);
	}
}

static void gather_all(struct world *world)
{
	fill(world, 100);
	for (uint32_t i = 0; i < N; i++) {
		struct rx_sqe sqe = v_entry(world, i, RX_ALL_GATHER_V, gather_words);

		client_submit(world->clients[i], &sqe);
	}
	for (uint32_t i = 0; i < N; i++) {
		struct rx_cqe cqe = client_reap(world->clients[i]);

		assert_int_equal(cqe.result, RX_OK);
		assert_int_equal(cqe.user_data, 200 + i);
		assert_int_equal(cqe.clash, 0);
	}
	check_gathered(world);
}

static void test_v(void **state)
{
	struct world *world = *state;

	world_start(world);
	gather_all(world);
}

/* What was said when the entry was taken counts. */
static void test_v_changed_later(void **state)
{
	struct world *world = *state;

	world_start(world);
	fill(world, 100);
	for (uint32_t i = 0; i < N; i++) {
		struct rx_sqe sqe = v_entry(world, i, RX_ALL_GATHER_V, gather_words);

		client_submit(world->clients[i], &sqe);
		if (i == N - 1)
			continue;
		client_no_completion(world->clients[i], 20);
		for (uint32_t w = 0; w < 1 + 2 * N; w++)
			words_of(world, i)[w] = UINT64_MAX - w;
	}
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(client_reap(world->clients[i]).result, RX_OK);
	check_gathered(world);
}

static void expect_clash(struct world *world, uint32_t i, struct rx_cqe expected)
{
	struct rx_cqe cqe = client_reap(world->clients[i]);
	struct rx_op_sig sig = {0};

	memcpy(&sig, &cqe.peer_sig, sizeof(cqe.peer_sig));
	assert_int_equal(cqe.result, RX_ERR_MISMATCH);
	assert_int_equal(sig.root, 0);
	assert_int_equal(cqe.peer_rank, expected.peer_rank);
	assert_int_equal(cqe.clash, 1);
	assert_int_equal(cqe.clash_block, expected.clash_block);
	for (uint32_t k = 0; k < 2; k++) {
		assert_int_equal(cqe.clash_rank[k], expected.clash_rank[k]);
		assert_int_equal(cqe.clash_count[k], expected.clash_count[k]);
	}
	assert_int_equal(*(uint32_t *)world->recv[i].map.addr, UINT32_MAX);
}

static void test_v_counts_differ(void **state)
{
	struct world *world = *state;

	world_start(world);
	fill(world, 100);
	for (uint32_t i = 0; i < N; i++) {
		struct rx_sqe sqe = v_entry(world, i, RX_ALL_GATHER_V, gather_words);

		if (i == 2)
			words_of(world, i)[1 + 3] = 5;
		client_submit(world->clients[i], &sqe);
	}
	for (uint32_t i = 0; i < N; i++)
		expect_clash(world, i,
			(struct rx_cqe){.peer_rank = i == 2 ? 0 : 2,
				.clash_rank = {(uint8_t)i, i == 2 ? 0 : 2},
				.clash_block = 3,
				.clash_count = {i == 2 ? 5 : 4, i == 2 ? 4 : 5}});
	gather_all(world);
}

static void test_v_pairs_differ(void **state)
{
	/* Two elements for everybody. */
	static const uint64_t words[1 + 4 * N] = {
		0, 2, 2, 2, 2, 0, 2, 4, 6, 2, 2, 2, 2, 0, 2, 4, 6};
	struct world *world = *state;

	world_start(world);
	fill(world, 100);
	for (uint32_t i = 0; i < N; i++) {
		struct rx_sqe sqe = v_entry(world, i, RX_ALL_TO_ALL_V, words);

		if (i == 3)
			words_of(world, i)[1 + 2 * N + 1] = 1;
		client_submit(world->clients[i], &sqe);
	}
	for (uint32_t i = 0; i < N; i++)
		expect_clash(world, i,
			(struct rx_cqe){.peer_rank = i == 1 ? 3 : 1,
				.clash_rank = {1, 3},
				.clash_count = {2, 1}});
	gather_all(world);
}

static void test_v_against_other(void **state)
{
	struct world *world = *state;

	world_start(world);
	fill(world, 100);
	for (uint32_t i = 0; i < N; i++) {
		struct rx_sqe sqe = v_entry(
			world, i, i == 1 ? RX_REDUCE_SCATTER_V : RX_ALL_GATHER_V, gather_words);

		client_submit(world->clients[i], &sqe);
	}
	for (uint32_t i = 0; i < N; i++) {
		struct rx_cqe cqe = client_reap(world->clients[i]);
		uint8_t coll = 0;

		memcpy(&coll, &cqe.peer_sig, 1);
		assert_int_equal(cqe.result, RX_ERR_MISMATCH);
		assert_int_equal(cqe.clash, 0);
		assert_int_equal(cqe.peer_rank, i == 1 ? 0 : 1);
		assert_int_equal(coll, i == 1 ? RX_ALL_GATHER_V : RX_REDUCE_SCATTER_V);
		assert_int_equal(*(uint32_t *)world->recv[i].map.addr, UINT32_MAX);
	}
	gather_all(world);
}

/* One rank's numbers cannot be read, or not be right: its own fault, and the others hear of it. */
static void test_v_bad(void **state)
{
	enum { HANDLE, OTHERS_HANDLE, OFFSET, ALIGNMENT, OVERFLOW, REGION, COUNT, BAD_N };
	struct world *world = *state;

	world_start(world);
	for (uint32_t what = 0; what < BAD_N; what++) {
		fill(world, 100);
		for (uint32_t i = 0; i < N; i++) {
			struct rx_sqe sqe = v_entry(world, i, RX_ALL_GATHER_V, gather_words);
			uint64_t *words = words_of(world, i);

			if (i == 1) {
				sqe.root = what == HANDLE          ? 0
					   : what == OTHERS_HANDLE ? world->send[2].handle
								   : sqe.root;
				sqe.imm = what == OFFSET
						  ? rx_align_up(FLOATS * sizeof(float), 4096) - 8
					  : what == ALIGNMENT ? WORDS_AT + 4
							      : sqe.imm;
				sqe.count = what == COUNT ? 4 : 0;
				words[1 + N] = what == OVERFLOW ? UINT64_MAX
					       : what == REGION ? 2 * FLOATS
								: words[1 + N];
			}
			client_submit(world->clients[i], &sqe);
		}
		for (uint32_t i = 0; i < N; i++) {
			struct rx_cqe cqe = client_reap(world->clients[i]);

			assert_int_equal(cqe.result, RX_ERR_INVALID);
			assert_int_equal(cqe.peer_rank, i == 1 ? UINT32_MAX : 1);
			assert_int_equal(*(uint32_t *)world->recv[i].map.addr, UINT32_MAX);
		}
	}
	gather_all(world);
}

static void test_v_death_and_abort(void **state)
{
	struct world *world = *state;

	world_start(world);
	fill(world, 100);
	for (uint32_t i = 0; i < N - 1; i++) {
		struct rx_sqe sqe = v_entry(world, i, RX_ALL_GATHER_V, gather_words);

		client_submit(world->clients[i], &sqe);
		client_submit(world->clients[i], &sqe);
	}
	client_no_completion(world->clients[0], 20);
	world_close_client(world, N - 1);
	for (uint32_t i = 0; i < N - 1; i++)
		for (uint32_t k = 0; k < 2; k++) {
			struct rx_cqe cqe = client_reap(world->clients[i]);

			assert_int_equal(cqe.result, RX_ERR_PEER_LOST);
			assert_int_equal(cqe.peer_rank, N - 1);
		}
	/* After the abort that follows. */
	sleep_ms(400);
	struct rx_sqe late = v_entry(world, 0, RX_ALL_GATHER_V, gather_words);
	client_submit(world->clients[0], &late);
	assert_int_equal(client_reap(world->clients[0]).result, RX_ERR_PEER_LOST);
}

/* Two communicators, used in opposite order. */
static void test_opposite_order(void **state)
{
	struct world *world = *state;
	struct rank second[N];

	world_start(world);
	ranks_form(second, world->clients, N);
	for (uint32_t i = 0; i < N; i++) {
		struct rx_sqe a = barrier_entry(&world->ranks[i], 1);
		struct rx_sqe b = barrier_entry(&second[i], 2);

		client_submit(world->clients[i], i % 2 ? &a : &b);
		client_submit(world->clients[i], i % 2 ? &b : &a);
	}
	for (uint32_t i = 0; i < N; i++) {
		uint64_t sum = client_reap(world->clients[i]).user_data +
			       client_reap(world->clients[i]).user_data;

		assert_int_equal(sum, 3);
		rank_unmap(&second[i]);
	}
}

/* More in flight than the ring has entries; each rank far ahead of the next. */
static void test_many_in_flight(void **state)
{
	enum { OPS = 400 };
	struct world *world = *state;

	world_start(world);
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t k = 0; k < OPS; k++)
			submit_all_reduce(world, i, k, 16);
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t k = 0; k < OPS; k++) {
			struct rx_cqe cqe = client_reap(world->clients[i]);

			assert_int_equal(cqe.result, RX_OK);
			assert_int_equal(cqe.user_data, k);
		}
}

/* Ranks that go in rotation overtake each other by many ops. */
static void test_thousands(void **state)
{
	enum { ROUNDS = 100, BATCH = 100 };
	struct world *world = *state;

	world_start(world);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < N; i++)
			for (uint32_t k = 0; k < BATCH; k++)
				submit_all_reduce(world, (i + round) % N, k, k % 5);
		for (uint32_t i = 0; i < N; i++)
			for (uint32_t k = 0; k < BATCH; k++)
				assert_int_equal(client_reap(world->clients[i]).user_data, k);
	}
}

static void test_death_fails_queued(void **state)
{
	struct world *world = *state;
	struct rx_cqe cqe;

	world_start(world);
	for (uint32_t i = 0; i < N - 1; i++)
		for (uint32_t k = 0; k < 3; k++)
			submit_all_reduce(world, i, k, 100);
	client_no_completion(world->clients[0], 20);
	world_close_client(world, N - 1);
	for (uint32_t i = 0; i < N - 1; i++)
		for (uint32_t k = 0; k < 3; k++) {
			cqe = client_reap(world->clients[i]);
			assert_int_equal(cqe.result, RX_ERR_PEER_LOST);
			assert_int_equal(cqe.peer_rank, N - 1);
			assert_int_equal(cqe.peer_pid, getpid());
			assert_int_equal(cqe.user_data, k);
		}
	/* And what comes later, before and after the abort. */
	submit_all_reduce(world, 0, 7, 100);
	assert_int_equal(client_reap(world->clients[0]).result, RX_ERR_PEER_LOST);
	sleep_ms(400);
	submit_all_reduce(world, 1, 7, 100);
	cqe = client_reap(world->clients[1]);
	assert_int_equal(cqe.result, RX_ERR_PEER_LOST);
	assert_int_equal(cqe.peer_rank, N - 1);
}

/* What the rank had posted before it left still runs; what it had not fails. */
static void test_leave_fails_the_missing(void **state)
{
	struct world *world = *state;

	world_start(world);
	fill(world, 100);
	for (uint32_t i = 1; i < N; i++)
		submit_all_reduce(world, i, 1, 100);
	client_no_completion(world->clients[1], 20);
	client_ask(world->clients[1],
		&(struct rx_msg){.type = RX_MSG_COMM_LEAVE,
			.comm_leave = {.member = world->ranks[1].member}},
		RX_MSG_OK);
	assert_int_equal(client_reap(world->clients[1]).result, RX_ERR_ABORTED);
	submit_all_reduce(world, 0, 1, 100);
	for (uint32_t i = 0; i < N; i++)
		if (i != 1)
			assert_int_equal(client_reap(world->clients[i]).result, RX_OK);
	check(world, 100);
	submit_all_reduce(world, 2, 2, 100);
	assert_int_equal(client_reap(world->clients[2]).result, RX_ERR_PEER_LOST);
}

static void test_abort_fails_queued(void **state)
{
	struct world *world = *state;
	struct rx_cqe cqe;

	world_start(world);
	submit_all_reduce(world, 0, 1, 100);
	client_ask(world->clients[2],
		&(struct rx_msg){.type = RX_MSG_COMM_ABORT,
			.comm_abort = {.member = world->ranks[2].member, .reason = RX_ABORT_USER}},
		RX_MSG_OK);
	cqe = client_reap(world->clients[0]);
	assert_int_equal(cqe.result, RX_ERR_ABORTED);
	assert_int_equal(cqe.peer_rank, 2);
	submit_all_reduce(world, 3, 1, 100);
	assert_int_equal(client_reap(world->clients[3]).result, RX_ERR_ABORTED);
}

static void test_deadline(void **state)
{
	struct world *world = *state;
	struct rank ranks[2];
	uint8_t id[RX_UNIQUE_ID_BYTES];
	struct rx_cqe cqe;

	world_start(world);
	client_id(world->clients[0], id);
	for (uint32_t i = 0; i < 2; i++) {
		struct rx_msg msg = join_msg(id, 2, i);

		/* The lowest rank's holds. */
		msg.comm_join.op_timeout_ns = i == 0 ? 800 * RX_NS_PER_MS : 1;
		(void)client_send(world->clients[i], &msg, NULL, 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		rank_ready(&ranks[i], world->clients[i], i, 2);
	assert_int_equal(ranks[1].fabric.ctl->op_timeout_ns, 800 * RX_NS_PER_MS);
	client_submit(
		world->clients[0], &(struct rx_sqe){.member = ranks[0].member, .coll = RX_BARRIER});
	client_no_completion(world->clients[0], 100);
	cqe = client_reap(world->clients[0]);
	assert_int_equal(cqe.result, RX_ERR_TIMEOUT);
	assert_int_equal(cqe.peer_rank, 1);
	assert_int_equal(rank_abort_word(&ranks[1]), RX_ABORT_DEADLINE);
	rank_unmap(&ranks[0]);
	rank_unmap(&ranks[1]);
}

/* Memory that is freed while an op uses it stays until the op is done. */
static void test_free_in_flight(void **state)
{
	struct world *world = *state;

	world_start(world);
	fill(world, 100);
	submit_all_reduce(world, 0, 1, 100);
	client_no_completion(world->clients[0], 20);
	client_ask(world->clients[0],
		&(struct rx_msg){
			.type = RX_MSG_MEM_FREE, .mem_free = {.handle = world->send[0].handle}},
		RX_MSG_OK);
	for (uint32_t i = 1; i < N; i++)
		submit_all_reduce(world, i, 1, 100);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(client_reap(world->clients[i]).result, RX_OK);
	check(world, 100);
	submit_all_reduce(world, 0, 2, 100);
	assert_int_equal(client_reap(world->clients[0]).result, RX_ERR_INVALID);
}

/* ---- who is late ---- */

static void announce(struct rank *rank, uint32_t seq)
{
	struct rx_entry *entry = &rank->fabric.lines[rank->rank].entry[seq & 1];

	entry->sig = (struct rx_op_sig){
		.coll = RX_ALL_REDUCE, .dtype = RX_FLOAT32, .op = RX_SUM, .count = 1024};
	rx_fabric_publish(&rank->fabric, rank->rank, seq);
}

static void hint(struct world *world, uint32_t i)
{
	struct rx_msg msg = {
		.type = RX_MSG_STALL_HINT,
		.stall_hint = {.member = world->ranks[i].member},
	};

	(void)client_send(world->clients[i], &msg, NULL, 0);
}

static struct rx_comm_info *ask_comm(struct client *admin)
{
	client_ask(admin, &(struct rx_msg){.type = RX_MSG_ADMIN_COMMS}, RX_MSG_ADMIN_COMMS_REPLY);
	assert_int_equal(admin->msg.admin_comms_reply.n_comms, 1);
	return &admin->msg.admin_comms_reply.comms[0];
}

static void test_stall(void **state)
{
	struct world *world = *state;
	struct client *admin = NULL;
	struct rx_comm_info *info = NULL;

	world_start(world);
	admin = client_connect(world->fixture.admin);
	for (uint32_t i = 0; i < N; i++)
		announce(&world->ranks[i], 1);
	/* Nobody is behind: nothing to say. */
	hint(world, 0);
	sleep_ms(50);
	assert_int_equal(ask_comm(admin)->stalled_ns, 0);
	for (uint32_t i = 0; i < N; i++)
		if (i != 1 && i != 3)
			announce(&world->ranks[i], 2);
	hint(world, 0);
	sleep_ms(100);
	info = ask_comm(admin);
	assert_true(info->stalled_ns >= 250 * RX_NS_PER_MS);
	assert_false(info->members[0].late);
	assert_true(info->members[1].late);
	assert_true(info->members[3].late);
	assert_int_equal(info->members[0].op_seq, 2);
	assert_string_equal(info->members[0].op, "all_reduce of 1024 float32, sum");
	assert_int_equal(fixture_log_count(&world->fixture, "late ranks"), 0);
	sleep_ms(800);
	assert_int_equal(fixture_log_count(&world->fixture,
				 "name=\"test\" op=\"all_reduce of 1024 float32, sum\""),
		1);
	assert_int_equal(fixture_log_count(&world->fixture, "late ranks: 1 (pid"), 1);
	hint(world, 2);
	announce(&world->ranks[1], 2);
	announce(&world->ranks[3], 2);
	sleep_ms(1200);
	assert_int_equal(fixture_log_count(&world->fixture, "late ranks"), 1);
	assert_int_equal(fixture_log_count(&world->fixture, "goes on"), 1);
	assert_int_equal(ask_comm(admin)->stalled_ns, 0);
	client_close(admin);
}

static void test_queued_stall(void **state)
{
	struct world *world = *state;
	struct client *admin = NULL;
	struct rx_comm_info *info = NULL;

	world_start(world);
	admin = client_connect(world->fixture.admin);
	for (uint32_t i = 0; i < N; i++)
		if (i != 2)
			submit_all_reduce(world, i, 1, 77);
	sleep_ms(1200);
	assert_int_equal(fixture_log_count(&world->fixture,
				 "op=\"all_reduce of 77 float32, sum\" waited_ms=1"),
		1);
	assert_int_equal(fixture_log_count(&world->fixture, "late ranks: 2 (pid"), 1);
	info = ask_comm(admin);
	assert_true(info->stalled_ns >= RX_NS_PER_SEC);
	assert_true(info->members[2].late);
	assert_false(info->members[1].late);
	assert_int_equal(info->ops_queued, 1);
	assert_string_equal(info->members[1].op, "all_reduce of 77 float32, sum");
	assert_string_equal(info->members[2].op, "");
	submit_all_reduce(world, 2, 1, 77);
	assert_int_equal(client_reap(world->clients[0]).result, RX_OK);
	assert_int_equal(fixture_log_count(&world->fixture, "goes on"), 1);
	client_close(admin);
}

/* One rank blocks inline, another has queued: neither would ever come. */
static void test_executors_disagree(void **state)
{
	struct world *world = *state;
	const struct rx_fabric_ctl *ctl = NULL;
	struct rx_cqe cqe;

	world_start(world);
	submit_all_reduce(world, 1, 1, 77);
	client_no_completion(world->clients[1], 20);
	announce(&world->ranks[0], 1);
	hint(world, 0);
	cqe = client_reap(world->clients[1]);
	assert_int_equal(cqe.result, RX_ERR_MISMATCH);
	assert_int_equal(cqe.peer_rank, 0);
	assert_int_equal(cqe.peer_count, 1024);
	ctl = world->ranks[0].fabric.ctl;
	assert_int_equal(rank_abort_word(&world->ranks[0]), RX_ABORT_MISMATCH);
	assert_int_equal(ctl->abort_rank, 0);
	assert_int_equal(ctl->abort_other, 1);
	assert_int_equal(ctl->abort_sig[0].count, 1024);
	assert_int_equal(ctl->abort_sig[1].count, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_reduce, setup, teardown),
		cmocka_unit_test_setup_teardown(test_barrier_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_place_and_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mismatch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_entries, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v_changed_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v_counts_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v_pairs_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v_against_other, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v_bad, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v_death_and_abort, setup, teardown),
		cmocka_unit_test_setup_teardown(test_opposite_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_in_flight, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thousands, setup, teardown),
		cmocka_unit_test_setup_teardown(test_death_fails_queued, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leave_fails_the_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abort_fails_queued, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_free_in_flight, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stall, setup, teardown),
		cmocka_unit_test_setup_teardown(test_queued_stall, setup, teardown),
		cmocka_unit_test_setup_teardown(test_executors_disagree, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
