/* SPDX-License-Identifier: MIT */
/*
 * One frame = one packet of a SEQPACKET socket: header, payload, file descriptors.
 *
 * Never blocks: waiting is the caller's.
 */
#ifndef RX_FRAME_H
#define RX_FRAME_H

#include "rx_fdset.h"
#include "rx_proto.h"

enum {
	RX_FRAME_OK = 0,
	RX_FRAME_E_AGAIN = 1,     /* nothing there; or no room to send */
	RX_FRAME_E_CLOSED = 2,    /* the peer is gone */
	RX_FRAME_E_VIOLATION = 3, /* the peer broke the protocol */
	RX_FRAME_E_NO_FDS = 4,    /* a good frame, but this process had no numbers for its fds */
};

struct rx_frame {
	struct rx_frame_header header;
	uint8_t payload[RX_FRAME_MAX - sizeof(struct rx_frame_header)];
	struct rx_fdset fds;
};

/**
 * rx_frame_check() - is the header right for a packet of @bytes with @n_fds descriptors?
 * @why_p: receives a static sentence when not
 * Return: RX_FRAME_OK, RX_FRAME_E_VIOLATION.
 */
RX_WARN_UNUSED int rx_frame_check(
	const struct rx_frame_header *header, size_t bytes, uint32_t n_fds, const char **why_p);

/**
 * rx_frame_recv() - receive one frame
 * @frame: filled on RX_FRAME_OK; its fds are then the caller's, to be ended with rx_fdset_close();
 *         filled but for the fds, which are lost, on RX_FRAME_E_NO_FDS
 * @why_p: receives a static sentence on RX_FRAME_E_VIOLATION, RX_FRAME_E_NO_FDS
 *
 * Descriptors are close-on-exec, and closed on every path but RX_FRAME_OK.
 * Return: RX_FRAME_*, or -errno.
 */
RX_WARN_UNUSED int rx_frame_recv(int sock, struct rx_frame *frame, const char **why_p);

/**
 * rx_frame_send() - send one frame
 * @fds: n_fds descriptors, which stay the caller's; at most RX_FRAME_FDS_MAX
 * Return: RX_FRAME_OK, RX_FRAME_E_AGAIN, RX_FRAME_E_CLOSED; -ETOOMANYREFS and other -errno.
 */
RX_WARN_UNUSED int rx_frame_send(int sock, enum rx_msg_type type, uint32_t serial,
	const uint8_t *payload, size_t bytes, const int *fds, uint32_t n_fds);

#endif
