/* SPDX-License-Identifier: MIT */
#include "rx_map.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int advise(void *addr, uint64_t bytes, unsigned int flags)
{
	if ((flags & RX_MAP_DONTFORK) && madvise(addr, bytes, MADV_DONTFORK) < 0)
		return -errno;
	if ((flags & RX_MAP_DONTDUMP) && madvise(addr, bytes, MADV_DONTDUMP) < 0)
		return -errno;
	return 0;
}

int rx_map_open(struct rx_map *map, int fd, uint64_t bytes, unsigned int flags)
{
	const bool writable = flags & RX_MAP_RW;
	struct stat st = {0};
	void *addr = NULL;
	int r = 0;

	assert(!map->addr);
	if (bytes == 0)
		return -EINVAL;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || bytes > (uint64_t)st.st_size)
		return -ERANGE;
	/* The rest of the last page is there even if the file ends inside it. */
	bytes = rx_align_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
	addr = mmap(NULL, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
	if (addr == MAP_FAILED)
		return -errno;
	r = advise(addr, bytes, flags);
	if (r < 0) {
		(void)munmap(addr, bytes);
		return r;
	}
	*map = (struct rx_map){.addr = addr, .bytes = bytes, .writable = writable};
	return 0;
}

void rx_map_close(struct rx_map *map)
{
	int saved = errno;

	if (map->addr)
		(void)munmap(map->addr, map->bytes);
	*map = RX_MAP_INIT;
	errno = saved;
}

void *rx_map_at(const struct rx_map *map, uint64_t offset, uint64_t bytes)
{
	if (!map->addr || !rx_range_ok(offset, bytes, map->bytes))
		return NULL;
	return (char *)map->addr + offset;
}
