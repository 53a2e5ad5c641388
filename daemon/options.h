/* SPDX-License-Identifier: MIT */
/* The command line of rcclxd. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include "config.h"

struct options {
	const char *socket; /* NULL: not given; so the next three */
	const char *admin_socket;
	const char *config;
	const char *tuning_dir;
	bool private_mode;
	bool systemd;
	bool once;
	bool check_config;
	int lifeline_fd; /* -1: none */
	bool has_log_level;
	enum rx_log_level log_level;
};

enum {
	OPTIONS_E_DONE = 1,  /* --help, --version: said what there was to say */
	OPTIONS_E_USAGE = 2, /* wrong, and said so on stderr */
};

/** options_parse() - 0, OPTIONS_E_DONE, OPTIONS_E_USAGE; strings point into @argv */
RX_WARN_UNUSED int options_parse(int argc, char **argv, struct options *options_p);

#endif
