/* SPDX-License-Identifier: MIT */
/*
 * Between the host and the GPU kernels: names, arguments, memory that kernels synchronise in, and
 * the rules for a launch. Plain C, included by both sides.
 *
 * One operation is served by one or several *launches*: kernels that work on it together, at most
 * one per device. A launch does the part of its local ranks, which are the ranks whose buffers are
 * on its device (or that its launcher stands for); it has the pointers of all ranks, as its device
 * sees them. Where all ranks are local to one launch, every input is read once.
 *
 * Kernels
 *
 *   "rx_reduce_" + type: allreduce, reduce, reduce-scatter(-v)
 *
 *   "rx_copy": all-gather(-v), all-to-all(-v), broadcast, gather, scatter, and RX_SEND, which is
 *   from send of rank root to recv of rank peer
 *
 *   "rx_mx_" + type: allreduce, reduce-scatter(-v), all-gather(-v), all-to-all(-v) in low
 *   precision
 *
 *   "rx_words": stream order by words in memory
 *
 * All but the last take one struct rx_dev_args by value. The block size may be anything from 1 to
 * RX_DEV_MAX_THREADS, in one dimension; no dynamic shared memory.
 *
 * Grid rules
 *
 *   - n_blocks is the number of blocks, 1 .. RX_DEV_MAX_BLOCKS, the same in all launches of an
 *     operation. RX_DEV_DIRECT without barriers may have any number of blocks.
 *   - With barriers, block b of a launch waits for block b of the others: all launches must be able
 *     to run at the same time, each with all of its blocks resident. Launches of one device that
 *     wait for each other must share it without being time-sliced; better fuse them into one.
 *   - One operation at a time uses a set of rx_dev_sync and slots; operations on it come in the
 *     same order on all launches. Different operations may differ in grid and block size.
 *
 * Waiting. Every spin looks at the abort word and at the clock. A launch that gives up stores why
 * in status, skips the rest, and still writes its done words, so that nothing behind it in a
 * stream hangs. The rx_dev_sync of all launches of that communicator must then be zeroed, with
 * none of them running, before the next operation.
 *
 * Low precision. What travels through slots is MXFP8 (kernels/codec), encoded by the one kernel
 * that also sends, adds and decodes. Types f16 f32 bf16, operations RX_SUM and RX_AVG; the block
 * size is a multiple of RX_DEV_MX_THREADS. RX_DEV_DIRECT encodes and decodes on the way, so that it
 * saves nothing between devices; what it copies it always pushes. RX_DEV_TREE goes through slots
 * whether it pushes or not, sums too.
 *
 * The results have the bits of kernels/host (doc/algorithms.md, doc/low-precision.md).
 */
#ifndef RX_DEVICE_ABI_H
#define RX_DEVICE_ABI_H

#include "../coll_types.h"

#define RX_DEV_ABI 2u

#define RX_DEV_MAX_RANKS    64u
#define RX_DEV_MAX_LAUNCHES 64u
#define RX_DEV_MAX_BLOCKS   256u /* with barriers, slots or done words */
#define RX_DEV_MAX_THREADS  512u /* per block */
#define RX_DEV_MX_THREADS   32u  /* threads that work together there; on the CPU 8 do */

/* The suffix is one of i8 u8 i32 u32 i64 u64 f16 f32 f64 bf16 e4m3 e5m2. */
#define RX_DEV_REDUCE_PREFIX "rx_reduce_"
#define RX_DEV_MX_PREFIX     "rx_mx_"
#define RX_DEV_COPY_NAME     "rx_copy"
#define RX_DEV_WORDS_NAME    "rx_words"

enum rx_dev_algorithm {
	/*
	 * Straight between the ranks' buffers, without a barrier of its own. Allreduce and reduce:
	 * a launch folds the parts of its local ranks from all inputs into all outputs (the
	 * root's). Reduce-scatter: the outputs of its local ranks. Copies: what local ranks
	 * receive, or with RX_DEV_PUSH what they send.
	 */
	RX_DEV_DIRECT,
	/*
	 * One shot through the slots: local ranks' inputs into their slots (or with RX_DEV_PUSH
	 * into the slots of all takers), barrier, local ranks' outputs from there. In rounds if the
	 * slots are smaller than the message. No peer touches send and recv, so neither an entry
	 * nor an exit barrier is needed. Every collective but RX_SEND.
	 */
	RX_DEV_FLAT,
	/*
	 * Allreduce: reduce-scatter, barrier, all-gather. Pulling: over send and recv; no slots.
	 * With RX_DEV_PUSH: inputs into the slots of whoever folds them, barrier, results into all
	 * recv, in rounds.
	 */
	RX_DEV_TREE,
	RX_DEV_ALGORITHM_N
};

/* enum rx_dev_flag: rx_dev_args.flags */
#define RX_DEV_PUSH 1u /* write to peers rather than read from them; see the algorithms */
/* Wait for all launches before the first access to a peer's send or recv. */
#define RX_DEV_ENTRY 2u
/* End when all launches are done: then no peer uses the local ranks' buffers any more. */
#define RX_DEV_EXIT 4u
/* Low precision, allreduce: sums reach the ranks as bfloat16 instead of MXFP8. */
#define RX_DEV_SUMS_BF16 8u

/* rx_dev_status: low byte of *status; the next byte is the launch that was waited for, if any */
#define RX_DEV_OK        0u
#define RX_DEV_E_ABORTED 1u /* the abort word was set */
#define RX_DEV_E_TIMEOUT 2u /* wait_ticks went by */
#define RX_DEV_E_ARGS    3u /* the arguments are not for this kernel */

/*
 * A launch's mailbox, in memory of its device that all launches can write: zeroed when made, at
 * least 64-byte aligned, uncached or fine-grained where a device of another kind writes it.
 *
 * Every barrier has a number, which grows by one per barrier of the block and is the same in all
 * launches.
 */
struct rx_dev_sync {
	/* Number of the barrier that block [b] of launch [l] has reached; written by launch l. */
	uint64_t arrived[RX_DEV_MAX_BLOCKS][RX_DEV_MAX_LAUNCHES];
	/* Number of the last barrier of own block [b]; own launch only, as is n_ended. */
	uint64_t passed[RX_DEV_MAX_BLOCKS];
	uint32_t n_ended; /* blocks of the present operation that are done; 0 between operations */
	uint32_t pad[15];
};

/* What rank @from has for rank @to, in elements; variable collectives only. */
struct rx_dev_block {
	uint64_t count;
	uint64_t send_at; /* in @from's send */
	uint64_t recv_at; /* in @to's recv */
};

/*
 * Low precision: what one block of a launch has encoded, in blocks of MXFP8. What the ranks of an
 * operation encode is counted once, by whichever launch; as struct rx_mx_stats.
 */
struct rx_dev_mx_counts {
	uint64_t n_blocks;
	uint64_t n_saturated;
	uint64_t n_flushed;
	uint64_t n_special;
};

/* By value to every kernel but rx_words. Pointers are device addresses; unused ones are NULL. */
struct rx_dev_args {
	uint32_t abi;      /* RX_DEV_ABI */
	uint8_t coll;      /* enum rx_coll */
	uint8_t dtype;     /* enum rx_dtype; must be the kernel's */
	uint8_t op;        /* enum rx_redop */
	uint8_t algorithm; /* enum rx_dev_algorithm */
	uint32_t flags;    /* RX_DEV_PUSH, ... */
	uint32_t n_ranks;  /* 1 .. RX_DEV_MAX_RANKS */
	uint32_t root;     /* where there is one; RX_SEND: the sender */
	uint32_t peer;     /* RX_SEND: the receiver */
	uint32_t launch;   /* number of this launch */
	uint32_t n_launches;
	uint32_t n_avg;      /* AVG: divisor, usually n_ranks */
	uint32_t elem_bytes; /* rx_dtype_size(dtype) */
	/* Elements as the collective defines it; variable ones: the largest count in blocks. */
	uint64_t count;
	uint64_t local; /* bit r: rank r is local; each rank is local to exactly one launch */
	/*
	 * Slots: a rank's slot memory is 2 * RX_DEV_MAX_BLOCKS regions of slot_bytes. Block b uses
	 * regions 2b and 2b + 1 in turns. RX_DEV_SLOT_MIN(n_ranks) at least, a multiple of
	 * RX_DEV_SLOT_UNIT. Only regions of blocks that there are get used.
	 */
	uint64_t slot_bytes;
	/* Longest wait at one barrier, in ticks of the device's clock (CUDA: ns, globaltimer; AMD:
	 * the wall clock rate, 100 MHz; CPU: ns); 0: no limit. */
	uint64_t wait_ticks;
	const uint32_t *abort; /* not 0: give up; NULL: none */
	uint32_t *status;      /* written on failure only; NULL: nobody looks */
	uint64_t done_value;
	/*
	 * Variable collectives: [from * n_ranks + to]; the same in all launches. Reduce-scatter:
	 * send_at is the same for all @from.
	 */
	const struct rx_dev_block *blocks;
	/* By launch. NULL if there are no barriers, slots and done words. */
	struct rx_dev_sync *sync[RX_DEV_MAX_LAUNCHES];
	/* By rank. Extents and in-place rules are those of coll_extent.h. */
	const void *send[RX_DEV_MAX_RANKS];
	void *recv[RX_DEV_MAX_RANKS];
	void *slot[RX_DEV_MAX_RANKS];      /* RX_DEV_FLAT, and RX_DEV_TREE when pushing */
	uint64_t scalar[RX_DEV_MAX_RANKS]; /* RX_PREMUL_SUM: bits in the low bytes */
	uint64_t *done[RX_DEV_MAX_RANKS];  /* gets done_value, for local ranks, when the launch is
					      done; usually in host memory */
	/* Low precision: [block of the grid], written whole, when the block is done, whatever
	   became of it; usually in host memory. NULL: nobody looks. */
	struct rx_dev_mx_counts *counts;
};

/* A slot region has room for at least this much of every rank. */
#define RX_DEV_SLOT_MIN(n_ranks) ((n_ranks)*256u)
#define RX_DEV_SLOT_UNIT         128u
/* With so many blocks at most. */
#define RX_DEV_SLOT_BYTES(slot_bytes, n_blocks) ((uint64_t)(slot_bytes)*2u * (n_blocks))
#define RX_DEV_SLOT_TOTAL(slot_bytes)           RX_DEV_SLOT_BYTES(slot_bytes, RX_DEV_MAX_BLOCKS)

/*
 * rx_words, one block of one thread: for a stream where the runtime has no memory operations, or
 * cannot capture them. In this order, each part only if its pointer is not NULL.
 */
struct rx_dev_words {
	uint64_t *first; /* *first = first_value, after everything before it in the stream */
	uint64_t first_value;
	const uint64_t *wait; /* then until *wait == wait_value */
	uint64_t wait_value;
	uint64_t *last; /* then *last = last_value */
	uint64_t last_value;
	const uint32_t *abort;
	uint32_t *status;
	uint64_t wait_ticks; /* as in struct rx_dev_args */
};

#ifdef __cplusplus
#define RX_DEV_ASSERT static_assert
#else
#define RX_DEV_ASSERT _Static_assert
#endif
RX_DEV_ASSERT(sizeof(struct rx_dev_args) <= 4096, "the parameters of a kernel");
RX_DEV_ASSERT(__builtin_offsetof(struct rx_dev_args, slot) ==
		      __builtin_offsetof(struct rx_dev_args, send) +
			      2 * RX_DEV_MAX_RANKS * sizeof(void *),
	"send, recv and slot are numbered through");

#endif
