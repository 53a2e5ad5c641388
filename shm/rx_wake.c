/* SPDX-License-Identifier: MIT */
/*
 * Futexes here are shared ones: with FUTEX_PRIVATE_FLAG a waker in another process finds nobody.
 * The kernel orders its compare (wait) and its search for waiters (wake) against the caller's
 * earlier stores; the handshakes in rx_ring.c and rx_fabric.h do not rely on that, it only closes
 * the gap between the last look and falling asleep: wait() compares under the kernel's lock.
 */
#include "rx_wake.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SEC 1000000000ull

int rx_futex_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / NS_PER_SEC),
		.tv_nsec = (long)(timeout_ns % NS_PER_SEC),
	};

	if (syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0) == 0)
		return 0;
	/* EAGAIN: the word changed before we slept. */
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	return -errno;
}

void rx_futex_wake(const _Atomic uint32_t *word)
{
	/* Fails only for a word that is not mapped, which the caller has just written or read. */
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int rx_doorbell_new(int *fd_p)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	*fd_p = fd;
	return 0;
}

int rx_doorbell_ring(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		return 0;
	/* A full counter is readable: the daemon will come. */
	return errno == EAGAIN ? 0 : -errno;
}

int rx_doorbell_drain(int fd)
{
	uint64_t n_rung = 0;
	struct iovec iov = {.iov_base = &n_rung, .iov_len = sizeof(n_rung)};
	ssize_t n = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

	if (n == (ssize_t)sizeof(n_rung))
		return 1;
	if (n >= 0)
		return -EIO;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}
