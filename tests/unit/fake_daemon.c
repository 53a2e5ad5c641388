/* SPDX-License-Identifier: MIT */
#include "fake_daemon.h"

#include "../../shm/rx_clock.h"
#include "../../shm/rx_memfd.h"
#include "../../shm/rx_wake.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static void *run(void *arg)
{
	struct fake *fake = arg;

	fake->script(fake);
	return NULL;
}

static struct fake *fake_new(fake_fn script, void *arg)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake->script = script;
	fake->arg = arg;
	fake->listen_fd = -1;
	fake->fd = -1;
	fake->client_fd = -1;
	fake->doorbell = -1;
	for (uint32_t i = 0; i < FAKE_REGIONS; i++)
		fake->region_fds[i] = -1;
	return fake;
}

struct fake *fake_listen(fake_fn script, void *arg)
{
	static unsigned int n_made;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct fake *fake = fake_new(script, arg);

	(void)snprintf(fake->path, sizeof(fake->path), "/tmp/rcclx-fake-%d-%u.sock", (int)getpid(),
		n_made++);
	(void)unlink(fake->path);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", fake->path);
	fake->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(
		bind(fake->listen_fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fake->listen_fd, 4), 0);
	assert_int_equal(pthread_create(&fake->thread, NULL, run, fake), 0);
	return fake;
}

struct fake *fake_pair(fake_fn script, void *arg)
{
	struct fake *fake = fake_new(script, arg);
	int fds[2] = {-1, -1};

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	fake->fd = fds[0];
	fake->client_fd = fds[1];
	assert_int_equal(pthread_create(&fake->thread, NULL, run, fake), 0);
	return fake;
}

void fake_join(struct fake *fake)
{
	char failure[sizeof(fake->failure)];

	assert_int_equal(pthread_join(fake->thread, NULL), 0);
	fake_hang_up(fake);
	if (fake->listen_fd >= 0) {
		(void)close(fake->listen_fd);
		(void)unlink(fake->path);
	}
	if (fake->doorbell >= 0)
		(void)close(fake->doorbell);
	rx_map_close(&fake->s_map);
	rx_map_close(&fake->d_map);
	for (uint32_t i = 0; i < FAKE_REGIONS; i++) {
		if (fake->region_fds[i] >= 0)
			(void)close(fake->region_fds[i]);
	}
	memcpy(failure, fake->failure, sizeof(failure));
	free(fake);
	if (failure[0])
		fail_msg("%s", failure);
}

bool fake_check(struct fake *fake, bool condition, const char *text, int line)
{
	if (!condition && !fake->failure[0])
		(void)snprintf(fake->failure, sizeof(fake->failure),
			"in the fake daemon's script, line %d: %s", line, text);
	return condition;
}

bool fake_accept(struct fake *fake)
{
	struct pollfd p = {.fd = fake->listen_fd, .events = POLLIN};

	if (!FAKE_CHECK(fake, poll(&p, 1, PATIENCE_MS) == 1))
		return false;
	fake->fd = accept4(fake->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	return FAKE_CHECK(fake, fake->fd >= 0);
}

bool fake_recv(struct fake *fake, struct rx_msg *msg_p)
{
	struct pollfd p = {.fd = fake->fd, .events = POLLIN};
	const char *why = NULL;
	int r = 0;

	if (!FAKE_CHECK(fake, poll(&p, 1, PATIENCE_MS) == 1))
		return false;
	r = rx_frame_recv(fake->fd, &fake->frame, &why);
	if (r == RX_FRAME_E_CLOSED)
		return false;
	return FAKE_CHECK(fake, r == RX_FRAME_OK) &&
	       FAKE_CHECK(fake, rx_msg_unpack(fake->frame.header.type, fake->frame.header.serial,
					fake->frame.payload, fake->frame.header.bytes, &fake->arena,
					msg_p, &why) == 0);
}

bool fake_expect(struct fake *fake, enum rx_msg_type type, struct rx_msg *msg_p)
{
	return FAKE_CHECK(fake, fake_recv(fake, msg_p)) && FAKE_CHECK(fake, msg_p->type == type);
}

void fake_send(struct fake *fake, const struct rx_msg *msg, const int *fds, uint32_t n_fds)
{
	uint8_t payload[4096];
	size_t bytes = 0;

	FAKE_CHECK(fake, rx_msg_pack(msg, payload, sizeof(payload), &bytes) == 0);
	FAKE_CHECK(fake, rx_frame_send(fake->fd, msg->type, msg->serial, payload, bytes, fds,
				 n_fds) == RX_FRAME_OK);
}

void fake_reply_ok(struct fake *fake, const struct rx_msg *request)
{
	struct rx_msg ok = {.type = RX_MSG_OK, .serial = request->serial};

	if (request->serial != 0)
		fake_send(fake, &ok, NULL, 0);
}

void fake_hang_up(struct fake *fake)
{
	if (fake->fd >= 0)
		(void)close(fake->fd);
	fake->fd = -1;
}

static bool make_rings(struct fake *fake, uint32_t n, int fds[3])
{
	bool good =
		FAKE_CHECK(fake,
			rx_memfd_new("s", rx_ring_s_bytes(n), RX_MEMFD_SHARED, &fds[0]) == 0) &&
		FAKE_CHECK(fake,
			rx_memfd_new("d", rx_ring_d_bytes(n), RX_MEMFD_ONE_WRITER, &fds[1]) == 0) &&
		FAKE_CHECK(fake, rx_doorbell_new(&fds[2]) == 0) &&
		FAKE_CHECK(fake,
			rx_map_open(&fake->s_map, fds[0], rx_ring_s_bytes(n), RX_MAP_RO) == 0) &&
		FAKE_CHECK(fake,
			rx_map_open(&fake->d_map, fds[1], rx_ring_d_bytes(n), RX_MAP_RW) == 0) &&
		FAKE_CHECK(fake, rx_memfd_seal_writer(fds[1]) == 0);

	return good &&
	       FAKE_CHECK(fake, rx_ring_init(&fake->ring, &fake->s_map, &fake->d_map, n) == 0);
}

bool fake_hello(struct fake *fake, uint32_t sq_entries)
{
	static const uint8_t instance[RX_INSTANCE_BYTES] = {1, 2, 3};
	int fds[3] = {-1, -1, -1};
	struct rx_msg hello;

	if (!fake_accept(fake) || !fake_expect(fake, RX_MSG_HELLO, &hello) ||
		!make_rings(fake, sq_entries, fds))
		return false;

	struct rx_msg reply = {
		.type = RX_MSG_HELLO_REPLY,
		.serial = hello.serial,
		.hello_reply =
			{
				.version = 1,
				.session_id = 77,
				.daemon_version = "fake",
				.sq_entries = sq_entries,
				.instance = {instance, sizeof(instance)},
				.max_alloc_bytes = 1 << 30,
			},
	};

	fake_send(fake, &reply, fds, 3);
	(void)close(fds[0]);
	(void)close(fds[1]);
	fake->doorbell = fds[2];
	return true;
}

/* ---- memory ---- */

static uint32_t free_handle(const struct fake *fake)
{
	for (uint32_t i = 0; i < FAKE_REGIONS; i++) {
		if (fake->region_fds[i] < 0)
			return i + 1;
	}
	return 0;
}

static void refuse(struct fake *fake, const struct rx_msg *request, int32_t code)
{
	struct rx_msg error = {
		.type = RX_MSG_ERROR,
		.serial = request->serial,
		.error = {.code = code, .text = "the fake daemon refuses"},
	};

	fake_send(fake, &error, NULL, 0);
}

static void serve_alloc(struct fake *fake, const struct rx_msg *request)
{
	uint64_t bytes = rx_align_up(request->mem_alloc.bytes, 4096);
	uint32_t handle = free_handle(fake);
	int fd = -1;

	if (handle == 0 || bytes > 1ull << 30) {
		refuse(fake, request, RCCLX_ERR_LIMIT);
		return;
	}
	FAKE_CHECK(fake, rx_memfd_new("region", bytes, RX_MEMFD_SHARED, &fd) == 0);
	fake->region_fds[handle - 1] = fd;
	fake->region_bytes[handle - 1] = bytes;
	atomic_fetch_add(&fake->n_allocs, 1);

	struct rx_msg reply = {
		.type = RX_MSG_MEM_REPLY,
		.serial = request->serial,
		.mem_reply = {.handle = handle, .region_id = 1000 + handle, .bytes = bytes},
	};

	fake_send(fake, &reply, &fd, 1);
}

static void serve_register(struct fake *fake, const struct rx_msg *request)
{
	uint32_t handle = free_handle(fake);
	struct rx_msg reply = {
		.type = RX_MSG_MEM_REPLY,
		.serial = request->serial,
		.mem_reply =
			{
				.handle = handle,
				.region_id = 1000 + handle,
				.bytes = request->mem_register.bytes,
			},
	};

	if (!FAKE_CHECK(fake, handle != 0))
		return;
	fake->region_fds[handle - 1] = rx_fdset_take(&fake->frame.fds, 0);
	fake->region_bytes[handle - 1] = request->mem_register.bytes;
	fake_send(fake, &reply, NULL, 0);
}

static void serve_free(struct fake *fake, const struct rx_msg *request)
{
	uint32_t handle = request->mem_free.handle;

	if (FAKE_CHECK(fake, handle >= 1 && handle <= FAKE_REGIONS) &&
		FAKE_CHECK(fake, fake->region_fds[handle - 1] >= 0)) {
		(void)close(fake->region_fds[handle - 1]);
		fake->region_fds[handle - 1] = -1;
	}
	atomic_fetch_add(&fake->n_frees, 1);
	fake_reply_ok(fake, request);
}

static void serve_import(struct fake *fake, const struct rx_msg *request)
{
	uint64_t handle = request->mem_import.region_id - 1000;
	struct rx_msg reply = {.type = RX_MSG_MEM_IMPORT_REPLY, .serial = request->serial};

	atomic_fetch_add(&fake->n_imports, 1);
	if (handle < 1 || handle > FAKE_REGIONS || fake->region_fds[handle - 1] < 0) {
		refuse(fake, request, RCCLX_ERR_INVALID);
		return;
	}
	reply.mem_import_reply.bytes = fake->region_bytes[handle - 1];
	fake_send(fake, &reply, &fake->region_fds[handle - 1], 1);
}

void fake_serve(struct fake *fake)
{
	struct rx_msg msg;

	while (fake_recv(fake, &msg)) {
		if (msg.type == RX_MSG_MEM_ALLOC)
			serve_alloc(fake, &msg);
		else if (msg.type == RX_MSG_MEM_REGISTER)
			serve_register(fake, &msg);
		else if (msg.type == RX_MSG_MEM_FREE)
			serve_free(fake, &msg);
		else if (msg.type == RX_MSG_MEM_IMPORT)
			serve_import(fake, &msg);
		else
			fake_reply_ok(fake, &msg);
		rx_fdset_close(&fake->frame.fds);
	}
}

void fake_session(struct fake *fake)
{
	if (fake_hello(fake, 8))
		fake_serve(fake);
}

/* ---- leaks ---- */

unsigned int open_fds(void)
{
	unsigned int n = 0;
	DIR *dir = opendir("/proc/self/fd");

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

int fake_fds_setup(void **state)
{
	*state = (void *)(uintptr_t)open_fds();
	return 0;
}

int fake_fds_teardown(void **state)
{
	assert_int_equal(open_fds(), (uintptr_t)*state);
	return 0;
}

uint64_t now_ms(void)
{
	return rx_now_ns() / RX_NS_PER_MS;
}
