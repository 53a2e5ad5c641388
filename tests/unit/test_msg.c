/* SPDX-License-Identifier: MIT */
/*
 * Messages against golden bytes, and against whoever sends what is no message.
 *
 * That packing a sample gives its golden bytes shows that each field goes where it belongs; that
 * unpacking those bytes and packing again gives the same shows it for the way back.
 */
#include "shm_util.h"
#include "msg_samples.h"

#include "../../proto/rx_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD_MAX (RX_FRAME_MAX - sizeof(struct rx_frame_header))

static struct rx_arena arena;
static uint8_t payload[PAYLOAD_MAX];
static uint8_t again[PAYLOAD_MAX];

/* ---- memory that runs out ---- */

static bool fail_malloc;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return fail_malloc ? NULL : __real_malloc(bytes);
}

/* ---- helpers ---- */

static const struct msg_sample *sample_of(enum rx_msg_type type)
{
	for (size_t i = 0; i < n_msg_samples; i++)
		if (msg_samples[i].msg.type == type)
			return &msg_samples[i];
	return NULL;
}

static size_t from_hex(const char *hex, uint8_t *bytes)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		const char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};

		bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return n;
}

static size_t pack(const struct rx_msg *msg, uint8_t *buf)
{
	size_t len = SIZE_MAX;

	assert_int_equal(rx_msg_pack(msg, buf, PAYLOAD_MAX, &len), 0);
	return len;
}

/* A private copy of exactly @len bytes, so that a sanitizer sees a read behind it. */
static int unpack_exact(enum rx_msg_type type, const uint8_t *bytes, size_t len,
	struct rx_msg *msg_p, const char **why_p)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	int r = 0;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	r = rx_msg_unpack(type, 1, copy, len, &arena, msg_p, why_p);
	/* Nothing decoded may point into the packet, whose buffer is used again. */
	memset(copy, 0xee, len);
	free(copy);
	return r;
}

/* ---- the table of types ---- */

static void table_knows_every_type(void **state)
{
	size_t n = 0;

	(void)state;
	for (uint32_t type = 0; type < RX_MSG_TYPE_N; type++) {
		const struct rx_msg_info *info = rx_msg_info(type);

		assert_int_equal(info != NULL, sample_of((enum rx_msg_type)type) != NULL);
		if (!info)
			continue;
		n++;
		assert_in_range(info->fds_max, info->fds_min, RX_FRAME_FDS_MAX);
		/* The three ranges of numbers are the three directions. */
		if (type < 32)
			assert_int_not_equal(info->from & RX_FROM_CLIENT, 0);
		else if (type < 64)
			assert_int_equal(info->from, RX_FROM_ADMIN);
		else
			assert_int_equal(info->from, RX_FROM_DAEMON);
	}
	assert_int_equal(n, n_msg_samples);
	assert_null(rx_msg_info(RX_MSG_TYPE_N));
	assert_null(rx_msg_info(UINT32_MAX));
	assert_int_equal(rx_msg_info(RX_MSG_MEM_REPLY)->fds_min, 0);
	assert_int_equal(rx_msg_info(RX_MSG_MEM_REPLY)->fds_max, 1);
	assert_int_equal(rx_msg_info(RX_MSG_HELLO_REPLY)->fds_min, 3);
	assert_int_equal(rx_msg_info(RX_MSG_COMM_READY)->fds_min, 2);
	assert_false(rx_msg_info(RX_MSG_STALL_HINT)->needs_serial);
	assert_false(rx_msg_info(RX_MSG_OVER_BUDGET)->needs_serial);
	assert_true(rx_msg_info(RX_MSG_HELLO)->needs_serial);
}

/* ---- both ways ---- */

static void packs_to_golden_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_msg_samples; i++) {
		size_t n_golden = from_hex(msg_samples[i].golden, again);
		size_t len = pack(&msg_samples[i].msg, payload);

		assert_int_equal(len, n_golden);
		assert_memory_equal(payload, again, len);
		assert_int_equal(rx_msg_packed_size(&msg_samples[i].msg), len);
	}
}

static void golden_bytes_come_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_msg_samples; i++) {
		size_t len = from_hex(msg_samples[i].golden, payload);
		const char *why = "";
		struct rx_msg msg;

		memset(&msg, 0xee, sizeof(msg));
		memset(arena.bytes, 0xee, sizeof(arena.bytes));
		assert_int_equal(
			unpack_exact(msg_samples[i].msg.type, payload, len, &msg, &why), 0);
		assert_null(why);
		assert_int_equal(msg.type, msg_samples[i].msg.type);
		assert_int_equal(msg.serial, 1);
		assert_int_equal(pack(&msg, again), len);
		assert_memory_equal(payload, again, len);
	}
}

static void fields_have_their_values(void **state)
{
	const struct rx_msg *sent = &sample_of(RX_MSG_ADMIN_COMMS_REPLY)->msg;
	const struct rx_comm_info *comm = NULL;
	const char *why = NULL;
	struct rx_msg msg;
	size_t len = pack(sent, payload);

	(void)state;
	assert_int_equal(unpack_exact(sent->type, payload, len, &msg, &why), 0);
	assert_int_equal(msg.admin_comms_reply.n_comms, 1);
	assert_true(msg.admin_comms_reply.more);
	comm = &msg.admin_comms_reply.comms[0];
	assert_string_equal(comm->name, "dp");
	assert_int_equal(comm->n_members, 2);
	assert_string_equal(comm->members[1].op, "barrier");
	assert_int_equal(comm->members[1].queued_seq, 508);
	assert_true(comm->members[1].late);
	sent = &sample_of(RX_MSG_COMM_JOIN)->msg;
	len = pack(sent, payload);
	assert_int_equal(unpack_exact(sent->type, payload, len, &msg, &why), 0);
	assert_int_equal(msg.comm_join.id.len, RX_UNIQUE_ID_BYTES);
	assert_memory_equal(msg.comm_join.id.data, sent->comm_join.id.data, RX_UNIQUE_ID_BYTES);
	assert_int_equal(msg.comm_join.rank, 63);
}

static void negative_code_keeps_its_sign_on_the_wire(void **state)
{
	struct rx_msg msg = {.type = RX_MSG_ERROR, .error = {.code = -2}};
	/* Sign-extended to ten bytes, as protobuf does with int32. */
	const uint8_t golden[] = {8, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};

	(void)state;
	assert_int_equal(pack(&msg, payload), sizeof(golden));
	assert_memory_equal(payload, golden, sizeof(golden));
}

static void absent_is_zero_and_empty(void **state)
{
	struct rx_msg msg;
	const char *why = NULL;
	struct rx_msg nothing = {.type = RX_MSG_HELLO};

	(void)state;
	memset(&msg, 0xee, sizeof(msg));
	assert_int_equal(unpack_exact(RX_MSG_HELLO, payload, 0, &msg, &why), 0);
	assert_string_equal(msg.hello.program, "");
	assert_int_equal(msg.hello.version_max, 0);
	assert_int_equal(msg.hello.features, 0);
	/* NULL is "". */
	assert_int_equal(pack(&nothing, payload), 0);
	assert_int_equal(unpack_exact(RX_MSG_ADMIN_COMMS_REPLY, payload, 0, &msg, &why), 0);
	assert_int_equal(msg.admin_comms_reply.n_comms, 0);
	assert_false(msg.admin_comms_reply.more);
}

static void unknown_fields_are_skipped(void **state)
{
	/* Field 100: a later version's; then token = 5. */
	const uint8_t bytes[] = {0xa2, 0x06, 3, 'n', 'e', 'w', 8, 5};
	const char *why = NULL;
	struct rx_msg msg;

	(void)state;
	assert_int_equal(unpack_exact(RX_MSG_PING, bytes, sizeof(bytes), &msg, &why), 0);
	assert_int_equal(msg.ping.token, 5);
}

/* ---- limits of size ---- */

static void says_what_does_not_fit(void **state)
{
	size_t len = 4711;

	(void)state;
	for (size_t i = 0; i < n_msg_samples; i++) {
		size_t need = rx_msg_packed_size(&msg_samples[i].msg);

		len = 4711;
		memset(payload, 0xee, need + 1);
		if (need > 0) {
			assert_int_equal(rx_msg_pack(&msg_samples[i].msg, payload, need - 1, &len),
				RX_MSG_E_TOO_BIG);
			assert_int_equal(len, 4711);
			assert_int_equal(payload[0], 0xee);
		}
		assert_int_equal(rx_msg_pack(&msg_samples[i].msg, payload, need, &len), 0);
		assert_int_equal(len, need);
		assert_int_equal(payload[need], 0xee);
	}
}

static void no_type_no_packing(void **state)
{
	static const uint32_t types[] = {RX_MSG_NONE, 17, 31, RX_MSG_TYPE_N, UINT32_MAX};
	size_t len = 0;

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(types); i++) {
		struct rx_msg msg = {.type = (enum rx_msg_type)types[i]};
		const char *why = NULL;

		assert_int_equal(rx_msg_pack(&msg, payload, PAYLOAD_MAX, &len), RX_MSG_E_TOO_BIG);
		assert_int_equal(rx_msg_packed_size(&msg), SIZE_MAX);
		assert_int_equal(rx_msg_unpack(msg.type, 1, payload, 0, &arena, &msg, &why),
			RX_MSG_E_MALFORMED);
		assert_string_equal(why, "unknown message type");
	}
}

static void no_memory_no_packing(void **state)
{
	size_t len = 0;
	size_t size = 0;
	int r = 0;

	(void)state;
	fail_malloc = true;
	r = rx_msg_pack(&msg_samples[0].msg, payload, PAYLOAD_MAX, &len);
	size = rx_msg_packed_size(&msg_samples[0].msg);
	fail_malloc = false;
	assert_int_equal(r, -ENOMEM);
	assert_int_equal(size, SIZE_MAX);
}

static void impossible_list_is_not_packed(void **state)
{
	struct rx_session_info one = {.id = 1};
	struct rx_msg msg = {
		.type = RX_MSG_ADMIN_SESSIONS_REPLY,
		.admin_sessions_reply = {.sessions = &one, .n_sessions = SIZE_MAX},
	};

	(void)state;
	assert_int_equal(rx_msg_packed_size(&msg), SIZE_MAX);
}

/* Add entries as the daemon does; every page that is sent must be one that can be received. */
static void check_page(struct rx_msg *msg, size_t *n_p, size_t n_entries, size_t n_least)
{
	const char *why = NULL;
	struct rx_msg got;
	size_t len = 0;

	for (*n_p = 0; *n_p < n_entries; (*n_p)++)
		if (rx_msg_packed_size(msg) > PAYLOAD_MAX)
			break;
	if (rx_msg_packed_size(msg) > PAYLOAD_MAX)
		(*n_p)--;
	assert_in_range(*n_p, n_least, n_entries);
	len = pack(msg, payload);
	assert_int_equal(unpack_exact(msg->type, payload, len, &got, &why), 0);
	assert_int_equal(pack(&got, again), len);
	assert_memory_equal(payload, again, len);
}

#define MANY 2048u

static void pages_of_sessions_can_be_received(void **state)
{
	static struct rx_session_info sessions[MANY];
	struct rx_msg msg = {
		.type = RX_MSG_ADMIN_SESSIONS_REPLY,
		.admin_sessions_reply = {.sessions = sessions},
	};
	char name[RX_NAME_MAX + 1] = {0};

	(void)state;
	memset(name, 'n', RX_NAME_MAX);
	for (size_t i = 0; i < MANY; i++)
		sessions[i] = sample_of(RX_MSG_ADMIN_SESSIONS_REPLY)
				      ->msg.admin_sessions_reply.sessions[0];
	check_page(&msg, &msg.admin_sessions_reply.n_sessions, MANY, 64);
	/* The largest entries, */
	for (size_t i = 0; i < MANY; i++) {
		memset(&sessions[i], 0xff, sizeof(sessions[i]));
		sessions[i].program = name;
	}
	check_page(&msg, &msg.admin_sessions_reply.n_sessions, MANY, 64);
	/* and the smallest: those need the most memory for each byte. */
	memset(sessions, 0, sizeof(sessions));
	check_page(&msg, &msg.admin_sessions_reply.n_sessions, MANY, 256);
}

static void pages_of_communicators_can_be_received(void **state)
{
	static struct rx_rank_info ranks[RX_MAX_RANKS];
	static struct rx_comm_info comms[MANY];
	struct rx_msg msg = {
		.type = RX_MSG_ADMIN_COMMS_REPLY,
		.admin_comms_reply = {.comms = comms},
	};
	char name[RX_NAME_MAX + 1] = {0};

	(void)state;
	memset(name, 'n', RX_NAME_MAX);
	for (uint32_t i = 0; i < RX_MAX_RANKS; i++)
		ranks[i] = (struct rx_rank_info){.rank = i, .status = "missing"};
	for (size_t i = 0; i < MANY; i++)
		comms[i] = (struct rx_comm_info){
			.state = "forming",
			.n_ranks = RX_MAX_RANKS,
			.members = ranks,
			.n_members = RX_MAX_RANKS,
		};
	check_page(&msg, &msg.admin_comms_reply.n_comms, MANY, 8);
	for (uint32_t i = 0; i < RX_MAX_RANKS; i++) {
		memset(&ranks[i], 0xff, sizeof(ranks[i]));
		ranks[i].rank = i;
		ranks[i].late = true;
		ranks[i].status = "missing";
		ranks[i].op = "reduce_scatter of 18446744073709551615 bfloat16, premul_sum";
	}
	for (size_t i = 0; i < MANY; i++) {
		comms[i].name = name;
		comms[i].reason = name;
	}
	check_page(&msg, &msg.admin_comms_reply.n_comms, MANY, 4);
}

/* ---- hostile ---- */

static void empty_submessages_are_refused(void **state)
{
	static const enum rx_msg_type types[] = {
		RX_MSG_ADMIN_COMMS_REPLY, RX_MSG_ADMIN_SESSIONS_REPLY};

	(void)state;
	/* Field 1, length 0, thirty-two thousand times. */
	for (size_t i = 0; i < PAYLOAD_MAX; i++)
		payload[i] = i % 2 == 0 ? 0x0a : 0;
	for (size_t i = 0; i < RX_ARRAY_SIZE(types); i++) {
		const char *why = NULL;
		struct rx_msg msg = {.serial = 4711};

		assert_int_equal(
			unpack_exact(types[i], payload, PAYLOAD_MAX, &msg, &why), RX_MSG_E_TOO_BIG);
		assert_string_equal(why, "message needs too much memory");
		assert_int_equal(msg.serial, 4711);
		assert_true(arena.used <= RX_DECODE_ARENA);
	}
	/* And one level down: a communicator of empty ranks. */
	size_t inner = PAYLOAD_MAX - 4;
	const char *why = NULL;
	struct rx_msg msg;
	payload[0] = 0x0a;
	payload[1] = (uint8_t)(0x80 | (inner & 0x7f));
	payload[2] = (uint8_t)(0x80 | (inner >> 7 & 0x7f));
	payload[3] = (uint8_t)(inner >> 14);
	for (size_t i = 0; i < inner; i++)
		payload[4 + i] = i % 2 == 0 ? 0x32 : 0;
	assert_int_equal(unpack_exact(RX_MSG_ADMIN_COMMS_REPLY, payload, PAYLOAD_MAX, &msg, &why),
		RX_MSG_E_TOO_BIG);
}

static void unknown_fields_cannot_take_memory_without_limit(void **state)
{
	const char *why = NULL;
	struct rx_msg msg;

	(void)state;
	/* Field 15, a varint: protobuf-c keeps every one of them. */
	for (size_t i = 0; i < PAYLOAD_MAX; i++)
		payload[i] = i % 2 == 0 ? 0x78 : 1;
	assert_int_equal(
		unpack_exact(RX_MSG_PING, payload, PAYLOAD_MAX, &msg, &why), RX_MSG_E_TOO_BIG);
}

/* More and more entries: decoding, then our own lists, meet the end of the arena. */
static void memory_ends_cleanly_at_any_length(void **state)
{
	bool full = false;

	(void)state;
	for (size_t i = 0; i < PAYLOAD_MAX; i++)
		payload[i] = i % 2 == 0 ? 0x0a : 0;
	for (size_t n = 1; n < 2048; n++) {
		const char *why = NULL;
		struct rx_msg msg;
		int r = unpack_exact(RX_MSG_ADMIN_SESSIONS_REPLY, payload, 2 * n, &msg, &why);

		if (r == 0)
			assert_int_equal(msg.admin_sessions_reply.n_sessions, n);
		else
			assert_int_equal(r, RX_MSG_E_TOO_BIG);
		assert_false(full && r == 0);
		full = r != 0;
	}
	assert_true(full);
}

static void the_last_one_of_many_counts(void **state)
{
	/* program = "a", program = "b" */
	const uint8_t bytes[] = {0x2a, 1, 'a', 0x2a, 1, 'b'};
	const char *why = NULL;
	struct rx_msg msg;

	(void)state;
	assert_int_equal(unpack_exact(RX_MSG_HELLO, bytes, sizeof(bytes), &msg, &why), 0);
	assert_string_equal(msg.hello.program, "b");
}

/* Cut anywhere: refused, or a message of its own right; never a read behind the end. */
static void cut_messages_do_no_harm(void **state)
{
	size_t n_refused = 0;

	(void)state;
	for (size_t i = 0; i < n_msg_samples; i++) {
		size_t len = from_hex(msg_samples[i].golden, payload);

		for (size_t cut = 0; cut < len; cut++) {
			const char *why = NULL;
			struct rx_msg msg;
			int r = unpack_exact(msg_samples[i].msg.type, payload, cut, &msg, &why);

			assert_in_range(r, 0, RX_MSG_E_MALFORMED);
			assert_int_equal(r == 0, why == NULL);
			n_refused += r != 0;
		}
	}
	assert_true(n_refused > 100);
}

/* Any flipped bit: refused, or a message that can be packed and comes back the same. */
static void flipped_bits_do_no_harm(void **state)
{
	size_t n_refused = 0;

	(void)state;
	for (size_t i = 0; i < n_msg_samples; i++) {
		size_t len = from_hex(msg_samples[i].golden, payload);

		for (size_t bit = 0; bit < 8 * len; bit++) {
			const char *why = NULL;
			struct rx_msg msg;
			size_t n = 0;

			payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (unpack_exact(msg_samples[i].msg.type, payload, len, &msg, &why) != 0) {
				assert_non_null(why);
				n_refused++;
			} else {
				n = pack(&msg, again);
				assert_int_equal(unpack_exact(msg.type, again, n, &msg, &why), 0);
			}
			payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
	assert_true(n_refused > 100);
}

/* Bytes of one type read as any other. */
static void confused_types_do_no_harm(void **state)
{
	size_t n_refused = 0;

	(void)state;
	for (size_t i = 0; i < n_msg_samples; i++) {
		size_t len = from_hex(msg_samples[i].golden, payload);

		for (size_t j = 0; j < n_msg_samples; j++) {
			const char *why = NULL;
			struct rx_msg msg;
			int r = unpack_exact(msg_samples[j].msg.type, payload, len, &msg, &why);

			assert_int_equal(r == 0, why == NULL);
			n_refused += r != 0;
		}
	}
	assert_in_range(n_refused, 1, n_msg_samples * n_msg_samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_knows_every_type),
		cmocka_unit_test(packs_to_golden_bytes),
		cmocka_unit_test(golden_bytes_come_back),
		cmocka_unit_test(fields_have_their_values),
		cmocka_unit_test(negative_code_keeps_its_sign_on_the_wire),
		cmocka_unit_test(absent_is_zero_and_empty),
		cmocka_unit_test(unknown_fields_are_skipped),
		cmocka_unit_test(says_what_does_not_fit),
		cmocka_unit_test(no_type_no_packing),
		cmocka_unit_test(no_memory_no_packing),
		cmocka_unit_test(impossible_list_is_not_packed),
		cmocka_unit_test(pages_of_sessions_can_be_received),
		cmocka_unit_test(pages_of_communicators_can_be_received),
		cmocka_unit_test(empty_submessages_are_refused),
		cmocka_unit_test(unknown_fields_cannot_take_memory_without_limit),
		cmocka_unit_test(memory_ends_cleanly_at_any_length),
		cmocka_unit_test(the_last_one_of_many_counts),
		cmocka_unit_test(cut_messages_do_no_harm),
		cmocka_unit_test(flipped_bits_do_no_harm),
		cmocka_unit_test(confused_types_do_no_harm),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
