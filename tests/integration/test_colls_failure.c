/* SPDX-License-Identifier: MIT */
/*
 * What can go wrong during each collective, send, receive and group: peers that die, are late or
 * stop, and a daemon that dies. Pairs of ranks, one for each kind of call, run side by side: the
 * survivor of a pair is its rank 0, the victim its rank 1.
 */
#include "coll_case.h"
#include "harness.h"

#include "../../kernels/coll_types.h"

#include <signal.h>

enum kind {
	KIND_BARRIER = 11, /* below: index into colls */
	KIND_SEND,
	KIND_RECV,
	KIND_GROUP,
	KIND_N
};

static const uint8_t colls[KIND_BARRIER] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER,
	RX_ALL_TO_ALL, RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_GATHER_V,
	RX_REDUCE_SCATTER_V, RX_ALL_TO_ALL_V};

enum flags { FLAG_GO, FLAG_GONE };

#define HAPPENED_AT (WORLD_MAX - 1) /* world_shared.values: when, in milliseconds */

/* world_shared.values of a rank: how far it is. */
enum progress { READY = 1, CALLING };

enum event { EVENT_KILL, EVENT_DAEMON_KILL, EVENT_LATE, EVENT_STOP };

struct failure {
	enum event event;
	enum coll_mode mode;
	uint64_t count;
	bool blocked; /* the victim never calls; else both call until it happens */
	bool after;   /* the survivor calls only when it has happened */
	uint32_t n_kinds;
	uint32_t kinds[KIND_N];
};

#define TIMEOUT_MS 250u

struct pair {
	struct rank_ctx *ctx;
	const struct failure *failure;
	uint32_t kind;
	bool victim;
	struct coll_rank coll;
};

/* ---- one call of any kind ---- */

static rcclx_result transfer(struct pair *p, bool send)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	uint32_t peer = p->victim ? 0 : 1;

	config.timeout_ns = p->coll.timeout_ns;
	if (send)
		return rcclx_send(p->coll.comm, p->coll.registered, p->failure->count, RCCLX_INT8,
			peer, &config);
	return rcclx_recv(
		p->coll.comm, p->coll.private, p->failure->count, RCCLX_INT8, peer, &config);
}

static rcclx_result group(struct pair *p)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	int8_t *data = (int8_t *)p->coll.private;
	rcclx_result r = rcclx_group_start();

	config.timeout_ns = p->coll.timeout_ns;
	if (r == RCCLX_OK)
		r = rcclx_all_reduce(p->coll.comm, data, data, p->failure->count, RCCLX_INT8,
			RCCLX_SUM, &config);
	for (uint32_t i = 0; i < 2 && r == RCCLX_OK; i++)
		r = transfer(p, (i == 0) == p->victim);
	rcclx_result end = rcclx_group_end();
	return r != RCCLX_OK ? r : end;
}

static int call(struct pair *p, rcclx_result *r_p)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct coll_case what = {
		.dtype = RX_FLOAT32,
		.count = p->failure->count / sizeof(float),
		.root = 1,
		.mode = p->failure->mode,
		.memory = p->kind % 2 == 0 ? COLL_REGISTERED : COLL_PRIVATE,
	};

	config.timeout_ns = p->coll.timeout_ns;
	config.executor =
		p->failure->mode == COLL_INLINE ? RCCLX_EXECUTOR_INLINE : RCCLX_EXECUTOR_DAEMON;
	switch (p->kind) {
	case KIND_BARRIER:
		*r_p = rcclx_barrier(p->coll.comm, &config);
		return 0;
	case KIND_SEND:
	case KIND_RECV:
		*r_p = transfer(p, (p->kind == KIND_SEND) != p->victim);
		return 0;
	case KIND_GROUP:
		*r_p = group(p);
		return 0;
	default:
		what.coll = colls[p->kind];
		return coll_try(&p->coll, &what, r_p);
	}
}

/* ---- a rank of a pair ---- */

static int pair_open(struct pair *p, struct rank_ctx *ctx)
{
	struct rcclx_unique_id id = {0};
	uint32_t number = ctx->rank / 2;

	*p = (struct pair){.ctx = ctx, .failure = ctx->arg, .victim = ctx->rank % 2 == 1};
	p->kind = p->failure->kinds[number];
	p->coll.ctx = ctx;
	p->coll.rank = ctx->rank % 2;
	p->coll.n_ranks = 2;
	RANK_DO(rank_connect(ctx, &p->coll.client));
	RANK_DO(rank_id(ctx, p->coll.client, number, !p->victim, &id));
	RANK_OK(ctx, rcclx_comm_create(p->coll.client, &id, 2, p->coll.rank, NULL, &p->coll.comm));
	return coll_alloc(&p->coll, ctx, 2 * p->failure->count + 4096);
}

static int pair_close(struct pair *p)
{
	RANK_DO(coll_release(&p->coll));
	return rank_leave(p->ctx, p->coll.comm, p->coll.client);
}

static void progress_of(struct rank_ctx *ctx, enum progress how_far)
{
	atomic_store(&ctx->shared->values[ctx->rank], how_far);
}

static void progress(struct pair *p, enum progress how_far)
{
	progress_of(p->ctx, how_far);
}

static int check_within(struct rank_ctx *ctx, uint64_t ms)
{
	uint64_t at = atomic_load(&ctx->shared->values[HAPPENED_AT]);

	RANK_CHECK(ctx, at != 0, "failed before anything happened: %s", rcclx_last_error());
	RANK_WITHIN(ctx, at, ms);
	return 0;
}

static int sum_alone(struct rank_ctx *ctx, struct rcclx_client *client)
{
	struct rcclx_unique_id id = {0};
	struct rcclx_comm *comm = NULL;
	int32_t x = 42;

	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &comm));
	RANK_OK(ctx, rcclx_all_reduce(comm, &x, &x, 1, RCCLX_INT32, RCCLX_SUM, NULL));
	RANK_CHECK(ctx, x == 42, "sum is %d", x);
	RANK_OK(ctx, rcclx_comm_destroy(comm));
	return 0;
}

static int survive(struct pair *p)
{
	rcclx_result expected = p->failure->event == EVENT_DAEMON_KILL ? RCCLX_ERR_DAEMON_LOST
								       : RCCLX_ERR_PEER_LOST;
	rcclx_result r = RCCLX_OK;

	progress(p, CALLING);
	if (p->failure->after) {
		RANK_CHECK(p->ctx, flag_wait(p->ctx->shared, FLAG_GONE, 1, 20000), "nothing came");
		/* The daemon has noticed, and has not yet told those who do not ask. */
		test_sleep_ms(10);
	}
	while (r == RCCLX_OK)
		RANK_DO(call(p, &r));
	RANK_CHECK(p->ctx, r == expected, "kind %u: %s; \"%s\"", p->kind, rcclx_strerror(r),
		rcclx_last_error());
	RANK_DO(check_within(p->ctx, 1000));
	if (expected == RCCLX_ERR_PEER_LOST)
		RANK_TEXT(p->ctx, "rank 1");
	RANK_RESULT(p->ctx, rcclx_comm_status(p->coll.comm), expected);
	RANK_RESULT(p->ctx, rcclx_barrier(p->coll.comm, NULL), expected);
	if (expected == RCCLX_ERR_PEER_LOST)
		RANK_DO(sum_alone(p->ctx, p->coll.client));
	return pair_close(p);
}

/* Waits to be killed, or calls until it is. */
static int suffer(struct pair *p)
{
	rcclx_result r = RCCLX_OK;

	progress(p, CALLING);
	if (p->failure->blocked)
		RANK_CHECK(p->ctx, flag_wait(p->ctx->shared, FLAG_GONE, 1, 20000), "nothing came");
	while (r == RCCLX_OK && !p->failure->blocked)
		RANK_DO(call(p, &r));
	RANK_CHECK(p->ctx, p->failure->event == EVENT_DAEMON_KILL, "alive: %s", rcclx_last_error());
	return pair_close(p);
}

static int rank_failure(struct rank_ctx *ctx)
{
	struct pair p;

	RANK_DO(pair_open(&p, ctx));
	progress(&p, READY);
	RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_GO, 1, 20000), "nothing came");
	return p.victim ? suffer(&p) : survive(&p);
}

/* ---- killing ---- */

static void all_kinds(struct failure *f)
{
	for (uint32_t k = 0; k < KIND_N; k++)
		f->kinds[k] = k;
	f->n_kinds = KIND_N;
}

static void wait_for(struct world *world, enum progress how_far)
{
	uint64_t end = test_now_ms() + 15000 * test_slow();

	for (uint32_t r = 0; r < world->n_ranks; r++) {
		while (atomic_load(&world->shared->values[r]) < how_far) {
			if (test_now_ms() > end)
				fail_msg("rank %u does not begin", r);
			test_sleep_ms(1);
		}
	}
}

static void happen(struct node *node, struct world *world, enum event event)
{
	atomic_store(&world->shared->values[HAPPENED_AT], test_now_ms());
	if (event == EVENT_DAEMON_KILL)
		node_kill(node);
	for (uint32_t r = 1; r < world->n_ranks && event == EVENT_KILL; r += 2)
		world_kill(world, r, SIGKILL);
	flag_set(world->shared, FLAG_GONE, 1);
}

static void run_failure(struct failure f, uint64_t after_ms)
{
	struct node *node = node_start(NULL);

	all_kinds(&f);
	struct world *world = world_start(node, 2 * f.n_kinds, rank_failure, &f);
	wait_for(world, READY);
	flag_set(world->shared, FLAG_GO, 1);
	wait_for(world, CALLING);
	test_sleep_ms(after_ms);
	happen(node, world, f.event);
	world_join(world);
	if (f.event == EVENT_DAEMON_KILL)
		node_forget(node);
	else
		node_stop(node);
}

#define SMALL  64u
#define MEDIUM 16384u /* not in flat slots, and quickly prepared */
#define LARGE  400000u

static void test_killed_before_the_call(void **state)
{
	(void)state;
	run_failure((struct failure){EVENT_KILL, COLL_INLINE, SMALL, true, false, 0, {0}}, 60);
	run_failure((struct failure){EVENT_KILL, COLL_DAEMON, LARGE, true, false, 0, {0}}, 60);
	run_failure((struct failure){EVENT_KILL, COLL_START, SMALL, true, false, 0, {0}}, 60);
}

/* What the victim announced before it died leads nowhere: its memory is gone. */
static void test_killed_after_its_call(void **state)
{
	(void)state;
	run_failure((struct failure){EVENT_KILL, COLL_INLINE, MEDIUM, false, true, 0, {0}}, 60);
	run_failure((struct failure){EVENT_KILL, COLL_DAEMON, MEDIUM, false, true, 0, {0}}, 60);
}

static void test_killed_in_the_middle(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < (test_long() ? 20 : 2); i++) {
		run_failure((struct failure){EVENT_KILL, COLL_INLINE, LARGE, false, false, 0, {0}},
			100 + 13 * i);
		run_failure((struct failure){EVENT_KILL, COLL_DAEMON, LARGE, false, false, 0, {0}},
			90 + 17 * i);
	}
	run_failure((struct failure){EVENT_KILL, COLL_INLINE, SMALL, false, false, 0, {0}}, 50);
	run_failure((struct failure){EVENT_KILL, COLL_GROUP, SMALL, false, false, 0, {0}}, 50);
}

static void test_daemon_killed(void **state)
{
	(void)state;
	run_failure(
		(struct failure){EVENT_DAEMON_KILL, COLL_INLINE, LARGE, true, false, 0, {0}}, 60);
	run_failure(
		(struct failure){EVENT_DAEMON_KILL, COLL_DAEMON, SMALL, true, false, 0, {0}}, 60);
	run_failure(
		(struct failure){EVENT_DAEMON_KILL, COLL_START, SMALL, true, false, 0, {0}}, 60);
	run_failure(
		(struct failure){EVENT_DAEMON_KILL, COLL_DAEMON, LARGE, false, false, 0, {0}}, 100);
}

/* ---- late ---- */

/* The calls of rank 0 have a time limit, the others come only after it. */
static int rank_late(struct rank_ctx *ctx)
{
	struct pair p;
	rcclx_result r = RCCLX_OK;

	RANK_DO(pair_open(&p, ctx));
	RANK_DO(rank_sync(ctx));
	p.coll.timeout_ns = p.victim ? 0 : TIMEOUT_MS * 1000000ull;
	if (p.victim) {
		RANK_DO(rank_sync(ctx));
		RANK_DO(call(&p, &r));
		RANK_CHECK(ctx,
			r == RCCLX_ERR_TIMEOUT || r == RCCLX_ERR_ABORTED ||
				r == RCCLX_ERR_PEER_LOST,
			"kind %u: %s; \"%s\"", p.kind, rcclx_strerror(r), rcclx_last_error());
		return pair_close(&p);
	}
	uint64_t start = test_now_ms();
	RANK_DO(call(&p, &r));
	RANK_CHECK(ctx, r == RCCLX_ERR_TIMEOUT, "kind %u: %s; \"%s\"", p.kind, rcclx_strerror(r),
		rcclx_last_error());
	RANK_TEXT(ctx, "rank 1");
	RANK_CHECK(ctx, test_now_ms() - start >= TIMEOUT_MS, "too early");
	RANK_WITHIN(ctx, start, TIMEOUT_MS + 1000);
	RANK_RESULT(ctx, rcclx_comm_status(p.coll.comm), RCCLX_ERR_TIMEOUT);
	RANK_DO(rank_sync(ctx));
	return pair_close(&p);
}

static void test_late(void **state)
{
	static const enum coll_mode modes[] = {COLL_INLINE, COLL_DAEMON, COLL_GROUP};
	struct node *node = node_start(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct failure f = {EVENT_LATE, modes[i], SMALL, true, false, 0, {0}};

		all_kinds(&f);
		world_run(node, 2 * f.n_kinds, rank_late, &f);
	}
	node_stop(node);
}

/* ---- stopped, and continued ---- */

static int rank_stopped(struct rank_ctx *ctx)
{
	struct pair p;
	rcclx_result r = RCCLX_OK;

	RANK_DO(pair_open(&p, ctx));
	progress(&p, READY);
	if (p.victim)
		RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_GONE, 1, 20000), "nothing came");
	RANK_DO(call(&p, &r));
	RANK_CHECK(ctx, r == RCCLX_OK, "kind %u: %s; \"%s\"", p.kind, rcclx_strerror(r),
		rcclx_last_error());
	RANK_CHECK(ctx, p.victim || atomic_load(&ctx->shared->flags[FLAG_GONE]) != 0,
		"kind %u: done without the stopped rank", p.kind);
	return pair_close(&p);
}

static const char *kind_name(uint32_t kind)
{
	if (kind < KIND_BARRIER)
		return rx_coll_name(colls[kind]);
	if (kind == KIND_BARRIER)
		return "barrier";
	return kind == KIND_SEND ? "send" : "recv";
}

/* Reported by name, then all goes on as if nothing had been. */
static void run_stopped(enum coll_mode mode, uint32_t kind)
{
	static const struct node_options options = {.config = ""};
	struct failure f = {EVENT_STOP, mode, SMALL, true, false, 1, {kind}};
	struct node *node = node_start(&options);

	node_expect(node, "late ranks: 1", 1, 1);
	struct world *world = world_start(node, 2, rank_stopped, &f);
	wait_for(world, READY);
	world_kill(world, 1, SIGSTOP);
	node_wait_log(node, "late ranks: 1", kind_name(kind), 2500);
	flag_set(world->shared, FLAG_GONE, 1);
	world_kill(world, 1, SIGCONT);
	world_join(world);
	node_stop(node);
}

static void test_stopped(void **state)
{
	(void)state;
	if (test_long())
		harness_limit(120);
	/* A report takes a second: in CI a sample. The parts of variable ones have other names. */
	for (uint32_t kind = 0; kind <= KIND_RECV; kind++) {
		if (test_long() || kind % 4 == 0)
			run_stopped(COLL_INLINE, kind);
		if (kind < 8 && (test_long() || kind % 4 == 3))
			run_stopped(COLL_DAEMON, kind);
	}
}

/* ---- survivors that the death met at different points ---- */

/*
 * Rank 0 has tried to duplicate the communicator twice, rank 2 has tried to shrink it before rank 0
 * came: still they find each other.
 */
static int rank_shrink_late(struct rank_ctx *ctx)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_comm *rest = NULL;
	int32_t x = (int32_t)ctx->rank;

	config.form_timeout_ns = 200000000;
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t i = 0; i < 2 && ctx->rank == 0; i++)
		RANK_RESULT(ctx, rcclx_comm_duplicate(comm, &config, &rest), RCCLX_ERR_TIMEOUT);
	progress_of(ctx, READY);
	if (ctx->rank == 1)
		test_sleep_ms(20000);
	RANK_RESULT(ctx, rcclx_barrier(comm, NULL), RCCLX_ERR_PEER_LOST);
	if (ctx->rank == 2) {
		RANK_RESULT(
			ctx, rcclx_comm_shrink(comm, NULL, 0, &config, &rest), RCCLX_ERR_TIMEOUT);
		flag_set(ctx->shared, FLAG_GO, 1);
	}
	RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_GO, 1, 10000), "rank 2 does not come");
	for (uint32_t round = 0; round < 2; round++) {
		RANK_OK(ctx, rcclx_comm_shrink(comm, NULL, 0, NULL, &rest));
		RANK_OK(ctx, rcclx_all_reduce(rest, &x, &x, 1, RCCLX_INT32, RCCLX_SUM, NULL));
		RANK_OK(ctx, rcclx_comm_destroy(rest));
	}
	RANK_CHECK(ctx, x == 4, "sum is %d", x);
	return rank_leave(ctx, comm, client);
}

static void test_shrink_late(void **state)
{
	struct node *node = node_start(NULL);
	struct world *world = world_start(node, 3, rank_shrink_late, NULL);

	(void)state;
	wait_for(world, READY);
	world_kill(world, 1, SIGKILL);
	world_join(world);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_killed_before_the_call),
		HARNESS_TEST(test_killed_after_its_call),
		HARNESS_TEST(test_killed_in_the_middle),
		HARNESS_TEST(test_daemon_killed),
		HARNESS_TEST(test_late),
		HARNESS_TEST(test_stopped),
		HARNESS_TEST(test_shrink_late),
	};

	return HARNESS_RUN("colls_failure", tests);
}
