/* SPDX-License-Identifier: MIT */
/*
 * Answers to requests. A request with serial 0 wants none. When an answer cannot be queued the
 * peer ends: it would wait for ever.
 */
#ifndef DAEMON_REPLY_H
#define DAEMON_REPLY_H

#include "../proto/rx_msg.h"
#include "../shm/rx_base.h"
#include "../shm/rx_result.h"

struct peer;

void reply_ok(struct peer *peer, uint32_t serial);

/** reply_error() - @ranks: bitmap of the ranks that the text is about, 0 none */
void reply_error(struct peer *peer, uint32_t serial, enum rx_result code, uint64_t ranks,
	const char *format, ...) RX_PRINTF(5, 6);

/**
 * reply_failure() - Error for what our own functions return
 * @r:    ACCOUNT_E_* or -errno
 * @what: "cannot join the communicator", ...
 */
void reply_failure(struct peer *peer, uint32_t serial, int r, const char *what);

/** reply() - @msg with its serial set; for answers that carry values */
void reply(struct peer *peer, const struct rx_msg *msg, const int *fds, uint32_t n_fds);

#endif
