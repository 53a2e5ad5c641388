/* SPDX-License-Identifier: MIT */
#include "shm_util.h"

#include "../../shm/rx_clock.h"
#include "../../shm/rx_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

static char got[1 << 20];

static bool cut_next_send;

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
	if (cut_next_send)
		n /= 2;
	cut_next_send = false;
	return __real_send(fd, bytes, n, flags);
}

/* Everything that can be read now. */
static const char *read_all(int fd)
{
	size_t n = 0;
	ssize_t r = 0;

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while ((r = read(fd, got + n, sizeof(got) - 1 - n)) > 0)
		n += (size_t)r;
	got[n] = '\0';
	return got;
}

struct sink_pipe {
	int fds[2];
};

static int setup(void **state)
{
	static struct sink_pipe sink;

	assert_int_equal(unsetenv("JOURNAL_STREAM"), 0);
	assert_int_equal(pipe(sink.fds), 0);
	rx_log_open("prog", sink.fds[1], RX_LOG_INFO);
	*state = &sink;
	return 0;
}

static int teardown(void **state)
{
	struct sink_pipe *sink = *state;

	close(sink->fds[0]);
	close(sink->fds[1]);
	return 0;
}

static const char *logged(void **state)
{
	const struct sink_pipe *sink = *state;

	return read_all(sink->fds[0]);
}

static void test_silent_before_open(void **state)
{
	int stderr_copy = dup(STDERR_FILENO);
	int fds[2];

	(void)state;
	/* Runs first: a library that nobody asked to log leaves its user's stderr alone. */
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	rx_err("nobody hears this");
	assert_int_equal(dup2(stderr_copy, STDERR_FILENO), STDERR_FILENO);
	assert_string_equal(read_all(fds[0]), "");
	assert_int_equal(rx_log_dropped(), 0);
	close(stderr_copy);
	close(fds[0]);
	close(fds[1]);
}

static void test_levels(void **state)
{
	rx_err("one n=%d", 1);
	rx_warn("two");
	rx_info("three");
	rx_debug("four");
	assert_string_equal(logged(state), "prog: err one n=1\nprog: warn two\nprog: info three\n");
	rx_log_set_level(RX_LOG_DEBUG);
	assert_int_equal(rx_log_get_level(), RX_LOG_DEBUG);
	rx_debug("five");
	assert_string_equal(logged(state), "prog: debug five\n");
	rx_log_set_level(RX_LOG_ERR);
	rx_warn("six");
	rx_err("seven");
	assert_string_equal(logged(state), "prog: err seven\n");
}

static void test_level_names(void **state)
{
	static const char *const names[] = {"err", "warn", "info", "debug"};
	enum rx_log_level level = RX_LOG_N;

	(void)state;
	for (unsigned int i = 0; i < RX_ARRAY_SIZE(names); i++) {
		assert_int_equal(rx_log_level_parse(names[i], &level), 0);
		assert_int_equal(level, i);
	}
	level = RX_LOG_N;
	assert_int_equal(rx_log_level_parse("", &level), -EINVAL);
	assert_int_equal(rx_log_level_parse("error", &level), -EINVAL);
	assert_int_equal(rx_log_level_parse("WARN", &level), -EINVAL);
	assert_int_equal(level, RX_LOG_N);
}

static void test_errno(void **state)
{
	errno = ENOENT;
	rx_info("open: %m");
	assert_int_equal(errno, ENOENT);
	assert_string_equal(logged(state), "prog: info open: No such file or directory\n");
	errno = EDOM;
	rx_debug("not written: %m");
	assert_int_equal(errno, EDOM);
}

static void test_escapes(void **state)
{
	rx_info("name=%s", "a\nb\tc\\d\x1b[31m\x7f\x01\xff\xc2\x9b");
	assert_string_equal(logged(state),
		"prog: info name=a\\nb\\tc\\\\d\\x1b[31m\\x7f\\x01\\xff\\xc2\\x9b\n");
	/* A forged second record stays part of the first. */
	rx_info("name=%s", "x\nprog: err the disk burns");
	assert_string_equal(logged(state), "prog: info name=x\\nprog: err the disk burns\n");
}

static void check_long(void **state, char fill)
{
	char text[5000];
	const char *record = NULL;

	memset(text, fill, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	rx_info("text=%s", text);
	record = logged(state);
	assert_true(strlen(record) <= RX_LOG_RECORD_BYTES);
	assert_true(strlen(record) > RX_LOG_RECORD_BYTES / 2);
	assert_ptr_equal(strchr(record, '\n'), record + strlen(record) - 1);
	assert_string_equal(record + strlen(record) - 4, "...\n");
}

static void test_long_records(void **state)
{
	check_long(state, 'x');
	/* Four characters each when shown. */
	check_long(state, '\x02');
	check_long(state, '\n');
}

static void fill_pipe(int fd)
{
	char page[4096];

	memset(page, '-', sizeof(page));
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (write(fd, page, sizeof(page)) > 0)
		;
	while (write(fd, page, 1) > 0)
		;
	/* Blocking again, as stderr is. */
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
}

/* The alarm ends the test if a record blocks. */
static void check_full_pipe(void **state)
{
	const struct sink_pipe *sink = *state;
	uint64_t dropped = rx_log_dropped();

	fill_pipe(sink->fds[1]);
	for (unsigned int i = 0; i < 5; i++)
		rx_warn("lost");
	assert_int_equal(rx_log_dropped(), dropped + 5);
	assert_null(strchr(logged(state), '\n'));
	rx_warn("room again");
	assert_string_equal(logged(state), "prog: warn room again (5 records lost)\n");
	rx_warn("and more");
	assert_string_equal(logged(state), "prog: warn and more\n");
	/* The description that others share still blocks for them. */
	assert_int_equal(fcntl(sink->fds[1], F_GETFL) & O_NONBLOCK, 0);
}

static void test_full_pipe(void **state)
{
	check_full_pipe(state);
}

/* Where the pipe cannot be opened anew, here for want of fds. */
static void test_full_pipe_polled(void **state)
{
	const struct sink_pipe *sink = *state;
	struct rlimit old = {0};
	struct rlimit none = {0};
	unsigned int n_fds = count_fds();

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	rx_log_open("prog", sink->fds[1], RX_LOG_INFO);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	/* The description of its own that setup's open made is gone. */
	assert_int_equal(count_fds(), n_fds - 1);
	check_full_pipe(state);
}

static void test_long_record_with_notes(void **state)
{
	const struct sink_pipe *sink = *state;
	char text[3000];
	const char *note = " (1 records lost)\n";
	const char *record = NULL;

	memset(text, 'y', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	fill_pipe(sink->fds[1]);
	rx_info("lost");
	(void)logged(state);
	rx_info("%s", text);
	record = logged(state);
	assert_true(strlen(record) <= RX_LOG_RECORD_BYTES);
	assert_string_equal(record + strlen(record) - strlen(note), note);
}

static void test_socket(void **state)
{
	static char bulk[4096];
	int fds[2];
	uint64_t dropped = rx_log_dropped();

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	rx_log_open("prog", fds[1], RX_LOG_INFO);
	rx_info("over a socket");
	assert_string_equal(read_all(fds[0]), "prog: info over a socket\n");
	while (send(fds[1], bulk, sizeof(bulk), MSG_DONTWAIT) > 0)
		;
	while (send(fds[1], bulk, 1, MSG_DONTWAIT) > 0)
		;
	rx_info("lost");
	assert_int_equal(rx_log_dropped(), dropped + 1);
	(void)read_all(fds[0]);
	rx_info("room again");
	assert_string_equal(read_all(fds[0]), "prog: info room again (1 records lost)\n");
	/* No SIGPIPE when the journal goes away. */
	close(fds[0]);
	rx_info("lost");
	assert_int_equal(rx_log_dropped(), dropped + 2);
	close(fds[1]);
	/* The loss is reported once, to whoever comes next. */
	fds[0] = open("/dev/null", O_WRONLY | O_CLOEXEC);
	rx_log_open("prog", fds[0], RX_LOG_INFO);
	rx_info("to nobody");
	close(fds[0]);
}

/* The sink took half of a record: the next one does not end up in its line. */
static void test_torn_record(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	rx_log_open("prog", fds[1], RX_LOG_INFO);
	cut_next_send = true;
	rx_info("abcd");
	rx_info("whole");
	rx_info("and on");
	assert_string_equal(read_all(fds[0]), "prog: in\n"
					      "prog: info whole (1 records lost)\n"
					      "prog: info and on\n");
	close(fds[0]);
	close(fds[1]);
}

static void test_file(void **state)
{
	char path[] = "/tmp/rx-log-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(write(fd, "before\n", 7), 7);
	rx_log_open("prog", fd, RX_LOG_INFO);
	rx_info("in the file");
	assert_int_equal(write(fd, "after\n", 6), 6);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_string_equal(read_all(fd), "before\nprog: info in the file\nafter\n");
	close(fd);
}

static void test_journal(void **state)
{
	const struct sink_pipe *sink = *state;
	struct stat st = {0};
	char stream[64];

	assert_int_equal(fstat(sink->fds[1], &st), 0);
	(void)snprintf(
		stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
	rx_log_open("prog", sink->fds[1], RX_LOG_DEBUG);
	rx_err("a");
	rx_warn("b");
	rx_info("c");
	rx_debug("d");
	assert_string_equal(logged(state), "<3>a\n<4>b\n<6>c\n<7>d\n");
	/* stderr is no longer what the variable names. */
	(void)snprintf(
		stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + 1);
	assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
	rx_log_open("prog", sink->fds[1], RX_LOG_INFO);
	rx_err("e");
	assert_string_equal(logged(state), "prog: err e\n");
	assert_int_equal(setenv("JOURNAL_STREAM", "nonsense", 1), 0);
	rx_log_open("prog", sink->fds[1], RX_LOG_INFO);
	rx_err("f");
	assert_string_equal(logged(state), "prog: err f\n");
}

static void test_closed_fd(void **state)
{
	(void)state;
	rx_log_open("prog", -1, RX_LOG_INFO);
	rx_err("nowhere to go");
}

static void test_limit(void **state)
{
	struct rx_log_limit limit = {0};
	char expected[4096] = "";

	for (unsigned int i = 0; i < RX_LOG_BURST; i++)
		(void)strcat(expected, "prog: warn peer=1\n");
	for (unsigned int i = 0; i < RX_LOG_BURST + 7; i++)
		rx_log_limited(&limit, RX_LOG_WARN, "peer=%d", 1);
	assert_string_equal(logged(state), expected);
	/* What its level hides does not count. */
	rx_log_limited(&limit, RX_LOG_DEBUG, "hidden");
	assert_int_equal(limit.n_dropped, 7);
	/* The window is over. */
	limit.window_start_ns -= RX_LOG_WINDOW_NS;
	errno = EPIPE;
	rx_log_limited(&limit, RX_LOG_WARN, "peer=%d: %m", 1);
	assert_int_equal(errno, EPIPE);
	assert_string_equal(
		logged(state), "prog: warn peer=1: Broken pipe (7 like this suppressed)\n");
	rx_log_limited(&limit, RX_LOG_WARN, "peer=%d", 1);
	assert_string_equal(logged(state), "prog: warn peer=1\n");
}

#define N_WRITERS 4u
#define N_RECORDS 100u

static void *writer(void *arg)
{
	const char *name = arg;

	for (unsigned int i = 0; i < N_RECORDS; i++) {
		rx_info("writer=%s i=%u end", name, i);
		rx_log_set_level(RX_LOG_INFO);
	}
	return NULL;
}

static void test_threads(void **state)
{
	static char names[N_WRITERS][2] = {"a", "b", "c", "d"};
	pthread_t threads[N_WRITERS];
	unsigned int n_lines = 0;
	char *save = NULL;

	for (unsigned int i = 0; i < N_WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, writer, names[i]), 0);
	for (unsigned int i = 0; i < N_WRITERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	(void)logged(state);
	for (char *line = strtok_r(got, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char name = 0;
		unsigned int number = 0;
		int end = 0;

		assert_int_equal(
			sscanf(line, "prog: info writer=%c i=%u end%n", &name, &number, &end), 2);
		assert_int_equal((size_t)end, strlen(line));
		n_lines++;
	}
	assert_int_equal(n_lines, N_WRITERS * N_RECORDS);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silent_before_open),
		TEST(test_levels),
		TEST(test_level_names),
		TEST(test_errno),
		TEST(test_escapes),
		TEST(test_long_records),
		TEST(test_full_pipe),
		TEST(test_full_pipe_polled),
		TEST(test_long_record_with_notes),
		TEST(test_socket),
		TEST(test_torn_record),
		TEST(test_file),
		TEST(test_journal),
		TEST(test_closed_fd),
		TEST(test_limit),
		TEST(test_threads),
	};

	(void)alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
