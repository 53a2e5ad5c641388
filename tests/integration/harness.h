/* SPDX-License-Identifier: MIT */
/* What every integration test includes: daemon, ranks, cmocka, and a time limit per test. */
#ifndef TEST_HARNESS_H
#define TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node.h"
#include "proc.h"
#include "world.h"

/** harness_setup(), harness_teardown() - fixtures of each test: time limit, leftovers */
int harness_setup(void **state);
int harness_teardown(void **state);

/** harness_limit() - time limit of the running test in seconds (scaled), instead of 30 */
void harness_limit(unsigned int seconds);

/** harness_left_ms() - time that ranks may take before they count as hanging */
uint64_t harness_left_ms(void);

#define HARNESS_TEST(function)                                                                     \
	cmocka_unit_test_setup_teardown(function, harness_setup, harness_teardown)

/**
 * HARNESS_RUN() - run a group; $RCCLX_TEST, a pattern with * and ?, chooses tests by name
 *
 * Exit status: 77, a skip for automake, when all tests of the group were skipped.
 */
#define HARNESS_RUN(name, tests)                                                                   \
	(harness_filter(), harness_status(cmocka_run_group_tests_name(name, tests, NULL, NULL),    \
				   sizeof(tests) / sizeof((tests)[0])))

/** harness_filter() - take $RCCLX_TEST into account */
void harness_filter(void);

/** harness_status() - exit status for @n_failed of @n_tests */
int harness_status(int n_failed, size_t n_tests);

/** harness_skip() - say why the running test is skipped; does not return */
void harness_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
