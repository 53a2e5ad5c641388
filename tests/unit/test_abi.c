/* SPDX-License-Identifier: MIT */
/*
 * Offsets and sizes of everything that two processes share, and the numbers that travel. A change
 * here is a change of protocol: raise its version, do not just edit the figure.
 */
#include "shm_util.h"

#include "../../shm/rx_base.h"
#include "../../shm/rx_clock.h"
#include "../../shm/rx_fabric_abi.h"
#include "../../shm/rx_result.h"
#include "../../shm/rx_ring_abi.h"

#define PIN_SIZE(type, bytes)  assert_int_equal(sizeof(type), bytes)
#define PIN_ALIGN(type, bytes) assert_int_equal(_Alignof(type), bytes)
#define PIN(type, member, offset, size)                                                            \
	do {                                                                                       \
		assert_int_equal(offsetof(type, member), offset);                                  \
		assert_int_equal(sizeof(((type *)0)->member), size);                               \
	} while (0)

static void test_rx_sqe(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_sqe, 64);
	PIN_ALIGN(struct rx_sqe, 8);
	PIN(struct rx_sqe, user_data, 0, 8);
	PIN(struct rx_sqe, member, 8, 4);
	PIN(struct rx_sqe, opno, 12, 2);
	PIN(struct rx_sqe, gate, 14, 2);
	PIN(struct rx_sqe, coll, 16, 1);
	PIN(struct rx_sqe, dtype, 17, 1);
	PIN(struct rx_sqe, op, 18, 1);
	PIN(struct rx_sqe, flags, 19, 1);
	PIN(struct rx_sqe, root, 20, 4);
	PIN(struct rx_sqe, count, 24, 8);
	PIN(struct rx_sqe, imm, 32, 8);
	PIN(struct rx_sqe, send_region, 40, 4);
	PIN(struct rx_sqe, recv_region, 44, 4);
	PIN(struct rx_sqe, send_offset, 48, 8);
	PIN(struct rx_sqe, recv_offset, 56, 8);
}

static void test_rx_cqe(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_cqe, 64);
	PIN_ALIGN(struct rx_cqe, 8);
	PIN(struct rx_cqe, user_data, 0, 8);
	PIN(struct rx_cqe, result, 8, 4);
	PIN(struct rx_cqe, peer_rank, 12, 4);
	PIN(struct rx_cqe, peer_pid, 16, 4);
	PIN(struct rx_cqe, opno, 20, 4);
	PIN(struct rx_cqe, peer_sig, 24, 8);
	PIN(struct rx_cqe, peer_count, 32, 8);
	PIN(struct rx_cqe, clash, 40, 1);
	PIN(struct rx_cqe, clash_rank, 41, 2);
	PIN(struct rx_cqe, clash_block, 43, 1);
	PIN(struct rx_cqe, reserved, 44, 4);
	PIN(struct rx_cqe, clash_count, 48, 16);
}

static void test_rx_ring_s(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_ring_s, 256);
	PIN_ALIGN(struct rx_ring_s, 64);
	PIN(struct rx_ring_s, sq_tail, 0, 8);
	PIN(struct rx_ring_s, cq_head, 64, 8);
	PIN(struct rx_ring_s, reserved, 128, 128);
}

static void test_rx_ring_d(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_ring_d, 256);
	PIN_ALIGN(struct rx_ring_d, 64);
	PIN(struct rx_ring_d, sq_head, 0, 8);
	PIN(struct rx_ring_d, need_wakeup, 8, 4);
	PIN(struct rx_ring_d, cq_tail, 64, 8);
	PIN(struct rx_ring_d, cq_event, 72, 4);
	PIN(struct rx_ring_d, closed, 76, 4);
	PIN(struct rx_ring_d, reserved, 128, 128);
}

static void test_rx_op_sig(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_op_sig, 16);
	PIN_ALIGN(struct rx_op_sig, 8);
	PIN(struct rx_op_sig, coll, 0, 1);
	PIN(struct rx_op_sig, dtype, 1, 1);
	PIN(struct rx_op_sig, op, 2, 1);
	PIN(struct rx_op_sig, flags, 3, 1);
	PIN(struct rx_op_sig, root, 4, 4);
	PIN(struct rx_op_sig, count, 8, 8);
}

static void test_rx_entry_bufs(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_entry_bufs, 64);
	PIN_ALIGN(struct rx_entry_bufs, 8);
	PIN(struct rx_entry_bufs, send_region, 0, 8);
	PIN(struct rx_entry_bufs, recv_region, 8, 8);
	PIN(struct rx_entry_bufs, send_offset, 16, 8);
	PIN(struct rx_entry_bufs, recv_offset, 24, 8);
	PIN(struct rx_entry_bufs, copied, 32, 8);
	PIN(struct rx_entry_bufs, over_budget, 40, 8);
	PIN(struct rx_entry_bufs, send_at, 48, 8);
	PIN(struct rx_entry_bufs, reach, 56, 8);
}

static void test_rx_entry(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_entry, 128);
	PIN_ALIGN(struct rx_entry, 128);
	PIN(struct rx_entry, seq, 0, 4);
	PIN(struct rx_entry, sleeper, 4, 4);
	PIN(struct rx_entry, sig, 8, 16);
	PIN(struct rx_entry, imm, 24, 8);
	PIN(struct rx_entry, bufs, 32, 64);
	PIN(struct rx_entry, payload, 32, 96);
}

static void test_rx_progress(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_progress, 128);
	PIN_ALIGN(struct rx_progress, 128);
	PIN(struct rx_progress, step, 0, 4);
	PIN(struct rx_progress, sleeper, 4, 4);
	PIN(struct rx_progress, refused, 8, 4);
}

static void test_rx_precision(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_precision, 32);
	PIN(struct rx_precision, flags, 0, 4);
	PIN(struct rx_precision, sample_every, 4, 4);
	PIN(struct rx_precision, budget_ppm, 8, 4);
	PIN(struct rx_precision, min_bytes, 16, 8);
	PIN(struct rx_precision, link_rate, 24, 8);
	PIN_SIZE(struct rx_precision_counts, 80);
	PIN(struct rx_precision_counts, n_ops, 0, 8);
	PIN(struct rx_precision_counts, worst_ppm, 72, 8);
}

static void test_rx_line(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_line, 512);
	PIN_ALIGN(struct rx_line, 128);
	PIN(struct rx_line, entry, 0, 256);
	PIN(struct rx_line, entry[1], 128, 128);
	PIN(struct rx_line, progress, 256, 128);
	PIN(struct rx_line, precision, 384, 80);
	PIN(struct rx_line, proof, 464, 24);
	PIN(struct rx_line, reserved, 488, 24);
}

static void test_rx_fabric_ctl(void **state)
{
	(void)state;
	PIN_SIZE(struct rx_fabric_ctl, 4032);
	PIN_ALIGN(struct rx_fabric_ctl, 64);
	PIN(struct rx_fabric_ctl, abort, 0, 4);
	PIN(struct rx_fabric_ctl, abort_rank, 4, 4);
	PIN(struct rx_fabric_ctl, abort_other, 8, 4);
	PIN(struct rx_fabric_ctl, n_ranks, 12, 4);
	PIN(struct rx_fabric_ctl, op_timeout_ns, 16, 8);
	PIN(struct rx_fabric_ctl, cores_shared, 24, 4);
	PIN(struct rx_fabric_ctl, spin_us, 28, 4);
	PIN(struct rx_fabric_ctl, mem_generation, 32, 8);
	PIN(struct rx_fabric_ctl, abort_sig, 40, 32);
	PIN(struct rx_fabric_ctl, one_user, 72, 4);
	PIN(struct rx_fabric_ctl, gpu, 76, 4);
	PIN(struct rx_fabric_ctl, status, 128, 256);
	PIN(struct rx_fabric_ctl, pid, 384, 256);
	PIN(struct rx_fabric_ctl, session, 640, 512);
	PIN(struct rx_fabric_ctl, precision, 1152, 32);
	PIN(struct rx_fabric_ctl, over_budget, 1184, 4);
	PIN(struct rx_fabric_ctl, tuning, 1192, 2808);
}

static void test_constants(void **state)
{
	(void)state;
	assert_int_equal(RX_MAX_RANKS, 64);
	assert_int_equal(RX_RING_SQ_ENTRIES_DEFAULT, 256);
	assert_int_equal(RX_RING_ENTRIES_MAX, 4096);
	assert_int_equal(RX_RING_HEAD_BYTES, 256);
	assert_int_equal(RX_REGION_NONE, 0);
	assert_int_equal(RX_ENTRY_PAYLOAD, 96);
	assert_int_equal(RX_FLAT_BYTES, 65536);
	assert_int_equal(RX_CHUNK_BYTES, 65536);
	assert_int_equal(RX_STAGE_IN, 3);
	assert_int_equal(RX_STAGE_OUT, 3);
	assert_int_equal(RX_STAGE_RANK_SIZE, 524288);
}

static void test_enums(void **state)
{
	(void)state;
	assert_int_equal(RX_MEMBER_ALIVE, 0);
	assert_int_equal(RX_MEMBER_LEFT, 1);
	assert_int_equal(RX_MEMBER_DEAD, 2);
	assert_int_equal(RX_ABORT_NONE, 0);
	assert_int_equal(RX_ABORT_USER, 1);
	assert_int_equal(RX_ABORT_PEER_LOST, 2);
	assert_int_equal(RX_ABORT_MISMATCH, 3);
	assert_int_equal(RX_ABORT_DEADLINE, 4);
	assert_int_equal(RX_ABORT_SHUTDOWN, 5);
	assert_int_equal(RX_ABORT_ERROR, 6);
	assert_int_equal(RX_ABORT_DEVICE, 7);
	assert_int_equal(RX_ABORT_N, 8);
}

static void test_results(void **state)
{
	static const int in_order[] = {RX_OK, RX_ERR_INVALID, RX_ERR_NO_DAEMON, RX_ERR_DAEMON_LOST,
		RX_ERR_PEER_LOST, RX_ERR_MISMATCH, RX_ERR_ABORTED, RX_ERR_TIMEOUT, RX_ERR_LIMIT,
		RX_ERR_NO_MEMORY, RX_ERR_DENIED, RX_ERR_VERSION, RX_ERR_FORKED, RX_ERR_BUSY,
		RX_ERR_SYSTEM, RX_ERR_INTERNAL, RX_ERR_N};

	(void)state;
	for (unsigned int i = 0; i < RX_ARRAY_SIZE(in_order); i++)
		assert_int_equal(in_order[i], i);
}

static void test_checked_arithmetic(void **state)
{
	uint64_t x = 99;

	(void)state;
	assert_true(rx_add_u64(UINT64_MAX - 1, 1, &x));
	assert_true(x == UINT64_MAX);
	assert_false(rx_add_u64(UINT64_MAX, 1, &x));
	assert_true(rx_mul_u64(1ull << 32, (1ull << 32) - 1, &x));
	assert_true(x == 0xffffffff00000000ull);
	assert_false(rx_mul_u64(1ull << 32, 1ull << 32, &x));
	assert_true(x == 0xffffffff00000000ull);
	assert_true(rx_range_ok(0, 0, 0));
	assert_true(rx_range_ok(3, 7, 10));
	assert_false(rx_range_ok(3, 8, 10));
	assert_false(rx_range_ok(11, 0, 10));
	assert_false(rx_range_ok(UINT64_MAX, 2, 10));
	assert_false(rx_range_ok(2, UINT64_MAX, 10));
	assert_int_equal(rx_align_up(0, 4096), 0);
	assert_int_equal(rx_align_up(1, 4096), 4096);
	assert_int_equal(rx_align_up(4096, 4096), 4096);
	assert_int_equal(rx_min_u64(1, 2), 1);
	assert_int_equal(rx_max_u64(1, 2), 2);
}

static void test_deadlines(void **state)
{
	uint64_t now = rx_now_ns();
	uint64_t soon = rx_deadline_ns(RX_NS_PER_MS);

	(void)state;
	assert_true(soon >= now + RX_NS_PER_MS);
	assert_true(soon < now + RX_NS_PER_MS + 10 * RX_NS_PER_SEC);
	assert_true(rx_deadline_ns(RX_FOREVER) == RX_FOREVER);
	assert_true(rx_deadline_ns(RX_FOREVER - 1) == RX_FOREVER);
	assert_true(rx_now_ns() >= now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rx_sqe),
		cmocka_unit_test(test_rx_cqe),
		cmocka_unit_test(test_rx_ring_s),
		cmocka_unit_test(test_rx_ring_d),
		cmocka_unit_test(test_rx_op_sig),
		cmocka_unit_test(test_rx_entry_bufs),
		cmocka_unit_test(test_rx_entry),
		cmocka_unit_test(test_rx_progress),
		cmocka_unit_test(test_rx_precision),
		cmocka_unit_test(test_rx_line),
		cmocka_unit_test(test_rx_fabric_ctl),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_enums),
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_checked_arithmetic),
		cmocka_unit_test(test_deadlines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
