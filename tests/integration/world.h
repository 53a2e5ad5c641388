/* SPDX-License-Identifier: MIT */
/*
 * A set of rank processes that run one function, and the memory through which the test directs
 * them without help from the library under test.
 */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H

#include "node.h"
#include "../../client/rcclx.h"

#include <stdatomic.h>

#define WORLD_MAX      64u
#define WORLD_FLAGS    16u
#define WORLD_IDS      64u
#define WORLD_REASON   600u
#define WORLD_LIMIT_MS 25000u

struct rank_ctx;
typedef int (*rank_fn)(struct rank_ctx *ctx);

/* Shared by the test and its ranks. */
struct world_shared {
	_Atomic uint32_t flags[WORLD_FLAGS]; /* meaning is the test's */
	_Atomic uint64_t values[WORLD_MAX];  /* one per rank, meaning is the test's */
	_Atomic uint32_t n_arrived;
	_Atomic uint32_t id_ready[WORLD_IDS];
	struct rcclx_unique_id ids[WORLD_IDS];
	char reasons[WORLD_MAX][WORLD_REASON];
};

struct world {
	bool used;
	struct world_shared *shared;
	const struct node *node;
	uint32_t n_ranks;
	pid_t pids[WORLD_MAX];     /* 0: collected */
	int may_die_of[WORLD_MAX]; /* signal; 0: the rank has to end well */
	void *arg;
};

struct rank_ctx {
	struct world *world;
	struct world_shared *shared;
	uint32_t rank;
	uint32_t n_ranks;
	const char *socket;
	void *arg;
	uint32_t n_syncs;
	uint32_t n_kept_fds; /* that it has more in the end; UINT32_MAX: nobody counts */
	bool unshared;       /* has left the PID namespace, in which a leak checker does not work */
};

/* ---- the test's side ---- */

/** world_start() - fork @n_ranks processes that run @fn */
struct world *world_start(const struct node *node, uint32_t n_ranks, rank_fn fn, void *arg);

/** world_kill() - send @signal to a rank; after SIGKILL it may die of it */
void world_kill(struct world *world, uint32_t rank, int signal);

/** world_join() - wait for all ranks; the test fails if one failed, died, or is not done in time */
void world_join(struct world *world);

/** world_run() - world_start() and world_join() */
void world_run(const struct node *node, uint32_t n_ranks, rank_fn fn, void *arg);

/** world_end_leftovers() - kill and collect ranks of worlds that were not joined */
void world_end_leftovers(void);

/** world_kill_leftovers() - async-signal-safe part of it, for the time limit */
void world_kill_leftovers(void);

/* ---- both sides ---- */

/** flag_set(), flag_wait() - false when @flag has not come to @value within @ms (scaled) */
void flag_set(struct world_shared *shared, uint32_t flag, uint32_t value);
bool flag_wait(struct world_shared *shared, uint32_t flag, uint32_t value, uint64_t ms);

/* ---- a rank's side ---- */

/** rank_fail() - remember why; returns 1, the rank's exit status */
int rank_fail(struct rank_ctx *ctx, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** rank_sync() - barrier among the ranks without the library; 0 or a remembered failure */
int rank_sync(struct rank_ctx *ctx);

/** rank_connect() - one client to the node's daemon */
int rank_connect(struct rank_ctx *ctx, struct rcclx_client **client_p);

/** rank_id() - id number @slot: the first rank in it makes it, the others wait for it */
int rank_id(struct rank_ctx *ctx, struct rcclx_client *client, uint32_t slot, bool make,
	struct rcclx_unique_id *id_p);

/** rank_comm() - join the communicator of all ranks under id @slot; rank 0 makes the id */
int rank_comm(struct rank_ctx *ctx, struct rcclx_client *client, uint32_t slot,
	struct rcclx_comm **comm_p);

/** rank_leave() - destroy (NULL allowed) and disconnect, both have to succeed */
int rank_leave(struct rank_ctx *ctx, struct rcclx_comm *comm, struct rcclx_client *client);

#define RANK_CHECK(ctx, condition, ...)                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return rank_fail(ctx, __FILE__, __LINE__, __VA_ARGS__);                    \
	} while (0)

/* The call has to return @expected; its text is part of the report. */
#define RANK_RESULT(ctx, call, expected)                                                           \
	do {                                                                                       \
		rcclx_result rank_r_ = (call);                                                     \
		if (rank_r_ != (expected))                                                         \
			return rank_fail(ctx, __FILE__, __LINE__, "%s: %s, not %s; \"%s\"", #call, \
				rcclx_strerror(rank_r_), rcclx_strerror(expected),                 \
				rcclx_last_error());                                               \
	} while (0)

#define RANK_OK(ctx, call) RANK_RESULT(ctx, call, RCCLX_OK)

/* The last error's sentence has to contain @part. */
#define RANK_TEXT(ctx, part)                                                                       \
	RANK_CHECK(ctx, strstr(rcclx_last_error(), part) != NULL, "no \"%s\" in \"%s\"", part,     \
		rcclx_last_error())

/* A step that is itself a rank function's part: 0 or a remembered failure. */
#define RANK_DO(step)                                                                              \
	do {                                                                                       \
		int rank_d_ = (step);                                                              \
		if (rank_d_ != 0)                                                                  \
			return rank_d_;                                                            \
	} while (0)

/* Not later than @ms (scaled) after @since_ms. */
#define RANK_WITHIN(ctx, since_ms, ms)                                                             \
	RANK_CHECK(ctx, test_now_ms() - (since_ms) <= (ms)*test_slow(),                            \
		"took %llu ms, at most %llu allowed",                                              \
		(unsigned long long)(test_now_ms() - (since_ms)),                                  \
		(unsigned long long)((ms)*test_slow()))

#endif
