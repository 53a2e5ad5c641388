/* SPDX-License-Identifier: MIT */
/*
 * Holds sessions that do nothing, for bench.sh to see what they cost the daemon.
 *
 * Usage: idle_sessions SOCKET N. Prints "ready"; ends when its standard input ends.
 */
#include "../../client/rcclx.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SESSIONS_MAX 1024

int main(int argc, char **argv)
{
	static struct rcclx_client *clients[SESSIONS_MAX];
	int n = argc == 3 ? atoi(argv[2]) : 0;
	char byte = 0;

	if (n < 1 || n > SESSIONS_MAX) {
		fprintf(stderr, "usage: idle_sessions SOCKET N (1 to %d)\n", SESSIONS_MAX);
		return 2;
	}
	for (int i = 0; i < n; i++) {
		if (rcclx_connect(argv[1], NULL, &clients[i]) != RCCLX_OK) {
			fprintf(stderr, "idle_sessions: session %d: %s\n", i, rcclx_last_error());
			return EXIT_FAILURE;
		}
	}
	printf("ready\n");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	for (int i = 0; i < n; i++)
		if (rcclx_disconnect(clients[i]) != RCCLX_OK)
			return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
