/* SPDX-License-Identifier: MIT */
/*
 * Why these seals. Without SHRINK a peer's ftruncate() turns our next load into SIGBUS; without
 * SEAL a peer could add seals of its own (an F_SEAL_WRITE that makes our next map fail). GROW only
 * keeps the accounting honest. F_SEAL_WRITE is of no use for live memory, the kernel refuses it
 * while a writable map exists; F_SEAL_FUTURE_WRITE leaves the maps that exist and forbids new
 * ones, write(2) and PUNCH_HOLE. An O_RDONLY fd would protect nothing, since the receiver can open
 * it again through /proc/self/fd.
 */
#include "rx_memfd.h"

#include "rx_cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Linux 6.3; the headers of older systems do not know it. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Allocation goes in pieces: a signal undoes the piece at hand, not everything. */
#define ALLOC_PIECE   (8ull << 20)
#define ALLOC_RETRIES 1000u

static int memfd_open(const char *name)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	return fd < 0 ? -errno : fd;
}

static int allocate(int fd, uint64_t bytes)
{
	unsigned int n_retries = 0;

	for (uint64_t done = 0; done < bytes;) {
		uint64_t piece = rx_min_u64(ALLOC_PIECE, bytes - done);

		if (fallocate(fd, 0, (off_t)done, (off_t)piece) == 0)
			done += piece;
		else if (errno != EINTR || ++n_retries > ALLOC_RETRIES)
			return -errno;
	}
	return 0;
}

static int add_seals(int fd, int seals)
{
	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

int rx_memfd_new(const char *name, uint64_t bytes, enum rx_memfd_kind kind, int *fd_p)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	int r = 0;

	if (bytes == 0)
		return -EINVAL;
	if (bytes > (uint64_t)INT64_MAX - page)
		return -EFBIG;
	bytes = rx_align_up(bytes, page);

	RX_CLOSE int fd = memfd_open(name);

	if (fd < 0)
		return fd;
	if (fchmod(fd, 0600) < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return -errno;
	r = allocate(fd, bytes);
	if (r == 0)
		r = add_seals(fd, kind == RX_MEMFD_SHARED ? seals | F_SEAL_SEAL : seals);
	if (r == 0)
		*fd_p = rx_steal_fd(&fd);
	return r;
}

int rx_memfd_seal_writer(int fd)
{
	return add_seals(fd, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
}

int rx_memfd_check(int fd, uint64_t *bytes_p)
{
	struct stat st = {0};
	struct statfs fs = {0};
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	/* Not hugetlbfs: its maps have another granularity and a fault there can be SIGBUS. */
	if (fs.f_type != TMPFS_MAGIC || !S_ISREG(st.st_mode))
		return -EINVAL;
	if (!(seals & F_SEAL_SHRINK) || st.st_size <= 0)
		return -EINVAL;
	*bytes_p = (uint64_t)st.st_size;
	return 0;
}
