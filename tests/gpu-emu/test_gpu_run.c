/* SPDX-License-Identifier: MIT */
/* Kernels, streams and graphs of the GPU backends, on the test double. */
#include "backend_fixture.h"
#include "../../kernels/device/device_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define N_FLOATS 777u

static struct rx_dev_args sum_of_two(const uint64_t *memory)
{
	struct rx_dev_args args = {
		.abi = RX_DEV_ABI,
		.coll = RX_ALL_REDUCE,
		.dtype = RX_FLOAT32,
		.op = RX_SUM,
		.algorithm = RX_DEV_DIRECT,
		.n_ranks = 2,
		.n_launches = 1,
		.elem_bytes = 4,
		.count = N_FLOATS,
		.local = 3,
	};

	memcpy(args.send, memory, 2 * sizeof(memory[0]));
	memcpy(args.recv, memory + 2, 2 * sizeof(memory[0]));
	return args;
}

static struct rx_gpu_launch launch_of(const struct rx_dev_args *args)
{
	return (struct rx_gpu_launch){.kernel = "rx_reduce_f32",
		.args = args,
		.args_bytes = sizeof(*args),
		.n_blocks = 2,
		.n_threads = 64};
}

static void put_floats(const uint64_t *memory, float seed)
{
	float host[N_FLOATS];

	for (uint32_t rank = 0; rank < 2; rank++) {
		for (uint32_t i = 0; i < N_FLOATS; i++)
			host[i] = seed + (float)(rank * 1000 + i);
		user->write(memory[rank], host, sizeof(host));
	}
}

static void check_floats(uint64_t memory, float seed)
{
	float host[N_FLOATS];

	user->read(host, memory, sizeof(host));
	for (uint32_t i = 0; i < N_FLOATS; i++)
		assert_true(host[i] == 2 * seed + (float)(1000 + 2 * i));
}

static void alloc_floats(uint64_t *memory, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		memory[i] = user->alloc(0, N_FLOATS * sizeof(float));
		assert_int_not_equal(memory[i], 0);
	}
}

static void kernels_run(void **state)
{
	uint64_t memory[4] = {0};
	struct rx_dev_args args;
	struct rx_gpu_launch launch = launch_of(&args);
	struct rx_gpu_error error = {0};
	void *stream = NULL;

	(void)state;
	alloc_floats(memory, 4);
	args = sum_of_two(memory);
	put_floats(memory, 5);
	assert_int_equal(ops->stream_open(device, false, &stream, NULL), RX_GPU_OK);
	assert_int_equal(ops->launch(device, stream, &launch, &error), RX_GPU_OK);
	backend_wait_idle(stream);
	check_floats(memory[2], 5);
	check_floats(memory[3], 5);
	user->set_faults("launch-fails=0");
	assert_int_equal(ops->launch(device, stream, &launch, &error), RX_GPU_E_FAILED);
	user->set_faults("launch-fails=1");
	assert_int_equal(ops->launch(device, stream, &launch, &error), RX_GPU_OK);
	backend_wait_idle(stream);
	ops->stream_close(device, stream);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(user->free(memory[i]), 0);
}

/* What a client needs of a device that there is no code for; the daemon has no use for it. */
static void clients_copy_without_code(void **state)
{
	struct rx_gpu_config mine = backend_config();
	struct rx_gpu *client = NULL;
	struct rx_gpu_device *other = NULL;
	struct rx_dev_args args = {.abi = RX_DEV_ABI};
	struct rx_gpu_launch launch = launch_of(&args);
	struct rx_gpu_error error = {0};
	uint64_t memory = user->alloc(1, 64);
	uint64_t value = 77;
	void *stream = NULL;

	(void)state;
	user->set_faults("no-code");
	assert_int_equal(ops->device_open(gpu, 1, &other, &error), RX_GPU_E_UNSUPPORTED);
	assert_non_null(strstr(error.text, "loading the kernels"));
	mine.flags = RX_GPU_LOADED_ONLY;
	assert_int_equal(ops->open(&mine, &client, &error), RX_GPU_OK);
	assert_int_equal(ops->device_open(client, 1, &other, &error), RX_GPU_OK);
	assert_int_equal(ops->stream_open(other, false, &stream, NULL), RX_GPU_OK);
	assert_int_equal(ops->copy(other, stream, memory, (uintptr_t)&value, 8, NULL), RX_GPU_OK);
	value = 0;
	assert_int_equal(ops->copy(other, stream, (uintptr_t)&value, memory, 8, NULL), RX_GPU_OK);
	assert_int_equal(value, 77);
	error = (struct rx_gpu_error){0};
	assert_int_equal(ops->launch(other, stream, &launch, &error), RX_GPU_E_UNSUPPORTED);
	assert_non_null(strstr(error.text, "loading the kernels"));
	ops->stream_close(other, stream);
	assert_int_equal(ops->device_close(other), RX_GPU_OK);
	ops->close(client);
	assert_int_equal(user->free(memory), 0);
}

/* Host memory that nobody registered, and a device without access to another one's. */
static void kernels_reach_what_their_device_does(void **state)
{
	uint64_t memory[4] = {0};

	(void)state;
	alloc_floats(memory, 3);
	for (uint32_t i = 2; i < 4; i++) {
		struct rx_gpu_device *other = NULL;
		struct rx_dev_args args;
		struct rx_gpu_launch launch = launch_of(&args);
		struct rx_gpu_error error = {0};
		float host[N_FLOATS];
		void *stream = NULL;
		int result = RX_GPU_BUSY;

		if (i == 3)
			user->set_faults("island=3");
		memory[3] = i == 2 ? (uintptr_t)host : memory[2];
		args = sum_of_two(memory);
		assert_int_equal(ops->device_open(gpu, i, &other, NULL), RX_GPU_OK);
		assert_int_equal(ops->stream_open(other, false, &stream, NULL), RX_GPU_OK);
		assert_int_equal(ops->launch(other, stream, &launch, &error), RX_GPU_OK);
		for (int turn = 0; turn < WAIT_TURNS && result == RX_GPU_BUSY; turn++) {
			result = ops->stream_query(other, stream, &error);
			(void)usleep(1000);
		}
		assert_int_equal(result, RX_GPU_E_DEVICE);
		assert_int_equal(error.native, 700);
		assert_int_equal(ops->device_close(other), RX_GPU_OK);
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(user->free(memory[i]), 0);
}

/* A copy, a kernel in another stream, and the words that a daemon would look at. */
static void record_sum(const uint64_t *memory, void *stream, void *side, uint64_t words)
{
	struct rx_dev_args args = sum_of_two(memory);
	struct rx_gpu_launch launch = launch_of(&args);
	void *forked = user->event_new();
	void *joined = user->event_new();
	uint32_t capture = RX_GPU_CAPTURE_NONE;
	uint64_t id = 0;

	assert_int_equal(user->copy(stream, memory[0], memory[4], N_FLOATS * sizeof(float)), 0);
	assert_int_equal(user->event_record(forked, stream), 0);
	assert_int_equal(user->event_wait(forked, side), 0);
	assert_int_equal(ops->capture(gpu, side, &capture, &id, NULL), RX_GPU_OK);
	assert_int_equal(capture, RX_GPU_CAPTURE_ACTIVE);
	assert_int_equal(ops->stream_write(gpu, side, words, 1, NULL), RX_GPU_OK);
	assert_int_equal(
		ops->stream_wait(gpu, side, words + 8, 1, RX_GPU_WAIT_EQ, NULL), RX_GPU_OK);
	assert_int_equal(ops->launch(device, side, &launch, NULL), RX_GPU_OK);
	assert_int_equal(ops->stream_write(gpu, side, words + 8, 0, NULL), RX_GPU_OK);
	assert_int_equal(user->event_record(joined, side), 0);
	assert_int_equal(user->event_wait(joined, stream), 0);
	assert_int_equal(user->copy(stream, memory[5], memory[2], N_FLOATS * sizeof(float)), 0);
	user->event_free(forked);
	user->event_free(joined);
}

static void replay(void *graph, void *stream, const uint64_t *memory, _Atomic uint64_t *words)
{
	for (uint32_t turn = 0; turn < 3; turn++) {
		float seed = (float)(turn * 10 + 1);
		float host[N_FLOATS] = {0};

		put_floats(memory, seed);
		user->read(host, memory[0], sizeof(host));
		user->write(memory[4], host, sizeof(host));
		memset(host, 0, sizeof(host));
		user->write(memory[0], host, sizeof(host));
		words[0] = 0;
		assert_int_equal(user->graph_launch(graph, stream), 0);
		for (int i = 0; i < WAIT_TURNS && words[0] != 1; i++)
			(void)usleep(1000);
		assert_int_equal(words[0], 1);
		assert_int_equal(user->stream_query(stream), 600);
		words[1] = 1;
		assert_int_equal(user->stream_sync(stream), 0);
		assert_int_equal(words[1], 0);
		check_floats(memory[5], seed);
	}
}

static void graphs_are_replayed(void **state)
{
	uint64_t memory[6] = {0};
	_Atomic uint64_t *words =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t at = 0;
	uint64_t n = 0;
	void *stream = user->stream_new(0);
	void *side = user->stream_new(0);
	void *graph = NULL;

	(void)state;
	alloc_floats(memory, 6);
	assert_int_equal(ops->host_register(gpu, words, 4096, &at, NULL), RX_GPU_OK);
	assert_int_equal(user->capture_begin(stream, 0), 0);
	record_sum(memory, stream, side, at);
	assert_int_equal(user->capture_end(stream, &graph), 0);
	assert_int_equal(user->graph_nodes(graph, &n), 0);
	assert_int_equal(n, 8);
	assert_int_equal(words[0], 0);
	replay(graph, stream, memory, words);
	user->graph_free(graph);
	assert_int_equal(ops->host_unregister(gpu, words, NULL), RX_GPU_OK);
	assert_int_equal(user->stream_free(stream), 0);
	assert_int_equal(user->stream_free(side), 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(user->free(memory[i]), 0);
	(void)munmap((void *)words, 4096);
}

/* What would wait for the device breaks the capture, as the real ones say. */
static void captures_break(void **state)
{
	void *stream = user->stream_new(0);
	void *side = user->stream_new(0);
	void *event = user->event_new();
	void *graph = NULL;
	uint64_t address = 0;
	uint64_t id = 0;
	uint32_t capture = RX_GPU_CAPTURE_NONE;

	(void)state;
	assert_int_equal(user->capture_begin(stream, 0), 0);
	assert_true(ops->alloc(device, 4096, &address, NULL) != RX_GPU_OK);
	assert_int_equal(ops->capture(gpu, stream, &capture, &id, NULL), RX_GPU_OK);
	assert_int_equal(capture, RX_GPU_CAPTURE_BROKEN);
	assert_int_equal(user->capture_end(stream, &graph), 901);
	assert_int_equal(user->capture_begin(stream, 2), 0);
	assert_int_equal(ops->alloc(device, 4096, &address, NULL), RX_GPU_OK);
	assert_int_equal(user->event_record(event, stream), 0);
	assert_int_equal(user->event_wait(event, side), 0);
	assert_int_equal(user->copy(side, address, address + 8, 8), 0);
	assert_int_equal(user->capture_end(stream, &graph), 904);
	ops->free(device, address);
	user->event_free(event);
	assert_int_equal(user->stream_free(stream), 0);
	assert_int_equal(user->stream_free(side), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kernels_run, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			clients_copy_without_code, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			kernels_reach_what_their_device_does, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			graphs_are_replayed, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(captures_break, backend_set_up, backend_tear_down),
	};

	return BACKEND_RUN(tests);
}
