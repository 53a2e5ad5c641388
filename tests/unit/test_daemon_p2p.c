/* SPDX-License-Identifier: MIT */
/* Sends and receives of the daemon: matching in any order, failing, who is late. */
#include "daemon_fixture.h"

#include "../../daemon/answer.h"
#include "../../kernels/coll_types.h"
#include "../../shm/rx_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define N     3u
#define INTS  300000u /* more than one piece */
#define LARGE (64ull << 20)

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

static void world_start_with(struct world *world, uint64_t bytes)
{
	fixture_start(&world->fixture);
	for (uint32_t i = 0; i < N; i++) {
		world->clients[i] = client_open(world->fixture.socket);
		memory_alloc(world->clients[i], bytes, &world->send[i]);
		memory_alloc(world->clients[i], bytes, &world->recv[i]);
	}
	ranks_form(world->ranks, world->clients, N);
}

static void world_start(struct world *world)
{
	world_start_with(world, INTS * sizeof(uint32_t));
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

static struct rx_sqe entry(const struct world *world, uint8_t coll, uint32_t i, uint32_t peer,
	uint64_t first, uint64_t count)
{
	return (struct rx_sqe){
		.user_data = 100 * coll + peer,
		.member = world->ranks[i].member,
		.coll = coll,
		.dtype = RX_UINT32,
		.root = peer,
		.count = count,
		.send_region = coll == RX_SEND ? world->send[i].handle : RX_REGION_NONE,
		.recv_region = coll == RX_RECV ? world->recv[i].handle : RX_REGION_NONE,
		.send_offset = first * sizeof(uint32_t),
		.recv_offset = first * sizeof(uint32_t),
	};
}

/* @count integers from element @first on. */
static void post_send(
	struct world *world, uint32_t i, uint32_t peer, uint64_t first, uint64_t count)
{
	struct rx_sqe sqe = entry(world, RX_SEND, i, peer, first, count);

	client_submit(world->clients[i], &sqe);
}

static void post_recv(
	struct world *world, uint32_t i, uint32_t peer, uint64_t first, uint64_t count)
{
	struct rx_sqe sqe = entry(world, RX_RECV, i, peer, first, count);

	client_submit(world->clients[i], &sqe);
}

static struct rx_cqe expect(struct world *world, uint32_t i, enum rx_result result)
{
	struct rx_cqe cqe = client_reap(world->clients[i]);

	assert_int_equal(cqe.result, result);
	return cqe;
}

static void expect_from(struct world *world, uint32_t i, enum rx_result result, uint32_t peer_rank)
{
	assert_int_equal(expect(world, i, result).peer_rank, peer_rank);
}

static uint32_t value(uint32_t rank, uint64_t k)
{
	return (rank + 1) << 24 | (uint32_t)k;
}

static void fill(struct world *world)
{
	for (uint32_t i = 0; i < N; i++) {
		uint32_t *send = world->send[i].map.addr;

		for (uint64_t k = 0; k < INTS; k++)
			send[k] = value(i, k);
		memset(world->recv[i].map.addr, 0xff, INTS * sizeof(uint32_t));
	}
}

static uint32_t received(const struct world *world, uint32_t i, uint64_t k)
{
	return ((const uint32_t *)world->recv[i].map.addr)[k];
}

static void leave(struct world *world, uint32_t i)
{
	client_ask(world->clients[i],
		&(struct rx_msg){.type = RX_MSG_COMM_LEAVE,
			.comm_leave = {.member = world->ranks[i].member}},
		RX_MSG_OK);
}

static void abort_comm(struct world *world, uint32_t i)
{
	client_ask(world->clients[i],
		&(struct rx_msg){.type = RX_MSG_COMM_ABORT,
			.comm_abort = {.member = world->ranks[i].member, .reason = RX_ABORT_USER}},
		RX_MSG_OK);
}

static struct rx_msg_admin_status_reply ask_status(struct client *admin)
{
	client_ask(admin, &(struct rx_msg){.type = RX_MSG_ADMIN_STATUS}, RX_MSG_ADMIN_STATUS_REPLY);
	return admin->msg.admin_status_reply;
}

/* ---- matching ---- */

static void try_pair(struct world *world, uint64_t count, bool recv_first)
{
	fill(world);
	if (recv_first) {
		post_recv(world, 1, 0, 5, count);
		client_no_completion(world->clients[1], 10);
		post_send(world, 0, 1, 3, count);
	} else {
		post_send(world, 0, 1, 3, count);
		client_no_completion(world->clients[0], 10);
		post_recv(world, 1, 0, 5, count);
	}
	expect_from(world, 0, RX_OK, UINT32_MAX);
	expect_from(world, 1, RX_OK, UINT32_MAX);
	for (uint64_t k = 0; k < count; k++)
		assert_int_equal(received(world, 1, 5 + k), value(0, 3 + k));
	assert_int_equal(received(world, 1, 4), UINT32_MAX);
	assert_int_equal(received(world, 1, 5 + count), UINT32_MAX);
}

static void test_pair(void **state)
{
	static const uint64_t counts[] = {0, 1, 1000, INTS - 6};
	struct world *world = *state;
	struct client *admin = NULL;

	world_start(world);
	for (size_t c = 0; c < RX_ARRAY_SIZE(counts); c++) {
		try_pair(world, counts[c], false);
		try_pair(world, counts[c], true);
	}
	admin = client_connect(world->fixture.admin);
	assert_int_equal(ask_status(admin).ops_done, 2 * RX_ARRAY_SIZE(counts));
	assert_int_equal(ask_status(admin).ops_failed, 0);
	client_close(admin);
}

/* Rounds of all pairs with oneself among them; each rank posts its own in an order of its own. */
static void test_any_order(void **state)
{
	enum { ROUNDS = 20, BLOCK = 64 };
	struct world *world = *state;

	world_start(world);
	fill(world);
	for (uint32_t k = 0; k < ROUNDS * N; k++) {
		for (uint32_t i = 0; i < N; i++) {
			/* All of one pair's rounds in order, pairs in any: by peer, or by round. */
			uint32_t peer = i == 0 ? k / ROUNDS : (k + i) % N;
			uint32_t round = i == 0 ? k % ROUNDS : k / N;
			uint64_t at = (uint64_t)BLOCK * (round * N + peer);

			if (i == 1) {
				post_recv(world, i, peer, at, BLOCK);
				post_send(world, i, peer, at, BLOCK);
			} else {
				post_send(world, i, peer, at, BLOCK);
				post_recv(world, i, peer, at, BLOCK);
			}
		}
	}
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t k = 0; k < 2 * ROUNDS * N; k++)
			expect_from(world, i, RX_OK, UINT32_MAX);
	/* Block (round, j) of rank i is what j sent to it in that round. */
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t round = 0; round < ROUNDS; round++)
			for (uint32_t j = 0; j < N; j++)
				for (uint32_t k = 0; k < BLOCK; k++)
					assert_int_equal(
						received(world, i, BLOCK * (round * N + j) + k),
						value(j, BLOCK * (round * N + i) + k));
}

/* Neither does a collective wait for them, nor they for it. */
static void test_apart_from_collectives(void **state)
{
	struct world *world = *state;
	struct rx_sqe sqe;

	world_start(world);
	fill(world);
	for (uint32_t i = 0; i < N - 1; i++) {
		sqe = barrier_entry(&world->ranks[i], 7);
		client_submit(world->clients[i], &sqe);
	}
	/* Pending before the pair and left pending after it. */
	post_recv(world, 1, 2, 0, 1);
	post_send(world, 0, 1, 0, 8);
	post_recv(world, 1, 0, 8, 8);
	assert_int_equal(expect(world, 0, RX_OK).user_data, 100 * RX_SEND + 1);
	assert_int_equal(expect(world, 1, RX_OK).user_data, 100 * RX_RECV);
	assert_int_equal(received(world, 1, 8), value(0, 0));
	sqe = barrier_entry(&world->ranks[N - 1], 7);
	client_submit(world->clients[N - 1], &sqe);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(expect(world, i, RX_OK).user_data, 7);
	post_send(world, 2, 1, 0, 1);
	assert_int_equal(expect(world, 1, RX_OK).user_data, 100 * RX_RECV + 2);
}

static void expect_mismatch(
	struct world *world, uint32_t i, uint32_t peer, uint8_t coll, uint8_t dtype, uint64_t count)
{
	struct rx_cqe cqe = expect(world, i, RX_ERR_MISMATCH);
	struct rx_op_sig sig = {0};

	memcpy(&sig, &cqe.peer_sig, sizeof(cqe.peer_sig));
	assert_int_equal(cqe.peer_rank, peer);
	assert_int_equal(cqe.peer_pid, getpid());
	assert_int_equal(cqe.peer_count, count);
	assert_int_equal(sig.coll, coll);
	assert_int_equal(sig.dtype, dtype);
	assert_int_equal(sig.root, i);
}

static void test_mismatch(void **state)
{
	struct world *world = *state;
	struct rx_sqe sqe;

	world_start(world);
	fill(world);
	post_send(world, 0, 1, 0, 8);
	post_recv(world, 1, 0, 0, 9);
	expect_mismatch(world, 0, 1, RX_RECV, RX_UINT32, 9);
	expect_mismatch(world, 1, 0, RX_SEND, RX_UINT32, 8);
	post_recv(world, 1, 0, 0, 8);
	sqe = entry(world, RX_SEND, 0, 1, 0, 8);
	sqe.dtype = RX_FLOAT32;
	client_submit(world->clients[0], &sqe);
	expect_mismatch(world, 0, 1, RX_RECV, RX_UINT32, 8);
	expect_mismatch(world, 1, 0, RX_SEND, RX_FLOAT32, 8);
	assert_int_equal(received(world, 1, 0), UINT32_MAX);
	/* And the communicator is good. */
	try_pair(world, 10, false);
}

/* ---- refused entries ---- */

static void test_bad_entries(void **state)
{
	struct world *world = *state;
	struct rx_sqe sqe;

	world_start(world);
	fill(world);
	sqe = entry(world, RX_SEND, 0, N, 0, 8);
	client_submit(world->clients[0], &sqe);
	expect_from(world, 0, RX_ERR_INVALID, UINT32_MAX);
	/* Somebody else's memory: fails here at once, and for the peer when it comes. */
	sqe = entry(world, RX_SEND, 0, 1, 0, 8);
	sqe.send_region = world->send[1].handle;
	client_submit(world->clients[0], &sqe);
	expect_from(world, 0, RX_ERR_INVALID, UINT32_MAX);
	post_send(world, 0, 1, 20, 8);
	post_recv(world, 1, 0, 0, 8);
	expect_from(world, 1, RX_ERR_INVALID, 0);
	assert_int_equal(received(world, 1, 0), UINT32_MAX);
	/* The message after it is still the next one. */
	post_recv(world, 1, 0, 0, 8);
	expect_from(world, 0, RX_OK, UINT32_MAX);
	expect_from(world, 1, RX_OK, UINT32_MAX);
	assert_int_equal(received(world, 1, 0), value(0, 20));
}

/* They are answered at once, but what they leave behind is bounded. */
static void flood(struct world *world, uint8_t coll)
{
	struct rx_sqe sqe = entry(world, RX_SEND, 0, 1, 0, 8);

	world_start(world);
	sqe.member = world->ranks[0].member;
	sqe.coll = coll;
	sqe.root = coll == RX_SEND ? 1 : 0;
	sqe.send_region = RX_REGION_NONE;
	for (uint32_t k = 0; k < ANSWER_MOST_BAD; k++) {
		client_submit(world->clients[0], &sqe);
		expect_from(world, 0, RX_ERR_INVALID, UINT32_MAX);
	}
	post_recv(world, 2, 1, 0, 8);
	client_no_completion(world->clients[2], 20);
	assert_int_equal(rank_abort_word(&world->ranks[0]), RX_ABORT_NONE);
	client_submit(world->clients[0], &sqe);
	expect_from(world, 0, RX_ERR_INVALID, UINT32_MAX);
	expect_from(world, 2, RX_ERR_ABORTED, 0);
	assert_int_equal(rank_abort_word(&world->ranks[0]), RX_ABORT_ERROR);
}

static void test_flood_of_bad_sends(void **state)
{
	flood(*state, RX_SEND);
}

static void test_flood_of_bad_collectives(void **state)
{
	flood(*state, RX_ALL_GATHER);
}

/* ---- peers that go ---- */

static void test_leave(void **state)
{
	struct world *world = *state;

	world_start(world);
	fill(world);
	post_recv(world, 1, 0, 0, 8);
	post_send(world, 2, 0, 0, 8);
	post_send(world, 0, 2, 0, 8);
	post_recv(world, 0, 0, 0, 8);
	post_recv(world, 1, 2, 8, 8);
	client_no_completion(world->clients[1], 20);
	leave(world, 0);
	expect_from(world, 0, RX_ERR_ABORTED, UINT32_MAX);
	expect_from(world, 0, RX_ERR_ABORTED, UINT32_MAX);
	expect_from(world, 1, RX_ERR_PEER_LOST, 0);
	expect_from(world, 2, RX_ERR_PEER_LOST, 0);
	post_recv(world, 2, 0, 0, 8);
	expect_from(world, 2, RX_ERR_PEER_LOST, 0);
	/* Others go on. */
	post_send(world, 2, 1, 0, 8);
	expect_from(world, 2, RX_OK, UINT32_MAX);
	expect_from(world, 1, RX_OK, UINT32_MAX);
	assert_int_equal(received(world, 1, 8), value(2, 0));
}

static void test_death(void **state)
{
	struct world *world = *state;
	struct rx_cqe cqe;

	world_start(world);
	for (uint32_t k = 0; k < 3; k++) {
		post_recv(world, 1, 0, 0, 8);
		post_send(world, 0, 2, 0, 8);
	}
	post_recv(world, 1, 2, 0, 8);
	client_no_completion(world->clients[1], 20);
	world_close_client(world, 0);
	for (uint32_t k = 0; k < 3; k++) {
		cqe = expect(world, 1, RX_ERR_PEER_LOST);
		assert_int_equal(cqe.peer_rank, 0);
		assert_int_equal(cqe.peer_pid, getpid());
		assert_int_equal(cqe.user_data, 100 * RX_RECV);
	}
	/* That between the living ends with the communicator, a moment later. */
	expect_from(world, 1, RX_ERR_PEER_LOST, 0);
	assert_int_equal(rank_abort_word(&world->ranks[1]), RX_ABORT_PEER_LOST);
	post_send(world, 2, 1, 0, 8);
	expect_from(world, 2, RX_ERR_PEER_LOST, 0);
}

static void test_abort(void **state)
{
	struct world *world = *state;

	world_start(world);
	post_recv(world, 1, 0, 0, 8);
	post_send(world, 0, 2, 0, 8);
	client_no_completion(world->clients[0], 20);
	abort_comm(world, 2);
	expect_from(world, 0, RX_ERR_ABORTED, 2);
	expect_from(world, 1, RX_ERR_ABORTED, 2);
	post_send(world, 2, 1, 0, 8);
	expect_from(world, 2, RX_ERR_ABORTED, 2);
}

/* All are gone while entries wait: the fixture finds what is left behind. */
static void test_everybody_leaves(void **state)
{
	struct world *world = *state;

	world_start(world);
	for (uint32_t i = 0; i < N; i++)
		post_send(world, i, (i + 1) % N, 0, 8);
	for (uint32_t i = 0; i < N; i++) {
		client_no_completion(world->clients[i], 10);
		leave(world, i);
		/* Its own; before that, the one for the rank that has left. */
		if (i == 0)
			expect_from(world, 0, RX_ERR_ABORTED, UINT32_MAX);
		if (i == 0)
			expect_from(world, N - 1, RX_ERR_PEER_LOST, 0);
		if (i == 1)
			expect_from(world, 1, RX_ERR_ABORTED, UINT32_MAX);
	}
}

/* ---- members that go while a worker runs ---- */

static void fill_large(struct world *world)
{
	for (uint32_t i = 0; i < N; i++) {
		uint32_t *send = world->send[i].map.addr;

		for (uint64_t k = 0; k < LARGE / 4; k += 1024)
			send[k] = value(i, k);
		/* Faults taken here are not taken while the worker should run. */
		memset(world->recv[i].map.addr, 0xff, LARGE);
	}
}

/* The first ones may be complete already. */
static bool all_matched(struct client *admin, uint32_t n_pairs)
{
	const struct rx_comm_info *info = NULL;

	client_ask(admin, &(struct rx_msg){.type = RX_MSG_ADMIN_COMMS}, RX_MSG_ADMIN_COMMS_REPLY);
	info = &admin->msg.admin_comms_reply.comms[0];
	return info->ops_queued + info->ops_done == n_pairs && info->members[0].op[0] == '\0' &&
	       info->members[1].op[0] == '\0';
}

static void start_large(struct world *world, uint32_t n_pairs)
{
	struct client *admin = client_connect(world->fixture.admin);

	for (uint32_t k = 0; k < n_pairs; k++) {
		post_recv(world, 1, 0, 0, LARGE / 4);
		post_send(world, 0, 1, 0, LARGE / 4);
	}
	while (!all_matched(admin, n_pairs))
		sleep_ms(1);
	client_close(admin);
}

/* A completion means that the memory is not used any more, for one who has left as well. */
static void test_leave_while_running(void **state)
{
	enum { TIMES = 4 };
	struct world *world = *state;

	world_start_with(world, LARGE);
	fill_large(world);
	start_large(world, TIMES);
	leave(world, 1);
	leave(world, 0);
	for (uint32_t k = 0; k < TIMES; k++) {
		expect_from(world, 1, RX_OK, UINT32_MAX);
		for (uint64_t at = 0; at < LARGE / 4; at += 1024)
			assert_int_equal(received(world, 1, at), value(0, at));
		expect_from(world, 0, RX_OK, UINT32_MAX);
	}
	post_recv(world, 2, 0, 0, 1);
	expect_from(world, 2, RX_ERR_PEER_LOST, 0);
}

static void test_death_while_running(void **state)
{
	struct world *world = *state;

	world_start_with(world, LARGE);
	fill_large(world);
	for (uint32_t k = 0; k < 4; k++) {
		post_recv(world, 1, 0, 0, LARGE / 4);
		post_send(world, 0, 1, 0, LARGE / 4);
		post_send(world, 1, 2, 0, LARGE / 4);
		post_recv(world, 2, 1, 0, LARGE / 4);
	}
	world_close_client(world, 1);
	for (uint32_t k = 0; k < 4; k++) {
		int32_t result = client_reap(world->clients[0]).result;

		assert_true(result == RX_OK || result == RX_ERR_PEER_LOST);
		result = client_reap(world->clients[2]).result;
		assert_true(result == RX_OK || result == RX_ERR_PEER_LOST);
	}
}

static void expect_cut_short(struct world *world, uint32_t n_pairs)
{
	for (uint32_t k = 0; k < n_pairs; k++) {
		int32_t result = client_reap(world->clients[1]).result;

		/* Gigabytes are not copied that fast: the last one must have been cut short. */
		assert_true(result == RX_ERR_ABORTED || (k < n_pairs - 1 && result == RX_OK));
		result = client_reap(world->clients[0]).result;
		assert_true(result == RX_OK || result == RX_ERR_ABORTED);
	}
}

static void test_abort_while_running(void **state)
{
	struct world *world = *state;

	world_start_with(world, LARGE);
	fill_large(world);
	start_large(world, 32);
	abort_comm(world, 2);
	expect_cut_short(world, 32);
}

/* Nobody is left, but the communicator stays until the worker is done. */
static void test_all_leave_while_running(void **state)
{
	struct world *world = *state;

	world_start_with(world, LARGE);
	fill_large(world);
	start_large(world, 32);
	for (uint32_t i = 0; i < N; i++)
		leave(world, i);
	expect_cut_short(world, 32);
}

/* ---- who is late ---- */

static void test_deadline(void **state)
{
	struct world *world = *state;
	struct rank ranks[2];
	uint8_t id[RX_UNIQUE_ID_BYTES];
	struct rx_sqe sqe;

	world_start(world);
	client_id(world->clients[0], id);
	for (uint32_t i = 0; i < 2; i++) {
		struct rx_msg msg = join_msg(id, 2, i);

		msg.comm_join.op_timeout_ns = 800 * RX_NS_PER_MS;
		(void)client_send(world->clients[i], &msg, NULL, 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		rank_ready(&ranks[i], world->clients[i], i, 2);
	sqe = entry(world, RX_RECV, 0, 1, 0, 8);
	sqe.member = ranks[0].member;
	client_submit(world->clients[0], &sqe);
	client_no_completion(world->clients[0], 100);
	expect_from(world, 0, RX_ERR_TIMEOUT, 1);
	assert_int_equal(rank_abort_word(&ranks[1]), RX_ABORT_DEADLINE);
	rank_unmap(&ranks[0]);
	rank_unmap(&ranks[1]);
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
	post_send(world, 0, 2, 0, 77);
	post_recv(world, 1, 2, 0, 10);
	sleep_ms(100);
	info = ask_comm(admin);
	assert_int_equal(info->ops_queued, 2);
	assert_int_equal(info->stalled_ns, 0);
	assert_string_equal(info->members[0].op, "send of 77 uint32 to rank 2");
	assert_string_equal(info->members[1].op, "recv of 10 uint32 from rank 2");
	assert_string_equal(info->members[2].op, "");
	sleep_ms(1100);
	info = ask_comm(admin);
	assert_true(info->stalled_ns >= RX_NS_PER_SEC);
	assert_true(info->members[2].late);
	assert_false(info->members[0].late);
	assert_false(info->members[1].late);
	/* However many wait, the log names the oldest and all that are late. */
	assert_int_equal(fixture_log_count(
				 &world->fixture, "op=\"send of 77 uint32 to rank 2\" waited_ms=1"),
		1);
	assert_int_equal(fixture_log_count(&world->fixture, "late ranks: 2 (pid"), 1);
	assert_int_equal(fixture_log_count(&world->fixture, "goes on"), 0);
	post_recv(world, 2, 0, 0, 77);
	expect_from(world, 0, RX_OK, UINT32_MAX);
	assert_int_equal(fixture_log_count(&world->fixture, "goes on"), 1);
	post_send(world, 2, 1, 0, 10);
	expect_from(world, 1, RX_OK, UINT32_MAX);
	info = ask_comm(admin);
	assert_int_equal(info->stalled_ns, 0);
	assert_int_equal(info->ops_queued, 0);
	assert_int_equal(info->ops_done, 2);
	client_close(admin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pair, setup, teardown),
		cmocka_unit_test_setup_teardown(test_any_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_apart_from_collectives, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mismatch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_entries, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood_of_bad_sends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood_of_bad_collectives, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leave, setup, teardown),
		cmocka_unit_test_setup_teardown(test_death, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abort, setup, teardown),
		cmocka_unit_test_setup_teardown(test_everybody_leaves, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leave_while_running, setup, teardown),
		cmocka_unit_test_setup_teardown(test_death_while_running, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abort_while_running, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_leave_while_running, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stall, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
