/* SPDX-License-Identifier: MIT */
/* Limits are reached: the request fails with a clear error, everybody else goes on. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MANY 200u

static int be_used(struct rank_ctx *ctx, struct rcclx_client *client)
{
	struct rcclx_unique_id id = {0};
	struct rcclx_comm *comm = NULL;
	void *memory = NULL;

	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &comm));
	RANK_OK(ctx, rcclx_mem_alloc(client, 4096, &memory));
	RANK_OK(ctx, rcclx_all_reduce(comm, memory, memory, 16, RCCLX_FLOAT32, RCCLX_SUM, NULL));
	RANK_OK(ctx, rcclx_mem_free(client, memory));
	RANK_OK(ctx, rcclx_comm_destroy(comm));
	return 0;
}

/* ---- no descriptors left in the client ---- */

#define FEW_FDS 64u

/* Take all that the limit allows. */
static uint32_t take_fds(int fds[FEW_FDS])
{
	struct rlimit limit = {FEW_FDS, FEW_FDS};
	uint32_t n = 0;

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	while (n < FEW_FDS && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	return n;
}

static int rank_without_fds(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_unique_id id = {0};
	void *memory = NULL;
	int fds[FEW_FDS];
	uint32_t n = 0;

	RANK_DO(rank_connect(ctx, &client));
	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	n = take_fds(fds);
	RANK_CHECK(ctx, n > 0, "no descriptors were free before");
	/* Two come with a communicator, of which one could be had; one with memory. */
	(void)close(fds[--n]);
	RANK_RESULT(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &comm), RCCLX_ERR_NO_MEMORY);
	RANK_TEXT(ctx, "file descriptors");
	RANK_CHECK(ctx, comm == NULL, "a communicator of a failed call");
	fds[n++] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	RANK_CHECK(ctx, fds[n - 1] >= 0, "the one that came was kept");
	RANK_RESULT(ctx, rcclx_mem_alloc(client, 4096, &memory), RCCLX_ERR_NO_MEMORY);
	RANK_TEXT(ctx, "file descriptors");
	while (n > 0)
		(void)close(fds[--n]);
	/* The session is good, and the daemon, which allows one of each, has taken both back. */
	RANK_DO(be_used(ctx, client));
	return rank_leave(ctx, NULL, client);
}

static void test_client_without_fds(void **state)
{
	static const struct node_options one_each = {
		.config = "limits = { comms_per_uid = 1; regions_per_uid = 1; };\n"};
	struct node *node = node_start(&one_each);

	(void)state;
	world_run(node, 1, rank_without_fds, NULL);
	node_stop(node);
}

/* ---- limits per user, from the configuration ---- */

#define SESSION_LIMIT 4u
#define COMM_LIMIT    5u
#define REGION_LIMIT  6u

static const struct node_options limited = {.config = "limits = {\n"
						      "  sessions_per_uid = 4;\n"
						      "  comms_per_uid = 5;\n"
						      "  regions_per_uid = 6;\n"
						      "  bytes_per_uid = 16777216L;\n"
						      "};\n"};

static int too_many_sessions(struct rank_ctx *ctx)
{
	struct rcclx_client *clients[SESSION_LIMIT] = {NULL};
	struct rcclx_client *more = NULL;

	for (uint32_t i = 0; i < SESSION_LIMIT; i++)
		RANK_DO(rank_connect(ctx, &clients[i]));
	RANK_RESULT(ctx, rcclx_connect(ctx->socket, NULL, &more), RCCLX_ERR_LIMIT);
	RANK_TEXT(ctx, "4");
	RANK_OK(ctx, rcclx_disconnect(clients[0]));
	RANK_DO(rank_connect(ctx, &clients[0]));
	for (uint32_t i = 0; i < SESSION_LIMIT; i++)
		RANK_OK(ctx, rcclx_disconnect(clients[i]));
	return 0;
}

static int too_many_comms(struct rank_ctx *ctx, struct rcclx_client *client)
{
	struct rcclx_comm *comms[COMM_LIMIT] = {NULL};
	struct rcclx_comm *more = NULL;
	struct rcclx_unique_id id = {0};

	for (uint32_t i = 0; i < COMM_LIMIT; i++) {
		RANK_OK(ctx, rcclx_unique_id_create(client, &id));
		RANK_OK(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &comms[i]));
	}
	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	RANK_RESULT(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &more), RCCLX_ERR_LIMIT);
	RANK_TEXT(ctx, "5");
	RANK_OK(ctx, rcclx_comm_destroy(comms[2]));
	RANK_OK(ctx, rcclx_unique_id_create(client, &id));
	RANK_OK(ctx, rcclx_comm_create(client, &id, 1, 0, NULL, &comms[2]));
	for (uint32_t i = 0; i < COMM_LIMIT; i++) {
		RANK_OK(ctx, rcclx_barrier(comms[i], NULL));
		RANK_OK(ctx, rcclx_comm_destroy(comms[i]));
	}
	return 0;
}

static int too_much_memory(struct rank_ctx *ctx, struct rcclx_client *client)
{
	static const uint64_t absurd[] = {
		17u << 20, 1ull << 40, 1ull << 62, UINT64_MAX - 100, UINT64_MAX};
	void *regions[REGION_LIMIT] = {NULL};
	void *more = NULL;

	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		rcclx_result r = rcclx_mem_alloc(client, absurd[i], &more);

		RANK_CHECK(ctx,
			r == RCCLX_ERR_LIMIT || r == RCCLX_ERR_NO_MEMORY || r == RCCLX_ERR_INVALID,
			"%llu bytes: %s", (unsigned long long)absurd[i], rcclx_strerror(r));
		RANK_CHECK(ctx, i > 0 || r == RCCLX_ERR_LIMIT, "17 MiB: %s", rcclx_strerror(r));
		RANK_CHECK(ctx, rcclx_last_error()[0] != '\0', "no text");
	}
	for (uint32_t i = 0; i < REGION_LIMIT; i++)
		RANK_OK(ctx, rcclx_mem_alloc(client, 4096, &regions[i]));
	RANK_RESULT(ctx, rcclx_mem_alloc(client, 4096, &more), RCCLX_ERR_LIMIT);
	RANK_TEXT(ctx, "6");
	for (uint32_t i = 0; i < REGION_LIMIT; i++)
		RANK_OK(ctx, rcclx_mem_free(client, regions[i]));
	RANK_OK(ctx, rcclx_mem_alloc(client, 8u << 20, &more));
	RANK_OK(ctx, rcclx_mem_free(client, more));
	return 0;
}

static int rank_limited(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;

	RANK_DO(too_many_sessions(ctx));
	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(too_many_comms(ctx, client));
	RANK_DO(too_much_memory(ctx, client));
	RANK_DO(be_used(ctx, client));
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static void test_limits_per_user(void **state)
{
	struct node *node = node_start(&limited);

	(void)state;
	node_expect(node, "limit", 0, MANY);
	world_run(node, 1, rank_limited, NULL);
	node_stop(node);
}

/* ---- limits of one session do not touch another's work ---- */

enum flags { FLAG_FULL, FLAG_DONE };

static int rank_beside_greedy(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	uint64_t n = 0;

	RANK_DO(rank_connect(ctx, &client));
	if (ctx->rank < 2) {
		struct rcclx_unique_id id = {0};

		RANK_DO(rank_id(ctx, client, 0, ctx->rank == 0, &id));
		RANK_OK(ctx, rcclx_comm_create(client, &id, 2, ctx->rank, NULL, &comm));
		flag_set(ctx->shared, 2 + ctx->rank, 1);
		/* The last round is agreed on by the maximum. */
		for (int32_t last = 0; last == 0; n++) {
			last = ctx->rank == 0 && flag_wait(ctx->shared, FLAG_DONE, 1, 0);
			RANK_OK(ctx, rcclx_all_reduce(
					     comm, &last, &last, 1, RCCLX_INT32, RCCLX_MAX, NULL));
		}
		RANK_CHECK(ctx, n > 10, "only %llu rounds", (unsigned long long)n);
		return rank_leave(ctx, comm, client);
	}
	RANK_CHECK(ctx, flag_wait(ctx->shared, 2, 1, 5000) && flag_wait(ctx->shared, 3, 1, 5000),
		"no communicator");
	for (uint64_t end = test_now_ms() + 200; test_now_ms() < end;) {
		void *memory = NULL;

		RANK_RESULT(ctx, rcclx_mem_alloc(client, 20u << 20, &memory), RCCLX_ERR_LIMIT);
	}
	flag_set(ctx->shared, FLAG_DONE, 1);
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static void test_others_go_on(void **state)
{
	struct node *node = node_start(&limited);

	(void)state;
	node_expect(node, "limit", 0, MANY);
	world_run(node, 3, rank_beside_greedy, NULL);
	node_stop(node);
}

/* ---- file descriptors of the daemon ---- */

/* Connects until it is refused; everybody connected stays usable; afterwards there is room. */
static int rank_hoards(struct rank_ctx *ctx)
{
	static struct rcclx_client *clients[MANY];
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;
	rcclx_result r = RCCLX_OK;
	uint32_t n = 0;

	config.timeout_ns = 500000000;
	while (n < MANY) {
		r = rcclx_connect(ctx->socket, &config, &clients[n]);
		if (r != RCCLX_OK)
			break;
		n++;
	}
	RANK_CHECK(ctx, n >= 5, "only %u sessions: %s", n, rcclx_last_error());
	RANK_CHECK(ctx, n < MANY, "no limit in sight");
	RANK_CHECK(ctx,
		r == RCCLX_ERR_LIMIT || r == RCCLX_ERR_NO_MEMORY || r == RCCLX_ERR_TIMEOUT ||
			r == RCCLX_ERR_NO_DAEMON,
		"%s: %s", rcclx_strerror(r), rcclx_last_error());
	RANK_CHECK(ctx, rcclx_last_error()[0] != '\0', "no text");
	/* Room for what the first one does. */
	for (uint32_t i = 1; i < n; i++) {
		struct rcclx_unique_id id = {0};

		RANK_OK(ctx, rcclx_unique_id_create(clients[i], &id));
	}
	for (uint32_t i = n / 2; i < n; i++)
		RANK_OK(ctx, rcclx_disconnect(clients[i]));
	RANK_DO(be_used(ctx, clients[0]));
	for (uint32_t i = 0; i < n / 2; i++)
		RANK_OK(ctx, rcclx_disconnect(clients[i]));
	/* Accepting starts again by itself. */
	RANK_DO(rank_connect(ctx, &clients[0]));
	RANK_DO(be_used(ctx, clients[0]));
	RANK_OK(ctx, rcclx_disconnect(clients[0]));
	return 0;
}

static void test_fd_limit_at_start(void **state)
{
	static const struct node_options options = {.n_files = 160};
	struct node *node = node_start(&options);

	(void)state;
	node_expect(node, "too many descriptors", 1, MANY);
	world_run(node, 1, rank_hoards, NULL);
	node_stop(node);
}

static uint64_t cpu_ticks(const struct node *node)
{
	struct proc_use use = {0};

	assert_true(proc_use(node->pid, &use));
	return use.cpu_ticks;
}

static int rank_one_more(struct rank_ctx *ctx)
{
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;
	struct rcclx_client *client = NULL;
	rcclx_result expected = *(const rcclx_result *)ctx->arg;

	config.timeout_ns = 1000000000;
	rcclx_result r = rcclx_connect(ctx->socket, &config, &client);
	RANK_CHECK(ctx, (r == RCCLX_OK) == (expected == RCCLX_OK), "%s: %s", rcclx_strerror(r),
		rcclx_last_error());
	if (client != NULL)
		RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

/* Nothing is left, not even what the daemon's own count of descriptors allows for. */
static void test_no_fds_at_all(void **state)
{
	struct node *node = node_start(NULL);
	struct rlimit old = {0};
	rcclx_result expected = RCCLX_ERR_LIMIT;

	(void)state;
	node_expect(node, "", 0, MANY);
	assert_int_equal(prlimit(node->pid, RLIMIT_NOFILE, NULL, &old), 0);
	struct rlimit none = {node->at_start.n_fds, old.rlim_max};
	assert_int_equal(prlimit(node->pid, RLIMIT_NOFILE, &none, NULL), 0);
	uint64_t before = cpu_ticks(node);
	world_run(node, 4, rank_one_more, &expected);
	test_sleep_ms(500);
	/* The listener stays readable; that must not keep the daemon busy. */
	if (cpu_ticks(node) - before > 20 * test_slow())
		fail_msg("%llu ticks of CPU time while it cannot accept",
			(unsigned long long)(cpu_ticks(node) - before));
	assert_int_equal(prlimit(node->pid, RLIMIT_NOFILE, &old, NULL), 0);
	test_sleep_ms(300);
	expected = RCCLX_OK;
	world_run(node, 4, rank_one_more, &expected);
	node_stop(node);
}

/* ---- memory that cannot be registered ---- */

static int memory_file(struct rank_ctx *ctx, int seals, uint64_t bytes, int *fd_p, void **map_p)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	RANK_CHECK(ctx, fd >= 0 && ftruncate(fd, (off_t)bytes) == 0, "no memory file");
	RANK_CHECK(ctx, seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0, "no seals");
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	RANK_CHECK(ctx, map != MAP_FAILED, "no map");
	*fd_p = fd;
	*map_p = map;
	return 0;
}

static int rank_registers(struct rank_ctx *ctx)
{
	const uint64_t bytes = 65536;
	struct rcclx_client *client = NULL;
	struct rcclx_mem *mem = NULL;
	struct rcclx_mem *twice = NULL;
	void *unsealed = NULL;
	void *sealed = NULL;
	int fd[2] = {-1, -1};

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(memory_file(ctx, 0, bytes, &fd[0], &unsealed));
	RANK_DO(memory_file(ctx, F_SEAL_SHRINK, bytes, &fd[1], &sealed));
	RANK_RESULT(ctx, rcclx_mem_register(client, unsealed, bytes, fd[0], 0, &mem),
		RCCLX_ERR_INVALID);
	RANK_TEXT(ctx, "F_SEAL_SHRINK");
	RANK_RESULT(ctx, rcclx_mem_register(client, sealed, 2 * bytes, fd[1], 0, &mem),
		RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_mem_register(client, sealed, bytes, fd[1], 4096, &mem),
		RCCLX_ERR_INVALID);
	RANK_RESULT(
		ctx, rcclx_mem_register(client, sealed, 100, fd[1], 0, &mem), RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_mem_register(client, sealed, bytes, STDERR_FILENO, 0, &mem),
		RCCLX_ERR_INVALID);
	RANK_OK(ctx, rcclx_mem_register(client, sealed, bytes, fd[1], 0, &mem));
	RANK_RESULT(
		ctx, rcclx_mem_register(client, sealed, 4096, fd[1], 0, &twice), RCCLX_ERR_INVALID);
	RANK_RESULT(ctx, rcclx_disconnect(client), RCCLX_ERR_BUSY);
	RANK_OK(ctx, rcclx_mem_deregister(mem));
	RANK_DO(be_used(ctx, client));
	for (int i = 0; i < 2; i++)
		(void)close(fd[i]);
	(void)munmap(unsealed, bytes);
	(void)munmap(sealed, bytes);
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static void test_registration(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 1, rank_registers, NULL);
	node_stop(node);
}

/* Registered memory of the caller's own making works in operations, at an offset, too. */
static int rank_uses_registered(struct rank_ctx *ctx)
{
	const uint64_t bytes = 1u << 20;
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	struct rcclx_mem *mem = NULL;
	void *map = NULL;
	int fd = -1;

	RANK_DO(rank_connect(ctx, &client));
	RANK_DO(rank_comm(ctx, client, 0, &comm));
	RANK_DO(memory_file(ctx, F_SEAL_SHRINK, bytes, &fd, &map));
	uint8_t *range = (uint8_t *)map + 8192;
	RANK_OK(ctx, rcclx_mem_register(client, range, bytes - 8192, fd, 8192, &mem));
	(void)close(fd);
	uint32_t n = (uint32_t)(bytes - 8192) / 4;
	uint32_t *data = (uint32_t *)(void *)range;
	for (uint32_t executor = RCCLX_EXECUTOR_INLINE; executor <= RCCLX_EXECUTOR_DAEMON;
		executor++) {
		struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;

		config.executor = executor;
		for (uint32_t i = 0; i < n; i++)
			data[i] = i + ctx->rank;
		RANK_OK(ctx,
			rcclx_all_reduce(comm, data, data, n, RCCLX_UINT32, RCCLX_SUM, &config));
		for (uint32_t i = 0; i < n; i++)
			RANK_CHECK(ctx, data[i] == 2 * i + 1, "element %u is %u", i, data[i]);
		RANK_OK(ctx, rcclx_barrier(comm, NULL));
	}
	RANK_OK(ctx, rcclx_mem_deregister(mem));
	(void)munmap(map, bytes);
	return rank_leave(ctx, comm, client);
}

static void test_registered_use(void **state)
{
	struct node *node = node_start(NULL);

	(void)state;
	world_run(node, 2, rank_uses_registered, NULL);
	node_stop(node);
}

/* ---- limits change with SIGHUP ---- */

static int rank_reload(struct rank_ctx *ctx)
{
	struct rcclx_client *client = NULL;
	void *memory = NULL;

	RANK_DO(rank_connect(ctx, &client));
	RANK_RESULT(ctx, rcclx_mem_alloc(client, 32u << 20, &memory), RCCLX_ERR_LIMIT);
	flag_set(ctx->shared, 0, 1);
	RANK_CHECK(ctx, flag_wait(ctx->shared, 1, 1, 5000), "no sign");
	uint64_t end = test_now_ms() + 2000 * test_slow();
	while (rcclx_mem_alloc(client, 32u << 20, &memory) != RCCLX_OK)
		RANK_CHECK(ctx, test_now_ms() < end, "still refused: %s", rcclx_last_error());
	RANK_OK(ctx, rcclx_mem_free(client, memory));
	RANK_OK(ctx, rcclx_disconnect(client));
	return 0;
}

static void rewrite_config(const struct node *node, const char *text)
{
	int fd = open(node->config, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
	assert_int_equal(kill(node->pid, SIGHUP), 0);
}

static void test_reload(void **state)
{
	struct node *node = node_start(&limited);

	(void)state;
	node_expect(node, "limit", 0, MANY);
	node_expect(node, "nonsense", 1, 1);
	struct world *world = world_start(node, 1, rank_reload, NULL);
	assert_true(flag_wait(world->shared, 0, 1, 5000));
	/* A bad file changes nothing and is named with the line. */
	rewrite_config(node, "\n\nnonsense = 1;\n");
	node_wait_log(node, "rcclxd.conf:3", "nonsense", 2000);
	rewrite_config(node, "limits = { bytes_per_uid = 67108864L; };\n");
	flag_set(world->shared, 1, 1);
	world_join(world);
	node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_client_without_fds),
		HARNESS_TEST(test_limits_per_user),
		HARNESS_TEST(test_others_go_on),
		HARNESS_TEST(test_fd_limit_at_start),
		HARNESS_TEST(test_no_fds_at_all),
		HARNESS_TEST(test_registration),
		HARNESS_TEST(test_registered_use),
		HARNESS_TEST(test_reload),
	};

	return HARNESS_RUN("limits", tests);
}
