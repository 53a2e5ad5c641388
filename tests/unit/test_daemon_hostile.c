/* SPDX-License-Identifier: MIT */
/*
 * Clients that break the protocol: that session ends with one line in the log and is counted, and
 * a bystander goes on.
 */
#include "daemon_fixture.h"

#include "../../kernels/coll_types.h"
#include "../../shm/rx_clock.h"
#include "../../shm/rx_wake.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
	struct fixture fixture;
	struct client *bystanders[2];
	struct rank ranks[2];
	struct client *evil;
};

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	fixture_init(&scene->fixture);
	fixture_start(&scene->fixture);
	scene->bystanders[0] = client_open(scene->fixture.socket);
	scene->bystanders[1] = client_open(scene->fixture.socket);
	ranks_form(scene->ranks, scene->bystanders, 2);
	*state = scene;
	return 0;
}

/* The bystanders' communicator still works. */
static void check_bystanders(struct scene *scene)
{
	for (uint32_t i = 0; i < 2; i++)
		client_submit(scene->bystanders[i],
			&(struct rx_sqe){.member = scene->ranks[i].member, .coll = RX_BARRIER});
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(client_reap(scene->bystanders[i]).result, RX_OK);
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	for (uint32_t i = 0; i < 2; i++) {
		rank_unmap(&scene->ranks[i]);
		client_close(scene->bystanders[i]);
	}
	fixture_stop(&scene->fixture);
	free(scene);
	return 0;
}

static uint64_t ask_violations(struct scene *scene)
{
	struct client *admin = client_connect(scene->fixture.admin);
	uint64_t violations = 0;

	client_ask(admin, &(struct rx_msg){.type = RX_MSG_ADMIN_STATUS}, RX_MSG_ADMIN_STATUS_REPLY);
	violations = admin->msg.admin_status_reply.violations;
	client_close(admin);
	return violations;
}

/* The evil client's session has ended, for @reason. */
static void expect_violation(struct scene *scene, const char *reason)
{
	client_expect_end(scene->evil);
	client_close(scene->evil);
	check_bystanders(scene);
	assert_int_equal(ask_violations(scene), 1);
	assert_int_equal(fixture_log_count(&scene->fixture, "breaking the protocol"), 1);
	assert_int_equal(fixture_log_count(&scene->fixture, reason), 1);
}

static void send_raw(struct client *client, const void *data, size_t bytes)
{
	assert_int_equal(send(client->sock, data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

static void test_garbage(void **state)
{
	static const char garbage[] = "GET / HTTP/1.0\r\n\r\n";
	struct scene *scene = *state;

	scene->evil = client_connect(scene->fixture.socket);
	send_raw(scene->evil, garbage, sizeof(garbage));
	expect_violation(scene, "magic");
}

static void test_half_a_header(void **state)
{
	struct scene *scene = *state;

	scene->evil = client_open(scene->fixture.socket);
	send_raw(scene->evil, "RX", 2);
	expect_violation(scene, "shorter");
}

static void test_before_hello(void **state)
{
	struct scene *scene = *state;

	scene->evil = client_connect(scene->fixture.socket);
	(void)client_send(scene->evil, &(struct rx_msg){.type = RX_MSG_UNIQUE_ID_GET}, NULL, 0);
	expect_violation(scene, "before Hello");
}

static void test_hello_twice(void **state)
{
	struct scene *scene = *state;

	scene->evil = client_open(scene->fixture.socket);
	(void)client_send(scene->evil,
		&(struct rx_msg){.type = RX_MSG_HELLO,
			.hello = {.version_min = 1, .version_max = 1, .abi = RX_ABI_MAGIC}},
		NULL, 0);
	expect_violation(scene, "Hello twice");
}

static void test_admin_message_on_control(void **state)
{
	struct scene *scene = *state;

	scene->evil = client_open(scene->fixture.socket);
	(void)client_send(scene->evil, &(struct rx_msg){.type = RX_MSG_ADMIN_DRAIN}, NULL, 0);
	expect_violation(scene, "does not belong");
}

static void test_client_message_on_admin(void **state)
{
	struct scene *scene = *state;

	scene->evil = client_connect(scene->fixture.admin);
	(void)client_send(scene->evil, &(struct rx_msg){.type = RX_MSG_UNIQUE_ID_GET}, NULL, 0);
	expect_violation(scene, "does not belong");
}

static void test_uninvited_descriptors(void **state)
{
	struct scene *scene = *state;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	scene->evil = client_open(scene->fixture.socket);
	(void)client_send(
		scene->evil, &(struct rx_msg){.type = RX_MSG_PING, .ping = {.token = 1}}, fds, 2);
	(void)close(fds[0]);
	(void)close(fds[1]);
	expect_violation(scene, "descriptors");
}

static void test_false_abort_reason(void **state)
{
	struct scene *scene = *state;

	scene->evil = client_open(scene->fixture.socket);
	(void)client_send(scene->evil,
		&(struct rx_msg){.type = RX_MSG_COMM_ABORT,
			.comm_abort = {.member = 1, .reason = RX_ABORT_PEER_LOST}},
		NULL, 0);
	expect_violation(scene, "not its own");
}

static void test_impossible_submission_index(void **state)
{
	struct scene *scene = *state;

	scene->evil = client_open(scene->fixture.socket);
	atomic_store(&scene->evil->ring.s->sq_tail, 1ull << 40);
	assert_int_equal(rx_doorbell_ring(scene->evil->doorbell), 0);
	expect_violation(scene, "submission ring");
}

static void test_impossible_completion_index(void **state)
{
	struct scene *scene = *state;

	scene->evil = client_open(scene->fixture.socket);
	atomic_store(&scene->evil->ring.s->cq_head, 5);
	client_submit(scene->evil, &(struct rx_sqe){.coll = RX_BARRIER});
	expect_violation(scene, "completion ring");
}

static void test_never_reaps(void **state)
{
	struct scene *scene = *state;
	struct rx_sqe sqe = {.coll = RX_BARRIER};

	scene->evil = client_open(scene->fixture.socket);
	/* Without a membership each completes at once, with an error. */
	for (uint32_t i = 0; i <= scene->evil->ring.cq_entries; i++)
		client_submit(scene->evil, &sqe);
	expect_violation(scene, "more completions");
}

static void test_doorbell_storm(void **state)
{
	struct scene *scene = *state;
	uint64_t deadline_ns = rx_deadline_ns(5 * RX_NS_PER_SEC);

	scene->evil = client_open(scene->fixture.socket);
	/* Also without O_NONBLOCK, which the daemon's end shares. */
	assert_int_equal(fcntl(scene->evil->doorbell, F_SETFL, 0), 0);
	while (!rx_ring_closed(&scene->evil->ring) && rx_now_ns() < deadline_ns)
		(void)rx_doorbell_ring(scene->evil->doorbell);
	expect_violation(scene, "doorbell");
}

/* Requests without end, and no answer is read. */
static void test_never_reads(void **state)
{
	struct scene *scene = *state;
	uint64_t deadline_ns = rx_deadline_ns(5 * RX_NS_PER_SEC);
	uint8_t payload[64];
	size_t bytes = 0;
	struct rx_msg ping = {.type = RX_MSG_PING, .ping = {.token = 1}};

	scene->evil = client_open(scene->fixture.socket);
	assert_int_equal(rx_msg_pack(&ping, payload, sizeof(payload), &bytes), 0);
	while (!rx_ring_closed(&scene->evil->ring) && rx_now_ns() < deadline_ns) {
		int r = rx_frame_send(scene->evil->sock, RX_MSG_PING, 9, payload, bytes, NULL, 0);

		if (r == RX_FRAME_E_CLOSED)
			break;
	}
	assert_true(rx_ring_closed(&scene->evil->ring));
	client_close(scene->evil);
	check_bystanders(scene);
	assert_int_equal(ask_violations(scene), 1);
	assert_int_equal(fixture_log_count(&scene->fixture, "breaking the protocol"), 1);
	assert_int_equal(fixture_log_count(&scene->fixture, "does not read"), 1);
}

/* Entries that change while the daemon looks at them: errors or results, and nothing else. */
static void *rewrite(void *arg)
{
	struct client *client = arg;
	uint32_t x = 1;

	while (!rx_ring_closed(&client->ring)) {
		uint32_t slot = (x = x * 1664525 + 1013904223) % client->ring.sq_entries;
		struct rx_sqe *sqe = &client->ring.sqes[slot];

		__atomic_store_n(&sqe->count, x, __ATOMIC_RELAXED);
		__atomic_store_n(&sqe->send_offset, (uint64_t)x << 12, __ATOMIC_RELAXED);
		__atomic_store_n(&sqe->recv_region, x >> 8, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void test_rewrites_entries(void **state)
{
	struct scene *scene = *state;
	struct client *both[2];
	struct rank ranks[2];
	struct memory memory;
	pthread_t thread;

	scene->evil = client_open(scene->fixture.socket);
	both[0] = scene->evil;
	both[1] = scene->evil;
	memory_alloc(scene->evil, 65536, &memory);
	ranks_form(ranks, both, 2);
	assert_int_equal(pthread_create(&thread, NULL, rewrite, scene->evil), 0);
	for (uint32_t round = 0; round < 200; round++) {
		for (uint32_t i = 0; i < 100; i++) {
			struct rx_sqe sqe =
				all_reduce_entry(&ranks[i % 2], i, &memory, &memory, 16);

			client_submit(scene->evil, &sqe);
		}
		for (uint32_t i = 0; i < 100; i++) {
			int32_t result = client_reap(scene->evil).result;

			assert_true(result == RX_OK || result == RX_ERR_INVALID ||
				    result == RX_ERR_MISMATCH);
		}
	}
	check_bystanders(scene);
	/* Ends the thread too. */
	atomic_store(&scene->evil->ring.s->sq_tail, 1ull << 40);
	(void)rx_doorbell_ring(scene->evil->doorbell);
	assert_int_equal(pthread_join(thread, NULL), 0);
	rank_unmap(&ranks[0]);
	rank_unmap(&ranks[1]);
	rx_map_close(&memory.map);
	expect_violation(scene, "submission ring");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_half_a_header, setup, teardown),
		cmocka_unit_test_setup_teardown(test_before_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hello_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_admin_message_on_control, setup, teardown),
		cmocka_unit_test_setup_teardown(test_client_message_on_admin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_uninvited_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_false_abort_reason, setup, teardown),
		cmocka_unit_test_setup_teardown(test_impossible_submission_index, setup, teardown),
		cmocka_unit_test_setup_teardown(test_impossible_completion_index, setup, teardown),
		cmocka_unit_test_setup_teardown(test_never_reaps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_doorbell_storm, setup, teardown),
		cmocka_unit_test_setup_teardown(test_never_reads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rewrites_entries, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
