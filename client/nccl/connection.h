/* SPDX-License-Identifier: MIT */
/*
 * The process's connections to rcclxd: one as a rule, a further one only when an id names a daemon
 * that was started for another job. Made when first needed, closed when nothing needs them.
 */
#ifndef NCCL_CONNECTION_H
#define NCCL_CONNECTION_H

#include "error.h"

#define CONNECTION_SOCKET_BYTES 108u

struct connection {
	struct rcclx_client *client;
	char socket[CONNECTION_SOCKET_BYTES]; /* of a daemon started for a job; "": the node's */
	unsigned int n_users;
	bool pinned; /* this process has made an id, and not used it yet: the daemon knows it */
	int pid;
};

/**
 * connection_get() - connect, or take part in a connection
 * @socket: "": the node's daemon, or, where RCCLX_AUTOSTART says so, one started for this job
 *
 * Return: ncclSuccess, end with connection_put(); else with a text
 */
ncclResult_t connection_get(const char *socket, struct connection **connection_p);

/** connection_again() - one more user of a connection that the caller is a user of */
struct connection *connection_again(struct connection *connection);

/** connection_put() - one user less; the last one closes it, unless it is pinned */
void connection_put(struct connection *connection);

/** connection_pin(), connection_unpin() - keep it open, or not, when nobody uses it */
void connection_pin(struct connection *connection);
void connection_unpin(struct connection *connection);

/** connection_lost() - the daemon is gone: nobody else gets this connection */
void connection_lost(struct connection *connection);

#endif
