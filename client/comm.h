/* SPDX-License-Identifier: MIT */
/* One rank's membership: what the inline executor, the asynchronous ops and the public calls share.
 */
#ifndef CLIENT_COMM_H
#define CLIENT_COMM_H

#include "rcclx.h"
#include "import.h"
#include "rank_kernels.h"
#include "reach.h"
#include "../shm/rx_fabric.h"

#include <stdatomic.h>

struct op_lane;

/* A small collective that was done: see inline/fast.h. */
struct fast_kind {
	struct rx_op_sig sig;
	uint32_t send_bytes; /* of the buffers; 0: not looked at */
	uint32_t recv_bytes;
	uint32_t size; /* of an element */
	bool known;
	bool tiny;
	bool may_be_same; /* send == recv is allowed */
};

struct rcclx_comm {
	struct rcclx_client *client;
	uint32_t rank;
	uint32_t n_ranks;
	uint32_t member; /* handle in messages and ring entries */
	uint64_t comm_id;
	struct rcclx_unique_id id; /* under which it was formed */
	uint32_t n_derived;        /* split, duplicated: the same on all ranks */
	uint32_t n_shrunk;         /* successfully */
	struct rx_map ctl_map;     /* read-only */
	struct rx_map arena_map;   /* read-write */
	struct rx_fabric fabric;
	struct import_table
		imports; /* peers' memory, mapped on first use; owned by the calling thread */
	/* Inline executor; owned by the thread that is in an operation. */
	struct reach reach;
	uint32_t seq;     /* ops that this rank has announced */
	uint32_t step;    /* steps that this rank has announced */
	uint64_t spin_ns; /* how long to spin before sleeping */
	struct fast_kind fast[8];
	/* Of ops in low precision. */
	struct rx_precision_counts counts;
	_Atomic uint32_t over_budget; /* of errors; set by the same op on all ranks */
	bool found_over;              /* by this rank */
	uint64_t link_free_ns;        /* benchmarks: when the link has brought all that was taken */
	uint64_t link_since_ns;       /* and since when it may work on what is taken next */
	bool yield;    /* ranks outnumber cores: give the core away instead of spinning */
	uint32_t opno; /* ops of both executors, for reports */
	_Atomic uint32_t abort_called; /* by this rank, possibly in another thread */
	_Atomic int32_t failed;        /* first fatal rcclx_result; 0: good. Sticky */
	_Atomic uint32_t fail_claimed; /* 1: somebody writes, or has written, fail_text */
	char fail_text[512];           /* its sentence; valid once failed is set */
	_Atomic uint32_t n_ops;        /* asynchronous ops not yet freed */
	struct rank_kernels kernels;   /* that it runs itself */
	_Atomic uint32_t n_in_stream;  /* calls in streams that the daemon has not completed */
	struct op_lane *lanes;         /* of those */
};

/** comm_usable() - RCCLX_OK, or why operations cannot start (forked, failed, aborted), with text */
rcclx_result comm_usable(struct rcclx_comm *comm);

/** comm_fail() - make @result sticky (the first one wins) and return it; text is set already */
rcclx_result comm_fail(struct rcclx_comm *comm, rcclx_result result);

/**
 * comm_fault() - what the control page says: RCCLX_OK, or the error that all waiting calls return
 * @peer: the rank one waits for; UINT32_MAX nobody in particular
 * @sig:  the op in progress, for the text; NULL none
 *
 * Looks at the own abort, the abort word and the status of @peer. Cheap: no system call.
 */
rcclx_result comm_fault(struct rcclx_comm *comm, uint32_t peer, const struct rx_op_sig *sig);

/** comm_peer_lost() - RCCLX_ERR_PEER_LOST with the text: @peer has @left, or died */
rcclx_result comm_peer_lost(
	struct rcclx_comm *comm, uint32_t peer, bool left, const struct rx_op_sig *sig);

/** comm_daemon_lost() - has the daemon ended the session? One poll(2). Sets no text. */
bool comm_daemon_lost(struct rcclx_comm *comm);

/** comm_over_budget() - has an op found that errors are above the budget? */
static inline bool comm_over_budget(const struct rcclx_comm *comm)
{
	return rx_unlikely(atomic_load_explicit(&comm->over_budget, memory_order_relaxed) != 0);
}

/** comm_tell_over_budget() - let the daemon know that this rank has found it; never blocks */
void comm_tell_over_budget(struct rcclx_comm *comm);

/** comm_stall_hint() - tell the daemon that this rank has waited for a while; never blocks */
void comm_stall_hint(struct rcclx_comm *comm);

/** comm_give_up() - abort the communicator for a reason of this rank's (RX_ABORT_ERROR, _DEADLINE)
 */
void comm_give_up(struct rcclx_comm *comm, enum rx_abort_reason reason);

/** comm_describe() - "all_reduce of 1024 float32, sum" into @text */
void comm_describe(const struct rx_op_sig *sig, char *text, size_t bytes);

/** comm_mismatch() - RCCLX_ERR_MISMATCH with both sides in the text */
rcclx_result comm_mismatch(struct rcclx_comm *comm, const struct rx_op_sig *mine, uint32_t peer,
	const struct rx_op_sig *theirs);

#endif
