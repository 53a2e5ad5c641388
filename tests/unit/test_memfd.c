/* SPDX-License-Identifier: MIT */
#include "shm_region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>

#define BYTES 8192u

/* ---- the n-th system call fails ---- */

static unsigned int fail_at; /* 0: never */
static int fail_errno;
static unsigned int n_calls;

static bool must_fail(void)
{
	if (fail_at == 0 || ++n_calls != fail_at)
		return false;
	errno = fail_errno;
	return true;
}

int __real_memfd_create(const char *name, unsigned int flags);
int __wrap_memfd_create(const char *name, unsigned int flags);
int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __real_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __real_fcntl(int fd, int cmd, long arg);
int __wrap_fcntl(int fd, int cmd, long arg);

int __wrap_memfd_create(const char *name, unsigned int flags)
{
	return must_fail() ? -1 : __real_memfd_create(name, flags);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	return must_fail() ? -1 : __real_fchmod(fd, mode);
}

int __wrap_ftruncate(int fd, off_t size)
{
	return must_fail() ? -1 : __real_ftruncate(fd, size);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
	return must_fail() ? -1 : __real_fallocate(fd, mode, offset, bytes);
}

int __wrap_fcntl(int fd, int cmd, long arg)
{
	return must_fail() ? -1 : __real_fcntl(fd, cmd, arg);
}

static void fail_nth(unsigned int n, int error)
{
	fail_at = n;
	fail_errno = error;
	n_calls = 0;
}

static void test_nth_call_fails(void **state)
{
	unsigned int n_fds = count_fds();
	unsigned int n_failed = 0;

	(void)state;
	for (unsigned int n = 1;; n++) {
		int fd = -7;
		int r = 0;

		fail_nth(n, EIO);
		r = rx_memfd_new("rx-fault", BYTES, RX_MEMFD_SHARED, &fd);
		fail_nth(0, 0);
		if (r == 0) {
			close(fd);
			break;
		}
		assert_int_equal(r, -EIO);
		assert_int_equal(fd, -7);
		assert_int_equal(count_fds(), n_fds);
		n_failed++;
	}
	/* memfd_create, fchmod, ftruncate, fallocate, F_ADD_SEALS */
	assert_int_equal(n_failed, 5);
	assert_int_equal(count_fds(), n_fds);
}

static void test_old_kernel(void **state)
{
	int fd = -1;

	(void)state;
	/* The first memfd_create() does not know MFD_NOEXEC_SEAL. */
	fail_nth(1, EINVAL);
	assert_int_equal(rx_memfd_new("rx-old", BYTES, RX_MEMFD_SHARED, &fd), 0);
	fail_nth(0, 0);
	assert_true(fcntl(fd, F_GET_SEALS) & F_SEAL_SEAL);
	close(fd);
}

static void test_interrupted_allocation(void **state)
{
	int fd = -1;

	(void)state;
	fail_nth(4, EINTR);
	assert_int_equal(rx_memfd_new("rx-intr", BYTES, RX_MEMFD_SHARED, &fd), 0);
	fail_nth(0, 0);
	close(fd);
}

/* ---- what a new file is ---- */

static void test_new(void **state)
{
	struct stat st = {0};
	int fd = -1;

	(void)state;
	assert_int_equal(rx_memfd_new("rx-new", 5000, RX_MEMFD_SHARED, &fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 8192);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* Allocated, not sparse. */
	assert_int_equal(st.st_blocks * 512, 8192);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	close(fd);
}

static void test_new_refuses(void **state)
{
	char name[300];
	int fd = -7;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(rx_memfd_new("rx", 0, RX_MEMFD_SHARED, &fd), -EINVAL);
	assert_int_equal(rx_memfd_new("rx", UINT64_MAX, RX_MEMFD_SHARED, &fd), -EFBIG);
	assert_int_equal(rx_memfd_new("rx", INT64_MAX, RX_MEMFD_SHARED, &fd), -EFBIG);
	assert_int_equal(rx_memfd_new(name, BYTES, RX_MEMFD_SHARED, &fd), -EINVAL);
	assert_int_equal(fd, -7);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void test_new_under_signals(void **state)
{
	const struct itimerval often = {{0, 5000}, {0, 5000}};
	const struct itimerval never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_alarm};
	struct sigaction old = {0};
	struct stat st = {0};
	int fd = -1;
	int r = 0;

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	r = rx_memfd_new("rx-signals", 64u << 20, RX_MEMFD_SHARED, &fd);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	(void)alarm(TEST_LIMIT_S);
	assert_int_equal(r, 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_blocks * 512, 64u << 20);
	close(fd);
}

/* ---- seals ---- */

static int reopen(int fd, int flags)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC);
}

static int child_shared(void *arg)
{
	int fd = *(int *)arg;
	uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHILD_CHECK(ftruncate(fd, 0) < 0 && errno == EPERM);
	CHILD_CHECK(ftruncate(fd, 2 * BYTES) < 0 && errno == EPERM);
	CHILD_CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0 && errno == EPERM);
	CHILD_CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 && errno == EPERM);
	CHILD_CHECK(p != MAP_FAILED);
	p[BYTES - 1] = 42;
	return 0;
}

static void test_shared_seals(void **state)
{
	struct rx_map map = RX_MAP_INIT;
	int fd = -1;

	(void)state;
	assert_int_equal(rx_memfd_new("rx-shared", BYTES, RX_MEMFD_SHARED, &fd), 0);
	assert_int_equal(rx_map_open(&map, fd, BYTES, RX_MAP_RO), 0);
	assert_int_equal(child_run(child_shared, &fd), 0);
	assert_int_equal(((uint8_t *)map.addr)[BYTES - 1], 42);
	rx_map_close(&map);
	close(fd);
}

/* Everything that would let a stranger write, with the fd as given. */
static int check_unwritable(int fd)
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	uint8_t *p = NULL;

	CHILD_CHECK(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHILD_CHECK(errno == EPERM);
	CHILD_CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EPERM);
	CHILD_CHECK(fallocate(fd, punch, 0, BYTES) < 0 && errno == EPERM);
	CHILD_CHECK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, BYTES) < 0);
	CHILD_CHECK(ftruncate(fd, 0) < 0 && errno == EPERM);
	CHILD_CHECK(ftruncate(fd, 2 * BYTES) < 0 && errno == EPERM);
	CHILD_CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0 && errno == EPERM);
	p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	CHILD_CHECK(p != MAP_FAILED);
	CHILD_CHECK(p[0] == 7);
	CHILD_CHECK(mprotect(p, BYTES, PROT_READ | PROT_WRITE) < 0 && errno == EACCES);
	CHILD_CHECK(munmap(p, BYTES) == 0);
	return 0;
}

static int child_one_writer(void *arg)
{
	int fd = *(int *)arg;
	int again = reopen(fd, O_RDWR);

	CHILD_CHECK(check_unwritable(fd) == 0);
	CHILD_CHECK(again >= 0);
	CHILD_CHECK(check_unwritable(again) == 0);
	return 0;
}

static int child_other_uid(void *arg)
{
	int fd = *(int *)arg;

	CHILD_CHECK(setuid(65534) == 0);
	CHILD_CHECK(reopen(fd, O_RDWR) < 0 && errno == EACCES);
	CHILD_CHECK(reopen(fd, O_RDONLY) < 0 && errno == EACCES);
	return 0;
}

static void test_one_writer(void **state)
{
	struct rx_map map = RX_MAP_INIT;
	int fd = -1;

	(void)state;
	assert_int_equal(rx_memfd_new("rx-one", BYTES, RX_MEMFD_ONE_WRITER, &fd), 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(
		rx_map_open(&map, fd, BYTES, (unsigned int)RX_MAP_RW | RX_MAP_DONTFORK), 0);
	assert_int_equal(rx_memfd_seal_writer(fd), 0);
	*(uint8_t *)map.addr = 7;
	assert_int_equal(child_run(child_one_writer, &fd), 0);
	/* Once sealed, sealed for good. */
	assert_int_equal(rx_memfd_seal_writer(fd), -EPERM);
	rx_map_close(&map);
	/* The seals hold for the maker too. */
	assert_int_equal(rx_map_open(&map, fd, BYTES, RX_MAP_RW), -EPERM);
	assert_int_equal(rx_memfd_seal_writer(-1), -EBADF);
	close(fd);
}

static void test_other_uid(void **state)
{
	int fd = -1;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(rx_memfd_new("rx-uid", BYTES, RX_MEMFD_SHARED, &fd), 0);
	assert_int_equal(child_run(child_other_uid, &fd), 0);
	close(fd);
}

/* ---- strangers' files ---- */

static int check_and_close(int fd, uint64_t *bytes_p)
{
	int r = rx_memfd_check(fd, bytes_p);

	assert_true(fd >= 0);
	close(fd);
	return r;
}

static int memfd_sealed(off_t bytes, int seals)
{
	int fd = memfd_create("rx-stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void test_check_accepts(void **state)
{
	uint64_t bytes = 0;

	(void)state;
	assert_int_equal(check_and_close(memfd_sealed(BYTES, F_SEAL_SHRINK), &bytes), 0);
	assert_int_equal(bytes, BYTES);
	assert_int_equal(
		check_and_close(memfd_sealed(5000, F_SEAL_SHRINK | F_SEAL_GROW), &bytes), 0);
	assert_int_equal(bytes, 5000);
}

static void test_check_refuses(void **state)
{
	char path[] = "/tmp/rx-test-XXXXXX";
	uint64_t bytes = 99;
	int pipe_fds[2];
	int huge = memfd_create("rx-huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_int_equal(check_and_close(fd, &bytes), -EINVAL);
	assert_int_equal(check_and_close(memfd_sealed(BYTES, F_SEAL_GROW), &bytes), -EINVAL);
	assert_int_equal(check_and_close(memfd_sealed(0, F_SEAL_SHRINK), &bytes), -EINVAL);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(check_and_close(pipe_fds[0], &bytes), -EINVAL);
	assert_int_equal(check_and_close(pipe_fds[1], &bytes), -EINVAL);
	assert_int_equal(rx_memfd_check(-1, &bytes), -EBADF);
	if (huge >= 0) {
		assert_int_equal(fcntl(huge, F_ADD_SEALS, F_SEAL_SHRINK), 0);
		assert_int_equal(check_and_close(huge, &bytes), -EINVAL);
	}
	assert_int_equal(bytes, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nth_call_fails),
		cmocka_unit_test(test_old_kernel),
		cmocka_unit_test(test_interrupted_allocation),
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_new_refuses),
		cmocka_unit_test(test_new_under_signals),
		cmocka_unit_test(test_shared_seals),
		cmocka_unit_test(test_one_writer),
		cmocka_unit_test(test_other_uid),
		cmocka_unit_test(test_check_accepts),
		cmocka_unit_test(test_check_refuses),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
