/* SPDX-License-Identifier: MIT */
/* Which sockets the daemon listens at, by options, configuration and mode; and making them. */
#ifndef DAEMON_SOCKETS_H
#define DAEMON_SOCKETS_H

#include "options.h"

struct daemon;

/** sockets_open() - make or inherit both sockets and listen. Errors are logged. */
RX_WARN_UNUSED int sockets_open(struct daemon *daemon, const struct options *options);

#endif
