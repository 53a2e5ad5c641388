/* SPDX-License-Identifier: MIT */
/* The daemon's admin socket: find, ask, get an answer within 5 s. */
#ifndef CTL_ADMIN_H
#define CTL_ADMIN_H

#include "ctl.h"
#include "../../proto/rx_frame.h"
#include "../../proto/rx_msg.h"

struct admin {
	int sock;
	uint32_t serial;
	struct rx_frame frame;
	struct rx_arena arena;
	struct rx_msg reply;
};

/**
 * admin_open() - connect to the daemon
 * @path: NULL: $RCCLX_ADMIN_SOCKET, else admin.sock beside $RCCLX_SOCKET, else
 *        /run/rcclx/admin.sock, else $XDG_RUNTIME_DIR/rcclx/admin.sock
 * @quiet: say nothing when there is no daemon
 *
 * Return: CTL_EXIT_OK and *admin_p; else what went wrong, explained on stderr.
 */
RX_WARN_UNUSED enum ctl_exit admin_open(const char *path, bool quiet, struct admin **admin_p);

/** admin_close() - NULL is allowed */
void admin_close(struct admin *admin);

/**
 * admin_ask() - send a request, wait for its answer
 * @after:  where a list goes on; 0 for other requests
 * @expect: type of the answer, which is then in admin->reply until the next request
 *
 * Return: CTL_EXIT_OK, or what went wrong, explained on stderr.
 */
RX_WARN_UNUSED enum ctl_exit admin_ask(
	struct admin *admin, enum rx_msg_type request, uint64_t after, enum rx_msg_type expect);

typedef enum ctl_exit (*admin_session_fn)(const struct rx_session_info *session, void *ctx);
typedef enum ctl_exit (*admin_comm_fn)(const struct rx_comm_info *comm, void *ctx);

/** admin_each_session(), admin_each_comm() - call @fn for all of them until it fails */
RX_WARN_UNUSED enum ctl_exit admin_each_session(
	struct admin *admin, admin_session_fn fn, void *ctx);
RX_WARN_UNUSED enum ctl_exit admin_each_comm(struct admin *admin, admin_comm_fn fn, void *ctx);

#endif
