/* SPDX-License-Identifier: MIT */
/*
 * The sink is a stderr that others share: its file status flags are not ours to change, and its
 * reader may stop. So:
 *   socket (journal)          send() with MSG_DONTWAIT
 *   pipe, terminal            opened anew through /proc, non-blocking: a file description of our
 *                             own; where that is refused, poll() first. A pipe that polls as
 *                             writable takes PIPE_BUF bytes, and a record is smaller.
 *   file                      plain write(); not opened anew, which would lose its position
 * What does not fit is dropped and counted, and the next record that gets through says so. A
 * record that was cut short (possible only on terminals and sockets) counts as dropped, and the
 * next one starts on a new line.
 */
#include "rx_log.h"

#include "rx_clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room for the notes about drops, so that a long text never hides them. */
#define NOTE_BYTES 96u

static_assert(RX_LOG_RECORD_BYTES <= PIPE_BUF, "a pipe must take a record whole or not at all");

enum sink_kind { SINK_NONE, SINK_SOCKET, SINK_POLL, SINK_DIRECT };

static struct {
	pthread_mutex_t lock; /* all below; held over calls that do not block */
	const char *program;
	enum sink_kind kind;
	int fd;
	int own_fd; /* what we opened anew, -1 none */
	bool journal;
	bool torn; /* the last record was cut short */
	enum rx_log_level level;
	uint64_t n_dropped;
	uint64_t n_reported; /* of these */
} sink = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.kind = SINK_NONE,
	.fd = -1,
	.own_fd = -1,
	.level = RX_LOG_INFO,
};

static const char *const level_names[RX_LOG_N] = {
	[RX_LOG_ERR] = "err",
	[RX_LOG_WARN] = "warn",
	[RX_LOG_INFO] = "info",
	[RX_LOG_DEBUG] = "debug",
};

/* syslog(3) priorities. */
static const int level_priorities[RX_LOG_N] = {
	[RX_LOG_ERR] = 3,
	[RX_LOG_WARN] = 4,
	[RX_LOG_INFO] = 6,
	[RX_LOG_DEBUG] = 7,
};

/* A record in the making. Text that does not fit is cut. */
struct record {
	size_t n;
	char bytes[RX_LOG_RECORD_BYTES];
};

/* ---- formatting ---- */

static void RX_PRINTF(3, 4)
	record_printf(struct record *record, size_t limit, const char *format, ...)
{
	size_t room = limit > record->n ? limit - record->n : 0;
	va_list args;
	int n = 0;

	if (room == 0)
		return;
	va_start(args, format);
	n = vsnprintf(record->bytes + record->n, room, format, args);
	va_end(args);
	if (n > 0)
		record->n += (size_t)n < room ? (size_t)n : room - 1;
}

/* One character as it is shown; returns its length, at most 4. */
static size_t escape(char c, char out[5])
{
	static const char hex[] = "0123456789abcdef";
	unsigned char byte = (unsigned char)c;

	out[0] = c;
	if (c != '\\' && byte >= 0x20 && byte < 0x7f)
		return 1;
	out[0] = '\\';
	switch (c) {
	case '\\':
		out[1] = '\\';
		return 2;
	case '\n':
		out[1] = 'n';
		return 2;
	case '\t':
		out[1] = 't';
		return 2;
	default:
		out[1] = 'x';
		out[2] = hex[byte >> 4];
		out[3] = hex[byte & 0xf];
		return 4;
	}
}

static void record_text(struct record *record, size_t limit, const char *text)
{
	for (; *text; text++) {
		char shown[5];
		size_t n = escape(*text, shown);

		if (record->n + n + 3 > limit) {
			memcpy(record->bytes + record->n, "...", 3);
			record->n += 3;
			return;
		}
		memcpy(record->bytes + record->n, shown, n);
		record->n += n;
	}
}

static void record_make(
	struct record *record, enum rx_log_level level, const char *text, uint32_t n_suppressed)
{
	const size_t end = RX_LOG_RECORD_BYTES - 1; /* the newline */
	uint64_t n_lost = sink.n_dropped - sink.n_reported;

	record->n = 0;
	if (sink.torn)
		record->bytes[record->n++] = '\n';
	if (sink.journal)
		record_printf(record, end, "<%d>", level_priorities[level]);
	else
		record_printf(record, end, "%.64s: %s ", sink.program, level_names[level]);
	record_text(record, end - NOTE_BYTES, text);
	if (n_suppressed > 0)
		record_printf(record, end, " (%" PRIu32 " like this suppressed)", n_suppressed);
	if (n_lost > 0)
		record_printf(record, end, " (%" PRIu64 " records lost)", n_lost);
	record->bytes[record->n++] = '\n';
}

/* ---- the sink ---- */

static bool writable_now(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & (POLLOUT | POLLERR));
}

static ssize_t sink_write(const struct record *record)
{
	switch (sink.kind) {
	case SINK_SOCKET:
		return send(sink.fd, record->bytes, record->n, MSG_DONTWAIT | MSG_NOSIGNAL);
	case SINK_POLL:
		if (!writable_now(sink.fd))
			return -1;
		return write(sink.fd, record->bytes, record->n);
	case SINK_DIRECT:
		return write(sink.fd, record->bytes, record->n);
	case SINK_NONE:
		break;
	}
	return 0;
}

static void emit(enum rx_log_level level, const char *text, uint32_t n_suppressed)
{
	struct record record;
	ssize_t n = 0;

	if (sink.kind == SINK_NONE)
		return;
	record_make(&record, level, text, n_suppressed);
	n = sink_write(&record);
	if (n == (ssize_t)record.n) {
		sink.n_reported = sink.n_dropped;
		sink.torn = false;
		return;
	}
	sink.n_dropped++;
	/* A record of which nothing came through leaves an open line as it was. */
	sink.torn = sink.torn || n > 0;
}

/* Does $JOURNAL_STREAM name this file? Then stderr has not been redirected since. */
static bool is_journal(const struct stat *st)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uint64_t dev = 0;
	uint64_t ino = 0;

	return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &dev, &ino) == 2 &&
	       dev == (uint64_t)st->st_dev && ino == (uint64_t)st->st_ino;
}

static int open_again(int fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static enum sink_kind sink_kind_of(const struct stat *st)
{
	if (S_ISSOCK(st->st_mode))
		return SINK_SOCKET;
	return S_ISREG(st->st_mode) ? SINK_DIRECT : SINK_POLL;
}

void rx_log_open(const char *program, int fd, enum rx_log_level level)
{
	struct stat st = {0};
	enum sink_kind kind = SINK_NONE;
	bool journal = false;
	int own_fd = -1;

	if (fstat(fd, &st) == 0) {
		kind = sink_kind_of(&st);
		journal = is_journal(&st);
	}
	if (kind == SINK_POLL)
		own_fd = open_again(fd);
	pthread_mutex_lock(&sink.lock);
	if (sink.own_fd >= 0)
		(void)close(sink.own_fd);
	sink.program = program;
	sink.kind = own_fd >= 0 ? SINK_DIRECT : kind;
	sink.fd = own_fd >= 0 ? own_fd : fd;
	sink.own_fd = own_fd;
	sink.journal = journal;
	sink.torn = false;
	sink.level = level;
	pthread_mutex_unlock(&sink.lock);
}

/* ---- levels ---- */

void rx_log_set_level(enum rx_log_level level)
{
	pthread_mutex_lock(&sink.lock);
	sink.level = level;
	pthread_mutex_unlock(&sink.lock);
}

enum rx_log_level rx_log_get_level(void)
{
	enum rx_log_level level = RX_LOG_ERR;

	pthread_mutex_lock(&sink.lock);
	level = sink.level;
	pthread_mutex_unlock(&sink.lock);
	return level;
}

int rx_log_level_parse(const char *name, enum rx_log_level *level_p)
{
	for (unsigned int i = 0; i < RX_LOG_N; i++) {
		if (strcmp(name, level_names[i]) == 0) {
			*level_p = (enum rx_log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

uint64_t rx_log_dropped(void)
{
	uint64_t n = 0;

	pthread_mutex_lock(&sink.lock);
	n = sink.n_dropped;
	pthread_mutex_unlock(&sink.lock);
	return n;
}

/* ---- records ---- */

static void RX_PRINTF(2, 0)
	log_va(enum rx_log_level level, const char *format, va_list args, uint32_t n_suppressed)
{
	char text[RX_LOG_RECORD_BYTES] = "";

	(void)vsnprintf(text, sizeof(text), format, args);
	pthread_mutex_lock(&sink.lock);
	emit(level, text, n_suppressed);
	pthread_mutex_unlock(&sink.lock);
}

/* errno is kept for the caller, and untouched until "%m" has been formatted. */
void rx_log(enum rx_log_level level, const char *format, ...)
{
	int saved = errno;
	va_list args;

	if (level > rx_log_get_level())
		return;
	errno = saved;
	va_start(args, format);
	log_va(level, format, args, 0);
	va_end(args);
	errno = saved;
}

/* True when the record may pass. */
static bool limit_pass(struct rx_log_limit *limit)
{
	uint64_t now = rx_now_ns();

	if (limit->n_in_window == 0 || now - limit->window_start_ns >= RX_LOG_WINDOW_NS) {
		limit->window_start_ns = now;
		limit->n_in_window = 0;
	}
	if (limit->n_in_window >= RX_LOG_BURST) {
		limit->n_dropped++;
		return false;
	}
	limit->n_in_window++;
	return true;
}

void rx_log_limited(struct rx_log_limit *limit, enum rx_log_level level, const char *format, ...)
{
	int saved = errno;
	va_list args;

	if (level > rx_log_get_level() || !limit_pass(limit))
		return;
	errno = saved;
	va_start(args, format);
	log_va(level, format, args, limit->n_dropped);
	va_end(args);
	limit->n_dropped = 0;
	errno = saved;
}
