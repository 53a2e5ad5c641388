/* SPDX-License-Identifier: MIT */
/* One call of any collective: data, expectation by the oracle, call, comparison bit for bit. */
#ifndef TEST_COLL_CASE_H
#define TEST_COLL_CASE_H

#include "world.h"

enum coll_mode {
	COLL_INLINE, /* blocking, by the ranks */
	COLL_DAEMON, /* blocking, by the daemon */
	COLL_START,  /* asynchronous */
	COLL_GROUP,  /* alone in a group */
	COLL_MODE_N
};

enum coll_memory {
	COLL_PRIVATE,
	COLL_REGISTERED,
	COLL_MIXED,
	COLL_MEMORY_N,
	/* Where the test has given the rank device memory. */
	COLL_DEVICE = COLL_MEMORY_N,
	COLL_DEVICE_OUT,  /* what is sent lies in host memory */
	COLL_DEVICE_SOME, /* even ranks only, the others have private memory */
	COLL_DEVICE_END
};

/* Device memory of at least 2 * bytes, and how to reach it. */
struct coll_device {
	uint64_t address; /* 0: none */
	void (*write)(uint64_t to, const void *from, uint64_t bytes);
	void (*read)(void *to, uint64_t from, uint64_t bytes);
	/* Calls are made in the order of @stream, by @around, which calls @make; NULL: they block.
	 */
	rcclx_result (*around)(rcclx_result (*make)(void *arg), void *arg);
	void *stream;
};

struct coll_case {
	uint8_t coll; /* enum rx_coll */
	uint32_t dtype;
	uint32_t op;
	uint64_t count;
	uint32_t root;
	enum coll_mode mode;
	enum coll_memory memory;
	bool in_place;      /* where the collective allows it */
	uint32_t misalign;  /* elements */
	uint32_t precision; /* RCCLX_PRECISION_*; _AUTO: the communicator is exact */
	bool tame;          /* moderate values instead of NaN and extremes */
	uint64_t seed;
};

/* A rank's buffers. */
struct coll_rank {
	struct rank_ctx *ctx;
	struct rcclx_client *client;
	struct rcclx_comm *comm;
	uint32_t rank; /* in the communicator; ctx has the world's */
	uint32_t n_ranks;
	uint32_t ask;        /* RCCLX_PRECISION_*, whatever the case expects; 0: that */
	bool ask_nothing;    /* the communicator decides what the case expects */
	bool gather_bf16;    /* the communicator's, in low precision */
	uint64_t timeout_ns; /* of blocking calls; 0: none */
	uint64_t bytes;
	uint8_t *registered;
	uint8_t *private;
	struct coll_device device;
	uint8_t *inputs[WORLD_MAX]; /* what each rank has, made anew for each case */
	uint64_t scalars[WORLD_MAX];
};

/** coll_open() - join the communicator of all ranks; @bytes for one case's input or output */
int coll_open(struct coll_rank *c, struct rank_ctx *ctx, uint64_t bytes);
int coll_close(struct coll_rank *c);

/** coll_run() - do it, and compare all of the output */
int coll_run(struct coll_rank *c, const struct coll_case *what);

/** coll_lowprec() - is the result to be that of low precision? */
bool coll_lowprec(const struct coll_rank *c, const struct coll_case *what);

/**
 * coll_try() - the same, but any result of the call is fine
 *
 * After RCCLX_OK all is compared; after RCCLX_ERR_MISMATCH nothing may have been moved.
 */
int coll_try(struct coll_rank *c, const struct coll_case *what, rcclx_result *result_p);

/**
 * coll_alloc(), coll_release() - only the buffers: client, rank and n_ranks are set, the caller
 * makes and ends the communicator
 */
int coll_alloc(struct coll_rank *c, struct rank_ctx *ctx, uint64_t bytes);
int coll_release(struct coll_rank *c);

#endif
