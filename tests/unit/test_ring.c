/* SPDX-License-Identifier: MIT */
#include "shm_region.h"

#include "../../shm/rx_clock.h"
#include "../../shm/rx_ring.h"
#include "../../shm/rx_wake.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#define ENTRIES 8u
#define LONG_NS (20 * RX_NS_PER_SEC)

/* Both ends of a session, each with the maps that it has in real life. */
struct pair {
	struct region s;
	struct region d;
	struct rx_ring client;
	struct rx_ring daemon;
};

static void pair_open(struct pair *pair, uint32_t entries)
{
	region_open(&pair->s, "rx-ring-s", rx_ring_s_bytes(entries));
	region_open(&pair->d, "rx-ring-d", rx_ring_d_bytes(entries));
	assert_int_equal(rx_ring_init(&pair->client, &pair->s.rw, &pair->d.ro, entries), 0);
	assert_int_equal(rx_ring_init(&pair->daemon, &pair->s.ro, &pair->d.rw, entries), 0);
}

/*
 * Both ends on the same addresses: ThreadSanitizer knows memory by address, and would take two
 * maps of a file for different memory, where nothing can race.
 */
static void pair_share_maps(struct pair *pair, uint32_t entries)
{
	assert_int_equal(rx_ring_init(&pair->client, &pair->s.rw, &pair->d.rw, entries), 0);
	assert_int_equal(rx_ring_init(&pair->daemon, &pair->s.rw, &pair->d.rw, entries), 0);
}

static void pair_close(struct pair *pair)
{
	region_close(&pair->s);
	region_close(&pair->d);
}

static int setup(void **state)
{
	static struct pair pair;

	pair_open(&pair, ENTRIES);
	*state = &pair;
	return 0;
}

static int teardown(void **state)
{
	pair_close(*state);
	return 0;
}

static int submit(struct pair *pair, uint64_t user_data)
{
	struct rx_sqe sqe = {.user_data = user_data, .count = ~user_data};
	bool wake = false;

	return rx_ring_submit(&pair->client, &sqe, &wake);
}

static void assert_take(struct pair *pair, uint64_t user_data)
{
	struct rx_sqe sqe = {0};

	assert_int_equal(rx_ring_take(&pair->daemon, &sqe), 1);
	assert_true(sqe.user_data == user_data);
	assert_true(sqe.count == ~user_data);
}

static int complete(struct pair *pair, uint64_t user_data)
{
	struct rx_cqe cqe = {.user_data = user_data, .peer_count = ~user_data};

	return rx_ring_complete(&pair->daemon, &cqe);
}

static void assert_reap(struct pair *pair, uint64_t user_data)
{
	struct rx_cqe cqe = {0};

	assert_true(rx_ring_reap(&pair->client, &cqe));
	assert_true(cqe.user_data == user_data);
	assert_true(cqe.peer_count == ~user_data);
}

static void test_geometry(void **state)
{
	struct pair *pair = *state;
	static const uint32_t bad[] = {0, 1, 3, 6, 12, 4095, 8192, 1u << 31, UINT32_MAX};
	struct rx_map small = pair->s.rw;
	struct rx_ring ring;

	assert_int_equal(rx_ring_s_bytes(256), 256 + 256 * 64);
	assert_int_equal(rx_ring_d_bytes(256), 256 + 512 * 64);
	for (unsigned int i = 0; i < RX_ARRAY_SIZE(bad); i++)
		assert_int_equal(rx_ring_init(&ring, &pair->s.rw, &pair->d.rw, bad[i]), -EINVAL);
	small.bytes = rx_ring_s_bytes(ENTRIES) - 1;
	assert_int_equal(rx_ring_init(&ring, &small, &pair->d.rw, ENTRIES), -EINVAL);
	small.bytes = rx_ring_d_bytes(ENTRIES) - 1;
	assert_int_equal(rx_ring_init(&ring, &pair->s.rw, &small, ENTRIES), -EINVAL);
	small = RX_MAP_INIT;
	assert_int_equal(rx_ring_init(&ring, &small, &pair->d.rw, ENTRIES), -EINVAL);
	assert_int_equal(rx_ring_init(&ring, &pair->s.rw, &pair->d.rw, 2), 0);
	assert_int_equal(ring.cq_entries, 4);
}

static void test_order_and_full(void **state)
{
	struct pair *pair = *state;
	struct rx_sqe sqe;

	assert_int_equal(rx_ring_take(&pair->daemon, &sqe), 0);
	for (uint64_t i = 0; i < ENTRIES; i++)
		assert_int_equal(submit(pair, i), 0);
	assert_int_equal(submit(pair, 99), -EAGAIN);
	assert_take(pair, 0);
	/* Taken, but the client has not been told. */
	assert_int_equal(submit(pair, 99), -EAGAIN);
	rx_ring_publish_head(&pair->daemon);
	assert_int_equal(submit(pair, ENTRIES), 0);
	assert_int_equal(submit(pair, 99), -EAGAIN);
	for (uint64_t i = 1; i <= ENTRIES; i++)
		assert_take(pair, i);
	assert_int_equal(rx_ring_take(&pair->daemon, &sqe), 0);
}

static void test_completions(void **state)
{
	struct pair *pair = *state;
	struct rx_cqe cqe;
	uint32_t event = rx_ring_event(&pair->client);

	assert_false(rx_ring_reap(&pair->client, &cqe));
	for (uint64_t i = 0; i < 2 * ENTRIES; i++)
		assert_int_equal(complete(pair, i), 0);
	assert_int_equal(complete(pair, 99), -ENOSPC);
	/* Not announced yet. */
	assert_false(rx_ring_reap(&pair->client, &cqe));
	assert_int_equal(rx_ring_event(&pair->client), event);
	rx_ring_announce(&pair->daemon);
	assert_int_equal(rx_ring_event(&pair->client), event + 1);
	assert_reap(pair, 0);
	assert_int_equal(complete(pair, 2 * ENTRIES), 0);
	assert_int_equal(complete(pair, 99), -ENOSPC);
	rx_ring_announce(&pair->daemon);
	for (uint64_t i = 1; i <= 2 * ENTRIES; i++)
		assert_reap(pair, i);
	assert_false(rx_ring_reap(&pair->client, &cqe));
}

/* The daemon's copy is the entry as it was; what the client does to it later does not matter. */
static void test_copied_once(void **state)
{
	struct pair *pair = *state;
	struct rx_sqe sqe = {0};

	assert_int_equal(submit(pair, 5), 0);
	assert_int_equal(rx_ring_take(&pair->daemon, &sqe), 1);
	memset(pair->client.sqes, 0xff, ENTRIES * sizeof(sqe));
	assert_true(sqe.user_data == 5);
	assert_ptr_not_equal(&sqe, pair->daemon.sqes);
}

/* Indices that the client can store but never come to. */
static void test_hostile_client(void **state)
{
	struct pair *pair = *state;
	static const uint64_t bad_tails[] = {
		ENTRIES + 1, 1000, 1ull << 32, 1ull << 63, UINT64_MAX - 8, UINT64_MAX};
	static const uint64_t bad_heads[] = {1, 17, 1ull << 32, 1ull << 63};
	struct rx_ring_s *s = pair->s.rw.addr;
	struct rx_sqe sqe;

	for (unsigned int i = 0; i < RX_ARRAY_SIZE(bad_tails); i++) {
		atomic_store(&s->sq_tail, bad_tails[i]);
		assert_int_equal(rx_ring_take(&pair->daemon, &sqe), -EPROTO);
		assert_true(rx_ring_prepare_sleep(&pair->daemon));
	}
	atomic_store(&s->sq_tail, 2);
	assert_int_equal(rx_ring_take(&pair->daemon, &sqe), 1);
	/* Backwards. */
	atomic_store(&s->sq_tail, 0);
	assert_int_equal(rx_ring_take(&pair->daemon, &sqe), -EPROTO);
	for (unsigned int i = 0; i < RX_ARRAY_SIZE(bad_heads); i++) {
		atomic_store(&s->cq_head, bad_heads[i]);
		assert_int_equal(complete(pair, 0), -EPROTO);
	}
	/* An impossible distance backwards is a lie too, a possible one is only late. */
	atomic_store(&s->cq_head, UINT64_MAX - 2 * ENTRIES);
	assert_int_equal(complete(pair, 0), -EPROTO);
	atomic_store(&s->cq_head, UINT64_MAX - 2 * ENTRIES + 1);
	assert_int_equal(complete(pair, 0), -ENOSPC);
}

static void test_broken_daemon(void **state)
{
	struct pair *pair = *state;
	struct rx_ring_d *d = pair->d.rw.addr;
	struct rx_cqe cqe;

	atomic_store(&d->sq_head, 1);
	assert_int_equal(submit(pair, 0), -EAGAIN);
	atomic_store(&d->sq_head, UINT64_MAX - ENTRIES);
	assert_int_equal(submit(pair, 0), -EAGAIN);
	atomic_store(&d->cq_tail, 2 * ENTRIES + 1);
	assert_false(rx_ring_reap(&pair->client, &cqe));
	atomic_store(&d->cq_tail, UINT64_MAX);
	assert_false(rx_ring_reap(&pair->client, &cqe));
}

static void start_at(struct pair *pair, uint64_t position)
{
	struct rx_ring_s *s = pair->s.rw.addr;
	struct rx_ring_d *d = pair->d.rw.addr;

	atomic_store(&s->sq_tail, position);
	atomic_store(&s->cq_head, position);
	atomic_store(&d->sq_head, position);
	atomic_store(&d->cq_tail, position);
	pair->client.sq_pos = position;
	pair->client.cq_pos = position;
	pair->daemon.sq_pos = position;
	pair->daemon.cq_pos = position;
}

static void test_indices_wrap(void **state)
{
	struct pair *pair = *state;
	static const uint64_t starts[] = {UINT32_MAX - 9ull, UINT64_MAX - 9};

	for (unsigned int k = 0; k < RX_ARRAY_SIZE(starts); k++) {
		start_at(pair, starts[k]);
		for (uint64_t i = 0; i < 40; i++) {
			assert_int_equal(submit(pair, i), 0);
			if (i >= ENTRIES - 1) {
				assert_int_equal(submit(pair, 99), -EAGAIN);
				assert_take(pair, i - (ENTRIES - 1));
				rx_ring_publish_head(&pair->daemon);
			}
			assert_int_equal(complete(pair, i), 0);
			rx_ring_announce(&pair->daemon);
			assert_reap(pair, i);
		}
	}
}

static void test_need_wakeup(void **state)
{
	struct pair *pair = *state;
	struct rx_sqe sqe = {0};
	bool wake = true;

	assert_int_equal(rx_ring_submit(&pair->client, &sqe, &wake), 0);
	assert_false(wake);
	assert_true(rx_ring_prepare_sleep(&pair->daemon));
	assert_int_equal(rx_ring_take(&pair->daemon, &sqe), 1);
	assert_false(rx_ring_prepare_sleep(&pair->daemon));
	assert_int_equal(rx_ring_submit(&pair->client, &sqe, &wake), 0);
	assert_true(wake);
	assert_true(rx_ring_prepare_sleep(&pair->daemon));
	rx_ring_awake(&pair->daemon);
	assert_int_equal(rx_ring_submit(&pair->client, &sqe, &wake), 0);
	assert_false(wake);
	rx_ring_awake(&pair->daemon);
	assert_int_equal(rx_ring_submit(&pair->client, &sqe, &wake), 0);
	assert_false(wake);
}

static void *closer(void *arg)
{
	struct pair *pair = arg;

	usleep(30000);
	rx_ring_close(&pair->daemon);
	return NULL;
}

static void test_close_wakes(void **state)
{
	struct pair *pair = *state;
	uint64_t start = rx_now_ns();
	uint32_t event = rx_ring_event(&pair->client);
	pthread_t thread;

	assert_false(rx_ring_closed(&pair->client));
	assert_int_equal(pthread_create(&thread, NULL, closer, pair), 0);
	while (!rx_ring_closed(&pair->client))
		rx_ring_sleep(&pair->client, event, LONG_NS);
	assert_true(rx_now_ns() - start < LONG_NS / 2);
	/* What was seen before the close is no reason to sleep. */
	rx_ring_sleep(&pair->client, event, LONG_NS);
	assert_true(rx_now_ns() - start < LONG_NS / 2);
	event = rx_ring_event(&pair->client);
	rx_ring_sleep(&pair->client, event, 10 * RX_NS_PER_MS);
	assert_true(rx_now_ns() - start >= 10 * RX_NS_PER_MS);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- many entries, both sides asleep as often as they can be ---- */

struct traffic {
	struct pair pair;
	int doorbell;
	uint64_t n;
	uint64_t sq_sum; /* what the daemon side took */
	uint64_t cq_sum; /* what the client side reaped */
};

static uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ull;
	return x ^ x >> 29;
}

static struct rx_sqe sqe_number(uint64_t i)
{
	return (struct rx_sqe){
		.user_data = i,
		.opno = (uint16_t)i,
		.count = mix(i),
		.imm = mix(i + 1),
		.send_offset = mix(i + 2),
		.recv_offset = mix(i + 3),
	};
}

static uint64_t sqe_sum(uint64_t sum, const struct rx_sqe *sqe)
{
	return mix(sum + sqe->user_data + sqe->count + 3 * sqe->imm + 5 * sqe->send_offset +
		   7 * sqe->recv_offset);
}

/* Takes whatever is there and answers it; -1 on a violation. */
static int64_t serve_batch(struct traffic *t, uint64_t *sum)
{
	struct rx_sqe sqe;
	int64_t n = 0;
	int r = 0;

	for (; (r = rx_ring_take(&t->pair.daemon, &sqe)) == 1; n++) {
		struct rx_cqe cqe = {.user_data = sqe.user_data, .opno = sqe.opno};

		*sum = sqe_sum(*sum, &sqe);
		cqe.peer_count = *sum;
		if (rx_ring_complete(&t->pair.daemon, &cqe) < 0)
			return -1;
	}
	if (r < 0)
		return -1;
	if (n > 0) {
		rx_ring_publish_head(&t->pair.daemon);
		rx_ring_announce(&t->pair.daemon);
	}
	return n;
}

/* Returns the checksum, 0 on a violation or when a wake-up was lost. */
static uint64_t serve(struct traffic *t)
{
	struct pollfd pfd = {.fd = t->doorbell, .events = POLLIN};
	uint64_t done = 0;
	uint64_t sum = 1;

	while (done < t->n) {
		int64_t n = serve_batch(t, &sum);

		if (n < 0)
			return 0;
		done += (uint64_t)n;
		if (n > 0 || rx_ring_prepare_sleep(&t->pair.daemon))
			continue;
		if (poll(&pfd, 1, (int)(LONG_NS / RX_NS_PER_MS)) != 1)
			return 0;
		if (rx_doorbell_drain(t->doorbell) < 0)
			return 0;
		rx_ring_awake(&t->pair.daemon);
	}
	return sum;
}

/* Reaps what is there; sleeps when that is nothing. */
static uint64_t reap_some(struct traffic *t, uint64_t first)
{
	uint32_t event = rx_ring_event(&t->pair.client);
	struct rx_cqe cqe;
	uint64_t n = 0;
	uint64_t start = 0;

	for (; rx_ring_reap(&t->pair.client, &cqe); n++) {
		assert_true(cqe.user_data == first + n);
		assert_int_equal(cqe.opno, (uint16_t)(first + n));
		t->cq_sum = cqe.peer_count;
	}
	if (n > 0)
		return n;
	start = rx_now_ns();
	rx_ring_sleep(&t->pair.client, event, LONG_NS);
	/* A wake-up was lost, or the other side gave up. */
	assert_true(rx_now_ns() - start < LONG_NS / 2);
	return 0;
}

/* The client never has more in flight than the completion ring holds. */
static bool may_send(const struct traffic *t, uint64_t sent, uint64_t reaped)
{
	return sent < t->n && sent - reaped < t->pair.client.cq_entries;
}

static void ask(struct traffic *t)
{
	uint64_t sent = 0;
	uint64_t reaped = 0;

	t->sq_sum = 1;
	while (reaped < t->n) {
		struct rx_sqe sqe = sqe_number(sent);
		bool wake = false;

		if (may_send(t, sent, reaped) &&
			rx_ring_submit(&t->pair.client, &sqe, &wake) == 0) {
			t->sq_sum = sqe_sum(t->sq_sum, &sqe);
			sent++;
			if (wake)
				assert_int_equal(rx_doorbell_ring(t->doorbell), 0);
		} else {
			reaped += reap_some(t, reaped);
		}
	}
}

static void traffic_open(struct traffic *t, uint32_t entries, uint64_t n)
{
	*t = (struct traffic){.n = n};
	pair_open(&t->pair, entries);
	assert_int_equal(rx_doorbell_new(&t->doorbell), 0);
}

static void traffic_close(struct traffic *t)
{
	assert_true(t->sq_sum > 1);
	assert_true(t->cq_sum == t->sq_sum);
	close(t->doorbell);
	pair_close(&t->pair);
}

static int serve_child(void *arg)
{
	struct traffic *t = arg;

	return serve(t) == 0;
}

static void test_processes(void **state)
{
	struct traffic t;
	pid_t pid = 0;

	(void)state;
	traffic_open(&t, 256, 1000000);
	pid = child_start(serve_child, &t);
	ask(&t);
	assert_int_equal(child_wait(pid), 0);
	traffic_close(&t);
}

static void *serve_thread(void *arg)
{
	struct traffic *t = arg;

	return serve(t) == 0 ? arg : NULL;
}

static void test_threads(void **state)
{
	static const uint32_t entries[] = {2, 8, 4096};

	(void)state;
	for (unsigned int i = 0; i < RX_ARRAY_SIZE(entries); i++) {
		struct traffic t;
		pthread_t thread;
		void *failed = NULL;

		traffic_open(&t, entries[i], 20000);
		pair_share_maps(&t.pair, entries[i]);
		assert_int_equal(pthread_create(&thread, NULL, serve_thread, &t), 0);
		ask(&t);
		assert_int_equal(pthread_join(thread, &failed), 0);
		assert_null(failed);
		traffic_close(&t);
	}
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_geometry),
		TEST(test_order_and_full),
		TEST(test_completions),
		TEST(test_copied_once),
		TEST(test_hostile_client),
		TEST(test_broken_daemon),
		TEST(test_indices_wrap),
		TEST(test_need_wakeup),
		TEST(test_close_wakes),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_threads),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
