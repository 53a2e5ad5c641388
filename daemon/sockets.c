/* SPDX-License-Identifier: MIT */
#include "sockets.h"

#include "daemon.h"
#include "listener.h"
#include "sd.h"
#include "../shm/rx_cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#define SYSTEM_SOCKET "/run/rcclx/rcclxd.sock"
#define PATH_BYTES    sizeof(((struct sockaddr_un *)0)->sun_path)

struct paths {
	char control[PATH_BYTES];
	char admin[PATH_BYTES];
	bool default_dir; /* the directory is ours to make */
};

static int too_long(void)
{
	rx_err("a socket path is too long (%zu characters at most)", PATH_BYTES - 1);
	return -ENAMETOOLONG;
}

static int put(char *path, const char *dir, size_t dir_len, const char *name)
{
	int n = snprintf(path, PATH_BYTES, "%.*s%s", (int)dir_len, dir, name);

	return n < 0 || (size_t)n >= PATH_BYTES ? too_long() : 0;
}

static int control_path(
	const struct daemon *daemon, const struct options *options, struct paths *paths)
{
	const char *runtime_dir = getenv("XDG_RUNTIME_DIR");
	const char *given = options->socket ? options->socket : daemon->config.socket;

	if (given)
		return put(paths->control, given, strlen(given), "");
	paths->default_dir = true;
	if (!daemon->policy.private_mode)
		return put(paths->control, SYSTEM_SOCKET, strlen(SYSTEM_SOCKET), "");
	if (!runtime_dir || runtime_dir[0] != '/') {
		rx_err("XDG_RUNTIME_DIR is not set: say where to listen with --socket PATH");
		return -EINVAL;
	}
	return put(paths->control, runtime_dir, strlen(runtime_dir), "/rcclx/rcclxd.sock");
}

/* Length of the directory part of @path, with its slash; 0: the current directory. */
static size_t dir_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

static int find_paths(
	const struct daemon *daemon, const struct options *options, struct paths *paths)
{
	const char *admin =
		options->admin_socket ? options->admin_socket : daemon->config.admin_socket;
	int r = control_path(daemon, options, paths);

	if (r)
		return r;
	if (admin)
		return put(paths->admin, admin, strlen(admin), "");
	return put(paths->admin, paths->control, dir_len(paths->control), "admin.sock");
}

static int make_dir(const char *path, mode_t mode)
{
	char dir[PATH_BYTES];
	size_t len = dir_len(path);

	(void)snprintf(dir, sizeof(dir), "%.*s", (int)len - 1, path);
	if (mkdir(dir, mode) == 0 || errno == EEXIST)
		return 0;
	rx_err("cannot make the directory %s: %m", dir);
	return -errno;
}

static int listen_at(struct daemon *daemon, const char *path, unsigned int mode, bool admin,
	struct listener **listener_p)
{
	RX_CLOSE int fd = listener_bind(path, mode);
	int r = 0;

	if (fd < 0)
		return fd;
	r = listener_new(daemon, &fd, path, admin, listener_p);
	if (r) {
		rx_err("cannot listen at %s: %s", path, strerror(-r));
		/* Nobody else will: it is not the listener's yet. */
		(void)unlink(path);
	}
	return r;
}

static int open_own(struct daemon *daemon, const struct options *options)
{
	bool private_mode = daemon->policy.private_mode;
	struct paths paths = {0};
	int r = find_paths(daemon, options, &paths);

	if (!r && paths.default_dir)
		r = make_dir(paths.control, private_mode ? 0700 : 0755);
	if (!r)
		r = listen_at(
			daemon, paths.control, private_mode ? 0600 : 0660, false, &daemon->control);
	if (!r)
		r = listen_at(daemon, paths.admin, 0600, true, &daemon->admin);
	if (r)
		return r;
	daemon->socket_path = strdup(paths.control);
	return daemon->socket_path ? 0 : -ENOMEM;
}

/* For people, in rcclxctl status. */
static char *inherited_path(int fd)
{
	struct sockaddr_un addr = {0};
	socklen_t bytes = sizeof(addr) - 1; /* leaves a NUL at the end */

	if (getsockname(fd, (struct sockaddr *)&addr, &bytes) < 0)
		return NULL;
	return strdup(addr.sun_path);
}

static int open_inherited(struct daemon *daemon)
{
	RX_CLOSE int control_fd = -1;
	RX_CLOSE int admin_fd = -1;
	int r = sd_sockets(&control_fd, &admin_fd);

	if (r)
		return r;
	daemon->socket_path = inherited_path(control_fd);
	if (!daemon->socket_path)
		return -ENOMEM;
	r = listener_new(daemon, &control_fd, NULL, false, &daemon->control);
	if (!r && admin_fd >= 0)
		r = listener_new(daemon, &admin_fd, NULL, true, &daemon->admin);
	return r;
}

int sockets_open(struct daemon *daemon, const struct options *options)
{
	return options->systemd ? open_inherited(daemon) : open_own(daemon, options);
}
