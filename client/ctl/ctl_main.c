/* SPDX-License-Identifier: MIT */
/* rcclxctl: what the node's rcclxd is doing. See rcclxctl(1). */
#include "ctl.h"

#include "../rcclx.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	enum ctl_exit (*run)(const struct ctl_options *options);
	const char *help;
} commands[] = {
	{"status", cmd_status, "the daemon: state, counters, limits, who keeps others waiting"},
	{"comms", cmd_comms, "communicators, their ranks, and who is late"},
	{"clients", cmd_clients, "connected processes and their memory"},
	{"drain", cmd_drain, "take no new sessions, and end when the last one has gone"},
	{"version", cmd_version, "versions of this program and of the daemon"},
};

static enum ctl_exit help(void)
{
	printf("Usage: rcclxctl [OPTIONS] COMMAND\n"
	       "Look at, and control, the node's rcclxd.\n\nCommands:\n");
	for (size_t i = 0; i < RX_ARRAY_SIZE(commands); i++)
		printf("  %-8s  %s\n", commands[i].name, commands[i].help);
	printf("  %-8s  this text\n\n"
	       "Options:\n"
	       "  --socket PATH  the admin socket (RCCLX_ADMIN_SOCKET, admin.sock beside "
	       "RCCLX_SOCKET,\n"
	       "                 /run/rcclx/admin.sock, $XDG_RUNTIME_DIR/rcclx/admin.sock)\n"
	       "  --json         for programs\n"
	       "  -h, --help, --version\n\n"
	       "Exit status: 0 done, 1 failed, 2 usage, 3 no daemon answers, 4 permission denied.\n",
		"help");
	return CTL_EXIT_OK;
}

static enum ctl_exit usage(const char *what, const char *value)
{
	fprintf(stderr, "rcclxctl: %s%s; see rcclxctl help\n", what, value);
	return CTL_EXIT_USAGE;
}

static enum ctl_exit run(const struct ctl_options *options, const char *name)
{
	if (strcmp(name, "help") == 0)
		return help();
	for (size_t i = 0; i < RX_ARRAY_SIZE(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return commands[i].run(options);
	return usage("unknown command ", name);
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	struct ctl_options options = {0};
	int c = 0;

	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		switch (c) {
		case 's':
			options.socket = optarg;
			break;
		case 'j':
			options.json = true;
			break;
		case 'h':
			return (int)help();
		case 'V':
			printf("rcclxctl %d.%d.%d\n", RCCLX_VERSION_MAJOR, RCCLX_VERSION_MINOR,
				RCCLX_VERSION_PATCH);
			return CTL_EXIT_OK;
		default:
			return CTL_EXIT_USAGE;
		}
	}
	if (optind == argc)
		return (int)usage("name a command", "");
	if (argc - optind > 1)
		return (int)usage("one command at a time: ", argv[optind + 1]);
	return (int)run(&options, argv[optind]);
}
