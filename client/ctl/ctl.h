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
	CTL_EXIT_INTERRUPTED = 130,
};

struct ctl_options {
	const char *socket; /* admin socket; NULL: search */
	bool json;
	/* The command's name and what follows it; commands of one word have nothing there. */
	int argc;
	char **argv;
};

enum ctl_exit cmd_status(const struct ctl_options *options);
enum ctl_exit cmd_comms(const struct ctl_options *options);
enum ctl_exit cmd_clients(const struct ctl_options *options);
enum ctl_exit cmd_drain(const struct ctl_options *options);
enum ctl_exit cmd_explain(const struct ctl_options *options);
enum ctl_exit cmd_devices(const struct ctl_options *options);
enum ctl_exit cmd_doctor(const struct ctl_options *options);
enum ctl_exit cmd_topo(const struct ctl_options *options);
enum ctl_exit cmd_tune(const struct ctl_options *options);
enum ctl_exit cmd_run(const struct ctl_options *options);
enum ctl_exit cmd_which(const struct ctl_options *options);
enum ctl_exit cmd_abi_check(const struct ctl_options *options);
enum ctl_exit cmd_version(const struct ctl_options *options);

#endif
