/* SPDX-License-Identifier: MIT */
/* Finding the daemon's socket. */
#ifndef CLIENT_DIAL_H
#define CLIENT_DIAL_H

#include "rcclx.h"
#include "../shm/rx_base.h"

#include <sys/un.h>

#define DIAL_PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

/**
 * dial() - connect to the first socket that somebody listens on
 * @path:   the only one to try; NULL: the search order of rcclx_connect()
 * @fd_p:   receives the socket, close-on-exec
 * @path_p: receives its path
 *
 * Return: RCCLX_OK; RCCLX_ERR_NO_DAEMON, RCCLX_ERR_DENIED, RCCLX_ERR_TIMEOUT with all that was
 *         tried in the text; RCCLX_ERR_INVALID; RCCLX_ERR_NO_MEMORY.
 */
rcclx_result dial(const char *path, uint64_t deadline_ns, int *fd_p, char path_p[DIAL_PATH_BYTES]);

#endif
