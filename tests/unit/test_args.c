/* SPDX-License-Identifier: MIT */
/* Argument checks, which need no daemon: what is refused, and that the text says why. */
#include "fake_daemon.h"

#include "../../client/args.h"
#include "../../client/args_coll.h"
#include "../../client/comm.h"
#include "../../client/fork_guard.h"
#include "../../client/session.h"

#include <string.h>

static _Alignas(16) uint8_t memory[256];

static struct args_coll good(void)
{
	return (struct args_coll){
		.function = "rcclx_all_reduce",
		.coll = RX_ALL_REDUCE,
		.send = memory,
		.recv = memory + 128,
		.count = 8,
		.dtype = RCCLX_FLOAT32,
		.op = RCCLX_SUM,
		.n_ranks = 2,
	};
}

static rcclx_result check(const struct args_coll *args)
{
	struct args_bytes bytes = {0};

	return args_coll(args, &bytes);
}

/* ---- structs that grow ---- */

static void test_config_sizes(void **state)
{
	struct {
		struct rcclx_call_config known;
		uint8_t tail[16];
	} newer = {.known = RCCLX_CALL_CONFIG_INIT};
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_call_config given = RCCLX_CALL_CONFIG_INIT;
	const char *name = "struct rcclx_call_config";

	(void)state;
	config.timeout_ns = 5;
	assert_int_equal(args_config(NULL, &config, sizeof(config), name), RCCLX_OK);
	assert_int_equal(config.timeout_ns, 5);
	/* An older caller, whose struct ended after the executor. */
	given = (struct rcclx_call_config){.size = 8, .executor = 2, .timeout_ns = 99};
	assert_int_equal(args_config(&given, &config, sizeof(config), name), RCCLX_OK);
	assert_int_equal(config.executor, 2);
	assert_int_equal(config.timeout_ns, 5);
	/* A newer one, which does not use what is new. */
	newer.known.size = sizeof(newer);
	newer.known.timeout_ns = 7;
	assert_int_equal(args_config(&newer, &config, sizeof(config), name), RCCLX_OK);
	assert_int_equal(config.timeout_ns, 7);
	newer.tail[15] = 1;
	assert_int_equal(args_config(&newer, &config, sizeof(config), name), RCCLX_ERR_INVALID);
	assert_text("update librcclx");
}

static void test_config_without_size(void **state)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_call_config given = {0};
	static const uint32_t sizes[] = {0, 4, 7, 4097, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(sizes); i++) {
		given.size = sizes[i];
		assert_int_equal(args_config(&given, &config, sizeof(config), "struct x"),
			RCCLX_ERR_INVALID);
		assert_text("_INIT");
		assert_text("struct x");
	}
}

static void test_texts(void **state)
{
	(void)state;
	assert_int_equal(args_text(NULL, 3, "name"), RCCLX_OK);
	assert_int_equal(args_text("", 3, "name"), RCCLX_OK);
	assert_int_equal(args_text("abc", 3, "name"), RCCLX_OK);
	assert_int_equal(args_text("\xc3\xa4", 3, "name"), RCCLX_OK);
	assert_int_equal(args_text("abcd", 3, "name"), RCCLX_ERR_INVALID);
	assert_text("longer than 3");
	assert_int_equal(args_text("a\n", 3, "name"), RCCLX_ERR_INVALID);
	assert_int_equal(args_text("\x7f", 3, "name"), RCCLX_ERR_INVALID);
	assert_int_equal(args_text("\xff", 3, "name"), RCCLX_ERR_INVALID);
	assert_int_equal(args_text("\xc3", 3, "name"), RCCLX_ERR_INVALID);
	assert_text("UTF-8");
}

/* ---- reductions ---- */

static void test_good_reductions(void **state)
{
	static const uint32_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
	struct args_coll args = good();
	struct args_bytes bytes = {0};

	(void)state;
	for (uint32_t dtype = 0; dtype < RX_ARRAY_SIZE(sizes); dtype++) {
		args.dtype = dtype;
		assert_int_equal(args_coll(&args, &bytes), RCCLX_OK);
		assert_int_equal(bytes.send, 8 * sizes[dtype]);
		assert_int_equal(bytes.recv, 8 * sizes[dtype]);
	}
	/* In place; side by side, either way round. */
	args = good();
	args.recv = memory;
	assert_int_equal(check(&args), RCCLX_OK);
	args.recv = memory + 32;
	assert_int_equal(check(&args), RCCLX_OK);
	args.send = memory + 64;
	assert_int_equal(check(&args), RCCLX_OK);
	/* Nothing: no memory needed. */
	args = good();
	args.send = NULL;
	args.recv = NULL;
	args.count = 0;
	assert_int_equal(args_coll(&args, &bytes), RCCLX_OK);
	assert_int_equal(bytes.send, 0);
	assert_int_equal(bytes.recv, 0);
	args = good();
	args.op = RCCLX_PREMUL_SUM;
	args.scalar = memory;
	assert_int_equal(check(&args), RCCLX_OK);
}

static void expect_refused(struct args_coll args, const char *part)
{
	assert_int_equal(check(&args), RCCLX_ERR_INVALID);
	assert_text("rcclx_all_reduce");
	assert_text(part);
}

static void test_refused_reductions(void **state)
{
	struct args_coll args = good();

	(void)state;
	args.send = NULL;
	expect_refused(args, "send is NULL");
	args = good();
	args.recv = NULL;
	expect_refused(args, "recv is NULL, expected memory of 8 float32 elements (32 bytes)");
	args = good();
	args.send = memory + 2;
	expect_refused(args, "multiple of 4");
	args = good();
	args.recv = memory + 129;
	expect_refused(args, "recv");
	args = good();
	args.dtype = 12;
	expect_refused(args, "dtype is 12");
	args.dtype = UINT32_MAX;
	expect_refused(args, "dtype is 4294967295");
	args = good();
	args.op = 6;
	expect_refused(args, "op is 6");
	args.op = RCCLX_PREMUL_SUM;
	expect_refused(args, "scalar");
	/* Also when there is nothing to reduce. */
	args.count = 0;
	expect_refused(args, "scalar");
}

static void test_overlaps(void **state)
{
	struct args_coll args = good();

	(void)state;
	args.recv = memory + 4;
	expect_refused(args, "overlap");
	args.recv = memory + 28;
	expect_refused(args, "overlap");
	args.send = memory + 28;
	args.recv = memory;
	expect_refused(args, "overlap");
}

static void test_roots(void **state)
{
	struct args_coll args = good();

	(void)state;
	args.coll = RX_REDUCE;
	args.root = 1;
	/* Not the root: nothing comes, so recv may be anything. */
	args.recv = NULL;
	assert_int_equal(check(&args), RCCLX_OK);
	args.rank = 1;
	expect_refused(args, "recv is NULL");
	args.root = 2;
	expect_refused(args, "root is 2, expected a rank from 0 to 1");
}

static void test_sizes_beyond_everything(void **state)
{
	struct args_coll args = good();

	(void)state;
	args.count = UINT64_MAX / 4 + 1;
	expect_refused(args, "no 64-bit number");
	args.count = UINT64_MAX;
	expect_refused(args, "18446744073709551615");
	/* The number fits, the addresses do not. */
	args.count = UINT64_MAX / 4;
	expect_refused(args, "address space");
}

/* ---- the calls themselves ---- */

static void test_null_handles(void **state)
{
	struct rcclx_unique_id id = {{0}};
	struct rcclx_comm *comm = NULL;
	struct rcclx_mem *mem = NULL;
	struct rcclx_op *op = NULL;
	void *ptr = NULL;
	float x = 0;

	(void)state;
	assert_int_equal(rcclx_connect(NULL, NULL, NULL), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_unique_id_create(NULL, &id), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_comm_create(NULL, &id, 1, 0, NULL, &comm), RCCLX_ERR_INVALID);
	assert_text("client is NULL");
	assert_int_equal(rcclx_comm_abort(NULL), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_comm_status(NULL), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_mem_alloc(NULL, 1, &ptr), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_mem_free(NULL, &x), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_mem_register(NULL, &x, 1, 0, 0, &mem), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_all_reduce(NULL, &x, &x, 1, RCCLX_FLOAT32, RCCLX_SUM, NULL),
		RCCLX_ERR_INVALID);
	assert_text("rcclx_all_reduce: comm is NULL");
	assert_int_equal(rcclx_barrier(NULL, NULL), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_barrier_start(NULL, NULL, &op), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_op_wait(NULL, 0), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_op_test(NULL), RCCLX_ERR_INVALID);
	/* Allowed, as free(NULL) is. */
	assert_int_equal(rcclx_disconnect(NULL), RCCLX_OK);
	assert_int_equal(rcclx_comm_destroy(NULL), RCCLX_OK);
	assert_int_equal(rcclx_mem_deregister(NULL), RCCLX_OK);
	assert_int_equal(rcclx_op_free(NULL), RCCLX_OK);
	assert_int_equal(rcclx_comm_rank(NULL), UINT32_MAX);
	assert_int_equal(rcclx_comm_size(NULL), 0);
}

/* Checked before the communicator is looked at, so an empty one will do. */
static void test_call_configs(void **state)
{
	static const struct rx_fabric_ctl ctl;
	static struct rcclx_client client;
	static struct rcclx_comm comm = {.client = &client, .fabric = {.ctl = &ctl}};
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	struct rcclx_op *op = NULL;

	(void)state;
	assert_int_equal(fork_guard_epoch(&client.epoch), 0);
	config.precision = RCCLX_PRECISION_INT8 + 1;
	assert_int_equal(rcclx_barrier(&comm, &config), RCCLX_ERR_INVALID);
	assert_text("precision is 4");
	config.precision = 0;
	config.flags = 2;
	assert_int_equal(rcclx_barrier(&comm, &config), RCCLX_ERR_INVALID);
	assert_text("flags is 2");
	config.flags = 0;
	config.executor = 3;
	assert_int_equal(rcclx_barrier(&comm, &config), RCCLX_ERR_INVALID);
	assert_text("executor is 3");
	config.executor = RCCLX_EXECUTOR_INLINE;
	assert_int_equal(rcclx_barrier_start(&comm, &config, &op), RCCLX_ERR_INVALID);
	assert_text("blocking calls only");
	assert_int_equal(rcclx_barrier_start(&comm, NULL, NULL), RCCLX_ERR_INVALID);
	assert_text("op_p");
	config.size = 0;
	assert_int_equal(rcclx_barrier(&comm, &config), RCCLX_ERR_INVALID);
	assert_null(op);
}

static void test_connect_configs(void **state)
{
	static const uint32_t wrong[] = {1, 3, 6, 4097, 8192, UINT32_MAX};
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;
	struct rcclx_client *client = NULL;

	(void)state;
	for (size_t i = 0; i < RX_ARRAY_SIZE(wrong); i++) {
		config.sq_entries = wrong[i];
		assert_int_equal(
			rcclx_connect("/nonexistent", &config, &client), RCCLX_ERR_INVALID);
		assert_text("power of two");
	}
	config.sq_entries = 0;
	config.program = "two\nlines";
	assert_int_equal(rcclx_connect("/nonexistent", &config, &client), RCCLX_ERR_INVALID);
	assert_text("program");
	assert_null(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config_sizes),
		cmocka_unit_test(test_config_without_size),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_good_reductions),
		cmocka_unit_test(test_refused_reductions),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_sizes_beyond_everything),
		cmocka_unit_test(test_null_handles),
		cmocka_unit_test(test_call_configs),
		cmocka_unit_test(test_connect_configs),
	};

	return cmocka_run_group_tests_name("args", tests, NULL, NULL);
}
