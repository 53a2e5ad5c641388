/* SPDX-License-Identifier: MIT */
/* What a process uses, read from /proc; time; scaling of time limits under sanitizers. */
#ifndef TEST_PROC_H
#define TEST_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_use {
	unsigned int n_fds;
	unsigned int n_maps;
	unsigned int n_memfd_maps; /* mappings of anonymous memory files */
	uint64_t rss_kib;
	uint64_t cpu_ticks; /* user and system time */
};

/** proc_use() - snapshot of @pid; false when it cannot be read */
bool proc_use(pid_t pid, struct proc_use *use_p);

/** proc_n_fds() - open file descriptors of the calling process */
unsigned int proc_n_fds(void);

/** proc_is_stopped() - is the process in state T? */
bool proc_is_stopped(pid_t pid);

/** test_free_bytes() - memory that may be taken, as the kernel and the control group see it */
uint64_t test_free_bytes(void);

/** test_now_ms() - monotonic milliseconds */
uint64_t test_now_ms(void);

/** test_sleep_ms() - sleep, not scaled */
void test_sleep_ms(uint64_t ms);

/**
 * test_slow() - factor for time limits: $RCCLX_TEST_SLOW, else 4 with a sanitizer and 1 without;
 *               more when others keep the machine busy, four processes a core and up
 *
 * Limits are stretched, durations that a test makes itself are not.
 */
uint64_t test_slow(void);

/** test_sanitized() - is this program built with a sanitizer? */
bool test_sanitized(void);

/** test_thread_sanitized() - is it the thread sanitizer? */
bool test_thread_sanitized(void);

/** test_long() - the long variant of the tests, $RCCLX_LONG=1 */
bool test_long(void);

#endif
