/* SPDX-License-Identifier: MIT */
/* Every sample is good; each row below spoils one field of one sample. */
#include "shm_util.h"
#include "msg_samples.h"

#include "../../proto/rx_check.h"

#include <string.h>

static struct rx_msg sample(enum rx_msg_type type)
{
	for (size_t i = 0; i < n_msg_samples; i++)
		if (msg_samples[i].msg.type == type)
			return msg_samples[i].msg;
	fail();
	return (struct rx_msg){0};
}

static void expect_refused(const struct rx_msg *msg, const char *part)
{
	const char *why = rx_check_msg(msg);

	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("said \"%s\", not \"%s\"", why, part);
}

/* ---- texts ---- */

static void takes_plain_text(void **state)
{
	static const char *const good[] = {
		"", " ", "rank 0", "~", "\u00a0", /* first behind the C1 controls */
		"\u07ff",                         /* longest of two bytes */
		"\u0800",                         /* shortest of three */
		"\ud7ff",                         /* last before the surrogates */
		"\ue000",                         /* first behind them */
		"\uffff",                         /* longest of three */
		"\U00010000",                     /* shortest of four */
		"\U0010ffff",                     /* the last one */
	};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(good); i++)
		if (!rx_check_text(good[i], 16))
			fail_msg("refused good text %zu", i);
}

static void refuses_what_is_no_text(void **state)
{
	static const char *const bad[] = {
		"\n",
		"a\tb",
		"\x1b[2J",
		"\x01",
		"\x1f",
		"\x7f",
		"\xc2\x80", /* U+0080 */
		"\xc2\x9b", /* U+009B, the one-character escape sequence */
		"\xc2\x9f",
		"\x80", /* continuation without a start */
		"\xbf",
		"\xc0\xaf", /* overlong */
		"\xc1\xbf",
		"\xe0\x80\xaf",
		"\xe0\x9f\xbf",
		"\xf0\x80\x80\xaf",
		"\xf0\x8f\xbf\xbf",
		"\xed\xa0\x80", /* surrogates */
		"\xed\xbf\xbf",
		"\xf4\x90\x80\x80", /* above U+10FFFF */
		"\xf5\x80\x80\x80",
		"\xff",
		"\xfe",
		"a\xc3", /* cut off */
		"a\xe2\x82",
		"a\xe2",
		"a\xf0\x9f\x98",
		"\xc3(",
		"\xe2\x28\xa1",
		"\xe2\x82(",
		"\xf0\x9f\x98(",
	};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(bad); i++)
		if (rx_check_text(bad[i], 16))
			fail_msg("took bad text %zu", i);
}

static void counts_bytes_not_characters(void **state)
{
	(void)state;
	assert_true(rx_check_text("12345", 5));
	assert_false(rx_check_text("12345", 4));
	assert_true(rx_check_text("\u00e9\u00e9", 4));
	assert_false(rx_check_text("\u00e9\u00e9", 3));
	assert_true(rx_check_text("", 0));
	assert_false(rx_check_text("1", 0));
}

/* ---- messages ---- */

static void takes_every_sample(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_msg_samples; i++)
		assert_null(rx_check_msg(&msg_samples[i].msg));
}

static void hello(void **state)
{
	struct rx_msg msg = sample(RX_MSG_HELLO);
	char name[RX_NAME_MAX + 2] = {0};

	(void)state;
	memset(name, 'x', RX_NAME_MAX);
	msg.hello.program = name;
	assert_null(rx_check_msg(&msg));
	name[RX_NAME_MAX] = 'x';
	expect_refused(&msg, "program");
	msg.hello.program = "\x1b[31m";
	expect_refused(&msg, "program");
	msg = sample(RX_MSG_HELLO);
	msg.hello.version_min = 3;
	assert_null(rx_check_msg(&msg));
	msg.hello.version_min = 4;
	expect_refused(&msg, "version window");
}

static void hello_reply(void **state)
{
	struct rx_msg msg = sample(RX_MSG_HELLO_REPLY);

	(void)state;
	msg.hello_reply.instance.len = RX_INSTANCE_BYTES - 1;
	expect_refused(&msg, "instance");
	msg.hello_reply.instance.len = RX_INSTANCE_BYTES + 1;
	expect_refused(&msg, "instance");
	msg = sample(RX_MSG_HELLO_REPLY);
	msg.hello_reply.daemon_version = "0\n1";
	expect_refused(&msg, "version");
}

static void error(void **state)
{
	static char text[RX_ERROR_TEXT_MAX + 2];
	struct rx_msg msg = sample(RX_MSG_ERROR);

	(void)state;
	msg.error.code = 0;
	expect_refused(&msg, "code");
	msg.error.code = -1;
	expect_refused(&msg, "code");
	/* A later daemon may know more codes. */
	msg.error.code = INT32_MAX;
	assert_null(rx_check_msg(&msg));
	memset(text, 'x', RX_ERROR_TEXT_MAX);
	msg.error.text = text;
	assert_null(rx_check_msg(&msg));
	text[RX_ERROR_TEXT_MAX] = 'x';
	expect_refused(&msg, "error text");
}

static void unique_id(void **state)
{
	static const size_t wrong[] = {0, RX_UNIQUE_ID_BYTES - 1, RX_UNIQUE_ID_BYTES + 1, SIZE_MAX};
	struct rx_msg reply = sample(RX_MSG_UNIQUE_ID_REPLY);
	struct rx_msg join = sample(RX_MSG_COMM_JOIN);

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(wrong); i++) {
		reply.unique_id_reply.id.len = wrong[i];
		expect_refused(&reply, "unique id");
		join.comm_join.id.len = wrong[i];
		expect_refused(&join, "unique id");
	}
}

static void comm_join(void **state)
{
	static const struct {
		uint32_t n_ranks;
		uint32_t rank;
		const char *refused;
	} cases[] = {
		{1, 0, NULL},
		{2, 1, NULL},
		{RX_MAX_RANKS, RX_MAX_RANKS - 1, NULL},
		{0, 0, "number of ranks"},
		{RX_MAX_RANKS + 1, 0, "number of ranks"},
		{UINT32_MAX, 0, "number of ranks"},
		{1, 1, "rank out of range"},
		{RX_MAX_RANKS, RX_MAX_RANKS, "rank out of range"},
		{2, UINT32_MAX, "rank out of range"},
	};
	struct rx_msg msg = sample(RX_MSG_COMM_JOIN);

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(cases); i++) {
		msg.comm_join.n_ranks = cases[i].n_ranks;
		msg.comm_join.rank = cases[i].rank;
		if (cases[i].refused)
			expect_refused(&msg, cases[i].refused);
		else
			assert_null(rx_check_msg(&msg));
	}
	msg = sample(RX_MSG_COMM_JOIN);
	msg.comm_join.cpus.len = RX_CPUS_BYTES + 1;
	expect_refused(&msg, "CPUs");
	msg = sample(RX_MSG_COMM_JOIN);
	msg.comm_join.device.len = RX_GPU_UUID_BYTES - 1;
	expect_refused(&msg, "device");
	msg = sample(RX_MSG_COMM_JOIN);
	msg.comm_join.name = "two\nlines";
	expect_refused(&msg, "name");
}

static void memory(void **state)
{
	struct rx_msg alloc = sample(RX_MSG_MEM_ALLOC);
	struct rx_msg registration = sample(RX_MSG_MEM_REGISTER);

	(void)state;
	alloc.mem_alloc.bytes = 0;
	expect_refused(&alloc, "0 bytes");
	alloc.mem_alloc.bytes = 1;
	assert_null(rx_check_msg(&alloc));
	registration.mem_register.bytes = 0;
	expect_refused(&registration, "0 bytes");
}

static void admin_status(void **state)
{
	static char path[RX_ERROR_TEXT_MAX + 2];
	struct rx_limit_info limit = {.name = "a\rb"};
	struct rx_msg msg = sample(RX_MSG_ADMIN_STATUS_REPLY);

	(void)state;
	msg.admin_status_reply.socket = "/run/\xff/sock";
	assert_null(rx_check_msg(&msg));
	memset(path, 'x', RX_ERROR_TEXT_MAX + 1);
	msg.admin_status_reply.socket = path;
	expect_refused(&msg, "path");
	msg = sample(RX_MSG_ADMIN_STATUS_REPLY);
	msg.admin_status_reply.version = "\n";
	expect_refused(&msg, "status");
	msg = sample(RX_MSG_ADMIN_STATUS_REPLY);
	msg.admin_status_reply.state = "\n";
	expect_refused(&msg, "status");
	msg = sample(RX_MSG_ADMIN_STATUS_REPLY);
	msg.admin_status_reply.backend = "\n";
	expect_refused(&msg, "status");
	msg = sample(RX_MSG_ADMIN_STATUS_REPLY);
	msg.admin_status_reply.limits = &limit;
	msg.admin_status_reply.n_limits = 1;
	expect_refused(&msg, "limit");
}

static void admin_sessions(void **state)
{
	struct rx_session_info sessions[2] = {{.program = "good"}, {.program = "\x1b"}};
	struct rx_msg msg = sample(RX_MSG_ADMIN_SESSIONS_REPLY);

	(void)state;
	msg.admin_sessions_reply.sessions = sessions;
	msg.admin_sessions_reply.n_sessions = 1;
	assert_null(rx_check_msg(&msg));
	msg.admin_sessions_reply.n_sessions = 2;
	expect_refused(&msg, "program");
}

static void admin_comms(void **state)
{
	const struct rx_comm_info good =
		sample(RX_MSG_ADMIN_COMMS_REPLY).admin_comms_reply.comms[0];
	struct rx_rank_info ranks[2] = {good.members[0], good.members[1]};
	struct rx_comm_info comms[2] = {good, good};
	struct rx_comm_info *bad = &comms[1];
	struct rx_msg msg = sample(RX_MSG_ADMIN_COMMS_REPLY);

	(void)state;
	msg.admin_comms_reply.comms = comms;
	msg.admin_comms_reply.n_comms = 2;
	assert_null(rx_check_msg(&msg));
	bad->n_ranks = RX_MAX_RANKS + 1;
	expect_refused(&msg, "too many ranks");
	bad->n_ranks = 1;
	expect_refused(&msg, "too many ranks");
	*bad = good;
	bad->name = "\n";
	expect_refused(&msg, "communicator");
	*bad = good;
	bad->state = "\n";
	expect_refused(&msg, "communicator");
	*bad = good;
	bad->reason = "\n";
	expect_refused(&msg, "communicator");
	*bad = good;
	bad->shares = "\n";
	expect_refused(&msg, "communicator");
	*bad = good;
	bad->precision = "\n";
	expect_refused(&msg, "communicator");
	*bad = good;
	bad->members = ranks;
	ranks[1].rank = 2;
	expect_refused(&msg, "rank out of range");
	ranks[1] = good.members[1];
	ranks[1].status = "\n";
	expect_refused(&msg, "rank");
	ranks[1] = good.members[1];
	ranks[1].op = "\n";
	expect_refused(&msg, "rank");
}

static void admin_tuning(void **state)
{
	static char path[RX_ERROR_TEXT_MAX + 2];
	const struct rx_tuning_row good =
		sample(RX_MSG_ADMIN_TUNING_REPLY).admin_tuning_reply.rows[0];
	struct rx_tuning_row row = good;
	struct rx_msg msg = sample(RX_MSG_ADMIN_TUNING_REPLY);

	(void)state;
	memset(path, 'x', RX_ERROR_TEXT_MAX + 1);
	msg.admin_tuning_reply.dir = path;
	expect_refused(&msg, "path");
	msg = sample(RX_MSG_ADMIN_TUNING_REPLY);
	msg.admin_tuning_reply.rows = &row;
	msg.admin_tuning_reply.n_rows = 1;
	assert_null(rx_check_msg(&msg));
	row.ranks = 0;
	expect_refused(&msg, "ranks");
	row.ranks = RX_MAX_RANKS + 1;
	expect_refused(&msg, "ranks");
	row = good;
	row.stream_min_from = path;
	expect_refused(&msg, "source");
	row = good;
	row.low_precision_min_from = path;
	expect_refused(&msg, "source");
	row = good;
	row.single_min_from = path;
	expect_refused(&msg, "source");
	row = good;
	row.device_push_min_from = path;
	expect_refused(&msg, "source");
}

static void gpu_register(void **state)
{
	const struct rx_gpu_piece good = sample(RX_MSG_GPU_REGISTER).gpu_register.pieces[0];
	struct rx_gpu_piece piece = good;
	struct rx_msg msg = sample(RX_MSG_GPU_REGISTER);

	(void)state;
	msg.gpu_register.pieces = &piece;
	msg.gpu_register.n_pieces = 1;
	assert_null(rx_check_msg(&msg));
	piece.bytes = 0;
	assert_non_null(rx_check_msg(&msg));
	piece = good;
	piece.uuid.len = 15;
	assert_non_null(rx_check_msg(&msg));
	piece = good;
	piece.handle.len = RX_GPU_HANDLE_MAX + 1;
	assert_non_null(rx_check_msg(&msg));
	piece = good;
	msg.gpu_register.n_pieces = 0;
	assert_non_null(rx_check_msg(&msg));
	msg.gpu_register.n_pieces = RX_GPU_PIECES_MAX + 1;
	assert_non_null(rx_check_msg(&msg));
	msg.gpu_register.n_pieces = 1;
	msg.gpu_register.rows.len = RX_GPU_ROWS_MAX + 1;
	assert_non_null(rx_check_msg(&msg));
}

static void slab_messages(void **state)
{
	const struct rx_msg good = sample(RX_MSG_SLAB_REPLY);
	struct rx_msg msg = sample(RX_MSG_SLAB_GET);

	(void)state;
	msg.slab_get.rank = RX_MAX_RANKS;
	expect_refused(&msg, "rank");
	msg = good;
	assert_null(rx_check_msg(&msg));
	msg.slab_reply.uuid.len--;
	expect_refused(&msg, "slab");
	msg = good;
	msg.slab_reply.handle.len--;
	expect_refused(&msg, "slab");
	msg = good;
	msg.slab_reply.rows.len--;
	expect_refused(&msg, "slab");
	msg = good;
	msg.slab_reply.part_bytes = msg.slab_reply.bytes - msg.slab_reply.part_offset + 1;
	expect_refused(&msg, "slab");
	msg.slab_reply.part_bytes = 0;
	expect_refused(&msg, "slab");
	msg = sample(RX_MSG_KERNELS_READY);
	msg.kernels_ready.why = "two\nlines";
	expect_refused(&msg, "plain text");
}

static void admin_devices(void **state)
{
	const struct rx_device_info good =
		sample(RX_MSG_ADMIN_DEVICES_REPLY).admin_devices_reply.devices[0];
	struct rx_device_info device = good;
	struct rx_msg msg = sample(RX_MSG_ADMIN_DEVICES_REPLY);

	(void)state;
	msg.admin_devices_reply.devices = &device;
	msg.admin_devices_reply.n_devices = 1;
	assert_null(rx_check_msg(&msg));
	device.index = RX_GPU_DEVICES_MAX;
	assert_non_null(rx_check_msg(&msg));
	device = good;
	device.uuid.len = 0;
	assert_non_null(rx_check_msg(&msg));
	device = good;
	device.error = "a\nb";
	assert_non_null(rx_check_msg(&msg));
	device = good;
	msg.admin_devices_reply.reason = "\x1b[2J";
	assert_non_null(rx_check_msg(&msg));
}

static void admin_topology(void **state)
{
	const struct rx_topology_object good =
		sample(RX_MSG_ADMIN_TOPOLOGY_REPLY).admin_topology_reply.objects[0];
	struct rx_topology_object object = good;
	struct rx_msg msg = sample(RX_MSG_ADMIN_TOPOLOGY_REPLY);

	(void)state;
	msg.admin_topology_reply.objects = &object;
	msg.admin_topology_reply.n_objects = 1;
	assert_null(rx_check_msg(&msg));
	object.kind = "\n";
	expect_refused(&msg, "node");
	object = good;
	object.cpus = "\x1b";
	expect_refused(&msg, "node");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_plain_text),
		cmocka_unit_test(refuses_what_is_no_text),
		cmocka_unit_test(counts_bytes_not_characters),
		cmocka_unit_test(takes_every_sample),
		cmocka_unit_test(hello),
		cmocka_unit_test(hello_reply),
		cmocka_unit_test(error),
		cmocka_unit_test(unique_id),
		cmocka_unit_test(comm_join),
		cmocka_unit_test(memory),
		cmocka_unit_test(admin_status),
		cmocka_unit_test(admin_sessions),
		cmocka_unit_test(admin_comms),
		cmocka_unit_test(admin_tuning),
		cmocka_unit_test(admin_topology),
		cmocka_unit_test(gpu_register),
		cmocka_unit_test(slab_messages),
		cmocka_unit_test(admin_devices),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
