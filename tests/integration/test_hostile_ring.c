/* SPDX-License-Identifier: MIT */
/* Clients that abuse their rings and doorbell. */
#include "admin.h"
#include "bystander.h"
#include "raw.h"

#include "../../kernels/coll_types.h"
#include "../../shm/rx_result.h"
#include "../../shm/rx_wake.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define VIOLATION "ended for breaking the protocol"

enum outcome {
	ENDS,    /* the session ends with one line in the log */
	MAY_END, /* it may: what the daemon saw depends on timing */
	GOES_ON,
};

typedef bool (*evil_fn)(struct raw *raw);

struct evil_case {
	const char *name;
	evil_fn fn;
	enum outcome outcome;
};

static struct raw_reply reply;

static uint32_t alone(struct raw *raw)
{
	struct rx_msg ask = {.type = RX_MSG_UNIQUE_ID_GET};

	if (!raw_ask(raw, &ask, &reply) || reply.msg.type != RX_MSG_UNIQUE_ID_REPLY)
		return 0;
	struct rx_msg join = {.type = RX_MSG_COMM_JOIN,
		.comm_join = {.id = reply.msg.unique_id_reply.id, .n_ranks = 1}};
	if (!raw_ask(raw, &join, &reply) || reply.msg.type != RX_MSG_COMM_READY)
		return 0;
	uint32_t member = reply.msg.comm_ready.member;
	raw_drop(&reply);
	return member;
}

static uint32_t some_memory(struct raw *raw, uint64_t bytes)
{
	struct rx_msg alloc = {.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = bytes}};

	if (!raw_ask(raw, &alloc, &reply) || reply.msg.type != RX_MSG_MEM_REPLY)
		return 0;
	raw_drop(&reply);
	return reply.msg.mem_reply.handle;
}

static bool submit(struct raw *raw, const struct rx_sqe *sqe)
{
	bool wake = false;

	if (rx_ring_submit(&raw->ring, sqe, &wake) != 0)
		return false;
	return !wake || rx_doorbell_ring(raw->doorbell) == 0;
}

/* Result of the next completion; -1 none within 2 s. */
static int32_t next_result(struct raw *raw)
{
	struct rx_cqe cqe = {0};
	uint64_t end = test_now_ms() + 2000 * test_slow();

	while (test_now_ms() < end) {
		uint32_t seen = rx_ring_event(&raw->ring);

		if (rx_ring_reap(&raw->ring, &cqe))
			return cqe.result;
		rx_ring_sleep(&raw->ring, seen, 10000000);
	}
	return -1;
}

/* ---- indices ---- */

static bool set_tail(struct raw *raw, uint64_t tail)
{
	atomic_store(&raw->ring.s->sq_tail, tail);
	return rx_doorbell_ring(raw->doorbell) == 0;
}

static bool tail_beyond(struct raw *raw)
{
	return set_tail(raw, raw->ring.sq_entries + 1);
}

static bool tail_far_beyond(struct raw *raw)
{
	return set_tail(raw, UINT64_MAX / 2);
}

static bool tail_backwards(struct raw *raw)
{
	struct rx_sqe sqe = {.member = 12345};

	for (int i = 0; i < 5; i++)
		if (!submit(raw, &sqe))
			return false;
	for (int i = 0; i < 5; i++)
		if (next_result(raw) != RX_ERR_INVALID)
			return false;
	return set_tail(raw, 2);
}

static bool head_beyond(struct raw *raw)
{
	struct rx_sqe sqe = {.member = 12345};

	atomic_store(&raw->ring.s->cq_head, 1ull << 40);
	return submit(raw, &sqe);
}

/* More completions than the ring holds, none of them reaped. */
static bool never_reap(struct raw *raw)
{
	struct rx_sqe sqe = {.member = 12345};
	uint64_t end = test_now_ms() + 5000 * test_slow();

	for (uint32_t i = 0; i < 8 * raw->ring.sq_entries && test_now_ms() < end;) {
		if (submit(raw, &sqe))
			i++;
		else if (rx_ring_closed(&raw->ring))
			return true;
	}
	return rx_ring_closed(&raw->ring) || raw_ended(raw, 1000);
}

/* ---- entries ---- */

static bool bad_entries(struct raw *raw)
{
	uint32_t member = alone(raw);
	uint32_t region = some_memory(raw, 4096);
	const struct rx_sqe good = {.member = member,
		.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.count = 16,
		.send_region = region,
		.recv_region = region};
	struct rx_sqe bad[14];

	if (member == 0 || region == 0)
		return false;
	for (size_t i = 0; i < RX_ARRAY_SIZE(bad); i++)
		bad[i] = good;
	bad[0].member = member + 1;
	bad[1].coll = 200;
	bad[2].dtype = RX_DTYPE_N;
	bad[3].op = RX_REDOP_N;
	bad[4].flags = 0x80;
	bad[5].send_region = region + 1;
	bad[6].recv_region = RX_REGION_NONE;
	bad[7].count = 1025;
	bad[8].count = UINT64_MAX / 4 + 1;
	bad[9].count = UINT64_MAX;
	bad[10].send_offset = 4096 - 60;
	bad[11].recv_offset = UINT64_MAX - 3;
	bad[12].send_offset = 2;
	bad[13].send_offset = 1ull << 63;
	for (size_t i = 0; i < RX_ARRAY_SIZE(bad); i++) {
		if (!submit(raw, &bad[i]))
			return false;
		int32_t r = next_result(raw);
		if (r != RX_ERR_INVALID) {
			(void)fprintf(stderr, "entry %zu: result %d\n", i, r);
			return false;
		}
	}
	/* The good one works after all that. */
	return submit(raw, &good) && next_result(raw) == RX_OK && raw_alive(raw);
}

/* The numbers of a variable collective: where they cannot be, and what they cannot be. */
static bool bad_numbers(struct raw *raw)
{
	const uint64_t page = 4096;
	uint32_t member = alone(raw);
	uint32_t region = some_memory(raw, page);
	uint32_t words = some_memory(raw, page);
	/* As the daemon makes memory: all zero, so no elements at all. */
	const struct rx_sqe good = {.member = member,
		.coll = RX_ALL_TO_ALL_V,
		.dtype = RX_FLOAT32,
		.root = words,
		.send_region = region,
		.recv_region = region};
	struct rx_sqe bad[8];

	if (member == 0 || region == 0 || words == 0)
		return false;
	for (size_t i = 0; i < RX_ARRAY_SIZE(bad); i++)
		bad[i] = good;
	bad[0].root = RX_REGION_NONE;
	bad[1].root = words + 12345;
	bad[2].imm = 4;
	bad[3].imm = page - 32;
	bad[4].imm = UINT64_MAX - 7;
	bad[5].imm = 1ull << 63;
	bad[6].count = 1;
	bad[7].flags = 0x80;
	for (size_t i = 0; i < RX_ARRAY_SIZE(bad); i++) {
		int32_t r = submit(raw, &bad[i]) ? next_result(raw) : -1;

		if (r != RX_ERR_INVALID) {
			(void)fprintf(stderr, "numbers %zu: result %d\n", i, r);
			return false;
		}
	}
	return submit(raw, &good) && next_result(raw) == RX_OK && raw_alive(raw);
}

struct scribbler {
	_Atomic uint64_t *words;
	_Atomic bool stop;
};

static void *scribble(void *p)
{
	struct scribbler *scribbler = p;
	uint64_t x = 1;

	while (!atomic_load(&scribbler->stop)) {
		for (size_t i = 0; i < 5; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			/* In reach, at its end, beyond it, and beyond everything. */
			atomic_store_explicit(&scribbler->words[i],
				x % 4 == 0   ? x
				: x % 4 == 1 ? 1024
				: x % 4 == 2 ? UINT64_MAX / 4
					     : 1,
				memory_order_relaxed);
		}
	}
	return NULL;
}

/* They change while the daemon reads them, and while it works. */
static bool rewrite_numbers(struct raw *raw)
{
	struct rx_msg alloc = {.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = 4096}};
	uint32_t member = alone(raw);
	uint32_t region = some_memory(raw, 4096);
	struct rx_map map = RX_MAP_INIT;
	struct scribbler scribbler = {.words = NULL};
	struct rx_sqe sqe = {.member = member,
		.coll = RX_ALL_TO_ALL_V,
		.dtype = RX_FLOAT32,
		.send_region = region,
		.recv_region = region};
	struct rx_cqe cqe;
	uint32_t n_results[2] = {0, 0};
	uint32_t n_submitted = 0;
	pthread_t thread;

	if (member == 0 || region == 0 || !raw_ask(raw, &alloc, &reply) ||
		reply.msg.type != RX_MSG_MEM_REPLY)
		return false;
	sqe.root = reply.msg.mem_reply.handle;
	if (rx_map_open(&map, reply.frame.fds.fds[0], 4096, RX_MAP_RW) != 0)
		return false;
	raw_drop(&reply);
	scribbler.words = map.addr;
	if (pthread_create(&thread, NULL, scribble, &scribbler) != 0)
		return false;
	uint64_t end = test_now_ms() + 1000;
	while (test_now_ms() < end) {
		if (n_submitted - n_results[0] - n_results[1] < raw->ring.sq_entries)
			n_submitted += submit(raw, &sqe);
		while (rx_ring_reap(&raw->ring, &cqe))
			n_results[cqe.result == RX_OK]++;
	}
	atomic_store(&scribbler.stop, true);
	(void)pthread_join(thread, NULL);
	rx_map_close(&map);
	/* Most are refused, by what was read; none has another end. */
	return n_results[0] > 0 && raw_alive(raw);
}

struct rewriter {
	struct raw *raw;
	_Atomic bool stop;
};

static void *rewrite(void *p)
{
	struct rewriter *rewriter = p;
	uint64_t x = 1;

	/* Every word of every entry, over and over, whoever reads it meanwhile. */
	while (!atomic_load(&rewriter->stop)) {
		_Atomic uint64_t *words = (_Atomic uint64_t *)(void *)rewriter->raw->ring.sqes;
		size_t n = rewriter->raw->ring.sq_entries * sizeof(struct rx_sqe) / 8;

		for (size_t i = 0; i < n; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			/* Small numbers and huge ones: both pass some of the checks. */
			atomic_store_explicit(
				&words[i], x % 3 == 0 ? x : x % 5, memory_order_relaxed);
		}
	}
	return NULL;
}

static bool rewrite_entries(struct raw *raw)
{
	uint32_t member = alone(raw);
	uint32_t region = some_memory(raw, 65536);
	struct rewriter rewriter = {.raw = raw};
	struct rx_sqe sqe = {.member = member,
		.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.count = 1000,
		.send_region = region,
		.recv_region = region};
	struct rx_cqe cqe;
	pthread_t thread;

	if (member == 0 || region == 0 || pthread_create(&thread, NULL, rewrite, &rewriter) != 0)
		return false;
	uint64_t end = test_now_ms() + 1000;
	while (test_now_ms() < end) {
		(void)submit(raw, &sqe);
		while (rx_ring_reap(&raw->ring, &cqe))
			continue;
	}
	atomic_store(&rewriter.stop, true);
	(void)pthread_join(thread, NULL);
	return true;
}

/* ---- doorbell ---- */

static bool flood_doorbell(struct raw *raw)
{
	uint64_t end = test_now_ms() + 8000 * test_slow();

	while (test_now_ms() < end && !rx_ring_closed(&raw->ring))
		(void)rx_doorbell_ring(raw->doorbell);
	return rx_ring_closed(&raw->ring);
}

/* Blocking descriptor, counter emptied or filled under the daemon's hands. */
static bool block_doorbell(struct raw *raw)
{
	uint64_t almost_full = UINT64_MAX - 2;
	uint64_t taken = 0;
	struct rx_sqe sqe = {.member = 12345};

	if (fcntl(raw->doorbell, F_SETFL, 0) != 0)
		return false;
	for (int i = 0; i < 50; i++) {
		if (write(raw->doorbell, &(uint64_t){1}, 8) != 8)
			return false;
		/* Whoever reads second would block, so not without looking. */
		(void)fcntl(raw->doorbell, F_SETFL, O_NONBLOCK);
		(void)!read(raw->doorbell, &taken, 8);
		(void)fcntl(raw->doorbell, F_SETFL, 0);
	}
	if (!submit(raw, &sqe))
		return false;
	(void)fcntl(raw->doorbell, F_SETFL, O_NONBLOCK);
	(void)!write(raw->doorbell, &almost_full, 8);
	(void)fcntl(raw->doorbell, F_SETFL, 0);
	return raw_alive(raw);
}

static const struct evil_case cases[] = {
	{"tail beyond", tail_beyond, ENDS},
	{"tail far beyond", tail_far_beyond, ENDS},
	{"tail backwards", tail_backwards, ENDS},
	{"head beyond", head_beyond, ENDS},
	{"never reaps", never_reap, ENDS},
	{"bad entries", bad_entries, GOES_ON},
	{"bad numbers", bad_numbers, GOES_ON},
	{"rewrites numbers", rewrite_numbers, GOES_ON},
	{"rewrites entries", rewrite_entries, MAY_END},
	{"floods the doorbell", flood_doorbell, ENDS},
	{"blocking doorbell", block_doorbell, MAY_END},
};

static int rank_evil(struct rank_ctx *ctx)
{
	const struct evil_case *c = ctx->arg;
	struct raw raw;

	RANK_CHECK(ctx, raw_hello(&raw, ctx->socket), "%s: no Hello", c->name);
	RANK_CHECK(ctx, c->fn(&raw), "%s: did not go as meant", c->name);
	if (c->outcome == ENDS)
		RANK_CHECK(ctx, raw_ended(&raw, 1000), "%s: the session goes on", c->name);
	raw_close(&raw);
	return 0;
}

static void run_case(const struct node *node, const struct evil_case *c)
{
	struct evil_case copy = *c;
	unsigned int lines = node_log_count(node, "warn", NULL);

	world_run(node, 1, rank_evil, &copy);
	lines = node_log_count(node, "warn", NULL) - lines;
	if (lines > 1 || (lines == 0 && c->outcome == ENDS) ||
		(lines == 1 && c->outcome == GOES_ON))
		fail_msg("%s: %u lines in the log", c->name, lines);
}

static void test_rings(void **state)
{
	struct node *node = node_start(NULL);
	struct world *bystanders = bystander_start(node);

	(void)state;
	harness_limit(60);
	node_expect(node, VIOLATION, 0, sizeof(cases) / sizeof(cases[0]));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_case(node, &cases[i]);
	bystander_stop(bystanders);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_rings),
	};

	return HARNESS_RUN("hostile_ring", tests);
}
