/* SPDX-License-Identifier: MIT */
/* Who may connect. What a connected client may do with others' things follows from handles. */
#ifndef DAEMON_POLICY_H
#define DAEMON_POLICY_H

#include <stdbool.h>
#include <sys/types.h>

struct policy {
	bool private_mode;
	uid_t own_uid;
};

/**
 * policy_may_connect() - may @uid use the control socket (@admin: the admin socket)?
 *
 * The modes of the sockets' files come first. In private mode only the own user may connect,
 * whatever the modes. The admin socket is for the own user and root.
 */
bool policy_may_connect(const struct policy *policy, bool admin, uid_t uid);

#endif
