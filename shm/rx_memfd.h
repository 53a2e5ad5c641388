/* SPDX-License-Identifier: MIT */
/*
 * Sealed anonymous memory files: the only kind of shared memory in the project.
 */
#ifndef RX_MEMFD_H
#define RX_MEMFD_H

#include "rx_base.h"

enum rx_memfd_kind {
	/* Any holder of the fd may map it writable: arenas, user memory, session region S. */
	RX_MEMFD_SHARED,
	/*
	 * Only mappings that exist before rx_memfd_seal_writer() stay writable; whoever gets
	 * the fd later can map it only read-only: session region D, control pages.
	 */
	RX_MEMFD_ONE_WRITER,
};

/**
 * rx_memfd_new() - create a memory file, its pages allocated
 * @name:  for /proc/PID/maps, at most 200 characters
 * @bytes: size, > 0; rounded up to whole pages
 * @fd_p:  receives the fd, close-on-exec
 *
 * Sized, allocated (so that lack of memory is -ENOMEM or -ENOSPC here, not SIGBUS later), mode
 * 0600, not executable, and sealed against shrinking, growing and further seals for
 * RX_MEMFD_SHARED. RX_MEMFD_ONE_WRITER memory is left open for one more seal: map it writable,
 * then call rx_memfd_seal_writer() before the fd leaves the process.
 *
 * Return: 0, or -errno.
 */
RX_WARN_UNUSED int rx_memfd_new(
	const char *name, uint64_t bytes, enum rx_memfd_kind kind, int *fd_p);

/** rx_memfd_seal_writer() - end of set-up for RX_MEMFD_ONE_WRITER: no new writable mapping */
RX_WARN_UNUSED int rx_memfd_seal_writer(int fd);

/**
 * rx_memfd_check() - may memory that somebody else made be mapped without fear of SIGBUS?
 * @fd:      received fd
 * @bytes_p: receives the file's size, from fstat
 *
 * Demands a memfd (or another sealable file) with F_SEAL_SHRINK, of a size > 0.
 *
 * Return: 0; -EINVAL not sealable, or not sealed against shrinking, or empty; other -errno.
 */
RX_WARN_UNUSED int rx_memfd_check(int fd, uint64_t *bytes_p);

#endif
