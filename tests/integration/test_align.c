/* SPDX-License-Identifier: MIT */
/*
 * Offsets, counts and sizes at which vector code and chunking have gone wrong elsewhere, with each
 * algorithm forced by the thresholds that the daemon reads.
 *
 * A sample in CI; with RCCLX_LONG=1 every offset with every count.
 */
#include "coll_case.h"
#include "harness.h"
#include "matrix.h"

#include "../oracle/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OFFSETS   32u /* bytes */
#define MAX_COUNT 4097u

static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER, RX_ALL_TO_ALL,
	RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_GATHER_V, RX_REDUCE_SCATTER_V,
	RX_ALL_TO_ALL_V};

#define N_COLLS (sizeof(colls) / sizeof(colls[0]))

static uint32_t draw(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

/* ---- algorithms, forced ---- */

enum forced {
	FORCED_NONE, /* as compiled */
	FORCED_FLAT,
	FORCED_STAGED, /* with the shortest chunks, so that there are many */
	FORCED_DIRECT,
	FORCED_STREAM, /* direct for registered memory, staged for other, all past the cache */
	FORCED_N
};

static const char *const thresholds[FORCED_N] = {
	[FORCED_FLAT] = "flat_max = 65536; flat_max_shared = 65536; "
			"direct_min = 1000000000000L;",
	[FORCED_STAGED] = "flat_max = 0; flat_max_shared = 0; direct_min = 1000000000000L; "
			  "chunk = 1024;",
	[FORCED_DIRECT] = "flat_max = 0; flat_max_shared = 0; direct_min = 0;",
	[FORCED_STREAM] = "flat_max = 0; flat_max_shared = 0; direct_min = 0; stream_min = 0; "
			  "chunk = 2048;",
};

static void write_tuning(const char *dir, enum forced forced)
{
	static const uint32_t classes[] = {2, 4, 8, 16, 64};
	char path[80] = "";

	(void)snprintf(path, sizeof(path), "%s/forced.conf", dir);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	(void)fprintf(file, "default = {\n");
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		(void)fprintf(file, "\tranks_%u = { %s };\n", classes[i], thresholds[forced]);
	(void)fprintf(file, "};\n");
	assert_int_equal(fclose(file), 0);
}

/* The daemon has read the thresholds when it answers. */
static struct node *start_forced(enum forced forced)
{
	char dir[] = "/tmp/rcclx-tuning-XXXXXX";
	char config[160] = "";
	char path[80] = "";
	struct node_options options = {.config = config};

	if (forced == FORCED_NONE)
		return node_start(NULL);
	assert_non_null(mkdtemp(dir));
	write_tuning(dir, forced);
	(void)snprintf(config, sizeof(config), "stall_report_s = 20;\ntuning_dir = \"%s\";\n", dir);
	struct node *node = node_start(&options);
	(void)snprintf(path, sizeof(path), "%s/forced.conf", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	return node;
}

/* What the algorithm can be forced with. */
static enum matrix_memory memory_for(enum forced forced, uint32_t turn)
{
	if (forced == FORCED_DIRECT)
		return MATRIX_REGISTERED;
	return (enum matrix_memory)(turn % MATRIX_MEMORY_N);
}

/* ---- allreduce: offset x count x type x algorithm ---- */

#define N_SAMPLED 40u

struct sweep {
	enum forced forced;
	uint32_t n_cases;
};

static uint64_t sampled_count(uint32_t i, uint32_t turn)
{
	static const uint64_t edges[] = {0, 1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 63, 65, 127, 129, 191,
		255, 257, 1023, 1025, 4095, 4096, 4097};
	uint32_t state = turn;

	if (i % 2 == 0)
		return edges[(turn + i) % (sizeof(edges) / sizeof(edges[0]))];
	return draw(&state, MAX_COUNT + 1);
}

static int run_offset(struct matrix *m, enum forced forced, uint32_t misalign, uint32_t *turn)
{
	uint32_t n = test_long() ? MAX_COUNT + 1 : N_SAMPLED;

	for (uint32_t i = 0; i < n; i++, (*turn)++) {
		struct matrix_case c = {
			.count = test_long() ? i : sampled_count(i, *turn),
			.executor = RCCLX_EXECUTOR_INLINE,
			.memory = memory_for(forced, *turn),
			.in_place = *turn % 5 < 2,
			.misalign = misalign,
		};

		RANK_DO(matrix_run(m, &c));
	}
	return 0;
}

static int rank_offsets(struct rank_ctx *ctx)
{
	const struct sweep *sweep = ctx->arg;
	struct matrix m = {0};
	uint32_t turn = ctx->n_ranks;

	RANK_DO(matrix_open(&m, ctx, MAX_COUNT * 8));
	for (uint32_t dtype = 0; dtype < RX_DTYPE_N; dtype++) {
		RANK_DO(matrix_prepare(&m, dtype, (dtype + sweep->forced) % RX_REDOP_N, MAX_COUNT));
		for (uint32_t k = 0; k < OFFSETS / m.size; k++)
			RANK_DO(run_offset(&m, sweep->forced, k, &turn));
	}
	return matrix_close(&m);
}

static void run_offsets(enum forced forced)
{
	struct node *node = start_forced(forced);
	struct sweep sweep = {.forced = forced};

	harness_limit(test_long() ? 3600 : 60);
	world_run(node, 2, rank_offsets, &sweep);
	world_run(node, 3, rank_offsets, &sweep);
	node_stop(node);
}

/* ---- the other collectives ---- */

static struct coll_case case_of(uint32_t i, uint32_t n_ranks, enum forced forced)
{
	uint32_t state = i * 7919u + n_ranks + (uint32_t)forced * 31;
	struct coll_case c = {
		.coll = colls[i % N_COLLS],
		.dtype = draw(&state, RX_DTYPE_N),
		.op = draw(&state, RX_REDOP_N),
		.count = sampled_count(i / N_COLLS, draw(&state, 100000)),
		.root = draw(&state, n_ranks),
		.mode = COLL_INLINE,
		.memory = draw(&state, COLL_MEMORY_N),
		.in_place = draw(&state, 2),
		.seed = i,
	};

	c.misalign = draw(&state, OFFSETS / rx_dtype_size(c.dtype));
	if (forced == FORCED_DIRECT)
		c.memory = COLL_REGISTERED;
	if (!rx_coll_reduces(c.coll))
		c.op = 0;
	return c;
}

static int rank_colls(struct rank_ctx *ctx)
{
	const struct sweep *sweep = ctx->arg;
	struct coll_rank c;

	RANK_DO(coll_open(&c, ctx, ctx->n_ranks * (MAX_COUNT + 1) * 8 + 4096));
	for (uint32_t i = 0; i < sweep->n_cases; i++) {
		struct coll_case what = case_of(i, ctx->n_ranks, sweep->forced);

		RANK_DO(coll_run(&c, &what));
	}
	return coll_close(&c);
}

static void run_colls(enum forced forced)
{
	struct node *node = start_forced(forced);
	struct sweep sweep = {forced, (test_long() ? 2000 : 12) * N_COLLS};

	harness_limit(test_long() ? 3600 : 60);
	world_run(node, 2, rank_colls, &sweep);
	world_run(node, 3, rank_colls, &sweep);
	node_stop(node);
}

#define FORCED_TESTS(name, forced)                                                                 \
	static void test_offsets_##name(void **state)                                              \
	{                                                                                          \
		(void)state;                                                                       \
		run_offsets(forced);                                                               \
	}                                                                                          \
	static void test_colls_##name(void **state)                                                \
	{                                                                                          \
		(void)state;                                                                       \
		run_colls(forced);                                                                 \
	}

FORCED_TESTS(default, FORCED_NONE)
FORCED_TESTS(flat, FORCED_FLAT)
FORCED_TESTS(staged, FORCED_STAGED)
FORCED_TESTS(direct, FORCED_DIRECT)
FORCED_TESTS(stream, FORCED_STREAM)

/* ---- world sizes ---- */

/* Few elements for many ranks, and sizes that are no multiple of 128 bytes. */
static int rank_sizes(struct rank_ctx *ctx)
{
	static const uint64_t counts[] = {1, 2, 3, 7, 8, 9, 63, 65, 191, 1000};
	static const uint32_t dtypes[] = {RX_FLOAT16, RX_BFLOAT16, RX_FLOAT8E4M3, RX_FLOAT64};
	struct coll_rank c;
	uint32_t turn = ctx->n_ranks;

	RANK_DO(coll_open(&c, ctx, ctx->n_ranks * 1001 * 8 + 4096));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (size_t k = 0; k < N_COLLS; k++, turn++) {
			struct coll_case what = {
				.coll = colls[k],
				.dtype = dtypes[test_long() ? turn % 4 : turn % 8 / 3],
				.op = rx_coll_reduces(colls[k]) ? turn % RX_REDOP_N : 0,
				.count = counts[i],
				.root = turn % ctx->n_ranks,
				.mode = turn % 3 == 0 ? COLL_DAEMON : COLL_INLINE,
				/* One rank's memory registered, another's private, too. */
				.memory = (enum coll_memory)(turn / 2 % COLL_MEMORY_N),
				.in_place = turn % 7 < 3,
				.seed = turn,
			};

			RANK_DO(coll_run(&c, &what));
		}
	}
	return coll_close(&c);
}

static void test_world_sizes(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	for (uint32_t n = 1; n <= 9; n++)
		world_run(node, n, rank_sizes, NULL);
	node_stop(node);
}

/* ---- the same data in one call and in many ---- */

#define WHOLE 20000u

struct pieces {
	struct coll_rank *c;
	uint32_t dtype;
	uint32_t op;
	uint32_t turn;
	uint8_t *in;
	uint8_t *whole; /* result of one call */
};

/* A reduction of elements [first, first + count), by one way or another, into @out. */
static rcclx_result reduce_piece(struct pieces *p, uint64_t first, uint64_t count, uint8_t *out)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct coll_rank *c = p->c;
	uint32_t size = rx_dtype_size(p->dtype);
	const uint8_t *in = p->in + first * size;
	uint64_t counts[WORLD_MAX] = {0};

	config.scalar = &c->scalars[c->rank];
	if (p->turn / 3 % 2 == 1) {
		memcpy(c->registered, in, count * size);
		in = c->registered;
	}
	if (p->turn % 4 == 3)
		config.executor = RCCLX_EXECUTOR_DAEMON;
	switch (p->turn % 3) {
	case 0:
		return rcclx_all_reduce(c->comm, in, out, count, p->dtype, p->op, &config);
	case 1:
		return rcclx_reduce(c->comm, in, out, count, p->dtype, p->op,
			p->turn / 3 % c->n_ranks, &config);
	default:
		/* All of it to one rank. */
		counts[p->turn / 3 % c->n_ranks] = count;
		return rcclx_reduce_scatter_v(c->comm, in, out, counts, p->dtype, p->op, &config);
	}
}

static int compare_pieces(struct pieces *p)
{
	static const uint64_t lengths[] = {1, 2, 3, 7, 8, 9, 24, 25, 100, 511, 1000, 4097, 6, 9001};
	struct coll_rank *c = p->c;
	uint32_t size = rx_dtype_size(p->dtype);
	uint8_t *out = c->private;
	uint64_t first = 0;

	while (first < WHOLE) {
		uint64_t count = lengths[p->turn % (sizeof(lengths) / sizeof(lengths[0]))];
		bool gets = p->turn % 3 == 0 || p->turn / 3 % c->n_ranks == c->rank;

		if (count > WHOLE - first)
			count = WHOLE - first;
		RANK_OK(c->ctx, reduce_piece(p, first, count, out));
		RANK_CHECK(c->ctx, !gets || memcmp(out, p->whole + first * size, count * size) == 0,
			"%s %s: elements %llu to %llu differ when they are reduced alone (way %u)",
			rx_dtype_name(p->dtype), rx_redop_name(p->op), (unsigned long long)first,
			(unsigned long long)(first + count - 1), p->turn % 12);
		first += count;
		p->turn++;
	}
	return 0;
}

static int rank_pieces(struct rank_ctx *ctx)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct coll_rank c;
	struct pieces p = {.c = &c};

	RANK_DO(coll_open(&c, ctx, WHOLE * 8));
	p.in = c.inputs[0];
	p.whole = c.inputs[1];
	config.scalar = &c.scalars[ctx->rank];
	for (p.dtype = 0; p.dtype < RX_DTYPE_N; p.dtype++) {
		if (!rx_dtype_is_float(p.dtype))
			continue;
		for (p.op = 0; p.op < RX_REDOP_N; p.op++) {
			oracle_fill(p.in, p.dtype, 0, WHOLE, ctx->rank, p.op, ORACLE_WILD);
			oracle_fill(&c.scalars[ctx->rank], p.dtype, WHOLE, 1, ctx->rank, p.op,
				ORACLE_NORMAL);
			RANK_OK(ctx, rcclx_all_reduce(
					     c.comm, p.in, p.whole, WHOLE, p.dtype, p.op, &config));
			RANK_DO(compare_pieces(&p));
		}
	}
	return coll_close(&c);
}

static void test_pieces(void **state)
{
	static const uint32_t sizes[] = {2, 3, 5};
	struct node *node = node_start(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		world_run(node, sizes[i], rank_pieces, NULL);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_offsets_default),
		HARNESS_TEST(test_offsets_flat),
		HARNESS_TEST(test_offsets_staged),
		HARNESS_TEST(test_offsets_direct),
		HARNESS_TEST(test_offsets_stream),
		HARNESS_TEST(test_colls_default),
		HARNESS_TEST(test_colls_flat),
		HARNESS_TEST(test_colls_staged),
		HARNESS_TEST(test_colls_direct),
		HARNESS_TEST(test_colls_stream),
		HARNESS_TEST(test_world_sizes),
		HARNESS_TEST(test_pieces),
	};

	return HARNESS_RUN("align", tests);
}
