/* SPDX-License-Identifier: MIT */
/*
 * Waking up across processes: shared futexes (daemon to client, rank to rank) and the eventfd
 * doorbell (client to daemon).
 */
#ifndef RX_WAKE_H
#define RX_WAKE_H

#include "rx_base.h"

#include <stdatomic.h>

/**
 * rx_futex_wait() - sleep while *word == expected
 * @word:       in shared memory; a read-only mapping is enough
 * @timeout_ns: relative; callers bound every sleep (RX_SLEEP_NS) since nobody wakes the
 *              waiters of a process that was killed
 *
 * Return: 0 woken, changed or interrupted (look again); -ETIMEDOUT; other -errno.
 */
int rx_futex_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);

/** rx_futex_wake() - wake all sleepers on @word; a read-only mapping is enough */
void rx_futex_wake(const _Atomic uint32_t *word);

/** Longest single sleep of a client: then it looks whether its peers and the daemon live. */
#define RX_SLEEP_NS (100 * 1000000ull)

/** rx_doorbell_new() - eventfd, non-blocking, close-on-exec; -errno on failure */
RX_WARN_UNUSED int rx_doorbell_new(int *fd_p);

/**
 * rx_doorbell_ring() - wake the daemon (client side); a full counter is a success
 * Return: 0 or -errno.
 */
int rx_doorbell_ring(int fd);

/**
 * rx_doorbell_drain() - take what was rung, without ever blocking (daemon side)
 *
 * The client shares the file description and may clear O_NONBLOCK; this reads with RWF_NOWAIT,
 * which does not care.
 *
 * Return: 1 it had been rung, 0 it had not, -errno.
 */
RX_WARN_UNUSED int rx_doorbell_drain(int fd);

/** rx_cpu_relax() - one turn of a spin loop */
static inline void rx_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#endif
}

#endif
