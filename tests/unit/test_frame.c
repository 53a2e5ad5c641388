/* SPDX-License-Identifier: MIT */
/*
 * Real socketpairs, honest and hostile senders. Every test ends with as many open descriptors as
 * it began with.
 */
#include "shm_util.h"

#include "../../proto/rx_frame.h"
#include "../../proto/rx_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* ---- system calls that fail ---- */

static int fail_errno; /* 0: the real call */
static int send_flags; /* of the last sendmsg */

ssize_t __real_recvmsg(int sock, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int sock, struct msghdr *msg, int flags);
ssize_t __real_sendmsg(int sock, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int sock, const struct msghdr *msg, int flags);

ssize_t __wrap_recvmsg(int sock, struct msghdr *msg, int flags)
{
	if (fail_errno == 0)
		return __real_recvmsg(sock, msg, flags);
	errno = fail_errno;
	return -1;
}

ssize_t __wrap_sendmsg(int sock, const struct msghdr *msg, int flags)
{
	send_flags = flags;
	if (fail_errno == 0)
		return __real_sendmsg(sock, msg, flags);
	errno = fail_errno;
	return -1;
}

/* ---- a pair of sockets ---- */

#define MANY_FDS 64u

struct pair {
	int a; /* the sender's */
	int b;
	int null;
	int fds[MANY_FDS]; /* all of them null */
	unsigned int n_before;
	struct rx_frame frame;
	const char *why;
};

static struct pair pair;

static int set_up(void **state)
{
	int sv[2];

	(void)state;
	memset(&pair, 0, sizeof(pair));
	fail_errno = 0;
	pair.n_before = count_fds();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		return -1;
	pair.a = sv[0];
	pair.b = sv[1];
	pair.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (uint32_t i = 0; i < MANY_FDS; i++)
		pair.fds[i] = pair.null;
	return pair.null < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)close(pair.a);
	(void)close(pair.b);
	(void)close(pair.null);
	return count_fds() == pair.n_before ? 0 : -1;
}

/* What only a hostile sender does: any bytes, any number of descriptors. */
static void send_raw(const void *bytes, size_t len, uint32_t n_fds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(MANY_FDS * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.align), pair.fds, n_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(pair.a, &msg, MSG_DONTWAIT | MSG_NOSIGNAL), len);
}

static struct rx_frame_header ping_header(void)
{
	return (struct rx_frame_header){
		.magic = RX_FRAME_MAGIC,
		.type = RX_MSG_PING,
		.serial = 1,
	};
}

static int receive(void)
{
	pair.why = NULL;
	return rx_frame_recv(pair.b, &pair.frame, &pair.why);
}

static void expect_violation(const char *part)
{
	unsigned int n = count_fds();

	assert_int_equal(receive(), RX_FRAME_E_VIOLATION);
	assert_non_null(pair.why);
	assert_non_null(strstr(pair.why, part));
	assert_int_equal(count_fds(), n);
	assert_int_equal(pair.frame.fds.n_fds, 0);
}

/* ---- honest ---- */

static void carries_payload_and_descriptors(void **state)
{
	const uint8_t payload[] = {8, 1, 16, 2};

	(void)state;
	assert_int_equal(rx_frame_send(pair.a, RX_MSG_HELLO_REPLY, 77, payload, sizeof(payload),
				 pair.fds, 3),
		RX_FRAME_OK);
	assert_int_equal(receive(), RX_FRAME_OK);
	assert_int_equal(pair.frame.header.type, RX_MSG_HELLO_REPLY);
	assert_int_equal(pair.frame.header.serial, 77);
	assert_int_equal(pair.frame.header.bytes, sizeof(payload));
	assert_memory_equal(pair.frame.payload, payload, sizeof(payload));
	assert_int_equal(pair.frame.fds.n_fds, 3);
	for (uint32_t i = 0; i < 3; i++) {
		int fd = pair.frame.fds.fds[i];

		assert_int_not_equal(fd, pair.null);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	}
	rx_fdset_close(&pair.frame.fds);
}

static void carries_no_payload(void **state)
{
	(void)state;
	assert_int_equal(
		rx_frame_send(pair.a, RX_MSG_UNIQUE_ID_GET, 1, NULL, 0, NULL, 0), RX_FRAME_OK);
	assert_int_equal(receive(), RX_FRAME_OK);
	assert_int_equal(pair.frame.header.bytes, 0);
	assert_int_equal(pair.frame.fds.n_fds, 0);
}

static void carries_the_largest_frame(void **state)
{
	static uint8_t payload[RX_FRAME_MAX];
	size_t most = RX_FRAME_MAX - sizeof(struct rx_frame_header);

	(void)state;
	for (size_t i = 0; i < most; i++)
		payload[i] = (uint8_t)(i * 7);
	assert_int_equal(rx_frame_send(pair.a, RX_MSG_ADMIN_COMMS_REPLY, 1, payload, most, NULL, 0),
		RX_FRAME_OK);
	assert_int_equal(receive(), RX_FRAME_OK);
	assert_int_equal(pair.frame.header.bytes, most);
	assert_memory_equal(pair.frame.payload, payload, most);
	assert_int_equal(
		rx_frame_send(pair.a, RX_MSG_ADMIN_COMMS_REPLY, 1, payload, most + 1, NULL, 0),
		-EMSGSIZE);
}

static void mem_reply_with_and_without_descriptor(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		assert_int_equal(rx_frame_send(pair.a, RX_MSG_MEM_REPLY, 5, NULL, 0, pair.fds, n),
			RX_FRAME_OK);
		assert_int_equal(receive(), RX_FRAME_OK);
		assert_int_equal(pair.frame.fds.n_fds, n);
		rx_fdset_close(&pair.frame.fds);
	}
	assert_int_equal(
		rx_frame_send(pair.a, RX_MSG_MEM_REPLY, 5, NULL, 0, pair.fds, 2), RX_FRAME_OK);
	expect_violation("wrong number of descriptors");
}

/* A listener with SO_PASSCRED hands it on: credentials are no descriptors. */
static void passes_over_other_control_messages(void **state)
{
	const int on = 1;

	(void)state;
	assert_int_equal(setsockopt(pair.b, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	assert_int_equal(
		rx_frame_send(pair.a, RX_MSG_COMM_READY, 1, NULL, 0, pair.fds, 2), RX_FRAME_OK);
	assert_int_equal(receive(), RX_FRAME_OK);
	assert_int_equal(pair.frame.fds.n_fds, 2);
	rx_fdset_close(&pair.frame.fds);
}

static void order_is_kept(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 5; i++)
		assert_int_equal(rx_frame_send(pair.a, RX_MSG_PING, i, NULL, 0, NULL, 0), 0);
	for (uint32_t i = 1; i <= 5; i++) {
		assert_int_equal(receive(), RX_FRAME_OK);
		assert_int_equal(pair.frame.header.serial, i);
	}
}

/* ---- nothing there, no room, nobody there ---- */

static void waits_for_nothing(void **state)
{
	static const uint8_t payload[4096];
	unsigned int n = 0;
	int r = RX_FRAME_OK;

	(void)state;
	/* Both sockets are blocking ones. */
	assert_int_equal(receive(), RX_FRAME_E_AGAIN);
	while ((r = rx_frame_send(pair.a, RX_MSG_PING, 1, payload, sizeof(payload), NULL, 0)) ==
		RX_FRAME_OK)
		n++;
	assert_int_equal(r, RX_FRAME_E_AGAIN);
	assert_in_range(n, 1, 100000);
	/* What was accepted arrives whole. */
	while ((r = receive()) == RX_FRAME_OK)
		n--;
	assert_int_equal(r, RX_FRAME_E_AGAIN);
	assert_int_equal(n, 0);
}

static void reads_before_it_sees_the_end(void **state)
{
	(void)state;
	assert_int_equal(rx_frame_send(pair.a, RX_MSG_PING, 1, NULL, 0, NULL, 0), RX_FRAME_OK);
	(void)close(pair.a);
	pair.a = -1;
	assert_int_equal(receive(), RX_FRAME_OK);
	assert_int_equal(receive(), RX_FRAME_E_CLOSED);
	assert_int_equal(
		rx_frame_send(pair.b, RX_MSG_PONG, 1, NULL, 0, NULL, 0), RX_FRAME_E_CLOSED);
	/* Not every kernel raises SIGPIPE for these sockets; those that do must not here. */
	assert_int_equal(send_flags & MSG_NOSIGNAL, MSG_NOSIGNAL);
}

static void unread_data_of_ours_looks_like_the_end(void **state)
{
	(void)state;
	assert_int_equal(rx_frame_send(pair.b, RX_MSG_PONG, 1, NULL, 0, NULL, 0), RX_FRAME_OK);
	(void)close(pair.a);
	pair.a = -1;
	assert_int_equal(receive(), RX_FRAME_E_CLOSED);
}

static void errors_of_the_system(void **state)
{
	static const struct {
		int error;
		int recv;
		int send;
	} cases[] = {
		{EAGAIN, RX_FRAME_E_AGAIN, RX_FRAME_E_AGAIN},
		{EINTR, RX_FRAME_E_AGAIN, RX_FRAME_E_AGAIN},
		{ENOBUFS, -ENOBUFS, RX_FRAME_E_AGAIN},
		{EPIPE, RX_FRAME_E_CLOSED, RX_FRAME_E_CLOSED},
		{ECONNRESET, RX_FRAME_E_CLOSED, RX_FRAME_E_CLOSED},
		{ENOTCONN, -ENOTCONN, RX_FRAME_E_CLOSED},
		{ETOOMANYREFS, -ETOOMANYREFS, -ETOOMANYREFS},
		{ENOMEM, -ENOMEM, -ENOMEM},
	};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(cases); i++) {
		fail_errno = cases[i].error;
		assert_int_equal(receive(), cases[i].recv);
		assert_int_equal(
			rx_frame_send(pair.a, RX_MSG_PING, 1, NULL, 0, NULL, 0), cases[i].send);
	}
}

static void sends_no_more_descriptors_than_a_frame_has(void **state)
{
	(void)state;
	assert_int_equal(rx_frame_send(pair.a, RX_MSG_HELLO_REPLY, 1, NULL, 0, pair.fds,
				 RX_FRAME_FDS_MAX + 1),
		-EMSGSIZE);
	assert_int_equal(receive(), RX_FRAME_E_AGAIN);
}

/* ---- hostile ---- */

static void refuses_a_wrong_header(void **state)
{
	struct rx_frame_header h = ping_header();

	(void)state;
	h.magic = 0x5258;
	send_raw(&h, sizeof(h), 0);
	expect_violation("magic");
	h = ping_header();
	h.reserved = 1;
	send_raw(&h, sizeof(h), 0);
	expect_violation("reserved");
	h = ping_header();
	h.serial = 0;
	send_raw(&h, sizeof(h), 0);
	expect_violation("serial");
	for (uint32_t type = 0; type <= UINT16_MAX; type += type < 300 ? 1 : 997) {
		h = ping_header();
		h.type = (uint16_t)type;
		if (rx_msg_info(type))
			continue;
		send_raw(&h, sizeof(h), 0);
		expect_violation("unknown message type");
	}
}

static void refuses_a_wrong_length(void **state)
{
	static const uint32_t lies[] = {1, 3, 5, 0x10000, UINT32_MAX, UINT32_MAX - 11};
	struct {
		struct rx_frame_header h;
		uint8_t payload[4];
	} packet = {.h = ping_header()};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(lies); i++) {
		packet.h.bytes = lies[i];
		send_raw(&packet, sizeof(packet), 0);
		expect_violation("length");
	}
}

static void refuses_a_short_packet(void **state)
{
	struct rx_frame_header h = ping_header();

	(void)state;
	/* A good header lies in the frame from before: it must not complete the short one. */
	send_raw(&h, sizeof(h), 0);
	assert_int_equal(receive(), RX_FRAME_OK);
	for (size_t len = 1; len < sizeof(h); len++) {
		send_raw(&h, len, 0);
		expect_violation("shorter");
	}
}

static void refuses_an_oversize_packet(void **state)
{
	static struct {
		struct rx_frame_header h;
		uint8_t payload[RX_FRAME_MAX];
	} packet;
	size_t most = RX_FRAME_MAX - sizeof(struct rx_frame_header);

	(void)state;
	packet.h = ping_header();
	/* The header agrees with what fits: only MSG_TRUNC tells. */
	packet.h.bytes = (uint32_t)most;
	send_raw(&packet, RX_FRAME_MAX + 1, 0);
	expect_violation("larger than a frame");
	packet.h.bytes = (uint32_t)most + 16;
	send_raw(&packet, RX_FRAME_MAX + 16, 1);
	expect_violation("larger than a frame");
	packet.h.bytes = (uint32_t)most;
	send_raw(&packet, RX_FRAME_MAX, 0);
	assert_int_equal(receive(), RX_FRAME_OK);
}

static void refuses_unannounced_descriptors(void **state)
{
	struct rx_frame_header h = ping_header();

	(void)state;
	for (uint32_t n = 1; n <= RX_FRAME_FDS_MAX; n++) {
		send_raw(&h, sizeof(h), n);
		expect_violation("number of descriptors");
	}
	/* Announced, but not for this type. */
	h.n_fds = 1;
	send_raw(&h, sizeof(h), 1);
	expect_violation("wrong number of descriptors");
	/* Announced, but not sent. */
	h.type = RX_MSG_MEM_REGISTER;
	send_raw(&h, sizeof(h), 0);
	expect_violation("number of descriptors");
	/* None announced where one belongs. */
	h.n_fds = 0;
	send_raw(&h, sizeof(h), 0);
	expect_violation("wrong number of descriptors");
}

static void refuses_too_many_descriptors(void **state)
{
	struct rx_frame_header h = ping_header();

	(void)state;
	for (uint32_t n = RX_FRAME_FDS_MAX + 1; n <= MANY_FDS; n++) {
		h.n_fds = (uint16_t)n;
		send_raw(&h, sizeof(h), n);
		expect_violation("descriptors");
	}
}

static void refuses_descriptors_without_a_header(void **state)
{
	(void)state;
	send_raw("", 1, 2);
	expect_violation("shorter");
}

/* The limit of open files cuts off some: what came is closed. */
static void receive_without_room(uint16_t n_said, int expected)
{
	struct rx_frame_header h = ping_header();
	struct rlimit old;
	struct rlimit low;
	int spare = dup(pair.null);
	const char *why = NULL;
	int r = 0;

	assert_true(spare >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	h.type = RX_MSG_HELLO_REPLY;
	h.n_fds = n_said;
	send_raw(&h, sizeof(h), 3);
	low = old;
	low.rlim_cur = (rlim_t)spare + 1;
	(void)close(spare);
	/* Now exactly one number is free, provided that those below are taken. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	r = rx_frame_recv(pair.b, &pair.frame, &why);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(r, expected);
	assert_non_null(strstr(why, "did not fit"));
	assert_int_equal(pair.frame.fds.n_fds, 0);
	assert_int_equal(fcntl(spare, F_GETFD), -1);
	if (r == RX_FRAME_E_NO_FDS)
		assert_int_equal(pair.frame.header.serial, ping_header().serial);
}

static void tells_descriptors_that_did_not_fit(void **state)
{
	(void)state;
	receive_without_room(3, RX_FRAME_E_NO_FDS);
	/* What says that there are fewer, or more than a message has, is no frame anyway. */
	receive_without_room(1, RX_FRAME_E_VIOLATION);
	receive_without_room(4, RX_FRAME_E_VIOLATION);
}

static void ends_at_an_empty_packet(void **state)
{
	(void)state;
	/* Not to be told from the end of the connection; with descriptors it is. */
	send_raw("", 0, 0);
	assert_int_equal(receive(), RX_FRAME_E_CLOSED);
	send_raw("", 0, 2);
	expect_violation("shorter");
}

static void every_flipped_header_bit_is_checked(void **state)
{
	const size_t n_bits = 8 * sizeof(struct rx_frame_header);
	size_t n_passed = 0;

	(void)state;
	for (size_t bit = 0; bit < n_bits; bit++) {
		struct rx_frame_header h = ping_header();
		uint8_t bytes[sizeof(h)];
		int r = 0;

		memcpy(bytes, &h, sizeof(h));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		send_raw(bytes, sizeof(bytes), 0);
		r = receive();
		memcpy(&h, bytes, sizeof(h));
		/* Only another serial or another type without descriptors is a frame, too. */
		if (r == RX_FRAME_OK) {
			n_passed++;
			assert_int_equal(h.magic, RX_FRAME_MAGIC);
			assert_int_equal(h.bytes, 0);
			assert_int_equal(h.n_fds, 0);
			assert_int_equal(h.reserved, 0);
			assert_non_null(rx_msg_info(h.type));
			assert_int_equal(rx_msg_info(h.type)->fds_min, 0);
		} else {
			assert_int_equal(r, RX_FRAME_E_VIOLATION);
		}
	}
	assert_in_range(n_passed, 31, 31 + 7);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(carries_payload_and_descriptors),
		TEST(carries_no_payload),
		TEST(carries_the_largest_frame),
		TEST(mem_reply_with_and_without_descriptor),
		TEST(passes_over_other_control_messages),
		TEST(order_is_kept),
		TEST(waits_for_nothing),
		TEST(reads_before_it_sees_the_end),
		TEST(unread_data_of_ours_looks_like_the_end),
		TEST(errors_of_the_system),
		TEST(sends_no_more_descriptors_than_a_frame_has),
		TEST(refuses_a_wrong_header),
		TEST(refuses_a_wrong_length),
		TEST(refuses_a_short_packet),
		TEST(refuses_an_oversize_packet),
		TEST(refuses_unannounced_descriptors),
		TEST(refuses_too_many_descriptors),
		TEST(refuses_descriptors_without_a_header),
		TEST(tells_descriptors_that_did_not_fit),
		TEST(ends_at_an_empty_packet),
		TEST(every_flipped_header_bit_is_checked),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
