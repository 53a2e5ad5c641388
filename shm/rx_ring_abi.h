/* SPDX-License-Identifier: MIT */
/*
 * Layout of a session's two shared regions. No functions. See doc/rings.md, rcclx-ring(7).
 *
 * S is written by the client and mapped read-only by the daemon; D is written by the daemon and
 * can be mapped only read-only by the client. Indices are 64 bits, run freely and never wrap in
 * practice. Every word has exactly one writer.
 */
#ifndef RX_RING_ABI_H
#define RX_RING_ABI_H

#include "rx_base.h"

#include <assert.h>
#include <stdatomic.h>

#define RX_RING_SQ_ENTRIES_DEFAULT 256u
#define RX_RING_ENTRIES_MAX        4096u
#define RX_RING_HEAD_BYTES         256u /* control words before the entries, both regions */

/* What the client asks. Copied once by the daemon, then checked, then used. */
struct rx_sqe {
	uint64_t user_data;   /* returned untouched in the completion */
	uint32_t member;      /* session-local handle of the communicator membership */
	uint16_t opno;        /* number of this op on its communicator, low 16 bits */
	uint16_t gate;        /* RX_GATE_NONE; or waits for a stream: see rx_gate_abi.h */
	uint8_t coll;         /* enum rx_coll */
	uint8_t dtype;        /* enum rx_dtype */
	uint8_t op;           /* enum rx_redop */
	uint8_t flags;        /* precision, as the ranks agree on it; 0: exact; RX_SQE_CAPTURED */
	uint32_t root;        /* root or peer rank; 0 where there is none; see below */
	uint64_t count;       /* elements, as the collective defines its count; see below */
	uint64_t imm;         /* pre-multiplied sum: the scalar's bits, in the low bytes; below */
	uint32_t send_region; /* session-local memory handle; RX_REGION_NONE when count is 0 */
	uint32_t recv_region;
	uint64_t send_offset; /* bytes from the start of the region */
	uint64_t recv_offset;
};

/*
 * A variable collective has more numbers than an entry has room for. They stand in memory of the
 * session: root is its handle, imm the offset in bytes, a multiple of 8, and count is 0. There are
 * u64 words: the scalar (else 0), then arrays of one number per rank, in elements:
 *   all_gather_v      counts of what is received, displacements
 *   reduce_scatter_v  counts
 *   all_to_all_v      counts and displacements of what is sent, the same of what is received
 * The daemon copies them when it takes the entry.
 */

#define RX_REGION_NONE 0u

/*
 * rx_sqe.flags: recorded in a graph. Nothing is done now; the entry is completed at once, and the
 * call is made whenever the gate's bell rings on all ranks, as long as the communicator exists. The
 * k-th recorded call of a rank belongs to the k-th of the others, sends and receives apart.
 */
#define RX_SQE_CAPTURED 0x80u

/* What the daemon answers. One per submitted entry that passed its checks. */
struct rx_cqe {
	uint64_t user_data;
	int32_t result;     /* rcclx_result: 0 or RCCLX_ERR_* */
	uint32_t peer_rank; /* the other side: lost or disagreeing rank; UINT32_MAX none */
	uint32_t peer_pid;  /* as the daemon sees it; 0 unknown */
	uint32_t opno;
	uint64_t peer_sig; /* RCCLX_ERR_MISMATCH: what the other rank asked (rx_op_sig) */
	uint64_t peer_count;
	/*
	 * RCCLX_ERR_MISMATCH when only numbers of a variable collective differ, else 0: rank[0]
	 * says count[0], rank[1] says count[1]. In all_to_all_v rank[0] sends to rank[1]; in the
	 * others it is about the count of rank block.
	 */
	uint8_t clash; /* 1: the following is set */
	uint8_t clash_rank[2];
	uint8_t clash_block;
	uint32_t reserved;
	uint64_t clash_count[2];
};

/* Head of S. */
struct rx_ring_s {
	_Alignas(64) _Atomic uint64_t sq_tail; /* entries submitted */
	_Alignas(64) _Atomic uint64_t cq_head; /* completions consumed */
	_Alignas(64) uint64_t reserved[16];
};

/* Head of D. */
struct rx_ring_d {
	_Alignas(64) _Atomic uint64_t sq_head; /* entries taken */
	_Atomic uint32_t need_wakeup;          /* 1: the daemon sleeps, ring the doorbell */
	_Alignas(64) _Atomic uint64_t cq_tail; /* completions produced */
	/* Bumped with every batch of completions and at session end: clients sleep on it. */
	_Atomic uint32_t cq_event;
	_Atomic uint32_t closed; /* 1: the daemon ended this session */
	_Alignas(64) uint64_t reserved[16];
};

static_assert(sizeof(struct rx_sqe) == 64, "wire layout");
static_assert(sizeof(struct rx_cqe) == 64, "wire layout");
static_assert(sizeof(struct rx_ring_s) == RX_RING_HEAD_BYTES, "wire layout");
static_assert(sizeof(struct rx_ring_d) == RX_RING_HEAD_BYTES, "wire layout");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared words must be lock-free");

#endif
