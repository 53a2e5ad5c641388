/* SPDX-License-Identifier: MIT */
#include "daemon_fixture.h"

#include "../../daemon/loop.h"
#include "../../daemon/options.h"
#include "../../daemon/sockets.h"
#include "../../kernels/coll_types.h"
#include "../../shm/rx_clock.h"
#include "../../shm/rx_wake.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_NS (10 * RX_NS_PER_SEC)

void sleep_ms(uint32_t ms)
{
	(void)usleep(ms * 1000);
}

/* ---- daemon ---- */

static void on_stop(uv_async_t *async)
{
	struct fixture *fixture = async->data;

	daemon_stop(&fixture->daemon);
}

static void on_stopped(void *owner)
{
	struct fixture *fixture = owner;

	uv_close((uv_handle_t *)&fixture->stop, NULL);
}

static void *serve(void *arg)
{
	struct fixture *fixture = arg;

	(void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
	return NULL;
}

void fixture_init(struct fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	(void)snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/rcclx-test-XXXXXX");
	assert_non_null(mkdtemp(fixture->dir));
	(void)snprintf(fixture->socket, sizeof(fixture->socket), "%s/control", fixture->dir);
	(void)snprintf(fixture->admin, sizeof(fixture->admin), "%s/admin.sock", fixture->dir);
	(void)snprintf(fixture->log, sizeof(fixture->log), "%s/log", fixture->dir);
	fixture->config = config_default();
}

void fixture_start(struct fixture *fixture)
{
	struct policy policy = {.private_mode = true, .own_uid = geteuid()};
	struct options options = {.socket = fixture->socket, .private_mode = true};
	int log = open(fixture->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(log >= 0);
	rx_log_open("test", log, RX_LOG_DEBUG);
	assert_int_equal(uv_loop_init(&fixture->loop), 0);
	assert_int_equal(
		daemon_init(&fixture->daemon, &fixture->loop, &fixture->config, &policy, 1000), 0);
	fixture->daemon.stopped = on_stopped;
	fixture->daemon.owner = fixture;
	assert_int_equal(uv_async_init(&fixture->loop, &fixture->stop, on_stop), 0);
	fixture->stop.data = fixture;
	assert_int_equal(sockets_open(&fixture->daemon, &options), 0);
	assert_int_equal(pthread_create(&fixture->thread, NULL, serve, fixture), 0);
}

void fixture_stop(struct fixture *fixture)
{
	(void)uv_async_send(&fixture->stop);
	assert_int_equal(pthread_join(fixture->thread, NULL), 0);
	daemon_deinit(&fixture->daemon);
	assert_int_equal(uv_loop_close(&fixture->loop), 0);
	/* Its sockets are gone. */
	assert_int_equal(access(fixture->socket, F_OK), -1);
	assert_int_equal(access(fixture->admin, F_OK), -1);
	rx_log_open("test", STDERR_FILENO, RX_LOG_INFO);
	(void)unlink(fixture->log);
	assert_int_equal(rmdir(fixture->dir), 0);
}

int fixture_log_count(const struct fixture *fixture, const char *text)
{
	FILE *file = fopen(fixture->log, "r");
	char line[2048];
	int n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, text) != NULL;
	(void)fclose(file);
	return n;
}

/* ---- client ---- */

struct client *client_connect(const char *path)
{
	struct client *client = calloc(1, sizeof(*client));
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	assert_non_null(client);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	client->doorbell = -1;
	client->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(client->sock >= 0);
	assert_int_equal(connect(client->sock, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return client;
}

static void take_rings(struct client *client)
{
	uint32_t entries = client->msg.hello_reply.sq_entries;
	int s = rx_fdset_take(&client->fds, 0);
	int d = rx_fdset_take(&client->fds, 1);

	client->doorbell = rx_fdset_take(&client->fds, 2);
	assert_int_equal(rx_map_open(&client->s_map, s, rx_ring_s_bytes(entries), RX_MAP_RW), 0);
	assert_int_equal(rx_map_open(&client->d_map, d, rx_ring_d_bytes(entries), RX_MAP_RO), 0);
	assert_int_equal(rx_ring_init(&client->ring, &client->s_map, &client->d_map, entries), 0);
	(void)close(s);
	(void)close(d);
}

struct client *client_open(const char *path)
{
	struct client *client = client_connect(path);
	struct rx_msg hello = {
		.type = RX_MSG_HELLO,
		.hello =
			{
				.version_min = RX_PROTO_VERSION_MIN,
				.version_max = RX_PROTO_VERSION_MAX,
				.abi = RX_ABI_MAGIC,
				.program = "test",
				.pid = (uint64_t)getpid(),
			},
	};

	client_ask(client, &hello, RX_MSG_HELLO_REPLY);
	client->session_id = client->msg.hello_reply.session_id;
	memcpy(client->instance, client->msg.hello_reply.instance.data, RX_INSTANCE_BYTES);
	take_rings(client);
	return client;
}

void client_close(struct client *client)
{
	rx_fdset_close(&client->fds);
	rx_map_close(&client->s_map);
	rx_map_close(&client->d_map);
	if (client->doorbell >= 0)
		(void)close(client->doorbell);
	(void)close(client->sock);
	free(client);
}

uint32_t client_send(
	struct client *client, const struct rx_msg *msg, const int *fds, uint32_t n_fds)
{
	static _Thread_local uint8_t payload[RX_FRAME_MAX];
	size_t bytes = 0;

	assert_int_equal(rx_msg_pack(msg, payload, sizeof(payload), &bytes), 0);
	client->serial++;
	assert_int_equal(
		rx_frame_send(client->sock, msg->type, client->serial, payload, bytes, fds, n_fds),
		RX_FRAME_OK);
	return client->serial;
}

bool client_receive(struct client *client)
{
	struct pollfd pfd = {.fd = client->sock, .events = POLLIN};
	const char *why = NULL;
	int r = 0;

	rx_fdset_close(&client->fds);
	assert_int_equal(poll(&pfd, 1, PATIENCE_NS / RX_NS_PER_MS), 1);
	r = rx_frame_recv(client->sock, &client->frame, &why);
	if (r == RX_FRAME_E_CLOSED || r == -ECONNRESET)
		return false;
	assert_int_equal(r, RX_FRAME_OK);
	client->fds = client->frame.fds;
	assert_int_equal(rx_msg_unpack(client->frame.header.type, client->frame.header.serial,
				 client->frame.payload, client->frame.header.bytes, &client->arena,
				 &client->msg, &why),
		0);
	return true;
}

void client_ask(struct client *client, const struct rx_msg *msg, enum rx_msg_type type)
{
	uint32_t serial = client_send(client, msg, NULL, 0);

	assert_true(client_receive(client));
	if (client->msg.type == RX_MSG_ERROR && type != RX_MSG_ERROR)
		print_error("%s\n", client->msg.error.text);
	assert_int_equal(client->msg.type, type);
	assert_int_equal(client->msg.serial, serial);
}

void client_expect_error(struct client *client, enum rx_result code, const char *text)
{
	assert_true(client_receive(client));
	assert_int_equal(client->msg.type, RX_MSG_ERROR);
	if (!strstr(client->msg.error.text, text))
		print_error("%s\n", client->msg.error.text);
	assert_non_null(strstr(client->msg.error.text, text));
	assert_int_equal(client->msg.error.code, code);
}

void client_ask_error(
	struct client *client, const struct rx_msg *msg, enum rx_result code, const char *text)
{
	(void)client_send(client, msg, NULL, 0);
	client_expect_error(client, code, text);
}

void client_expect_end(struct client *client)
{
	assert_false(client_receive(client));
}

void client_id(struct client *client, uint8_t id[RX_UNIQUE_ID_BYTES])
{
	client_ask(client, &(struct rx_msg){.type = RX_MSG_UNIQUE_ID_GET}, RX_MSG_UNIQUE_ID_REPLY);
	assert_int_equal(client->msg.unique_id_reply.id.len, RX_UNIQUE_ID_BYTES);
	memcpy(id, client->msg.unique_id_reply.id.data, RX_UNIQUE_ID_BYTES);
}

/* ---- ranks ---- */

struct rx_msg join_msg(const uint8_t *id, uint32_t n_ranks, uint32_t rank)
{
	return (struct rx_msg){
		.type = RX_MSG_COMM_JOIN,
		.comm_join =
			{
				.id = {id, RX_UNIQUE_ID_BYTES},
				.n_ranks = n_ranks,
				.rank = rank,
				.name = "test",
			},
	};
}

void rank_ready(struct rank *rank, struct client *client, uint32_t index, uint32_t n_ranks)
{
	int ctl = -1;
	int arena = -1;

	assert_true(client_receive(client));
	if (client->msg.type == RX_MSG_ERROR)
		print_error("%s\n", client->msg.error.text);
	assert_int_equal(client->msg.type, RX_MSG_COMM_READY);
	*rank = (struct rank){
		.client = client,
		.rank = index,
		.member = client->msg.comm_ready.member,
		.comm_id = client->msg.comm_ready.comm_id,
	};
	ctl = rx_fdset_take(&client->fds, 0);
	arena = rx_fdset_take(&client->fds, 1);
	assert_int_equal(rx_map_open(&rank->ctl, ctl, sizeof(struct rx_fabric_ctl), RX_MAP_RO), 0);
	assert_int_equal(
		rx_map_open(&rank->arena, arena, client->msg.comm_ready.arena_bytes, RX_MAP_RW), 0);
	assert_int_equal(rx_fabric_init(&rank->fabric, &rank->ctl, &rank->arena, n_ranks), 0);
	(void)close(ctl);
	(void)close(arena);
}

void rank_unmap(struct rank *rank)
{
	rx_map_close(&rank->ctl);
	rx_map_close(&rank->arena);
}

void ranks_form(struct rank *ranks, struct client **clients, uint32_t n_ranks)
{
	uint8_t id[RX_UNIQUE_ID_BYTES];

	client_id(clients[0], id);
	for (uint32_t i = 0; i < n_ranks; i++) {
		struct rx_msg msg = join_msg(id, n_ranks, i);

		(void)client_send(clients[i], &msg, NULL, 0);
		/* One after the other, so that a client that holds two ranks gets them in order. */
		sleep_ms(1);
	}
	for (uint32_t i = 0; i < n_ranks; i++)
		rank_ready(&ranks[i], clients[i], i, n_ranks);
}

uint32_t rank_status(const struct rank *rank, uint32_t other)
{
	return atomic_load(&rank->fabric.ctl->status[other]);
}

uint32_t rank_abort_word(const struct rank *rank)
{
	return atomic_load(&rank->fabric.ctl->abort);
}

/* ---- memory and entries ---- */

void memory_alloc(struct client *client, uint64_t bytes, struct memory *memory)
{
	struct rx_msg msg = {.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = bytes}};
	int fd = -1;

	client_ask(client, &msg, RX_MSG_MEM_REPLY);
	*memory = (struct memory){
		.handle = client->msg.mem_reply.handle,
		.region_id = client->msg.mem_reply.region_id,
	};
	fd = rx_fdset_take(&client->fds, 0);
	assert_int_equal(rx_map_open(&memory->map, fd, client->msg.mem_reply.bytes, RX_MAP_RW), 0);
	(void)close(fd);
}

void client_submit(struct client *client, const struct rx_sqe *sqe)
{
	uint64_t deadline_ns = rx_deadline_ns(PATIENCE_NS);
	bool wake = false;

	while (rx_ring_submit(&client->ring, sqe, &wake) != 0) {
		assert_true(rx_now_ns() < deadline_ns);
		sleep_ms(1);
	}
	if (wake)
		assert_int_equal(rx_doorbell_ring(client->doorbell), 0);
}

struct rx_cqe client_reap(struct client *client)
{
	uint64_t deadline_ns = rx_deadline_ns(PATIENCE_NS);
	struct rx_cqe cqe;

	for (;;) {
		uint32_t event = rx_ring_event(&client->ring);

		if (rx_ring_reap(&client->ring, &cqe))
			return cqe;
		assert_true(rx_now_ns() < deadline_ns);
		rx_ring_sleep(&client->ring, event, RX_SLEEP_NS);
	}
}

void client_no_completion(struct client *client, uint32_t ms)
{
	uint64_t deadline_ns = rx_deadline_ns(PATIENCE_NS);
	struct rx_cqe cqe;

	/* What the daemon has not taken yet says nothing. */
	while (atomic_load(&client->ring.d->sq_head) != client->ring.sq_pos) {
		assert_true(rx_now_ns() < deadline_ns);
		sleep_ms(1);
	}
	sleep_ms(ms);
	assert_false(rx_ring_reap(&client->ring, &cqe));
}

struct rx_sqe all_reduce_entry(const struct rank *rank, uint64_t user_data,
	const struct memory *send, const struct memory *recv, uint64_t count)
{
	return (struct rx_sqe){
		.user_data = user_data,
		.member = rank->member,
		.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.op = RX_SUM,
		.count = count,
		.send_region = send->handle,
		.recv_region = recv->handle,
	};
}

struct rx_sqe barrier_entry(const struct rank *rank, uint64_t user_data)
{
	return (struct rx_sqe){
		.user_data = user_data,
		.member = rank->member,
		.coll = RX_BARRIER,
	};
}
