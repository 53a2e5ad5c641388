/* SPDX-License-Identifier: MIT */
/* Error texts and names. */
#include "fake_daemon.h"

#include "../../client/err.h"

#include <errno.h>
#include <string.h>

static void test_names(void **state)
{
	(void)state;
	for (rcclx_result r = 0; r < RCCLX_ERR_N; r++) {
		assert_non_null(rcclx_strerror(r));
		assert_string_not_equal(rcclx_strerror(r), "unknown result");
		for (rcclx_result other = 0; other < r; other++)
			assert_string_not_equal(rcclx_strerror(r), rcclx_strerror(other));
	}
	assert_string_equal(rcclx_strerror(RCCLX_ERR_PEER_LOST), "peer lost");
	assert_string_equal(rcclx_strerror(-1), "unknown result");
	assert_string_equal(rcclx_strerror(RCCLX_ERR_N), "unknown result");
	assert_string_equal(rcclx_strerror(INT32_MAX), "unknown result");
	assert_string_equal(rcclx_strerror(INT32_MIN), "unknown result");
}

static void test_version(void **state)
{
	(void)state;
	assert_int_equal(rcclx_version(), RCCLX_VERSION);
	assert_int_equal(rcclx_version() / 10000, RCCLX_VERSION_MAJOR);
}

static void *other_thread(void *arg)
{
	bool *good = arg;

	*good = rcclx_last_error()[0] == '\0';
	(void)err_set(RCCLX_ERR_BUSY, "the other thread's");
	*good = *good && strcmp(rcclx_last_error(), "the other thread's") == 0;
	return NULL;
}

static void test_each_thread_its_own(void **state)
{
	pthread_t thread;
	bool good = false;

	(void)state;
	assert_int_equal(err_set(RCCLX_ERR_LIMIT, "%d of %s", 3, "four"), RCCLX_ERR_LIMIT);
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &good), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(good);
	assert_string_equal(rcclx_last_error(), "3 of four");
}

static void test_text_from_itself(void **state)
{
	(void)state;
	(void)err_set(RCCLX_ERR_LIMIT, "inner");
	(void)err_set(RCCLX_ERR_LIMIT, "outer: %s", rcclx_last_error());
	assert_string_equal(rcclx_last_error(), "outer: inner");
}

static void test_long_text_is_cut(void **state)
{
	char text[4000];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)err_set(RCCLX_ERR_LIMIT, "%s", text);
	assert_true(strlen(rcclx_last_error()) >= 1024);
	assert_true(strlen(rcclx_last_error()) < sizeof(text) - 1);
}

static void test_errno(void **state)
{
	(void)state;
	assert_int_equal(err_errno(-ENOMEM, "doing it"), RCCLX_ERR_NO_MEMORY);
	assert_string_equal(rcclx_last_error(), "doing it: Cannot allocate memory");
	assert_int_equal(err_errno(-EMFILE, "doing it"), RCCLX_ERR_NO_MEMORY);
	assert_int_equal(err_errno(-EACCES, "doing it"), RCCLX_ERR_DENIED);
	assert_int_equal(err_errno(-ECONNRESET, "doing it"), RCCLX_ERR_DAEMON_LOST);
	assert_int_equal(err_errno(-EIO, "doing it"), RCCLX_ERR_SYSTEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_each_thread_its_own),
		cmocka_unit_test(test_text_from_itself),
		cmocka_unit_test(test_long_text_is_cut),
		cmocka_unit_test(test_errno),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
