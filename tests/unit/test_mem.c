/* SPDX-License-Identifier: MIT */
/* Registered memory: finding it, refusing what overlaps, bounce memory, memory of peers. */
#include "fake_daemon.h"

#include "../../client/comm.h"
#include "../../client/session.h"
#include "../../shm/rx_memfd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

struct fixture {
	struct fake *fake;
	struct rcclx_client *client;
};

static struct fixture open_session(void)
{
	struct fixture f = {.fake = fake_listen(fake_session, NULL)};

	assert_int_equal(rcclx_connect(f.fake->path, NULL, &f.client), RCCLX_OK);
	return f;
}

static void close_session(struct fixture *f)
{
	assert_int_equal(rcclx_disconnect(f->client), RCCLX_OK);
	fake_join(f->fake);
}

/* ---- allocated ---- */

static void test_find(void **state)
{
	struct fixture f = open_session();
	struct mem_ref ref = {0};
	void *ptr = NULL;
	uint8_t *p = NULL;

	(void)state;
	assert_false(mem_find(f.client, &f, 1, &ref));
	assert_int_equal(rcclx_mem_alloc(f.client, 5000, &ptr), RCCLX_OK);
	p = ptr;
	/* Whole pages, zeroed, all of them usable. */
	assert_int_equal((uintptr_t)p % PAGE, 0);
	for (size_t i = 0; i < 2 * PAGE; i++)
		assert_int_equal(p[i], 0);
	assert_true(mem_find(f.client, p, 2 * PAGE, &ref));
	assert_int_equal(ref.region_id, 1001);
	assert_int_equal(ref.handle, 1);
	assert_int_equal(ref.offset, 0);
	assert_true(mem_find(f.client, p + 2 * PAGE - 1, 1, &ref));
	assert_int_equal(ref.offset, 2 * PAGE - 1);
	assert_false(mem_find(f.client, p + 2 * PAGE - 1, 2, &ref));
	assert_false(mem_find(f.client, p - 1, 1, &ref));
	assert_false(mem_find(f.client, p - 1, 2, &ref));
	assert_false(mem_find(f.client, p, UINT64_MAX, &ref));
	assert_ptr_equal(mem_address(f.client, 1001, 7, 1), p + 7);
	assert_null(mem_address(f.client, 1001, 2 * PAGE, 1));
	assert_null(mem_address(f.client, 1001, UINT64_MAX, 2));
	assert_null(mem_address(f.client, 1002, 0, 1));
	assert_int_equal(rcclx_mem_free(f.client, p + 1), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_mem_free(f.client, p), RCCLX_OK);
	assert_int_equal(rcclx_mem_free(f.client, p), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_mem_free(f.client, NULL), RCCLX_OK);
	assert_false(mem_find(f.client, p, 1, &ref));
	assert_int_equal(rcclx_mem_alloc(f.client, 0, &ptr), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_mem_alloc(f.client, 1ull << 40, &ptr), RCCLX_ERR_LIMIT);
	assert_text("the fake daemon refuses");
	close_session(&f);
}

static void test_many_regions(void **state)
{
	enum { N = 100 };
	struct fixture f = open_session();
	struct mem_ref ref = {0};
	void *ptrs[N];

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(rcclx_mem_alloc(f.client, (1 + i % 3) * PAGE, &ptrs[i]), RCCLX_OK);
	for (uint32_t i = 0; i < N; i++) {
		assert_true(mem_find(f.client, (char *)ptrs[i] + 5, 8, &ref));
		assert_int_equal(ref.handle, i + 1);
		assert_int_equal(ref.offset, 5);
	}
	/* Every other one goes; the rest is still found. */
	for (uint32_t i = 0; i < N; i += 2)
		assert_int_equal(rcclx_mem_free(f.client, ptrs[i]), RCCLX_OK);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(mem_find(f.client, ptrs[i], 8, &ref), i % 2);
	assert_int_equal(rcclx_disconnect(f.client), RCCLX_ERR_BUSY);
	assert_text("50 pieces of memory");
	for (uint32_t i = 1; i < N; i += 2)
		assert_int_equal(rcclx_mem_free(f.client, ptrs[i]), RCCLX_OK);
	close_session(&f);
}

static void hang_up_after_alloc(struct fake *fake)
{
	struct rx_msg msg;

	if (!fake_hello(fake, 8) || !fake_expect(fake, RX_MSG_MEM_ALLOC, &msg))
		return;

	struct rx_msg reply = {
		.type = RX_MSG_MEM_REPLY,
		.serial = msg.serial,
		.mem_reply = {.handle = 1, .region_id = 1, .bytes = PAGE},
	};
	int fd = -1;

	FAKE_CHECK(fake, rx_memfd_new("region", PAGE, RX_MEMFD_SHARED, &fd) == 0);
	fake_send(fake, &reply, &fd, 1);
	(void)close(fd);
	fake_hang_up(fake);
}

static void test_free_without_daemon(void **state)
{
	struct fixture f = {.fake = fake_listen(hang_up_after_alloc, NULL)};
	void *ptr = NULL;

	(void)state;
	assert_int_equal(rcclx_connect(f.fake->path, NULL, &f.client), RCCLX_OK);
	assert_int_equal(rcclx_mem_alloc(f.client, 1, &ptr), RCCLX_OK);
	memset(ptr, 1, PAGE);
	assert_int_equal(rcclx_mem_free(f.client, ptr), RCCLX_OK);
	assert_int_equal(rcclx_mem_alloc(f.client, 1, &ptr), RCCLX_ERR_DAEMON_LOST);
	close_session(&f);
}

/* ---- answers of the daemon that cannot be right ---- */

static void too_little(struct fake *fake)
{
	struct rx_msg msg;
	int fd = -1;

	if (!fake_hello(fake, 8) || !fake_expect(fake, RX_MSG_MEM_ALLOC, &msg))
		return;

	struct rx_msg reply = {
		.type = RX_MSG_MEM_REPLY,
		.serial = msg.serial,
		.mem_reply = {.handle = 3, .region_id = 1, .bytes = PAGE},
	};

	FAKE_CHECK(fake, rx_memfd_new("region", PAGE, RX_MEMFD_SHARED, &fd) == 0);
	fake_send(fake, &reply, &fd, 1);
	if (fake_expect(fake, RX_MSG_MEM_FREE, &msg))
		FAKE_CHECK(fake, msg.mem_free.handle == 3);
	/* A size that the file does not have; no file. */
	for (int i = 0; i < 2; i++) {
		if (!fake_expect(fake, RX_MSG_MEM_ALLOC, &msg))
			break;
		reply.serial = msg.serial;
		reply.mem_reply.bytes = 8 * PAGE;
		fake_send(fake, &reply, &fd, i == 0 ? 1 : 0);
		fake_expect(fake, RX_MSG_MEM_FREE, &msg);
	}
	(void)close(fd);
	(void)fake_recv(fake, &msg);
}

static void test_wrong_replies(void **state)
{
	struct fixture f = {.fake = fake_listen(too_little, NULL)};
	void *ptr = NULL;

	(void)state;
	assert_int_equal(rcclx_connect(f.fake->path, NULL, &f.client), RCCLX_OK);
	assert_int_equal(rcclx_mem_alloc(f.client, 2 * PAGE, &ptr), RCCLX_ERR_INTERNAL);
	assert_int_equal(rcclx_mem_alloc(f.client, 2 * PAGE, &ptr), RCCLX_ERR_SYSTEM);
	assert_int_equal(rcclx_mem_alloc(f.client, 2 * PAGE, &ptr), RCCLX_ERR_INTERNAL);
	assert_null(ptr);
	close_session(&f);
}

/* ---- registered ---- */

static void *map_file(int fd, uint64_t bytes)
{
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(addr != MAP_FAILED);
	return addr;
}

static void test_register(void **state)
{
	struct fixture f = open_session();
	struct rcclx_mem *first = NULL;
	struct rcclx_mem *second = NULL;
	struct rcclx_mem *third = NULL;
	struct mem_ref ref = {0};
	uint8_t *p = NULL;
	int fd = -1;

	(void)state;
	assert_int_equal(rx_memfd_new("user", 8 * PAGE, RX_MEMFD_SHARED, &fd), 0);
	p = map_file(fd, 8 * PAGE);
	assert_int_equal(rcclx_mem_register(f.client, p + 2 * PAGE, 2 * PAGE, fd, 2 * PAGE, &first),
		RCCLX_OK);
	assert_true(mem_find(f.client, p + 2 * PAGE, 2 * PAGE, &ref));
	assert_false(mem_find(f.client, p, 1, &ref));
	assert_false(mem_find(f.client, p + 4 * PAGE, 1, &ref));
	/* From below, from above, inside, around; and each side by side, which is fine. */
	assert_int_equal(rcclx_mem_register(f.client, p + PAGE, 2 * PAGE, fd, PAGE, &second),
		RCCLX_ERR_INVALID);
	assert_text("overlap");
	assert_int_equal(
		rcclx_mem_register(f.client, p + 3 * PAGE, 2 * PAGE, fd, 3 * PAGE, &second),
		RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_mem_register(f.client, p + 2 * PAGE, PAGE, fd, 2 * PAGE, &second),
		RCCLX_ERR_INVALID);
	assert_int_equal(
		rcclx_mem_register(f.client, p, 8 * PAGE, fd, 0, &second), RCCLX_ERR_INVALID);
	/* What was refused has been given back. */
	assert_int_equal(atomic_load(&f.fake->n_frees), 4);
	assert_int_equal(rcclx_mem_register(f.client, p, 2 * PAGE, fd, 0, &second), RCCLX_OK);
	assert_int_equal(rcclx_mem_register(f.client, p + 4 * PAGE, 4 * PAGE, fd, 4 * PAGE, &third),
		RCCLX_OK);
	/* Three regions: a range over two of them is not inside one. */
	assert_false(mem_find(f.client, p + PAGE, 2 * PAGE, &ref));
	assert_int_equal(rcclx_mem_free(f.client, p), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_mem_deregister(second), RCCLX_OK);
	assert_int_equal(rcclx_mem_deregister(first), RCCLX_OK);
	assert_int_equal(rcclx_mem_deregister(third), RCCLX_OK);
	/* Still the caller's. */
	memset(p, 3, 8 * PAGE);
	(void)munmap(p, 8 * PAGE);
	(void)close(fd);
	close_session(&f);
}

static void test_refused_registrations(void **state)
{
	struct fixture f = open_session();
	struct rcclx_mem *mem = NULL;
	int unsealed = memfd_create("user", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	uint8_t *p = NULL;
	int fd = -1;

	(void)state;
	assert_int_equal(rx_memfd_new("user", 2 * PAGE, RX_MEMFD_SHARED, &fd), 0);
	assert_int_equal(ftruncate(unsealed, 2 * PAGE), 0);
	p = map_file(fd, 2 * PAGE);
	assert_int_equal(rcclx_mem_register(f.client, p + 1, PAGE, fd, 0, &mem), RCCLX_ERR_INVALID);
	assert_text("ptr");
	assert_int_equal(rcclx_mem_register(f.client, p, PAGE + 1, fd, 0, &mem), RCCLX_ERR_INVALID);
	assert_text("bytes is 4097");
	assert_int_equal(rcclx_mem_register(f.client, p, 0, fd, 0, &mem), RCCLX_ERR_INVALID);
	assert_int_equal(rcclx_mem_register(f.client, p, PAGE, fd, 1, &mem), RCCLX_ERR_INVALID);
	assert_text("offset is 1");
	assert_int_equal(
		rcclx_mem_register(f.client, p, 2 * PAGE, fd, PAGE, &mem), RCCLX_ERR_INVALID);
	assert_text("beyond the file's end at 8192");
	assert_int_equal(rcclx_mem_register(f.client, p, UINT64_MAX - PAGE + 1, fd, 0, &mem),
		RCCLX_ERR_INVALID);
	assert_int_equal(
		rcclx_mem_register(f.client, p, PAGE, unsealed, 0, &mem), RCCLX_ERR_INVALID);
	assert_text("F_SEAL_SHRINK");
	assert_int_equal(rcclx_mem_register(f.client, p, PAGE, 9999, 0, &mem), RCCLX_ERR_INVALID);
	assert_text("no open file descriptor");
	assert_null(mem);
	/* None of them has bothered the daemon. */
	assert_int_equal(atomic_load(&f.fake->n_frees), 0);
	(void)munmap(p, 2 * PAGE);
	(void)close(fd);
	(void)close(unsealed);
	close_session(&f);
}

/* ---- several threads ---- */

static void *churn(void *arg)
{
	struct rcclx_client *client = arg;
	struct mem_ref ref;

	for (uint32_t i = 0; i < 50; i++) {
		uint8_t *p = NULL;
		void *ptr = NULL;

		if (rcclx_mem_alloc(client, (1 + i % 4) * PAGE, &ptr) != RCCLX_OK)
			return "alloc";
		p = ptr;
		p[0] = 1;
		if (!mem_find(client, p, PAGE, &ref) || ref.offset != 0)
			return "find";
		if (mem_address(client, ref.region_id, 0, 1) != p)
			return "address";
		if (rcclx_mem_free(client, p) != RCCLX_OK)
			return "free";
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct fixture f = open_session();
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, f.client), 0);
	for (int i = 0; i < 4; i++) {
		void *failure = NULL;

		assert_int_equal(pthread_join(threads[i], &failure), 0);
		assert_null(failure);
	}
	close_session(&f);
}

/* ---- bounce memory ---- */

static void test_bounce_is_shared_and_kept(void **state)
{
	enum { N = 65 };
	struct fixture f = open_session();
	struct bounce blocks[N];
	struct bounce other = BOUNCE_INIT;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(bounce_get(f.client, 100 + i, &blocks[i]), RCCLX_OK);
		memset(blocks[i].addr, (int)i, 100 + i);
	}
	/* 64 blocks of 4 KiB in the first region. */
	assert_int_equal(atomic_load(&f.fake->n_allocs), 2);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(((uint8_t *)blocks[i].addr)[99 + i], i);
		assert_int_equal(blocks[i].handle, 1 + i / 64);
		assert_int_equal(blocks[i].offset, i % 64 * PAGE);
	}
	for (uint32_t i = 0; i < N; i++)
		bounce_put(f.client, &blocks[i]);
	assert_null(blocks[0].slab);
	bounce_put(f.client, &blocks[0]);
	assert_int_equal(bounce_get(f.client, PAGE, &other), RCCLX_OK);
	assert_int_equal(atomic_load(&f.fake->n_allocs), 2);
	bounce_put(f.client, &other);
	/* Another size is another slab. */
	assert_int_equal(bounce_get(f.client, PAGE + 1, &other), RCCLX_OK);
	assert_int_equal(atomic_load(&f.fake->n_allocs), 3);
	bounce_put(f.client, &other);
	assert_int_equal(atomic_load(&f.fake->n_frees), 0);
	close_session(&f);
}

static void test_bounce_is_bounded(void **state)
{
	const uint64_t quarter = BOUNCE_IDLE_MAX / 4;
	struct fixture f = open_session();
	struct bounce blocks[6];

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(bounce_get(f.client, quarter - i, &blocks[i]), RCCLX_OK);
	assert_int_equal(atomic_load(&f.fake->n_allocs), 6);
	for (uint32_t i = 0; i < 6; i++)
		bounce_put(f.client, &blocks[i]);
	/* Four are kept. */
	assert_int_equal(atomic_load(&f.fake->n_frees), 2);
	assert_int_equal(f.client->bounce.idle_bytes, BOUNCE_IDLE_MAX);
	/* One is taken out: there is room for another idle one of its size. */
	assert_int_equal(bounce_get(f.client, quarter, &blocks[0]), RCCLX_OK);
	assert_int_equal(f.client->bounce.idle_bytes, 3 * quarter);
	/* More than can ever be kept is not rounded up, and given back at once. */
	assert_int_equal(bounce_get(f.client, BOUNCE_IDLE_MAX + 1, &blocks[1]), RCCLX_OK);
	assert_int_equal(f.fake->region_bytes[blocks[1].handle - 1], BOUNCE_IDLE_MAX + PAGE);
	bounce_put(f.client, &blocks[1]);
	assert_int_equal(atomic_load(&f.fake->n_frees), 3);
	/* In use at the end: unmapped all the same. */
	close_session(&f);
}

static void test_bounce_refused(void **state)
{
	struct fixture f = open_session();
	struct bounce block = BOUNCE_INIT;

	(void)state;
	assert_int_equal(bounce_get(f.client, 1ull << 40, &block), RCCLX_ERR_LIMIT);
	assert_null(block.slab);
	close_session(&f);
}

/* ---- memory of peers ---- */

struct peer_fixture {
	struct fixture session;
	struct rx_fabric_ctl *ctl;
	struct rcclx_comm comm;
};

/* As far as importing goes: a communicator with a control page. */
static void open_comm(struct peer_fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->session = open_session();
	f->ctl = aligned_alloc(PAGE, PAGE);
	assert_non_null(f->ctl);
	memset(f->ctl, 0, PAGE);
	f->comm.client = f->session.client;
	f->comm.n_ranks = 2;
	f->comm.seq = 1;
	f->comm.fabric.ctl = f->ctl;
	f->comm.fabric.n_ranks = 2;
}

static void close_comm(struct peer_fixture *f)
{
	import_clear(&f->comm.imports);
	free(f->ctl);
	close_session(&f->session);
}

/* A region that this process does not know as its own: as if a peer had allocated it. */
static struct mem_region peer_region(struct peer_fixture *f, uint64_t bytes)
{
	struct mem_region region;

	assert_int_equal(mem_region_open(f->session.client, bytes, &region), RCCLX_OK);
	return region;
}

static void test_import(void **state)
{
	struct peer_fixture f;
	struct mem_region region;
	void *addr = NULL;
	void *again = NULL;

	(void)state;
	open_comm(&f);
	region = peer_region(&f, 3 * PAGE);
	assert_int_equal(import_find(&f.comm, region.region_id, PAGE, 8, &addr), RCCLX_OK);
	assert_ptr_not_equal(addr, (char *)region.map.addr + PAGE);
	memcpy(addr, "a peer's", 8);
	assert_memory_equal((char *)region.map.addr + PAGE, "a peer's", 8);
	/* Once. */
	assert_int_equal(import_find(&f.comm, region.region_id, 0, 3 * PAGE, &again), RCCLX_OK);
	assert_ptr_equal((char *)again + PAGE, addr);
	assert_int_equal(atomic_load(&f.session.fake->n_imports), 1);
	assert_int_equal(
		import_find(&f.comm, region.region_id, 1, 3 * PAGE, &again), RCCLX_ERR_INVALID);
	assert_int_equal(
		import_find(&f.comm, region.region_id, UINT64_MAX, 2, &again), RCCLX_ERR_INVALID);
	assert_int_equal(import_find(&f.comm, 999999, 0, 1, &again), RCCLX_ERR_INVALID);
	mem_region_close(f.session.client, &region);
	close_comm(&f);
}

static void test_own_memory_is_not_imported(void **state)
{
	struct peer_fixture f;
	struct mem_ref ref = {0};
	void *ptr = NULL;
	void *addr = NULL;

	(void)state;
	open_comm(&f);
	assert_int_equal(rcclx_mem_alloc(f.session.client, PAGE, &ptr), RCCLX_OK);
	assert_true(mem_find(f.session.client, ptr, PAGE, &ref));
	assert_int_equal(import_find(&f.comm, ref.region_id, 16, 16, &addr), RCCLX_OK);
	assert_ptr_equal(addr, (char *)ptr + 16);
	assert_int_equal(atomic_load(&f.session.fake->n_imports), 0);
	assert_int_equal(rcclx_mem_free(f.session.client, ptr), RCCLX_OK);
	close_comm(&f);
}

/* Somebody frees memory in the middle of an operation: its addresses stay good until it ends. */
static void test_dropping_imports(void **state)
{
	struct peer_fixture f;
	struct mem_region regions[3];
	void *addrs[3];
	void *again = NULL;

	(void)state;
	open_comm(&f);
	for (int i = 0; i < 3; i++)
		regions[i] = peer_region(&f, PAGE);
	assert_int_equal(import_find(&f.comm, regions[0].region_id, 0, 1, &addrs[0]), RCCLX_OK);
	f.comm.seq = 2;
	assert_int_equal(import_find(&f.comm, regions[1].region_id, 0, 1, &addrs[1]), RCCLX_OK);
	atomic_store(&f.ctl->mem_generation, 1);
	assert_int_equal(import_find(&f.comm, regions[2].region_id, 0, 1, &addrs[2]), RCCLX_OK);
	/* The op before is over, its mapping is gone; this op's are there. */
	assert_int_equal(f.comm.imports.n_entries, 2);
	*(char *)addrs[1] = 1;
	*(char *)addrs[2] = 1;
	assert_int_equal(atomic_load(&f.session.fake->n_imports), 3);
	f.comm.seq = 3;
	assert_int_equal(import_find(&f.comm, regions[1].region_id, 0, 1, &again), RCCLX_OK);
	assert_int_equal(f.comm.imports.n_entries, 1);
	assert_int_equal(atomic_load(&f.session.fake->n_imports), 4);
	/* Nothing is freed any more: nothing is dropped. */
	f.comm.seq = 4;
	assert_int_equal(import_find(&f.comm, regions[1].region_id, 0, 1, &again), RCCLX_OK);
	f.comm.seq = 5;
	assert_int_equal(import_find(&f.comm, regions[1].region_id, 0, 1, &again), RCCLX_OK);
	assert_int_equal(atomic_load(&f.session.fake->n_imports), 4);
	for (int i = 0; i < 3; i++)
		mem_region_close(f.session.client, &regions[i]);
	close_comm(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_find),
		FAKE_TEST(test_many_regions),
		FAKE_TEST(test_free_without_daemon),
		FAKE_TEST(test_wrong_replies),
		FAKE_TEST(test_register),
		FAKE_TEST(test_refused_registrations),
		FAKE_TEST(test_threads),
		FAKE_TEST(test_bounce_is_shared_and_kept),
		FAKE_TEST(test_bounce_is_bounded),
		FAKE_TEST(test_bounce_refused),
		FAKE_TEST(test_import),
		FAKE_TEST(test_own_memory_is_not_imported),
		FAKE_TEST(test_dropping_imports),
	};

	return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
