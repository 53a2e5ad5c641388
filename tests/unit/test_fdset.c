/* SPDX-License-Identifier: MIT */
#include "shm_util.h"

#include "../../proto/rx_fdset.h"

#include <errno.h>
#include <fcntl.h>

static int new_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void closes_what_nobody_took(void **state)
{
	unsigned int before = count_fds();
	struct rx_fdset set = RX_FDSET_INIT;

	(void)state;
	for (uint32_t i = 0; i < RX_FRAME_FDS_MAX; i++)
		assert_true(rx_fdset_add(&set, new_fd()));
	assert_int_equal(count_fds(), before + RX_FRAME_FDS_MAX);
	rx_fdset_close(&set);
	assert_int_equal(count_fds(), before);
	assert_int_equal(set.n_fds, 0);
	/* The numbers may belong to others by now. */
	int fd = new_fd();
	rx_fdset_close(&set);
	assert_true(is_open(fd));
	(void)close(fd);
}

static void takes_once(void **state)
{
	unsigned int before = count_fds();
	struct rx_fdset set = RX_FDSET_INIT;
	int first = new_fd();
	int second = new_fd();

	(void)state;
	assert_true(rx_fdset_add(&set, first));
	assert_true(rx_fdset_add(&set, second));
	assert_int_equal(rx_fdset_take(&set, 2), -1);
	assert_int_equal(rx_fdset_take(&set, UINT32_MAX), -1);
	assert_int_equal(rx_fdset_take(&set, 1), second);
	assert_int_equal(rx_fdset_take(&set, 1), -1);
	rx_fdset_close(&set);
	assert_false(is_open(first));
	assert_true(is_open(second));
	(void)close(second);
	assert_int_equal(count_fds(), before);
}

static void closes_what_does_not_fit(void **state)
{
	unsigned int before = count_fds();
	struct rx_fdset set = RX_FDSET_INIT;
	int extra = -1;

	(void)state;
	for (uint32_t i = 0; i < RX_FRAME_FDS_MAX; i++)
		assert_true(rx_fdset_add(&set, new_fd()));
	extra = new_fd();
	assert_false(rx_fdset_add(&set, extra));
	assert_false(is_open(extra));
	assert_int_equal(set.n_fds, RX_FRAME_FDS_MAX);
	rx_fdset_close(&set);
	assert_int_equal(count_fds(), before);
}

static void empty_set_owns_nothing(void **state)
{
	unsigned int before = count_fds();
	struct rx_fdset set = RX_FDSET_INIT;

	(void)state;
	assert_int_equal(rx_fdset_take(&set, 0), -1);
	rx_fdset_close(&set);
	/* Descriptor 0 is the trap of a zeroed set. */
	assert_int_equal(count_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closes_what_nobody_took),
		cmocka_unit_test(takes_once),
		cmocka_unit_test(closes_what_does_not_fit),
		cmocka_unit_test(empty_set_owns_nothing),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
