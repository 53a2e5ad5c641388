/* SPDX-License-Identifier: MIT */
#include "reply.h"

#include "daemon.h"
#include "peer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void reply(struct peer *peer, const struct rx_msg *msg, const int *fds, uint32_t n_fds)
{
	int r = 0;

	if (msg->serial == 0)
		return;
	r = peer_send(peer, msg, fds, n_fds);
	if (r == 0)
		return;
	rx_log_limited(daemon_log_limit(peer->daemon, peer->uid, "reply"), RX_LOG_WARN,
		"pid=%u uid=%u ended: it cannot be answered: %s", (uint32_t)peer->pid,
		(uint32_t)peer->uid, strerror(-r));
	peer_end(peer);
}

void reply_ok(struct peer *peer, uint32_t serial)
{
	struct rx_msg msg = {.type = RX_MSG_OK, .serial = serial};

	reply(peer, &msg, NULL, 0);
}

void reply_error(struct peer *peer, uint32_t serial, enum rx_result code, uint64_t ranks,
	const char *format, ...)
{
	char text[RX_ERROR_TEXT_MAX];
	struct rx_msg msg = {
		.type = RX_MSG_ERROR,
		.serial = serial,
		.error = {.code = (int32_t)code, .text = text, .ranks = ranks},
	};
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	reply(peer, &msg, NULL, 0);
}

static void reply_limit(struct peer *peer, uint32_t serial, bool user, const char *what)
{
	const struct accounts *accounts = &peer->daemon->accounts;
	const char *name = account_kind_name(accounts->refused.kind);

	if (user && accounts->refused.kind != ACCOUNT_FDS)
		reply_error(peer, serial, RX_ERR_LIMIT, 0,
			"%s: user %u holds %" PRIu64 " of at most %" PRIu64
			" %s (limits.%s_per_uid in rcclxd.conf)",
			what, (uint32_t)peer->uid, accounts->refused.used, accounts->refused.limit,
			name, name);
	else
		reply_error(peer, serial, RX_ERR_LIMIT, 0,
			"%s: %" PRIu64 " of at most %" PRIu64 " %s are in use%s", what,
			accounts->refused.used, accounts->refused.limit, name,
			accounts->refused.kind == ACCOUNT_FDS ? " (LimitNOFILE= of rcclxd)" : "");
}

void reply_failure(struct peer *peer, uint32_t serial, int r, const char *what)
{
	enum rx_result code = RX_ERR_SYSTEM;

	if (r == ACCOUNT_E_USER || r == ACCOUNT_E_ALL) {
		reply_limit(peer, serial, r == ACCOUNT_E_USER, what);
		return;
	}
	if (r == -ENOMEM || r == -ENOSPC || r == -EMFILE || r == -ENFILE)
		code = RX_ERR_NO_MEMORY;
	reply_error(peer, serial, code, 0, "%s: %s", what, strerror(-r));
}
