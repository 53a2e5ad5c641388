/* SPDX-License-Identifier: MIT */
/* Checks of submitted entries: one good call per collective, and what may be wrong with it. */
#include "../../daemon/entry.h"
#include "../../kernels/precision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N      4u
#define RANK   1u
#define COUNT  10u
#define BYTES  4096u
#define OFFSET 64u

/* Blocks of COUNT elements that rank RANK's buffers have, when it is the root and when not. */
struct blocks {
	uint8_t coll;
	bool rooted;
	uint32_t send_root;
	uint32_t recv_root;
	uint32_t send_other;
	uint32_t recv_other;
};

static const struct blocks table[] = {
	{RX_ALL_REDUCE, false, 1, 1, 1, 1},
	{RX_ALL_GATHER, false, 1, N, 1, N},
	{RX_REDUCE_SCATTER, false, N, 1, N, 1},
	{RX_ALL_TO_ALL, false, N, N, N, N},
	{RX_BROADCAST, true, 1, 1, 0, 1},
	{RX_REDUCE, true, 1, 1, 1, 0},
	{RX_GATHER, true, 1, N, 1, 0},
	{RX_SCATTER, true, N, 1, 0, 1},
	{RX_SEND, true, 1, 0, 1, 0},
	{RX_RECV, true, 0, 1, 0, 1},
};

static struct rx_sqe good_entry(const struct blocks *blocks, bool is_root)
{
	return (struct rx_sqe){
		.coll = blocks->coll,
		.dtype = RX_FLOAT32,
		.op = rx_coll_reduces(blocks->coll) ? RX_MAX : 0,
		.root = blocks->rooted ? (is_root ? RANK : N - 1) : 0,
		.count = COUNT,
		.send_offset = OFFSET,
		.recv_offset = OFFSET,
	};
}

/* Regions of exactly the size that the call needs; unknown where it needs none. */
static struct entry_facts tight_facts(const struct blocks *blocks, bool is_root)
{
	uint32_t send = is_root ? blocks->send_root : blocks->send_other;
	uint32_t recv = is_root ? blocks->recv_root : blocks->recv_other;

	return (struct entry_facts){
		.n_ranks = N,
		.rank = RANK,
		.send_known = send > 0,
		.recv_known = recv > 0,
		.send_bytes = OFFSET + 4ull * COUNT * send,
		.recv_bytes = OFFSET + 4ull * COUNT * recv,
	};
}

static void expect_good(
	const struct rx_sqe *sqe, const struct entry_facts *facts, uint64_t send, uint64_t recv)
{
	struct rx_extent extent = {0};
	const char *why = NULL;

	assert_int_equal(entry_check(sqe, facts, &extent, &why), 0);
	assert_null(why);
	assert_int_equal(extent.send, send);
	assert_int_equal(extent.recv, recv);
}

static void expect_bad(struct rx_sqe sqe, struct entry_facts facts, const char *text)
{
	struct rx_extent extent = {.send = 77};
	const char *why = NULL;

	assert_int_equal(entry_check(&sqe, &facts, &extent, &why), ENTRY_E_BAD);
	assert_non_null(strstr(why, text));
	assert_int_equal(extent.send, 77);
}

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(table); i++) {
		for (uint32_t is_root = 0; is_root < 2; is_root++) {
			struct rx_sqe sqe = good_entry(&table[i], is_root);
			struct entry_facts facts = tight_facts(&table[i], is_root);
			uint32_t send = is_root ? table[i].send_root : table[i].send_other;
			uint32_t recv = is_root ? table[i].recv_root : table[i].recv_other;

			expect_good(&sqe, &facts, COUNT * send, COUNT * recv);
			/* No data, no memory. */
			sqe.count = 0;
			facts.send_known = false;
			facts.recv_known = false;
			expect_good(&sqe, &facts, 0, 0);
		}
	}
	expect_good(
		&(struct rx_sqe){.coll = RX_BARRIER}, &(struct entry_facts){.n_ranks = 1}, 0, 0);
}

/* Each buffer that is looked at, one thing wrong at a time. */
static void test_bad_buffers(void **state)
{
	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(table); i++) {
		for (uint32_t is_root = 0; is_root < 2; is_root++) {
			struct rx_sqe good = good_entry(&table[i], is_root);
			struct entry_facts facts = tight_facts(&table[i], is_root);
			struct rx_sqe sqe = good;
			struct entry_facts wrong = facts;

			if (facts.send_known) {
				wrong.send_known = false;
				expect_bad(good, wrong, "memory handle");
				wrong = facts;
				wrong.send_bytes--;
				expect_bad(good, wrong, "not inside");
				sqe.send_offset += 2;
				expect_bad(sqe, facts, "not aligned");
				sqe.send_offset = UINT64_MAX - 3;
				expect_bad(sqe, facts, "not inside");
			}
			sqe = good;
			wrong = facts;
			if (facts.recv_known) {
				wrong.recv_known = false;
				expect_bad(good, wrong, "memory handle");
				wrong = facts;
				wrong.recv_bytes--;
				expect_bad(good, wrong, "not inside");
				sqe.recv_offset += 2;
				expect_bad(sqe, facts, "not aligned");
				sqe.recv_offset = UINT64_MAX - 3;
				expect_bad(sqe, facts, "not inside");
			}
		}
	}
}

static void test_bad_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(table); i++) {
		struct entry_facts facts = tight_facts(&table[i], true);
		struct rx_sqe good = good_entry(&table[i], true);
		struct rx_sqe sqe = good;

		sqe.root = N;
		expect_bad(sqe, facts, table[i].rooted ? "no such" : "has no root");
		sqe = good;
		sqe.op = RX_REDOP_N;
		expect_bad(sqe, facts,
			rx_coll_reduces(good.coll) ? "unknown reduction" : "does not reduce");
		sqe = good;
		sqe.dtype = RX_DTYPE_N;
		expect_bad(sqe, facts, "unknown data type");
		sqe = good;
		sqe.flags = RX_SIG_FP8_IF_LARGE;
		expect_bad(sqe, facts, "unknown flags");
		sqe.flags = RX_SIG_INT8_IF_LARGE;
		expect_bad(sqe, facts, "unknown flags");
		sqe.flags = RX_SIG_INT8 | RX_SIG_FP8;
		expect_bad(sqe, facts, "unknown flags");
		sqe.flags = RX_SIG_INT8;
		sqe.dtype = RX_INT32;
		expect_bad(sqe, facts, "unknown flags");
		sqe.flags = RX_SIG_FP8;
		expect_bad(sqe, facts, "unknown flags");
		sqe.dtype = RX_FLOAT32;
		if (good.coll == RX_ALL_REDUCE || good.coll == RX_REDUCE_SCATTER) {
			sqe.op = RX_MAX;
			expect_bad(sqe, facts, "unknown flags");
		} else if (good.coll != RX_ALL_GATHER && good.coll != RX_ALL_TO_ALL) {
			expect_bad(sqe, facts, "unknown flags");
		}
		sqe = good;
		sqe.count = UINT64_MAX;
		expect_bad(sqe, facts, "count is too large");
		/* The elements fit 64 bits, the bytes do not. */
		sqe.count = 1ull << 62;
		expect_bad(sqe, facts, "count is too large");
		/* The bytes do, and their end does not. */
		sqe.count = (UINT64_MAX >> 2) / N;
		expect_bad(sqe, facts, "not inside");
	}
}

static void test_bad_collectives(void **state)
{
	struct entry_facts facts = {
		.n_ranks = N,
		.rank = RANK,
		.send_known = true,
		.recv_known = true,
		.send_bytes = BYTES,
		.recv_bytes = BYTES,
	};

	(void)state;
	expect_bad((struct rx_sqe){.coll = RX_BARRIER, .count = 1}, facts, "barrier has no data");
	expect_bad((struct rx_sqe){.coll = RX_BARRIER, .root = 1}, facts, "has no root");
	for (uint32_t coll = RX_COLL_N; coll <= UINT8_MAX; coll++)
		expect_bad((struct rx_sqe){.coll = (uint8_t)coll, .count = 1}, facts,
			"does not exist");
}

/* ---- variable collectives ---- */

/* Scalar, then arrays; rank RANK sends up to element 60 and receives up to element 50 at most. */
static const uint64_t gather_words[1 + 2 * N] = {0, 5, 6, 0, 8, 10, 20, UINT64_MAX, 42};
static const uint64_t scatter_words[1 + N] = {0, 20, 10, 0, 30};
static const uint64_t exchange_words[1 + 4 * N] = {
	0, 1, 2, 3, 4, 0, 10, 20, 56, 8, 7, 6, 5, 42, 30, 20, 10};

struct v_case {
	uint8_t coll;
	const uint64_t *words;
	uint32_t n_words;
	uint64_t send;
	uint64_t recv;
};

static const struct v_case v_cases[] = {
	{RX_ALL_GATHER_V, gather_words, 1 + 2 * N, 6, 50},
	{RX_REDUCE_SCATTER_V, scatter_words, 1 + N, 60, 10},
	{RX_ALL_TO_ALL_V, exchange_words, 1 + 4 * N, 60, 50},
};

static struct rx_sqe v_entry(const struct v_case *c)
{
	return (struct rx_sqe){
		.coll = c->coll,
		.dtype = RX_FLOAT32,
		.op = rx_coll_reduces(c->coll) ? RX_MAX : 0,
		.root = 12345, /* a handle */
		.imm = OFFSET,
		.send_offset = OFFSET,
		.recv_offset = OFFSET,
	};
}

static struct entry_facts v_facts(const struct v_case *c)
{
	return (struct entry_facts){
		.n_ranks = N,
		.rank = RANK,
		.send_known = true,
		.recv_known = true,
		.send_bytes = OFFSET + 4 * c->send,
		.recv_bytes = OFFSET + 4 * c->recv,
		.words = c->words,
	};
}

static void expect_words(const struct rx_sqe *sqe, uint64_t region_bytes, uint32_t n_words)
{
	uint32_t n = 77;
	const char *why = NULL;

	assert_int_equal(entry_check_words(sqe, N, true, region_bytes, &n, &why), 0);
	assert_null(why);
	assert_int_equal(n, n_words);
}

static void expect_bad_words(struct rx_sqe sqe, bool known, uint64_t region_bytes, const char *text)
{
	uint32_t n = 77;
	const char *why = NULL;

	assert_int_equal(entry_check_words(&sqe, N, known, region_bytes, &n, &why), ENTRY_E_BAD);
	assert_non_null(strstr(why, text));
	assert_int_equal(n, 77);
}

static void test_v_words(void **state)
{
	struct rx_sqe other = {.coll = RX_ALL_REDUCE, .root = 5, .imm = 3};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(v_cases); i++) {
		struct rx_sqe sqe = v_entry(&v_cases[i]);
		uint64_t end = OFFSET + 8 * v_cases[i].n_words;

		expect_words(&sqe, end, v_cases[i].n_words);
		expect_bad_words(sqe, true, end - 1, "not inside");
		expect_bad_words(sqe, false, end, "memory handle");
		sqe.imm += 4;
		expect_bad_words(sqe, true, end + 8, "not aligned");
		sqe.imm = UINT64_MAX - 7;
		expect_bad_words(sqe, true, UINT64_MAX, "not inside");
	}
	/* Others have none, whatever their entry says. */
	expect_words(&other, 0, 0);
	other.coll = RX_COLL_N;
	expect_words(&other, 0, 0);
}

static void test_v_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(v_cases); i++) {
		const struct v_case *c = &v_cases[i];
		struct rx_sqe sqe = v_entry(c);
		struct entry_facts facts = v_facts(c);
		struct rx_op_sig sig = entry_sig(&sqe);
		static const uint64_t zeros[1 + 4 * N];

		expect_good(&sqe, &facts, c->send, c->recv);
		/* What is a rank's own affair is not compared. */
		assert_int_equal(sig.root, 0);
		assert_int_equal(sig.count, 0);
		facts.words = zeros;
		facts.send_known = false;
		facts.recv_known = false;
		expect_good(&sqe, &facts, 0, 0);
	}
}

static void test_v_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(v_cases); i++) {
		const struct v_case *c = &v_cases[i];
		struct rx_sqe sqe = v_entry(c);
		struct entry_facts facts = v_facts(c);
		uint64_t words[RX_COUNTS_WORDS_MAX];

		facts.send_bytes--;
		expect_bad(sqe, facts, "not inside");
		facts = v_facts(c);
		facts.recv_bytes--;
		expect_bad(sqe, facts, "not inside");
		facts = v_facts(c);
		facts.send_known = false;
		expect_bad(sqe, facts, "memory handle");
		facts = v_facts(c);
		facts.recv_known = false;
		expect_bad(sqe, facts, "memory handle");
		facts = v_facts(c);
		sqe.count = 1;
		expect_bad(sqe, facts, "no count");
		sqe = v_entry(c);
		sqe.flags = c->coll == RX_ALL_TO_ALL_V ? RX_SIG_FLAGS : RX_SIG_FP8_IF_LARGE;
		expect_bad(sqe, facts, "unknown flags");
		sqe.flags = RX_SIG_FP8;
		sqe.dtype = RX_FLOAT64;
		expect_bad(sqe, facts, "unknown flags");
		sqe = v_entry(c);
		sqe.op = RX_REDOP_N;
		expect_bad(sqe, facts,
			rx_coll_reduces(c->coll) ? "unknown reduction" : "does not reduce");
		sqe = v_entry(c);
		/* Each count in turn: an end beyond 64 bits, then bytes beyond, then a region. */
		facts.words = words;
		for (uint32_t w = 1; w <= N; w++) {
			memcpy(words, c->words, c->n_words * sizeof(words[0]));
			words[w] = UINT64_MAX;
			expect_bad(sqe, facts, "too large");
			words[w] = UINT64_MAX / 4 - 1000;
			if (c->coll == RX_ALL_GATHER_V && w == 3)
				continue; /* that one's displacement is as far as they go */
			expect_bad(sqe, facts, "not inside");
		}
	}
}

static void expect_text(struct rx_op_sig sig, const char *text)
{
	char buffer[96];

	sig_describe(&sig, buffer, sizeof(buffer));
	assert_string_equal(buffer, text);
}

static void test_describe(void **state)
{
	struct rx_op_sig sig = {.dtype = RX_FLOAT32, .op = RX_MAX, .root = 3, .count = 10};

	(void)state;
	sig.coll = RX_SEND;
	expect_text(sig, "send of 10 float32 to rank 3");
	sig.coll = RX_RECV;
	expect_text(sig, "recv of 10 float32 from rank 3");
	sig.coll = RX_BROADCAST;
	expect_text(sig, "broadcast of 10 float32, root 3");
	sig.coll = RX_REDUCE;
	expect_text(sig, "reduce of 10 float32, max, root 3");
	sig.coll = RX_ALL_GATHER;
	expect_text(sig, "all_gather of 10 float32");
	sig.coll = RX_ALL_GATHER_V;
	expect_text(sig, "all_gather_v of float32");
	sig.coll = RX_REDUCE_SCATTER_V;
	expect_text(sig, "reduce_scatter_v of float32, max");
	sig.coll = RX_BARRIER;
	expect_text(sig, "barrier");
	sig.coll = 255;
	sig.dtype = 255;
	expect_text(sig, "? of 10 ?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad_buffers),
		cmocka_unit_test(test_bad_calls),
		cmocka_unit_test(test_bad_collectives),
		cmocka_unit_test(test_v_words),
		cmocka_unit_test(test_v_good),
		cmocka_unit_test(test_v_bad),
		cmocka_unit_test(test_describe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
