/* SPDX-License-Identifier: MIT */
#include "rx_frame.h"

#include "rx_msg.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/*
 * Room for more descriptors than a frame may have: a peer that sends too many is told from one
 * whose descriptors did not fit, and none of them is lost to a truncated control message.
 */
#define RECV_FDS_ROOM 16u

int rx_frame_check(
	const struct rx_frame_header *header, size_t bytes, uint32_t n_fds, const char **why_p)
{
	const struct rx_msg_info *info = NULL;

	*why_p = NULL;
	if (bytes < sizeof(*header))
		*why_p = "packet shorter than a frame header";
	else if (header->magic != RX_FRAME_MAGIC)
		*why_p = "wrong magic number in a frame header";
	else if (header->reserved != 0)
		*why_p = "reserved field of a frame header is not 0";
	else if (header->bytes != bytes - sizeof(*header))
		*why_p = "length in a frame header is not that of the packet";
	else if (header->n_fds != n_fds)
		*why_p = "number of descriptors in a frame header is not that of the packet";
	else if ((info = rx_msg_info(header->type)) == NULL)
		*why_p = "unknown message type";
	else if (n_fds < info->fds_min || n_fds > info->fds_max)
		*why_p = "message with the wrong number of descriptors";
	else if (info->needs_serial && header->serial == 0)
		*why_p = "message without a serial number";
	return *why_p ? RX_FRAME_E_VIOLATION : RX_FRAME_OK;
}

/* Take every descriptor that came; true when there were more than a frame may have. */
static bool collect_fds(struct msghdr *msg, struct rx_fdset *set)
{
	bool too_many = false;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = 0;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd = -1;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			too_many |= !rx_fdset_add(set, fd);
		}
	}
	return too_many;
}

static int recv_error(int error)
{
	switch (error) {
	case EAGAIN:
	case EINTR:
		return RX_FRAME_E_AGAIN;
	case ECONNRESET:
	case EPIPE:
		return RX_FRAME_E_CLOSED;
	default:
		return -error;
	}
}

/* Of a frame whose descriptors did not all come. */
static int check_truncated(const struct rx_frame *frame, size_t bytes, const char **why_p)
{
	uint16_t n_sent = frame->header.n_fds;
	bool good = bytes >= sizeof(frame->header) && n_sent > frame->fds.n_fds &&
		    rx_frame_check(&frame->header, bytes, n_sent, why_p) == RX_FRAME_OK;

	*why_p = "descriptors did not fit (too many sent, or none free here)";
	return good ? RX_FRAME_E_NO_FDS : RX_FRAME_E_VIOLATION;
}

int rx_frame_recv(int sock, struct rx_frame *frame, const char **why_p)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(RECV_FDS_ROOM * sizeof(int))];
	} control;
	struct iovec iov[2] = {
		{.iov_base = &frame->header, .iov_len = sizeof(frame->header)},
		{.iov_base = frame->payload, .iov_len = sizeof(frame->payload)},
	};
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	bool too_many = false;
	int r = RX_FRAME_E_VIOLATION;

	if (n < 0)
		return recv_error(errno);
	frame->fds = RX_FDSET_INIT;
	too_many = collect_fds(&msg, &frame->fds);
	if (n == 0 && frame->fds.n_fds == 0)
		return RX_FRAME_E_CLOSED;
	if (msg.msg_flags & MSG_TRUNC)
		*why_p = "packet larger than a frame";
	else if (msg.msg_flags & MSG_CTRUNC)
		r = check_truncated(frame, (size_t)n, why_p);
	else if (too_many)
		*why_p = "more descriptors than a frame may have";
	else
		r = rx_frame_check(&frame->header, (size_t)n, frame->fds.n_fds, why_p);
	if (r != RX_FRAME_OK)
		rx_fdset_close(&frame->fds);
	return r;
}

static int send_error(int error)
{
	switch (error) {
	case EAGAIN:
	case EINTR:
	case ENOBUFS:
		return RX_FRAME_E_AGAIN;
	case EPIPE:
	case ECONNRESET:
	case ENOTCONN:
		return RX_FRAME_E_CLOSED;
	default:
		return -error;
	}
}

int rx_frame_send(int sock, enum rx_msg_type type, uint32_t serial, const uint8_t *payload,
	size_t bytes, const int *fds, uint32_t n_fds)
{
	struct rx_frame_header header = {
		.magic = RX_FRAME_MAGIC,
		.type = (uint16_t)type,
		.bytes = (uint32_t)bytes,
		.serial = serial,
		.n_fds = (uint16_t)n_fds,
	};
	struct iovec iov[2] = {
		{.iov_base = &header, .iov_len = sizeof(header)},
		{.iov_base = (void *)(uintptr_t)payload, .iov_len = bytes},
	};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(RX_FRAME_FDS_MAX * sizeof(int))];
	} control = {0};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = bytes > 0 ? 2 : 1};

	if (bytes > RX_FRAME_MAX - sizeof(header) || n_fds > RX_FRAME_FDS_MAX)
		return -EMSGSIZE;
	if (n_fds > 0) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	if (sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return send_error(errno);
	return RX_FRAME_OK;
}
