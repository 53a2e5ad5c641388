/* SPDX-License-Identifier: MIT */
#include "stress.h"

#include "../../kernels/coll_types.h"

#include <stdlib.h>
#include <unistd.h>

/* Longest wait for the id that a team's rank 0 makes. */
#define ID_MS 2000u

void member_begin(struct member *m, uint64_t limit_ms, const char *call)
{
	atomic_store(&m->slot->call, call);
	atomic_store(&m->slot->call_limit_ms, limit_ms);
	atomic_store(&m->slot->call_start_ms, test_now_ms());
}

void member_end(struct member *m)
{
	atomic_store(&m->slot->call_start_ms, 0);
}

static bool explained(uint32_t trouble, rcclx_result r)
{
	switch (r) {
	case RCCLX_ERR_PEER_LOST:
		return trouble != 0;
	case RCCLX_ERR_ABORTED:
		return (trouble & ~(uint32_t)TROUBLE_HASTY) != 0;
	case RCCLX_ERR_TIMEOUT:
		/* A lost member can be missed where a communicator is formed. */
		return trouble != 0;
	default:
		return false;
	}
}

int member_judge(struct member *m, rcclx_result r, const char *what)
{
	uint32_t trouble = atomic_load(&m->team->trouble);

	if (r >= 0 && r < RCCLX_ERR_N)
		atomic_fetch_add(&m->slot->results[r], 1);
	if (r == RCCLX_OK)
		return 0;
	m->over = true;
	RANK_CHECK(m->ctx, explained(trouble, r), "seed %llu, %s: %s with troubles 0x%x; \"%s\"",
		(unsigned long long)m->team->seed, what, rcclx_strerror(r), trouble,
		rcclx_last_error());
	return 0;
}

/* ---- a team ---- */

static uint32_t rank_of(const struct team *team, uint32_t index)
{
	uint32_t rank = 0;

	while (team->members[rank] != index)
		rank++;
	return rank;
}

/* False: rank 0 was lost before it made the id. */
static bool wait_for_id(const struct team *team)
{
	uint64_t end = test_now_ms() + ID_MS * test_slow();

	while (atomic_load(&team->id_ready) == 0) {
		if (test_now_ms() > end)
			return false;
		test_sleep_ms(1);
	}
	return true;
}

static int join(struct member *m)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct team *team = m->team;

	config.form_timeout_ns = FORM_MS * test_slow() * 1000000ull;
	if (m->coll.rank == 0) {
		RANK_OK(m->ctx, rcclx_unique_id_create(m->coll.client, &team->id));
		atomic_store(&team->id_ready, 1);
	}
	if (!wait_for_id(team)) {
		RANK_CHECK(m->ctx, atomic_load(&team->trouble) != 0, "nobody made the team's id");
		m->over = true;
		return 0;
	}
	MEMBER_CALL(m, FORM_LIMIT_MS,
		rcclx_comm_create(m->coll.client, &team->id, m->coll.n_ranks, m->coll.rank, &config,
			&m->coll.comm));
	return 0;
}

static uint64_t buffer_bytes(const struct team *team)
{
	return (team->n * (team->max_count + 1) + 64) * 8 + 4096;
}

/*
 * Survivors go on without the lost ones. Memory is made anew: peers that were in the middle of the
 * failed operation may still be writing to the old one.
 */
static int shrink(struct member *m)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_comm *rest = NULL;

	RANK_DO(coll_release(&m->coll));
	config.form_timeout_ns = FORM_MS / 4 * test_slow() * 1000000ull;
	m->over = false;
	MEMBER_CALL(m, FORM_LIMIT_MS, rcclx_comm_shrink(m->coll.comm, NULL, 0, &config, &rest));
	RANK_OK(m->ctx, rcclx_comm_destroy(m->coll.comm));
	m->coll.comm = rest;
	if (m->over)
		return 0;
	m->coll.rank = rcclx_comm_rank(rest);
	m->coll.n_ranks = rcclx_comm_size(rest);
	RANK_DO(coll_alloc(&m->coll, m->ctx, buffer_bytes(m->team)));
	atomic_fetch_add(&m->slot->n_shrunk, 1);
	for (uint32_t i = 0; i < 8 && !m->over; i++) {
		struct dice dice = {m->team->seed ^ (0x5000 + i)};

		RANK_DO(step_coll(m, &dice));
	}
	return coll_release(&m->coll);
}

static int work(struct member *m)
{
	const struct team *team = m->team;

	RANK_DO(coll_alloc(&m->coll, m->ctx, buffer_bytes(team)));
	for (uint32_t i = 0; i < team->n_steps && !m->over; i++)
		RANK_DO(step_run(m, i));
	RANK_OK(m->ctx, rcclx_comm_destroy(m->twin));
	if (m->over && team->seed % 2 == 0)
		return shrink(m);
	return coll_release(&m->coll);
}

static int run_team(struct rank_ctx *ctx, struct stress_shared *shared, struct rcclx_client *client)
{
	uint32_t job = atomic_load(&shared->slots[ctx->rank].job);
	struct member m = {
		.ctx = ctx,
		.slot = &shared->slots[ctx->rank],
		.team = &shared->teams[job - 1],
	};

	m.coll.client = client;
	m.coll.ctx = ctx;
	m.coll.n_ranks = m.team->n;
	m.coll.rank = rank_of(m.team, ctx->rank);
	m.coll.timeout_ns = m.team->timeout_ns;
	RANK_DO(join(&m));
	if (!m.over)
		RANK_DO(work(&m));
	RANK_OK(ctx, rcclx_comm_destroy(m.coll.comm));
	return 0;
}

/* ---- a process ---- */

static int live(struct rank_ctx *ctx, struct stress_shared *shared)
{
	struct slot *slot = &shared->slots[ctx->rank];
	struct rcclx_client *client = NULL;
	struct dice dice = {(uint64_t)getpid()};

	RANK_DO(rank_connect(ctx, &client));
	while (atomic_load(&shared->stop) == 0) {
		if (atomic_load(&slot->job) == 0) {
			test_sleep_ms(1);
			continue;
		}
		RANK_DO(run_team(ctx, shared, client));
		/* Disconnecting checks that nothing was left over. */
		if (roll(&dice, 4) == 0) {
			RANK_OK(ctx, rcclx_disconnect(client));
			RANK_DO(rank_connect(ctx, &client));
		}
		atomic_store(&slot->job, 0);
	}
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

int member_run(struct stress_shared *shared, uint32_t index, const char *socket)
{
	struct rank_ctx ctx = {
		.shared = &shared->world, .rank = index, .n_ranks = N_MEMBERS, .socket = socket};
	unsigned int n_fds = proc_n_fds();
	int r = live(&ctx, shared);

	if (r == 0 && proc_n_fds() != n_fds)
		r = rank_fail(&ctx, __FILE__, __LINE__, "%u file descriptors, %u before",
			proc_n_fds(), n_fds);
	return r;
}
