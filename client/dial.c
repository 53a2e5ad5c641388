/* SPDX-License-Identifier: MIT */
/*
 * $RCCLX_SOCKET, when set, is the only place: who names a daemon does not want another one.
 */
#include "dial.h"

#include "err.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SYSTEM_SOCKET "/run/rcclx/rcclxd.sock"
#define USER_SOCKET   "rcclx/rcclxd.sock"
#define RETRY_NS      (2 * 1000000)
#define CANDIDATES    2u

struct candidates {
	char paths[CANDIDATES][DIAL_PATH_BYTES];
	uint32_t n;
};

static rcclx_result add(struct candidates *list, const char *directory, const char *name)
{
	int length = snprintf(list->paths[list->n], DIAL_PATH_BYTES, "%s%s%s",
		directory ? directory : "", directory ? "/" : "", name);

	if (length < 0 || (size_t)length >= DIAL_PATH_BYTES)
		return err_set(RCCLX_ERR_INVALID,
			"the socket's path %s%s%s is longer than %zu bytes, the most that a socket's "
			"path can have",
			directory ? directory : "", directory ? "/" : "", name,
			DIAL_PATH_BYTES - 1);
	list->n++;
	return RCCLX_OK;
}

static rcclx_result collect(struct candidates *list, const char *path)
{
	const char *runtime_dir = secure_getenv("XDG_RUNTIME_DIR");
	rcclx_result r = RCCLX_OK;

	*list = (struct candidates){0};
	if (!path)
		path = secure_getenv("RCCLX_SOCKET");
	if (path && path[0])
		return add(list, NULL, path);
	r = add(list, NULL, SYSTEM_SOCKET);
	if (r == RCCLX_OK && runtime_dir && runtime_dir[0])
		r = add(list, runtime_dir, USER_SOCKET);
	return r;
}

/* 0 or -errno. A full backlog is EAGAIN at once, whatever the socket's flags say. */
static int connect_retrying(int fd, const struct sockaddr_un *address, uint64_t deadline_ns)
{
	while (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (rx_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		(void)nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
	}
	return 0;
}

static int try_path(const char *path, uint64_t deadline_ns, int *fd_p)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r = 0;

	RX_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	memcpy(address.sun_path, path, strlen(path) + 1);
	r = connect_retrying(fd, &address, deadline_ns);
	if (r == 0)
		*fd_p = rx_steal_fd(&fd);
	return r;
}

static bool is_shortage(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS;
}

/* The worst of the reasons decides: a daemon that may not be used is there. */
static rcclx_result no_daemon(const struct candidates *list, const int reasons[CANDIDATES])
{
	char tried[CANDIDATES * (DIAL_PATH_BYTES + 64)];
	rcclx_result r = RCCLX_ERR_NO_DAEMON;
	size_t used = 0;

	for (uint32_t i = 0; i < list->n; i++) {
		char reason[64];
		int length =
			snprintf(tried + used, sizeof(tried) - used, "%s%s (%s)", i > 0 ? ", " : "",
				list->paths[i], strerror_r(-reasons[i], reason, sizeof(reason)));

		used += length > 0 ? (size_t)length : 0;
		if (used >= sizeof(tried))
			break;
		if (reasons[i] == -EACCES || reasons[i] == -EPERM)
			r = RCCLX_ERR_DENIED;
		else if (reasons[i] == -ETIMEDOUT && r == RCCLX_ERR_NO_DAEMON)
			r = RCCLX_ERR_TIMEOUT;
	}
	if (r == RCCLX_ERR_DENIED)
		return err_set(r,
			"no rcclxd may be used: tried %s; its socket is open to members of the "
			"group rcclx, or run `rcclxd --private`",
			tried);
	return err_set(r,
		"no rcclxd answers: tried %s; start one with `systemctl start rcclxd` or `rcclxd "
		"--private`, or set RCCLX_SOCKET",
		tried);
}

rcclx_result dial(const char *path, uint64_t deadline_ns, int *fd_p, char path_p[DIAL_PATH_BYTES])
{
	struct candidates list;
	int reasons[CANDIDATES] = {0};
	rcclx_result r = collect(&list, path);

	if (r != RCCLX_OK)
		return r;
	for (uint32_t i = 0; i < list.n; i++) {
		reasons[i] = try_path(list.paths[i], deadline_ns, fd_p);
		if (is_shortage(reasons[i]))
			return err_errno(reasons[i], "making a socket");
		if (reasons[i] == 0) {
			memcpy(path_p, list.paths[i], DIAL_PATH_BYTES);
			return RCCLX_OK;
		}
	}
	return no_daemon(&list, reasons);
}
