/* SPDX-License-Identifier: MIT */
/*
 * Logging: levels, key=value fields, rate limits, a sink that never blocks.
 *
 * One line per record: `LEVEL fields text`. Under systemd (stderr is the journal, $JOURNAL_STREAM)
 * lines get the <N> priority prefix of sd-daemon(3), so that the journal knows the level.
 *
 * Text may come from strangers: everything but printable ASCII is escaped (`\n`, `\x1b`), the
 * backslash too, so that a record is always one line and the journal never takes it for binary.
 */
#ifndef RX_LOG_H
#define RX_LOG_H

#include "rx_base.h"

enum rx_log_level {
	RX_LOG_ERR,   /* the operator must act */
	RX_LOG_WARN,  /* a client misbehaved, or we degraded */
	RX_LOG_INFO,  /* start, stop, reload, session ends */
	RX_LOG_DEBUG, /* per object */
	RX_LOG_N
};

/* A record is at most this long, with its newline; it is one write(2), never split. */
#define RX_LOG_RECORD_BYTES 1024u

/**
 * rx_log_open() - start logging to @fd (stderr), which must stay open
 * @program: prefixes lines outside systemd; a literal
 *
 * Nothing is written before this. May be called again. A pipe whose reader is gone raises SIGPIPE
 * as ever: daemons ignore that signal.
 */
void rx_log_open(const char *program, int fd, enum rx_log_level level);

void rx_log_set_level(enum rx_log_level level);
enum rx_log_level rx_log_get_level(void);

/** rx_log_level_parse() - "err", "warn", "info", "debug"; -EINVAL otherwise */
RX_WARN_UNUSED int rx_log_level_parse(const char *name, enum rx_log_level *level_p);

/** rx_log_dropped() - records lost because the sink was full, since start */
uint64_t rx_log_dropped(void);

/* A rate limit per message site (or per peer, where the caller embeds one). */
struct rx_log_limit {
	uint64_t window_start_ns;
	uint32_t n_in_window;
	uint32_t n_dropped;
};

#define RX_LOG_BURST     10u
#define RX_LOG_WINDOW_NS (5ull * 1000000000ull)

/**
 * rx_log() - write one record; format is printf's with "%m"; text lower case, no trailing dot
 * rx_log_limited() - the same, at most RX_LOG_BURST records per RX_LOG_WINDOW_NS and @limit;
 *                    the next record that passes says how many were dropped
 *
 * Thread safety: any thread; a limit belongs to one thread.
 */
void rx_log(enum rx_log_level level, const char *format, ...) RX_PRINTF(2, 3);
void rx_log_limited(struct rx_log_limit *limit, enum rx_log_level level, const char *format, ...)
	RX_PRINTF(3, 4);

#define rx_err(...)   rx_log(RX_LOG_ERR, __VA_ARGS__)
#define rx_warn(...)  rx_log(RX_LOG_WARN, __VA_ARGS__)
#define rx_info(...)  rx_log(RX_LOG_INFO, __VA_ARGS__)
#define rx_debug(...) rx_log(RX_LOG_DEBUG, __VA_ARGS__)

#endif
