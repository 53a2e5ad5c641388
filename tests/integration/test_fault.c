/* SPDX-License-Identifier: MIT */
/*
 * Each system call and allocation that a request makes in the daemon fails once: the request is
 * answered with an error or the session ends, the daemon lives, others go on, nothing leaks.
 */
#include "harness.h"

#include "../fault/fail_nth.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* No request makes this many calls of one kind. */
#define MAX_CALLS 200

static struct fail_state *fail;

static const char *const call_names[FAIL_CALL_N] = {"malloc", "memfd_create", "ftruncate",
	"fallocate", "mmap", "eventfd", "fcntl", "fstat", "accept4", "recvmsg", "sendmsg",
	"getrandom"};

struct fixture {
	struct rcclx_client *client;
	struct rcclx_comm *comm;
	struct rcclx_op *op;
	struct rcclx_mem *mem;
	void *memory;
	void *map;
	int fd;
};

typedef rcclx_result (*request_fn)(struct rank_ctx *ctx, struct fixture *f);

/* ---- requests ---- */

static rcclx_result do_connect(struct rank_ctx *ctx, struct fixture *f)
{
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;
	struct rcclx_client *client = NULL;

	(void)f;
	config.timeout_ns = 2000000000ull * test_slow();
	rcclx_result r = rcclx_connect(ctx->socket, &config, &client);
	(void)rcclx_disconnect(client);
	return r;
}

static rcclx_result do_unique_id(struct rank_ctx *ctx, struct fixture *f)
{
	struct rcclx_unique_id id = {0};

	(void)ctx;
	return rcclx_unique_id_create(f->client, &id);
}

static rcclx_result do_comm(struct rank_ctx *ctx, struct fixture *f)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_comm *comm = NULL;
	rcclx_result destroyed = RCCLX_OK;

	config.form_timeout_ns = 3000000000ull;
	/* The id was made before the fault was armed. */
	rcclx_result r = rcclx_comm_create(f->client, &ctx->shared->ids[0], 1, 0, &config, &comm);
	destroyed = rcclx_comm_destroy(comm);
	return r != RCCLX_OK ? r : destroyed;
}

static rcclx_result do_alloc(struct rank_ctx *ctx, struct fixture *f)
{
	void *memory = NULL;

	(void)ctx;
	rcclx_result r = rcclx_mem_alloc(f->client, 65536, &memory);
	rcclx_result freed = rcclx_mem_free(f->client, memory);
	return r != RCCLX_OK ? r : freed;
}

static rcclx_result do_register(struct rank_ctx *ctx, struct fixture *f)
{
	struct rcclx_mem *mem = NULL;

	(void)ctx;
	rcclx_result r = rcclx_mem_register(f->client, f->map, 65536, f->fd, 0, &mem);
	rcclx_result ended = rcclx_mem_deregister(mem);
	return r != RCCLX_OK ? r : ended;
}

static rcclx_result do_op(struct rank_ctx *ctx, struct fixture *f)
{
	struct rcclx_op *op = NULL;

	(void)ctx;
	rcclx_result r = rcclx_all_reduce_start(
		f->comm, f->memory, f->memory, 1000, RCCLX_FLOAT32, RCCLX_SUM, NULL, &op);
	if (r != RCCLX_OK)
		return r;
	r = rcclx_op_wait(op, 5000000000ull);
	/* An op that hangs cannot be freed: that is the failure to report. */
	return rcclx_op_free(op) == RCCLX_OK ? r : RCCLX_ERR_INTERNAL;
}

static rcclx_result do_private_op(struct rank_ctx *ctx, struct fixture *f)
{
	static float data[50000];
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;

	(void)ctx;
	config.executor = RCCLX_EXECUTOR_DAEMON;
	config.timeout_ns = 5000000000ull;
	return rcclx_all_reduce(f->comm, data, data, 50000, RCCLX_FLOAT32, RCCLX_SUM, &config);
}

static rcclx_result do_abort(struct rank_ctx *ctx, struct fixture *f)
{
	(void)ctx;
	return rcclx_comm_abort(f->comm);
}

static const struct {
	const char *name;
	request_fn fn;
} requests[] = {
	{"connect", do_connect},
	{"unique id", do_unique_id},
	{"create", do_comm},
	{"allocate", do_alloc},
	{"register", do_register},
	{"operation", do_op},
	{"private operation", do_private_op},
	{"abort", do_abort},
};

#define N_REQUESTS (sizeof(requests) / sizeof(requests[0]))

/* ---- one shot ---- */

struct shot {
	size_t request;
	enum fail_call call;
	int64_t n;
	bool hit; /* the answer: was there an n-th call? */
};

static int open_fixture(struct rank_ctx *ctx, struct fixture *f)
{
	struct rcclx_unique_id id = {0};

	RANK_DO(rank_connect(ctx, &f->client));
	RANK_OK(ctx, rcclx_unique_id_create(f->client, &id));
	RANK_OK(ctx, rcclx_comm_create(f->client, &id, 1, 0, NULL, &f->comm));
	RANK_OK(ctx, rcclx_mem_alloc(f->client, 65536, &f->memory));
	RANK_OK(ctx, rcclx_unique_id_create(f->client, &ctx->shared->ids[0]));
	f->fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	RANK_CHECK(ctx,
		f->fd >= 0 && ftruncate(f->fd, 65536) == 0 &&
			fcntl(f->fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0,
		"no memory file");
	f->map = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	RANK_CHECK(ctx, f->map != MAP_FAILED, "no map");
	return 0;
}

/* The session may be gone; what can be given back has to be given back all the same. */
static int close_fixture(struct rank_ctx *ctx, struct fixture *f)
{
	RANK_OK(ctx, rcclx_comm_destroy(f->comm));
	RANK_OK(ctx, rcclx_mem_free(f->client, f->memory));
	RANK_OK(ctx, rcclx_disconnect(f->client));
	(void)munmap(f->map, 65536);
	(void)close(f->fd);
	return 0;
}

static int rank_shot(struct rank_ctx *ctx)
{
	const struct shot *shot = ctx->arg;
	struct fixture f = {0};

	RANK_DO(open_fixture(ctx, &f));
	uint64_t start = test_now_ms();
	atomic_store(&fail->n_failed, 0);
	atomic_store(&fail->countdown[shot->call], shot->n);
	rcclx_result r = requests[shot->request].fn(ctx, &f);
	atomic_store(&fail->countdown[shot->call], 0);
	RANK_CHECK(ctx, r != RCCLX_ERR_INTERNAL && r != RCCLX_ERR_MISMATCH,
		"%s, %s number %lld: %s; \"%s\"", requests[shot->request].name,
		call_names[shot->call], (long long)shot->n, rcclx_strerror(r), rcclx_last_error());
	RANK_CHECK(ctx, r == RCCLX_OK || rcclx_last_error()[0] != '\0', "no text for %s",
		rcclx_strerror(r));
	RANK_CHECK(ctx, r == RCCLX_OK || atomic_load(&fail->n_failed) > 0, "%s without a fault: %s",
		requests[shot->request].name, rcclx_last_error());
	RANK_WITHIN(ctx, start, 4000);
	return close_fixture(ctx, &f);
}

/* Another process, after the fault: the daemon is as good as new. */
static int rank_after(struct rank_ctx *ctx)
{
	struct fixture f = {0};

	RANK_DO(open_fixture(ctx, &f));
	for (size_t i = 0; i < N_REQUESTS - 1; i++) {
		rcclx_result r = requests[i].fn(ctx, &f);

		RANK_CHECK(ctx, r == RCCLX_OK, "%s afterwards: %s", requests[i].name,
			rcclx_last_error());
	}
	return close_fixture(ctx, &f);
}

/* Returns how many calls of this kind the request makes. */
static uint64_t sweep(const struct node *node, size_t request, enum fail_call call)
{
	struct shot shot = {.request = request, .call = call};
	uint64_t n_failed = 1;

	for (shot.n = 1; n_failed > 0; shot.n++) {
		if (shot.n > MAX_CALLS)
			fail_msg("%s makes more than %d calls of %s", requests[request].name,
				MAX_CALLS, call_names[call]);
		world_run(node, 1, rank_shot, &shot);
		n_failed = atomic_load(&fail->n_failed);
	}
	return (uint64_t)shot.n - 2;
}

/* ---- the daemon with the library ---- */

static struct node *start_faulty(void)
{
	static char path[64];
	struct node_options options = {.preload = getenv("RCCLX_FAIL_NTH_SO"),
		.env_name = FAIL_NTH_ENV,
		.env_value = path};

	(void)snprintf(path, sizeof(path), "/tmp/rcclx-fail-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(struct fail_state)), 0);
	void *map =
		mmap(NULL, sizeof(struct fail_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	(void)close(fd);
	fail = map;
	if (options.preload == NULL)
		options.preload = "tests/fault/.libs/fail_nth.so";
	assert_int_equal(access(options.preload, R_OK), 0);
	struct node *node = node_start(&options);
	(void)unlink(path);
	return node;
}

static void run_sweep(enum fail_call first, enum fail_call last)
{
	if (test_thread_sanitized())
		harness_skip("the thread sanitizer takes no library before its own");
	struct node *node = start_faulty();
	/* Every fault may be reported. */
	node_expect(node, "warn", 0, 100000);
	node_expect(node, "err", 0, 100000);
	uint64_t total = 0;
	harness_limit(120);
	for (enum fail_call call = first; call <= last; call++) {
		uint64_t n_calls = 0;

		for (size_t request = 0; request < N_REQUESTS; request++)
			n_calls += sweep(node, request, call);
		print_message(
			"%llu calls of %s failed\n", (unsigned long long)n_calls, call_names[call]);
		total += n_calls;
		world_run(node, 1, rank_after, NULL);
		node_check_idle(node);
	}
	/* Without a single one, the library was not loaded. */
	assert_true(total > 0);
	node_stop(node);
	(void)munmap(fail, sizeof(*fail));
}

static void test_allocations(void **state)
{
	(void)state;
	if (test_sanitized())
		harness_skip("a sanitizer brings its own malloc");
	run_sweep(FAIL_MALLOC, FAIL_MALLOC);
}

static void test_memory_files(void **state)
{
	(void)state;
	run_sweep(FAIL_MEMFD_CREATE, FAIL_MMAP);
}

static void test_descriptors(void **state)
{
	(void)state;
	run_sweep(FAIL_EVENTFD, FAIL_ACCEPT);
}

static void test_messages(void **state)
{
	(void)state;
	run_sweep(FAIL_RECVMSG, FAIL_GETRANDOM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(test_allocations),
		HARNESS_TEST(test_memory_files),
		HARNESS_TEST(test_descriptors),
		HARNESS_TEST(test_messages),
	};

	return HARNESS_RUN("fault", tests);
}
