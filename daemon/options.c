/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	OPT_SOCKET = 256,
	OPT_ADMIN_SOCKET,
	OPT_CONFIG,
	OPT_TUNING_DIR,
	OPT_PRIVATE,
	OPT_SYSTEMD,
	OPT_LIFELINE_FD,
	OPT_ONCE,
	OPT_LOG_LEVEL,
	OPT_CHECK_CONFIG,
	OPT_VERSION,
	OPT_HELP,
};

static const struct option long_options[] = {
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"admin-socket", required_argument, NULL, OPT_ADMIN_SOCKET},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"tuning-dir", required_argument, NULL, OPT_TUNING_DIR},
	{"private", no_argument, NULL, OPT_PRIVATE},
	{"systemd", no_argument, NULL, OPT_SYSTEMD},
	{"lifeline-fd", required_argument, NULL, OPT_LIFELINE_FD},
	{"once", no_argument, NULL, OPT_ONCE},
	{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	{"check-config", no_argument, NULL, OPT_CHECK_CONFIG},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"usage: rcclxd [OPTION]...\n"
	"Serve collective communication to the processes of this node.\n"
	"\n"
	"  --socket PATH         listen here (default /run/rcclx/rcclxd.sock)\n"
	"  --admin-socket PATH   for rcclxctl (default: admin.sock beside the socket)\n"
	"  --config FILE         default " SYSCONFDIR "/rcclx/rcclxd.conf, which may be absent\n"
	"  --tuning-dir DIR      thresholds, *.conf (default " SYSCONFDIR "/rcclx/tuning.d)\n"
	"  --private             serve only the own user; socket in $XDG_RUNTIME_DIR/rcclx/;\n"
	"                        reads a configuration only if --config is given, and thresholds\n"
	"                        only if --tuning-dir or the configuration names a folder\n"
	"  --systemd             take the sockets from systemd\n"
	"  --lifeline-fd N       stop when this descriptor hangs up\n"
	"  --once                stop a second after the last client has gone\n"
	"  --log-level LEVEL     err, warn, info or debug; overrides the configuration\n"
	"  --check-config        say whether the configuration is good, and exit\n"
	"  --version, --help\n";

static int parse_fd(const char *text, int *fd_p)
{
	char *end = NULL;
	long fd = 0;

	errno = 0;
	fd = strtol(text, &end, 10);
	if (errno || end == text || *end != '\0' || fd < 0 || fd > INT32_MAX) {
		(void)fprintf(
			stderr, "rcclxd: --lifeline-fd: expected a number, not \"%s\"\n", text);
		return OPTIONS_E_USAGE;
	}
	if (fcntl((int)fd, F_GETFD) < 0) {
		(void)fprintf(stderr, "rcclxd: --lifeline-fd: descriptor %ld is not open\n", fd);
		return OPTIONS_E_USAGE;
	}
	*fd_p = (int)fd;
	return 0;
}

static int parse_level(const char *text, struct options *options)
{
	if (rx_log_level_parse(text, &options->log_level)) {
		(void)fprintf(stderr,
			"rcclxd: --log-level: expected err, warn, info or debug, not \"%s\"\n",
			text);
		return OPTIONS_E_USAGE;
	}
	options->has_log_level = true;
	return 0;
}

static int take_option(int option, struct options *options)
{
	switch (option) {
	case OPT_SOCKET:
		options->socket = optarg;
		return 0;
	case OPT_ADMIN_SOCKET:
		options->admin_socket = optarg;
		return 0;
	case OPT_CONFIG:
		options->config = optarg;
		return 0;
	case OPT_TUNING_DIR:
		options->tuning_dir = optarg;
		return 0;
	case OPT_PRIVATE:
		options->private_mode = true;
		return 0;
	case OPT_SYSTEMD:
		options->systemd = true;
		return 0;
	case OPT_ONCE:
		options->once = true;
		return 0;
	case OPT_CHECK_CONFIG:
		options->check_config = true;
		return 0;
	case OPT_LIFELINE_FD:
		return parse_fd(optarg, &options->lifeline_fd);
	case OPT_LOG_LEVEL:
		return parse_level(optarg, options);
	case OPT_VERSION:
		(void)printf("rcclxd " RX_DAEMON_VERSION "\n");
		return OPTIONS_E_DONE;
	case OPT_HELP:
		(void)fputs(usage, stdout);
		return OPTIONS_E_DONE;
	default:
		/* getopt has said what is wrong. */
		(void)fprintf(stderr, "Try 'rcclxd --help'.\n");
		return OPTIONS_E_USAGE;
	}
}

int options_parse(int argc, char **argv, struct options *options_p)
{
	struct options options = {.lifeline_fd = -1};
	int option = 0;

	optind = 1;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		int r = take_option(option, &options);

		if (r)
			return r;
	}
	if (optind < argc) {
		(void)fprintf(stderr, "rcclxd: unexpected argument \"%s\"\n", argv[optind]);
		return OPTIONS_E_USAGE;
	}
	if (options.systemd && (options.socket || options.private_mode)) {
		(void)fprintf(
			stderr, "rcclxd: --systemd goes with neither --socket nor --private\n");
		return OPTIONS_E_USAGE;
	}
	*options_p = options;
	return 0;
}
