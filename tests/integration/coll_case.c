/* SPDX-License-Identifier: MIT */
#include "coll_case.h"

#include "../oracle/oracle.h"
#include "../oracle/oracle_lowprec.h"
#include "../../kernels/coll_extent.h"

#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 64u
#define GUARD_VALUE 0xa5

/* Counts of a variable collective: some blocks are empty, neighbours differ. */
static uint64_t v_count(uint64_t count, uint32_t from, uint32_t to)
{
	uint64_t cut = (from * 3 + to * 5) % 7;

	return cut == 3 || count < cut ? 0 : count - cut;
}

/* A call with all its buffers. */
struct prepared {
	uint64_t counts[2][WORLD_MAX]; /* sent, received */
	uint64_t displs[2][WORLD_MAX];
	uint64_t n_in;
	uint64_t n_out;
	uint32_t size;
	uint8_t *in;
	uint8_t *out;
	bool in_place;
};

static uint64_t n_sent(const struct coll_case *w, uint32_t from, uint32_t to)
{
	switch (w->coll) {
	case RX_ALL_GATHER_V:
		return v_count(w->count, from, 0);
	case RX_REDUCE_SCATTER_V:
		return v_count(w->count, 0, to);
	default:
		return v_count(w->count, from, to);
	}
}

static void prepare_v(const struct coll_rank *c, const struct coll_case *w, struct prepared *p)
{
	uint32_t me = c->rank;
	uint64_t next[2] = {0, 0};

	for (uint32_t r = 0; r < c->n_ranks; r++) {
		p->counts[0][r] = n_sent(w, me, r);
		p->counts[1][r] = n_sent(w, r, me);
		for (uint32_t side = 0; side < 2; side++) {
			p->displs[side][r] = next[side];
			next[side] += p->counts[side][r];
		}
	}
	p->n_in = w->coll == RX_ALL_GATHER_V ? p->counts[1][me] : next[0];
	p->n_out = w->coll == RX_REDUCE_SCATTER_V ? p->counts[0][me] : next[1];
}

/* Elements of a rank's input, for making everybody's. */
static uint64_t input_elements(const struct coll_rank *c, const struct coll_case *w, uint32_t rank)
{
	struct rx_extent e = {0};
	uint64_t n = 0;

	if (rx_coll_is_v(w->coll)) {
		if (w->coll == RX_ALL_GATHER_V)
			return n_sent(w, rank, 0);
		for (uint32_t r = 0; r < c->n_ranks; r++)
			n += n_sent(w, rank, r);
		return n;
	}
	if (!rx_coll_extent(w->coll, w->count, c->n_ranks, rank, w->root, &e))
		abort();
	return e.send;
}

static void place(const struct coll_rank *c, const struct coll_case *w, struct prepared *p)
{
	uint32_t me = c->rank;
	bool registered = w->memory == COLL_REGISTERED || (w->memory == COLL_MIXED && me % 2 == 0);
	uint8_t *base = registered ? c->registered : c->private;
	struct rx_extent e = {0};
	uint64_t first = 0;

	memset(base, GUARD_VALUE, 2 * c->bytes);
	p->in = base + GUARD_BYTES + w->misalign * p->size;
	p->out = base + c->bytes + GUARD_BYTES + w->misalign * p->size;
	if (!w->in_place || p->n_in == 0 || p->n_out == 0 || w->coll == RX_ALL_TO_ALL ||
		w->coll == RX_ALL_TO_ALL_V)
		return;
	p->in_place = true;
	if (w->coll == RX_ALL_GATHER_V) {
		p->in = p->out + p->displs[1][me] * p->size;
	} else if (w->coll == RX_REDUCE_SCATTER_V) {
		p->out = p->in + p->displs[0][me] * p->size;
	} else {
		if (!rx_coll_extent(w->coll, w->count, c->n_ranks, me, w->root, &e))
			abort();
		first = e.recv_in_send;
		if (p->n_in > p->n_out)
			p->out = p->in + first * p->size;
		else
			p->in = p->out + e.send_in_recv * p->size;
	}
}

static void prepare(struct coll_rank *c, const struct coll_case *w, struct prepared *p)
{
	uint32_t me = c->rank;
	struct rx_extent e = {0};

	memset(p, 0, sizeof(*p));
	p->size = rx_dtype_size(w->dtype);
	if (rx_coll_is_v(w->coll)) {
		prepare_v(c, w, p);
	} else {
		if (!rx_coll_extent(w->coll, w->count, c->n_ranks, me, w->root, &e))
			abort();
		p->n_in = e.send;
		p->n_out = e.recv;
	}
	place(c, w, p);
	for (uint32_t r = 0; r < c->n_ranks; r++) {
		oracle_fill(c->inputs[r], w->dtype, 0, input_elements(c, w, r), r, w->seed,
			w->tame ? ORACLE_NORMAL : ORACLE_WILD);
		c->scalars[r] = 0;
		oracle_fill(&c->scalars[r], w->dtype, 1u << 20, 1, r, w->seed, ORACLE_NORMAL);
	}
	memcpy(p->in, c->inputs[me], p->n_in * p->size);
}

/* ---- the call ---- */

static rcclx_result call_v(struct coll_rank *c, const struct coll_case *w, const struct prepared *p,
	const struct rcclx_call_config *config, struct rcclx_op **op_p)
{
	switch (w->coll) {
	case RX_ALL_GATHER_V:
		return op_p ? rcclx_all_gather_v_start(c->comm, p->in, p->out, p->counts[1],
				      p->displs[1], w->dtype, config, op_p)
			    : rcclx_all_gather_v(c->comm, p->in, p->out, p->counts[1], p->displs[1],
				      w->dtype, config);
	case RX_REDUCE_SCATTER_V:
		return op_p ? rcclx_reduce_scatter_v_start(c->comm, p->in, p->out, p->counts[0],
				      w->dtype, w->op, config, op_p)
			    : rcclx_reduce_scatter_v(c->comm, p->in, p->out, p->counts[0], w->dtype,
				      w->op, config);
	default:
		return op_p ? rcclx_all_to_all_v_start(c->comm, p->in, p->counts[0], p->displs[0],
				      p->out, p->counts[1], p->displs[1], w->dtype, config, op_p)
			    : rcclx_all_to_all_v(c->comm, p->in, p->counts[0], p->displs[0], p->out,
				      p->counts[1], p->displs[1], w->dtype, config);
	}
}

static rcclx_result call_blocking(struct coll_rank *c, const struct coll_case *w,
	const struct prepared *p, const struct rcclx_call_config *f)
{
	switch (w->coll) {
	case RX_ALL_REDUCE:
		return rcclx_all_reduce(c->comm, p->in, p->out, w->count, w->dtype, w->op, f);
	case RX_ALL_GATHER:
		return rcclx_all_gather(c->comm, p->in, p->out, w->count, w->dtype, f);
	case RX_REDUCE_SCATTER:
		return rcclx_reduce_scatter(c->comm, p->in, p->out, w->count, w->dtype, w->op, f);
	case RX_ALL_TO_ALL:
		return rcclx_all_to_all(c->comm, p->in, p->out, w->count, w->dtype, f);
	case RX_BROADCAST:
		return rcclx_broadcast(c->comm, p->in, p->out, w->count, w->dtype, w->root, f);
	case RX_REDUCE:
		return rcclx_reduce(c->comm, p->in, p->out, w->count, w->dtype, w->op, w->root, f);
	case RX_GATHER:
		return rcclx_gather(c->comm, p->in, p->out, w->count, w->dtype, w->root, f);
	case RX_SCATTER:
		return rcclx_scatter(c->comm, p->in, p->out, w->count, w->dtype, w->root, f);
	default:
		return call_v(c, w, p, f, NULL);
	}
}

static rcclx_result call_started(struct coll_rank *c, const struct coll_case *w,
	const struct prepared *p, const struct rcclx_call_config *f, struct rcclx_op **o)
{
	switch (w->coll) {
	case RX_ALL_REDUCE:
		return rcclx_all_reduce_start(
			c->comm, p->in, p->out, w->count, w->dtype, w->op, f, o);
	case RX_ALL_GATHER:
		return rcclx_all_gather_start(c->comm, p->in, p->out, w->count, w->dtype, f, o);
	case RX_REDUCE_SCATTER:
		return rcclx_reduce_scatter_start(
			c->comm, p->in, p->out, w->count, w->dtype, w->op, f, o);
	case RX_ALL_TO_ALL:
		return rcclx_all_to_all_start(c->comm, p->in, p->out, w->count, w->dtype, f, o);
	case RX_BROADCAST:
		return rcclx_broadcast_start(
			c->comm, p->in, p->out, w->count, w->dtype, w->root, f, o);
	case RX_REDUCE:
		return rcclx_reduce_start(
			c->comm, p->in, p->out, w->count, w->dtype, w->op, w->root, f, o);
	case RX_GATHER:
		return rcclx_gather_start(
			c->comm, p->in, p->out, w->count, w->dtype, w->root, f, o);
	case RX_SCATTER:
		return rcclx_scatter_start(
			c->comm, p->in, p->out, w->count, w->dtype, w->root, f, o);
	default:
		return call_v(c, w, p, f, o);
	}
}

static rcclx_result start_and_wait(struct coll_rank *c, const struct coll_case *w,
	const struct prepared *p, const struct rcclx_call_config *config)
{
	struct rcclx_op *op = NULL;
	rcclx_result r = call_started(c, w, p, config, &op);

	if (r != RCCLX_OK)
		return r;
	r = rcclx_op_wait(op, RCCLX_FOREVER);
	if (rcclx_op_free(op) != RCCLX_OK)
		abort();
	return r;
}

static rcclx_result call_in_group(struct coll_rank *c, const struct coll_case *w,
	const struct prepared *p, const struct rcclx_call_config *config)
{
	rcclx_result r = rcclx_group_start();

	if (r != RCCLX_OK)
		return r;
	r = call_blocking(c, w, p, config);
	rcclx_result end = rcclx_group_end();
	return r != RCCLX_OK ? r : end;
}

static bool is_on_device(const struct coll_rank *c, const struct coll_case *w)
{
	if (w->memory == COLL_DEVICE_SOME)
		return c->rank % 2 == 0;
	return w->memory == COLL_DEVICE || w->memory == COLL_DEVICE_OUT;
}

static rcclx_result do_call(
	struct coll_rank *c, const struct coll_case *w, const struct prepared *p)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;

	config.timeout_ns = c->timeout_ns;
	config.precision = w->precision;
	if (c->ask)
		config.precision = c->ask;
	if (c->ask_nothing)
		config.precision = RCCLX_PRECISION_AUTO;
	if (w->op == RX_PREMUL_SUM)
		config.scalar = &c->scalars[c->rank];
	if (c->device.around && is_on_device(c, w)) {
		config.flags = RCCLX_CALL_IN_STREAM;
		config.stream = c->device.stream;
	}
	if (w->mode == COLL_DAEMON)
		config.executor = RCCLX_EXECUTOR_DAEMON;
	if (w->mode == COLL_START)
		return start_and_wait(c, w, p, &config);
	if (w->mode == COLL_GROUP)
		return call_in_group(c, w, p, &config);
	return call_blocking(c, w, p, &config);
}

/* ---- the expectation ---- */

static uint64_t v_first(const struct coll_rank *c, const struct coll_case *w, uint32_t from)
{
	uint64_t first = 0;

	for (uint32_t r = 0; r < c->rank; r++)
		first += n_sent(w, from, r);
	return first;
}

/* Element @i of the output came from this rank's input, at this element of it. */
static void source_of(const struct coll_rank *c, const struct coll_case *w,
	const struct prepared *p, uint64_t i, uint32_t *rank_p, uint64_t *at_p)
{
	uint32_t me = c->rank;
	uint32_t r = 0;

	switch (w->coll) {
	case RX_ALL_GATHER:
	case RX_GATHER:
		*rank_p = (uint32_t)(i / w->count);
		*at_p = i % w->count;
		return;
	case RX_ALL_TO_ALL:
		*rank_p = (uint32_t)(i / w->count);
		*at_p = me * w->count + i % w->count;
		return;
	case RX_BROADCAST:
		*rank_p = w->root;
		*at_p = i;
		return;
	case RX_SCATTER:
		*rank_p = w->root;
		*at_p = me * w->count + i;
		return;
	default:
		while (i >= p->displs[1][r] + p->counts[1][r])
			r++;
		*rank_p = r;
		*at_p = i - p->displs[1][r];
		if (w->coll == RX_ALL_TO_ALL_V)
			*at_p += v_first(c, w, r);
	}
}

static void expect(const struct coll_rank *c, const struct coll_case *w, const struct prepared *p,
	uint64_t i, uint8_t *element)
{
	uint32_t rank = 0;
	uint64_t at = i;

	if (rx_coll_reduces(w->coll)) {
		if (w->coll == RX_REDUCE_SCATTER)
			at += c->rank * w->count;
		if (w->coll == RX_REDUCE_SCATTER_V)
			at += p->displs[0][c->rank];
		oracle_fold(w->dtype, w->op, c->n_ranks, (const void *const *)c->inputs, at,
			c->scalars, element);
		return;
	}
	source_of(c, w, p, i, &rank, &at);
	memcpy(element, c->inputs[rank] + at * p->size, p->size);
}

/* ---- the expectation in low precision ---- */

bool coll_lowprec(const struct coll_rank *c, const struct coll_case *w)
{
	switch (w->coll) {
	case RX_ALL_REDUCE:
	case RX_REDUCE_SCATTER:
	case RX_REDUCE_SCATTER_V:
		if (w->op != RX_SUM && w->op != RX_AVG)
			return false;
		break;
	case RX_ALL_GATHER:
	case RX_ALL_GATHER_V:
	case RX_ALL_TO_ALL:
	case RX_ALL_TO_ALL_V:
		break;
	default:
		return false;
	}
	return w->precision >= RCCLX_PRECISION_FP8 && c->n_ranks > 1 &&
	       (w->dtype == RX_FLOAT32 || w->dtype == RX_FLOAT16 || w->dtype == RX_BFLOAT16);
}

/* Elements from @i of the output to the end of what one rank sent, or of the vector. */
static uint64_t to_the_end(
	const struct coll_case *w, const struct prepared *p, uint64_t i, uint32_t from, uint64_t at)
{
	uint64_t rest = p->n_out - i;

	switch (w->coll) {
	case RX_ALL_GATHER:
		return w->count - at;
	case RX_ALL_TO_ALL:
		return w->count - at % w->count;
	case RX_ALL_GATHER_V:
	case RX_ALL_TO_ALL_V:
		return p->displs[1][from] + p->counts[1][from] - i;
	default:
		return rest;
	}
}

/* The block that begins at element @i of the output. Return: its elements. */
static uint32_t expect_block(const struct coll_rank *c, const struct coll_case *w,
	const struct prepared *p, uint64_t i, uint8_t *block)
{
	const void *src[WORLD_MAX];
	enum oracle_format format = w->precision == RCCLX_PRECISION_INT8 ? ORACLE_INT8 : ORACLE_FP8;
	enum oracle_gather gather = ORACLE_GATHER_NONE;
	uint32_t from = 0;
	uint64_t at = i;
	uint32_t n = 0;

	if (!rx_coll_reduces(w->coll)) {
		source_of(c, w, p, i, &from, &at);
		n = (uint32_t)rx_min_u64(ORACLE_BLOCK, to_the_end(w, p, i, from, at));
		oracle_lowprec_copy(format, w->dtype, c->inputs[from] + at * p->size, n, block);
		return n;
	}
	if (w->coll == RX_ALL_REDUCE)
		gather = c->gather_bf16 ? ORACLE_GATHER_BF16 : ORACLE_GATHER_CODED;
	if (w->coll == RX_REDUCE_SCATTER)
		at += c->rank * w->count;
	if (w->coll == RX_REDUCE_SCATTER_V)
		at += p->displs[0][c->rank];
	n = (uint32_t)rx_min_u64(ORACLE_BLOCK, p->n_out - i);
	for (uint32_t r = 0; r < c->n_ranks; r++)
		src[r] = c->inputs[r] + at * p->size;
	oracle_lowprec_fold(format, w->dtype, w->op, c->n_ranks, src, n, gather, block);
	return n;
}

/* Of a long result some blocks, chosen by the seed: the oracle is slow. */
#define BLOCKS_ALL 256u

static bool to_be_compared(const struct coll_case *w, const struct prepared *p, uint64_t i)
{
	uint64_t block = i / ORACLE_BLOCK;
	uint64_t n_blocks = p->n_out / ORACLE_BLOCK + 1;

	return n_blocks <= BLOCKS_ALL || block < 2 || block + 3 > n_blocks ||
	       (block + w->seed) % (n_blocks / BLOCKS_ALL + 1) == 0;
}

static int compare_blocks(struct coll_rank *c, const struct coll_case *w, const struct prepared *p)
{
	uint8_t block[ORACLE_BLOCK * sizeof(float)];
	uint32_t n = 0;

	for (uint64_t i = 0; i < p->n_out; i += n) {
		uint32_t from = 0;
		uint64_t at = i;

		if (!to_be_compared(w, p, i)) {
			if (!rx_coll_reduces(w->coll))
				source_of(c, w, p, i, &from, &at);
			n = (uint32_t)rx_min_u64(ORACLE_BLOCK, to_the_end(w, p, i, from, at));
			continue;
		}
		n = expect_block(c, w, p, i, block);
		RANK_CHECK(c->ctx, memcmp(p->out + i * p->size, block, n * p->size) == 0,
			"%s of %llu %s, %s, in low precision, mode %d, memory %d, in place %d: the "
			"block at %llu is wrong",
			rx_coll_name(w->coll), (unsigned long long)w->count,
			rx_dtype_name(w->dtype), rx_redop_name(w->op), w->mode, w->memory,
			p->in_place, (unsigned long long)i);
	}
	return 0;
}

static int compare_elements(
	struct coll_rank *c, const struct coll_case *w, const struct prepared *p)
{
	uint8_t wanted[8];

	for (uint64_t i = 0; i < p->n_out; i++) {
		expect(c, w, p, i, wanted);
		RANK_CHECK(c->ctx, memcmp(p->out + i * p->size, wanted, p->size) == 0,
			"%s of %llu %s, %s, root %u, mode %d, memory %d, in place %d: element %llu "
			"is wrong",
			rx_coll_name(w->coll), (unsigned long long)w->count,
			rx_dtype_name(w->dtype), rx_redop_name(w->op), w->root, w->mode, w->memory,
			p->in_place, (unsigned long long)i);
	}
	return 0;
}

static int compare(struct coll_rank *c, const struct coll_case *w, const struct prepared *p)
{
	if (coll_lowprec(c, w))
		RANK_DO(compare_blocks(c, w, p));
	else
		RANK_DO(compare_elements(c, w, p));
	if (p->in_place)
		return 0;
	for (uint32_t i = 0; i < GUARD_BYTES; i++)
		RANK_CHECK(c->ctx,
			p->out[-1 - (int)i] == GUARD_VALUE &&
				p->out[p->n_out * p->size + i] == GUARD_VALUE,
			"%s: written beside the output", rx_coll_name(w->coll));
	RANK_CHECK(c->ctx, memcmp(p->in, c->inputs[c->rank], p->n_in * p->size) == 0,
		"%s: the input was changed", rx_coll_name(w->coll));
	return 0;
}

/* After a mismatch: nothing has been moved. */
static int check_untouched(
	const struct coll_rank *c, const struct coll_case *w, const struct prepared *p)
{
	for (uint64_t i = 0; !p->in_place && i < p->n_out * p->size; i++)
		RANK_CHECK(c->ctx, p->out[i] == GUARD_VALUE, "%s: byte %llu was written",
			rx_coll_name(w->coll), (unsigned long long)i);
	RANK_CHECK(c->ctx, memcmp(p->in, c->inputs[c->rank], p->n_in * p->size) == 0,
		"%s: the input was changed", rx_coll_name(w->coll));
	return 0;
}

/* ---- device memory: the call sees addresses of it, the test a copy in private memory ---- */

static uint8_t *device_address(const struct coll_rank *c, const uint8_t *at)
{
	return (uint8_t *)(uintptr_t)(c->device.address + (uint64_t)(at - c->private));
}

struct making {
	struct coll_rank *c;
	const struct coll_case *w;
	const struct prepared *p;
};

static rcclx_result make(void *arg)
{
	const struct making *m = arg;

	return do_call(m->c, m->w, m->p);
}

static rcclx_result call_on_device(
	struct coll_rank *c, const struct coll_case *w, const struct prepared *p)
{
	struct prepared there = *p;
	rcclx_result r = RCCLX_OK;

	c->device.write(c->device.address, c->private, 2 * c->bytes);
	there.out = device_address(c, p->out);
	if (w->memory != COLL_DEVICE_OUT || p->in_place)
		there.in = device_address(c, p->in);
	r = c->device.around ? c->device.around(make, &(struct making){c, w, &there})
			     : do_call(c, w, &there);
	if (there.in == p->in)
		c->device.read(c->private + c->bytes, c->device.address + c->bytes, c->bytes);
	else
		c->device.read(c->private, c->device.address, 2 * c->bytes);
	return r;
}

int coll_try(struct coll_rank *c, const struct coll_case *what, rcclx_result *result_p)
{
	struct prepared p;

	prepare(c, what, &p);
	RANK_CHECK(c->ctx,
		(p.n_in + what->misalign) * p.size + 2 * GUARD_BYTES <= c->bytes &&
			(p.n_out + what->misalign) * p.size + 2 * GUARD_BYTES <= c->bytes,
		"the test's buffers are too small");
	*result_p = is_on_device(c, what) ? call_on_device(c, what, &p) : do_call(c, what, &p);
	if (*result_p == RCCLX_OK)
		return compare(c, what, &p);
	return *result_p == RCCLX_ERR_MISMATCH ? check_untouched(c, what, &p) : 0;
}

int coll_run(struct coll_rank *c, const struct coll_case *what)
{
	rcclx_result result = RCCLX_OK;

	RANK_DO(coll_try(c, what, &result));
	RANK_CHECK(c->ctx, result == RCCLX_OK,
		"%s of %llu %s, root %u, mode %d, memory %d: %s; \"%s\"", rx_coll_name(what->coll),
		(unsigned long long)what->count, rx_dtype_name(what->dtype), what->root, what->mode,
		what->memory, rcclx_strerror(result), rcclx_last_error());
	return 0;
}

int coll_alloc(struct coll_rank *c, struct rank_ctx *ctx, uint64_t bytes)
{
	void *registered = NULL;

	c->ctx = ctx;
	c->bytes = bytes;
	RANK_OK(ctx, rcclx_mem_alloc(c->client, 2 * bytes, &registered));
	c->registered = registered;
	c->private = malloc(2 * bytes);
	RANK_CHECK(ctx, c->private, "out of memory");
	for (uint32_t r = 0; r < c->n_ranks; r++) {
		c->inputs[r] = malloc(bytes);
		RANK_CHECK(ctx, c->inputs[r], "out of memory");
	}
	return 0;
}

int coll_release(struct coll_rank *c)
{
	for (uint32_t r = 0; r < WORLD_MAX; r++) {
		free(c->inputs[r]);
		c->inputs[r] = NULL;
	}
	free(c->private);
	c->private = NULL;
	RANK_OK(c->ctx, rcclx_mem_free(c->client, c->registered));
	c->registered = NULL;
	return 0;
}

int coll_open(struct coll_rank *c, struct rank_ctx *ctx, uint64_t bytes)
{
	*c = (struct coll_rank){.ctx = ctx, .rank = ctx->rank, .n_ranks = ctx->n_ranks};
	RANK_DO(rank_connect(ctx, &c->client));
	RANK_DO(rank_comm(ctx, c->client, 0, &c->comm));
	return coll_alloc(c, ctx, bytes);
}

int coll_close(struct coll_rank *c)
{
	RANK_DO(coll_release(c));
	return rank_leave(c->ctx, c->comm, c->client);
}
