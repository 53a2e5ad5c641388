/* SPDX-License-Identifier: MIT */
/*
 * Every collective of NCCL's interface, with every type and operation, bit for bit; alone and in
 * groups, in several processes and with all ranks in one thread.
 */
#include "nccl_rank.h"

#include "../oracle/oracle.h"

#include <stdlib.h>

#define N_RANKS   3u
#define MAX_COUNT 20000u

static const size_t counts[] = {0, 1, 7, 1000, MAX_COUNT};

/* What the ranks contribute, and what has to come out; every rank computes all of it. */
struct figures {
	size_t count;
	uint32_t dtype;
	uint32_t size;
	void *in[N_RANKS];     /* N_RANKS * count elements each */
	unsigned char *expect; /* N_RANKS * count */
	unsigned char *out;
};

static int figures_init(struct rank_ctx *ctx, struct figures *f, bool registered)
{
	size_t bytes = N_RANKS * (size_t)MAX_COUNT * 8;
	void *out = NULL;

	memset(f, 0, sizeof(*f));
	for (uint32_t r = 0; r < N_RANKS; r++) {
		if (registered)
			NCCL_OK(ctx, ncclMemAlloc(&f->in[r], bytes));
		else
			f->in[r] = malloc(bytes);
		RANK_CHECK(ctx, f->in[r], "out of memory");
	}
	if (registered)
		NCCL_OK(ctx, ncclMemAlloc(&out, bytes));
	else
		out = malloc(bytes);
	f->out = out;
	f->expect = malloc(bytes);
	RANK_CHECK(ctx, f->out && f->expect, "out of memory");
	return 0;
}

static int figures_deinit(struct rank_ctx *ctx, struct figures *f, bool registered)
{
	for (uint32_t r = 0; r < N_RANKS; r++) {
		if (registered)
			NCCL_OK(ctx, ncclMemFree(f->in[r]));
		else
			free(f->in[r]);
	}
	if (registered)
		NCCL_OK(ctx, ncclMemFree(f->out));
	else
		free(f->out);
	free(f->expect);
	return 0;
}

static void figures_fill(struct figures *f, uint32_t dtype, size_t count, uint64_t seed)
{
	f->dtype = dtype;
	f->size = rx_dtype_size(dtype);
	f->count = count;
	for (uint32_t r = 0; r < N_RANKS; r++)
		oracle_fill(f->in[r], dtype, 0, N_RANKS * count, r, seed, ORACLE_NORMAL);
	memset(f->out, 0x5a, N_RANKS * (size_t)MAX_COUNT * 8);
}

static void fold(struct figures *f, uint32_t op, const uint64_t *scalars, size_t n)
{
	for (size_t i = 0; i < n; i++)
		oracle_fold(f->dtype, op, N_RANKS, (const void *const *)f->in, i, scalars,
			f->expect + i * f->size);
}

static int same(struct rank_ctx *ctx, const struct figures *f, const char *what, const void *expect,
	size_t n)
{
	const unsigned char *want = expect;

	for (size_t i = 0; i < n * f->size; i++)
		RANK_CHECK(ctx, f->out[i] == want[i],
			"%s of %zu elements of type %u: byte %zu is 0x%02x, expected 0x%02x", what,
			f->count, f->dtype, i, f->out[i], want[i]);
	RANK_CHECK(ctx, f->out[n * f->size] == 0x5a || n == N_RANKS * (size_t)MAX_COUNT,
		"%s of %zu elements of type %u wrote too much", what, f->count, f->dtype);
	return 0;
}

static const void *part(const struct figures *f, const void *of, uint32_t block)
{
	return (const unsigned char *)of + block * f->count * f->size;
}

/* ---- reductions ---- */

static int reductions(struct rank_ctx *ctx, struct figures *f, ncclComm_t comm, ncclRedOp_t op)
{
	ncclDataType_t dtype = (ncclDataType_t)f->dtype;
	const void *in = f->in[ctx->rank];

	NCCL_OK(ctx, ncclAllReduce(in, f->out, f->count, dtype, op, comm, NULL));
	RANK_DO(same(ctx, f, "allreduce", f->expect, f->count));

	memset(f->out, 0x5a, f->count * f->size + 1);
	NCCL_OK(ctx, ncclReduceScatter(in, f->out, f->count, dtype, op, comm, NULL));
	RANK_DO(same(ctx, f, "reduce-scatter", part(f, f->expect, ctx->rank), f->count));

	memset(f->out, 0x5a, f->count * f->size + 1);
	NCCL_OK(ctx, ncclReduce(in, f->out, f->count, dtype, op, 1, comm, NULL));
	if (ctx->rank == 1)
		RANK_DO(same(ctx, f, "reduce", f->expect, f->count));

	/* In place. */
	memset(f->out, 0x5a, f->count * f->size + 1);
	memcpy(f->out, in, f->count * f->size);
	NCCL_OK(ctx, pncclAllReduce(f->out, f->out, f->count, dtype, op, comm, NULL));
	return same(ctx, f, "allreduce in place", f->expect, f->count);
}

static int all_ops(struct rank_ctx *ctx, struct figures *f, ncclComm_t comm)
{
	uint64_t scalars[N_RANKS] = {0};
	ncclRedOp_t premul = ncclSum;

	for (uint32_t op = 0; op < ncclNumOps; op++) {
		fold(f, op, NULL, N_RANKS * f->count);
		RANK_DO(reductions(ctx, f, comm, (ncclRedOp_t)op));
	}
	/* Each rank has a scalar of its own. */
	for (uint32_t r = 0; r < N_RANKS; r++)
		oracle_fill(&scalars[r], f->dtype, 0, 1, r, 99, ORACLE_NORMAL);
	fold(f, RCCLX_PREMUL_SUM, scalars, N_RANKS * f->count);
	NCCL_OK(ctx, ncclRedOpCreatePreMulSum(&premul, &scalars[ctx->rank],
			     (ncclDataType_t)f->dtype, ncclScalarHostImmediate, comm));
	RANK_CHECK(ctx, premul >= ncclNumOps, "the reduction is %d", (int)premul);
	RANK_DO(reductions(ctx, f, comm, premul));
	NCCL_OK(ctx, ncclRedOpDestroy(premul, comm));
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclAllReduce(
			f->in[0], f->out, f->count, (ncclDataType_t)f->dtype, premul, comm, NULL));
	return 0;
}

/* ---- data that is only moved ---- */

static int rooted(struct rank_ctx *ctx, struct figures *f, ncclComm_t comm)
{
	ncclDataType_t dtype = (ncclDataType_t)f->dtype;
	const void *in = f->in[ctx->rank];
	size_t bytes = f->count * f->size;

	NCCL_OK(ctx, ncclBroadcast(in, f->out, f->count, dtype, 2, comm, NULL));
	RANK_DO(same(ctx, f, "broadcast", f->in[2], f->count));
	memset(f->out, 0x5a, bytes + 1);
	memcpy(f->out, in, bytes);
	NCCL_OK(ctx, ncclBcast(f->out, f->count, dtype, 0, comm, NULL));
	RANK_DO(same(ctx, f, "bcast", f->in[0], f->count));
	for (uint32_t r = 0; r < N_RANKS; r++)
		memcpy(f->expect + r * bytes, f->in[r], bytes);
	memset(f->out, 0x5a, N_RANKS * bytes + 1);
	NCCL_OK(ctx, ncclGather(in, f->out, f->count, dtype, 1, comm, NULL));
	if (ctx->rank == 1)
		RANK_DO(same(ctx, f, "gather", f->expect, N_RANKS * f->count));
	memset(f->out, 0x5a, N_RANKS * bytes + 1);
	NCCL_OK(ctx, ncclScatter(in, f->out, f->count, dtype, 1, comm, NULL));
	return same(ctx, f, "scatter", part(f, f->in[1], ctx->rank), f->count);
}

static int unrooted(struct rank_ctx *ctx, struct figures *f, ncclComm_t comm)
{
	ncclDataType_t dtype = (ncclDataType_t)f->dtype;
	const void *in = f->in[ctx->rank];
	size_t bytes = f->count * f->size;

	for (uint32_t r = 0; r < N_RANKS; r++)
		memcpy(f->expect + r * bytes, f->in[r], bytes);
	memset(f->out, 0x5a, N_RANKS * bytes + 1);
	NCCL_OK(ctx, ncclAllGather(in, f->out, f->count, dtype, comm, NULL));
	RANK_DO(same(ctx, f, "all-gather", f->expect, N_RANKS * f->count));
	for (uint32_t r = 0; r < N_RANKS; r++)
		memcpy(f->expect + r * bytes, part(f, f->in[r], ctx->rank), bytes);
	memset(f->out, 0x5a, N_RANKS * bytes + 1);
	NCCL_OK(ctx, ncclAlltoAll(in, f->out, f->count, dtype, comm, NULL));
	RANK_DO(same(ctx, f, "all-to-all", f->expect, N_RANKS * f->count));

	/* The same by sends and receives. */
	memset(f->out, 0x5a, N_RANKS * bytes + 1);
	NCCL_OK(ctx, ncclGroupStart());
	for (uint32_t r = 0; r < N_RANKS; r++) {
		NCCL_OK(ctx, ncclRecv(f->out + r * bytes, f->count, dtype, (int)r, comm, NULL));
		NCCL_OK(ctx, ncclSend(part(f, in, r), f->count, dtype, (int)r, comm, NULL));
	}
	NCCL_OK(ctx, ncclGroupEnd());
	return same(ctx, f, "sends and receives", f->expect, N_RANKS * f->count);
}

#ifndef NCCL_HEADER
/* Blocks of r + 1 times count / 4 elements from rank r to everybody, with gaps of one. */
static int variable(struct rank_ctx *ctx, struct figures *f, ncclComm_t comm)
{
	size_t send_counts[N_RANKS], send_displs[N_RANKS], recv_counts[N_RANKS],
		recv_displs[N_RANKS];
	size_t unit = f->count / 8;
	size_t at = 0;

	for (uint32_t r = 0; r < N_RANKS; r++) {
		send_counts[r] = (ctx->rank + 1) * unit;
		send_displs[r] = r * (send_counts[r] + 1);
		recv_counts[r] = (r + 1) * unit;
		recv_displs[r] = at;
		at += recv_counts[r] + 1;
	}
	memset(f->out, 0x5a, N_RANKS * f->count * f->size + 1);
	NCCL_OK(ctx, ncclGroupStart());
	NCCL_OK(ctx, ncclAlltoAllv(f->in[ctx->rank], send_counts, send_displs, f->out, recv_counts,
			     recv_displs, (ncclDataType_t)f->dtype, comm, NULL));
	/* The arrays are the caller's again. */
	at = recv_displs[1];
	memset(send_displs, 0xff, sizeof(send_displs));
	NCCL_OK(ctx, ncclGroupEnd());
	for (uint32_t r = 0; r < N_RANKS; r++) {
		const unsigned char *from = (const unsigned char *)f->in[r] +
					    ctx->rank * (recv_counts[r] + 1) * f->size;

		RANK_CHECK(ctx,
			memcmp(f->out + recv_displs[r] * f->size, from, recv_counts[r] * f->size) ==
				0,
			"all-to-all-v: the block of rank %u is wrong", r);
	}
	NCCL_OK(ctx, ncclAllToAll(f->in[ctx->rank], f->out, f->count, (ncclDataType_t)f->dtype,
			     comm, NULL));
	return same(ctx, f, "RCCL's all-to-all", f->expect, N_RANKS * f->count);
}

static int with_options(struct rank_ctx *ctx, struct figures *f, ncclComm_t comm)
{
	ncclCollConfig_t config = {.size = sizeof(config),
		.magic = NCCL_API_MAGIC,
		.version = NCCL_VERSION(2, 31, 0),
		.forceAlgSelection = 1};
	ncclDataType_t dtype = (ncclDataType_t)f->dtype;
	const void *in = f->in[ctx->rank];

	fold(f, ncclSum, NULL, N_RANKS * f->count);
	memset(f->out, 0x5a, N_RANKS * f->count * f->size + 1);
	NCCL_OK(ctx,
		ncclAllReduceConfig(in, f->out, f->count, dtype, ncclSum, comm, NULL, &config));
	RANK_DO(same(ctx, f, "allreduce with options", f->expect, f->count));
	NCCL_OK(ctx,
		ncclReduceScatterConfig(in, f->out, f->count, dtype, ncclSum, comm, NULL, &config));
	RANK_DO(same(
		ctx, f, "reduce-scatter with options", part(f, f->expect, ctx->rank), f->count));
	NCCL_OK(ctx, ncclReduceConfig(in, f->out, f->count, dtype, ncclSum, 0, comm, NULL, NULL));
	NCCL_OK(ctx, ncclBroadcastConfig(in, f->out, f->count, dtype, 2, comm, NULL, &config));
	RANK_DO(same(ctx, f, "broadcast with options", f->in[2], f->count));
	NCCL_OK(ctx, ncclScatterConfig(in, f->out, f->count, dtype, 1, comm, NULL, &config));
	RANK_DO(same(ctx, f, "scatter with options", part(f, f->in[1], ctx->rank), f->count));
	NCCL_OK(ctx, ncclGatherConfig(in, f->out, f->count, dtype, 1, comm, NULL, &config));
	NCCL_OK(ctx, ncclAllGatherConfig(in, f->out, f->count, dtype, comm, NULL, &config));
	NCCL_OK(ctx, ncclAlltoAllConfig(in, f->out, f->count, dtype, comm, NULL, &config));
	config.algSelection = "RING";
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclAllReduceConfig(in, f->out, f->count, dtype, ncclSum, comm, NULL, &config));
	config.forceAlgSelection = 0;
	config.magic = 1;
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclAllReduceConfig(in, f->out, f->count, dtype, ncclSum, comm, NULL, &config));
	memset(f->out, 0x5a, N_RANKS * f->count * f->size + 1);
	config.magic = NCCL_API_MAGIC;
	NCCL_OK(ctx,
		ncclAllReduceConfig(in, f->out, f->count, dtype, ncclSum, comm, NULL, &config));
	NCCL_OK(ctx, ncclAllReduceWithBias(in, f->out, f->count, dtype, ncclSum, comm, NULL, NULL));
	RANK_DO(same(ctx, f, "allreduce without bias", f->expect, f->count));
	NCCL_IS(ctx, ncclInvalidUsage,
		ncclAllReduceWithBias(in, f->out, f->count, dtype, ncclSum, comm, NULL, in));
	return 0;
}
#endif

static int rank_all(struct rank_ctx *ctx)
{
	bool registered = *(const bool *)ctx->arg;
	struct figures f;
	ncclComm_t comm = NULL;

	RANK_DO(nccl_comm(ctx, 0, &comm));
	RANK_DO(figures_init(ctx, &f, registered));
	for (uint32_t dtype = 0; dtype < ncclNumTypes; dtype++) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			/* The oracle is slow: the largest for two types only. */
			if (counts[i] == MAX_COUNT && dtype != ncclFloat32 && dtype != ncclInt8)
				continue;
			figures_fill(&f, dtype, counts[i], dtype * 100 + i);
			RANK_DO(all_ops(ctx, &f, comm));
			RANK_DO(rooted(ctx, &f, comm));
			RANK_DO(unrooted(ctx, &f, comm));
#ifndef NCCL_HEADER
			RANK_DO(variable(ctx, &f, comm));
			RANK_DO(with_options(ctx, &f, comm));
#endif
		}
	}
	RANK_DO(figures_deinit(ctx, &f, registered));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	return 0;
}

static void run_all(bool registered)
{
	struct node *node = node_start(NULL);

	harness_limit(240);
	world_run(node, N_RANKS, rank_all, &registered);
	node_stop(node);
}

static void test_private_memory(void **state)
{
	(void)state;
	run_all(false);
}

static void test_registered_memory(void **state)
{
	(void)state;
	run_all(true);
}

/* ---- all ranks in one thread ---- */

/* Rank r has r + 1: what a single-process program with several devices does. */
static int grouped_sums(struct rank_ctx *ctx, ncclComm_t *comms, int n)
{
	int in[8], out[8], gathered[8][8];

	NCCL_OK(ctx, ncclGroupStart());
	for (int r = 0; r < n; r++) {
		in[r] = r + 1;
		NCCL_OK(ctx, ncclAllReduce(&in[r], &out[r], 1, ncclInt32, ncclSum, comms[r], NULL));
		NCCL_OK(ctx, ncclAllGather(&in[r], gathered[r], 1, ncclInt32, comms[r], NULL));
	}
	NCCL_OK(ctx, ncclGroupEnd());
	for (int r = 0; r < n; r++) {
		RANK_CHECK(ctx, out[r] == n * (n + 1) / 2, "rank %d has %d", r, out[r]);
		for (int i = 0; i < n; i++)
			RANK_CHECK(ctx, gathered[r][i] == i + 1, "rank %d has %d of %d", r,
				gathered[r][i], i);
	}
	return 0;
}

/* Each sends to the next one. */
static int grouped_ring(struct rank_ctx *ctx, ncclComm_t *comms, int n)
{
	int in[8], out[8];

	NCCL_OK(ctx, ncclGroupStart());
	NCCL_OK(ctx, ncclGroupStart());
	for (int r = 0; r < n; r++) {
		in[r] = 100 + r;
		out[r] = 0;
		NCCL_OK(ctx, ncclSend(&in[r], 1, ncclInt32, (r + 1) % n, comms[r], NULL));
		NCCL_OK(ctx, ncclRecv(&out[r], 1, ncclInt32, (r + n - 1) % n, comms[r], NULL));
	}
	NCCL_OK(ctx, ncclGroupEnd());
	RANK_CHECK(ctx, out[0] == 0, "executed at the end of an inner group");
	NCCL_OK(ctx, ncclGroupEnd());
	for (int r = 0; r < n; r++)
		RANK_CHECK(ctx, out[r] == 100 + (r + n - 1) % n, "rank %d has %d", r, out[r]);
	return 0;
}

static int rank_one_process(struct rank_ctx *ctx)
{
	static const int devices[] = {5, 3, 7, 2};
	ncclComm_t comms[8] = {NULL};
	ncclComm_t children[4] = {NULL};
	ncclUniqueId id;
	int value = -1;

	RANK_DO(nccl_id(ctx, 0, &id));
	/* By a list of devices, whose ranks are split in a group. */
	NCCL_OK(ctx, ncclCommInitAll(comms, 4, devices));
	NCCL_OK(ctx, ncclCommCuDevice(comms[2], &value));
	RANK_CHECK(ctx, value == 7, "the device is %d", value);
	RANK_DO(grouped_sums(ctx, comms, 4));
	NCCL_OK(ctx, ncclGroupStart());
	for (int r = 0; r < 4; r++)
		NCCL_OK(ctx, ncclCommSplit(comms[r], r % 2, -r, &children[r], NULL));
	NCCL_OK(ctx, ncclGroupEnd());
	NCCL_OK(ctx, ncclCommUserRank(children[3], &value));
	RANK_CHECK(ctx, value == 0, "rank 3 became %d, not first by its key", value);
	NCCL_OK(ctx, ncclCommCount(children[0], &value));
	RANK_CHECK(ctx, value == 2, "%d ranks", value);
	RANK_DO(grouped_sums(ctx, (ncclComm_t[]){children[2], children[0]}, 2));
	for (int r = 0; r < 4; r++) {
		NCCL_OK(ctx, ncclCommDestroy(children[r]));
		NCCL_OK(ctx, ncclCommDestroy(comms[r]));
	}
	/* By an id, in a group. */
	NCCL_OK(ctx, ncclGroupStart());
	for (int r = 0; r < 8; r++)
		NCCL_OK(ctx, ncclCommInitRank(&comms[r], 8, id, r));
	NCCL_OK(ctx, ncclGroupEnd());
	RANK_DO(grouped_sums(ctx, comms, 8));
	RANK_DO(grouped_ring(ctx, comms, 8));
	for (int r = 0; r < 8; r++)
		NCCL_OK(ctx, ncclCommDestroy(comms[r]));
	NCCL_IS(ctx, ncclInvalidUsage, ncclCommInitAll(comms, 2, (int[]){1, 1}));
	NCCL_IS(ctx, ncclInvalidArgument, ncclCommInitAll(comms, 0, NULL));
	return 0;
}

static void test_one_process(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 1, rank_one_process, NULL);
	node_stop(node);
}

/* ---- groups ---- */

/* One rank in a group, the other without: NCCL's programs may, as long as the order fits. */
static int rank_uneven_groups(struct rank_ctx *ctx)
{
	ncclComm_t comm = NULL;
	int in = (int)ctx->rank + 1;
	int sums[2] = {0};
	int got = 0;

	RANK_DO(nccl_comm(ctx, 0, &comm));
	if (ctx->rank == 0)
		NCCL_OK(ctx, ncclGroupStart());
	NCCL_OK(ctx, ncclAllReduce(&in, &sums[0], 1, ncclInt32, ncclSum, comm, NULL));
	NCCL_OK(ctx, ncclAllReduce(&in, &sums[1], 1, ncclInt32, ncclMax, comm, NULL));
	if (ctx->rank == 0)
		NCCL_OK(ctx, ncclGroupEnd());
	RANK_CHECK(ctx, sums[0] == 3 && sums[1] == 2, "%d and %d", sums[0], sums[1]);

	/* A transfer beside a collective, of which the other rank has a group for each. */
	NCCL_OK(ctx, ncclGroupStart());
	if (ctx->rank == 0)
		NCCL_OK(ctx, ncclSend(&in, 1, ncclInt32, 1, comm, NULL));
	else
		NCCL_OK(ctx, ncclRecv(&got, 1, ncclInt32, 0, comm, NULL));
	if (ctx->rank == 1) {
		NCCL_OK(ctx, ncclGroupEnd());
		RANK_CHECK(ctx, got == 1, "received %d", got);
	}
	NCCL_OK(ctx, ncclAllReduce(&in, &sums[0], 1, ncclInt32, ncclProd, comm, NULL));
	if (ctx->rank == 0)
		NCCL_OK(ctx, ncclGroupEnd());
	RANK_CHECK(ctx, sums[0] == 2, "%d", sums[0]);
	NCCL_OK(ctx, ncclCommDestroy(comm));
	return 0;
}

/* A wrong call, or a simulation: nothing of the group is executed, and the next one is well. */
static int rank_failed_groups(struct rank_ctx *ctx)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	ncclComm_t comm = NULL;
	int in = 1;
	int out = 77;

	RANK_DO(nccl_comm(ctx, 0, &comm));
	NCCL_IS(ctx, ncclInvalidUsage, ncclGroupEnd());
	NCCL_OK(ctx, ncclGroupStart());
	NCCL_OK(ctx, ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, NULL));
	NCCL_IS(ctx, ncclInvalidArgument, ncclBcast(&in, 1, ncclInt32, 9, comm, NULL));
	NCCL_IS(ctx, ncclInvalidArgument, ncclGroupEnd());
	RANK_DO(nccl_says(ctx, "root is 9"));
	RANK_CHECK(ctx, out == 77, "executed all the same");
	RANK_DO(nccl_sum(ctx, comm, 2, 4));

	NCCL_OK(ctx, ncclGroupStart());
	NCCL_OK(ctx, ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, NULL));
	NCCL_OK(ctx, ncclGroupSimulateEnd(&info));
	RANK_CHECK(ctx, out == 77, "executed in a simulation");
	NCCL_OK(ctx, ncclGroupStart());
	info.magic = 0;
	NCCL_IS(ctx, ncclInvalidArgument, ncclGroupSimulateEnd(&info));
	RANK_DO(nccl_sum(ctx, comm, 3, 6));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	return 0;
}

static void test_groups(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_uneven_groups, NULL);
	world_run(node, 2, rank_failed_groups, NULL);
	node_stop(node);
}

/* The first rank in a group, in whatever order; the other one without. */
static int half_grouped(struct rank_ctx *ctx, ncclComm_t comms[2])
{
	int in = (int)ctx->rank + 1;

	for (uint32_t round = 0; round < 50; round++) {
		int out[2] = {0};

		if (ctx->rank == 0)
			NCCL_OK(ctx, ncclGroupStart());
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t which = ctx->rank == 0 ? i ^ (round & 1) : i;

			NCCL_OK(ctx, ncclAllReduce(&in, &out[which], 1, ncclInt32,
					     which ? ncclMax : ncclSum, comms[which], NULL));
		}
		if (ctx->rank == 0)
			NCCL_OK(ctx, ncclGroupEnd());
		RANK_CHECK(ctx, out[0] == 3 && out[1] == 2, "round %u: %d and %d", round, out[0],
			out[1]);
	}
	return 0;
}

/* Two communicators in one group, in another order on the other rank. */
static int rank_two_comms(struct rank_ctx *ctx)
{
	ncclComm_t comms[2] = {NULL};
	int in = (int)ctx->rank + 1;
	int out[2] = {0};

	RANK_DO(nccl_comm(ctx, 0, &comms[0]));
	RANK_DO(nccl_comm(ctx, 1, &comms[1]));
	NCCL_OK(ctx, ncclGroupStart());
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t which = i ^ ctx->rank;

		NCCL_OK(ctx, ncclAllReduce(&in, &out[which], 1, ncclInt32,
				     which ? ncclMax : ncclSum, comms[which], NULL));
	}
	NCCL_OK(ctx, ncclGroupEnd());
	RANK_CHECK(ctx, out[0] == 3 && out[1] == 2, "%d and %d", out[0], out[1]);
	RANK_DO(half_grouped(ctx, comms));
	NCCL_OK(ctx, ncclCommDestroy(comms[0]));
	NCCL_OK(ctx, ncclCommDestroy(comms[1]));
	return 0;
}

static void test_two_communicators(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_two_comms, NULL);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_private_memory),
		HARNESS_TEST(test_registered_memory),
		HARNESS_TEST(test_one_process),
		HARNESS_TEST(test_groups),
		HARNESS_TEST(test_two_communicators),
	};

	return HARNESS_RUN("nccl_colls", tests);
}
