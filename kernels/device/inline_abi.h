/* SPDX-License-Identifier: MIT */
/*
 * Between the host and the inline kernels: collectives that are one kernel in each caller's own
 * stream, on device memory that somebody else owns. Plain C, included by both sides.
 *
 * Memory. Every rank of a communicator has one struct rx_inl_mem followed by two slots, zeroed when
 * made, in memory of its device, or of one near it, that the kernels of all ranks can write:
 * RX_INL_MEM_BYTES(slot_bytes), 256-byte aligned, uncached or fine-grained where a device of
 * another kind writes it. Besides two pieces of host memory that kernels reach: a page that the
 * communicator's owner writes and kernels read, and a line per rank that its kernel writes.
 *
 * A launch is made for one rank, or for several of one process on one device, which are then its
 * local ranks; each rank is local to one launch of an operation. No launch needs to know how the
 * other ranks are spread.
 *
 * Rounds. All that ranks tell each other goes through slots, in rounds. In round N a block pushes
 * what it has for a peer into the peer's slot N mod 2, marks it with the round's number, waits for
 * the marks of all peers' blocks of its own number, and only then reads its slot. A rank's slot is
 * cut into a lane for each peer, and each lane into a region for each block.
 *
 * Why two slots are enough, and why nobody waits at the end. A block that writes round N + 2 has
 * seen the peer's mark of round N + 1, which the peer's block made when it had read round N,
 * whatever the algorithm: that is the order of its rounds. Where N + 2 is in another operation,
 * with another grid and so other regions: the launch before it ended, so all of its blocks saw
 * marks of all of the peer's blocks of that operation's last round, and that kernel of the peer
 * came after, or made those marks after reading, all rounds before. Marks alternate for the same
 * reason. So every round, of every collective, goes from every rank to every other, if only as a
 * mark.
 *
 * The number of the round is in device memory, and advanced by the kernel, so a replayed graph is
 * like any other call, and eager calls and graphs may alternate. The launches of a rank must come
 * one after the other; two that overlap are noticed (RX_INL_E_OVERLAP).
 *
 * A mark carries what the operation is: collective, type, operation, count, root, algorithm and
 * grid. Ranks that differ end with RX_INL_E_MISMATCH, before any result is written.
 *
 * Kernels
 *
 *   "rx_inl_" + type (suffixes of device_abi.h): allreduce and reduce-scatter
 *
 *   "rx_inl_copy": all-gather, all-to-all, broadcast; of any type
 *
 * with one struct rx_inl_args by value, the grid and block that rx_inl_plan() gives, and no dynamic
 * shared memory. All ranks' kernels of an operation must be able to run at the same time with all
 * of their blocks: no time-sliced device, and max_blocks * (ranks on the device) blocks of
 * RX_INL_MAX_THREADS threads fit. Extents and in-place rules are those of coll_extent.h, and the
 * results have the bits of kernels/host.
 *
 * Failure. Every spin looks, now and then, at the abort word, at the clock, and at whether the rank
 * that it waits for has failed. A kernel that gives up says so in the line and in the memory of all
 * ranks, and ends; the communicator is dead from then on: later kernels of that rank return at
 * once, and those of its peers fail when they wait for it. What recv holds then is undefined.
 */
#ifndef RX_INLINE_ABI_H
#define RX_INLINE_ABI_H

#include "device_abi.h"

#define RX_INL_ABI         1u
#define RX_INL_MAX_RANKS   16u
#define RX_INL_MAX_BLOCKS  32u
#define RX_INL_MAX_THREADS 512u
#define RX_INL_MAX_BYTES   (1u << 30) /* count * size * n_ranks */

#define RX_INL_PREFIX    "rx_inl_"
#define RX_INL_COPY_NAME "rx_inl_copy"

enum rx_inl_algorithm {
	/* One round; each word of data has its own mark, so that no fence is needed. Takes twice
	   the room. Not for RX_PREMUL_SUM. */
	RX_INL_WORDS,
	/* One round; a mark for each block. */
	RX_INL_FLAT,
	/* Allreduce: a round to whoever folds a part, and one with the results. */
	RX_INL_TWO_SHOT,
	RX_INL_ALGORITHM_N
};

/* Low byte of rx_inl_line.status; the upper 16 bits are the ranks that it is about. */
#define RX_INL_OK         RX_DEV_OK
#define RX_INL_E_ABORTED  RX_DEV_E_ABORTED /* the abort word was set, or epoch is another one */
#define RX_INL_E_TIMEOUT  RX_DEV_E_TIMEOUT /* these ranks did not come within wait_ticks */
#define RX_INL_E_ARGS     RX_DEV_E_ARGS    /* the arguments are not for this kernel */
#define RX_INL_E_MISMATCH 4u               /* these ranks called something else */
#define RX_INL_E_OVERLAP  5u               /* two launches of a rank at the same time */
#define RX_INL_E_PEER     6u               /* these ranks have failed before */

#define RX_INL_STATUS_CODE(status)  ((status)&0xffu)
#define RX_INL_STATUS_RANKS(status) ((status) >> 16)

/* Host memory that only the owner of the communicator writes; looked at while waiting. */
struct rx_inl_page {
	uint32_t abort; /* not 0: give up */
	uint32_t epoch; /* not that of the arguments: likewise */
	/* Longest wait in a round, in ticks of the device's clock (as in device_abi.h); 0: no
	 * limit. */
	uint64_t wait_ticks;
	uint64_t pad[6];
};

/*
 * Host memory, written by a rank's kernels alone. Each of the first two words is written at once,
 * when an operation begins: in the upper half the number of its first round, in the lower half
 * RX_INL_WHAT() and the count. Ranks whose numbers are behind are those that the others wait for.
 */
struct rx_inl_line {
	uint64_t what;
	uint64_t count;
	uint32_t status; /* written when a launch fails, and stays */
	uint32_t pad[11];
};

/* What an operation is, as it travels with marks. */
#define RX_INL_WHAT(coll, dtype, op, algorithm, root, n_blocks)                                    \
	((uint32_t)(coll) | (uint32_t)(dtype) << 4 | (uint32_t)(op) << 8 |                         \
		(uint32_t)(algorithm) << 12 | (uint32_t)(root) << 16 | (uint32_t)(n_blocks) << 24)
#define RX_INL_WHAT_COLL(what)      ((what)&15u)
#define RX_INL_WHAT_DTYPE(what)     ((what) >> 4 & 15u)
#define RX_INL_WHAT_OP(what)        ((what) >> 8 & 15u)
#define RX_INL_WHAT_ALGORITHM(what) ((what) >> 12 & 15u)
#define RX_INL_WHAT_ROOT(what)      ((what) >> 16 & 255u)
#define RX_INL_WHAT_BLOCKS(what)    ((what) >> 24)

/* A block's mark: the upper halves of what and count are the round; count is written last. */
struct rx_inl_mark {
	uint64_t what;
	uint64_t count;
	uint64_t scalar; /* RX_PREMUL_SUM: the sender's */
	uint64_t pad;
};

/* What one rank writes in the memory of another. */
struct rx_inl_from {
	struct rx_inl_mark mark[2][RX_INL_MAX_BLOCKS]; /* [round mod 2] */
	uint32_t failed;                               /* status of the writer; stays */
	uint32_t pad[15];
};

/* Of the two, the one with the larger @ticket that is not above a block's own is for its launch. */
struct rx_inl_turn {
	uint64_t ticket; /* first of the launch that it is for */
	uint64_t round;  /* last one before that launch */
};

struct rx_inl_mem {
	/* The rank's own launches. */
	uint64_t ticket; /* blocks begun since it was made */
	uint64_t ended;  /* and ended */
	struct rx_inl_turn turn[2];
	uint32_t failed; /* status; stays */
	uint32_t pad[19];
	struct rx_inl_from from[RX_INL_MAX_RANKS];
};

#define RX_INL_MEM_BYTES(slot_bytes) (sizeof(struct rx_inl_mem) + 2ull * (slot_bytes))
/* A region has room for at least this much. */
#define RX_INL_SLOT_MIN(n_ranks) ((n_ranks)*RX_INL_MAX_BLOCKS * 256u)
#define RX_INL_SLOT_DEFAULT      (1u << 20)

/* By value. Pointers are device addresses, as the launching process sees them. */
struct rx_inl_args {
	uint32_t abi;      /* RX_INL_ABI */
	uint8_t coll;      /* enum rx_coll */
	uint8_t dtype;     /* enum rx_dtype; must be the kernel's */
	uint8_t op;        /* enum rx_redop; 0 if it does not reduce */
	uint8_t algorithm; /* enum rx_inl_algorithm */
	uint32_t n_ranks;  /* 1 .. RX_INL_MAX_RANKS */
	uint32_t root;     /* broadcast; else 0 */
	uint32_t count;    /* elements as the collective defines it */
	uint32_t elem_bytes;
	uint32_t local; /* bit r: rank r is local */
	uint32_t
		slot_bytes; /* RX_INL_SLOT_MIN(n_ranks) at least, a multiple of 256; all the same */
	uint32_t epoch;
	uint32_t pad;
	const struct rx_inl_page *page; /* NULL: waits have no end */
	/* By rank: all of them. */
	struct rx_inl_mem *mem[RX_INL_MAX_RANKS];
	/* By rank: those of local ranks. */
	const void *send[RX_INL_MAX_RANKS];
	void *recv[RX_INL_MAX_RANKS];
	uint64_t scalar[RX_INL_MAX_RANKS];          /* RX_PREMUL_SUM: bits in the low bytes */
	struct rx_inl_line *line[RX_INL_MAX_RANKS]; /* NULL: nobody looks */
};

/* How an operation runs: the same on all ranks, since it follows from what they share. */
struct rx_inl_plan {
	uint32_t algorithm; /* enum rx_inl_algorithm */
	uint32_t n_blocks;
	uint32_t n_threads; /* per block */
};

/* Up to here, words with marks of their own are faster. Bytes that a rank pushes. */
#define RX_INL_WORDS_BYTES (128u << 10)
/* From here on, and with three ranks or more, two rounds. Bytes that a rank would read in one. */
#define RX_INL_TWO_SHOT_BYTES (1u << 20)

/**
 * rx_inl_serves() - is there an inline kernel for this?
 * @count: elements as the collective defines it
 * @elem_bytes: rx_dtype_size()
 *
 * For any count in question there is; whether it is faster than something else is not said.
 */
static inline bool rx_inl_serves(
	uint32_t coll, uint64_t count, uint32_t elem_bytes, uint32_t n_ranks)
{
	if (coll != RX_ALL_REDUCE && coll != RX_ALL_GATHER && coll != RX_REDUCE_SCATTER &&
		coll != RX_ALL_TO_ALL && coll != RX_BROADCAST)
		return false;
	return n_ranks - 1 < RX_INL_MAX_RANKS && elem_bytes - 1 < 8 &&
	       count <= RX_INL_MAX_BYTES / (elem_bytes * n_ranks);
}

/**
 * rx_inl_plan() - algorithm and grid
 * @bytes: count * elem_bytes
 * @max_blocks: 1 .. RX_INL_MAX_BLOCKS; so many blocks of all ranks fit at the same time
 *
 * A thread for every 16 bytes of what a rank gets, and no more blocks than that fills.
 */
static inline struct rx_inl_plan rx_inl_plan(
	uint32_t coll, uint32_t op, uint32_t bytes, uint32_t n_ranks, uint32_t max_blocks)
{
	struct rx_inl_plan plan = {RX_INL_FLAT, 1, RX_INL_MAX_THREADS};
	bool whole = coll == RX_ALL_REDUCE || coll == RX_BROADCAST;
	uint32_t vectors = (whole ? bytes : bytes * n_ranks) / 16;
	uint32_t shares = bytes / 256; /* a block gets one at least */

	if ((uint64_t)bytes * (n_ranks - 1) <= RX_INL_WORDS_BYTES && op != RX_PREMUL_SUM)
		plan.algorithm = RX_INL_WORDS;
	else if (coll == RX_ALL_REDUCE && n_ranks > 2 &&
		 (uint64_t)bytes * n_ranks > RX_INL_TWO_SHOT_BYTES)
		plan.algorithm = RX_INL_TWO_SHOT;
	if (plan.algorithm == RX_INL_TWO_SHOT)
		shares /= n_ranks;
	if (vectors < RX_INL_MAX_THREADS) {
		plan.n_threads = (vectors / 64 + 1) * 64;
		return plan;
	}
	plan.n_blocks = vectors / RX_INL_MAX_THREADS;
	if (plan.n_blocks > max_blocks)
		plan.n_blocks = max_blocks;
	if (plan.n_blocks > shares)
		plan.n_blocks = shares;
	if (plan.n_blocks == 0)
		plan.n_blocks = 1;
	return plan;
}

RX_DEV_ASSERT(sizeof(struct rx_inl_args) <= 1024, "the parameters of a kernel");
RX_DEV_ASSERT(sizeof(struct rx_inl_page) == 64 && sizeof(struct rx_inl_line) == 64, "lines");
RX_DEV_ASSERT(__builtin_offsetof(struct rx_inl_mem, from) % 64 == 0 &&
		      sizeof(struct rx_inl_from) % 64 == 0 && sizeof(struct rx_inl_mem) % 64 == 0,
	"lines with one writer");

#endif
