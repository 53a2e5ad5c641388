/* SPDX-License-Identifier: MIT */
/*
 * A member that lies to its peers in the communicator's arena: it can spoil operations of that
 * communicator, but its peers neither crash nor hang, and can form another one.
 */
#include "bystander.h"
#include "raw.h"

#include "../../kernels/coll_types.h"
#include "../../shm/rx_fabric.h"

#define COUNT      (1u << 18)
#define TIMEOUT_MS 700u
#define EVIL_RANK  1u

enum flags { FLAG_HONEST_DONE };

struct evil {
	struct raw raw;
	struct rx_map ctl;
	struct rx_map arena;
	struct rx_fabric fabric;
	uint64_t region_id;
	uint32_t region;
};

typedef void (*lie_fn)(struct evil *evil, uint32_t seq);

static struct raw_reply reply;

/* ---- joining by hand ---- */

static bool join(struct evil *evil, const char *socket, const struct rcclx_unique_id *id)
{
	struct rx_msg join = {.type = RX_MSG_COMM_JOIN,
		.comm_join = {
			.id = {id->bytes, sizeof(id->bytes)}, .n_ranks = 2, .rank = EVIL_RANK}};
	struct rx_msg alloc = {.type = RX_MSG_MEM_ALLOC, .mem_alloc = {.bytes = COUNT * 4}};

	if (!raw_hello(&evil->raw, socket) || !raw_ask(&evil->raw, &alloc, &reply) ||
		reply.msg.type != RX_MSG_MEM_REPLY)
		return false;
	evil->region_id = reply.msg.mem_reply.region_id;
	evil->region = reply.msg.mem_reply.handle;
	if (!raw_ask(&evil->raw, &join, &reply) || reply.msg.type != RX_MSG_COMM_READY)
		return false;
	bool good = rx_map_open(&evil->ctl, reply.frame.fds.fds[0], 4096, RX_MAP_RO) == 0 &&
		    rx_map_open(&evil->arena, reply.frame.fds.fds[1], rx_fabric_arena_bytes(2),
			    RX_MAP_RW) == 0 &&
		    rx_fabric_init(&evil->fabric, &evil->ctl, &evil->arena, 2) == 0;
	raw_drop(&reply);
	return good;
}

static void leave(struct evil *evil)
{
	rx_map_close(&evil->ctl);
	rx_map_close(&evil->arena);
	raw_close(&evil->raw);
}

/* ---- lies ---- */

static struct rx_entry *entry_of(struct evil *evil, uint32_t seq)
{
	return &evil->fabric.lines[EVIL_RANK].entry[seq & 1];
}

static struct rx_entry *honest_entry(struct evil *evil, uint32_t seq)
{
	struct rx_entry *entry = entry_of(evil, seq);

	entry->sig = (struct rx_op_sig){
		.coll = RX_ALL_REDUCE, .dtype = RX_FLOAT32, .op = RX_SUM, .count = COUNT};
	entry->bufs = (struct rx_entry_bufs){
		.send_region = evil->region_id, .recv_region = evil->region_id};
	return entry;
}

static void lie_about_region(struct evil *evil, uint32_t seq)
{
	struct rx_entry *entry = honest_entry(evil, seq);

	entry->bufs.send_region = 0xdeadbeefcafeull;
	entry->bufs.recv_region = UINT64_MAX;
	rx_fabric_publish(&evil->fabric, EVIL_RANK, seq);
}

static void lie_about_offset(struct evil *evil, uint32_t seq)
{
	struct rx_entry *entry = honest_entry(evil, seq);

	entry->bufs.send_offset = 4096;
	entry->bufs.recv_offset = UINT64_MAX - 4095;
	rx_fabric_publish(&evil->fabric, EVIL_RANK, seq);
}

static void lie_about_alignment(struct evil *evil, uint32_t seq)
{
	struct rx_entry *entry = honest_entry(evil, seq);

	/* In bounds but for its last bytes, and odd. */
	entry->bufs.send_offset = 1;
	rx_fabric_publish(&evil->fabric, EVIL_RANK, seq);
}

static void free_what_was_announced(struct evil *evil, uint32_t seq)
{
	struct rx_msg msg = {.type = RX_MSG_MEM_FREE, .mem_free = {.handle = evil->region}};

	(void)honest_entry(evil, seq);
	(void)raw_ask(&evil->raw, &msg, &reply);
	rx_fabric_publish(&evil->fabric, EVIL_RANK, seq);
}

static void announce_nonsense(struct evil *evil, uint32_t seq)
{
	struct rx_entry *entry = honest_entry(evil, seq);

	memset(&entry->sig, 0xee, sizeof(entry->sig));
	rx_fabric_publish(&evil->fabric, EVIL_RANK, seq);
}

/* Never takes a step after the announcement. */
static void stop_half_way(struct evil *evil, uint32_t seq)
{
	struct rx_entry *entry = honest_entry(evil, seq);

	entry->bufs = (struct rx_entry_bufs){0};
	rx_fabric_publish(&evil->fabric, EVIL_RANK, seq);
}

static void jump_ahead(struct evil *evil, uint32_t seq)
{
	(void)honest_entry(evil, seq);
	(void)honest_entry(evil, seq + 1);
	rx_fabric_publish(&evil->fabric, EVIL_RANK, seq);
	rx_fabric_publish(&evil->fabric, EVIL_RANK, seq + 1000);
	rx_fabric_step(&evil->fabric, EVIL_RANK, 0x7fffffff);
}

/* Rewrites its whole line as fast as it can, and its staging as well. */
static void rewrite_line(struct evil *evil, uint32_t seq)
{
	_Atomic uint64_t *words = (_Atomic uint64_t *)(void *)&evil->fabric.lines[EVIL_RANK];
	uint64_t end = test_now_ms() + TIMEOUT_MS / 2;
	uint64_t x = 0x123456789abcdefull + seq;

	while (test_now_ms() < end) {
		for (size_t i = 0; i < sizeof(struct rx_line) / 8; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			atomic_store_explicit(
				&words[i], x % 2 == 0 ? x : x % 4, memory_order_relaxed);
		}
		(void)honest_entry(evil, seq);
		rx_fabric_publish(&evil->fabric, EVIL_RANK, seq);
		rx_fabric_step(&evil->fabric, EVIL_RANK, (uint32_t)x);
	}
}

static const struct {
	const char *name;
	lie_fn fn;
} lies[] = {
	{"region", lie_about_region},
	{"offset", lie_about_offset},
	{"alignment", lie_about_alignment},
	{"freed", free_what_was_announced},
	{"nonsense", announce_nonsense},
	{"half way", stop_half_way},
	{"jump", jump_ahead},
	{"rewriting", rewrite_line},
};

/* ---- the two ranks ---- */

static int be_evil(struct rank_ctx *ctx, size_t lie, const struct rcclx_unique_id *id)
{
	struct evil evil = {0};

	RANK_CHECK(ctx, join(&evil, ctx->socket, id), "%s: cannot join", lies[lie].name);
	lies[lie].fn(&evil, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_HONEST_DONE, (uint32_t)lie + 1, 10000),
		"%s: the honest rank hangs", lies[lie].name);
	leave(&evil);
	return 0;
}

static int be_honest(struct rank_ctx *ctx, struct rcclx_client *client, size_t lie,
	const struct rcclx_unique_id *id, float *data)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_comm *comm = NULL;
	uint64_t start = 0;

	config.executor = RCCLX_EXECUTOR_INLINE;
	config.timeout_ns = TIMEOUT_MS * 1000000ull;
	RANK_OK(ctx, rcclx_comm_create(client, id, 2, 0, NULL, &comm));
	start = test_now_ms();
	rcclx_result r =
		rcclx_all_reduce(comm, data, data, COUNT, RCCLX_FLOAT32, RCCLX_SUM, &config);
	/* With luck, rewritten words look like a peer that takes part. */
	RANK_CHECK(ctx, r != RCCLX_OK || lies[lie].fn == rewrite_line || lies[lie].fn == jump_ahead,
		"%s: succeeded", lies[lie].name);
	RANK_CHECK(
		ctx, r == RCCLX_OK || rcclx_last_error()[0] != '\0', "%s: no text", lies[lie].name);
	RANK_WITHIN(ctx, start, TIMEOUT_MS + 300);
	flag_set(ctx->shared, FLAG_HONEST_DONE, (uint32_t)lie + 1);
	RANK_OK(ctx, rcclx_comm_destroy(comm));
	return 0;
}

static int rank_beside_evil(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	void *memory = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_OK(ctx, rcclx_mem_alloc(client, COUNT * sizeof(float), &memory));
	for (size_t lie = 0; lie < RX_ARRAY_SIZE(lies); lie++) {
		struct rcclx_unique_id id = {0};

		RANK_DO(rank_id(ctx, client, (uint32_t)lie, ctx->rank == 0, &id));
		if (ctx->rank == EVIL_RANK)
			RANK_DO(be_evil(ctx, lie, &id));
		else
			RANK_DO(be_honest(ctx, client, lie, &id, memory));
	}
	RANK_OK(ctx, rcclx_mem_free(client, memory));
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static void test_lying_member(void **state)
{
	static const struct node_options default_config = {.config = ""};
	struct node *node = node_start(&default_config);
	struct world *bystanders = bystander_start(node);

	(void)state;
	node_expect(node, "late ranks", 0, RX_ARRAY_SIZE(lies));
	world_run(node, 2, rank_beside_evil, NULL);
	bystander_stop(bystanders);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_lying_member),
	};

	return HARNESS_RUN("hostile_peer", tests);
}
