/* SPDX-License-Identifier: MIT */
/*
 * Clients that break the protocol with messages: each such session ends with one line in the log,
 * and a communicator that works all the while notices nothing.
 */
#include "admin.h"
#include "bystander.h"
#include "raw.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a case does to the daemon on a fresh session. */
typedef bool (*evil_fn)(struct raw *raw);

struct evil_case {
	const char *name;
	evil_fn fn;
	bool hello;    /* after a proper Hello */
	bool violates; /* one line in the log, and the session has to end */
};

static struct raw_reply reply;

/* ---- packets that are none ---- */

static bool send_garbage(struct raw *raw)
{
	uint8_t junk[300];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)(i * 37 + 11);
	return raw_send(raw, junk, sizeof(junk), NULL, 0);
}

static bool send_short_header(struct raw *raw)
{
	struct rx_frame_header header = raw_header(raw, RX_MSG_PING, 0);

	return raw_send(raw, &header, 7, NULL, 0);
}

static bool send_bad_magic(struct raw *raw)
{
	struct rx_frame_header header = raw_header(raw, RX_MSG_PING, 0);

	header.magic ^= 1;
	return raw_send(raw, &header, sizeof(header), NULL, 0);
}

static bool send_truncated(struct raw *raw)
{
	struct rx_frame_header header = raw_header(raw, RX_MSG_PING, 100);
	uint8_t packet[sizeof(header) + 10] = {0};

	memcpy(packet, &header, sizeof(header));
	return raw_send(raw, packet, sizeof(packet), NULL, 0);
}

static bool send_longer_than_said(struct raw *raw)
{
	struct rx_frame_header header = raw_header(raw, RX_MSG_PING, 0);
	uint8_t packet[sizeof(header) + 4] = {0};

	memcpy(packet, &header, sizeof(header));
	return raw_send(raw, packet, sizeof(packet), NULL, 0);
}

static bool send_oversize(struct raw *raw)
{
	static uint8_t packet[RX_FRAME_MAX + 4096];
	struct rx_frame_header header =
		raw_header(raw, RX_MSG_PING, sizeof(packet) - sizeof(header));

	memcpy(packet, &header, sizeof(header));
	return raw_send(raw, packet, sizeof(packet), NULL, 0);
}

static bool send_reserved_set(struct raw *raw)
{
	struct rx_frame_header header = raw_header(raw, RX_MSG_PING, 0);

	header.reserved = 1;
	return raw_send(raw, &header, sizeof(header), NULL, 0);
}

static bool send_unknown_type(struct raw *raw)
{
	struct rx_frame_header header = raw_header(raw, RX_MSG_PING, 0);

	header.type = 999;
	return raw_send(raw, &header, sizeof(header), NULL, 0);
}

/* ---- messages at the wrong time or in the wrong direction ---- */

static bool send_before_hello(struct raw *raw)
{
	struct rx_msg msg = {.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = 4096}};

	return raw_post(raw, &msg);
}

static bool send_second_hello(struct raw *raw)
{
	struct rx_msg msg = {.type = RX_MSG_HELLO,
		.hello = {.version_min = 1, .version_max = 1, .abi = RX_ABI_MAGIC}};

	return raw_post(raw, &msg);
}

static bool send_reply_type(struct raw *raw)
{
	struct rx_msg msg = {.type = RX_MSG_PONG, .pong = {.token = 1}};

	return raw_post(raw, &msg);
}

static bool send_admin_message(struct raw *raw)
{
	struct rx_msg msg = {.type = RX_MSG_ADMIN_DRAIN};

	return raw_post(raw, &msg);
}

/* ---- payloads ---- */

static bool send_payload(
	struct raw *raw, enum rx_msg_type type, const uint8_t *payload, size_t bytes)
{
	static uint8_t packet[RX_FRAME_MAX];
	struct rx_frame_header header = raw_header(raw, type, bytes);

	memcpy(packet, &header, sizeof(header));
	memcpy(packet + sizeof(header), payload, bytes);
	return raw_send(raw, packet, sizeof(header) + bytes, NULL, 0);
}

static bool send_bad_payload(struct raw *raw)
{
	/* A field that says it is longer than the message. */
	static const uint8_t payload[] = {0x0a, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3};

	return send_payload(raw, RX_MSG_COMM_JOIN, payload, sizeof(payload));
}

static bool send_short_id(struct raw *raw)
{
	static const uint8_t id[10] = {1};
	struct rx_msg msg = {.type = RX_MSG_COMM_JOIN,
		.comm_join = {.id = {id, sizeof(id)}, .n_ranks = 1, .name = ""}};

	return raw_post(raw, &msg);
}

static bool send_bad_text(struct raw *raw)
{
	struct rx_msg msg = {.type = RX_MSG_HELLO,
		.hello = {.version_min = 1,
			.version_max = 1,
			.abi = RX_ABI_MAGIC,
			.program = "\x1b[31m\nerr forged line"}};

	return raw_post(raw, &msg);
}

/* 64 KiB of unknown fields: costs many times that in a decoder without bounds. */
static bool send_memory_bomb(struct raw *raw)
{
	static uint8_t payload[RX_FRAME_MAX - sizeof(struct rx_frame_header)];

	for (size_t i = 0; i + 2 <= sizeof(payload); i += 2) {
		payload[i] = 0x7a; /* field 15, length-delimited, empty */
		payload[i + 1] = 0;
	}
	return send_payload(raw, RX_MSG_PING, payload, sizeof(payload));
}

/* ---- file descriptors ---- */

static bool send_fds(struct raw *raw, uint16_t announced, uint32_t n_fds)
{
	int fds[16] = {0};
	struct rx_frame_header header = raw_header(raw, RX_MSG_PING, 0);

	header.n_fds = announced;
	for (uint32_t i = 0; i < n_fds; i++)
		fds[i] = STDERR_FILENO;
	return raw_send(raw, &header, sizeof(header), fds, n_fds);
}

static bool send_unannounced_fd(struct raw *raw)
{
	return send_fds(raw, 0, 1);
}

static bool send_missing_fd(struct raw *raw)
{
	return send_fds(raw, 1, 0);
}

static bool send_unwanted_fds(struct raw *raw)
{
	return send_fds(raw, 2, 2);
}

static bool send_many_fds(struct raw *raw)
{
	return send_fds(raw, 16, 16);
}

/* ---- behaviour over time ---- */

static bool never_read(struct raw *raw)
{
	struct rx_msg msg = {.type = RX_MSG_PING};
	uint64_t end = test_now_ms() + 10000 * test_slow();

	/* Until the daemon has had enough; sending then fails for good. */
	while (test_now_ms() < end) {
		if (raw_post(raw, &msg))
			continue;
		int error = 0;
		socklen_t bytes = sizeof(error);

		(void)getsockopt(raw->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
		struct rx_frame_header header = raw_header(raw, RX_MSG_PING, 0);
		if (send(raw->fd, &header, sizeof(header), MSG_NOSIGNAL) < 0)
			return true;
	}
	return false;
}

static bool just_leave(struct raw *raw)
{
	(void)raw;
	return true;
}

static bool leave_in_join(struct raw *raw)
{
	struct rx_msg ask = {.type = RX_MSG_UNIQUE_ID_GET};

	if (!raw_ask(raw, &ask, &reply) || reply.msg.type != RX_MSG_UNIQUE_ID_REPLY)
		return false;
	struct rx_msg join = {.type = RX_MSG_COMM_JOIN,
		.comm_join = {.id = reply.msg.unique_id_reply.id, .n_ranks = 3, .rank = 1}};
	return raw_post(raw, &join);
}

/* ---- requests for what is somebody else's: refused, no crime ---- */

static bool refused(struct raw *raw, struct rx_msg *msg)
{
	bool good = raw_ask(raw, msg, &reply) && reply.msg.type == RX_MSG_ERROR &&
		    reply.msg.error.code != 0 && reply.msg.error.text[0] != '\0';

	if (!good)
		(void)fprintf(stderr, "message %d: answer %d, code %d, \"%s\"\n", (int)msg->type,
			(int)reply.msg.type,
			reply.msg.type == RX_MSG_ERROR ? reply.msg.error.code : 0,
			reply.msg.type == RX_MSG_ERROR ? reply.msg.error.text : "");
	raw_drop(&reply);
	return good;
}

static bool ask_for_others(struct raw *raw)
{
	for (uint32_t h = 0; h < 70; h++) {
		struct rx_msg leave = {.type = RX_MSG_COMM_LEAVE, .comm_leave = {.member = h}};
		struct rx_msg mem = {.type = RX_MSG_MEM_FREE, .mem_free = {.handle = h}};
		struct rx_msg import = {
			.type = RX_MSG_MEM_IMPORT, .mem_import = {.member = h, .region_id = h}};

		if (!refused(raw, &leave) || !refused(raw, &mem) || !refused(raw, &import))
			return false;
	}
	struct rx_msg alloc = {.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = UINT64_MAX}};
	return refused(raw, &alloc) && raw_alive(raw);
}

/* Regions of others cannot be had with a membership of one's own either. */
static bool import_others(struct raw *raw)
{
	struct rx_msg ask = {.type = RX_MSG_UNIQUE_ID_GET};

	if (!raw_ask(raw, &ask, &reply) || reply.msg.type != RX_MSG_UNIQUE_ID_REPLY)
		return false;
	struct rx_msg join = {.type = RX_MSG_COMM_JOIN,
		.comm_join = {.id = reply.msg.unique_id_reply.id, .n_ranks = 1}};
	if (!raw_ask(raw, &join, &reply) || reply.msg.type != RX_MSG_COMM_READY)
		return false;
	uint32_t member = reply.msg.comm_ready.member;
	raw_drop(&reply);
	for (uint64_t generation = 0; generation < 4; generation++) {
		for (uint64_t index = 0; index < 40; index++) {
			struct rx_msg import = {.type = RX_MSG_MEM_IMPORT,
				.mem_import = {
					.member = member, .region_id = generation << 32 | index}};

			if (!refused(raw, &import))
				return false;
		}
	}
	return raw_alive(raw);
}

/* What the daemon gave cannot be turned against it. */
static bool misuse_memory(struct raw *raw)
{
	char path[64] = "";

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", raw->d_fd);
	int again = open(path, O_RDWR | O_CLOEXEC);
	int fds[2] = {raw->d_fd, again};
	for (int i = 0; i < 2; i++) {
		if (fds[i] < 0)
			continue;
		if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0) != MAP_FAILED)
			return false;
		if (pwrite(fds[i], "x", 1, 0) > 0 || ftruncate(fds[i], 0) == 0)
			return false;
		if (fallocate(fds[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0)
			return false;
	}
	if (again >= 0)
		(void)close(again);
	if (mprotect(raw->d.addr, 4096, PROT_READ | PROT_WRITE) == 0)
		return false;
	/* S is the client's to write, its size is not. */
	if (ftruncate(raw->s_fd, 0) == 0 || ftruncate(raw->s_fd, 1 << 20) == 0)
		return false;
	if (fcntl(raw->s_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0)
		return false;
	/* Its contents may vanish, which is like writing zeros. */
	(void)fallocate(raw->s_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536);
	return raw_alive(raw);
}

static const struct evil_case cases[] = {
	{"garbage", send_garbage, false, true},
	{"garbage later", send_garbage, true, true},
	{"short header", send_short_header, true, true},
	{"bad magic", send_bad_magic, true, true},
	{"truncated", send_truncated, true, true},
	{"half a Hello", send_truncated, false, true},
	{"longer than said", send_longer_than_said, true, true},
	{"oversize", send_oversize, true, true},
	{"reserved set", send_reserved_set, true, true},
	{"unknown type", send_unknown_type, true, true},
	{"before Hello", send_before_hello, false, true},
	{"second Hello", send_second_hello, true, true},
	{"reply type", send_reply_type, true, true},
	{"admin message", send_admin_message, true, true},
	{"bad payload", send_bad_payload, true, true},
	{"short id", send_short_id, true, true},
	{"bad text", send_bad_text, false, true},
	{"memory bomb", send_memory_bomb, true, true},
	{"unannounced fd", send_unannounced_fd, true, true},
	{"missing fd", send_missing_fd, true, true},
	{"unwanted fds", send_unwanted_fds, true, true},
	{"many fds", send_many_fds, true, true},
	{"never reads", never_read, true, true},
	{"leaves at once", just_leave, false, false},
	{"leaves", just_leave, true, false},
	{"leaves in join", leave_in_join, true, false},
	{"asks for others'", ask_for_others, true, false},
	{"imports others'", import_others, true, false},
	{"misuses memory", misuse_memory, true, false},
};

static int rank_evil(struct rank_ctx *ctx)
{
	const struct evil_case *c = ctx->arg;
	struct raw raw;

	if (c->hello)
		RANK_CHECK(ctx, raw_hello(&raw, ctx->socket), "%s: no Hello", c->name);
	else
		RANK_CHECK(ctx, raw_connect(&raw, ctx->socket), "%s: no connection", c->name);
	RANK_CHECK(ctx, c->fn(&raw), "%s: did not go as meant", c->name);
	if (c->violates)
		RANK_CHECK(ctx, raw_ended(&raw, 1000), "%s: the session goes on", c->name);
	raw_close(&raw);
	return 0;
}

static uint64_t violations(const struct node *node)
{
	struct admin_status status = {0};

	assert_int_equal(admin_status(node->admin, &status), 0);
	return status.violations;
}

#define VIOLATION "ended for breaking the protocol"

static void run_case(const struct node *node, const struct evil_case *c)
{
	struct evil_case copy = *c;
	uint64_t counted = violations(node);
	unsigned int lines = node_log_count(node, "warn", NULL);

	world_run(node, 1, rank_evil, &copy);
	counted = violations(node) - counted;
	lines = node_log_count(node, "warn", NULL) - lines;
	if (counted != c->violates || lines != c->violates)
		fail_msg("%s: %llu violations counted, %u lines in the log", c->name,
			(unsigned long long)counted, lines);
}

static void test_messages(void **state)
{
	struct node *node = node_start(NULL);
	struct world *bystanders = bystander_start(node);

	(void)state;
	node_expect(node, VIOLATION, 0, sizeof(cases) / sizeof(cases[0]));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_case(node, &cases[i]);
	bystander_stop(bystanders);
	node_stop(node);
}

/* ---- random packets, many of them ---- */

static int rank_random(struct rank_ctx *ctx)
{
	static uint8_t packet[4096];
	uint32_t n = test_long() ? 20000 : 1000;
	uint64_t x = 88172645463325252ull + ctx->rank;
	struct raw raw;

	for (uint32_t i = 0; i < n; i++) {
		RANK_CHECK(ctx, raw_hello(&raw, ctx->socket), "no Hello");
		for (size_t b = 0; b < sizeof(packet); b += 8) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			memcpy(packet + b, &x, 8);
		}
		size_t bytes = (x >> 20) % 200;
		enum rx_msg_type type = (enum rx_msg_type)(1 + x % 11);
		struct rx_frame_header header = raw_header(&raw, type, bytes);
		memcpy(packet, &header, sizeof(header));
		RANK_CHECK(
			ctx, raw_send(&raw, packet, sizeof(header) + bytes, NULL, 0), "not sent");
		raw_close(&raw);
	}
	return 0;
}

static void test_random(void **state)
{
	struct node *node = node_start(NULL);
	struct world *bystanders = bystander_start(node);

	(void)state;
	node_expect(node, VIOLATION, 1, 1000);
	world_run(node, 2, rank_random, NULL);
	bystander_stop(bystanders);
	node_stop(node);
}

/* ---- a connection that never says Hello ---- */

static int rank_silent(struct rank_ctx *ctx)
{
	struct raw raw;
	uint64_t start = test_now_ms();

	RANK_CHECK(ctx, raw_connect(&raw, ctx->socket), "no connection");
	RANK_CHECK(ctx, raw_ended(&raw, 14000), "still connected");
	RANK_CHECK(ctx, test_now_ms() - start > 1000, "ended at once");
	raw_close(&raw);
	return 0;
}

static void test_silent(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	node_expect(node, "Hello", 0, 8);
	node_expect(node, "hello", 0, 8);
	world_run(node, 4, rank_silent, NULL);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_messages),
		HARNESS_TEST(test_random),
		HARNESS_TEST(test_silent),
	};

	return HARNESS_RUN("hostile", tests);
}
