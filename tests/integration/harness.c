/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HARNESS_LIMIT_S 30u

/* Hanging ranks are reported by name before the alarm ends everything. */
#define RESERVE_MS 4000u

static uint64_t limit_end_ms;
static size_t n_skipped;

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
	limit_end_ms = test_now_ms() + seconds * 1000 * test_slow();
}

uint64_t harness_left_ms(void)
{
	uint64_t now = test_now_ms() + RESERVE_MS;

	return limit_end_ms > now ? limit_end_ms - now : 0;
}

void harness_filter(void)
{
	const char *pattern = getenv("RCCLX_TEST");

	if (pattern != NULL)
		cmocka_set_test_filter(pattern);
}

int harness_status(int n_failed, size_t n_tests)
{
	if (n_failed != 0)
		return 1;
	return n_skipped == n_tests ? 77 : 0;
}

void harness_skip(const char *format, ...)
{
	char text[200] = "";
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print_message("skipped: %s\n", text);
	n_skipped++;
	skip();
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
	world_end_leftovers();
	node_end_leftovers();
	(void)alarm(0);
	(void)state;
	return 0;
}
