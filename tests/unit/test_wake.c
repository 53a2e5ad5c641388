/* SPDX-License-Identifier: MIT */
#include "shm_region.h"

#include "../../shm/rx_clock.h"
#include "../../shm/rx_wake.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/time.h>

/* Longer than any wake-up, shorter than the limit of the test. */
#define LONG_NS  (20 * RX_NS_PER_SEC)
#define SHORT_NS (20 * RX_NS_PER_MS)

static void test_wait_returns(void **state)
{
	_Atomic uint32_t word = 5;
	uint64_t start = rx_now_ns();

	(void)state;
	assert_int_equal(rx_futex_wait(&word, 4, LONG_NS), 0);
	assert_true(rx_now_ns() - start < LONG_NS / 2);
	start = rx_now_ns();
	assert_int_equal(rx_futex_wait(&word, 5, SHORT_NS), -ETIMEDOUT);
	assert_true(rx_now_ns() - start >= SHORT_NS);
	assert_int_equal(rx_futex_wait(&word, 5, 0), -ETIMEDOUT);
	assert_int_equal(rx_futex_wait(NULL, 5, SHORT_NS), -EFAULT);
	/* Nobody there: harmless. */
	rx_futex_wake(&word);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void test_wait_interrupted(void **state)
{
	const struct itimerval soon = {{0, 0}, {0, 20000}};
	struct sigaction action = {.sa_handler = on_signal};
	struct sigaction old = {0};
	_Atomic uint32_t word = 1;
	uint64_t start = rx_now_ns();

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	assert_int_equal(rx_futex_wait(&word, 1, LONG_NS), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	(void)alarm(TEST_LIMIT_S);
	assert_true(rx_now_ns() - start < LONG_NS / 2);
}

/* Sleeps through the read-only map until the word is 1. */
static int child_sleeper(void *arg)
{
	const struct region *region = arg;
	const _Atomic uint32_t *word = region->ro.addr;
	uint64_t start = rx_now_ns();

	while (atomic_load(word) == 0)
		CHILD_CHECK(rx_futex_wait(word, 0, LONG_NS) == 0);
	CHILD_CHECK(rx_now_ns() - start < LONG_NS / 2);
	return 0;
}

static void test_wake_processes(void **state)
{
	struct region region;
	pid_t pids[3];

	(void)state;
	region_open(&region, "rx-wake", 4096);
	for (unsigned int i = 0; i < RX_ARRAY_SIZE(pids); i++)
		pids[i] = child_start(child_sleeper, &region);
	usleep(30000);
	atomic_store((_Atomic uint32_t *)region.rw.addr, 1);
	/* All of them, and through a map that cannot be written. */
	rx_futex_wake(region.ro.addr);
	for (unsigned int i = 0; i < RX_ARRAY_SIZE(pids); i++)
		assert_int_equal(child_wait(pids[i]), 0);
	region_close(&region);
}

struct turns {
	_Atomic uint32_t word;
	uint32_t n;
	uint64_t longest_ns;
};

/* Waits until the word is odd (or even), then makes it even (or odd). */
static void take_turns(struct turns *turns, uint32_t parity)
{
	uint64_t longest_ns = 0;

	for (uint32_t i = 0; i < turns->n; i++) {
		uint32_t now = 0;

		while (((now = atomic_load(&turns->word)) & 1) != parity) {
			uint64_t start = rx_now_ns();

			(void)rx_futex_wait(&turns->word, now, LONG_NS);
			longest_ns = rx_max_u64(longest_ns, rx_now_ns() - start);
		}
		atomic_store(&turns->word, now + 1);
		rx_futex_wake(&turns->word);
	}
	if (parity == 0)
		turns->longest_ns = longest_ns;
}

static void *turns_thread(void *arg)
{
	take_turns(arg, 1);
	return NULL;
}

static void test_threads_take_turns(void **state)
{
	struct turns turns = {.n = 20000};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, turns_thread, &turns), 0);
	take_turns(&turns, 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(atomic_load(&turns.word), 2 * turns.n);
	assert_true(turns.longest_ns < LONG_NS / 2);
}

/* ---- doorbell ---- */

static void test_doorbell(void **state)
{
	int fd = -1;

	(void)state;
	assert_int_equal(rx_doorbell_new(&fd), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(rx_doorbell_drain(fd), 0);
	assert_int_equal(rx_doorbell_ring(fd), 0);
	assert_int_equal(rx_doorbell_ring(fd), 0);
	assert_int_equal(rx_doorbell_drain(fd), 1);
	assert_int_equal(rx_doorbell_drain(fd), 0);
	close(fd);
	assert_int_equal(rx_doorbell_ring(-1), -EBADF);
	assert_int_equal(rx_doorbell_drain(-1), -EBADF);
}

static void test_doorbell_full(void **state)
{
	const uint64_t full = UINT64_MAX - 1;
	int fd = -1;

	(void)state;
	assert_int_equal(rx_doorbell_new(&fd), 0);
	assert_int_equal(write(fd, &full, sizeof(full)), sizeof(full));
	assert_int_equal(rx_doorbell_ring(fd), 0);
	assert_int_equal(rx_doorbell_drain(fd), 1);
	assert_int_equal(rx_doorbell_drain(fd), 0);
	close(fd);
}

/* The other holder of the description makes it blocking: the alarm ends the test if we block. */
static void test_doorbell_never_blocks(void **state)
{
	uint64_t start = rx_now_ns();
	int fd = -1;
	int shared = -1;

	(void)state;
	assert_int_equal(rx_doorbell_new(&fd), 0);
	shared = dup(fd);
	assert_int_equal(fcntl(shared, F_SETFL, 0), 0);
	assert_int_equal(rx_doorbell_drain(fd), 0);
	assert_int_equal(rx_doorbell_ring(shared), 0);
	assert_int_equal(rx_doorbell_drain(fd), 1);
	assert_int_equal(rx_doorbell_drain(fd), 0);
	assert_true(rx_now_ns() - start < RX_NS_PER_SEC);
	close(fd);
	close(shared);
}

/* A client may send any fd as its doorbell. */
static void test_doorbell_of_other_kind(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(rx_doorbell_drain(fds[0]), 0);
	assert_int_equal(write(fds[1], "abc", 3), 3);
	assert_int_equal(rx_doorbell_drain(fds[0]), -EIO);
	close(fds[1]);
	assert_int_equal(rx_doorbell_drain(fds[0]), -EIO);
	close(fds[0]);
}

static void test_doorbell_without_fds(void **state)
{
	struct rlimit old = {0};
	struct rlimit none = {0};
	int fd = -7;
	int r = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = rx_doorbell_new(&fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(r, -EMFILE);
	assert_int_equal(fd, -7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait_returns),
		cmocka_unit_test(test_wait_interrupted),
		cmocka_unit_test(test_wake_processes),
		cmocka_unit_test(test_threads_take_turns),
		cmocka_unit_test(test_doorbell),
		cmocka_unit_test(test_doorbell_full),
		cmocka_unit_test(test_doorbell_never_blocks),
		cmocka_unit_test(test_doorbell_of_other_kind),
		cmocka_unit_test(test_doorbell_without_fds),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
