/* SPDX-License-Identifier: MIT */
/*
 * Layout of a communicator's shared memory. No functions. See doc/rings.md.
 *
 * Two memory files: the *control page*, which only the daemon writes (sealed, members map it
 * read-only), and the *arena*, which the members write. In the arena every line has one writer,
 * the rank it belongs to. A member can spoil the results of its own communicators and nothing
 * else: whoever reads a line copies it first and checks what it copied.
 */
#ifndef RX_FABRIC_ABI_H
#define RX_FABRIC_ABI_H

#include "rx_base.h"
#include "rx_precision_abi.h"
#include "rx_tuning_abi.h"

#include <assert.h>
#include <stdatomic.h>

/* What an op is, in 16 comparable bytes plus its scalar. Equal on all ranks, or mismatch. */
struct rx_op_sig {
	uint8_t coll;  /* enum rx_coll */
	uint8_t dtype; /* enum rx_dtype */
	uint8_t op;    /* enum rx_redop */
	uint8_t flags; /* enum rx_sig_flags */
	uint32_t root;
	uint64_t count;
};

#define RX_ENTRY_PAYLOAD 96u

/* Where a rank's buffers are, when they lie in registered memory. */
struct rx_entry_bufs {
	uint64_t send_region; /* daemon-wide region id; 0: private memory */
	uint64_t recv_region;
	uint64_t send_offset;
	uint64_t recv_offset;
	uint64_t copied;      /* 1: its data is in the flat slot */
	uint64_t over_budget; /* low precision, 1: this rank has found errors above the budget */
	uint64_t send_at;     /* address in the rank's own process, for single copy */
	uint64_t reach;       /* enum rx_reach_state: what the rank says of single copy */
};

/* May ranks read each other's private memory, with the kernel's permission? */
enum rx_reach_state {
	RX_REACH_NO = 0,      /* not this rank, never in this communicator */
	RX_REACH_OFFERED = 1, /* it can be read, and will try to read the others */
	RX_REACH_PROVEN = 2,  /* it has read all the others, and that pays */
	RX_REACH_N
};

/* How to prove that a process is that of the rank: what is there, and where. */
struct rx_reach_proof {
	uint64_t nonce[2];
	uint64_t at; /* address in the rank's own process */
};

/*
 * A rank announces an op by filling the entry (seq & 1) and then storing seq. Peers may read it
 * until the rank has seen everybody's seq + 1, hence two of them and no exit barrier.
 */
struct rx_entry {
	_Alignas(128) _Atomic uint32_t seq; /* written last; peers' futex word */
	_Atomic uint32_t sleeper;           /* 1 while this rank sleeps on somebody's entry */
	struct rx_op_sig sig;
	uint64_t imm; /* scalar of a pre-multiplied sum, this rank's */
	union {
		struct rx_entry_bufs bufs;
		uint8_t payload[RX_ENTRY_PAYLOAD]; /* tiny messages travel here */
	};
};

/* Progress inside an op: number of steps done since the communicator was formed. */
struct rx_progress {
	_Alignas(128) _Atomic uint32_t step; /* peers' futex word */
	_Atomic uint32_t sleeper;            /* 1 while this rank sleeps on somebody's step */
	uint32_t refused; /* single copy: the op (seq) that this rank could not do; before step */
};

struct rx_line {
	struct rx_entry entry[2];
	struct rx_progress progress;
	_Alignas(128) struct rx_line_counts precision;
	/* Written once, before the first entry whose reach is not RX_REACH_NO. */
	struct rx_reach_proof proof;
	uint64_t reserved[3];
};

/*
 * Arena: rx_line[n_ranks], then per rank, page-aligned, its staging:
 *   flat[2]   RX_FLAT_BYTES each, by (seq & 1): small messages
 *   chunk[6]  chunk_bytes each: pipelined pieces (three of input, three of results)
 */
#define RX_FLAT_BYTES      (64u * 1024)
#define RX_CHUNK_BYTES     (64u * 1024)
#define RX_STAGE_IN        3u
#define RX_STAGE_OUT       3u
#define RX_STAGE_RANK_SIZE (2u * RX_FLAT_BYTES + (RX_STAGE_IN + RX_STAGE_OUT) * RX_CHUNK_BYTES)

enum rx_member_status {
	RX_MEMBER_ALIVE = 0,
	RX_MEMBER_LEFT = 1, /* destroyed its communicator handle */
	RX_MEMBER_DEAD = 2, /* its process or session ended */
	RX_MEMBER_N
};

enum rx_abort_reason {
	RX_ABORT_NONE = 0,
	RX_ABORT_USER = 1,      /* a rank called abort */
	RX_ABORT_PEER_LOST = 2, /* a rank died */
	RX_ABORT_MISMATCH = 3,  /* ranks disagree in a way that no op can report */
	RX_ABORT_DEADLINE = 4,  /* an op exceeded the communicator's deadline */
	RX_ABORT_SHUTDOWN = 5,  /* the daemon stops */
	RX_ABORT_ERROR = 6,     /* a rank cannot go on (no memory, ...) */
	RX_ABORT_DEVICE = 7,    /* a GPU, or its driver */
	RX_ABORT_N
};

/* Kernels that the ranks run themselves, on device memory of the daemon's; see doc/gpu.md. */
enum rx_kernels_state {
	RX_KERNELS_OFF = 0,
	RX_KERNELS_OFFERED = 1, /* the ranks try whether they reach each other's parts of it */
	RX_KERNELS_ON = 2,      /* all do */
	RX_KERNELS_N
};

/* The control page. Written by the daemon alone. */
struct rx_fabric_ctl {
	_Alignas(64) _Atomic uint32_t abort; /* enum rx_abort_reason, written after the rest */
	uint32_t abort_rank;                 /* who; UINT32_MAX nobody in particular */
	uint32_t abort_other;                /* RX_ABORT_MISMATCH: the other rank */
	uint32_t n_ranks;
	uint64_t op_timeout_ns; /* deadline of one op; UINT64_MAX none */
	uint32_t cores_shared;  /* 1: more ranks than cores to run them */
	uint32_t spin_us;       /* of a rank that waits, before it sleeps */
	/* Grows when memory of a member is freed: members drop what they imported. */
	_Atomic uint64_t mem_generation;
	struct rx_op_sig abort_sig[2]; /* RX_ABORT_MISMATCH: both sides */
	uint32_t one_user;             /* 1: all members are processes of the same user */
	/* 1: a member has a GPU runtime, so calls may come with device memory: for the daemon */
	uint32_t gpu;
	_Alignas(64) _Atomic uint32_t status[RX_MAX_RANKS]; /* enum rx_member_status */
	uint32_t pid[RX_MAX_RANKS];                         /* as the daemon sees them; 0 unknown */
	/* Session of each rank: two ranks with the same one share a process. */
	uint64_t session[RX_MAX_RANKS];
	struct rx_precision precision;
	/* 1: errors above the budget were found; no operation in low precision any more. */
	_Atomic uint32_t over_budget;
	struct rx_tuning tuning;
	_Atomic uint32_t kernels; /* enum rx_kernels_state */
};

static_assert(sizeof(struct rx_op_sig) == 16, "shared layout");
static_assert(sizeof(struct rx_entry) == 128, "shared layout");
static_assert(sizeof(struct rx_line) == 512, "shared layout");
static_assert(sizeof(struct rx_fabric_ctl) <= 4096, "one page");
static_assert(RX_STAGE_RANK_SIZE % 4096 == 0, "page-aligned staging");

#endif
