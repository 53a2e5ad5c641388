/* SPDX-License-Identifier: MIT */
#include "matrix.h"
#include "../../kernels/coll_types.h"
#include "../oracle/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED_DATA      0x5eedull
#define SEED_SCALAR    0x5ca1ull
#define UNTOUCHED      0xa5
#define FULL_CHECK_MAX 65536u /* elements; the oracle is slow */
#define MAX_MISALIGN   8u     /* elements */

/* ---- set-up ---- */

static uint64_t buffer_bytes(uint64_t max_bytes)
{
	return max_bytes + 2 * MATRIX_GUARD + MAX_MISALIGN * 8;
}

int matrix_open(struct matrix *m, struct rank_ctx *ctx, uint64_t max_bytes)
{
	*m = (struct matrix){.ctx = ctx, .max_bytes = max_bytes};
	RANK_DO(rank_connect(ctx, &m->client));
	RANK_DO(rank_comm(ctx, m->client, 0, &m->comm));
	for (int i = 0; i < 2; i++) {
		void *memory = NULL;

		RANK_OK(ctx, rcclx_mem_alloc(m->client, buffer_bytes(max_bytes), &memory));
		m->buffers[1][i] = memory;
		m->buffers[0][i] = malloc(buffer_bytes(max_bytes));
		RANK_CHECK(ctx, m->buffers[0][i] != NULL, "no memory");
	}
	return 0;
}

static void free_data(struct matrix *m)
{
	for (uint32_t r = 0; r < WORLD_MAX; r++) {
		free(m->inputs[r]);
		m->inputs[r] = NULL;
	}
	free(m->expected);
	m->expected = NULL;
}

int matrix_close(struct matrix *m)
{
	struct rank_ctx *ctx = m->ctx;

	free_data(m);
	for (int i = 0; i < 2; i++) {
		free(m->buffers[0][i]);
		RANK_OK(ctx, rcclx_mem_free(m->client, m->buffers[1][i]));
	}
	return rank_leave(ctx, m->comm, m->client);
}

/* Well-behaved values first, then NaN, infinities, extremes: also within one small message. */
static void fill(void *buf, uint32_t dtype, uint64_t first, uint64_t count, uint32_t rank)
{
	uint8_t *at = buf;
	uint32_t size = rx_dtype_size(dtype);

	/* Blocks of 24 elements take turns. */
	while (count > 0) {
		uint64_t n = rx_min_u64(24 - first % 24, count);
		bool wild = first / 24 % 2 == 1;

		oracle_fill(
			at, dtype, first, n, rank, SEED_DATA, wild ? ORACLE_WILD : ORACLE_NORMAL);
		at += n * size;
		first += n;
		count -= n;
	}
}

static void select_type(struct matrix *m, uint32_t dtype, uint32_t op)
{
	m->dtype = dtype;
	m->op = op;
	m->size = rx_dtype_size(dtype);
	for (uint32_t r = 0; r < m->ctx->n_ranks; r++) {
		m->scalars[r] = 0;
		oracle_fill(&m->scalars[r], dtype, r, 1, r, SEED_SCALAR, ORACLE_NORMAL);
	}
}

int matrix_prepare(struct matrix *m, uint32_t dtype, uint32_t op, uint64_t max_count)
{
	struct rank_ctx *ctx = m->ctx;
	uint64_t n = max_count + MATRIX_SHIFT;

	free_data(m);
	select_type(m, dtype, op);
	m->expected = malloc(n * m->size);
	RANK_CHECK(ctx, m->expected != NULL, "no memory");
	for (uint32_t r = 0; r < ctx->n_ranks; r++) {
		m->inputs[r] = malloc(n * m->size);
		RANK_CHECK(ctx, m->inputs[r] != NULL, "no memory");
		fill(m->inputs[r], dtype, 0, n, r);
	}
	for (uint64_t i = 0; i < n; i++)
		oracle_fold(dtype, op, ctx->n_ranks, (const void *const *)m->inputs, i, m->scalars,
			m->expected + i * m->size);
	return 0;
}

/* ---- one call ---- */

struct place {
	uint8_t *send; /* first element */
	uint8_t *recv;
};

/* Buffers with everything around the elements marked as untouched. */
static struct place prepare_place(const struct matrix *m, const struct matrix_case *c)
{
	bool registered = c->memory == MATRIX_REGISTERED ||
			  (c->memory == MATRIX_MIXED && m->ctx->rank % 2 == 1);
	uint64_t offset = MATRIX_GUARD + (uint64_t)c->misalign * m->size;
	uint64_t bytes = c->count * m->size;
	uint8_t *const *pair = m->buffers[registered ? 1 : 0];
	struct place place = {pair[0] + offset, pair[c->in_place ? 0 : 1] + offset};

	for (int i = 0; i < 2; i++)
		memset(pair[i] + offset - MATRIX_GUARD, UNTOUCHED, bytes + 2 * MATRIX_GUARD);
	return place;
}

static bool guards_good(const uint8_t *at, uint64_t bytes)
{
	for (uint32_t i = 0; i < MATRIX_GUARD; i++)
		if (at[bytes + i] != UNTOUCHED || *(at - 1 - i) != UNTOUCHED)
			return false;
	return true;
}

static int call(struct matrix *m, const struct matrix_case *c, const struct place *place)
{
	struct rank_ctx *ctx = m->ctx;
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;

	config.executor = c->executor;
	config.scalar = &m->scalars[ctx->rank];
	rcclx_result r = rcclx_all_reduce(
		m->comm, place->send, place->recv, c->count, m->dtype, m->op, &config);
	RANK_CHECK(ctx, r == RCCLX_OK,
		"%llu x %s %s, executor %u, memory %d, in place %d, misaligned by %u: %s; \"%s\"",
		(unsigned long long)c->count, rx_dtype_name(m->dtype), rx_redop_name(m->op),
		c->executor, (int)c->memory, c->in_place, c->misalign, rcclx_strerror(r),
		rcclx_last_error());
	return 0;
}

/* Says which element differs first, with both values in hexadecimal, lowest byte first. */
static int report(struct matrix *m, const struct matrix_case *c, uint64_t index, const uint8_t *got,
	const uint8_t *want)
{
	char hex[2][20] = {"", ""};

	for (uint32_t b = 0; b < m->size; b++) {
		(void)snprintf(hex[0] + 2 * b, 3, "%02x", got[b]);
		(void)snprintf(hex[1] + 2 * b, 3, "%02x", want[b]);
	}
	return rank_fail(m->ctx, __FILE__, __LINE__,
		"%u ranks, %llu x %s %s, executor %u, memory %d, in place %d, misaligned by %u: "
		"element %llu is %s, not %s",
		m->ctx->n_ranks, (unsigned long long)c->count, rx_dtype_name(m->dtype),
		rx_redop_name(m->op), c->executor, (int)c->memory, c->in_place, c->misalign,
		(unsigned long long)index, hex[0], hex[1]);
}

static int check_surroundings(
	struct matrix *m, const struct matrix_case *c, const struct place *place)
{
	struct rank_ctx *ctx = m->ctx;
	uint64_t bytes = c->count * m->size;

	RANK_CHECK(ctx, guards_good(place->recv, bytes) && guards_good(place->send, bytes),
		"%llu x %s %s, executor %u, memory %d: bytes beside a buffer were written",
		(unsigned long long)c->count, rx_dtype_name(m->dtype), rx_redop_name(m->op),
		c->executor, (int)c->memory);
	return 0;
}

int matrix_run(struct matrix *m, const struct matrix_case *c)
{
	struct rank_ctx *ctx = m->ctx;
	uint64_t bytes = c->count * m->size;
	uint64_t shift = m->shift++ % MATRIX_SHIFT * m->size;
	const uint8_t *input = m->inputs[ctx->rank] + shift;
	const uint8_t *expected = m->expected + shift;
	struct place place = prepare_place(m, c);

	memcpy(place.send, input, bytes);
	RANK_DO(call(m, c, &place));
	for (uint64_t i = 0; memcmp(place.recv, expected, bytes) != 0 && i < c->count; i++)
		if (memcmp(place.recv + i * m->size, expected + i * m->size, m->size) != 0)
			return report(m, c, i, place.recv + i * m->size, expected + i * m->size);
	if (!c->in_place)
		RANK_CHECK(ctx, memcmp(place.send, input, bytes) == 0, "the input was written");
	return check_surroundings(m, c, &place);
}

/* ---- large counts ---- */

static uint64_t hash(const uint8_t *data, uint64_t bytes)
{
	uint64_t h = 0x9e3779b97f4a7c15ull + bytes;
	uint64_t i = 0;

	for (; i + 8 <= bytes; i += 8) {
		uint64_t word = 0;

		memcpy(&word, data + i, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdull;
		h ^= h >> 32;
	}
	for (; i < bytes; i++)
		h = (h ^ data[i]) * 0xff51afd7ed558ccdull;
	return h;
}

static int check_element(struct matrix *m, const struct matrix_case *c, const uint8_t *got,
	uint64_t i, uint64_t shift)
{
	uint64_t values[WORLD_MAX] = {0};
	const void *sources[WORLD_MAX] = {NULL};
	uint8_t want[8] = {0};

	for (uint32_t r = 0; r < m->ctx->n_ranks; r++) {
		fill(&values[r], m->dtype, shift + i, 1, r);
		sources[r] = &values[r];
	}
	oracle_fold(m->dtype, m->op, m->ctx->n_ranks, sources, 0, m->scalars, want);
	if (memcmp(got, want, m->size) != 0)
		return report(m, c, i, got, want);
	return 0;
}

/* All ranks have the same bits, so they share the work: each checks every n-th element. */
static int check_range(struct matrix *m, const struct matrix_case *c, const struct place *place,
	uint64_t shift, uint64_t begin, uint64_t end)
{
	struct rank_ctx *ctx = m->ctx;

	for (uint64_t i = begin + ctx->rank; i < rx_min_u64(end, c->count); i += ctx->n_ranks)
		RANK_DO(check_element(m, c, place->recv + i * m->size, i, shift));
	return 0;
}

/* Both sides of each border between parts, start and end, and a sample in between. */
static int check_sample(
	struct matrix *m, const struct matrix_case *c, const struct place *place, uint64_t shift)
{
	uint32_t n = m->ctx->n_ranks;
	uint64_t stride = 1021;

	if (test_long() && c->count <= FULL_CHECK_MAX)
		return check_range(m, c, place, shift, 0, c->count);
	for (uint32_t part = 0; part <= n; part++) {
		uint64_t border = c->count / n * part;

		RANK_DO(check_range(
			m, c, place, shift, border - rx_min_u64(border, 72), border + 72));
	}
	for (uint64_t i = 0; i < c->count; i += stride)
		RANK_DO(check_range(m, c, place, shift, i, i + n));
	return 0;
}

static int check_equal(struct matrix *m, const struct matrix_case *c, uint64_t h)
{
	struct rank_ctx *ctx = m->ctx;

	atomic_store(&ctx->shared->values[ctx->rank], h);
	RANK_DO(rank_sync(ctx));
	for (uint32_t r = 0; r < ctx->n_ranks; r++)
		RANK_CHECK(ctx, atomic_load(&ctx->shared->values[r]) == h,
			"%llu x %s %s, executor %u, memory %d: rank %u has other bits",
			(unsigned long long)c->count, rx_dtype_name(m->dtype), rx_redop_name(m->op),
			c->executor, (int)c->memory, r);
	/* Nobody overwrites his value before all have seen it. */
	return rank_sync(ctx);
}

/* The own data of a type, made once: operations take it from one element further on each time. */
static int prepare_own(struct matrix *m, uint32_t dtype, uint32_t op)
{
	struct rank_ctx *ctx = m->ctx;
	uint32_t rank = ctx->rank;
	bool known = m->inputs[rank] != NULL && m->dtype == dtype;

	select_type(m, dtype, op);
	if (known)
		return 0;
	free_data(m);
	uint64_t n = m->max_bytes / m->size + MATRIX_SHIFT;
	m->inputs[rank] = malloc(n * m->size);
	RANK_CHECK(ctx, m->inputs[rank] != NULL, "no memory");
	fill(m->inputs[rank], dtype, 0, n, rank);
	return 0;
}

int matrix_run_large(struct matrix *m, const struct matrix_case *c, uint32_t dtype, uint32_t op,
	uint64_t *hash_p)
{
	struct rank_ctx *ctx = m->ctx;

	RANK_DO(prepare_own(m, dtype, op));
	uint64_t bytes = c->count * m->size;
	RANK_CHECK(ctx, bytes <= m->max_bytes, "the test's buffers are too small");
	uint64_t shift = m->shift % MATRIX_SHIFT;
	struct place place = prepare_place(m, c);
	memcpy(place.send, m->inputs[ctx->rank] + shift * m->size, bytes);
	RANK_DO(call(m, c, &place));
	RANK_DO(check_sample(m, c, &place, shift));
	*hash_p = hash(place.recv, bytes);
	RANK_DO(check_equal(m, c, *hash_p));
	return check_surroundings(m, c, &place);
}
