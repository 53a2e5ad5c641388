/* SPDX-License-Identifier: MIT */
/* From a received message to its handler. Loop thread only. */
#ifndef DAEMON_DISPATCH_H
#define DAEMON_DISPATCH_H

#include "../proto/rx_fdset.h"
#include "../proto/rx_msg.h"

struct peer;

/**
 * dispatch_one() - receive one message of @peer and serve it
 *
 * Errors end the peer. Return: false when there is nothing more to read.
 */
bool dispatch_one(struct peer *peer);

/* Handlers: the message is checked by itself, the sender's state and the number of fds fit. */
void h_hello(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_ping(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_unique_id_get(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_comm_join(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_comm_leave(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_comm_abort(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_stall_hint(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_over_budget(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_mem_alloc(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_mem_register(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_mem_free(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_mem_import(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_gpu_register(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_gates_open(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_slab_get(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_kernels_ready(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_admin_status(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_admin_sessions(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_admin_comms(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_admin_drain(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_admin_tuning(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_admin_topology(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);
void h_admin_devices(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds);

#endif
