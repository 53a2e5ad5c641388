/* SPDX-License-Identifier: MIT */
/*
 * Out of descriptors, accept() fails and the socket stays readable: polling on would be a busy
 * loop. So the listener keeps a spare descriptor, gives it up to accept and drop one connection
 * (which tells that client at once), takes it again, and looks away for a while.
 */
#include "listener.h"

#include "daemon.h"
#include "loop.h"
#include "peer.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG          512
#define ACCEPTS_PER_TURN 16u
#define LOOK_AWAY_NS     (100 * RX_NS_PER_MS)
#define LOCK_TRIES       100u
#define LOCK_RETRY_US    10000u

struct listener {
	struct daemon *daemon;
	int fd;
	int spare; /* -1: could not be had */
	bool admin;
	char *path;
	dev_t dev; /* of the socket file, so that only ours is unlinked */
	ino_t ino;
	struct loop_poll *poll;
	struct loop_timer *timer;
	struct rx_log_limit log_limit;
};

static int spare_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* One connection accepted into the place of the spare descriptor and dropped. */
static void shed(struct listener *listener)
{
	int fd = -1;

	rx_closep(&listener->spare);
	fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
	rx_closep(&fd);
	listener->spare = spare_open();
	loop_poll_set(listener->poll, 0);
	loop_timer_set(listener->timer, LOOK_AWAY_NS);
}

static void on_timer(void *owner)
{
	struct listener *listener = owner;

	if (listener->spare < 0)
		listener->spare = spare_open();
	loop_poll_set(listener->poll, UV_READABLE);
}

static void welcome(struct listener *listener, int *fd)
{
	int r = peer_new(listener->daemon, fd, listener->admin);

	if (r == ACCOUNT_E_USER || r == ACCOUNT_E_ALL)
		rx_log_limited(&listener->log_limit, RX_LOG_WARN,
			"connection refused: too many descriptors in use");
	else if (r < 0 && r != -EPERM && r != -ESRCH)
		rx_log_limited(
			&listener->log_limit, RX_LOG_WARN, "connection refused: %s", strerror(-r));
}

static void on_readable(void *owner, int events)
{
	struct listener *listener = owner;

	(void)events;
	for (uint32_t i = 0; i < ACCEPTS_PER_TURN; i++) {
		RX_CLOSE int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			welcome(listener, &fd);
			continue;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		/* The client has gone already: as if it had not come. */
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		rx_log_limited(&listener->log_limit, RX_LOG_WARN, "cannot accept: %m");
		shed(listener);
		return;
	}
}

/* Does a daemon answer at @addr? */
static bool is_served(const struct sockaddr_un *addr)
{
	RX_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return true;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
		return true;
	/* EAGAIN: its backlog is full. Anything else: it is somebody's, or not a socket. */
	return errno != ECONNREFUSED && errno != ENOENT;
}

static int bind_at(int fd, const struct sockaddr_un *addr, unsigned int mode)
{
	/* The file must never be open for more than @mode, not even between bind and chmod. */
	mode_t before = umask(0777 & ~mode);
	int r = bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;

	(void)umask(before);
	return r;
}

static int remove_stale(const struct sockaddr_un *addr)
{
	struct stat st;

	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		rx_err("%s is in the way: it is not a socket", addr->sun_path);
		return -EADDRINUSE;
	}
	if (is_served(addr)) {
		rx_err("%s is in use: another daemon answers there", addr->sun_path);
		return -EADDRINUSE;
	}
	return unlink(addr->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/*
 * Two daemons that start at the same moment must not both find a stale file: they take turns by a
 * lock on the directory. Whoever may read the directory may lock it, so nobody waits for long.
 */
static int lock_directory(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *slash = strrchr(path, '/');
	int fd = -1;

	(void)snprintf(
		dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (uint32_t i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) < 0; i++)
		(void)usleep(LOCK_RETRY_US);
	return fd;
}

int listener_bind(const char *path, unsigned int mode)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	RX_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = 0;

	if (fd < 0) {
		r = -errno;
		rx_err("cannot make a socket: %m");
		return r;
	}
	if (strlen(path) >= sizeof(addr.sun_path)) {
		rx_err("%s: the path is too long for a socket (%zu characters at most)", path,
			sizeof(addr.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(addr.sun_path, path, strlen(path));

	/* Held until the socket listens. */
	RX_CLOSE RX_UNUSED int lock = lock_directory(path);

	r = remove_stale(&addr);
	if (r == -EADDRINUSE)
		return r;
	if (!r)
		r = bind_at(fd, &addr, mode);
	if (!r && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r) {
		rx_err("cannot listen at %s: %s", path, strerror(-r));
		return r;
	}
	return rx_steal_fd(&fd);
}

static int remember_path(struct listener *listener, const char *path)
{
	struct stat st;

	if (!path)
		return 0;
	if (lstat(path, &st) < 0)
		return -errno;
	listener->path = strdup(path);
	if (!listener->path)
		return -ENOMEM;
	listener->dev = st.st_dev;
	listener->ino = st.st_ino;
	return 0;
}

int listener_new(
	struct daemon *daemon, int *fd, const char *path, bool admin, struct listener **listener_p)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	int r = 0;

	if (!listener)
		return -ENOMEM;
	listener->daemon = daemon;
	listener->fd = -1;
	listener->admin = admin;
	listener->spare = spare_open();
	r = remember_path(listener, path);
	if (!r)
		r = loop_timer_new(daemon->loop, on_timer, listener, &listener->timer);
	if (!r)
		r = loop_poll_new(
			daemon->loop, *fd, UV_READABLE, on_readable, listener, &listener->poll);
	if (r) {
		(void)listener_free(listener);
		return r;
	}
	listener->fd = rx_steal_fd(fd);
	*listener_p = listener;
	return 0;
}

struct listener *listener_free(struct listener *listener)
{
	struct stat st;

	if (!listener)
		return NULL;
	listener->poll = loop_poll_free(listener->poll);
	listener->timer = loop_timer_free(listener->timer);
	if (listener->path && lstat(listener->path, &st) == 0 && st.st_dev == listener->dev &&
		st.st_ino == listener->ino)
		(void)unlink(listener->path);
	rx_closep(&listener->spare);
	rx_closep(&listener->fd);
	free(listener->path);
	free(listener);
	return NULL;
}
