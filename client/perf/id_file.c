/* SPDX-License-Identifier: MIT */
#include "id_file.h"

#include "../../shm/rx_cleanup.h"
#include "../../shm/rx_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS (2 * RX_NS_PER_MS)

bool perf_id_file_init(struct perf_id_file *file, const char *given)
{
	int n = 0;

	*file = (struct perf_id_file){0};
	if (!given)
		given = getenv("RCCLX_PERF_ID_FILE");
	if (given)
		n = snprintf(file->path, sizeof(file->path), "%s", given);
	else
		n = snprintf(file->path, sizeof(file->path), "/tmp/rcclx-perf-%u-%d.id", geteuid(),
			(int)getppid());
	if (n > 0 && (size_t)n < sizeof(file->path))
		return true;
	fprintf(stderr, "rcclx-perf: --id-file: the path is empty or too long\n");
	return false;
}

bool perf_id_file_write(struct perf_id_file *file, const struct rcclx_unique_id *id)
{
	RX_CLOSE int fd =
		open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST) {
		fprintf(stderr,
			"rcclx-perf: %s exists: another run uses it, or one was killed and left "
			"it; remove it, or choose another with --id-file\n",
			file->path);
		return false;
	}
	file->made = fd >= 0;
	if (fd < 0 || write(fd, id->bytes, sizeof(id->bytes)) != sizeof(id->bytes)) {
		fprintf(stderr, "rcclx-perf: cannot write %s: %m\n", file->path);
		return false;
	}
	return true;
}

/* 1: read; 0: not yet there, or not yet whole; -1: refused, explained. */
static int read_once(const struct perf_id_file *file, struct rcclx_unique_id *id_p)
{
	RX_CLOSE int fd = open(file->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct rcclx_unique_id id = {0};
	struct stat st = {0};

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st)) {
		fprintf(stderr, "rcclx-perf: cannot read %s: %m\n", file->path);
		return -1;
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		fprintf(stderr, "rcclx-perf: %s is not a file of this user\n", file->path);
		return -1;
	}
	if (read(fd, id.bytes, sizeof(id.bytes)) != sizeof(id.bytes))
		return 0;
	*id_p = id;
	return 1;
}

bool perf_id_file_read(
	const struct perf_id_file *file, uint64_t timeout_ns, struct rcclx_unique_id *id_p)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	uint64_t deadline_ns = rx_deadline_ns(timeout_ns);

	for (;;) {
		int r = read_once(file, id_p);

		if (r)
			return r > 0;
		if (rx_now_ns() >= deadline_ns)
			break;
		(void)nanosleep(&pause, NULL);
	}
	fprintf(stderr,
		"rcclx-perf: rank 0 has not written %s within %llu s; all ranks must be on this "
		"node, and see the same file (--id-file)\n",
		file->path, (unsigned long long)(timeout_ns / RX_NS_PER_SEC));
	return false;
}

void perf_id_file_remove(struct perf_id_file *file)
{
	if (file->made)
		(void)unlink(file->path);
	file->made = false;
}
