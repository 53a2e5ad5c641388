/* SPDX-License-Identifier: MIT */
/* rcclxctl: its commands and exit statuses. One file per command. */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include "../../shm/rx_base.h"

enum ctl_exit {
	CTL_EXIT_OK = 0,
	CTL_EXIT_FAILED = 1,
	CTL_EXIT_USAGE = 2,
	CTL_EXIT_NO_DAEMON = 3,
	CTL_EXIT_DENIED = 4,
};

struct ctl_options {
	const char *socket; /* admin socket; NULL: search */
	bool json;
};

enum ctl_exit cmd_status(const struct ctl_options *options);
enum ctl_exit cmd_comms(const struct ctl_options *options);
enum ctl_exit cmd_clients(const struct ctl_options *options);
enum ctl_exit cmd_drain(const struct ctl_options *options);
enum ctl_exit cmd_version(const struct ctl_options *options);

#endif
