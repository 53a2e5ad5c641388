/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define HARNESS_LIMIT_S 30u

static void on_alarm(int signal)
{
	static const char text[] = "time limit of the test exceeded\n";

	(void)signal;
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)n;
	world_kill_leftovers();
	node_kill_leftovers();
	_exit(1);
}

void harness_limit(unsigned int seconds)
{
	(void)alarm(seconds * (unsigned int)test_slow());
}

void harness_filter(void)
{
	const char *pattern = getenv("RCCLX_TEST");

	if (pattern != NULL)
		cmocka_set_test_filter(pattern);
}

int harness_setup(void **state)
{
	struct sigaction action = {.sa_handler = on_alarm};

	(void)sigaction(SIGALRM, &action, NULL);
	harness_limit(HARNESS_LIMIT_S);
	(void)state;
	return 0;
}

int harness_teardown(void **state)
{
	(void)alarm(0);
	world_end_leftovers();
	node_end_leftovers();
	(void)state;
	return 0;
}
