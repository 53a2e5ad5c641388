/* SPDX-License-Identifier: MIT */
/* Communicators of NCCL's interface: every way in and out, and every version of what one says. */
#include "nccl_rank.h"

#include "../../client/nccl/functions.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void run(uint32_t n_ranks, rank_fn fn, void *arg)
{
	struct node *node = node_start(NULL);

	world_run(node, n_ranks, fn, arg);
	node_stop(node);
}

/* ---- what there is to know ---- */

static int rank_queries(struct rank_ctx *ctx)
{
	ncclResult_t async = ncclInternalError;
	ncclComm_t comm = NULL;
	ncclUniqueId id;
	int value = 0;

	NCCL_OK(ctx, ncclGetVersion(&value));
	RANK_CHECK(ctx, value == 22803, "the version is %d", value);
	RANK_CHECK(ctx, ncclGetLastError(NULL)[0] == '\0', "a text before any error");
	for (int i = 0; i < 12; i++)
		RANK_CHECK(ctx, ncclGetErrorString((ncclResult_t)i)[0], "result %d has no text", i);
	RANK_DO(nccl_comm(ctx, 0, &comm));
	NCCL_OK(ctx, ncclCommCount(comm, &value));
	RANK_CHECK(ctx, value == 2, "%d ranks", value);
	NCCL_OK(ctx, ncclCommUserRank(comm, &value));
	RANK_CHECK(ctx, value == (int)ctx->rank, "rank %d", value);
	NCCL_OK(ctx, pncclCommCuDevice(comm, &value));
	RANK_CHECK(ctx, value == 0, "device %d", value);
	NCCL_OK(ctx, ncclCommGetAsyncError(comm, &async));
	RANK_CHECK(ctx, async == ncclSuccess, "the state is %d", (int)async);

	/* A formed communicator's id forms no other. */
	memcpy(&id, &ctx->shared->ids[0], sizeof(id));
	if (ctx->rank == 1) {
		ncclComm_t other = comm;

		NCCL_IS(ctx, ncclInvalidArgument, ncclCommInitRank(&other, 2, id, 0));
		RANK_CHECK(ctx, !other, "a handle of what could not be made");
	}
	NCCL_IS(ctx, ncclInvalidArgument, ncclCommInitRank(NULL, 2, id, 0));
	NCCL_IS(ctx, ncclInvalidArgument, ncclCommInitRank(&comm, 2, id, 2));
	NCCL_IS(ctx, ncclInvalidArgument, ncclCommCount(NULL, &value));
	RANK_DO(nccl_says(ctx, "no communicator"));
	NCCL_IS(ctx, ncclInvalidArgument, ncclCommCount(comm, NULL));
	NCCL_IS(ctx, ncclInvalidArgument, ncclGetVersion(NULL));
	NCCL_IS(ctx, ncclInvalidArgument, ncclGetUniqueId(NULL));
	NCCL_OK(ctx, ncclCommDestroy(NULL));
	NCCL_OK(ctx, ncclCommAbort(NULL));
	RANK_DO(nccl_sum(ctx, comm, 1, 2));
	NCCL_OK(ctx, ncclCommFinalize(comm));
	NCCL_IS(ctx, ncclInvalidUsage, ncclBcast(&value, 1, ncclInt32, 0, comm, NULL));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	return 0;
}

static void test_queries(void **state)
{
	(void)state;
	run(2, rank_queries, NULL);
}

/* Wrong arguments of calls: an error at once, and the communicator is as good as before. */
static int rank_bad_calls(struct rank_ctx *ctx)
{
	ncclComm_t comm = NULL;
	ncclRedOp_t op = ncclSum;
	float in = 1, out = 0;
	int stream = 0;

	RANK_DO(nccl_comm(ctx, 0, &comm));
	NCCL_IS(ctx, ncclInvalidUsage,
		ncclAllReduce(&in, &out, 1, ncclFloat32, ncclSum, comm, (void *)&stream));
	RANK_DO(nccl_says(ctx, "no GPU runtime"));
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclAllReduce(&in, &out, 1, (ncclDataType_t)12, ncclSum, comm, NULL));
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclAllReduce(&in, &out, 1, ncclFloat32, (ncclRedOp_t)5, comm, NULL));
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclAllReduce(NULL, &out, 1, ncclFloat32, ncclSum, comm, NULL));
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclReduce(&in, &out, 1, ncclFloat32, ncclSum, -1, comm, NULL));
	NCCL_IS(ctx, ncclInvalidArgument, ncclSend(&in, 1, ncclFloat32, 2, comm, NULL));
	NCCL_IS(ctx, ncclInvalidUsage,
		ncclRedOpCreatePreMulSum(&op, &in, ncclFloat32, ncclScalarDevice, comm));
	NCCL_IS(ctx, ncclInvalidArgument, ncclRedOpDestroy(ncclSum, comm));
	NCCL_OK(ctx,
		ncclRedOpCreatePreMulSum(&op, &in, ncclFloat32, ncclScalarHostImmediate, comm));
	NCCL_IS(ctx, ncclInvalidArgument, ncclAllReduce(&in, &out, 1, ncclFloat64, op, comm, NULL));
	RANK_DO(nccl_says(ctx, "another datatype"));
	RANK_DO(nccl_sum(ctx, comm, 1, 2));

	/* Ranks that do not agree all hear of it. */
	NCCL_IS(ctx, ncclInvalidUsage,
		ncclAllReduce(
			&in, &out, 1, ncclFloat32, ctx->rank ? ncclSum : ncclMax, comm, NULL));
	RANK_DO(nccl_sum(ctx, comm, 1, 2));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	return 0;
}

static void test_bad_calls(void **state)
{
	(void)state;
	run(2, rank_bad_calls, NULL);
}

/* ---- memory ---- */

static int rank_memory(struct rank_ctx *ctx)
{
	ncclComm_t comm = NULL;
	ncclWindow_t window = NULL;
	void *handle = NULL;
	int *memory = NULL;

	RANK_DO(nccl_comm(ctx, 0, &comm));
	NCCL_OK(ctx, ncclMemAlloc((void **)&memory, 100000));
	NCCL_OK(ctx, ncclCommRegister(comm, memory, 100000, &handle));
	NCCL_OK(ctx,
		ncclCommWindowRegister(comm, memory, 100000, &window, NCCL_WIN_COLL_SYMMETRIC));
	for (int i = 0; i < 25000; i++)
		memory[i] = (int)ctx->rank + i;
	NCCL_OK(ctx, ncclAllReduce(memory, memory, 25000, ncclInt32, ncclSum, comm, NULL));
	for (int i = 0; i < 25000; i++)
		RANK_CHECK(ctx, memory[i] == 1 + 2 * i, "element %d is %d", i, memory[i]);
	NCCL_IS(ctx, ncclInvalidArgument, ncclCommDeregister(comm, window));
	NCCL_IS(ctx, ncclInvalidArgument, ncclCommWindowDeregister(comm, handle));
	NCCL_OK(ctx, ncclCommDeregister(comm, handle));
	NCCL_IS(ctx, ncclInvalidArgument, ncclCommDeregister(comm, handle));
#ifndef NCCL_HEADER
	void *user = NULL;
	uint64_t stat = 7;
	ncclCommProperties_t props = {.size = sizeof(props), .magic = NCCL_API_MAGIC};
	ncclTeam_t team = ncclTeamWorld(comm);

	NCCL_OK(ctx, ncclWinGetUserPtr(comm, window, &user));
	RANK_CHECK(ctx, user == memory, "another pointer");
	NCCL_OK(ctx, ncclCommQueryProperties(comm, &props));
	RANK_CHECK(ctx,
		props.nRanks == 2 && props.rank == (int)ctx->rank && !props.deviceApiSupport,
		"properties");
	props = (ncclCommProperties_t){.size = 24, .magic = NCCL_API_MAGIC, .cudaDev = -5};
	NCCL_OK(ctx, ncclCommQueryProperties(comm, &props));
	RANK_CHECK(ctx, props.nRanks == 2 && props.cudaDev == -5, "wrote beyond the struct's size");
	RANK_CHECK(ctx, team.nRanks == 2 && team.rank == (int)ctx->rank, "the world");
	RANK_CHECK(ctx, ncclTeamLsa(comm).nRanks == 1 && ncclTeamRankToWorld(comm, team, 1) == 1,
		"teams");
	NCCL_OK(ctx, ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
	NCCL_IS(ctx, ncclInvalidUsage, ncclBcast(memory, 1, ncclInt32, 0, comm, NULL));
	NCCL_OK(ctx, ncclCommMemStats(comm, ncclStatGpuMemSuspended, &stat));
	RANK_CHECK(ctx, stat == 1, "not suspended");
	NCCL_OK(ctx, ncclCommResume(comm));
	NCCL_OK(ctx, ncclCommMemStats(comm, ncclStatGpuMemTotal, &stat));
	RANK_CHECK(ctx, stat == 0, "GPU memory");
	NCCL_OK(ctx, ncclBcast(memory, 1, ncclInt32, 0, comm, NULL));
#endif
	NCCL_OK(ctx, ncclCommWindowDeregister(comm, window));
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclCommWindowRegister(comm, memory + 1, 100, &window, NCCL_WIN_DEFAULT));
	NCCL_OK(ctx, ncclMemFree(memory));
	NCCL_IS(ctx, ncclInvalidArgument, ncclMemFree(memory));
	NCCL_IS(ctx, ncclInvalidArgument, ncclMemAlloc(NULL, 1));
	/* What is still registered goes with the communicator. */
	NCCL_OK(ctx, ncclCommRegister(comm, &comm, sizeof(comm), &handle));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	return 0;
}

static void test_memory(void **state)
{
	(void)state;
	run(2, rank_memory, NULL);
}

/* ---- configurations ---- */

/* Sizes and versions that there have been, and what is a name in them. */
static const struct config_case {
	unsigned int version;
	size_t size;
	size_t name_at; /* 0: none is read */
} config_cases[] = {
	{21400, 24, 0}, {21700, 40, 0}, {21800, 48, 0}, {22500, 48, 0}, {22700, 72, 48},
	{22800, 80, 48}, {22809, 80, 48}, {22803, 88, 80}, /* RCCLX */
	{22900, 88, 48}, {23000, 96, 48}, {23005, 96, 48}, {23100, 112, 48},
	{29900, 4096, 48}, /* of some day */
	{22000, 20, 0},    /* the smallest that says something */
};

/* In memory that ends with the struct: reading beyond it would be seen. Pointers are poison. */
static unsigned char *config_at_end(unsigned char *page_end, const struct config_case *c)
{
	unsigned char *config = page_end - c->size;
	const unsigned int magic = 0xcafebeef;
	const int blocking = 1;

	memset(config, 0x5a, c->size);
	memcpy(config, &c->size, sizeof(c->size));
	memcpy(config + 8, &magic, sizeof(magic));
	memcpy(config + 12, &c->version, sizeof(c->version));
	memcpy(config + 16, &blocking, sizeof(blocking));
	if (c->name_at) {
		const char *name = NULL;

		memcpy(config + 48, &name, sizeof(name));
		name = "the name \xff of it";
		memcpy(config + c->name_at, &name, sizeof(name));
	}
	return config;
}

static int rank_configs(struct rank_ctx *ctx)
{
	size_t page = 4096;
	unsigned char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct config_case wrong = {22800, 80, 48};
	unsigned char *config = NULL;
	ncclUniqueId id;
	ncclComm_t comm = NULL;

	RANK_CHECK(ctx, pages != MAP_FAILED, "mmap");
	RANK_CHECK(ctx, mprotect(pages + page, page, PROT_NONE) == 0, "mprotect");
	for (uint32_t i = 0; i < sizeof(config_cases) / sizeof(config_cases[0]); i++) {
		config = config_at_end(pages + page, &config_cases[i]);
		RANK_DO(nccl_id(ctx, i, &id));
		NCCL_OK(ctx, ncclCommInitRankConfig(
				     &comm, 2, id, (int)ctx->rank, (ncclConfig_t *)config));
		RANK_DO(nccl_sum(ctx, comm, 1, 2));
		NCCL_OK(ctx, ncclCommDestroy(comm));
	}
	/* What is wrong: the magic number, the size, the one field that must be right. */
	config = config_at_end(pages + page, &wrong);
	config[8] ^= 1;
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclCommInitRankConfig(&comm, 2, id, (int)ctx->rank, (ncclConfig_t *)config));
	config = config_at_end(pages + page, &wrong);
	config[16] = 2;
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclCommInitRankConfig(&comm, 2, id, (int)ctx->rank, (ncclConfig_t *)config));
	for (size_t size = 16; size < 20; size++) {
		config = config_at_end(pages + page, &wrong);
		memcpy(config, &size, sizeof(size));
		NCCL_IS(ctx, ncclInvalidArgument,
			ncclCommInitRankConfig(
				&comm, 2, id, (int)ctx->rank, (ncclConfig_t *)config));
	}
	(void)munmap(pages, 2 * page);
	return 0;
}

static void test_configs(void **state)
{
	(void)state;
	run(2, rank_configs, NULL);
}

static int rank_scalable(struct rank_ctx *ctx)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId ids[2];
	ncclComm_t comm = NULL;

	config.commName = "scalable";
	RANK_DO(nccl_id(ctx, 0, &ids[0]));
	RANK_DO(nccl_id(ctx, 1, &ids[1]));
	NCCL_OK(ctx, ncclCommInitRankScalable(&comm, 3, (int)ctx->rank, 2, ids, &config));
	RANK_DO(nccl_sum(ctx, comm, 1, 3));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	NCCL_IS(ctx, ncclInvalidArgument,
		ncclCommInitRankScalable(&comm, 3, (int)ctx->rank, 0, ids, &config));
	return 0;
}

static void test_scalable(void **state)
{
	(void)state;
	run(3, rank_scalable, NULL);
}

/* ---- split and shrink ---- */

static int rank_derive(struct rank_ctx *ctx)
{
	ncclComm_t comm = NULL;
	ncclComm_t child = NULL;
	ncclComm_t small = NULL;
	int excluded[] = {1};
	int value = 0;

	RANK_DO(nccl_comm(ctx, 0, &comm));
	NCCL_OK(ctx, ncclCommSplit(comm, ctx->rank == 3 ? NCCL_SPLIT_NOCOLOR : 0, -(int)ctx->rank,
			     &child, NULL));
	if (ctx->rank == 3) {
		RANK_CHECK(ctx, !child, "a communicator of no color");
	} else {
		NCCL_OK(ctx, ncclCommUserRank(child, &value));
		RANK_CHECK(ctx, value == 2 - (int)ctx->rank, "became %d", value);
		RANK_DO(nccl_sum(ctx, child, (int)ctx->rank, 3));
	}
	NCCL_IS(ctx, ncclInvalidArgument, ncclCommSplit(comm, -2, 0, &small, NULL));
	if (ctx->rank != 1) {
		NCCL_OK(ctx, ncclCommShrink(comm, excluded, 1, &small, NULL, NCCL_SHRINK_DEFAULT));
		NCCL_OK(ctx, ncclCommCount(small, &value));
		RANK_CHECK(ctx, value == 3, "%d are left", value);
		RANK_DO(nccl_sum(ctx, small, (int)ctx->rank, 5));
		NCCL_OK(ctx, ncclCommDestroy(small));
	} else {
		NCCL_IS(ctx, ncclInvalidArgument,
			ncclCommShrink(comm, excluded, 1, &small, NULL, NCCL_SHRINK_DEFAULT));
	}
	RANK_DO(rank_sync(ctx));
	NCCL_OK(ctx, ncclCommDestroy(child));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	return 0;
}

static void test_derive(void **state)
{
	(void)state;
	run(4, rank_derive, NULL);
}

/* ---- communicators that do not block ---- */

static int rank_nonblocking(struct rank_ctx *ctx)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL;
	ncclComm_t child = NULL;
	ncclResult_t result = ncclSuccess;
	ncclUniqueId id;
	int in = (int)ctx->rank + 1;
	int out = 0;
	uint64_t began = 0;

	config.blocking = 0;
	RANK_DO(nccl_id(ctx, 0, &id));
	if (ctx->rank == 1)
		RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "rank 0 blocks");
	began = test_now_ms();
	NCCL_IS(ctx, ncclInProgress, ncclCommInitRankConfig(&comm, 2, id, (int)ctx->rank, &config));
	RANK_CHECK(ctx, comm, "no handle");
	NCCL_OK(ctx, ncclCommGetAsyncError(comm, &result));
	if (ctx->rank == 0) {
		RANK_CHECK(ctx, result == ncclInProgress, "the state is %d", (int)result);
		NCCL_IS(ctx, ncclInvalidUsage, ncclBcast(&in, 1, ncclInt32, 0, comm, NULL));
		flag_set(ctx->shared, 0, 1);
	}
	RANK_DO(nccl_poll(ctx, comm, &result));
	NCCL_IS(ctx, ncclSuccess, result);
	NCCL_IS(ctx, ncclInProgress, ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, NULL));
	RANK_DO(nccl_poll(ctx, comm, &result));
	RANK_CHECK(ctx, result == ncclSuccess && out == 3, "%d, the sum is %d", (int)result, out);

	NCCL_IS(ctx, ncclInProgress, ncclCommSplit(comm, 0, 0, &child, NULL));
	RANK_DO(nccl_poll(ctx, comm, &result));
	NCCL_IS(ctx, ncclSuccess, result);
	RANK_DO(nccl_poll(ctx, child, &result));
	NCCL_IS(ctx, ncclSuccess, result);
	NCCL_OK(ctx, ncclGroupStart());
	NCCL_OK(ctx, ncclSend(&in, 1, ncclInt32, 1 - (int)ctx->rank, child, NULL));
	NCCL_OK(ctx, ncclRecv(&out, 1, ncclInt32, 1 - (int)ctx->rank, child, NULL));
	NCCL_IS(ctx, ncclInProgress, ncclGroupEnd());
	RANK_DO(nccl_poll(ctx, child, &result));
	RANK_CHECK(ctx, out == 2 - (int)ctx->rank, "received %d", out);
	NCCL_OK(ctx, ncclCommFinalize(child));
	RANK_DO(nccl_poll(ctx, child, &result));
	NCCL_OK(ctx, ncclCommDestroy(child));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	RANK_WITHIN(ctx, began, 10000);
	return 0;
}

static void test_nonblocking(void **state)
{
	(void)state;
	run(2, rank_nonblocking, NULL);
}

/* ---- abort, revoke, death ---- */

struct blocked {
	ncclComm_t comm;
	ncclResult_t result;
};

static void *block(void *arg)
{
	struct blocked *blocked = arg;
	int in = 1, out = 0;

	blocked->result = ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, blocked->comm, NULL);
	return NULL;
}

/* Rank 0 waits in a thread for rank 1, which does not come; it aborts, or revokes. */
static int rank_abort(struct rank_ctx *ctx)
{
	bool revoke = *(const bool *)ctx->arg;
	struct blocked blocked = {0};
	ncclResult_t result = ncclSuccess;
	ncclComm_t comm = NULL;
	ncclComm_t small = NULL;
	pthread_t thread;
	uint64_t began = 0;

	RANK_DO(nccl_comm(ctx, 0, &comm));
	RANK_DO(nccl_sum(ctx, comm, 1, 2));
	if (ctx->rank == 0) {
		blocked.comm = comm;
		RANK_CHECK(ctx, pthread_create(&thread, NULL, block, &blocked) == 0, "a thread");
		test_sleep_ms(100);
		began = test_now_ms();
		NCCL_OK(ctx,
			revoke ? ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT) : ncclCommAbort(comm));
		RANK_WITHIN(ctx, began, 200);
		(void)pthread_join(thread, NULL);
		RANK_WITHIN(ctx, began, 250);
		NCCL_IS(ctx, ncclRemoteError, blocked.result);
	}
	RANK_DO(rank_sync(ctx));
	if (ctx->rank == 1) {
		RANK_DO(nccl_poll(ctx, comm, &result));
		RANK_CHECK(ctx, result == ncclRemoteError, "the state is %d", (int)result);
		NCCL_OK(ctx, ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
	}
	if (ctx->rank == 1 || revoke) {
		NCCL_OK(ctx, ncclCommGetAsyncError(comm, &result));
		RANK_CHECK(ctx, result == ncclSuccess, "revoked, but %d", (int)result);
		NCCL_IS(ctx, ncclInvalidUsage, ncclCommSplit(comm, 0, 0, &small, NULL));
		RANK_DO(nccl_says(ctx, "revoked"));
	}
	if (revoke) {
		NCCL_OK(ctx, ncclCommShrink(comm, NULL, 0, &small, NULL, NCCL_SHRINK_ABORT));
		RANK_DO(nccl_sum(ctx, small, 2, 4));
		NCCL_OK(ctx, ncclCommDestroy(small));
	}
	if (ctx->rank == 1 || revoke)
		NCCL_OK(ctx, ncclCommDestroy(comm));
	return 0;
}

static void test_abort(void **state)
{
	bool revoke = false;

	(void)state;
	run(2, rank_abort, &revoke);
}

static void test_revoke(void **state)
{
	bool revoke = true;

	(void)state;
	run(2, rank_abort, &revoke);
}

/* Of one that is being formed, and whose other rank never comes. */
static int rank_abort_forming(struct rank_ctx *ctx)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL;
	ncclUniqueId id;
	uint64_t began = 0;

	config.blocking = 0;
	RANK_DO(nccl_id(ctx, 0, &id));
	NCCL_IS(ctx, ncclInProgress, ncclCommInitRankConfig(&comm, 2, id, 0, &config));
	test_sleep_ms(50);
	began = test_now_ms();
	NCCL_OK(ctx, ncclCommAbort(comm));
	RANK_WITHIN(ctx, began, 200);
	/* The process ends with the thread that waits; descriptors and memory go with it. */
	_exit(0);
}

static void test_abort_forming(void **state)
{
	(void)state;
	run(1, rank_abort_forming, NULL);
}

/* The other rank comes after all: it hears of the abort, and both can begin anew. */
static int rank_abort_early(struct rank_ctx *ctx)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL;
	ncclUniqueId id;
	int in = 1, out = 0;

	config.blocking = 0;
	RANK_DO(nccl_id(ctx, 0, &id));
	if (ctx->rank == 0) {
		NCCL_IS(ctx, ncclInProgress, ncclCommInitRankConfig(&comm, 2, id, 0, &config));
		test_sleep_ms(50);
		NCCL_OK(ctx, ncclCommAbort(comm));
		flag_set(ctx->shared, 0, 1);
	} else {
		uint64_t began = 0;

		RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "rank 0 does not abort");
		began = test_now_ms();
		NCCL_OK(ctx, ncclCommInitRank(&comm, 2, id, 1));
		NCCL_IS(ctx, ncclRemoteError,
			ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, NULL));
		RANK_WITHIN(ctx, began, 1000);
		RANK_DO(nccl_says(ctx, "rank 0"));
		NCCL_OK(ctx, ncclCommDestroy(comm));
	}
	RANK_DO(nccl_comm(ctx, 1, &comm));
	RANK_DO(nccl_sum(ctx, comm, 1, 2));
	NCCL_OK(ctx, ncclCommDestroy(comm));
	return 0;
}

static void test_abort_early(void **state)
{
	(void)state;
	run(2, rank_abort_early, NULL);
}

/* Rank 2 is killed in the middle; the others hear of it, shrink, and go on. */
static int rank_death(struct rank_ctx *ctx)
{
	ncclComm_t comm = NULL;
	ncclComm_t small = NULL;
	ncclResult_t result = ncclSuccess;
	int in = 1, out = 0;
	uint64_t began = 0;

	RANK_DO(nccl_comm(ctx, 0, &comm));
	RANK_DO(nccl_sum(ctx, comm, 1, 3));
	if (ctx->rank == 2) {
		flag_set(ctx->shared, 0, 1);
		test_sleep_ms(60000);
	}
	began = test_now_ms();
	NCCL_IS(ctx, ncclRemoteError, ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, NULL));
	RANK_WITHIN(ctx, began, 2000);
	RANK_DO(nccl_says(ctx, "rank 2"));
	NCCL_OK(ctx, ncclCommGetAsyncError(comm, &result));
	RANK_CHECK(ctx, result == ncclRemoteError, "the state is %d", (int)result);
	/* Shrinking aborts: not before the other one has heard of the death. */
	flag_set(ctx->shared, 1 + ctx->rank, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 2 - ctx->rank, 1, 10000), "the other one");
	NCCL_OK(ctx, ncclCommShrink(comm, (int[]){2}, 1, &small, NULL, NCCL_SHRINK_ABORT));
	RANK_DO(nccl_sum(ctx, small, 1, 2));
	NCCL_OK(ctx, ncclCommDestroy(small));
	NCCL_OK(ctx, ncclCommAbort(comm));
	return 0;
}

static void test_death(void **state)
{
	struct node *node = node_start(NULL);
	struct world *world = world_start(node, 3, rank_death, NULL);

	(void)state;
	assert_true(flag_wait(world->shared, 0, 1, 20000));
	test_sleep_ms(100);
	world_kill(world, 2, SIGKILL);
	world_join(world);
	node_stop(node);
}

/* Leaving, as all do in the end, is no failure of those who stay a little longer. */
static int rank_leaves_first(struct rank_ctx *ctx)
{
	ncclComm_t comm = NULL;
	ncclResult_t result = ncclInternalError;
	int in = 1, out = 0;

	RANK_DO(nccl_comm(ctx, 0, &comm));
	RANK_DO(nccl_sum(ctx, comm, 1, 2));
	if (ctx->rank == 0) {
		NCCL_OK(ctx, ncclCommDestroy(comm));
		flag_set(ctx->shared, 0, 1);
		return 0;
	}
	RANK_CHECK(ctx, flag_wait(ctx->shared, 0, 1, 10000), "rank 0 stays");
	NCCL_OK(ctx, ncclCommGetAsyncError(comm, &result));
	RANK_CHECK(ctx, result == ncclSuccess, "the state is %d", (int)result);
	if (*(const bool *)ctx->arg) {
		NCCL_IS(ctx, ncclRemoteError,
			ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, NULL));
		RANK_DO(nccl_says(ctx, "rank 0"));
		NCCL_OK(ctx, ncclCommGetAsyncError(comm, &result));
		RANK_CHECK(ctx, result == ncclRemoteError, "the state is %d", (int)result);
	} else {
		NCCL_OK(ctx, ncclCommFinalize(comm));
		NCCL_OK(ctx, ncclCommGetAsyncError(comm, &result));
		RANK_CHECK(ctx, result == ncclSuccess, "finalized, but %d", (int)result);
	}
	NCCL_OK(ctx, ncclCommDestroy(comm));
	return 0;
}

static void test_leaves_first(void **state)
{
	bool is_missed[] = {false, true};

	(void)state;
	run(2, rank_leaves_first, &is_missed[0]);
	run(2, rank_leaves_first, &is_missed[1]);
}

/* No destroy, no free: the daemon has everything back when the process has gone. */
static int rank_just_exits(struct rank_ctx *ctx)
{
	ncclComm_t comm = NULL;
	void *memory = NULL;

	RANK_DO(nccl_comm(ctx, 0, &comm));
	NCCL_OK(ctx, ncclMemAlloc(&memory, 4096));
	RANK_DO(nccl_sum(ctx, comm, 1, 2));
	RANK_DO(rank_sync(ctx));
	_exit(0);
}

static void test_just_exits(void **state)
{
	(void)state;
	run(2, rank_just_exits, NULL);
}

/* ---- no daemon ---- */

static int rank_no_daemon(struct rank_ctx *ctx)
{
	ncclUniqueId id;
	void *memory = NULL;

	RANK_CHECK(ctx, setenv("RCCLX_SOCKET", "/nonexistent/socket", 1) == 0, "setenv");
	NCCL_IS(ctx, ncclSystemError, ncclGetUniqueId(&id));
	RANK_DO(nccl_says(ctx, "systemctl start rcclxd"));
	RANK_DO(nccl_says(ctx, "RCCLX_AUTOSTART=1"));
	NCCL_IS(ctx, ncclSystemError, ncclMemAlloc(&memory, 1));
	return 0;
}

static void test_no_daemon(void **state)
{
	(void)state;
	run(1, rank_no_daemon, NULL);
}

#ifndef NCCL_HEADER
/* Every function that is refused says so, and its twin, too. */
static int rank_refused(struct rank_ctx *ctx)
{
	static const char *const names[] = {
#define NAME(name, answer) (answer) == NCCL_REFUSED ? #name : "",
		NCCL_FUNCTIONS(NAME)
#undef NAME
	};
	static ncclResult_t (*const functions[])(void) = {
#define FUNCTION(name, answer)                                                                     \
	(answer) == NCCL_REFUSED ? (ncclResult_t(*)(void))(uintptr_t)p##name : NULL,
		NCCL_FUNCTIONS(FUNCTION)
#undef FUNCTION
	};
	uint32_t n = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!functions[i])
			continue;
		n++;
		NCCL_IS(ctx, ncclInvalidUsage, functions[i]());
		RANK_DO(nccl_says(ctx, names[i]));
	}
	RANK_CHECK(ctx, n > 15, "only %u are refused", n);
	return 0;
}

static void test_refused(void **state)
{
	(void)state;
	run(1, rank_refused, NULL);
}

static int rank_params(struct rank_ctx *ctx)
{
	const char **keys = NULL;
	const char *text = NULL;
	ncclParamHandle_t handle = NULL;
	char value[4];
	int8_t small = 0;
	int32_t number = 0;
	int n = 0;

	NCCL_OK(ctx, ncclParamGetAllParameterKeys(&keys, &n));
	RANK_CHECK(ctx, n == 3, "%d parameters", n);
	RANK_CHECK(ctx, setenv("NCCL_COMM_ID", "300", 1) == 0, "setenv");
	NCCL_OK(ctx, ncclParamBind(&handle, "NCCL_COMM_ID"));
	NCCL_OK(ctx, ncclParamGetStr(handle, &text));
	RANK_CHECK(ctx, strcmp(text, "300") == 0, "the value is %s", text);
	NCCL_OK(ctx, ncclParamGetI32(handle, &number));
	RANK_CHECK(ctx, number == 300, "the number is %d", number);
	NCCL_IS(ctx, ncclInvalidArgument, ncclParamGetI8(handle, &small));
	NCCL_OK(ctx, ncclParamGet(handle, value, 4, &n));
	RANK_CHECK(ctx, n == 4 && strcmp(value, "300") == 0, "%d bytes", n);
	NCCL_IS(ctx, ncclInvalidArgument, ncclParamGet(handle, value, 3, &n));
	NCCL_OK(ctx, ncclParamGetParameter("NCCL_COMM_ID", &text, &n));
	RANK_CHECK(ctx, n == 3, "%d characters", n);
	NCCL_IS(ctx, ncclInvalidArgument, ncclParamBind(&handle, "NCCL_ALGO"));
	NCCL_IS(ctx, ncclInvalidArgument, ncclParamGetStr(NULL, &text));
	return 0;
}

static void test_params(void **state)
{
	(void)state;
	run(1, rank_params, NULL);
}

/* NCCL_COMM_ID: every rank makes the id itself. */
static int rank_comm_id(struct rank_ctx *ctx)
{
	ncclUniqueId id;
	ncclComm_t comm = NULL;

	RANK_CHECK(ctx, setenv("RCCLX_SOCKET", ctx->socket, 1) == 0, "setenv");
	RANK_CHECK(ctx, setenv("NCCL_COMM_ID", "127.0.0.1:1234", 1) == 0, "setenv");
	RANK_CHECK(ctx, setenv("RCCLX_JOB", "a test", 1) == 0, "setenv");
	for (int i = 0; i < 2; i++) {
		NCCL_OK(ctx, ncclGetUniqueId(&id));
		NCCL_OK(ctx, ncclCommInitRank(&comm, (int)ctx->n_ranks, id, (int)ctx->rank));
		RANK_DO(nccl_sum(ctx, comm, 1, (int)ctx->n_ranks));
		NCCL_OK(ctx, ncclCommDestroy(comm));
	}
	return 0;
}

static void test_comm_id(void **state)
{
	(void)state;
	run(3, rank_comm_id, NULL);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_queries),
		HARNESS_TEST(test_bad_calls),
		HARNESS_TEST(test_memory),
		HARNESS_TEST(test_configs),
		HARNESS_TEST(test_scalable),
		HARNESS_TEST(test_derive),
		HARNESS_TEST(test_nonblocking),
		HARNESS_TEST(test_abort),
		HARNESS_TEST(test_revoke),
		HARNESS_TEST(test_abort_forming),
		HARNESS_TEST(test_abort_early),
		HARNESS_TEST(test_death),
		HARNESS_TEST(test_leaves_first),
		HARNESS_TEST(test_just_exits),
		HARNESS_TEST(test_no_daemon),
#ifndef NCCL_HEADER
		HARNESS_TEST(test_refused),
		HARNESS_TEST(test_params),
		HARNESS_TEST(test_comm_id),
#endif
	};

	return HARNESS_RUN("nccl_comm", tests);
}
