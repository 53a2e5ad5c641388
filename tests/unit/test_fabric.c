/* SPDX-License-Identifier: MIT */
#include "shm_region.h"

#include "../../shm/rx_clock.h"
#include "../../shm/rx_fabric.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define LONG_NS (20 * RX_NS_PER_SEC)

struct memory {
	struct region ctl;
	struct rx_map arena;
	int fd;
	struct rx_fabric fabric;
};

static void memory_open(struct memory *m, uint32_t n_ranks)
{
	uint64_t bytes = rx_fabric_arena_bytes(n_ranks);

	*m = (struct memory){.fd = -1};
	region_open(&m->ctl, "rx-fabric-ctl", sizeof(struct rx_fabric_ctl));
	assert_int_equal(rx_memfd_new("rx-fabric", bytes, RX_MEMFD_SHARED, &m->fd), 0);
	assert_int_equal(rx_map_open(&m->arena, m->fd, bytes, RX_MAP_RW), 0);
	assert_int_equal(rx_fabric_init(&m->fabric, &m->ctl.ro, &m->arena, n_ranks), 0);
}

static void memory_close(struct memory *m)
{
	region_close(&m->ctl);
	rx_map_close(&m->arena);
	close(m->fd);
}

static int setup(void **state)
{
	static struct memory m;

	memory_open(&m, 3);
	*state = &m;
	return 0;
}

static int teardown(void **state)
{
	memory_close(*state);
	return 0;
}

static void test_sizes(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= RX_MAX_RANKS; n++) {
		uint64_t lines = rx_fabric_lines_bytes(n);

		assert_true(lines >= n * sizeof(struct rx_line));
		assert_int_equal(lines % 4096, 0);
		assert_true(lines < n * sizeof(struct rx_line) + 4096);
		assert_int_equal(
			rx_fabric_arena_bytes(n), lines + (uint64_t)n * RX_STAGE_RANK_SIZE);
	}
	/* No overflow whatever the number. */
	assert_true(rx_fabric_arena_bytes(UINT32_MAX) > rx_fabric_lines_bytes(UINT32_MAX));
}

static void test_init_refuses(void **state)
{
	struct memory *m = *state;
	struct rx_fabric fabric;
	struct rx_map none = RX_MAP_INIT;
	struct rx_map lines = m->arena;
	struct rx_map ctl = m->ctl.ro;

	assert_int_equal(rx_fabric_init(&fabric, &ctl, &lines, 0), -EINVAL);
	assert_int_equal(rx_fabric_init(&fabric, &ctl, &lines, RX_MAX_RANKS + 1), -EINVAL);
	assert_int_equal(rx_fabric_init(&fabric, &ctl, &lines, UINT32_MAX), -EINVAL);
	assert_int_equal(rx_fabric_init(&fabric, &none, &lines, 3), -EINVAL);
	assert_int_equal(rx_fabric_init(&fabric, &ctl, &none, 3), -EINVAL);
	ctl.bytes = sizeof(struct rx_fabric_ctl) - 1;
	assert_int_equal(rx_fabric_init(&fabric, &ctl, &lines, 3), -EINVAL);
	ctl = m->ctl.ro;
	lines.bytes = rx_fabric_lines_bytes(3) - 1;
	assert_int_equal(rx_fabric_init(&fabric, &ctl, &lines, 3), -EINVAL);
	/* The daemon maps the lines alone and has no staging. */
	lines.bytes = rx_fabric_arena_bytes(3) - 1;
	assert_int_equal(rx_fabric_init(&fabric, &ctl, &lines, 3), 0);
	assert_null(fabric.staging);
	assert_ptr_equal(fabric.lines, m->arena.addr);
	assert_non_null(m->fabric.staging);
}

/* Every buffer lies in the arena behind the lines, page-aligned, and touches no other one. */
static void test_staging(void **state)
{
	struct memory *m = *state;
	const uint8_t *base = m->arena.addr;
	const uint8_t *expected = base + rx_fabric_lines_bytes(3);

	for (uint32_t rank = 0; rank < 3; rank++) {
		for (uint32_t seq = 0; seq < 2; seq++) {
			assert_ptr_equal(rx_fabric_flat(&m->fabric, rank, seq), expected);
			assert_ptr_equal(
				rx_fabric_flat(&m->fabric, rank, seq + 0xfffffffe), expected);
			expected += RX_FLAT_BYTES;
		}
		for (uint32_t i = 0; i < RX_STAGE_IN + RX_STAGE_OUT; i++) {
			assert_ptr_equal(rx_fabric_chunk(&m->fabric, rank, i), expected);
			expected += RX_CHUNK_BYTES;
		}
	}
	assert_ptr_equal(expected, base + rx_fabric_arena_bytes(3));
	assert_int_equal((uintptr_t)rx_fabric_chunk(&m->fabric, 2, 5) % 4096, 0);
	memset(rx_fabric_chunk(&m->fabric, 2, 5), 1, RX_CHUNK_BYTES);
}

static void test_seq_reached(void **state)
{
	(void)state;
	assert_true(rx_seq_reached(5, 5));
	assert_true(rx_seq_reached(6, 5));
	assert_false(rx_seq_reached(4, 5));
	assert_false(rx_seq_reached(0xffffffff, 0));
	assert_true(rx_seq_reached(0, 0xffffffff));
	assert_true(rx_seq_reached(1, 0xfffffffe));
	assert_false(rx_seq_reached(0xfffffffe, 1));
	assert_true(rx_seq_reached(0x7fffffff, 0));
	assert_false(rx_seq_reached(0x80000000, 0));
	assert_true(rx_seq_reached(0x80000000, 0x7fffffff));
}

static void test_publish(void **state)
{
	struct memory *m = *state;

	assert_false(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 1, 1));
	rx_fabric_publish(&m->fabric, 1, 1);
	assert_true(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 1, 1));
	assert_false(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 1, 2));
	assert_false(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 0, 1));
	assert_false(rx_fabric_reached(&m->fabric, RX_WAIT_STEP, 1, 1));
	rx_fabric_publish(&m->fabric, 1, 2);
	/* The older entry stays as it is. */
	assert_true(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 1, 1));
	assert_true(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 1, 2));
	assert_false(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 1, 3));
	rx_fabric_step(&m->fabric, 2, 7);
	assert_true(rx_fabric_reached(&m->fabric, RX_WAIT_STEP, 2, 6));
	assert_true(rx_fabric_reached(&m->fabric, RX_WAIT_STEP, 2, 7));
	assert_false(rx_fabric_reached(&m->fabric, RX_WAIT_STEP, 2, 8));
	assert_int_equal(m->fabric.lines[1].entry[1].seq, 1);
	assert_int_equal(m->fabric.lines[1].entry[0].seq, 2);
	assert_int_equal(m->fabric.lines[2].progress.step, 7);
}

static void test_counters_wrap(void **state)
{
	struct memory *m = *state;
	uint32_t seq = 0xfffffff0;

	atomic_store(&m->fabric.lines[0].entry[0].seq, seq);
	atomic_store(&m->fabric.lines[0].entry[1].seq, seq - 1);
	for (unsigned int i = 0; i < 64; i++) {
		seq++;
		assert_false(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 0, seq));
		rx_fabric_publish(&m->fabric, 0, seq);
		assert_true(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 0, seq));
		assert_true(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 0, seq - 1));
		assert_int_equal(rx_fabric_view(&m->fabric, 0).seq, seq);
	}
	assert_true(seq < 64);
}

static void test_view(void **state)
{
	struct memory *m = *state;
	struct rx_line *line = &m->fabric.lines[2];
	struct rx_line_view view = rx_fabric_view(&m->fabric, 2);

	assert_int_equal(view.seq, 0);
	line->entry[1].sig = (struct rx_op_sig){.coll = 1, .dtype = 2, .count = 11};
	rx_fabric_publish(&m->fabric, 2, 1);
	rx_fabric_step(&m->fabric, 2, 5);
	view = rx_fabric_view(&m->fabric, 2);
	assert_int_equal(view.seq, 1);
	assert_int_equal(view.step, 5);
	assert_int_equal(view.sig.count, 11);
	line->entry[0].sig = (struct rx_op_sig){.coll = 3, .dtype = 4, .root = 6, .count = 22};
	rx_fabric_publish(&m->fabric, 2, 2);
	view = rx_fabric_view(&m->fabric, 2);
	assert_int_equal(view.seq, 2);
	assert_int_equal(view.sig.coll, 3);
	assert_int_equal(view.sig.root, 6);
	assert_int_equal(view.sig.count, 22);
}

static void test_abort_once(void **state)
{
	struct memory *m = *state;
	const struct rx_op_sig sig[2] = {{.count = 1}, {.count = 2}};
	struct rx_fabric_ctl *ctl = m->ctl.rw.addr;

	assert_true(rx_fabric_ctl_abort(ctl, RX_ABORT_MISMATCH, 1, 2, sig));
	assert_false(rx_fabric_ctl_abort(ctl, RX_ABORT_USER, 0, UINT32_MAX, NULL));
	assert_int_equal(m->fabric.ctl->abort, RX_ABORT_MISMATCH);
	assert_int_equal(m->fabric.ctl->abort_rank, 1);
	assert_int_equal(m->fabric.ctl->abort_other, 2);
	assert_int_equal(m->fabric.ctl->abort_sig[0].count, 1);
	assert_int_equal(m->fabric.ctl->abort_sig[1].count, 2);
}

static void test_abort_without_sig(void **state)
{
	struct memory *m = *state;

	assert_true(rx_fabric_ctl_abort(m->ctl.rw.addr, RX_ABORT_USER, 2, UINT32_MAX, NULL));
	assert_int_equal(m->fabric.ctl->abort, RX_ABORT_USER);
	assert_int_equal(m->fabric.ctl->abort_sig[0].count, 0);
}

/* ---- sleeping ---- */

static void test_sleep_bounds(void **state)
{
	struct memory *m = *state;
	uint64_t start = rx_now_ns();

	for (enum rx_wait_what what = RX_WAIT_ENTRY; what <= RX_WAIT_STEP; what++) {
		start = rx_now_ns();
		rx_fabric_sleep(&m->fabric, 0, what, 1, 9, 20 * RX_NS_PER_MS);
		assert_true(rx_now_ns() - start >= 20 * RX_NS_PER_MS);
	}
	rx_fabric_publish(&m->fabric, 1, 9);
	rx_fabric_step(&m->fabric, 1, 9);
	start = rx_now_ns();
	rx_fabric_sleep(&m->fabric, 0, RX_WAIT_ENTRY, 1, 9, LONG_NS);
	rx_fabric_sleep(&m->fabric, 0, RX_WAIT_STEP, 1, 9, LONG_NS);
	assert_true(rx_now_ns() - start < LONG_NS / 2);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(m->fabric.lines[0].entry[i].sleeper, 0);
	assert_int_equal(m->fabric.lines[0].progress.sleeper, 0);
}

struct waker {
	struct memory *m;
	bool hostile; /* writes a word that says nothing sensible first */
};

static void *waker_thread(void *arg)
{
	const struct waker *waker = arg;
	const struct rx_fabric *fabric = &waker->m->fabric;

	/* Only a rank that says it sleeps is woken. */
	while (!atomic_load(&fabric->lines[0].entry[1].sleeper))
		usleep(1000);
	usleep(20000);
	if (waker->hostile)
		atomic_store(&fabric->lines[1].entry[1].seq, 0x80000001u);
	rx_fabric_wake_all(fabric);
	return NULL;
}

static void check_woken(struct memory *m, bool hostile)
{
	struct waker waker = {.m = m, .hostile = hostile};
	uint64_t start = rx_now_ns();
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, waker_thread, &waker), 0);
	rx_fabric_sleep(&m->fabric, 0, RX_WAIT_ENTRY, 1, 1, LONG_NS);
	assert_true(rx_now_ns() - start < LONG_NS / 2);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(rx_fabric_reached(&m->fabric, RX_WAIT_ENTRY, 1, 1));
}

static void test_woken_for_nothing(void **state)
{
	check_woken(*state, false);
	check_woken(*state, true);
}

/*
 * N ranks go through ops as the inline executor does: fill the entry, publish, wait for all,
 * read all; then a step and a wait for it. Nobody spins, so each wait is the handshake.
 */
struct dance {
	struct memory m;
	uint32_t n_ranks;
	uint32_t n_ops;
	uint32_t first;
};

struct dancer {
	struct dance *dance;
	uint32_t rank;
	const char *complaint;
};

static const char *dance_wait(const struct dancer *dancer, enum rx_wait_what what, uint32_t target)
{
	const struct dance *dance = dancer->dance;
	const struct rx_fabric *fabric = &dance->m.fabric;

	for (uint32_t peer = 0; peer < dance->n_ranks; peer++) {
		while (peer != dancer->rank && !rx_fabric_reached(fabric, what, peer, target)) {
			uint64_t start = rx_now_ns();

			rx_fabric_sleep(fabric, dancer->rank, what, peer, target, LONG_NS);
			if (rx_now_ns() - start >= LONG_NS / 2)
				return "a wake-up was lost";
		}
	}
	return NULL;
}

static const char *dance_op(const struct dancer *dancer, uint32_t seq)
{
	const struct dance *dance = dancer->dance;
	const struct rx_fabric *fabric = &dance->m.fabric;
	struct rx_entry *mine = &fabric->lines[dancer->rank].entry[seq & 1];
	const char *complaint = NULL;

	mine->imm = (uint64_t)seq * 100 + dancer->rank;
	memset(mine->payload, (int)(seq + dancer->rank), sizeof(mine->payload));
	rx_fabric_publish(fabric, dancer->rank, seq);
	complaint = dance_wait(dancer, RX_WAIT_ENTRY, seq);
	for (uint32_t peer = 0; !complaint && peer < dance->n_ranks; peer++) {
		const struct rx_entry *entry = &fabric->lines[peer].entry[seq & 1];

		if (entry->imm != (uint64_t)seq * 100 + peer)
			complaint = "an entry was read before it was filled, or after its time";
		if (entry->payload[RX_ENTRY_PAYLOAD - 1] != (uint8_t)(seq + peer))
			complaint = "a payload was read before it was filled, or after its time";
	}
	/* Every other op has a step, so that both kinds of words are slept on in any order. */
	if (!complaint && seq % 3 == 0) {
		rx_fabric_step(fabric, dancer->rank, seq);
		complaint = dance_wait(dancer, RX_WAIT_STEP, seq);
	}
	return complaint;
}

static void *dancer_thread(void *arg)
{
	struct dancer *dancer = arg;
	const struct dance *dance = dancer->dance;

	for (uint32_t i = 0; i < dance->n_ops && !dancer->complaint; i++)
		dancer->complaint = dance_op(dancer, dance->first + i);
	return NULL;
}

static int dancer_child(void *arg)
{
	struct dancer *dancer = arg;

	(void)dancer_thread(dancer);
	if (dancer->complaint)
		(void)fprintf(stderr, "rank %u: %s\n", dancer->rank, dancer->complaint);
	return dancer->complaint != NULL;
}

static void dance_open(struct dance *dance, uint32_t n_ranks, uint32_t n_ops, uint32_t first)
{
	*dance = (struct dance){.n_ranks = n_ranks, .n_ops = n_ops, .first = first};
	memory_open(&dance->m, n_ranks);
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		struct rx_line *line = &dance->m.fabric.lines[rank];

		atomic_store(&line->entry[0].seq, (first - 1) & ~1u);
		atomic_store(&line->entry[1].seq, (first - 2) | 1u);
		atomic_store(&line->progress.step, first - 1);
	}
}

static void dance_threads(uint32_t n_ranks, uint32_t n_ops, uint32_t first)
{
	struct dance dance;
	struct dancer dancers[8];
	pthread_t threads[8];

	dance_open(&dance, n_ranks, n_ops, first);
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		dancers[rank] = (struct dancer){.dance = &dance, .rank = rank};
		assert_int_equal(
			pthread_create(&threads[rank], NULL, dancer_thread, &dancers[rank]), 0);
	}
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		assert_int_equal(pthread_join(threads[rank], NULL), 0);
		assert_string_equal(dancers[rank].complaint ? dancers[rank].complaint : "", "");
	}
	memory_close(&dance.m);
}

static void dance_processes(uint32_t n_ranks, uint32_t n_ops, uint32_t first)
{
	struct dance dance;
	struct dancer dancers[8];
	pid_t pids[8];

	dance_open(&dance, n_ranks, n_ops, first);
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		dancers[rank] = (struct dancer){.dance = &dance, .rank = rank};
		pids[rank] = child_start(dancer_child, &dancers[rank]);
	}
	for (uint32_t rank = 0; rank < n_ranks; rank++)
		assert_int_equal(child_wait(pids[rank]), 0);
	memory_close(&dance.m);
}

static void test_dance_threads(void **state)
{
	(void)state;
	dance_threads(2, 20000, 1);
	dance_threads(2, 20000, 0xffffffff - 9999);
	dance_threads(5, 2000, 0xffffffff - 999);
}

static void test_dance_processes(void **state)
{
	(void)state;
	dance_processes(2, 20000, 0xffffffff - 9999);
	dance_processes(6, 2000, 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sizes),
		TEST(test_init_refuses),
		TEST(test_staging),
		TEST(test_seq_reached),
		TEST(test_publish),
		TEST(test_counters_wrap),
		TEST(test_view),
		TEST(test_abort_once),
		TEST(test_abort_without_sig),
		TEST(test_sleep_bounds),
		TEST(test_woken_for_nothing),
		cmocka_unit_test(test_dance_threads),
		cmocka_unit_test(test_dance_processes),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
