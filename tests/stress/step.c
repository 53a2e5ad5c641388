/* SPDX-License-Identifier: MIT */
#include "stress.h"

#include "../../kernels/coll_types.h"

#include <unistd.h>

static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL,
	RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V,
	RX_ALL_TO_ALL_V};

#define N_COLLS (sizeof(colls) / sizeof(colls[0]))

static struct dice dice_of(const struct team *team, uint32_t i)
{
	struct dice dice = {team->seed};

	dice.state = roll(&dice, UINT64_MAX) + i;
	return dice;
}

/* Mostly small, so that there are many. */
static uint64_t pick_count(struct dice *dice, uint64_t max_count)
{
	static const uint64_t limits[] = {2, 16, 100, 1000, UINT64_MAX};
	uint64_t limit = limits[roll(dice, 5)];

	return roll(dice, (limit < max_count ? limit : max_count) + 1);
}

int step_coll(struct member *m, struct dice *dice)
{
	rcclx_result r = RCCLX_OK;
	struct coll_case what = {
		.coll = colls[roll(dice, N_COLLS)],
		.dtype = (uint32_t)roll(dice, RX_DTYPE_N),
		.op = (uint32_t)roll(dice, RX_REDOP_N),
		.count = pick_count(dice, m->team->max_count),
		.root = (uint32_t)roll(dice, m->coll.n_ranks),
		.mode = (enum coll_mode)roll(dice, COLL_MODE_N),
		.memory = (enum coll_memory)roll(dice, COLL_MEMORY_N),
		.in_place = roll(dice, 2) == 1,
		.misalign = (uint32_t)roll(dice, 9),
		.seed = roll(dice, UINT64_MAX),
	};

	if (!rx_coll_reduces(what.coll))
		what.op = 0;
	member_begin(m, CALL_MS, rx_coll_name(what.coll));
	int bad = coll_try(&m->coll, &what, &r);
	member_end(m);
	if (bad != 0)
		return bad;
	if (r == RCCLX_OK)
		atomic_fetch_add(&m->slot->n_compared, 1);
	return member_judge(m, r, rx_coll_name(what.coll));
}

/* ---- sends and receives ---- */

static uint8_t letter(uint32_t from, uint32_t to, uint64_t i, uint64_t salt)
{
	return (uint8_t)(from * 31 + to * 101 + i * 7 + i / 251 + salt);
}

static int check_letters(
	struct member *m, const uint8_t *in, uint64_t count, uint32_t from, uint64_t salt)
{
	for (uint64_t i = 0; i < count; i++)
		RANK_CHECK(m->ctx, in[i] == letter(from, m->coll.rank, i, salt),
			"seed %llu: byte %llu of %llu from rank %u is wrong",
			(unsigned long long)m->team->seed, (unsigned long long)i,
			(unsigned long long)count, from);
	return 0;
}

static rcclx_result exchange_all(struct member *m, uint8_t *base, uint64_t count, uint64_t stride)
{
	uint32_t n = m->coll.n_ranks;
	rcclx_result r = rcclx_group_start();

	for (uint32_t k = 0; k < n && r == RCCLX_OK; k++) {
		uint32_t to = (m->coll.rank + k) % n;
		uint32_t from = (m->coll.rank + 2 * n - 2 * k) % n;

		/* With an even number of ranks steps of two do not meet everybody. */
		if (n % 2 == 0)
			from = (m->coll.rank + n - k) % n;
		r = rcclx_send(m->coll.comm, base + to * stride, count, RCCLX_UINT8, to, NULL);
		if (r == RCCLX_OK)
			r = rcclx_recv(m->coll.comm, base + (n + from) * stride, count, RCCLX_UINT8,
				from, NULL);
	}
	rcclx_result end = rcclx_group_end();
	return r != RCCLX_OK ? r : end;
}

/* Everybody sends to everybody, itself too, in an order of its own. */
static int step_exchange(struct member *m, struct dice *dice)
{
	uint32_t n = m->coll.n_ranks;
	uint64_t count = pick_count(dice, m->coll.bytes / n);
	uint64_t stride = m->coll.bytes / n;
	uint64_t salt = roll(dice, 256);
	uint8_t *base = (m->coll.rank + salt) % 2 == 0 ? m->coll.registered : m->coll.private;

	for (uint32_t to = 0; to < n; to++)
		for (uint64_t i = 0; i < count; i++)
			base[to * stride + i] = letter(m->coll.rank, to, i, salt);
	MEMBER_CALL(m, CALL_MS, exchange_all(m, base, count, stride));
	for (uint32_t from = 0; from < n && !m->over; from++)
		RANK_DO(check_letters(m, base + (n + from) * stride, count, from, salt));
	return 0;
}

/* A token goes around; every rank but one waits in a blocking receive. */
static int step_ring(struct member *m, struct dice *dice)
{
	uint32_t n = m->coll.n_ranks;
	uint32_t next = (m->coll.rank + 1) % n;
	uint32_t before = (m->coll.rank + n - 1) % n;
	uint32_t first = (uint32_t)roll(dice, n);
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	uint64_t token = 1000;

	if (n == 1)
		return 0;
	config.timeout_ns = m->team->timeout_ns;
	if (m->coll.rank != first)
		MEMBER_CALL(m, CALL_MS,
			rcclx_recv(m->coll.comm, &token, 1, RCCLX_UINT64, before, &config));
	token++;
	if (!m->over)
		MEMBER_CALL(m, CALL_MS,
			rcclx_send(m->coll.comm, &token, 1, RCCLX_UINT64, next, &config));
	if (!m->over && m->coll.rank == first)
		MEMBER_CALL(m, CALL_MS,
			rcclx_recv(m->coll.comm, &token, 1, RCCLX_UINT64, before, &config));
	RANK_CHECK(m->ctx, m->over || m->coll.rank != first || token == 1000 + n, "token is %llu",
		(unsigned long long)token);
	return 0;
}

/* ---- several at once ---- */

#define N_BURST 6u

static int32_t summand(uint32_t rank, uint32_t k, uint64_t i)
{
	return (int32_t)(rank * 1000 + k * 100 + i);
}

static int check_sum(struct member *m, const int32_t *got, uint64_t count, uint32_t k)
{
	for (uint64_t i = 0; i < count; i++) {
		int32_t sum = 0;

		for (uint32_t r = 0; r < m->coll.n_ranks; r++)
			sum += summand(r, k, i);
		RANK_CHECK(m->ctx, got[i] == sum, "seed %llu: sum %u, element %llu is %d, not %d",
			(unsigned long long)m->team->seed, k, (unsigned long long)i, got[i], sum);
	}
	return 0;
}

/* Started in order, waited for in reverse. */
static int step_burst(struct member *m, struct dice *dice)
{
	struct rcclx_op *ops[N_BURST] = {NULL};
	uint64_t count = roll(dice, 200) + 1;
	int32_t data[N_BURST][200];

	for (uint32_t k = 0; k < N_BURST && !m->over; k++) {
		for (uint64_t i = 0; i < count; i++)
			data[k][i] = summand(m->coll.rank, k, i);
		MEMBER_CALL(m, CALL_MS,
			rcclx_all_reduce_start(m->coll.comm, data[k], data[k], count, RCCLX_INT32,
				RCCLX_SUM, NULL, &ops[k]));
	}
	for (uint32_t k = N_BURST; k-- > 0;) {
		bool done = false;

		if (ops[k] == NULL)
			continue;
		MEMBER_CALL(m, CALL_MS, rcclx_op_wait(ops[k], RCCLX_FOREVER));
		done = rcclx_op_wait(ops[k], 0) == RCCLX_OK;
		RANK_OK(m->ctx, rcclx_op_free(ops[k]));
		if (done)
			RANK_DO(check_sum(m, data[k], count, k));
	}
	return 0;
}

static rcclx_result two_comms(struct member *m, int32_t data[2][100], uint64_t count)
{
	rcclx_result r = rcclx_group_start();

	for (uint32_t k = 0; k < 2 && r == RCCLX_OK; k++) {
		uint32_t which = (k + m->coll.rank) % 2;

		r = rcclx_all_reduce(which ? m->twin : m->coll.comm, data[which], data[which],
			count, RCCLX_INT32, RCCLX_SUM, NULL);
	}
	rcclx_result end = rcclx_group_end();
	return r != RCCLX_OK ? r : end;
}

/* Two communicators in opposite order, in one group. */
static int step_group(struct member *m, struct dice *dice)
{
	uint64_t count = roll(dice, 100) + 1;
	int32_t data[2][100];

	if (m->twin == NULL) {
		struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;

		config.form_timeout_ns = FORM_MS * test_slow() * 1000000ull;
		MEMBER_CALL(
			m, FORM_LIMIT_MS, rcclx_comm_duplicate(m->coll.comm, &config, &m->twin));
		if (m->over)
			return 0;
	}
	for (uint32_t k = 0; k < 2; k++)
		for (uint64_t i = 0; i < count; i++)
			data[k][i] = summand(m->coll.rank, k, i);
	MEMBER_CALL(m, CALL_MS, two_comms(m, data, count));
	for (uint32_t k = 0; k < 2 && !m->over; k++)
		RANK_DO(check_sum(m, data[k], count, k));
	return 0;
}

/* ---- others ---- */

static int step_split(struct member *m, struct dice *dice)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct coll_rank parent = m->coll;
	struct rcclx_comm *part = NULL;
	uint32_t n_colors = (uint32_t)roll(dice, 3) + 1;
	uint32_t me = m->coll.rank;
	int32_t color = roll(dice, 4) == me ? RCCLX_NO_COLOR : (int32_t)(me % n_colors);
	int32_t key = roll(dice, 2) == 0 ? (int32_t)me : -(int32_t)me;

	config.form_timeout_ns = FORM_MS * test_slow() * 1000000ull;
	MEMBER_CALL(m, FORM_LIMIT_MS, rcclx_comm_split(m->coll.comm, color, key, &config, &part));
	if (m->over || part == NULL)
		return 0;
	m->coll.comm = part;
	m->coll.rank = rcclx_comm_rank(part);
	m->coll.n_ranks = rcclx_comm_size(part);
	dice->state += (uint64_t)color;
	for (uint32_t i = 0; i < 4 && !m->over; i++)
		RANK_DO(step_coll(m, dice));
	RANK_OK(m->ctx, rcclx_comm_destroy(part));
	m->coll = parent;
	return 0;
}

/* One rank says another count: all are told, and go on. */
static int step_mismatch(struct member *m, struct dice *dice)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	int32_t data[12] = {0};
	uint32_t odd = (uint32_t)roll(dice, m->coll.n_ranks);
	uint64_t count = m->coll.rank == odd ? 12 : 11;

	if (m->coll.n_ranks == 1)
		return 0;
	config.timeout_ns = m->team->timeout_ns;
	config.executor = (uint32_t)roll(dice, 3);
	member_begin(m, CALL_MS, "mismatch");
	rcclx_result r =
		rcclx_all_reduce(m->coll.comm, data, data, count, RCCLX_INT32, RCCLX_SUM, &config);
	member_end(m);
	if (r == RCCLX_ERR_MISMATCH) {
		atomic_fetch_add(&m->slot->results[r], 1);
		return 0;
	}
	RANK_CHECK(m->ctx, r != RCCLX_OK, "a mismatch was not noticed");
	return member_judge(m, r, "mismatch");
}

static int step_abort(struct member *m, struct dice *dice)
{
	if (roll(dice, m->coll.n_ranks) != m->coll.rank)
		return step_coll(m, dice);
	atomic_fetch_or(&m->team->trouble, TROUBLE_ABORTED);
	atomic_store(&m->team->since_ms, test_now_ms());
	RANK_OK(m->ctx, rcclx_comm_abort(m->coll.comm));
	RANK_RESULT(m->ctx, rcclx_barrier(m->coll.comm, NULL), RCCLX_ERR_ABORTED);
	m->over = true;
	return 0;
}

static int step_exit(struct member *m, struct dice *dice)
{
	if (roll(dice, m->coll.n_ranks) != m->coll.rank)
		return step_coll(m, dice);
	atomic_fetch_or(&m->team->trouble, TROUBLE_EXITED);
	atomic_store(&m->team->since_ms, test_now_ms());
	_exit(EXIT_ABRUPT);
}

int step_run(struct member *m, uint32_t i)
{
	struct dice dice = dice_of(m->team, i);
	uint64_t which = roll(&dice, 1000);

	if (which < 550)
		return step_coll(m, &dice);
	if (which < 680)
		return step_exchange(m, &dice);
	if (which < 760)
		return step_ring(m, &dice);
	if (which < 840)
		return step_burst(m, &dice);
	if (which < 920)
		return step_group(m, &dice);
	if (which < 970)
		return step_split(m, &dice);
	if (which < 996)
		return step_mismatch(m, &dice);
	return which < 998 ? step_abort(m, &dice) : step_exit(m, &dice);
}
