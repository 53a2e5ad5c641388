/* SPDX-License-Identifier: MIT */
/* The control socket under threads, late replies, garbage and a daemon that goes away. */
#include "fake_daemon.h"

#include "../../client/conn.h"
#include "../../client/err.h"
#include "../../shm/rx_clock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_THREADS 8u

static struct fake *start(struct conn *conn, fake_fn script)
{
	struct fake *fake = fake_pair(script, NULL);

	assert_int_equal(conn_open(conn, fake->client_fd), 0);
	return fake;
}

static void stop(struct conn *conn, struct fake *fake)
{
	conn_close(conn);
	fake_join(fake);
}

static struct conn_wait within(uint64_t ms)
{
	return (struct conn_wait){.deadline_ns = rx_deadline_ns(ms * RX_NS_PER_MS)};
}

static rcclx_result ping(struct conn *conn, uint64_t token, uint64_t ms)
{
	struct rx_msg request = {.type = RX_MSG_PING, .ping = {.token = token}};
	struct conn_wait wait = within(ms);
	struct conn_reply reply;
	rcclx_result r = conn_call(conn, &request, -1, RX_MSG_PONG, &wait, &reply);

	if (r == RCCLX_OK && reply.msg.pong.token != token)
		r = err_set(RCCLX_ERR_INTERNAL, "somebody else's pong");
	if (r == RCCLX_OK)
		conn_reply_deinit(&reply);
	return r;
}

static void pong(struct fake *fake, const struct rx_msg *request)
{
	struct rx_msg reply = {
		.type = RX_MSG_PONG,
		.serial = request->serial,
		.pong = {.token = request->ping.token},
	};

	fake_send(fake, &reply, NULL, 0);
}

static void serve_pings(struct fake *fake)
{
	struct rx_msg msg;

	while (fake_recv(fake, &msg)) {
		if (FAKE_CHECK(fake, msg.type == RX_MSG_PING))
			pong(fake, &msg);
	}
}

/* ---- several threads, replies in another order ---- */

struct pinger {
	struct conn *conn;
	uint64_t token;
	uint32_t n_calls;
	uint64_t ms;
	rcclx_result result;
	char text[256];
};

static void *pinger_run(void *arg)
{
	struct pinger *p = arg;

	for (uint32_t i = 0; i < p->n_calls && p->result == RCCLX_OK; i++)
		p->result = ping(p->conn, p->token + i, p->ms);
	strncpy(p->text, rcclx_last_error(), sizeof(p->text) - 1);
	return NULL;
}

static void run_pingers(struct conn *conn, uint32_t n_calls, uint64_t ms, struct pinger *pingers)
{
	pthread_t threads[N_THREADS];

	for (uint32_t i = 0; i < N_THREADS; i++) {
		pingers[i] = (struct pinger){conn, i * 1000ull, n_calls, ms, RCCLX_OK, ""};
		assert_int_equal(pthread_create(&threads[i], NULL, pinger_run, &pingers[i]), 0);
	}
	for (uint32_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void answer_backwards(struct fake *fake)
{
	struct rx_msg requests[N_THREADS];

	for (uint32_t i = 0; i < N_THREADS; i++)
		fake_expect(fake, RX_MSG_PING, &requests[i]);
	for (uint32_t i = N_THREADS; i > 0; i--)
		pong(fake, &requests[i - 1]);
	serve_pings(fake);
}

static void test_out_of_order(void **state)
{
	struct pinger pingers[N_THREADS];
	struct conn conn;
	struct fake *fake = start(&conn, answer_backwards);

	(void)state;
	/* One each, answered backwards, then many, answered as they come. */
	run_pingers(&conn, 200, 10000, pingers);
	for (uint32_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pingers[i].result, RCCLX_OK);
	stop(&conn, fake);
}

/* ---- too late ---- */

static void ready_too_late(struct fake *fake)
{
	struct rx_msg join;
	struct rx_msg first;
	struct rx_msg second;
	int fds[2] = {open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY)};

	if (!fake_expect(fake, RX_MSG_COMM_JOIN, &join))
		return;
	/* By the time of the ping the caller has given up. */
	if (!fake_expect(fake, RX_MSG_PING, &first))
		return;

	struct rx_msg ready = {
		.type = RX_MSG_COMM_READY,
		.serial = join.serial,
		.comm_ready = {.member = 42, .arena_bytes = 1},
	};

	fake_send(fake, &ready, fds, 2);
	(void)close(fds[0]);
	(void)close(fds[1]);
	if (fake_expect(fake, RX_MSG_COMM_LEAVE, &second))
		FAKE_CHECK(fake, second.comm_leave.member == 42);
	pong(fake, &first);
	serve_pings(fake);
}

static rcclx_result join(struct conn *conn, const struct conn_wait *wait)
{
	static const uint8_t id[RX_UNIQUE_ID_BYTES] = {1};
	struct rx_msg request = {
		.type = RX_MSG_COMM_JOIN,
		.comm_join = {.id = {id, sizeof(id)}, .n_ranks = 2, .rank = 1},
	};
	struct conn_reply reply;
	rcclx_result r = conn_call(conn, &request, -1, RX_MSG_COMM_READY, wait, &reply);

	if (r == RCCLX_OK)
		conn_reply_deinit(&reply);
	return r;
}

static void test_late_ready_is_left(void **state)
{
	struct conn conn;
	struct fake *fake = start(&conn, ready_too_late);
	struct conn_wait wait = within(50);
	uint64_t before = now_ms();

	(void)state;
	assert_int_equal(join(&conn, &wait), RCCLX_ERR_TIMEOUT);
	assert_text("CommJoin");
	assert_true(now_ms() - before >= 50);
	assert_int_equal(ping(&conn, 1, 10000), RCCLX_OK);
	stop(&conn, fake);
}

static void memory_too_late(struct fake *fake)
{
	struct rx_msg alloc;
	struct rx_msg first;
	struct rx_msg second;
	int fd = open("/dev/null", O_RDONLY);

	if (!fake_expect(fake, RX_MSG_MEM_ALLOC, &alloc) || !fake_expect(fake, RX_MSG_PING, &first))
		return;

	struct rx_msg reply = {
		.type = RX_MSG_MEM_REPLY,
		.serial = alloc.serial,
		.mem_reply = {.handle = 7, .region_id = 8, .bytes = 4096},
	};

	fake_send(fake, &reply, &fd, 1);
	(void)close(fd);
	if (fake_expect(fake, RX_MSG_MEM_FREE, &second))
		FAKE_CHECK(fake, second.mem_free.handle == 7);
	pong(fake, &first);
	serve_pings(fake);
}

static void test_late_memory_is_freed(void **state)
{
	struct rx_msg request = {.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = 1}};
	struct conn_wait wait = within(20);
	struct conn_reply reply;
	struct conn conn;
	struct fake *fake = start(&conn, memory_too_late);

	(void)state;
	assert_int_equal(
		conn_call(&conn, &request, -1, RX_MSG_MEM_REPLY, &wait, &reply), RCCLX_ERR_TIMEOUT);
	assert_int_equal(ping(&conn, 1, 10000), RCCLX_OK);
	stop(&conn, fake);
}

/* A reply to a request that never was is nobody's business. */
static void stray_replies(struct fake *fake)
{
	struct rx_msg request;
	struct rx_msg stray = {.type = RX_MSG_PONG, .serial = 0xfffffff0u};

	if (!fake_expect(fake, RX_MSG_PING, &request))
		return;
	fake_send(fake, &stray, NULL, 0);
	pong(fake, &request);
	pong(fake, &request);
	serve_pings(fake);
}

static void test_stray_replies(void **state)
{
	struct conn conn;
	struct fake *fake = start(&conn, stray_replies);

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(ping(&conn, i, 10000), RCCLX_OK);
	stop(&conn, fake);
}

/* ---- a caller that is told to stop ---- */

static void say_nothing(struct fake *fake)
{
	struct rx_msg msg;

	while (fake_recv(fake, &msg))
		continue;
}

static void *cancel_soon(void *arg)
{
	_Atomic uint32_t *cancel = arg;

	(void)usleep(30000);
	atomic_store(cancel, 1);
	return NULL;
}

static void test_cancel(void **state)
{
	_Atomic uint32_t cancel = 0;
	struct conn conn;
	struct fake *fake = start(&conn, say_nothing);
	struct conn_wait wait = {.deadline_ns = RX_FOREVER, .cancel = &cancel};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
	assert_int_equal(join(&conn, &wait), RCCLX_ERR_ABORTED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	stop(&conn, fake);
}

/* ---- answers that are none ---- */

static void errors(struct fake *fake)
{
	static const int32_t codes[] = {RCCLX_ERR_LIMIT, RCCLX_ERR_N};
	struct rx_msg request;

	for (size_t i = 0; i < RX_ARRAY_SIZE(codes); i++) {
		if (!fake_expect(fake, RX_MSG_PING, &request))
			return;

		struct rx_msg error = {
			.type = RX_MSG_ERROR,
			.serial = request.serial,
			.error = {.code = codes[i], .text = "3 of 3 \xc3\xa4pples"},
		};

		fake_send(fake, &error, NULL, 0);
	}
	serve_pings(fake);
}

static void test_error_replies(void **state)
{
	struct conn conn;
	struct fake *fake = start(&conn, errors);

	(void)state;
	assert_int_equal(ping(&conn, 1, 10000), RCCLX_ERR_LIMIT);
	assert_string_equal(rcclx_last_error(), "3 of 3 \xc3\xa4pples");
	assert_int_equal(ping(&conn, 1, 10000), RCCLX_ERR_INTERNAL);
	assert_int_equal(ping(&conn, 1, 10000), RCCLX_OK);
	stop(&conn, fake);
}

static void wrong_kind(struct fake *fake)
{
	struct rx_msg request;
	struct rx_msg answer;
	int fds[2] = {open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY)};

	if (!fake_expect(fake, RX_MSG_PING, &request))
		return;

	struct rx_msg ready = {
		.type = RX_MSG_COMM_READY,
		.serial = request.serial,
		.comm_ready = {.member = 5},
	};

	fake_send(fake, &ready, fds, 2);
	(void)close(fds[0]);
	(void)close(fds[1]);
	if (fake_expect(fake, RX_MSG_COMM_LEAVE, &answer))
		FAKE_CHECK(fake, answer.comm_leave.member == 5);
	serve_pings(fake);
}

static void test_reply_of_another_kind(void **state)
{
	struct conn conn;
	struct fake *fake = start(&conn, wrong_kind);

	(void)state;
	assert_int_equal(ping(&conn, 1, 10000), RCCLX_ERR_INTERNAL);
	assert_text("CommReady");
	assert_int_equal(ping(&conn, 2, 10000), RCCLX_OK);
	stop(&conn, fake);
}

static void a_client_message(struct fake *fake)
{
	struct rx_msg request;

	if (fake_expect(fake, RX_MSG_PING, &request))
		fake_send(fake, &request, NULL, 0);
	say_nothing(fake);
}

static void garbage(struct fake *fake)
{
	struct rx_msg request;

	if (fake_expect(fake, RX_MSG_PING, &request))
		FAKE_CHECK(fake, send(fake->fd, "no frame at all.", 16, MSG_NOSIGNAL) == 16);
	say_nothing(fake);
}

static void bad_payload(struct fake *fake)
{
	static const uint8_t payload[] = {0x0a, 0xff, 0xff};
	struct rx_msg request;

	if (fake_expect(fake, RX_MSG_PING, &request))
		FAKE_CHECK(fake, rx_frame_send(fake->fd, RX_MSG_UNIQUE_ID_REPLY, request.serial,
					 payload, sizeof(payload), NULL, 0) == RX_FRAME_OK);
	say_nothing(fake);
}

static void lost_at_once(fake_fn script)
{
	struct conn conn;
	struct fake *fake = start(&conn, script);

	assert_int_equal(ping(&conn, 1, 10000), RCCLX_ERR_DAEMON_LOST);
	assert_true(conn_lost(&conn));
	/* And from now on without asking. */
	uint64_t before = now_ms();
	assert_int_equal(ping(&conn, 2, 10000), RCCLX_ERR_DAEMON_LOST);
	assert_true(now_ms() - before < 5000);
	stop(&conn, fake);
}

static void test_not_understood(void **state)
{
	(void)state;
	lost_at_once(a_client_message);
	lost_at_once(garbage);
	lost_at_once(bad_payload);
}

/* ---- a daemon that goes away ---- */

static void hang_up_on_all(struct fake *fake)
{
	struct rx_msg request;

	for (uint32_t i = 0; i < N_THREADS; i++)
		fake_expect(fake, RX_MSG_PING, &request);
	fake_hang_up(fake);
}

static void test_hang_up(void **state)
{
	struct pinger pingers[N_THREADS];
	struct conn conn;
	struct fake *fake = start(&conn, hang_up_on_all);
	uint64_t before = now_ms();

	(void)state;
	assert_false(conn_lost(&conn));
	run_pingers(&conn, 1, 60000, pingers);
	assert_true(now_ms() - before < 30000);
	for (uint32_t i = 0; i < N_THREADS; i++) {
		assert_int_equal(pingers[i].result, RCCLX_ERR_DAEMON_LOST);
		assert_non_null(strstr(pingers[i].text, "hung up"));
	}
	assert_true(conn_lost(&conn));
	stop(&conn, fake);
}

static void answer_and_hang_up(struct fake *fake)
{
	struct rx_msg request;

	if (fake_expect(fake, RX_MSG_PING, &request))
		pong(fake, &request);
	fake_hang_up(fake);
}

static void test_last_words(void **state)
{
	struct conn conn;
	struct fake *fake = start(&conn, answer_and_hang_up);

	(void)state;
	/* The answer counts, although the hang-up is there with it. */
	assert_int_equal(ping(&conn, 1, 10000), RCCLX_OK);
	assert_int_equal(ping(&conn, 2, 10000), RCCLX_ERR_DAEMON_LOST);
	stop(&conn, fake);
}

static void explain_and_hang_up(struct fake *fake)
{
	struct rx_msg request;
	struct rx_msg error = {
		.type = RX_MSG_ERROR,
		.error = {.code = RCCLX_ERR_DENIED, .text = "you sent nonsense"},
	};

	if (fake_expect(fake, RX_MSG_PING, &request))
		fake_send(fake, &error, NULL, 0);
	fake_hang_up(fake);
}

static void test_reason_for_hanging_up(void **state)
{
	struct conn conn;
	struct fake *fake = start(&conn, explain_and_hang_up);

	(void)state;
	assert_int_equal(ping(&conn, 1, 10000), RCCLX_ERR_DAEMON_LOST);
	assert_text("you sent nonsense");
	stop(&conn, fake);
}

/* ---- a daemon that does not read ---- */

struct gate {
	_Atomic uint32_t open;
};

static void read_later(struct fake *fake)
{
	struct rx_msg msg;
	uint32_t n_hints = 0;
	struct gate *gate = fake->arg;

	for (int i = 0; i < 2000 && !atomic_load(&gate->open); i++)
		(void)usleep(10000);
	while (fake_recv(fake, &msg)) {
		n_hints += msg.type == RX_MSG_STALL_HINT;
		if (msg.type == RX_MSG_PING)
			pong(fake, &msg);
	}
	FAKE_CHECK(fake, n_hints > 0);
}

static void test_full_socket(void **state)
{
	struct rx_msg hint = {.type = RX_MSG_STALL_HINT, .stall_hint = {.member = 1}};
	struct gate gate = {0};
	struct fake *fake = fake_pair(read_later, &gate);
	struct conn conn;
	uint32_t n_sent = 0;
	uint64_t before = 0;

	(void)state;
	assert_int_equal(conn_open(&conn, fake->client_fd), 0);
	while (n_sent < 100000 && conn_post(&conn, &hint, 0))
		n_sent++;
	assert_true(n_sent > 0 && n_sent < 100000);
	before = now_ms();
	assert_false(conn_post(&conn, &hint, 50));
	assert_true(now_ms() - before >= 50);
	assert_int_equal(ping(&conn, 1, 50), RCCLX_ERR_TIMEOUT);
	assert_false(conn_lost(&conn));
	atomic_store(&gate.open, 1);
	assert_int_equal(ping(&conn, 2, 10000), RCCLX_OK);
	stop(&conn, fake);
}

/* ---- descriptors ---- */

static void two_descriptors(struct fake *fake)
{
	struct rx_msg request;
	int fds[2] = {open("/dev/null", O_RDONLY), open("/dev/zero", O_RDONLY)};

	for (uint32_t i = 0; i < 2; i++) {
		if (!fake_expect(fake, RX_MSG_COMM_JOIN, &request))
			break;

		struct rx_msg ready = {
			.type = RX_MSG_COMM_READY,
			.serial = request.serial,
			.comm_ready = {.member = 5},
		};

		fake_send(fake, &ready, fds, 2);
	}
	(void)close(fds[0]);
	(void)close(fds[1]);
	say_nothing(fake);
}

static void test_descriptors_are_owned(void **state)
{
	static const uint8_t id[RX_UNIQUE_ID_BYTES] = {1};
	struct rx_msg request = {
		.type = RX_MSG_COMM_JOIN,
		.comm_join = {.id = {id, sizeof(id)}, .n_ranks = 2, .rank = 1},
	};
	struct conn_wait wait = within(10000);
	struct conn_reply reply;
	struct conn conn;
	struct fake *fake = start(&conn, two_descriptors);
	char byte = 1;
	int fd = -1;

	(void)state;
	assert_int_equal(join(&conn, &wait), RCCLX_OK);
	assert_int_equal(
		conn_call(&conn, &request, -1, RX_MSG_COMM_READY, &wait, &reply), RCCLX_OK);
	fd = rx_fdset_take(&reply.fds, 1);
	conn_reply_deinit(&reply);
	/* The second is /dev/zero, and still open. */
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	(void)close(fd);
	stop(&conn, fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_out_of_order),
		FAKE_TEST(test_late_ready_is_left),
		FAKE_TEST(test_late_memory_is_freed),
		FAKE_TEST(test_stray_replies),
		FAKE_TEST(test_cancel),
		FAKE_TEST(test_error_replies),
		FAKE_TEST(test_reply_of_another_kind),
		FAKE_TEST(test_not_understood),
		FAKE_TEST(test_hang_up),
		FAKE_TEST(test_last_words),
		FAKE_TEST(test_reason_for_hanging_up),
		FAKE_TEST(test_full_socket),
		FAKE_TEST(test_descriptors_are_owned),
	};

	return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}
