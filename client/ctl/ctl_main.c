/* SPDX-License-Identifier: MIT */
/* rcclxctl: what the node's rcclxd is doing. See rcclxctl(1). */
#include "ctl.h"

#include "../rcclx.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const struct command {
	const char *name;
	enum ctl_exit (*run)(const struct ctl_options *options);
	bool has_args; /* it parses what follows its name itself */
	const char *help;
} commands[] = {
	{"status", cmd_status, false,
		"the daemon: state, counters, limits, who keeps others waiting"},
	{"comms", cmd_comms, false, "communicators, their ranks, and who is late"},
	{"clients", cmd_clients, false, "connected processes and their memory"},
	{"explain", cmd_explain, true, "what serves an operation, and why: explain --help"},
	{"topo", cmd_topo, false, "the node: packages, NUMA nodes, caches, cores"},
	{"devices", cmd_devices, false, "GPUs: state, memory, peers; or why none is used"},
	{"doctor", cmd_doctor, false, "what GPUs need here, what is missing, and what to do"},
	{"tune", cmd_tune, true, "measure the thresholds of this machine: tune --help"},
	{"drain", cmd_drain, false, "take no new sessions, and end when the last one has gone"},
	{"run", cmd_run, true, "a program that uses NCCL, over rcclxd: run --help"},
	{"which", cmd_which, true, "which NCCL a process uses: which PID"},
	{"abi-check", cmd_abi_check, true,
		"what a program wants of NCCL, and what it gets: abi-check FILE"},
	{"version", cmd_version, false, "versions of this program and of the daemon"},
};

static enum ctl_exit help(void)
{
	printf("Usage: rcclxctl [OPTIONS] COMMAND\n"
	       "Look at, and control, the node's rcclxd.\n\nCommands:\n");
	for (size_t i = 0; i < RX_ARRAY_SIZE(commands); i++)
		printf("  %-9s  %s\n", commands[i].name, commands[i].help);
	printf("  %-9s  this text\n\n"
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

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < RX_ARRAY_SIZE(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

/* Options up to the first other word, which is argv[optind]. False: it is over, with *status_p. */
static bool parse(int argc, char **argv, struct ctl_options *options, enum ctl_exit *status_p)
{
	static const struct option long_options[] = {
		{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int c = 0;

	optind = 0; /* glibc: start afresh */
	while ((c = getopt_long(argc, argv, "+h", long_options, NULL)) != -1) {
		switch (c) {
		case 's':
			options->socket = optarg;
			break;
		case 'j':
			options->json = true;
			break;
		case 'h':
			*status_p = help();
			return false;
		case 'V':
			printf("rcclxctl %d.%d.%d\n", RCCLX_VERSION_MAJOR, RCCLX_VERSION_MINOR,
				RCCLX_VERSION_PATCH);
			*status_p = CTL_EXIT_OK;
			return false;
		default:
			*status_p = CTL_EXIT_USAGE;
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	struct ctl_options options = {0};
	const struct command *command = NULL;
	enum ctl_exit status = CTL_EXIT_OK;

	if (!parse(argc, argv, &options, &status))
		return (int)status;
	if (optind == argc)
		return (int)usage("name a command", "");
	options.argc = argc - optind;
	options.argv = argv + optind;
	if (strcmp(options.argv[0], "help") == 0)
		return (int)help();
	command = find(options.argv[0]);
	if (!command)
		return (int)usage("unknown command ", options.argv[0]);
	if (!command->has_args) {
		if (!parse(options.argc, options.argv, &options, &status))
			return (int)status;
		if (optind < options.argc)
			return (int)usage("one command at a time: ", options.argv[optind]);
	}
	return (int)command->run(&options);
}
