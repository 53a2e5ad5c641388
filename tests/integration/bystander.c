/* SPDX-License-Identifier: MIT */
#include "bystander.h"

#define N_ELEMS 5000u

enum flags { FLAG_AT_WORK, FLAG_STOP };

static int one_round(struct rank_ctx *ctx, struct rcclx_comm *comm, uint32_t round, bool *last_p)
{
	static int32_t data[N_ELEMS];
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	uint32_t n = round % 3 == 0 ? N_ELEMS : 2 + round % 50;
	uint64_t start = test_now_ms();
	bool stop = ctx->rank == 0 && flag_wait(ctx->shared, FLAG_STOP, 1, 0);

	config.executor = round % 2 == 0 ? RCCLX_EXECUTOR_INLINE : RCCLX_EXECUTOR_DAEMON;
	for (uint32_t i = 0; i < n; i++)
		data[i] = (int32_t)(i + round * (ctx->rank + 1));
	/* Rank 0 says in the first element whether this is the last round. */
	data[0] = stop;
	RANK_OK(ctx, rcclx_all_reduce(comm, data, data, n, RCCLX_INT32, RCCLX_SUM, &config));
	for (uint32_t i = 1; i < n; i++)
		RANK_CHECK(ctx, data[i] == (int32_t)(2 * i + 3 * round),
			"round %u element %u is %d", round, i, data[i]);
	RANK_WITHIN(ctx, start, 2000);
	*last_p = data[0] != 0;
	return 0;
}

static int rank_bystander(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	bool last = false;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	for (uint32_t round = 1; !last; round++) {
		RANK_DO(one_round(ctx, comm, round, &last));
		flag_set(ctx->shared, FLAG_AT_WORK, round);
		/* Leaves time on two cores for whoever is the subject of the test. */
		if (round % 8 == 0)
			test_sleep_ms(1);
	}
	return rank_leave(ctx, comm, client);
}

struct world *bystander_start(const struct node *node)
{
	struct world *world = world_start(node, 2, rank_bystander, NULL);

	if (!flag_wait(world->shared, FLAG_AT_WORK, 10, 5000))
		fail_msg("the bystanders do not get to work");
	return world;
}

void bystander_stop(struct world *world)
{
	uint32_t rounds = atomic_load(&world->shared->flags[FLAG_AT_WORK]);

	if (!flag_wait(world->shared, FLAG_AT_WORK, rounds + 10, 2000))
		fail_msg("the bystanders stand still");
	flag_set(world->shared, FLAG_STOP, 1);
	world_join(world);
}
