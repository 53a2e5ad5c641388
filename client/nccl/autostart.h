/* SPDX-License-Identifier: MIT */
/*
 * RCCLX_AUTOSTART=1: a job for which no daemon runs gets one of its own, which ends with it. Its
 * socket's path follows from the user and the job, so that ranks find it without being told; ids
 * that it makes name it, for ranks that see themselves in another job.
 */
#ifndef NCCL_AUTOSTART_H
#define NCCL_AUTOSTART_H

#include "connection.h"

/** autostart_wanted() - does RCCLX_AUTOSTART ask for it? */
bool autostart_wanted(void);

/**
 * autostart_connect() - connect to the job's daemon, and start it if nobody has
 * @socket:   of the daemon; "": that of this process's job
 * @socket_p: receives the socket's path
 *
 * A daemon is started only where autostart_wanted(). Of several processes, one starts it; the
 * others wait.
 *
 * Return: ncclSuccess; ncclSystemError, with a text
 */
ncclResult_t autostart_connect(const char *socket, const struct rcclx_connect_config *config,
	struct rcclx_client **client_p, char socket_p[CONNECTION_SOCKET_BYTES]);

/** autostart_tag() - write the name of the daemon at @socket into an id's unused bytes */
void autostart_tag(ncclUniqueId *id, const char *socket);

/**
 * autostart_untag() - take the name out of an id
 * @socket_p: receives the path of the daemon's socket; "": the id names none
 */
void autostart_untag(ncclUniqueId *id, char socket_p[CONNECTION_SOCKET_BYTES]);

#endif
