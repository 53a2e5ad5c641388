/* SPDX-License-Identifier: MIT */
#include "nccl_rank.h"

#include <stdlib.h>
#include <string.h>

int nccl_id(struct rank_ctx *ctx, uint32_t slot, ncclUniqueId *id_p)
{
	struct world_shared *shared = ctx->shared;
	uint64_t end = test_now_ms() + WORLD_LIMIT_MS * test_slow();

	RANK_CHECK(ctx, setenv("RCCLX_SOCKET", ctx->socket, 1) == 0, "setenv");
	if (ctx->rank == 0) {
		NCCL_OK(ctx, ncclGetUniqueId(id_p));
		memcpy(&shared->ids[slot], id_p, sizeof(*id_p));
		atomic_store(&shared->id_ready[slot], 1);
	}
	while (atomic_load(&shared->id_ready[slot]) == 0) {
		RANK_CHECK(ctx, test_now_ms() < end, "nobody made id %u", slot);
		test_sleep_ms(1);
	}
	memcpy(id_p, &shared->ids[slot], sizeof(*id_p));
	return 0;
}

int nccl_comm(struct rank_ctx *ctx, uint32_t slot, ncclComm_t *comm_p)
{
	ncclUniqueId id;

	RANK_DO(nccl_id(ctx, slot, &id));
	NCCL_OK(ctx, ncclCommInitRank(comm_p, (int)ctx->n_ranks, id, (int)ctx->rank));
	return 0;
}

int nccl_poll(struct rank_ctx *ctx, ncclComm_t comm, ncclResult_t *result_p)
{
	uint64_t end = test_now_ms() + WORLD_LIMIT_MS * test_slow();

	do {
		RANK_CHECK(ctx, test_now_ms() < end, "still in progress");
		test_sleep_ms(1);
		NCCL_OK(ctx, ncclCommGetAsyncError(comm, result_p));
	} while (*result_p == ncclInProgress);
	return 0;
}

int nccl_sum(struct rank_ctx *ctx, ncclComm_t comm, int value, int sum)
{
	int got = -1;

	NCCL_OK(ctx, ncclAllReduce(&value, &got, 1, ncclInt32, ncclSum, comm, NULL));
	RANK_CHECK(ctx, got == sum, "the sum is %d, expected %d", got, sum);
	return 0;
}

int nccl_says(struct rank_ctx *ctx, const char *text)
{
	const char *said = ncclGetLastError(NULL);

	RANK_CHECK(
		ctx, strstr(said, text), "the text is \"%s\", expected \"%s\" in it", said, text);
	return 0;
}
