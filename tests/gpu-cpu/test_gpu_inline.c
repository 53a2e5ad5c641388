/* SPDX-License-Identifier: MIT */
/*
 * Inline kernels against the oracle, bit for bit, and what they do when ranks are missing, late,
 * ended, or call something else. A thread stands for each launch's stream; launches come one behind
 * the other on the same memory, as they do in a communicator's life.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "../../kernels/coll_extent.h"
#include "../../kernels/device/inline_abi.h"
#include "../oracle/oracle.h"
#include "gpu_cpu.h"

#define MAX_RANKS 8u
#define MAX_OPS   8u
#define GUARD     64u
#define FILLER    0xa5
#define FOREVER   60000000000ull
#define SHORT     100000000ull

static const char *const suffixes[RX_DTYPE_N] = {
	"i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16", "e4m3", "e5m2"};

/* One operation, and the buffers of all ranks. */
struct op {
	struct rx_inl_args args; /* but for local */
	uint32_t n_blocks;
	uint32_t n_threads;
	bool in_place;
	uint8_t *room[MAX_RANKS][2]; /* send, recv; in place both are recv's or send's */
	size_t room_bytes[MAX_RANKS][2];
	uint8_t *inputs[MAX_RANKS];
	uint8_t *expected[MAX_RANKS]; /* like the room that recv is in */
};

/* A communicator. */
struct team {
	struct rx_inl_mem *mem[MAX_RANKS];
	struct rx_inl_line line[MAX_RANKS];
	struct rx_inl_page page;
	uint32_t slot_bytes;
	uint32_t n_ranks;
	uint32_t local[MAX_RANKS]; /* by launch */
	uint32_t n_launches;
	struct op ops[MAX_OPS];
	uint32_t n_ops;
};

static uint64_t random_state = 1;

static uint32_t pick(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % below;
}

static void *get(size_t bytes)
{
	void *p = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);

	assert_non_null(p);
	return memset(p, 0, bytes);
}

/* ---- a communicator ---- */

static void set_up(struct team *t, uint32_t n_ranks, uint32_t how)
{
	memset(t, 0, sizeof(*t));
	t->n_ranks = n_ranks;
	t->slot_bytes = RX_INL_SLOT_MIN(n_ranks);
	t->page.wait_ticks = FOREVER;
	t->page.epoch = 7;
	for (uint32_t r = 0; r < n_ranks; r++)
		t->mem[r] = get(RX_INL_MEM_BYTES(t->slot_bytes));
	/* Ranks to launches: one each, all to one, or mixed. */
	t->n_launches = how == 0 ? n_ranks : how == 1 ? 1 : (n_ranks + 1) / 2;
	for (uint32_t r = 0; r < n_ranks; r++)
		t->local[r % t->n_launches] |= 1u << r;
}

static void tear_down(struct team *t)
{
	for (uint32_t r = 0; r < t->n_ranks; r++)
		free(t->mem[r]);
}

static struct op *add_op(
	struct team *t, uint8_t coll, uint8_t dtype, uint8_t redop, uint8_t algorithm)
{
	struct op *op = &t->ops[t->n_ops++];
	struct rx_inl_args *a = &op->args;

	assert_true(t->n_ops <= MAX_OPS);
	memset(op, 0, sizeof(*op));
	a->abi = RX_INL_ABI;
	a->coll = coll;
	a->dtype = dtype;
	a->op = redop;
	a->algorithm = algorithm;
	a->n_ranks = t->n_ranks;
	a->elem_bytes = rx_dtype_size(dtype);
	a->slot_bytes = t->slot_bytes;
	a->epoch = t->page.epoch;
	a->page = &t->page;
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		a->mem[r] = t->mem[r];
		a->line[r] = &t->line[r];
		oracle_fill(&a->scalar[r], dtype, 0, 1, r, pick(1000), ORACLE_NORMAL);
	}
	op->n_blocks = 1;
	op->n_threads = 1;
	return op;
}

/* ---- buffers ---- */

static void extent_of(const struct op *op, uint32_t r, struct rx_extent *extent)
{
	const struct rx_inl_args *a = &op->args;

	assert_true(rx_coll_extent(a->coll, a->count, a->n_ranks, r, a->root, extent));
}

/* Puts rank @r's buffers somewhere, its send filled, all else filler. */
static void place(struct op *op, uint32_t r, uint32_t alignment)
{
	struct rx_inl_args *a = &op->args;
	uint32_t width = a->elem_bytes;
	struct rx_extent extent;
	uint8_t *at[2];

	extent_of(op, r, &extent);
	for (uint32_t k = 0; k < 2; k++) {
		uint64_t bytes = (k == 0 ? extent.send : extent.recv) * width;
		uint32_t off = alignment == 0 ? 0 : (r * 5 + k * 3 + alignment) % 16 * width;

		op->room_bytes[r][k] = bytes + 2 * GUARD + off;
		op->room[r][k] = get(op->room_bytes[r][k]);
		memset(op->room[r][k], FILLER, op->room_bytes[r][k]);
		at[k] = op->room[r][k] + GUARD + off;
	}
	if (op->in_place && extent.in_place_ok && extent.send && extent.recv) {
		if (extent.send <= extent.recv)
			at[0] = at[1] + extent.send_in_recv * width;
		else
			at[1] = at[0] + extent.recv_in_send * width;
	}
	op->inputs[r] = get(extent.send * width);
	oracle_fill(op->inputs[r], a->dtype, 0, extent.send, r, pick(1000),
		pick(2) ? ORACLE_WILD : ORACLE_NORMAL);
	memcpy(at[0], op->inputs[r], extent.send * width);
	a->send[r] = extent.send ? at[0] : NULL;
	a->recv[r] = extent.recv ? at[1] : NULL;
}

static uint32_t recv_room(const struct op *op, uint32_t r)
{
	const uint8_t *at = op->args.recv[r];

	return at >= op->room[r][0] && at < op->room[r][0] + op->room_bytes[r][0] ? 0 : 1;
}

static void expect_one(const struct op *op, uint32_t r, uint8_t *out)
{
	const struct rx_inl_args *a = &op->args;
	size_t bytes = (size_t)a->count * a->elem_bytes;

	if (rx_coll_reduces(a->coll)) {
		uint64_t first = a->coll == RX_REDUCE_SCATTER ? (uint64_t)r * a->count : 0;
		const void *src[MAX_RANKS];

		for (uint32_t i = 0; i < a->n_ranks; i++)
			src[i] = op->inputs[i];
		for (uint64_t i = 0; i < a->count; i++)
			oracle_fold(a->dtype, a->op, a->n_ranks, src, first + i, a->scalar,
				out + i * a->elem_bytes);
	} else if (a->coll == RX_BROADCAST) {
		memcpy(out, op->inputs[a->root], bytes);
	} else {
		for (uint32_t i = 0; i < a->n_ranks; i++)
			memcpy(out + i * bytes,
				op->inputs[i] + (a->coll == RX_ALL_TO_ALL ? r * bytes : 0), bytes);
	}
}

static void prepare(struct op *op, uint32_t alignment)
{
	for (uint32_t r = 0; r < op->args.n_ranks; r++)
		place(op, r, alignment);
	for (uint32_t r = 0; r < op->args.n_ranks; r++) {
		uint32_t k = recv_room(op, r);

		op->expected[r] = get(op->room_bytes[r][k]);
		memcpy(op->expected[r], op->room[r][k], op->room_bytes[r][k]);
		if (op->args.recv[r])
			expect_one(op, r,
				op->expected[r] + ((uint8_t *)op->args.recv[r] - op->room[r][k]));
	}
}

static void clear(struct op *op)
{
	for (uint32_t r = 0; r < op->args.n_ranks; r++) {
		free(op->room[r][0]);
		free(op->room[r][1]);
		free(op->inputs[r]);
		free(op->expected[r]);
	}
}

static void describe(const struct op *op)
{
	const struct rx_inl_args *a = &op->args;

	print_error("%s %s %s algorithm=%u count=%u ranks=%u root=%u blocks=%u threads=%u "
		    "in_place=%d\n",
		rx_coll_name(a->coll), rx_dtype_name(a->dtype), rx_redop_name(a->op), a->algorithm,
		a->count, a->n_ranks, a->root, op->n_blocks, op->n_threads, op->in_place);
}

static void check(const struct op *op)
{
	for (uint32_t r = 0; r < op->args.n_ranks; r++) {
		uint32_t k = recv_room(op, r);

		for (size_t i = 0; i < op->room_bytes[r][k]; i++) {
			if (op->room[r][k][i] == op->expected[r][i])
				continue;
			describe(op);
			print_error("rank %u, byte %zu of %zu: %02x, expected %02x\n", r, i,
				op->room_bytes[r][k], op->room[r][k][i], op->expected[r][i]);
			fail();
		}
	}
}

/* Results are as they were before. */
static bool is_untouched(const struct op *op, uint32_t r)
{
	const uint8_t *recv = op->args.recv[r];

	for (size_t i = 0; i < (size_t)op->args.count * op->args.elem_bytes; i++) {
		if (recv[i] != FILLER)
			return false;
	}
	return true;
}

/* ---- running ---- */

static void launch(const struct op *op, uint32_t local)
{
	struct rx_inl_args args = op->args;
	char name[32] = RX_INL_COPY_NAME;

	if (rx_coll_reduces(args.coll))
		(void)snprintf(name, sizeof(name), RX_INL_PREFIX "%s", suffixes[args.dtype]);
	args.local = local;
	for (uint32_t r = 0; r < args.n_ranks; r++) {
		if (local >> r & 1)
			continue;
		args.send[r] = args.recv[r] = NULL;
		args.line[r] = NULL;
		args.scalar[r] = 0;
	}
	gpu_cpu_run(gpu_cpu_find(name), &args, op->n_blocks, op->n_threads);
}

struct stream {
	struct team *team;
	uint32_t local;
	uint32_t first;
	uint32_t n_ops;
	pthread_t id;
};

static void *run_stream(void *arg)
{
	struct stream *s = arg;

	for (uint32_t i = 0; i < s->n_ops; i++)
		launch(&s->team->ops[s->first + i], s->local);
	return NULL;
}

static void start(struct stream *s, struct team *t, uint32_t local, uint32_t first, uint32_t n_ops)
{
	s->team = t;
	s->local = local;
	s->first = first;
	s->n_ops = n_ops;
	assert_int_equal(pthread_create(&s->id, NULL, run_stream, s), 0);
}

static void finish(struct stream *s)
{
	assert_int_equal(pthread_join(s->id, NULL), 0);
}

static void run_and_check(struct team *t)
{
	struct stream streams[MAX_RANKS];

	for (uint32_t l = 0; l < t->n_launches; l++)
		start(&streams[l], t, t->local[l], 0, t->n_ops);
	for (uint32_t l = 0; l < t->n_launches; l++)
		finish(&streams[l]);
	for (uint32_t i = 0; i < t->n_ops; i++) {
		check(&t->ops[i]);
		clear(&t->ops[i]);
	}
	t->n_ops = 0;
	for (uint32_t r = 0; r < t->n_ranks; r++)
		assert_int_equal(t->line[r].status, 0);
}

/* ---- bits ---- */

static uint8_t any_algorithm(uint8_t coll, uint8_t redop)
{
	for (;;) {
		uint32_t algorithm = pick(RX_INL_ALGORITHM_N);

		if ((algorithm != RX_INL_WORDS || redop != RX_PREMUL_SUM) &&
			(algorithm != RX_INL_TWO_SHOT || coll == RX_ALL_REDUCE))
			return (uint8_t)algorithm;
	}
}

static void add_random_op(
	struct team *t, uint8_t coll, uint8_t dtype, uint8_t redop, uint8_t algorithm)
{
	static const uint32_t counts[] = {0, 1, 2, 15, 16, 17, 63, 65, 257, 700, 1200};
	struct op *op = add_op(t, coll, dtype, redop, algorithm);

	op->args.count = counts[pick(RX_ARRAY_SIZE(counts))];
	op->args.root = coll == RX_BROADCAST ? pick(t->n_ranks) : 0;
	op->n_blocks = 1 + pick(3);
	op->n_threads = 1 + pick(3);
	op->in_place = pick(3) == 0;
	prepare(op, pick(3));
}

static void test_every_kind(void **state)
{
	static const uint8_t colls[] = {
		RX_ALL_REDUCE, RX_REDUCE_SCATTER, RX_ALL_GATHER, RX_ALL_TO_ALL, RX_BROADCAST};
	struct team team;

	(void)state;
	for (uint32_t c = 0; c < RX_ARRAY_SIZE(colls); c++) {
		for (uint8_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
			set_up(&team, 1 + pick(pick(3) ? 4 : MAX_RANKS), pick(3));
			for (uint8_t redop = 0; redop < RX_REDOP_N; redop++) {
				uint8_t op = rx_coll_reduces(colls[c]) ? redop : 0;

				add_random_op(
					&team, colls[c], dtype, op, any_algorithm(colls[c], op));
			}
			run_and_check(&team);
			tear_down(&team);
		}
	}
}

/* Every algorithm, with every number of ranks; what a region has room for, and one more or less. */
static void test_edges(void **state)
{
	struct team team;

	(void)state;
	for (uint32_t n = 1; n <= MAX_RANKS; n++) {
		for (uint32_t i = 0; i < 9; i++) {
			uint8_t algorithm = (uint8_t)(i % RX_INL_ALGORITHM_N);
			uint8_t coll = i < 3 || algorithm == RX_INL_TWO_SHOT ? RX_ALL_REDUCE
				       : i < 6                               ? RX_REDUCE_SCATTER
									     : RX_ALL_GATHER;
			uint32_t n_blocks = 3 + pick(2);
			uint32_t room = (RX_INL_SLOT_MIN(n) / n & ~127u) / n_blocks & ~127u;
			uint32_t parts = algorithm == RX_INL_TWO_SHOT ? n * n_blocks : n_blocks;

			set_up(&team, n, i % 3);
			room = algorithm == RX_INL_WORDS ? room / 2 : room;
			for (uint32_t k = 0; k < 3; k++) {
				struct op *op = add_op(&team, coll, RX_UINT8, RX_SUM, algorithm);

				op->args.count = (1 + pick(2)) * room * parts - 1 + k;
				op->n_blocks = n_blocks;
				op->n_threads = 2;
				prepare(op, k);
			}
			run_and_check(&team);
			tear_down(&team);
		}
	}
}

/* ---- one behind the other ---- */

#define N_RUSH     12000u
#define RUSH_COUNT 1500u

struct rush {
	struct team *team;
	uint32_t rank;
	uint32_t n_wrong;
	uint32_t seed;
	uint32_t send[RUSH_COUNT];
	uint32_t recv[RUSH_COUNT * 3];
	pthread_t id;
};

static uint32_t rush_value(uint32_t n, uint32_t rank, uint32_t i)
{
	return n * 2654435761u + rank * 40503u + i;
}

static bool rush_is_right(const struct op *op, const uint32_t *recv, uint32_t n)
{
	const struct rx_inl_args *a = &op->args;

	for (uint32_t i = 0; i < a->count; i++) {
		uint32_t sum = 0;

		for (uint32_t r = 0; r < a->n_ranks; r++) {
			uint32_t v = rush_value(n, r, i);

			sum += v;
			if (a->coll == RX_ALL_GATHER && recv[r * a->count + i] != v)
				return false;
		}
		if (a->coll == RX_ALL_REDUCE && recv[i] != sum)
			return false;
		if (a->coll == RX_BROADCAST && recv[i] != rush_value(n, a->root, i))
			return false;
	}
	return true;
}

/* The same operations on all ranks; buffers are used again as soon as a launch has ended. */
static void *run_rush(void *arg)
{
	static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_BROADCAST};
	struct rush *rush = arg;
	uint64_t state = rush->seed;
	struct op op = rush->team->ops[0];

	for (uint32_t n = 0; n < N_RUSH; n++) {
		uint32_t bits = 0;

		state = state * 6364136223846793005u + 1442695040888963407u;
		bits = (uint32_t)(state >> 32);
		op.args.coll = colls[bits % 3];
		op.args.algorithm = (uint8_t)(bits / 4 % (op.args.coll == RX_ALL_REDUCE ? 3 : 2));
		op.args.root = op.args.coll == RX_BROADCAST ? bits / 16 % rush->team->n_ranks : 0;
		op.args.count = bits / 64 % 8 ? bits / 1024 % 20 : bits / 1024 % RUSH_COUNT;
		op.n_blocks = 1 + (bits >> 28) % 2;
		op.args.send[rush->rank] = rush->send;
		op.args.recv[rush->rank] = rush->recv;
		for (uint32_t i = 0; i < op.args.count; i++)
			rush->send[i] = rush_value(n, rush->rank, i);
		launch(&op, 1u << rush->rank);
		if (!rush_is_right(&op, rush->recv, n))
			rush->n_wrong++;
	}
	return NULL;
}

/* @first: number of the first round, less one */
static void rush(uint32_t n_ranks, uint64_t first)
{
	struct rush *all = get(n_ranks * sizeof(*all));
	struct team team;

	set_up(&team, n_ranks, 0);
	(void)add_op(&team, RX_ALL_REDUCE, RX_UINT32, RX_SUM, RX_INL_FLAT);
	for (uint32_t r = 0; r < n_ranks; r++) {
		team.mem[r]->turn[0].round = first;
		team.mem[r]->turn[1].round = first;
		all[r].team = &team;
		all[r].rank = r;
		all[r].seed = 5;
		assert_int_equal(pthread_create(&all[r].id, NULL, run_rush, &all[r]), 0);
	}
	for (uint32_t r = 0; r < n_ranks; r++)
		assert_int_equal(pthread_join(all[r].id, NULL), 0);
	for (uint32_t r = 0; r < n_ranks; r++) {
		assert_int_equal(team.line[r].status, 0);
		assert_int_equal(all[r].n_wrong, 0);
		assert_true(team.mem[r]->ticket > N_RUSH);
		assert_true(team.mem[r]->ticket == team.mem[r]->ended);
	}
	tear_down(&team);
	free(all);
}

static void test_back_to_back(void **state)
{
	(void)state;
	rush(2, 0);
}

static void test_rounds_wrap(void **state)
{
	(void)state;
	rush(3, 0xffffffffull - N_RUSH / 2);
}

/* ---- what goes wrong ---- */

static struct op *small_op(struct team *t, uint8_t algorithm)
{
	struct op *op = add_op(t, RX_ALL_REDUCE, RX_INT32, RX_SUM, algorithm);

	op->args.count = 100;
	op->n_threads = 2;
	op->n_blocks = 2;
	return op;
}

static uint32_t status_of(const struct team *t, uint32_t r)
{
	uint32_t status = __atomic_load_n(&t->line[r].status, __ATOMIC_RELAXED);

	assert_int_equal(t->mem[r]->failed, status);
	return status;
}

static void clear_all(struct team *t)
{
	for (uint32_t i = 0; i < t->n_ops; i++)
		clear(&t->ops[i]);
	tear_down(t);
}

static void test_missing_rank(void **state)
{
	(void)state;
	for (uint8_t algorithm = 0; algorithm < RX_INL_ALGORITHM_N; algorithm++) {
		struct team team;
		struct stream streams[2];

		set_up(&team, 4, 0);
		team.page.wait_ticks = SHORT;
		prepare(small_op(&team, algorithm), 0);
		for (uint32_t r = 0; r < 2; r++)
			start(&streams[r], &team, 1u << r, 0, 1);
		for (uint32_t r = 0; r < 2; r++)
			finish(&streams[r]);
		for (uint32_t r = 0; r < 2; r++) {
			uint32_t code = RX_INL_STATUS_CODE(status_of(&team, r));

			/* Both wait equally long; the first to give up may have told the other. */
			assert_true(code == RX_INL_E_TIMEOUT || code == RX_INL_E_PEER);
			assert_true(RX_INL_STATUS_RANKS(status_of(&team, r)) & 0xc);
			assert_true(is_untouched(&team.ops[0], r));
			assert_int_equal(team.line[r].what >> 32, 1);
		}
		assert_int_equal(team.line[2].what, 0);
		clear_all(&team);
	}
}

/* One rank makes a call more than the other, as a graph that is replayed once too often. */
static void test_one_call_more(void **state)
{
	struct team team;
	struct stream streams[2];

	(void)state;
	set_up(&team, 2, 0);
	team.page.wait_ticks = SHORT * 10;
	prepare(small_op(&team, RX_INL_FLAT), 0);
	prepare(small_op(&team, RX_INL_WORDS), 0);
	prepare(small_op(&team, RX_INL_WORDS), 0);
	start(&streams[0], &team, 1, 0, 2);
	start(&streams[1], &team, 2, 0, 1);
	finish(&streams[1]);
	finish(&streams[0]);
	check(&team.ops[0]);
	assert_int_equal(status_of(&team, 1), 0);
	assert_int_equal(status_of(&team, 0), RX_INL_E_TIMEOUT | 2u << 16);
	assert_int_equal(team.line[0].what >> 32, 2);
	assert_int_equal(team.line[1].what >> 32, 1);
	/* What the other one waits for is there when it comes after all, but there is no more. */
	start(&streams[1], &team, 2, 1, 2);
	finish(&streams[1]);
	assert_int_equal(status_of(&team, 1), RX_INL_E_PEER | 1u << 16);
	assert_memory_equal(team.ops[1].args.recv[1],
		team.ops[1].expected[1] +
			((uint8_t *)team.ops[1].args.recv[1] - team.ops[1].room[1][1]),
		400);
	assert_true(is_untouched(&team.ops[2], 1));
	clear_all(&team);
}

static void wait_for(const uint64_t *word)
{
	struct timespec nap = {0, 1000000};

	while (__atomic_load_n(word, __ATOMIC_RELAXED) == 0)
		(void)nanosleep(&nap, NULL);
}

static void test_abort(void **state)
{
	(void)state;
	for (uint8_t algorithm = 0; algorithm < RX_INL_ALGORITHM_N; algorithm++) {
		for (uint32_t how = 0; how < 2; how++) {
			struct team team;
			struct stream stream;

			set_up(&team, 3, 0);
			prepare(small_op(&team, algorithm), 0);
			prepare(small_op(&team, algorithm), 0);
			start(&stream, &team, 1, 0, 1);
			wait_for(&team.line[0].what);
			__atomic_store_n(
				how ? &team.page.abort : &team.page.epoch, 1, __ATOMIC_RELAXED);
			finish(&stream);
			assert_int_equal(RX_INL_STATUS_CODE(status_of(&team, 0)), RX_INL_E_ABORTED);
			/* The next one says nothing any more. */
			start(&stream, &team, 1, 1, 1);
			finish(&stream);
			assert_int_equal(team.line[0].what >> 32, 1);
			assert_true(is_untouched(&team.ops[1], 0));
			clear_all(&team);
		}
	}
}

static void differ(struct op *op, uint32_t how)
{
	switch (how) {
	case 0:
		op->args.coll = RX_REDUCE_SCATTER;
		break;
	case 1:
		op->args.dtype = RX_FLOAT32;
		break;
	case 2:
		op->args.op = RX_MAX;
		break;
	case 3:
		op->args.count -= 1;
		break;
	case 4:
		op->args.root = 1;
		break;
	case 5:
		op->args.algorithm = RX_INL_FLAT;
		break;
	default:
		op->n_blocks = 1;
	}
}

static void test_mismatch(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 14; i++) {
		uint8_t algorithm = i % 2 ? RX_INL_WORDS : RX_INL_TWO_SHOT;
		struct team team;
		struct stream streams[3];
		uint32_t n_mismatch = 0;

		set_up(&team, 3, 0);
		prepare(small_op(&team, algorithm), 0);
		differ(small_op(&team, algorithm), i / 2);
		prepare(&team.ops[1], 0);
		for (uint32_t r = 0; r < 3; r++)
			start(&streams[r], &team, 1u << r, r == 2, 1);
		for (uint32_t r = 0; r < 3; r++)
			finish(&streams[r]);
		for (uint32_t r = 0; r < 3; r++) {
			uint32_t code = RX_INL_STATUS_CODE(status_of(&team, r));

			assert_true(code == RX_INL_E_MISMATCH || code == RX_INL_E_PEER);
			n_mismatch += code == RX_INL_E_MISMATCH;
		}
		assert_true(n_mismatch >= 1);
		if (algorithm == RX_INL_WORDS || i / 2 != 6) {
			for (uint32_t r = 0; r < 3; r++)
				assert_true(is_untouched(&team.ops[r == 2], r));
		}
		clear_all(&team);
	}
}

static void test_overlap(void **state)
{
	struct team team;
	struct stream streams[3];

	(void)state;
#ifdef __SANITIZE_THREAD__
	/* Launches that overlap do race for their slot; the rank has failed then. */
	skip();
#endif
	set_up(&team, 2, 0);
	prepare(small_op(&team, RX_INL_FLAT), 0);
	prepare(small_op(&team, RX_INL_FLAT), 0);
	start(&streams[0], &team, 1, 0, 1);
	wait_for(&team.line[0].what);
	start(&streams[1], &team, 1, 1, 1);
	finish(&streams[1]);
	finish(&streams[0]);
	assert_int_equal(RX_INL_STATUS_CODE(status_of(&team, 0)), RX_INL_E_OVERLAP);
	/* The peer may find what the first of them pushed, but nothing more. */
	start(&streams[2], &team, 2, 0, 2);
	finish(&streams[2]);
	assert_int_equal(status_of(&team, 1), RX_INL_E_PEER | 1u << 16);
	assert_true(is_untouched(&team.ops[0], 0) && is_untouched(&team.ops[1], 0));
	assert_true(is_untouched(&team.ops[1], 1));
	clear_all(&team);
}

static void test_wrong_arguments(void **state)
{
	struct team team;
	struct op *op = NULL;

	(void)state;
	set_up(&team, 2, 0);
	op = small_op(&team, RX_INL_FLAT);
	prepare(op, 0);
	op->args.abi++;
	launch(op, 1);
	op->args.abi--;
	op->args.slot_bytes = 256;
	launch(op, 1);
	op->args.slot_bytes = team.slot_bytes;
	op->args.dtype = RX_UINT32;
	gpu_cpu_run(gpu_cpu_find("rx_inl_f32"), &op->args, 1, 1);
	assert_true(is_untouched(op, 0));
	assert_int_equal(team.mem[0]->ticket, 0);
	clear_all(&team);
}

/* ---- plans ---- */

static void test_plan(void **state)
{
	static const uint8_t colls[] = {
		RX_ALL_REDUCE, RX_REDUCE_SCATTER, RX_ALL_GATHER, RX_ALL_TO_ALL, RX_BROADCAST};
	uint32_t n_algorithm[RX_INL_ALGORITHM_N] = {0};

	(void)state;
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t n = 1 + pick(RX_INL_MAX_RANKS);
		uint32_t max = 1 + pick(RX_INL_MAX_BLOCKS);
		uint32_t bytes = pick(1u << (1 + pick(22)));
		uint8_t coll = colls[pick(RX_ARRAY_SIZE(colls))];
		uint32_t redop = pick(RX_REDOP_N);
		struct rx_inl_plan plan = rx_inl_plan(coll, redop, bytes, n, max);
		uint32_t units = (bytes + 255) / 256;

		assert_true(plan.n_blocks >= 1 && plan.n_blocks <= max);
		assert_true(plan.n_threads % 64 == 0 && plan.n_threads >= 64 &&
			    plan.n_threads <= RX_INL_MAX_THREADS);
		assert_true(plan.n_blocks == 1 || plan.n_blocks <= units);
		assert_true(plan.algorithm != RX_INL_TWO_SHOT || coll == RX_ALL_REDUCE);
		assert_true(plan.algorithm != RX_INL_WORDS || redop != RX_PREMUL_SUM);
		n_algorithm[plan.algorithm]++;
	}
	for (uint32_t i = 0; i < RX_INL_ALGORITHM_N; i++)
		assert_true(n_algorithm[i] > 100);
	assert_true(rx_inl_serves(RX_ALL_REDUCE, 1u << 20, 4, 8));
	assert_false(rx_inl_serves(RX_ALL_REDUCE, 1u << 30, 4, 8));
	assert_false(rx_inl_serves(RX_ALL_REDUCE, 1, 4, RX_INL_MAX_RANKS + 1));
	assert_false(rx_inl_serves(RX_ALL_GATHER_V, 1, 4, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_back_to_back),
		cmocka_unit_test(test_rounds_wrap),
		cmocka_unit_test(test_missing_rank),
		cmocka_unit_test(test_one_call_more),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_mismatch),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_wrong_arguments),
		cmocka_unit_test(test_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
