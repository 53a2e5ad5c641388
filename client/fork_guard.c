/* SPDX-License-Identifier: MIT */
/*
 * A word in a page that the kernel zeroes in a forked child (MADV_WIPEONFORK). Unlike getpid() it
 * costs no system call, and unlike pthread_atfork() it sees every kind of fork. A child that
 * connects on its own gets the next number, so that it can tell its objects from inherited ones.
 *
 * No lock: the child of a process in which another thread held it would wait forever.
 */
#include "fork_guard.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic(_Atomic uint64_t *) guard_word;
static _Atomic uint64_t last_epoch;

static int map_word(void)
{
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	_Atomic uint64_t *expected = NULL;
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	if (madvise(page, bytes, MADV_WIPEONFORK) < 0) {
		int r = -errno;

		(void)munmap(page, bytes);
		return r;
	}
	/* Another thread may have been faster. */
	if (!atomic_compare_exchange_strong(&guard_word, &expected, page))
		(void)munmap(page, bytes);
	return 0;
}

int fork_guard_epoch(uint64_t *epoch_p)
{
	_Atomic uint64_t *word = NULL;
	uint64_t epoch = 0;

	if (!atomic_load(&guard_word)) {
		int r = map_word();

		if (r < 0)
			return r;
	}
	word = atomic_load(&guard_word);
	epoch = atomic_load(word);
	if (epoch == 0) {
		uint64_t next = atomic_fetch_add(&last_epoch, 1) + 1;

		if (atomic_compare_exchange_strong(word, &epoch, next))
			epoch = next;
	}
	*epoch_p = epoch;
	return 0;
}

bool fork_guard_same(uint64_t epoch)
{
	const _Atomic uint64_t *word = atomic_load_explicit(&guard_word, memory_order_acquire);

	return word && atomic_load_explicit(word, memory_order_relaxed) == epoch;
}
