/* SPDX-License-Identifier: MIT */
/* Connecting: where the daemon is looked for, and what it may answer to Hello. */
#include "fake_daemon.h"

#include "../../shm/rx_clock.h"
#include "../../shm/rx_memfd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static rcclx_result connect_within(const char *path, uint64_t ms, struct rcclx_client **client_p)
{
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;

	config.timeout_ns = ms * RX_NS_PER_MS;
	return rcclx_connect(path, &config, client_p);
}

/* ---- nobody there ---- */

static void test_no_daemon(void **state)
{
	struct rcclx_client *client = NULL;

	(void)state;
	assert_int_equal(rcclx_connect("/nonexistent/x.sock", NULL, &client), RCCLX_ERR_NO_DAEMON);
	assert_text("tried /nonexistent/x.sock (No such file or directory)");
	assert_text("rcclxd --private");
	/* A named socket is the only one that is tried. */
	assert_int_equal(setenv("RCCLX_SOCKET", "/nonexistent/y.sock", 1), 0);
	assert_int_equal(rcclx_connect(NULL, NULL, &client), RCCLX_ERR_NO_DAEMON);
	assert_text("tried /nonexistent/y.sock (No such file or directory);");
	assert_int_equal(unsetenv("RCCLX_SOCKET"), 0);
	assert_null(client);
}

static void test_search_order(void **state)
{
	struct rcclx_client *client = NULL;

	(void)state;
	/* On a machine with a daemon this would connect. */
	if (access("/run/rcclx/rcclxd.sock", F_OK) == 0)
		skip();
	assert_int_equal(setenv("XDG_RUNTIME_DIR", "/nonexistent/run", 1), 0);
	assert_int_equal(rcclx_connect(NULL, NULL, &client), RCCLX_ERR_NO_DAEMON);
	assert_text("tried /run/rcclx/rcclxd.sock (No such file or directory), "
		    "/nonexistent/run/rcclx/rcclxd.sock (No such file or directory); start");
	assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
}

static void test_path_too_long(void **state)
{
	struct rcclx_client *client = NULL;
	char path[200];

	(void)state;
	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(rcclx_connect(path, NULL, &client), RCCLX_ERR_INVALID);
	assert_text("longer than 107");
}

static void end_at_once(struct fake *fake)
{
	(void)fake;
}

/* A socket file that a dead daemon left. */
static void test_stale_socket(void **state)
{
	struct rcclx_client *client = NULL;
	struct fake *fake = fake_listen(end_at_once, NULL);

	(void)state;
	(void)close(fake->listen_fd);
	assert_int_equal(rcclx_connect(fake->path, NULL, &client), RCCLX_ERR_NO_DAEMON);
	assert_text("Connection refused");
	(void)unlink(fake->path);
	fake->listen_fd = -1;
	fake_join(fake);
}

/* ---- answers to Hello ---- */

static void be_silent(struct fake *fake)
{
	struct rx_msg msg;

	if (!fake_accept(fake))
		return;
	while (fake_recv(fake, &msg))
		continue;
}

static void test_silent_daemon(void **state)
{
	struct rcclx_client *client = NULL;
	struct fake *fake = fake_listen(be_silent, NULL);
	uint64_t before = now_ms();

	(void)state;
	assert_int_equal(connect_within(fake->path, 100, &client), RCCLX_ERR_TIMEOUT);
	assert_true(now_ms() - before >= 100);
	assert_text("did not answer within 100 ms");
	assert_null(client);
	fake_join(fake);
}

static void hang_up(struct fake *fake)
{
	if (fake_accept(fake))
		fake_hang_up(fake);
}

static void test_hang_up(void **state)
{
	struct rcclx_client *client = NULL;
	struct fake *fake = fake_listen(hang_up, NULL);

	(void)state;
	assert_int_equal(connect_within(fake->path, 10000, &client), RCCLX_ERR_NO_DAEMON);
	assert_text("hung up");
	fake_join(fake);
}

static void refuse(struct fake *fake)
{
	struct rx_msg error = {
		.type = RX_MSG_ERROR,
		.error = {.code = RCCLX_ERR_LIMIT, .text = "uid 5 has 3 of 3 sessions"},
	};
	struct rx_msg hello;
	const bool *answers = fake->arg;

	if (!fake_accept(fake) || !fake_expect(fake, RX_MSG_HELLO, &hello))
		return;
	FAKE_CHECK(fake, hello.hello.abi == RX_ABI_MAGIC);
	FAKE_CHECK(fake, hello.hello.pid == (uint64_t)getpid());
	FAKE_CHECK(fake, strcmp(hello.hello.program, "test_session") == 0);
	error.serial = *answers ? hello.serial : 0;
	fake_send(fake, &error, NULL, 0);
	fake_hang_up(fake);
}

/* As an answer, or said unasked before hanging up: the caller hears the same. */
static void test_refused(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		bool answers = i == 0;
		struct rcclx_client *client = NULL;
		struct fake *fake = fake_listen(refuse, &answers);

		assert_int_equal(connect_within(fake->path, 10000, &client), RCCLX_ERR_LIMIT);
		assert_string_equal(rcclx_last_error(), "uid 5 has 3 of 3 sessions");
		fake_join(fake);
	}
}

/* What is wrong with a reply to Hello. */
struct hello_fault {
	uint32_t version;
	uint32_t sq_entries;
	uint64_t s_bytes;
	rcclx_result expected;
};

static void hello_wrongly(struct fake *fake)
{
	static const uint8_t instance[RX_INSTANCE_BYTES] = {1};
	const struct hello_fault *fault = fake->arg;
	int fds[3] = {-1, -1, -1};
	struct rx_msg hello;

	if (!fake_accept(fake) || !fake_expect(fake, RX_MSG_HELLO, &hello))
		return;
	FAKE_CHECK(fake, rx_memfd_new("s", fault->s_bytes, RX_MEMFD_SHARED, &fds[0]) == 0);
	FAKE_CHECK(fake, rx_memfd_new("d", 1 << 16, RX_MEMFD_SHARED, &fds[1]) == 0);
	FAKE_CHECK(fake, rx_memfd_new("x", 1, RX_MEMFD_SHARED, &fds[2]) == 0);

	struct rx_msg reply = {
		.type = RX_MSG_HELLO_REPLY,
		.serial = hello.serial,
		.hello_reply =
			{
				.version = fault->version,
				.daemon_version = "9.9",
				.sq_entries = fault->sq_entries,
				.instance = {instance, sizeof(instance)},
			},
	};

	fake_send(fake, &reply, fds, 3);
	for (int i = 0; i < 3; i++)
		(void)close(fds[i]);
	(void)fake_recv(fake, &hello);
}

static void test_impossible_hello(void **state)
{
	static struct hello_fault faults[] = {
		{2, 8, 1 << 16, RCCLX_ERR_VERSION}, {0, 8, 1 << 16, RCCLX_ERR_VERSION},
		{1, 0, 1 << 16, RCCLX_ERR_SYSTEM}, {1, 7, 1 << 16, RCCLX_ERR_SYSTEM},
		{1, 1u << 31, 1 << 16, RCCLX_ERR_SYSTEM},
		{1, 1024, 1 << 12, RCCLX_ERR_SYSTEM}, /* the file is too small */
		{1, 4096, 1 << 20, RCCLX_ERR_SYSTEM}, /* the other one is */
	};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(faults); i++) {
		struct rcclx_client *client = NULL;
		struct fake *fake = fake_listen(hello_wrongly, &faults[i]);

		assert_int_equal(connect_within(fake->path, 10000, &client), faults[i].expected);
		assert_null(client);
		fake_join(fake);
	}
}

static void test_connect_and_disconnect(void **state)
{
	struct rcclx_client *client = NULL;
	struct fake *fake = fake_listen(fake_session, NULL);

	(void)state;
	/* By name, as programs are told. */
	assert_int_equal(setenv("RCCLX_SOCKET", fake->path, 1), 0);
	assert_int_equal(rcclx_connect(NULL, NULL, &client), RCCLX_OK);
	assert_int_equal(unsetenv("RCCLX_SOCKET"), 0);
	assert_int_equal(rcclx_disconnect(client), RCCLX_OK);
	fake_join(fake);
}

/* ---- fork ---- */

/* In the child; what is inherited fails cleanly, and an own connection works. */
static int child(struct rcclx_client *client, void *memory, const char *own_path)
{
	struct rcclx_unique_id id;
	struct rcclx_client *own = NULL;
	void *ptr = NULL;

	if (rcclx_unique_id_create(client, &id) != RCCLX_ERR_FORKED)
		return 1;
	if (!strstr(rcclx_last_error(), "forked child"))
		return 2;
	if (rcclx_mem_alloc(client, 1, &ptr) != RCCLX_ERR_FORKED)
		return 3;
	if (rcclx_mem_free(client, memory) != RCCLX_ERR_FORKED)
		return 4;
	if (rcclx_disconnect(client) != RCCLX_ERR_FORKED)
		return 5;
	if (rcclx_connect(own_path, NULL, &own) != RCCLX_OK)
		return 6;
	if (rcclx_mem_alloc(own, 1, &ptr) != RCCLX_OK || rcclx_mem_free(own, ptr) != RCCLX_OK)
		return 7;
	/* Still the parent's, also after the child has become a user itself. */
	if (rcclx_mem_alloc(client, 1, &ptr) != RCCLX_ERR_FORKED)
		return 8;
	return rcclx_disconnect(own) == RCCLX_OK ? 0 : 9;
}

static void test_fork(void **state)
{
	struct fake *fake = fake_listen(fake_session, NULL);
	struct fake *other = fake_listen(fake_session, NULL);
	struct rcclx_client *client = NULL;
	void *memory = NULL;
	int status = 0;
	pid_t pid = 0;

	(void)state;
	assert_int_equal(rcclx_connect(fake->path, NULL, &client), RCCLX_OK);
	assert_int_equal(rcclx_mem_alloc(client, 4096, &memory), RCCLX_OK);
	pid = fork();
	if (pid == 0)
		_exit(child(client, memory, other->path));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* The parent goes on. */
	assert_int_equal(rcclx_disconnect(client), RCCLX_ERR_BUSY);
	assert_int_equal(rcclx_mem_free(client, memory), RCCLX_OK);
	assert_int_equal(rcclx_disconnect(client), RCCLX_OK);
	fake_join(fake);
	fake_join(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_no_daemon),
		FAKE_TEST(test_search_order),
		FAKE_TEST(test_path_too_long),
		FAKE_TEST(test_stale_socket),
		FAKE_TEST(test_silent_daemon),
		FAKE_TEST(test_hang_up),
		FAKE_TEST(test_refused),
		FAKE_TEST(test_impossible_hello),
		FAKE_TEST(test_connect_and_disconnect),
		FAKE_TEST(test_fork),
	};

	return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
