/* SPDX-License-Identifier: MIT */
/*
 * Packets through a real socket: any bytes with any number of descriptors.
 *
 * Input: one byte of how many descriptors come along, then the packet.
 */
#include "../../proto/rx_frame.h"
#include "../../proto/rx_msg.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MANY_FDS 24u

static int sv[2] = {-1, -1};
static struct rx_frame frame;
static struct rx_arena arena;

static void require(bool good)
{
	if (!good)
		abort();
}

static void send_packet(const uint8_t *data, size_t size, uint32_t n_fds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(MANY_FDS * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)data, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int *fds = (int *)(void *)CMSG_DATA(&control.align);

	if (n_fds > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		for (uint32_t i = 0; i < n_fds; i++)
			fds[i] = STDIN_FILENO;
	}
	require(sendmsg(sv[0], &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size);
}

/* The lowest free number: it moves when a descriptor is left open. */
static int lowest_free(void)
{
	int fd = dup(STDIN_FILENO);

	require(fd >= 0);
	(void)close(fd);
	return fd;
}

static void check_frame(size_t size, uint32_t n_fds)
{
	const struct rx_msg_info *info = rx_msg_info(frame.header.type);
	struct rx_msg msg;
	const char *why = NULL;

	require(info != NULL);
	require(frame.header.bytes + sizeof(frame.header) == size);
	require(frame.fds.n_fds == n_fds && n_fds >= info->fds_min && n_fds <= info->fds_max);
	require(frame.header.serial != 0 || !info->needs_serial);
	if (rx_msg_unpack((enum rx_msg_type)frame.header.type, frame.header.serial, frame.payload,
		    frame.header.bytes, &arena, &msg, &why) != 0)
		require(why != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *why = NULL;
	uint32_t n_fds = 0;
	int lowest = -1;
	int r = 0;

	if (size < 1 || size - 1 > RX_FRAME_MAX + 64)
		return 0;
	if (sv[0] < 0)
		require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
	n_fds = data[0] % (MANY_FDS + 1);
	lowest = lowest_free();
	send_packet(data + 1, size - 1, n_fds);
	r = rx_frame_recv(sv[1], &frame, &why);
	if (r == RX_FRAME_OK)
		check_frame(size - 1, n_fds);
	else if (r == RX_FRAME_E_CLOSED)
		require(size == 1 && n_fds == 0);
	else
		require((r == RX_FRAME_E_VIOLATION || r == RX_FRAME_E_NO_FDS) && why != NULL);
	if (r == RX_FRAME_OK)
		rx_fdset_close(&frame.fds);
	require(lowest_free() == lowest);
	return 0;
}
