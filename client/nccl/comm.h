/* SPDX-License-Identifier: MIT */
/*
 * A communicator as NCCL's callers have it: one rank's membership, what runs for it in the
 * background, and what was made for it. Lives until its handle has been given back and nothing
 * runs with it any more.
 */
#ifndef NCCL_COMM_H
#define NCCL_COMM_H

#include "connection.h"
#include "options.h"
#include "ranges.h"
#include "redop.h"

#include <stdatomic.h>

/* Why no operations are taken any more. */
enum {
	COMM_FINALIZED = 1u << 0,
	COMM_REVOKED = 1u << 1,
	COMM_SUSPENDED = 1u << 2,
	COMM_GONE = 1u << 3, /* the handle has been given back */
};

struct ncclComm {
	uint64_t magic;
	_Atomic uint32_t refs;   /* the handle, calls, and what runs in the background */
	_Atomic uint32_t closed; /* COMM_* */
	_Atomic int32_t state; /* ncclInProgress while something runs in the background, then how it
				  went. ncclSuccess for ever where calls block */
	_Atomic(struct rcclx_comm *) comm; /* NULL until it is formed */
	struct connection *connection;     /* NULL until then, too */
	int rank;
	int n_ranks;
	int device;
	struct options options;
	struct redops redops;
	struct ranges ranges; /* registered memory and windows */
};

/** comm_new() - not formed yet, with a handle, in progress; NULL: out of memory, with a text */
struct ncclComm *comm_new(const struct options *options, int n_ranks, int rank);

/** comm_check() - is it a handle of a communicator? ncclInvalidArgument, with a text */
ncclResult_t comm_check(const struct ncclComm *comm, const char *function);

/**
 * comm_enter() - a call begins: the communicator has to be good, and will not be freed
 *
 * Return: ncclSuccess, to be followed by comm_leave(); else with a text
 */
ncclResult_t comm_enter(struct ncclComm *comm, const char *function);

/** comm_enter_failed() - the same, for calls that may be made on one that has failed */
ncclResult_t comm_enter_failed(struct ncclComm *comm, const char *function);

/** comm_leave() - the call is over */
void comm_leave(struct ncclComm *comm);

/** comm_again() - a further reference, by who has one */
void comm_again(struct ncclComm *comm);

/** comm_formed() - from now on it has a rank; @connection becomes the communicator's */
void comm_formed(struct ncclComm *comm, struct rcclx_comm *formed, struct connection *connection);

/** comm_stop() - abort it: what waits in it returns; waits for that, but not for long */
void comm_stop(struct ncclComm *comm);

/** comm_await_idle() - until nobody but the caller uses it; false: not within @ns */
bool comm_await_idle(struct ncclComm *comm, uint64_t ns);

/** comm_result() - error_of() for calls on @comm */
ncclResult_t comm_result(const struct ncclComm *comm, rcclx_result result);

#endif
