/* SPDX-License-Identifier: MIT */
/* rcclxctl: texts, and the admin socket's client against a daemon that is played by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../client/ctl/admin.h"
#include "../../client/ctl/late.h"
#include "../../client/ctl/print.h"
#include "../../shm/rx_clock.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void bytes_text(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {{0, "0 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"}, {1536, "1.5 KiB"},
		{1048575, "1.0 MiB"}, {64ull << 20, "64.0 MiB"}, {3ull << 40, "3.0 TiB"},
		{UINT64_MAX - 1, "16.0 EiB"}, {UINT64_MAX, "unlimited"}};
	char cell[PRINT_CELL];

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(cases); i++)
		assert_string_equal(print_bytes(cases[i].bytes, cell), cases[i].text);
}

static void duration_text(void **state)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} cases[] = {{0, "0 ms"}, {999, "999 ms"}, {1000, "1.0 s"}, {59999, "59.9 s"},
		{60000, "1 min 0 s"}, {303000, "5 min 3 s"}, {7800000, "2 h 10 min"},
		{360000000, "4 d 4 h"}};
	char cell[PRINT_CELL];

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(cases); i++)
		assert_string_equal(
			print_duration(cases[i].ms * RX_NS_PER_MS, cell), cases[i].text);
}

static void tables(void **state)
{
	static const char *const headings[] = {">N", "NAME", "LAST", NULL};
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	struct table table;
	char lengthy[2 * PRINT_CELL];

	(void)state;
	assert_non_null(out);
	table_init(&table, headings);
	table_add(&table, (const char *[]){"1", "longer", "x"});
	table_add(&table, (const char *[]){"100", "s", "yy"});
	assert_true(table_print(&table, "  ", out));
	(void)fflush(out);
	assert_string_equal(text, "    N  NAME    LAST\n"
				  "    1  longer  x\n"
				  "  100  s       yy\n");
	memset(lengthy, 'a', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = '\0';
	table_add(&table, (const char *[]){"1", lengthy, "x"});
	assert_true(table_print(&table, "", out));
	table_deinit(&table);
	(void)fclose(out);
	free(text);
}

static void late_ranks(void **state)
{
	struct rx_rank_info ranks[] = {
		{.rank = 0, .op_seq = 7, .op = "all_reduce of 8 float32, sum", .status = "alive"},
		{.rank = 1,
			.op_seq = 6,
			.op = "barrier",
			.status = "alive",
			.late = true,
			.pid = 9},
	};
	struct rx_comm_info comm = {.id = 3,
		.name = "train",
		.members = ranks,
		.n_members = 2,
		.n_ranks = 2,
		.stalled_ns = 1500 * RX_NS_PER_MS};
	json_t *array = json_array();
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	assert_non_null(out);
	assert_string_equal(late_op(&comm), "all_reduce of 8 float32, sum");
	late_print(&comm, "", out);
	(void)fflush(out);
	assert_non_null(strstr(text, "rank 1 (pid 9)"));
	assert_non_null(strstr(text, "all_reduce of 8 float32, sum"));
	assert_non_null(strstr(text, "1.5 s"));
	assert_true(late_json(&comm, array));
	assert_int_equal(json_array_size(array), 1);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(array, 0), "rank")), 1);
	json_decref(array);
	(void)fclose(out);
	free(text);
}

/* ---- a played daemon ---- */

struct fake {
	char dir[32];
	char path[64];
	int listener;
	pthread_t thread;
	/* What it does with request @n on @sock. */
	void (*answer)(int sock, const struct rx_frame *request, unsigned int n);
};

static void send_msg(int sock, const struct rx_msg *msg)
{
	uint8_t payload[4096];
	size_t len = 0;

	if (rx_msg_pack(msg, payload, sizeof(payload), &len) == 0)
		(void)!rx_frame_send(sock, msg->type, msg->serial, payload, len, NULL, 0);
}

static void *play(void *arg)
{
	struct fake *fake = arg;
	struct rx_frame *frame = calloc(1, sizeof(*frame));
	int sock = accept(fake->listener, NULL, NULL);
	const char *why = NULL;
	char byte = 0;

	for (unsigned int n = 0; frame && sock >= 0; n++) {
		if (recv(sock, &byte, 1, MSG_PEEK) <= 0 ||
			rx_frame_recv(sock, frame, &why) != RX_FRAME_OK)
			break;
		fake->answer(sock, frame, n);
	}
	free(frame);
	(void)close(sock);
	return NULL;
}

static void fake_start(
	struct fake *fake, void (*answer)(int sock, const struct rx_frame *request, unsigned int n))
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	*fake = (struct fake){.dir = "/tmp/test_ctl.XXXXXX", .answer = answer};
	assert_non_null(mkdtemp(fake->dir));
	(void)snprintf(fake->path, sizeof(fake->path), "%s/admin.sock", fake->dir);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", fake->path);
	fake->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fake->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fake->listener, 1), 0);
	assert_int_equal(pthread_create(&fake->thread, NULL, play, fake), 0);
}

static void fake_stop(struct fake *fake)
{
	(void)pthread_join(fake->thread, NULL);
	(void)close(fake->listener);
	(void)unlink(fake->path);
	(void)rmdir(fake->dir);
}

static void answer_three_sessions(int sock, const struct rx_frame *request, unsigned int n)
{
	struct rx_session_info session = {.id = 10 * (n + 1), .pid = n, .program = "p"};
	struct rx_msg msg = {
		.type = RX_MSG_ADMIN_SESSIONS_REPLY,
		.serial = request->header.serial,
		.admin_sessions_reply = {.sessions = &session, .n_sessions = 1, .more = n < 2},
	};

	send_msg(sock, &msg);
}

static enum ctl_exit count_session(const struct rx_session_info *session, void *ctx)
{
	uint64_t *sum = ctx;

	*sum += session->id;
	return CTL_EXIT_OK;
}

static void pages(void **state)
{
	struct fake fake;
	struct admin *admin = NULL;
	uint64_t sum = 0;

	(void)state;
	fake_start(&fake, answer_three_sessions);
	assert_int_equal(admin_open(fake.path, false, &admin), CTL_EXIT_OK);
	assert_int_equal(admin_each_session(admin, count_session, &sum), CTL_EXIT_OK);
	assert_int_equal(sum, 60);
	admin_close(admin);
	fake_stop(&fake);
}

static void answer_without_end(int sock, const struct rx_frame *request, unsigned int n)
{
	struct rx_session_info session = {.id = 10, .pid = n, .program = "p"};
	struct rx_msg msg = {
		.type = RX_MSG_ADMIN_SESSIONS_REPLY,
		.serial = request->header.serial,
		.admin_sessions_reply = {.sessions = &session, .n_sessions = 1, .more = true},
	};

	send_msg(sock, &msg);
}

static void list_without_end(void **state)
{
	struct fake fake;
	struct admin *admin = NULL;
	uint64_t sum = 0;

	(void)state;
	fake_start(&fake, answer_without_end);
	assert_int_equal(admin_open(fake.path, false, &admin), CTL_EXIT_OK);
	assert_int_equal(admin_each_session(admin, count_session, &sum), CTL_EXIT_FAILED);
	assert_int_equal(sum, 20);
	admin_close(admin);
	fake_stop(&fake);
}

static void answer_badly(int sock, const struct rx_frame *request, unsigned int n)
{
	struct rx_msg msg = {.type = RX_MSG_OK, .serial = request->header.serial};

	switch (n) {
	case 0: /* another kind */
		break;
	case 1: /* another request's */
		msg.serial += 5;
		break;
	case 2:
		msg.type = RX_MSG_ERROR;
		msg.error = (struct rx_msg_error){.code = 10, .text = "not you"};
		break;
	default:
		(void)!send(sock, "garbage", 7, MSG_NOSIGNAL);
		return;
	}
	send_msg(sock, &msg);
}

static void bad_answers(void **state)
{
	struct fake fake;
	struct admin *admin = NULL;

	(void)state;
	fake_start(&fake, answer_badly);
	assert_int_equal(admin_open(fake.path, false, &admin), CTL_EXIT_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			admin_ask(admin, RX_MSG_ADMIN_STATUS, 0, RX_MSG_ADMIN_STATUS_REPLY),
			CTL_EXIT_FAILED);
	admin_close(admin);
	fake_stop(&fake);
}

static void answer_drain(int sock, const struct rx_frame *request, unsigned int n)
{
	struct rx_msg msg = {.type = RX_MSG_OK, .serial = request->header.serial};

	if (n == 0 && request->header.type == RX_MSG_ADMIN_DRAIN)
		send_msg(sock, &msg);
	else
		(void)shutdown(sock, SHUT_RDWR);
}

static void closed_by_daemon(void **state)
{
	struct fake fake;
	struct admin *admin = NULL;

	(void)state;
	fake_start(&fake, answer_drain);
	assert_int_equal(admin_open(fake.path, false, &admin), CTL_EXIT_OK);
	assert_int_equal(admin_ask(admin, RX_MSG_ADMIN_DRAIN, 0, RX_MSG_OK), CTL_EXIT_OK);
	assert_int_equal(admin_ask(admin, RX_MSG_ADMIN_STATUS, 0, RX_MSG_ADMIN_STATUS_REPLY),
		CTL_EXIT_FAILED);
	admin_close(admin);
	fake_stop(&fake);
}

static void nobody_there(void **state)
{
	struct admin *admin = NULL;
	char lengthy[200];

	(void)state;
	(void)unsetenv("RCCLX_ADMIN_SOCKET");
	(void)setenv("RCCLX_SOCKET", "/nowhere/rcclxd.sock", 1);
	assert_int_equal(admin_open(NULL, false, &admin), CTL_EXIT_NO_DAEMON);
	assert_int_equal(admin_open("/nowhere/admin.sock", true, &admin), CTL_EXIT_NO_DAEMON);
	memset(lengthy, 'x', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = '\0';
	assert_int_equal(admin_open(lengthy, true, &admin), CTL_EXIT_NO_DAEMON);
	assert_null(admin);
	(void)unsetenv("RCCLX_SOCKET");
}

/* $RCCLX_SOCKET leads to the admin socket beside it; $RCCLX_ADMIN_SOCKET comes first. */
static void search_order(void **state)
{
	struct fake fake;
	struct admin *admin = NULL;
	char control[80];

	(void)state;
	fake_start(&fake, answer_drain);
	(void)snprintf(control, sizeof(control), "%s/rcclxd.sock", fake.dir);
	(void)setenv("RCCLX_SOCKET", control, 1);
	(void)setenv("RCCLX_ADMIN_SOCKET", "/nowhere/admin.sock", 1);
	assert_int_equal(admin_open(NULL, true, &admin), CTL_EXIT_NO_DAEMON);
	(void)unsetenv("RCCLX_ADMIN_SOCKET");
	assert_int_equal(admin_open(NULL, true, &admin), CTL_EXIT_OK);
	admin_close(admin);
	(void)unsetenv("RCCLX_SOCKET");
	fake_stop(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_text),
		cmocka_unit_test(duration_text),
		cmocka_unit_test(tables),
		cmocka_unit_test(late_ranks),
		cmocka_unit_test(pages),
		cmocka_unit_test(list_without_end),
		cmocka_unit_test(bad_answers),
		cmocka_unit_test(closed_by_daemon),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(search_order),
	};

	return cmocka_run_group_tests_name("ctl", tests, NULL, NULL);
}
