/* SPDX-License-Identifier: MIT */
/* Sessions and communicators, through the sockets of a daemon in a thread. */
#include "daemon_fixture.h"

#include "../../kernels/coll_plan.h"
#include "../../shm/rx_clock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture_init(fixture);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void test_hello(void **state)
{
	struct fixture *fixture = *state;
	struct client *client = NULL;
	struct client *other = NULL;
	uint8_t id[RX_UNIQUE_ID_BYTES];
	uint8_t id2[RX_UNIQUE_ID_BYTES];
	struct rx_msg ping = {.type = RX_MSG_PING, .ping = {.token = 77}};

	fixture_start(fixture);
	client = client_open(fixture->socket);
	other = client_open(fixture->socket);
	assert_int_not_equal(client->session_id, other->session_id);
	assert_memory_equal(client->instance, other->instance, RX_INSTANCE_BYTES);
	client_ask(client, &ping, RX_MSG_PONG);
	assert_int_equal(client->msg.pong.token, 77);
	client_id(client, id);
	client_id(client, id2);
	assert_memory_not_equal(id, id2, RX_UNIQUE_ID_BYTES);
	client_close(client);
	client_close(other);
	fixture_stop(fixture);
}

static void test_hello_refused(void **state)
{
	struct fixture *fixture = *state;
	struct client *client = NULL;
	struct rx_msg hello = {
		.type = RX_MSG_HELLO,
		.hello = {.version_min = 7, .version_max = 9, .abi = RX_ABI_MAGIC, .program = ""},
	};

	fixture->config.limits.sessions_per_uid = 1;
	fixture_start(fixture);
	client = client_connect(fixture->socket);
	client_ask_error(client, &hello, RX_ERR_VERSION, "7 to 9");
	hello.hello.version_min = 1;
	hello.hello.abi = 5;
	client_ask_error(client, &hello, RX_ERR_VERSION, "word size");
	hello.hello.abi = RX_ABI_MAGIC;
	client_ask(client, &hello, RX_MSG_HELLO_REPLY);
	{
		struct client *second = client_connect(fixture->socket);

		client_ask_error(second, &hello, RX_ERR_LIMIT, "sessions");
		client_close(second);
	}
	client_close(client);
	fixture_stop(fixture);
}

static void test_form_and_leave(void **state)
{
	struct fixture *fixture = *state;
	struct client *clients[3];
	struct rank ranks[3];

	fixture_start(fixture);
	clients[0] = client_open(fixture->socket);
	clients[1] = client_open(fixture->socket);
	clients[2] = clients[1];
	ranks_form(ranks, clients, 3);
	assert_int_equal(ranks[0].comm_id, ranks[2].comm_id);
	assert_int_not_equal(ranks[1].member, ranks[2].member);
	assert_int_equal(ranks[0].fabric.ctl->n_ranks, 3);
	assert_int_equal(ranks[0].fabric.ctl->pid[1], getpid());
	assert_int_equal(ranks[0].fabric.ctl->session[1], ranks[0].fabric.ctl->session[2]);
	assert_true(ranks[0].fabric.ctl->op_timeout_ns == UINT64_MAX);
	/* The control page is the daemon's alone. */
	assert_int_equal(mprotect(ranks[0].ctl.addr, 4096, PROT_READ | PROT_WRITE), -1);

	client_ask(clients[1],
		&(struct rx_msg){
			.type = RX_MSG_COMM_LEAVE, .comm_leave = {.member = ranks[1].member}},
		RX_MSG_OK);
	assert_int_equal(rank_status(&ranks[0], 1), RX_MEMBER_LEFT);
	assert_int_equal(rank_status(&ranks[0], 2), RX_MEMBER_ALIVE);
	client_ask_error(clients[1],
		&(struct rx_msg){
			.type = RX_MSG_COMM_LEAVE, .comm_leave = {.member = ranks[1].member}},
		RX_ERR_INVALID, "membership");
	/* Leaving is no death: no abort follows. */
	sleep_ms(400);
	assert_int_equal(rank_abort_word(&ranks[0]), RX_ABORT_NONE);
	for (uint32_t i = 0; i < 3; i++)
		rank_unmap(&ranks[i]);
	client_close(clients[0]);
	client_close(clients[1]);
	fixture_stop(fixture);
}

static void test_join_refused(void **state)
{
	struct fixture *fixture = *state;
	struct client *a = NULL;
	struct client *b = NULL;
	struct rank rank;
	uint8_t id[RX_UNIQUE_ID_BYTES];
	struct rx_msg msg;
	char text[64];

	fixture_start(fixture);
	a = client_open(fixture->socket);
	b = client_open(fixture->socket);
	client_id(a, id);
	msg = join_msg(id, 2, 1);
	(void)client_send(a, &msg, NULL, 0);
	sleep_ms(50);
	(void)snprintf(text, sizeof(text), "taken by pid %d", getpid());
	client_ask_error(b, &msg, RX_ERR_INVALID, text);
	assert_int_equal(b->msg.error.ranks, 2);
	msg = join_msg(id, 3, 0);
	client_ask_error(b, &msg, RX_ERR_INVALID, "of 3 ranks, but rank 1");
	/* The right one still forms it. */
	msg = join_msg(id, 2, 0);
	(void)client_send(b, &msg, NULL, 0);
	rank_ready(&rank, b, 0, 2);
	rank_unmap(&rank);
	rank_ready(&rank, a, 1, 2);
	rank_unmap(&rank);
	client_ask_error(b, &msg, RX_ERR_INVALID, "formed already");
	client_close(a);
	sleep_ms(50);
	/* Also when it is gone. */
	client_ask(b, &(struct rx_msg){.type = RX_MSG_UNIQUE_ID_GET}, RX_MSG_UNIQUE_ID_REPLY);
	client_close(b);
	b = client_open(fixture->socket);
	client_ask_error(b, &msg, RX_ERR_INVALID, "formed already");
	id[20] ^= 1;
	client_ask_error(b, &msg, RX_ERR_INVALID, "another rcclxd");
	id[0] ^= 1;
	client_ask_error(b, &msg, RX_ERR_INVALID, "not an id");
	client_close(b);
	fixture_stop(fixture);
}

static void test_form_timeout(void **state)
{
	struct fixture *fixture = *state;
	struct client *a = NULL;
	struct client *b = NULL;
	uint8_t id[RX_UNIQUE_ID_BYTES];
	struct rx_msg msg;
	uint64_t start_ns = 0;

	fixture_start(fixture);
	a = client_open(fixture->socket);
	b = client_open(fixture->socket);
	client_id(a, id);
	msg = join_msg(id, 8, 3);
	(void)client_send(a, &msg, NULL, 0);
	msg = join_msg(id, 8, 0);
	msg.comm_join.form_timeout_ns = 300 * RX_NS_PER_MS;
	start_ns = rx_now_ns();
	(void)client_send(b, &msg, NULL, 0);
	client_expect_error(
		b, RX_ERR_TIMEOUT, "ranks 1, 2, 4, 5, 6, 7 of 8 did not come within 0.3 s");
	assert_true(rx_now_ns() - start_ns >= 300 * RX_NS_PER_MS);
	assert_int_equal(b->msg.error.ranks, 0xf6);
	client_expect_error(a, RX_ERR_TIMEOUT, "did not come");
	client_close(a);
	client_close(b);
	fixture_stop(fixture);
}

static void test_death_while_forming(void **state)
{
	struct fixture *fixture = *state;
	struct client *a = NULL;
	struct client *b = NULL;
	uint8_t id[RX_UNIQUE_ID_BYTES];
	struct rx_msg msg;

	fixture_start(fixture);
	a = client_open(fixture->socket);
	b = client_open(fixture->socket);
	client_id(a, id);
	msg = join_msg(id, 3, 0);
	(void)client_send(a, &msg, NULL, 0);
	msg = join_msg(id, 3, 2);
	(void)client_send(b, &msg, NULL, 0);
	sleep_ms(50);
	client_close(b);
	client_expect_error(a, RX_ERR_PEER_LOST, "rank 2 (pid");
	assert_int_equal(a->msg.error.ranks, 4);
	client_close(a);
	fixture_stop(fixture);
}

static void test_death(void **state)
{
	struct fixture *fixture = *state;
	struct client *clients[2];
	struct rank ranks[2];
	uint64_t start_ns = 0;

	fixture_start(fixture);
	clients[0] = client_open(fixture->socket);
	clients[1] = client_open(fixture->socket);
	ranks_form(ranks, clients, 2);
	start_ns = rx_now_ns();
	client_close(clients[1]);
	while (rank_status(&ranks[0], 1) != RX_MEMBER_DEAD) {
		assert_true(rx_now_ns() - start_ns < RX_NS_PER_SEC);
		sleep_ms(1);
	}
	assert_int_equal(rank_abort_word(&ranks[0]), RX_ABORT_NONE);
	while (rank_abort_word(&ranks[0]) == RX_ABORT_NONE) {
		assert_true(rx_now_ns() - start_ns < RX_NS_PER_SEC);
		sleep_ms(1);
	}
	assert_true(rx_now_ns() - start_ns >= 240 * RX_NS_PER_MS);
	assert_int_equal(rank_abort_word(&ranks[0]), RX_ABORT_PEER_LOST);
	assert_int_equal(ranks[0].fabric.ctl->abort_rank, 1);
	rank_unmap(&ranks[0]);
	rank_unmap(&ranks[1]);
	client_close(clients[0]);
	fixture_stop(fixture);
}

static void test_abort(void **state)
{
	struct fixture *fixture = *state;
	struct client *clients[2];
	struct rank ranks[2];

	fixture_start(fixture);
	clients[0] = client_open(fixture->socket);
	clients[1] = client_open(fixture->socket);
	ranks_form(ranks, clients, 2);
	client_ask(clients[1],
		&(struct rx_msg){.type = RX_MSG_COMM_ABORT,
			.comm_abort = {.member = ranks[1].member, .reason = RX_ABORT_USER}},
		RX_MSG_OK);
	assert_int_equal(rank_abort_word(&ranks[0]), RX_ABORT_USER);
	assert_int_equal(ranks[0].fabric.ctl->abort_rank, 1);
	for (uint32_t i = 0; i < 2; i++) {
		rank_unmap(&ranks[i]);
		client_close(clients[i]);
	}
	fixture_stop(fixture);
}

/* Stopping tells the members through the control page and the rings. */
static void test_shutdown_tells(void **state)
{
	struct fixture *fixture = *state;
	struct client *clients[2];
	struct rank ranks[2];

	fixture_start(fixture);
	clients[0] = client_open(fixture->socket);
	clients[1] = client_open(fixture->socket);
	ranks_form(ranks, clients, 2);
	fixture_stop(fixture);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(rank_abort_word(&ranks[i]), RX_ABORT_SHUTDOWN);
		assert_true(rx_ring_closed(&clients[i]->ring));
		client_expect_end(clients[i]);
		rank_unmap(&ranks[i]);
		client_close(clients[i]);
	}
}

static void test_limits(void **state)
{
	struct fixture *fixture = *state;
	struct client *client = NULL;
	uint8_t id[RX_UNIQUE_ID_BYTES];
	struct rx_msg msg;

	struct rx_msg hello = {
		.type = RX_MSG_HELLO,
		.hello = {.version_min = 1,
			.version_max = 1,
			.abi = RX_ABI_MAGIC,
			.program = "",
			.sq_entries = 64},
	};

	fixture->config.limits.comms_per_uid = 2;
	fixture->config.limits.bytes_per_uid = 2 << 20;
	fixture->config.limits.ops_in_flight_per_session = 10;
	fixture_start(fixture);
	client = client_connect(fixture->socket);
	client_ask(client, &hello, RX_MSG_HELLO_REPLY);
	assert_int_equal(client->msg.hello_reply.sq_entries, 4);
	client_close(client);
	client = client_open(fixture->socket);
	client_id(client, id);
	for (uint32_t rank = 0; rank < 2; rank++) {
		msg = join_msg(id, 64, rank);
		(void)client_send(client, &msg, NULL, 0);
	}
	msg = join_msg(id, 64, 2);
	client_ask_error(client, &msg, RX_ERR_LIMIT, "2 of at most 2 comms");
	msg = (struct rx_msg){.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = 2 << 20}};
	client_ask_error(client, &msg, RX_ERR_LIMIT, "bytes_per_uid");
	client_close(client);
	fixture_stop(fixture);
}

static int seal_memfd(uint64_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void ask_register(struct client *client, int fd, uint64_t offset, uint64_t bytes)
{
	struct rx_msg msg = {
		.type = RX_MSG_MEM_REGISTER,
		.mem_register = {.bytes = bytes, .offset = offset},
	};

	(void)client_send(client, &msg, &fd, 1);
	assert_true(client_receive(client));
}

static void test_memory(void **state)
{
	struct fixture *fixture = *state;
	struct client *clients[2];
	struct client *stranger = NULL;
	struct rank ranks[2];
	struct memory memory;
	struct rx_msg msg;
	uint64_t generation = 0;
	int fd = seal_memfd(16384, F_SEAL_SHRINK);
	int bare = seal_memfd(16384, 0);

	fixture_start(fixture);
	clients[0] = client_open(fixture->socket);
	clients[1] = client_open(fixture->socket);
	stranger = client_open(fixture->socket);
	ranks_form(ranks, clients, 2);

	ask_register(clients[0], bare, 0, 4096);
	assert_int_equal(clients[0]->msg.type, RX_MSG_ERROR);
	assert_non_null(strstr(clients[0]->msg.error.text, "F_SEAL_SHRINK"));
	ask_register(clients[0], fd, 4096, 16384);
	assert_int_equal(clients[0]->msg.type, RX_MSG_ERROR);
	assert_non_null(strstr(clients[0]->msg.error.text, "whole pages inside"));
	ask_register(clients[0], fd, 4096, 8192);
	assert_int_equal(clients[0]->msg.type, RX_MSG_MEM_REPLY);
	memory.region_id = clients[0]->msg.mem_reply.region_id;
	memory.handle = clients[0]->msg.mem_reply.handle;

	/* Peers may import it, strangers may not. */
	msg = (struct rx_msg){.type = RX_MSG_MEM_IMPORT,
		.mem_import = {.member = ranks[1].member, .region_id = memory.region_id}};
	client_ask(clients[1], &msg, RX_MSG_MEM_IMPORT_REPLY);
	assert_int_equal(clients[1]->msg.mem_import_reply.offset, 4096);
	assert_int_equal(clients[1]->msg.mem_import_reply.bytes, 8192);
	assert_int_equal(clients[1]->fds.n_fds, 1);
	client_ask_error(stranger, &msg, RX_ERR_INVALID, "no member");
	memory_alloc(stranger, 100, &(struct memory){0});
	msg.mem_import.region_id = stranger->msg.mem_reply.region_id;
	client_ask_error(clients[1], &msg, RX_ERR_INVALID, "no member");

	/* Only the owner frees; the others hear of it. */
	generation = atomic_load(&ranks[1].fabric.ctl->mem_generation);
	msg = (struct rx_msg){.type = RX_MSG_MEM_FREE, .mem_free = {.handle = memory.handle}};
	client_ask_error(clients[1], &msg, RX_ERR_INVALID, "no memory of this session");
	client_ask(clients[0], &msg, RX_MSG_OK);
	assert_int_equal(atomic_load(&ranks[1].fabric.ctl->mem_generation), generation + 1);
	client_ask_error(clients[0], &msg, RX_ERR_INVALID, "no memory of this session");

	rank_unmap(&ranks[0]);
	rank_unmap(&ranks[1]);
	client_close(clients[0]);
	client_close(clients[1]);
	client_close(stranger);
	(void)close(fd);
	(void)close(bare);
	fixture_stop(fixture);
}

static uint64_t ask_used(struct client *admin, const char *name)
{
	const struct rx_msg_admin_status_reply *status = &admin->msg.admin_status_reply;

	client_ask(admin, &(struct rx_msg){.type = RX_MSG_ADMIN_STATUS}, RX_MSG_ADMIN_STATUS_REPLY);
	for (size_t i = 0; i < status->n_limits; i++)
		if (strcmp(status->limits[i].name, name) == 0)
			return status->limits[i].used;
	fail_msg("no limit is called %s", name);
	return 0;
}

/* Made and freed by a worker; the session may end meanwhile. */
static void test_large_memory(void **state)
{
	struct fixture *fixture = *state;
	struct client *admin = NULL;
	struct client *client = NULL;
	struct memory memory;
	struct rx_msg msg = {.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = 64 << 20}};
	struct rx_msg ping = {.type = RX_MSG_PING, .ping = {.token = 5}};
	uint32_t serial = 0;
	uint32_t n_tries = 0;

	fixture_start(fixture);
	admin = client_connect(fixture->admin);
	client = client_open(fixture->socket);
	/* A later request is answered first. */
	serial = client_send(client, &msg, NULL, 0);
	client_ask(client, &ping, RX_MSG_PONG);
	assert_true(client_receive(client));
	assert_int_equal(client->msg.type, RX_MSG_MEM_REPLY);
	assert_int_equal(client->msg.serial, serial);
	assert_int_equal(client->msg.mem_reply.bytes, 64 << 20);
	msg = (struct rx_msg){
		.type = RX_MSG_MEM_FREE, .mem_free = {.handle = client->msg.mem_reply.handle}};
	client_ask(client, &msg, RX_MSG_OK);
	memory_alloc(client, 64 << 20, &memory);
	rx_map_close(&memory.map);
	msg = (struct rx_msg){.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = 64 << 20}};
	for (uint32_t i = 0; i < 4; i++)
		(void)client_send(client, &msg, NULL, 0);
	client_close(client);
	while (ask_used(admin, "regions") > 0 || ask_used(admin, "bytes") > 0) {
		assert_true(n_tries++ < 500);
		sleep_ms(10);
	}
	/* Stopping waits for what is being made. */
	client = client_open(fixture->socket);
	(void)client_send(client, &msg, NULL, 0);
	fixture_stop(fixture);
	client_close(client);
	client_close(admin);
}

/* Lists that do not fit one frame. */
static void test_pages(void **state)
{
	enum { COMMS = 30, RANKS = 64 };
	struct fixture *fixture = *state;
	struct client *admin = NULL;
	struct client *client = NULL;
	struct rx_msg msg = {.type = RX_MSG_ADMIN_COMMS};
	uint32_t n_comms = 0;
	uint32_t n_pages = 0;
	uint8_t id[RX_UNIQUE_ID_BYTES];

	fixture->config.limits.bytes_per_uid = 1ull << 40;
	fixture_start(fixture);
	client = client_open(fixture->socket);
	for (uint32_t i = 0; i < COMMS; i++) {
		struct rx_msg join;

		client_id(client, id);
		for (uint32_t rank = 1; rank < RANKS; rank++) {
			join = join_msg(id, RANKS, rank);
			(void)client_send(client, &join, NULL, 0);
		}
		client_ask(client, &(struct rx_msg){.type = RX_MSG_PING, .ping = {.token = 1}},
			RX_MSG_PONG);
	}
	admin = client_connect(fixture->admin);
	do {
		const struct rx_msg_admin_comms_reply *page = &admin->msg.admin_comms_reply;

		client_ask(admin, &msg, RX_MSG_ADMIN_COMMS_REPLY);
		assert_true(page->n_comms > 0);
		for (size_t i = 0; i < page->n_comms; i++) {
			assert_string_equal(page->comms[i].state, "forming");
			assert_int_equal(page->comms[i].n_members, RANKS);
			assert_string_equal(page->comms[i].members[0].status, "missing");
			assert_string_equal(page->comms[i].members[63].status, "alive");
			assert_true(page->comms[i].id != msg.admin_list.after);
			msg.admin_list.after = page->comms[i].id;
		}
		n_comms += (uint32_t)page->n_comms;
		n_pages++;
	} while (admin->msg.admin_comms_reply.more);
	assert_int_equal(n_comms, COMMS);
	assert_true(n_pages > 1);
	msg = (struct rx_msg){.type = RX_MSG_ADMIN_SESSIONS};
	client_ask(admin, &msg, RX_MSG_ADMIN_SESSIONS_REPLY);
	assert_int_equal(admin->msg.admin_sessions_reply.n_sessions, 1);
	assert_int_equal(
		admin->msg.admin_sessions_reply.sessions[0].n_members, COMMS * (RANKS - 1));
	assert_false(admin->msg.admin_sessions_reply.more);
	client_close(client);
	client_close(admin);
	fixture_stop(fixture);
}

/* Draining refuses what is new, serves what is there, and ends with the last session. */
static void test_drain(void **state)
{
	struct fixture *fixture = *state;
	struct client *admin = NULL;
	struct client *client = NULL;
	struct client *late = NULL;
	struct rx_msg hello = {.type = RX_MSG_HELLO,
		.hello = {.version_min = 1, .version_max = 1, .abi = RX_ABI_MAGIC}};
	uint8_t id[RX_UNIQUE_ID_BYTES];
	struct rx_msg join;

	fixture_start(fixture);
	client = client_open(fixture->socket);
	client_id(client, id);
	admin = client_connect(fixture->admin);
	client_ask(admin, &(struct rx_msg){.type = RX_MSG_ADMIN_DRAIN}, RX_MSG_OK);
	client_ask(admin, &(struct rx_msg){.type = RX_MSG_ADMIN_STATUS}, RX_MSG_ADMIN_STATUS_REPLY);
	assert_string_equal(admin->msg.admin_status_reply.state, "draining");
	late = client_connect(fixture->socket);
	client_ask_error(late, &hello, RX_ERR_DENIED, "draining");
	join = join_msg(id, 1, 0);
	client_ask_error(client, &join, RX_ERR_DENIED, "draining");
	client_ask(
		client, &(struct rx_msg){.type = RX_MSG_PING, .ping = {.token = 1}}, RX_MSG_PONG);
	client_close(client);
	client_expect_end(late);
	client_expect_end(admin);
	client_close(late);
	client_close(admin);
	fixture_stop(fixture);
}

/* Both ranks may run on one CPU only: on the same one. */
static void test_cores_shared(void **state)
{
	static const uint8_t cpus[] = {1};
	struct fixture *fixture = *state;
	struct client *clients[2];
	struct rank ranks[2];
	uint8_t id[RX_UNIQUE_ID_BYTES];

	fixture_start(fixture);
	for (uint32_t i = 0; i < 2; i++)
		clients[i] = client_open(fixture->socket);
	client_id(clients[0], id);
	for (uint32_t i = 0; i < 2; i++) {
		struct rx_msg msg = join_msg(id, 2, i);

		msg.comm_join.cpus = (struct rx_bytes){cpus, sizeof(cpus)};
		(void)client_send(clients[i], &msg, NULL, 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		rank_ready(&ranks[i], clients[i], i, 2);
	assert_int_equal(ranks[0].fabric.ctl->cores_shared, 1);
	assert_int_equal(ranks[0].fabric.ctl->one_user, 1);
	/* The table of a daemon that has read no files. */
	assert_int_equal(ranks[0].fabric.ctl->tuning.epoch, 1);
	assert_memory_equal(ranks[0].fabric.ctl->tuning.entries, rx_tuning_default()->entries,
		sizeof(rx_tuning_default()->entries));
	for (uint32_t i = 0; i < 2; i++)
		rank_unmap(&ranks[i]);
	ranks_form(ranks, clients, 1);
	assert_int_equal(ranks[0].fabric.ctl->cores_shared, 0);
	rank_unmap(&ranks[0]);
	for (uint32_t i = 0; i < 2; i++)
		client_close(clients[i]);
	fixture_stop(fixture);
}

/* Only the calling thread: the daemon's stays what it is. The socket's folder is root's. */
static void become(uid_t uid)
{
	assert_int_equal(syscall(SYS_setresuid, -1, uid, -1), 0);
	(void)setfsuid(0);
}

/* Members of different users may not read each other's memory, and hear it from the daemon. */
static void test_users(void **state)
{
	struct fixture *fixture = *state;
	struct client *clients[2];
	struct rank ranks[2];

	if (geteuid() != 0)
		skip();
	fixture_start(fixture);
	fixture->daemon.policy.private_mode = false;
	clients[0] = client_open(fixture->socket);
	become(65534);
	clients[1] = client_open(fixture->socket);
	become(0);
	ranks_form(ranks, clients, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(ranks[i].fabric.ctl->one_user, 0);
		rank_unmap(&ranks[i]);
		client_close(clients[i]);
	}
	fixture_stop(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hello_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_form_and_leave, setup, teardown),
		cmocka_unit_test_setup_teardown(test_join_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_form_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_death_while_forming, setup, teardown),
		cmocka_unit_test_setup_teardown(test_death, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abort, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shutdown_tells, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cores_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_users, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drain, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
