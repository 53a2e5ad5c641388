/* SPDX-License-Identifier: MIT */
/*
 * The stress program's parts. The director (stress.c) forms teams of idle members and disturbs
 * them; members (member.c) run their team's script (step.c), which follows from the team's seed, so
 * that all of a team make the same calls.
 */
#ifndef TEST_STRESS_H
#define TEST_STRESS_H

#include "../integration/coll_case.h"

#define N_MEMBERS 8u
#define TEAM_MAX  5u
#define N_TEAMS   N_MEMBERS

#define FORM_MS       4000u /* for a communicator to form; scaled */
#define FORM_LIMIT_MS 9000u /* and for a call that forms one to return */

/* What has happened to a team: noted before it happens, so that no error comes unexplained. */
enum trouble {
	TROUBLE_KILLED = 1,
	TROUBLE_EXITED = 2, /* a member ended without destroying anything */
	TROUBLE_ABORTED = 4,
	TROUBLE_HASTY = 8, /* calls have time limits that a stopped member makes them miss */
};

struct team {
	uint32_t n;
	uint32_t members[TEAM_MAX]; /* by rank */
	uint64_t seed;
	uint32_t n_steps;
	uint64_t max_count;
	uint64_t timeout_ns; /* of its calls; 0: none */
	_Atomic uint32_t id_ready;
	struct rcclx_unique_id id;
	_Atomic uint32_t trouble;
	_Atomic uint64_t since_ms; /* last time that something happened to it */
};

/* Exit status of a member that ends in the middle on purpose. */
#define EXIT_ABRUPT 7

struct slot {
	_Atomic uint32_t job;           /* number of its team + 1; 0: idle */
	_Atomic uint64_t call_start_ms; /* 0: not in a call */
	_Atomic uint64_t call_limit_ms; /* longest that the call may take after the last event */
	_Atomic(const char *) call;     /* a literal: at the same address in all processes */
	_Atomic uint64_t results[RCCLX_ERR_N];
	_Atomic uint64_t n_shrunk;
	_Atomic uint64_t n_compared;
};

struct stress_shared {
	struct world_shared world; /* reasons of failures, by member */
	struct slot slots[N_MEMBERS];
	struct team teams[N_TEAMS];
	_Atomic uint32_t stop;
};

/* Numbers that follow from a seed: splitmix64 (Steele, Lea, Flood 2014). */
struct dice {
	uint64_t state;
};

static inline uint64_t roll(struct dice *dice, uint64_t n)
{
	uint64_t x = (dice->state += 0x9e3779b97f4a7c15u);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return (x ^ (x >> 31)) % n;
}

/* A member in a team. */
struct member {
	struct rank_ctx *ctx;
	struct slot *slot;
	struct team *team;
	struct coll_rank coll; /* client, and the communicator in use with its buffers */
	struct rcclx_comm *twin;
	bool over; /* a call has failed for a known reason: this communicator is done with */
};

/**
 * member_judge() - is the result of a call right?
 *
 * Counts it; anything but RCCLX_OK has to be explained by the team's troubles, and ends the work
 * with this communicator. Return: 0, or a remembered failure.
 */
int member_judge(struct member *m, rcclx_result r, const char *what);

/** member_begin(), member_end() - a call that may take @limit_ms (scaled) from now on */
void member_begin(struct member *m, uint64_t limit_ms, const char *call);
void member_end(struct member *m);

/* One call under the director's eyes. */
#define MEMBER_CALL(m, limit_ms, call)                                                             \
	do {                                                                                       \
		member_begin(m, limit_ms, #call);                                                  \
		rcclx_result member_r_ = (call);                                                   \
		member_end(m);                                                                     \
		RANK_DO(member_judge(m, member_r_, #call));                                        \
	} while (0)

#define CALL_MS 8000u /* any other call, when nothing goes wrong */

/** member_run() - life of a member process; exit status */
int member_run(struct stress_shared *shared, uint32_t index, const char *socket);

/** step_run() - step @i of the team's script; sets m->over when the communicator failed */
int step_run(struct member *m, uint32_t i);

/** step_coll() - one collective that @dice choose, compared with the oracle */
int step_coll(struct member *m, struct dice *dice);

#endif
