/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD library: makes the n-th call of a libc function fail, as armed in shared memory.
 *
 * malloc() and friends are reached through the names that glibc keeps for interposers, since
 * dlsym() itself allocates; the rest are plain system calls.
 */
#include "fail_nth.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FAIL_NTH_NO_MALLOC 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAIL_NTH_NO_MALLOC 1
#endif

static struct fail_state *state;

#ifndef FAIL_NTH_NO_MALLOC
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);
#endif

__attribute__((constructor)) static void attach(void)
{
	const char *path = getenv(FAIL_NTH_ENV);

	if (path == NULL)
		return;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		_exit(125);
	long addr = syscall(SYS_mmap, NULL, sizeof(struct fail_state), PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);
	(void)close(fd);
	if (addr == -1)
		_exit(125);
	state = (struct fail_state *)addr;
}

static bool fails(enum fail_call call, int error)
{
	if (state == NULL || atomic_load(&state->countdown[call]) <= 0)
		return false;
	if (atomic_fetch_sub(&state->countdown[call], 1) != 1)
		return false;
	atomic_fetch_add(&state->n_failed, 1);
	errno = error;
	return true;
}

/* What the library replaces has to be seen, whatever the flags of the build. */
#pragma GCC visibility push(default)

/* A sanitizer has allocation functions of its own. */
#ifndef FAIL_NTH_NO_MALLOC

void *malloc(size_t bytes)
{
	return fails(FAIL_MALLOC, ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return fails(FAIL_MALLOC, ENOMEM) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
	return fails(FAIL_MALLOC, ENOMEM) ? NULL : __libc_realloc(p, bytes);
}

#endif

int memfd_create(const char *name, unsigned int flags)
{
	if (fails(FAIL_MEMFD_CREATE, EMFILE))
		return -1;
	return (int)syscall(SYS_memfd_create, name, flags);
}

int ftruncate(int fd, off_t bytes)
{
	return fails(FAIL_FTRUNCATE, ENOMEM) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
	if (fails(FAIL_FALLOCATE, ENOSPC))
		return -1;
	return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
	if (fails(FAIL_FALLOCATE, ENOSPC))
		return ENOSPC;
	return syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}

void *mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	/* Thread stacks and the like are not what a request maps. */
	if ((flags & MAP_ANONYMOUS) == 0 && fails(FAIL_MMAP, ENOMEM))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, addr, bytes, prot, flags, fd, offset);
}

int eventfd(unsigned int value, int flags)
{
	return fails(FAIL_EVENTFD, EMFILE) ? -1 : (int)syscall(SYS_eventfd2, value, flags);
}

int fcntl(int fd, int command, ...)
{
	va_list args;

	va_start(args, command);
	long argument = va_arg(args, long);
	va_end(args);
	return fails(FAIL_FCNTL, EPERM) ? -1 : (int)syscall(SYS_fcntl, fd, command, argument);
}

int fcntl64(int fd, int command, ...)
{
	va_list args;

	va_start(args, command);
	long argument = va_arg(args, long);
	va_end(args);
	return fails(FAIL_FCNTL, EPERM) ? -1 : (int)syscall(SYS_fcntl, fd, command, argument);
}

int fstat(int fd, struct stat *st)
{
	if (fails(FAIL_FSTAT, ENOMEM))
		return -1;
	return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict bytes, int flags)
{
	if (fails(FAIL_ACCEPT, EMFILE))
		return -1;
	return (int)syscall(SYS_accept4, fd, address, bytes, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	return fails(FAIL_RECVMSG, ENOMEM) ? -1 : syscall(SYS_recvmsg, fd, message, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return fails(FAIL_SENDMSG, ENOBUFS) ? -1 : syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t getrandom(void *buf, size_t bytes, unsigned int flags)
{
	return fails(FAIL_GETRANDOM, EAGAIN) ? -1 : syscall(SYS_getrandom, buf, bytes, flags);
}

#pragma GCC visibility pop
