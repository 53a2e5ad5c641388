/* SPDX-License-Identifier: MIT */
/* Received file descriptors, owned as a set: what no handler takes is closed. */
#ifndef RX_FDSET_H
#define RX_FDSET_H

#include "rx_proto.h"

struct rx_fdset {
	int fds[RX_FRAME_FDS_MAX]; /* -1: taken */
	uint32_t n_fds;
};

#define RX_FDSET_INIT ((struct rx_fdset){0})

/** rx_fdset_add() - take ownership of @fd; false (and @fd closed) when the set is full */
bool rx_fdset_add(struct rx_fdset *set, int fd);

/** rx_fdset_take() - hand fd @index to the caller, once; -1 when there is none */
int rx_fdset_take(struct rx_fdset *set, uint32_t index);

/** rx_fdset_close() - close what was not taken; leaves RX_FDSET_INIT */
void rx_fdset_close(struct rx_fdset *set);

#endif
