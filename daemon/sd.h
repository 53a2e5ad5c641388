/* SPDX-License-Identifier: MIT */
/* systemd: inherited sockets, readiness, status, watchdog. Loop thread only. */
#ifndef DAEMON_SD_H
#define DAEMON_SD_H

#include "../shm/rx_base.h"

#include <uv.h>

struct exec;
struct sd;

/**
 * sd_sockets() - sockets passed by name: "control" and "admin"
 * @control_fd_p, @admin_fd_p: receive the fds, -1 where there is none
 *
 * Checked to be listening SEQPACKET sockets; what has another name is closed. Errors are logged.
 * Return: 0; -EINVAL, other -errno.
 */
RX_WARN_UNUSED int sd_sockets(int *control_fd_p, int *admin_fd_p);

/** sd_new() - notifications, and the watchdog if it is asked for; @exec is looked at by it */
RX_WARN_UNUSED int sd_new(uv_loop_t *loop, struct exec *exec, struct sd **sd_p);

/** sd_free() - returns NULL; NULL is allowed */
struct sd *sd_free(struct sd *sd);

/** sd_ready(), sd_reloading(), sd_stopping() - where the daemon is; NULL is allowed */
void sd_ready(struct sd *sd);
void sd_reloading(struct sd *sd);
void sd_stopping(struct sd *sd);

/** sd_status() - a line for people; sent soon, and not more often than twice a second */
void sd_status(struct sd *sd, const char *format, ...) RX_PRINTF(2, 3);

#endif
