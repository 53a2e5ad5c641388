/* SPDX-License-Identifier: MIT */
/* A listening socket: made or inherited, polled, given back. Loop thread only. */
#ifndef DAEMON_LISTENER_H
#define DAEMON_LISTENER_H

#include "../shm/rx_base.h"

struct daemon;
struct listener;

/**
 * listener_bind() - make a listening SEQPACKET socket at @path, mode 0600 or 0660
 *
 * A socket file at which nobody answers is replaced. Errors are logged.
 * Return: the fd; -EADDRINUSE another daemon serves there; other -errno.
 */
RX_WARN_UNUSED int listener_bind(const char *path, unsigned int mode);

/**
 * listener_new() - accept on @fd
 * @fd:   taken over on success
 * @path: unlinked at the end, when it is still this socket; NULL: inherited, left alone
 */
RX_WARN_UNUSED int listener_new(
	struct daemon *daemon, int *fd, const char *path, bool admin, struct listener **listener_p);

/** listener_free() - stop, close, unlink. Returns NULL; NULL is allowed. */
struct listener *listener_free(struct listener *listener);

#endif
