/* SPDX-License-Identifier: MIT */
/*
 * Every kernel against the oracle, bit for bit: collectives, algorithms, types, operations, with
 * ranks shared out among launches in several ways, any count and alignment, in place, small slots,
 * and two operations one behind the other on the same synchronisation memory.
 *
 *	RCCLX_LONG        every algorithm for everything, instead of a random one
 *	RCCLX_ONE_LAUNCH  no launches that wait for each other, for tools that run them in turns
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
#include "../oracle/oracle.h"
#include "gpu_runner.h"

#define MAX_RANKS  8u
#define MAX_COUNT  1200u
#define N_OPS      2u
#define GUARD      64u
#define FILLER     0xa5
#define SLOT_BYTES 2048u /* RX_DEV_SLOT_MIN(8): the longer messages take several rounds */
#define WAIT_NS    20000000000ull

static const char *const suffixes[RX_DTYPE_N] = {
	"i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16", "e4m3", "e5m2"};

/* One operation: buffers as they were before and have to be afterwards. */
struct op {
	struct rx_dev_args args; /* of launch 0 */
	uint64_t send_elems[MAX_RANKS];
	uint64_t recv_elems[MAX_RANKS];
	uint8_t *room[MAX_RANKS][2]; /* send, recv */
	size_t room_bytes[MAX_RANKS][2];
	uint8_t *inputs[MAX_RANKS];
	uint8_t *expected[MAX_RANKS]; /* like the room that recv is in */
	struct rx_dev_block *blocks;  /* [from * n_ranks + to] */
	bool in_place;
};

struct team {
	struct op ops[N_OPS];
	struct rx_dev_sync *sync[MAX_RANKS];
	uint8_t *slots[MAX_RANKS];
	uint64_t local[MAX_RANKS]; /* by launch */
	uint32_t n_launches;
	uint32_t n_ranks;
	uint32_t n_blocks;
	uint32_t n_threads;
};

/* What a launch without its peer wrote; in memory that kernels reach. */
struct lonely {
	uint64_t done;
	uint32_t status;
	uint32_t abort_word;
};

static struct lonely *lonely;
static struct team team;
static const struct gpu_runner_size *size;
static uint64_t random_state = 1;

static uint32_t pick(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % below;
}

static bool is_reduction(const struct op *op)
{
	return rx_coll_reduces(op->args.coll);
}

/* ---- preparing ---- */

/* Displacements of variable collectives: blocks of any size with gaps, the same order everywhere.
 */
static void make_blocks(struct op *op, uint32_t n)
{
	uint64_t send_end[MAX_RANKS] = {0};
	uint64_t recv_end[MAX_RANKS] = {0};
	uint64_t counts[MAX_RANKS];
	struct rx_dev_args *a = &op->args;
	uint64_t max = a->count;

	a->count = 0;
	op->blocks = gpu_runner_alloc((size_t)n * n * sizeof(op->blocks[0]));
	for (uint32_t r = 0; r < n; r++)
		counts[r] = pick(3) ? pick((uint32_t)max + 1) : 0;
	for (uint32_t from = 0; from < n; from++) {
		for (uint32_t to = 0; to < n; to++) {
			struct rx_dev_block *block = &op->blocks[from * n + to];

			block->count = a->coll == RX_ALL_GATHER_V       ? counts[from]
				       : a->coll == RX_REDUCE_SCATTER_V ? counts[to]
				       : pick(3)                        ? pick((uint32_t)max + 1)
									: 0;
			block->send_at = a->coll == RX_ALL_GATHER_V ? 0 : send_end[from];
			block->recv_at = 0;
			if (a->coll != RX_REDUCE_SCATTER_V)
				block->recv_at = recv_end[to] + (to + from) % 3;
			send_end[from] = block->send_at + block->count;
			recv_end[to] = block->recv_at + block->count;
			if (block->count > a->count)
				a->count = block->count;
		}
	}
	for (uint32_t r = 0; r < n; r++) {
		op->send_elems[r] = send_end[r];
		op->recv_elems[r] = recv_end[r];
	}
	a->blocks = op->blocks;
}

static void set_extents(struct op *op, uint32_t n)
{
	struct rx_dev_args *a = &op->args;

	if (rx_coll_is_v(a->coll)) {
		make_blocks(op, n);
		return;
	}
	for (uint32_t r = 0; r < n; r++) {
		struct rx_extent extent;

		if (a->coll == RX_SEND) {
			op->send_elems[r] = r == a->root ? a->count : 0;
			op->recv_elems[r] = r == a->peer ? a->count : 0;
			continue;
		}
		assert_true(rx_coll_extent(a->coll, a->count, n, r, a->root, &extent));
		op->send_elems[r] = extent.send;
		op->recv_elems[r] = extent.recv;
	}
}

/* Puts rank @r's buffers somewhere, its send filled, all else filler. */
static void place(struct op *op, uint32_t n, uint32_t r, uint32_t alignment)
{
	struct rx_dev_args *a = &op->args;
	uint32_t width = a->elem_bytes;
	uint32_t off[2] = {0, 0};
	uint8_t *at[2];
	struct rx_extent extent = {0};
	bool in_place = op->in_place && rx_coll_extent(a->coll, a->count, n, r, a->root, &extent) &&
			extent.in_place_ok && extent.send && extent.recv;

	if (alignment > 0)
		off[0] = off[1] = 3 * width;
	if (alignment > 1) {
		off[0] = (r * 5 + 1) % 16 * width;
		off[1] = (r * 3 + 2) % 16 * width;
	}
	for (int k = 0; k < 2; k++) {
		uint64_t elems = k == 0 ? op->send_elems[r] : op->recv_elems[r];

		op->room_bytes[r][k] = elems * width + 2 * GUARD + off[k];
		op->room[r][k] = gpu_runner_alloc(op->room_bytes[r][k]);
		memset(op->room[r][k], FILLER, op->room_bytes[r][k]);
		at[k] = op->room[r][k] + GUARD + off[k];
	}
	if (in_place && extent.send <= extent.recv)
		at[0] = at[1] + extent.send_in_recv * width;
	else if (in_place)
		at[1] = at[0] + extent.recv_in_send * width;
	op->inputs[r] = gpu_runner_alloc(op->send_elems[r] * width);
	oracle_fill(op->inputs[r], a->dtype, 0, op->send_elems[r], r, pick(1000),
		pick(2) ? ORACLE_WILD : ORACLE_NORMAL);
	memcpy(at[0], op->inputs[r], op->send_elems[r] * width);
	a->send[r] = op->send_elems[r] ? at[0] : NULL;
	a->recv[r] = op->recv_elems[r] ? at[1] : NULL;
}

/* Room of rank @r in which its recv lies. */
static int recv_room(const struct op *op, uint32_t r)
{
	const uint8_t *at = op->args.recv[r];
	const uint8_t *room = op->room[r][0];

	return at >= room && at < room + op->room_bytes[r][0] ? 0 : 1;
}

static uint64_t block_count(const struct op *op, uint32_t n, uint32_t from, uint32_t to)
{
	const struct rx_dev_args *a = &op->args;

	switch (a->coll) {
	case RX_BROADCAST:
	case RX_SCATTER:
		return from == a->root ? a->count : 0;
	case RX_GATHER:
		return to == a->root ? a->count : 0;
	case RX_SEND:
		return from == a->root && to == a->peer ? a->count : 0;
	case RX_ALL_GATHER:
	case RX_ALL_TO_ALL:
		return a->count;
	default:
		return op->blocks[from * n + to].count;
	}
}

static void expect_copy(struct op *op, uint32_t n, uint32_t to, uint8_t *out)
{
	const struct rx_dev_args *a = &op->args;

	for (uint32_t from = 0; from < n; from++) {
		uint64_t count = block_count(op, n, from, to);
		bool personal = a->coll == RX_SCATTER || a->coll == RX_ALL_TO_ALL;
		bool stacked = a->coll == RX_GATHER || a->coll == RX_ALL_GATHER ||
			       a->coll == RX_ALL_TO_ALL;
		uint64_t send_at = personal ? to * a->count : 0;
		uint64_t recv_at = stacked ? from * a->count : 0;

		if (rx_coll_is_v(a->coll)) {
			send_at = op->blocks[from * n + to].send_at;
			recv_at = op->blocks[from * n + to].recv_at;
		}
		if (count)
			memcpy(out + recv_at * a->elem_bytes,
				op->inputs[from] + send_at * a->elem_bytes, count * a->elem_bytes);
	}
}

static void expect_fold(struct op *op, uint32_t n, uint32_t to, uint8_t *out)
{
	const struct rx_dev_args *a = &op->args;
	const void *src[MAX_RANKS];
	uint64_t first = 0;

	if (a->coll == RX_REDUCE_SCATTER)
		first = to * a->count;
	if (a->coll == RX_REDUCE_SCATTER_V)
		first = op->blocks[to].send_at;
	for (uint32_t r = 0; r < n; r++)
		src[r] = op->inputs[r];
	for (uint64_t i = 0; i < op->recv_elems[to]; i++)
		oracle_fold(a->dtype, a->op, n, src, first + i, a->scalar, out + i * a->elem_bytes);
}

static void expect(struct op *op, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++) {
		int k = recv_room(op, r);
		size_t at = 0;

		op->expected[r] = gpu_runner_alloc(op->room_bytes[r][k]);
		memcpy(op->expected[r], op->room[r][k], op->room_bytes[r][k]);
		if (op->recv_elems[r] == 0)
			continue;
		at = (size_t)((uint8_t *)op->args.recv[r] - op->room[r][k]);
		if (is_reduction(op))
			expect_fold(op, n, r, op->expected[r] + at);
		else
			expect_copy(op, n, r, op->expected[r] + at);
	}
}

/* Ranks to launches: all to one, one each, or several, in turns or in a row. */
static void share_out(struct team *t, uint32_t how)
{
	t->n_launches = how == 0 ? 1 : how == 1 ? t->n_ranks : (t->n_ranks + 1) / 2;
	memset(t->local, 0, sizeof(t->local));
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		uint32_t l = how == 3 ? r * t->n_launches / t->n_ranks : r % t->n_launches;

		t->local[l] |= 1ull << r;
	}
}

static void prepare(struct op *op, struct team *t, uint32_t alignment)
{
	struct rx_dev_args *a = &op->args;

	a->abi = RX_DEV_ABI;
	a->n_ranks = t->n_ranks;
	a->n_launches = t->n_launches;
	a->n_avg = t->n_ranks;
	a->root = pick(t->n_ranks);
	a->peer = pick(t->n_ranks);
	a->elem_bytes = rx_dtype_size(a->dtype);
	a->slot_bytes = SLOT_BYTES;
	a->wait_ticks = WAIT_NS;
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		oracle_fill(&a->scalar[r], a->dtype, 0, 1, r, pick(1000), ORACLE_NORMAL);
		a->slot[r] = t->slots[r];
		a->sync[r] = t->sync[r];
	}
	set_extents(op, t->n_ranks);
	for (uint32_t r = 0; r < t->n_ranks; r++)
		place(op, t->n_ranks, r, alignment);
	expect(op, t->n_ranks);
}

/* ---- running ---- */

struct launcher {
	struct team *team;
	uint32_t launch;
	uint32_t status;
	uint64_t done[N_OPS][MAX_RANKS];
};

/* What a stream does: the operations, one behind the other. */
static void *run_launch(void *arg)
{
	struct launcher *l = arg;

	for (uint32_t i = 0; i < N_OPS; i++) {
		const struct op *op = &l->team->ops[i];
		struct rx_dev_args args = op->args;
		char name[32] = "rx_copy";

		if (is_reduction(op))
			(void)snprintf(name, sizeof(name), "rx_reduce_%s", suffixes[args.dtype]);
		args.launch = l->launch;
		args.local = l->team->local[l->launch];
		args.status = &l->status;
		args.done_value = 100 + i;
		for (uint32_t r = 0; r < args.n_ranks; r++)
			args.done[r] = &l->done[i][r];
		gpu_runner_run(name, &args, sizeof(args), l->team->n_blocks, l->team->n_threads);
	}
	return NULL;
}

static void run(struct team *t)
{
	struct launcher *launchers = gpu_runner_alloc(MAX_RANKS * sizeof(*launchers));
	pthread_t threads[MAX_RANKS];

	for (uint32_t l = 0; l < t->n_launches; l++) {
		launchers[l].team = t;
		launchers[l].launch = l;
	}
	gpu_runner_upload();
	for (uint32_t l = 0; l < t->n_launches; l++) {
		assert_int_equal(pthread_create(&threads[l], NULL, run_launch, &launchers[l]), 0);
	}
	for (uint32_t l = 0; l < t->n_launches; l++)
		assert_int_equal(pthread_join(threads[l], NULL), 0);
	gpu_runner_download();
	for (uint32_t l = 0; l < t->n_launches; l++) {
		assert_int_equal(launchers[l].status, RX_DEV_OK);
		for (uint32_t r = 0; r < t->n_ranks; r++) {
			bool local = t->local[l] >> r & 1;

			for (uint32_t i = 0; i < N_OPS; i++)
				assert_int_equal(launchers[l].done[i][r], local ? 100 + i : 0);
		}
	}
	gpu_runner_free(launchers);
}

static void check(const struct op *op, const struct team *t)
{
	const struct rx_dev_args *a = &op->args;

	for (uint32_t r = 0; r < t->n_ranks; r++) {
		int k = recv_room(op, r);

		if (memcmp(op->room[r][k], op->expected[r], op->room_bytes[r][k]) == 0)
			continue;
		for (size_t i = 0; i < op->room_bytes[r][k]; i++) {
			if (op->room[r][k][i] != op->expected[r][i]) {
				print_error("byte %zu of %zu: %02x, expected %02x\n", i,
					op->room_bytes[r][k], op->room[r][k][i],
					op->expected[r][i]);
				break;
			}
		}
		print_error("%s %s %s algorithm=%u flags=%u count=%llu ranks=%u launches=%u "
			    "blocks=%u threads=%u in_place=%d rank=%u root=%u\n",
			rx_coll_name(a->coll), rx_dtype_name(a->dtype), rx_redop_name(a->op),
			a->algorithm, a->flags, (unsigned long long)a->count, t->n_ranks,
			t->n_launches, t->n_blocks, t->n_threads, op->in_place, r, a->root);
		fail();
	}
}

static void clear(struct op *op)
{
	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		gpu_runner_free(op->room[r][0]);
		gpu_runner_free(op->room[r][1]);
		gpu_runner_free(op->inputs[r]);
		gpu_runner_free(op->expected[r]);
	}
	gpu_runner_free(op->blocks);
}

/* Another number of launches must begin with fresh synchronisation memory. */
static void reset_sync(void)
{
	for (uint32_t r = 0; r < MAX_RANKS; r++)
		memset(team.sync[r], 0, sizeof(struct rx_dev_sync));
}

/* Two operations of one kind, of random shape. */
static void try_kind(uint8_t coll, uint8_t dtype, uint8_t redop, uint8_t algorithm, uint32_t flags)
{
	static const uint32_t counts[] = {0, 1, 2, 15, 16, 17, 63, 65, 257, 700, MAX_COUNT};
	struct team *t = &team;

	t->n_ranks = 1 + pick(pick(3) ? 4 : MAX_RANKS);
	t->n_blocks = 1 + pick(size->max_blocks);
	t->n_threads = 1 + pick(size->max_threads);
	share_out(t, getenv("RCCLX_ONE_LAUNCH") ? 0 : pick(4));
	reset_sync();
	for (uint32_t i = 0; i < N_OPS; i++) {
		memset(&t->ops[i], 0, sizeof(t->ops[i]));
		t->ops[i].args.coll = coll;
		t->ops[i].args.dtype = dtype;
		t->ops[i].args.op = redop;
		t->ops[i].args.algorithm = algorithm;
		t->ops[i].args.flags = flags;
		t->ops[i].args.count =
			counts[pick(RX_ARRAY_SIZE(counts))] * (1 + pick(size->scale));
		t->ops[i].in_place = pick(2);
		prepare(&t->ops[i], t, pick(3));
	}
	run(t);
	for (uint32_t i = 0; i < N_OPS; i++) {
		check(&t->ops[i], t);
		clear(&t->ops[i]);
	}
}

/* All of them in a long run, else a third. */
static void try_algorithms(uint8_t coll, uint8_t dtype, uint8_t redop)
{
	uint8_t only = (uint8_t)pick(RX_DEV_ALGORITHM_N);

	for (uint8_t algorithm = 0; algorithm < RX_DEV_ALGORITHM_N; algorithm++) {
		if (algorithm != only && !getenv("RCCLX_LONG"))
			continue;
		if (coll == RX_SEND && algorithm == RX_DEV_FLAT)
			continue;
		for (uint32_t push = 0; push <= RX_DEV_PUSH; push += RX_DEV_PUSH) {
			uint32_t flags = push | (pick(2) ? RX_DEV_ENTRY : 0);

			try_kind(coll, dtype, redop, algorithm, flags | RX_DEV_EXIT);
		}
	}
}

static int setup(void **state)
{
	(void)state;
	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		team.sync[r] = gpu_runner_alloc(sizeof(struct rx_dev_sync));
		team.slots[r] = gpu_runner_alloc(RX_DEV_SLOT_TOTAL(SLOT_BYTES));
	}
	lonely = gpu_runner_alloc(sizeof(*lonely));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (uint32_t r = 0; r < MAX_RANKS; r++) {
		gpu_runner_free(team.sync[r]);
		gpu_runner_free(team.slots[r]);
	}
	gpu_runner_free(lonely);
	gpu_runner_end();
	return 0;
}

static void test_reductions(void **state)
{
	static const uint8_t colls[] = {
		RX_ALL_REDUCE, RX_REDUCE, RX_REDUCE_SCATTER, RX_REDUCE_SCATTER_V};

	(void)state;
	for (uint8_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
		for (uint8_t redop = 0; redop < RX_REDOP_N; redop++) {
			for (size_t c = 0; c < RX_ARRAY_SIZE(colls); c++) {
				try_algorithms(colls[c], dtype, redop);
			}
		}
	}
}

static void test_copies(void **state)
{
	static const uint8_t colls[] = {RX_ALL_GATHER, RX_ALL_TO_ALL, RX_BROADCAST, RX_GATHER,
		RX_SCATTER, RX_SEND, RX_ALL_GATHER_V, RX_ALL_TO_ALL_V};
	static const uint8_t dtypes[] = {RX_UINT8, RX_BFLOAT16, RX_FLOAT32, RX_INT64};

	(void)state;
	for (uint32_t again = 0; again < 4; again++) {
		for (size_t d = 0; d < RX_ARRAY_SIZE(dtypes); d++) {
			for (size_t c = 0; c < RX_ARRAY_SIZE(colls); c++) {
				try_algorithms(colls[c], dtypes[d], 0);
			}
		}
	}
}

/* ---- giving up ---- */

static struct rx_dev_args lonely_args(void)
{
	struct rx_dev_args args = {
		.abi = RX_DEV_ABI,
		.coll = RX_ALL_GATHER,
		.dtype = RX_FLOAT32,
		.flags = RX_DEV_ENTRY,
		.n_ranks = 2,
		.n_launches = 2,
		.elem_bytes = 4,
		.local = 1,
		.status = &lonely->status,
		.done_value = 7,
	};

	reset_sync();
	memset(lonely, 0, sizeof(*lonely));
	args.sync[0] = team.sync[0];
	args.sync[1] = team.sync[1];
	args.done[0] = &lonely->done;
	return args;
}

static void run_lonely(
	const char *name, const struct rx_dev_args *args, uint32_t n_threads, uint32_t expected)
{
	gpu_runner_upload();
	gpu_runner_run(name, args, sizeof(*args), 2, n_threads);
	gpu_runner_download();
	assert_int_equal(lonely->status, expected);
	assert_int_equal(lonely->done, 7);
}

static void test_timeout(void **state)
{
	struct rx_dev_args args = lonely_args();

	(void)state;
	args.wait_ticks = 20000000;
	run_lonely("rx_copy", &args, 2, RX_DEV_E_TIMEOUT | 1 << 8);
}

static void test_abort(void **state)
{
	struct rx_dev_args args = lonely_args();

	(void)state;
	lonely->abort_word = 1;
	args.abort = &lonely->abort_word;
	run_lonely("rx_copy", &args, 2, RX_DEV_E_ABORTED | 1 << 8);
}

static void test_other_abi(void **state)
{
	struct rx_dev_args args = lonely_args();

	(void)state;
	args.abi = RX_DEV_ABI + 1;
	run_lonely("rx_copy", &args, 2, RX_DEV_E_ARGS);
	/* A type that is not the kernel's. */
	args = lonely_args();
	run_lonely("rx_reduce_f64", &args, 1, RX_DEV_E_ARGS);
}

struct word_peer {
	uint64_t ready;
	uint64_t done;
};

static void *answer_word(void *arg)
{
	struct word_peer *words = arg;

	while (__atomic_load_n(&words->ready, __ATOMIC_ACQUIRE) != 1) {
		struct timespec nap = {0, 100000};

		(void)nanosleep(&nap, NULL);
	}
	__atomic_store_n(&words->ready, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&words->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* The handshake of a captured operation, twice. */
static void test_words(void **state)
{
	struct word_peer words = {0};
	uint32_t status = 0;
	struct rx_dev_words args = {
		.first = &words.ready,
		.first_value = 1,
		.wait = &words.done,
		.wait_value = 1,
		.last = &words.done,
		.status = &status,
		.wait_ticks = WAIT_NS,
	};

	(void)state;
	if (!size->is_coherent)
		skip();
	for (int i = 0; i < 2; i++) {
		pthread_t peer;

		assert_int_equal(pthread_create(&peer, NULL, answer_word, &words), 0);
		gpu_runner_run("rx_words", &args, sizeof(args), 1, 1);
		assert_int_equal(pthread_join(peer, NULL), 0);
		assert_int_equal(words.ready, 0);
		assert_int_equal(words.done, 0);
		assert_int_equal(status, RX_DEV_OK);
	}
	args.wait_ticks = 1000000;
	gpu_runner_run("rx_words", &args, sizeof(args), 1, 1);
	assert_int_equal(status, RX_DEV_E_TIMEOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reductions),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_other_abi),
		cmocka_unit_test(test_words),
	};

	size = gpu_runner_begin();
	if (!size)
		return 77;
	return cmocka_run_group_tests(tests, setup, teardown);
}
