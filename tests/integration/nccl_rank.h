/* SPDX-License-Identifier: MIT */
/*
 * Ranks that know nothing but NCCL's interface. NCCL_HEADER, where it is defined, is the header of
 * a real NCCL, against which the same tests are compiled once more.
 */
#ifndef TEST_NCCL_RANK_H
#define TEST_NCCL_RANK_H

#include "harness.h"

#ifdef NCCL_HEADER
#include NCCL_HEADER
#else
#include "../../client/nccl/nccl.h"
#endif

/* The rank fails unless @call returns @result. */
#define NCCL_IS(ctx, result, call)                                                                 \
	do {                                                                                       \
		ncclResult_t nccl_is = (call);                                                     \
                                                                                                   \
		RANK_CHECK(ctx, nccl_is == (result), "%s: %d, expected %d; %s", #call,             \
			(int)nccl_is, (int)(result), ncclGetLastError(NULL));                      \
	} while (0)

#define NCCL_OK(ctx, call) NCCL_IS(ctx, ncclSuccess, call)

/** nccl_id() - id number @slot: rank 0 makes it, the others wait for it */
int nccl_id(struct rank_ctx *ctx, uint32_t slot, ncclUniqueId *id_p);

/** nccl_comm() - the communicator of all ranks, under id @slot */
int nccl_comm(struct rank_ctx *ctx, uint32_t slot, ncclComm_t *comm_p);

/** nccl_poll() - wait until @comm is no longer in progress; 0, and what it is then in @result_p */
int nccl_poll(struct rank_ctx *ctx, ncclComm_t comm, ncclResult_t *result_p);

/** nccl_sum() - an allreduce of one int of each rank, @value, which has to give @sum */
int nccl_sum(struct rank_ctx *ctx, ncclComm_t comm, int value, int sum);

/** nccl_says() - does the last error's text contain @text? */
int nccl_says(struct rank_ctx *ctx, const char *text);

#endif
