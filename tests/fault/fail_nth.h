/* SPDX-License-Identifier: MIT */
/* Shared between a test and the daemon that runs with fail_nth.so preloaded. */
#ifndef TEST_FAIL_NTH_H
#define TEST_FAIL_NTH_H

#include <stdatomic.h>
#include <stdint.h>

/* Path of the file that both map. */
#define FAIL_NTH_ENV "RCCLX_TEST_FAIL_NTH"

enum fail_call {
	FAIL_MALLOC, /* and calloc, realloc */
	FAIL_MEMFD_CREATE,
	FAIL_FTRUNCATE,
	FAIL_FALLOCATE,
	FAIL_MMAP,
	FAIL_EVENTFD,
	FAIL_FCNTL,
	FAIL_FSTAT,
	FAIL_ACCEPT,
	FAIL_RECVMSG,
	FAIL_SENDMSG,
	FAIL_GETRANDOM,
	FAIL_CALL_N
};

struct fail_state {
	_Atomic int64_t countdown[FAIL_CALL_N]; /* the call that takes it from 1 to 0 fails */
	_Atomic uint64_t n_failed;
};

#endif
