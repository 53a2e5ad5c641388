/* SPDX-License-Identifier: MIT */
/*
 * The GPU backends on the test double: this process is the daemon, a child is the owner of memory.
 * Everything once with the HIP plugin and once with the CUDA plugin.
 */
#include "backend_fixture.h"
#include "../../kernels/device/device_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define PIECE_BYTES  (64u << 10)
#define OWNER_NUMBER 7u

/* ---- the owner ---- */

enum contents { RANDOM_BYTES, ZEROS, SAME_BYTES };

struct wish {
	bool virtual;
	uint32_t n_pieces;
	enum contents contents;
	bool fill; /* mark the memory instead of reading what is there */
	uint64_t seed;
	bool across; /* one sample, of the first two pieces */
};

struct answer {
	int result;
	uint32_t n;
	struct rx_gpu_export exports[4];
	uint8_t rows[4][RX_GPU_SAMPLE_BYTES];
};

struct owner {
	pid_t pid;
	int sock;
};

static struct rx_gpu_sample sample_of(uint64_t seed)
{
	return (struct rx_gpu_sample){.offset = 0, .bytes = PIECE_BYTES, .seed = seed};
}

static uint64_t make_memory(const struct wish *wish)
{
	return wish->virtual ? user->alloc_pieces(0, PIECE_BYTES, wish->n_pieces)
			     : user->alloc(0, PIECE_BYTES);
}

static void put_contents(uint64_t address, const struct wish *wish)
{
	static unsigned char bytes[4 * PIECE_BYTES];
	uint32_t x = wish->contents == SAME_BYTES ? 12345u : (uint32_t)getpid() * 2654435761u;

	for (uint32_t i = 0; i < wish->n_pieces * PIECE_BYTES; i++) {
		x = x * 1664525u + 1013904223u;
		bytes[i] = wish->contents == ZEROS ? 0 : (unsigned char)(x >> 24);
	}
	user->write(address, bytes, wish->n_pieces * PIECE_BYTES);
}

static void send_answer(int sock, const struct answer *answer, const int *fds)
{
	char control[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct iovec iov = {(void *)answer, sizeof(*answer)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	uint32_t n = 0;

	for (uint32_t i = 0; i < answer->n; i++)
		n += fds[i] >= 0;
	if (n > 0) {
		struct cmsghdr *header = NULL;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		header = CMSG_FIRSTHDR(&msg);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(header), fds, n * sizeof(int));
	}
	(void)sendmsg(sock, &msg, 0);
}

/* A process of its own: opens its own runtime, serves wishes until the socket closes. */
static int own(int sock)
{
	struct rx_gpu_config mine = backend_config();
	struct rx_gpu *my_gpu = NULL;
	struct wish wish;
	static struct answer answer;
	int fds[4] = {-1, -1, -1, -1};

	mine.flags = RX_GPU_LOADED_ONLY;
	if (ops->open(&mine, &my_gpu, NULL) != RX_GPU_OK)
		return 2;
	while (read(sock, &wish, sizeof(wish)) == sizeof(wish)) {
		uint64_t address = make_memory(&wish);
		struct rx_gpu_sample sample = sample_of(wish.seed);

		put_contents(address, &wish);
		memset(&answer, 0, sizeof(answer));
		answer.result = ops->export_memory(my_gpu, address, wish.n_pieces * PIECE_BYTES,
			answer.exports, fds, 4, &answer.n, NULL);
		for (uint32_t i = 0; i < answer.n && answer.result == RX_GPU_OK; i++) {
			uint64_t base = answer.exports[i].memory.base;

			if (wish.across)
				sample.bytes = 2 * PIECE_BYTES;
			if (wish.across && i > 0)
				break;
			if (wish.fill)
				answer.result = ops->sample_fill(my_gpu, base, &sample, NULL);
			if (answer.result == RX_GPU_OK)
				answer.result = ops->sample(
					my_gpu, base, &sample, NULL, answer.rows[i], NULL);
		}
		send_answer(sock, &answer, fds);
		for (uint32_t i = 0; i < answer.n; i++)
			(void)close(fds[i]);
	}
	ops->close(my_gpu);
	return 0;
}

static struct owner start_owner(void)
{
	int pair[2];
	char sock_text[16];
	struct owner owner = {0};

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	(void)snprintf(sock_text, sizeof(sock_text), "%d", pair[1]);
	owner.pid = fork();
	assert_true(owner.pid >= 0);
	if (owner.pid == 0) {
		/* Another program: streams of the double have threads here, and a fork of those
		 * cannot be relied on to make threads of its own. */
		(void)close(pair[0]);
		(void)execl("/proc/self/exe", "owner", flavour, sock_text, (char *)NULL);
		_exit(127);
	}
	(void)close(pair[1]);
	owner.sock = pair[0];
	return owner;
}

static void stop_owner(struct owner *owner, int signal_number)
{
	int status = 0;

	if (signal_number)
		(void)kill(owner->pid, signal_number);
	(void)close(owner->sock);
	assert_int_equal(waitpid(owner->pid, &status, 0), owner->pid);
	if (!signal_number)
		assert_int_equal(status, 0);
}

/* @answer and @fds have what the owner made. */
static void ask(struct owner *owner, const struct wish *wish, struct answer *answer, int *fds)
{
	char control[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct iovec iov = {answer, sizeof(*answer)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *header = NULL;

	for (int i = 0; i < 4; i++)
		fds[i] = -1;
	assert_int_equal(write(owner->sock, wish, sizeof(*wish)), sizeof(*wish));
	assert_int_equal(recvmsg(owner->sock, &msg, MSG_CMSG_CLOEXEC), sizeof(*answer));
	header = CMSG_FIRSTHDR(&msg);
	if (header)
		memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
	assert_int_equal(answer->result, RX_GPU_OK);
	assert_int_equal(answer->n, wish->n_pieces);
}

static void close_fds(int *fds)
{
	for (int i = 0; i < 4; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
}

static struct rx_gpu_map *import(const struct answer *answer, const int *fds)
{
	struct rx_gpu_map *map = NULL;
	struct rx_gpu_error error = {0};

	if (ops->import(device, OWNER_NUMBER, answer->exports, fds, answer->n, &map, &error) !=
		RX_GPU_OK)
		fail_msg("%s", error.text);
	return map;
}

static uint32_t prove(
	struct rx_gpu_map *map, const struct answer *answer, uint32_t piece, uint32_t flags)
{
	struct rx_gpu_sample sample = sample_of(3);
	struct rx_gpu_error error = {0};
	uint32_t verdict = RX_GPU_VERDICT_N;

	sample.offset = piece * PIECE_BYTES;
	if (ops->prove(map, &sample, answer->rows[piece], flags, &verdict, &error) != RX_GPU_OK)
		fail_msg("%s", error.text);
	return verdict;
}

/* ---- the tests ---- */

static void devices_are_described(void **state)
{
	struct rx_gpu_device_info info;
	struct rx_gpu_peer peer;
	struct rx_gpu_error error = {0};

	(void)state;
	assert_int_equal(ops->size, sizeof(struct rx_backend_v1));
	assert_int_equal(ops->abi, RX_BACKEND_ABI);
	assert_string_equal(ops->name, flavour);
	assert_int_equal(ops->device_count(gpu), 8);
	assert_int_equal(ops->device_info(gpu, 7, &info, &error), RX_GPU_OK);
	assert_string_equal(info.name, "test double 7");
	assert_string_equal(info.arch, strcmp(flavour, "hip") == 0 ? "gfx942" : "sm_90");
	assert_string_equal(info.pci, "0000:08:00.0");
	assert_int_equal(ops->device_info(gpu, 8, &info, &error), RX_GPU_E_INVALID);
	assert_int_equal(ops->peer(gpu, 0, 7, &peer, &error), RX_GPU_OK);
	assert_int_equal(peer.access, 1);
	assert_int_equal(peer.atomics, 1);
	assert_int_equal(ops->device_info(gpu, 0, &info, &error), RX_GPU_OK);
	assert_true(info.caps & RX_GPU_CAP_CAPTURE_MEM);
}

static void absence_has_a_reason(void **state)
{
	struct rx_gpu_config mine = backend_config();
	struct rx_gpu *none = NULL;
	struct rx_gpu_error error = {0};
	char dir[] = "/tmp/rx-gpu-XXXXXX";
	char node[128];
	const char *name = strcmp(flavour, "hip") == 0 ? "kfd" : "nvidiactl";
	int fd = -1;

	(void)state;
	mine.library = "/nonexistent/runtime.so";
	assert_int_equal(ops->open(&mine, &none, &error), RX_GPU_E_ABSENT);
	assert_non_null(strstr(error.text, "/nonexistent/runtime.so"));
	mine.library = backend_config().library;
	user->set_faults("no-device");
	assert_non_null(mkdtemp(dir));
	mine.dev_dir = dir;
	assert_int_equal(ops->open(&mine, &none, &error), RX_GPU_E_ABSENT);
	assert_non_null(strstr(error.text, name));
	(void)snprintf(node, sizeof(node), "%s/%s", dir, name);
	fd = open(node, O_CREAT | O_RDWR, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(ops->open(&mine, &none, &error), RX_GPU_E_ABSENT);
	assert_non_null(strstr(error.text, "VISIBLE_DEVICES"));
	if (geteuid() == 0) { /* only root can become somebody who may not */
		assert_int_equal(chmod(dir, 0755), 0);
		assert_int_equal(seteuid(65534), 0);
		assert_int_equal(ops->open(&mine, &none, &error), RX_GPU_E_PERMISSION);
		assert_int_equal(seteuid(0), 0);
		assert_non_null(strstr(error.text, node));
		assert_non_null(strstr(error.text, "mode 0600"));
		assert_non_null(strstr(error.text, "usermod -aG root"));
	}
	(void)unlink(node);
	(void)rmdir(dir);
}

/* What the plain and the virtual kind have in common. */
static void share(bool virtual, uint32_t n_pieces)
{
	struct owner owner = start_owner();
	struct answer answer;
	int fds[4];
	struct rx_gpu_map *map = NULL;
	struct rx_gpu_map *again = NULL;
	struct rx_gpu_stats stats;
	struct rx_gpu_map_info info;
	uint64_t address = 0;
	uint8_t bytes[RX_GPU_SAMPLE_WIDTH];

	ask(&owner, &(struct wish){virtual, n_pieces, RANDOM_BYTES, .seed = 3}, &answer, fds);
	map = import(&answer, fds);
	again = import(&answer, fds);
	assert_ptr_equal(map, again);
	assert_int_equal(ops->map_address(map, 0, 16, &address, NULL), RX_GPU_E_UNPROVEN);
	for (uint32_t i = 0; i < answer.n; i++)
		assert_int_equal(prove(map, &answer, i, RX_GPU_PROVE_STABLE), RX_GPU_PROVEN);
	assert_int_equal(
		ops->map_address(map, 0, n_pieces * PIECE_BYTES, &address, NULL), RX_GPU_OK);
	/* It is the owner's memory. */
	for (uint32_t i = 0; i < n_pieces; i++) {
		uint64_t first = 0;
		uint64_t pitch = 0;
		uint64_t width = 0;
		struct rx_gpu_sample sample = sample_of(3);

		(void)rx_gpu_sample_rows(&sample, &first, &pitch, &width);
		user->read(bytes, address + i * PIECE_BYTES + first, width);
		assert_memory_equal(bytes, answer.rows[i], width);
	}
	assert_int_equal(ops->map_address(map, 0, n_pieces * PIECE_BYTES + 1, &address, NULL),
		RX_GPU_E_INVALID);
	ops->map_info(map, &info);
	assert_int_equal(info.verdict, RX_GPU_PROVEN);
	assert_int_equal(info.n_refs, 2);
	ops->device_stats(device, &stats);
	assert_int_equal(stats.n_imports, 1);
	assert_int_equal(stats.n_cache_hits, 1);
	assert_int_equal(stats.mapped_bytes, n_pieces * PIECE_BYTES);
	assert_int_equal(stats.n_copied[RX_GPU_WHY_CONSTANT], 1);
	stop_owner(&owner, SIGKILL);
	ops->owner_gone(device, OWNER_NUMBER);
	assert_int_equal(ops->map_address(map, 0, 16, &address, NULL), RX_GPU_E_GONE);
	ops->map_release(map);
	ops->map_release(again);
	assert_int_equal(ops->device_reap(device), 0);
	ops->device_stats(device, &stats);
	assert_int_equal(stats.n_maps, 0);
	assert_int_equal(stats.mapped_bytes, 0);
	close_fds(fds);
}

static void plain_memory_is_shared(void **state)
{
	(void)state;
	share(false, 1);
}

static void virtual_memory_is_shared(void **state)
{
	(void)state;
	share(true, 1);
}

static void pieces_are_proven_one_by_one(void **state)
{
	(void)state;
	share(true, 3);
}

/* A buffer across pieces, as the owner sees it: one sample for all of them. */
static void one_sample_proves_what_it_touches(void **state)
{
	struct owner owner = start_owner();
	struct answer answer;
	int fds[4];
	struct rx_gpu_map *map = NULL;
	struct rx_gpu_sample sample = sample_of(5);
	struct rx_gpu_error error = {0};
	uint32_t verdict = RX_GPU_VERDICT_N;
	uint64_t address = 0;

	(void)state;
	ask(&owner, &(struct wish){true, 3, RANDOM_BYTES, .seed = 5, .across = true}, &answer, fds);
	map = import(&answer, fds);
	sample.bytes = 2 * PIECE_BYTES;
	assert_int_equal(
		ops->prove(map, &sample, answer.rows[0], RX_GPU_PROVE_STABLE, &verdict, &error),
		RX_GPU_OK);
	assert_int_equal(verdict, RX_GPU_PROVEN);
	assert_int_equal(ops->map_address(map, 0, 2 * PIECE_BYTES, &address, &error), RX_GPU_OK);
	assert_int_equal(
		ops->map_address(map, 0, 2 * PIECE_BYTES + 1, &address, &error), RX_GPU_E_UNPROVEN);
	sample.offset = 2 * PIECE_BYTES;
	assert_int_equal(
		ops->prove(map, &sample, answer.rows[0], 0, &verdict, &error), RX_GPU_E_INVALID);
	ops->map_release(map);
	close_fds(fds);
	stop_owner(&owner, 0);
}

static void zeros_prove_nothing(void **state)
{
	struct owner owner = start_owner();
	struct answer answer;
	int fds[4];
	struct rx_gpu_map *map = NULL;
	struct rx_gpu_map_info info;

	(void)state;
	/* Right or wrong memory, both are zeros: the mapping must not be used. */
	user->set_faults("import-wrong");
	ask(&owner, &(struct wish){false, 1, ZEROS, .seed = 3}, &answer, fds);
	map = import(&answer, fds);
	assert_int_equal(prove(map, &answer, 0, RX_GPU_PROVE_STABLE), RX_GPU_OPEN);
	ops->map_info(map, &info);
	assert_int_equal(info.why, RX_GPU_WHY_CONSTANT);
	ops->map_release(map);
	/* Marked with random bytes, it is found out. */
	ask(&owner, &(struct wish){false, 1, ZEROS, true, .seed = 3}, &answer, fds);
	map = import(&answer, fds);
	assert_int_equal(prove(map, &answer, 0, RX_GPU_PROVE_NONCE), RX_GPU_WRONG);
	ops->map_release(map);
	user->set_faults("");
	ask(&owner, &(struct wish){false, 1, ZEROS, true, .seed = 3}, &answer, fds);
	map = import(&answer, fds);
	assert_int_equal(prove(map, &answer, 0, RX_GPU_PROVE_NONCE), RX_GPU_PROVEN);
	ops->map_release(map);
	stop_owner(&owner, 0);
}

static void wrong_memory_is_found_out(void **state)
{
	struct owner owner = start_owner();
	struct answer answer;
	int fds[4];
	struct rx_gpu_map *map = NULL;
	uint64_t address = 0;

	(void)state;
	user->set_faults("import-wrong");
	for (int virtual = 0; virtual < 2; virtual ++) {
		ask(&owner, &(struct wish){virtual, 1, RANDOM_BYTES, .seed = 3}, &answer, fds);
		map = import(&answer, fds);
		assert_int_equal(prove(map, &answer, 0, 0), RX_GPU_OPEN);
		assert_int_equal(prove(map, &answer, 0, RX_GPU_PROVE_STABLE), RX_GPU_WRONG);
		assert_int_equal(ops->map_address(map, 0, 16, &address, NULL), RX_GPU_E_UNPROVEN);
		ops->map_release(map);
		close_fds(fds);
	}
	stop_owner(&owner, 0);
}

static void replicas_prove_nothing(void **state)
{
	struct owner owner = start_owner();
	struct answer first;
	struct answer second;
	int fds[4];
	struct rx_gpu_map *a = NULL;
	struct rx_gpu_map *b = NULL;
	struct rx_gpu_map_info info;

	(void)state;
	ask(&owner, &(struct wish){false, 1, SAME_BYTES, .seed = 3}, &first, fds);
	a = import(&first, fds);
	assert_int_equal(prove(a, &first, 0, RX_GPU_PROVE_STABLE), RX_GPU_PROVEN);
	/* The runtime shows the first allocation again, and the second holds the same bytes. */
	user->set_faults("import-previous");
	ask(&owner, &(struct wish){false, 1, SAME_BYTES, .seed = 3}, &second, fds);
	b = import(&second, fds);
	assert_ptr_not_equal(a, b);
	assert_int_equal(prove(b, &second, 0, RX_GPU_PROVE_STABLE), RX_GPU_OPEN);
	ops->map_info(b, &info);
	assert_int_equal(info.why, RX_GPU_WHY_REPLICA);
	ops->map_release(a);
	ops->map_release(b);
	stop_owner(&owner, 0);
}

static void refusals_and_lies(void **state)
{
	struct owner owner = start_owner();
	struct answer answer;
	int fds[4];
	struct rx_gpu_map *map = NULL;
	struct rx_gpu_error error = {0};

	(void)state;
	ask(&owner, &(struct wish){true, 1, RANDOM_BYTES, .seed = 3}, &answer, fds);
	user->set_faults("import-fails");
	assert_true(
		ops->import(device, 1, answer.exports, fds, 1, &map, &error) >= RX_GPU_E_ABSENT);
	user->set_faults("");
	answer.exports[0].memory.bytes *= 2;
	assert_true(
		ops->import(device, 1, answer.exports, fds, 1, &map, &error) >= RX_GPU_E_ABSENT);
	answer.exports[0].memory.bytes = UINT64_MAX;
	assert_int_equal(
		ops->import(device, 1, answer.exports, fds, 1, &map, &error), RX_GPU_E_INVALID);
	answer.exports[0].memory.bytes = PIECE_BYTES;
	answer.exports[0].memory.uuid[0] ^= 1;
	assert_int_equal(
		ops->import(device, 1, answer.exports, fds, 1, &map, &error), RX_GPU_E_INVALID);
	close_fds(fds);
	ask(&owner, &(struct wish){false, 1, RANDOM_BYTES, .seed = 3}, &answer, fds);
	answer.exports[0].memory.bytes *= 2;
	assert_int_equal(
		ops->import(device, 1, answer.exports, fds, 1, &map, &error), RX_GPU_E_INVALID);
	stop_owner(&owner, 0);
}

static void the_cache_is_bounded(void **state)
{
	struct owner owner = start_owner();
	struct answer answer;
	int fds[4];
	struct rx_gpu_map *maps[3];
	struct rx_gpu_map *map = NULL;
	struct rx_gpu_stats stats;

	(void)state;
	for (int i = 0; i < 3; i++) {
		ask(&owner, &(struct wish){false, 1, RANDOM_BYTES, .seed = 3}, &answer, fds);
		maps[i] = import(&answer, fds);
	}
	ask(&owner, &(struct wish){false, 1, RANDOM_BYTES, .seed = 3}, &answer, fds);
	assert_int_equal(ops->import(device, OWNER_NUMBER, answer.exports, fds, 1, &map, NULL),
		RX_GPU_E_LIMIT);
	ops->map_release(maps[1]);
	map = import(&answer, fds); /* in the place of the one that nobody uses */
	ops->device_stats(device, &stats);
	assert_int_equal(stats.n_maps, 3);
	ops->map_release(maps[0]);
	ops->map_release(maps[2]);
	ops->map_release(map);
	stop_owner(&owner, 0);
}

static void used_memory_is_unmapped_later(void **state)
{
	struct owner owner = start_owner();
	struct answer answer;
	int fds[4];
	_Atomic uint64_t *words =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t address = 0;
	void *stream = NULL;
	struct rx_gpu_map *map = NULL;
	struct rx_dev_words args = {0};
	struct rx_gpu_launch launch = {.kernel = "emu_stuck",
		.args = &args,
		.args_bytes = sizeof(args),
		.n_blocks = 1,
		.n_threads = 1};

	(void)state;
	assert_int_equal(ops->host_register(gpu, words, 4096, &address, NULL), RX_GPU_OK);
	assert_int_equal(ops->stream_open(device, true, &stream, NULL), RX_GPU_OK);
	ask(&owner, &(struct wish){false, 1, RANDOM_BYTES, .seed = 3}, &answer, fds);
	map = import(&answer, fds);
	memcpy(&args.wait, &address, sizeof(address));
	assert_int_equal(ops->launch(device, stream, &launch, NULL), RX_GPU_OK);
	assert_int_equal(ops->signal(device, stream, address + 8, 42, NULL), RX_GPU_OK);
	assert_int_equal(ops->stream_query(device, stream, NULL), RX_GPU_BUSY);
	ops->map_release(map);
	ops->owner_freed(device, OWNER_NUMBER, answer.exports[0].memory.base);
	assert_int_equal(ops->device_reap(device), 1);
	assert_int_equal(ops->device_close(device), RX_GPU_BUSY);
	ops->stream_close(device, stream);
	assert_int_equal(ops->device_reap(device), 2);
	assert_int_equal(words[1], 0);
	words[0] = 1;
	for (int i = 0; i < WAIT_TURNS && ops->device_reap(device) > 0; i++)
		(void)usleep(1000);
	assert_int_equal(ops->device_reap(device), 0);
	assert_int_equal(words[1], 42);
	assert_int_equal(ops->host_unregister(gpu, words, NULL), RX_GPU_OK);
	(void)munmap((void *)words, 4096);
	stop_owner(&owner, 0);
}

static void streams_write_and_wait(void **state)
{
	_Atomic uint64_t *words =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t at = 0;
	void *stream = NULL;

	(void)state;
	assert_int_equal(ops->host_register(gpu, words, 4096, &at, NULL), RX_GPU_OK);
	assert_int_equal(ops->host_register(gpu, words, 100, &at, NULL), RX_GPU_E_INVALID);
	assert_int_equal(ops->stream_open(device, false, &stream, NULL), RX_GPU_OK);
	assert_int_equal(ops->stream_write(gpu, stream, at, 5, NULL), RX_GPU_OK);
	assert_int_equal(ops->stream_wait(gpu, stream, at + 8, 7, RX_GPU_WAIT_EQ, NULL), RX_GPU_OK);
	assert_int_equal(ops->stream_write(gpu, stream, at + 16, 9, NULL), RX_GPU_OK);
	for (int i = 0; i < WAIT_TURNS && words[0] != 5; i++)
		(void)usleep(1000);
	assert_int_equal(words[0], 5);
	assert_int_equal(words[2], 0);
	words[1] = 7;
	backend_wait_idle(stream);
	assert_int_equal(words[2], 9);
	assert_int_equal(ops->stream_write(gpu, stream, at + 4, 5, NULL), RX_GPU_E_INVALID);
	ops->stream_close(device, stream);
	assert_int_equal(ops->host_unregister(gpu, words, NULL), RX_GPU_OK);
	(void)munmap((void *)words, 4096);
}

static void capture_that_does_not_record_is_noticed(void **state)
{
	struct rx_gpu_device *other = NULL;
	struct rx_gpu_device_info info;

	(void)state;
	user->set_faults("no-capture");
	assert_int_equal(ops->device_open(gpu, 1, &other, NULL), RX_GPU_OK);
	assert_int_equal(ops->device_info(gpu, 1, &info, NULL), RX_GPU_OK);
	assert_int_equal(info.caps & RX_GPU_CAP_CAPTURE_MEM, 0);
	assert_int_equal(ops->device_close(other), RX_GPU_OK);
}

static void memory_and_scratch(void **state)
{
	uint64_t a = 0;
	uint64_t b = 0;
	uint64_t c = 0;
	void *stream = NULL;
	uint8_t bytes[64];
	struct rx_gpu_memory memory;
	struct rx_gpu_stats stats;

	(void)state;
	assert_int_equal(ops->alloc_words(device, 8192, &a, NULL), RX_GPU_OK);
	assert_int_equal(ops->describe(gpu, a + 100, &memory, NULL), RX_GPU_OK);
	assert_int_equal(memory.base, a);
	assert_int_equal(memory.bytes, 8192);
	assert_int_equal(memory.kind, RX_GPU_MEM_PLAIN);
	assert_int_equal(ops->describe(gpu, (uintptr_t)&a, &memory, NULL), RX_GPU_OK);
	assert_int_equal(memory.kind, RX_GPU_MEM_HOST);
	assert_int_equal(ops->stream_open(device, false, &stream, NULL), RX_GPU_OK);
	memset(bytes, 77, 64);
	user->write(a, bytes, 64);
	memset(bytes, 0, 64);
	assert_int_equal(ops->copy(device, stream, a + 4096, a, 64, NULL), RX_GPU_OK);
	backend_wait_idle(stream);
	user->read(bytes, a + 4096, 64);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(bytes[i], 77);
	ops->stream_close(device, stream);
	ops->free(device, a);
	assert_int_equal(ops->scratch_get(device, 600 << 10, &a, NULL), RX_GPU_OK);
	assert_int_equal(ops->scratch_get(device, 600 << 10, &b, NULL), RX_GPU_BUSY);
	assert_int_equal(ops->scratch_get(device, 300, &b, NULL), RX_GPU_OK);
	assert_int_equal(ops->scratch_get(device, 2 << 20, &c, NULL), RX_GPU_E_LIMIT);
	assert_true(b >= a + (600 << 10));
	ops->scratch_put(device, a);
	assert_int_equal(ops->scratch_get(device, 256, &c, NULL), RX_GPU_OK);
	assert_int_equal(c, a);
	ops->scratch_put(device, b);
	ops->scratch_put(device, c);
	ops->device_stats(device, &stats);
	assert_int_equal(stats.scratch_bytes, 0);
	assert_int_equal(stats.scratch_high_bytes, (600 << 10) + 512);
}

/* Last: the double has no way back either. */
static void a_lost_device_stays_lost(void **state)
{
	struct rx_gpu_launch launch = {.kernel = "emu_crash", .n_blocks = 1, .n_threads = 1};
	struct rx_dev_words args = {0};
	struct rx_gpu_error error = {0};
	void *stream = NULL;
	int result = RX_GPU_OK;

	(void)state;
	launch.args = &args;
	launch.args_bytes = sizeof(args);
	assert_int_equal(ops->stream_open(device, false, &stream, NULL), RX_GPU_OK);
	launch.kernel = "no_such_kernel";
	assert_int_equal(ops->launch(device, stream, &launch, &error), RX_GPU_E_UNSUPPORTED);
	assert_non_null(strstr(error.text, "no_such_kernel"));
	launch.kernel = "emu_crash";
	assert_int_equal(ops->launch(device, stream, &launch, &error), RX_GPU_OK);
	for (int i = 0; i < WAIT_TURNS && result != RX_GPU_E_DEVICE; i++) {
		result = ops->stream_query(device, stream, &error);
		(void)usleep(1000);
	}
	assert_int_equal(result, RX_GPU_E_DEVICE);
	assert_int_equal(error.native, 700);
	assert_int_equal(ops->device_state(device, &error), RX_GPU_E_DEVICE);
	assert_int_equal(ops->copy(device, stream, 1, 1, 1, &error), RX_GPU_E_DEVICE);
}

static void exactly_one_symbol(void **state)
{
	char command[700];

	(void)state;
	(void)snprintf(command, sizeof(command),
		"test \"$(nm -D --defined-only %s/.libs/rcclx_backend_%s.so | awk '$3 !~ /^__/ {print $3}')\" = %s",
		getenv("RCCLX_BUILDDIR") ? getenv("RCCLX_BUILDDIR") : ".", flavour,
		RX_BACKEND_SYMBOL);
	assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exactly_one_symbol),
		cmocka_unit_test_setup_teardown(
			devices_are_described, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			absence_has_a_reason, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			plain_memory_is_shared, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			virtual_memory_is_shared, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			pieces_are_proven_one_by_one, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			one_sample_proves_what_it_touches, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			zeros_prove_nothing, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			wrong_memory_is_found_out, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			replicas_prove_nothing, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			refusals_and_lies, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			the_cache_is_bounded, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			used_memory_is_unmapped_later, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			streams_write_and_wait, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			capture_that_does_not_record_is_noticed, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			memory_and_scratch, backend_set_up, backend_tear_down),
		cmocka_unit_test_setup_teardown(
			a_lost_device_stays_lost, backend_set_up, backend_tear_down),
	};

	if (argc == 3) {
		backend_load(argv[1]);
		return own(atoi(argv[2]));
	}
	return BACKEND_RUN(tests);
}
