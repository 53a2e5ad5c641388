/* SPDX-License-Identifier: MIT */
/*
 * A member that lies to its peers in the communicator's arena: it can spoil operations of that
 * communicator, but its peers neither crash nor hang, and can form another one.
 */
#include "admin.h"
#include "bystander.h"
#include "raw.h"

#include "../../kernels/precision.h"
#include "../../shm/rx_fabric.h"

#define COUNT      (1u << 18)
#define TIMEOUT_MS 700u
#define EVIL_RANK  1u

/* One block in so many is checked in low precision: exact values lie in the arena, too. */
#define SAMPLE_EVERY 128u

/* What may follow the data in memory must be the same afterwards. */
#define GUARD_BYTES 4096u
#define GUARD       0x5c

enum flags { FLAG_HONEST_DONE };

struct evil {
	struct raw raw;
	struct rx_map ctl;
	struct rx_map arena;
	struct rx_fabric fabric;
	uint64_t region_id;
	uint32_t region;
	uint8_t flags; /* of its operations: enum rx_sig_flags */
};

typedef void (*lie_fn)(struct evil *evil, uint32_t seq);

static struct raw_reply reply;
static const char *g_admin; /* the daemon's admin socket */

/* ---- joining by hand ---- */

static bool join(struct evil *evil, const char *socket, const struct rcclx_unique_id *id)
{
	struct rx_msg join = {.type = RX_MSG_COMM_JOIN,
		.comm_join = {.id = {id->bytes, sizeof(id->bytes)},
			.n_ranks = 2,
			.rank = EVIL_RANK,
			.precision_sample_every = evil->flags ? SAMPLE_EVERY : 0}};
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

	entry->sig = (struct rx_op_sig){.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.op = RX_SUM,
		.flags = evil->flags,
		.count = COUNT};
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

/* ---- lies in low precision ---- */

/* Takes part, as far as its peers can see: all steps are done. */
static void pretend(struct evil *evil, uint32_t seq)
{
	rx_fabric_publish(&evil->fabric, EVIL_RANK, seq);
	rx_fabric_step(&evil->fabric, EVIL_RANK, 0x7fffffff);
}

/* Elements, scales, exact values of checked blocks: anything, and something else at each look. */
static void scribble_staging(struct evil *evil, uint32_t seq)
{
	uint64_t end = test_now_ms() + TIMEOUT_MS / 2;
	uint64_t x = 0x9e3779b97f4a7c15ull + seq;

	(void)honest_entry(evil, seq);
	pretend(evil, seq);
	do {
		for (uint32_t chunk = 0; chunk < RX_STAGE_IN + RX_STAGE_OUT; chunk++) {
			uint8_t *at = rx_fabric_chunk(&evil->fabric, EVIL_RANK, chunk);

			for (size_t i = 0; i < RX_CHUNK_BYTES; i += sizeof(x)) {
				x ^= x << 13;
				x ^= x >> 7;
				x ^= x << 17;
				memcpy(at + i, &x, sizeof(x));
			}
		}
	} while (test_now_ms() < end);
}

/* The worst that a decoder may see: NaN in all elements, scales that there are none of. */
static void fill_staging(struct evil *evil, uint32_t seq)
{
	(void)honest_entry(evil, seq);
	for (uint32_t chunk = 0; chunk < RX_STAGE_IN + RX_STAGE_OUT; chunk++)
		memset(rx_fabric_chunk(&evil->fabric, EVIL_RANK, chunk), 0xff, RX_CHUNK_BYTES);
	pretend(evil, seq);
}

static void lie_about_counts(struct evil *evil, uint32_t seq)
{
	struct rx_precision_counts counts;

	memset(&counts, 0xff, sizeof(counts));
	rx_fabric_count(&evil->fabric, EVIL_RANK, &counts);
	(void)honest_entry(evil, seq);
	pretend(evil, seq);
}

static void lie_about_budget(struct evil *evil, uint32_t seq)
{
	honest_entry(evil, seq)->bufs = (struct rx_entry_bufs){.over_budget = UINT64_MAX};
	pretend(evil, seq);
}

static void claim_over_budget(struct evil *evil, uint32_t seq)
{
	honest_entry(evil, seq)->bufs = (struct rx_entry_bufs){.over_budget = 1};
	pretend(evil, seq);
}

/* What has to come of it, for the honest rank */
enum outcome { REFUSED, EITHER, DONE };

static const struct {
	const char *name;
	lie_fn fn;
	enum outcome outcome;
	uint8_t flags;
} lies[] = {
	{"region", lie_about_region, REFUSED, 0},
	{"offset", lie_about_offset, REFUSED, 0},
	{"alignment", lie_about_alignment, REFUSED, 0},
	{"freed", free_what_was_announced, REFUSED, 0},
	{"nonsense", announce_nonsense, REFUSED, 0},
	{"half way", stop_half_way, REFUSED, 0},
	/* With luck, rewritten words look like a peer that takes part. */
	{"jump", jump_ahead, EITHER, 0},
	{"rewriting", rewrite_line, EITHER, 0},
	{"fp8: nonsense", announce_nonsense, REFUSED, RX_SIG_FP8},
	{"fp8: half way", stop_half_way, REFUSED, RX_SIG_FP8},
	{"fp8: rewriting", rewrite_line, EITHER, RX_SIG_FP8},
	/* Data is only data: there is nothing to refuse. */
	{"fp8: staging", scribble_staging, DONE, RX_SIG_FP8},
	{"fp8: 0xff", fill_staging, DONE, RX_SIG_FP8},
	{"int8: staging", scribble_staging, DONE, RX_SIG_INT8},
	{"int8: 0xff", fill_staging, DONE, RX_SIG_INT8},
	{"fp8: counts", lie_about_counts, DONE, RX_SIG_FP8},
	{"fp8: budget", lie_about_budget, DONE, RX_SIG_FP8},
	{"fp8: over budget", claim_over_budget, DONE, RX_SIG_FP8},
};

/* ---- the two ranks ---- */

static int be_evil(struct rank_ctx *ctx, size_t lie, const struct rcclx_unique_id *id)
{
	struct evil evil = {.flags = lies[lie].flags};

	RANK_CHECK(ctx, join(&evil, ctx->socket, id), "%s: cannot join", lies[lie].name);
	lies[lie].fn(&evil, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, FLAG_HONEST_DONE, (uint32_t)lie + 1, 10000),
		"%s: the honest rank hangs", lies[lie].name);
	leave(&evil);
	return 0;
}

/* The daemon adds up what ranks say: it saturates, and others' numbers are their own. */
static int check_counts(struct rank_ctx *ctx, lie_fn fn)
{
	struct admin_comm comm;
	uint32_t n_full = 0;
	uint32_t n = 0;

	for (; admin_comm(g_admin, n, &comm) == 0; n++)
		n_full += comm.blocks == UINT64_MAX && comm.wire_bytes == UINT64_MAX &&
			  comm.worst_error_ppm == UINT64_MAX;
	RANK_CHECK(ctx, n >= 2, "the daemon lists %u communicators", n);
	RANK_CHECK(ctx, n_full == (fn == lie_about_counts),
		"%u of %u communicators have full counters", n_full, n);
	return 0;
}

static int be_honest(struct rank_ctx *ctx, struct rcclx_client *client, size_t lie,
	const struct rcclx_unique_id *id, float *data)
{
	struct rcclx_comm_config comm_config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	const uint8_t *guard = (const uint8_t *)(data + COUNT);
	struct rcclx_comm *comm = NULL;
	uint64_t start = 0;

	if (lies[lie].flags) {
		comm_config.low_precision_sample = SAMPLE_EVERY;
		config.precision =
			lies[lie].flags == RX_SIG_INT8 ? RCCLX_PRECISION_INT8 : RCCLX_PRECISION_FP8;
	}
	memset(data + COUNT, GUARD, GUARD_BYTES);
	config.executor = RCCLX_EXECUTOR_INLINE;
	config.timeout_ns = TIMEOUT_MS * 1000000ull;
	RANK_OK(ctx, rcclx_comm_create(client, id, 2, 0, &comm_config, &comm));
	start = test_now_ms();
	rcclx_result r =
		rcclx_all_reduce(comm, data, data, COUNT, RCCLX_FLOAT32, RCCLX_SUM, &config);
	RANK_CHECK(ctx, r != RCCLX_OK || lies[lie].outcome != REFUSED, "%s: succeeded",
		lies[lie].name);
	RANK_CHECK(ctx, r == RCCLX_OK || lies[lie].outcome != DONE, "%s: %s; %s", lies[lie].name,
		rcclx_strerror(r), rcclx_last_error());
	RANK_CHECK(
		ctx, r == RCCLX_OK || rcclx_last_error()[0] != '\0', "%s: no text", lies[lie].name);
	RANK_WITHIN(ctx, start, TIMEOUT_MS + 300);
	for (uint32_t i = 0; i < GUARD_BYTES; i++)
		RANK_CHECK(ctx, guard[i] == GUARD, "%s: wrote behind the data", lies[lie].name);
	if (lies[lie].flags)
		RANK_DO(check_counts(ctx, lies[lie].fn));
	flag_set(ctx->shared, FLAG_HONEST_DONE, (uint32_t)lie + 1);
	RANK_OK(ctx, rcclx_comm_destroy(comm));
	return 0;
}

static int rank_beside_evil(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	void *memory = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_OK(ctx, rcclx_mem_alloc(client, COUNT * sizeof(float) + GUARD_BYTES, &memory));
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
	g_admin = node->admin;
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
