/* SPDX-License-Identifier: MIT */
#include "raw.h"
#include "proc.h"

#include "../../shm/rx_cleanup.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RAW_FDS_MAX 32u

bool raw_connect(struct raw *raw, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	*raw = (struct raw){.fd = -1, .s_fd = -1, .d_fd = -1, .doorbell = -1};
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	raw->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (raw->fd < 0)
		return false;
	return connect(raw->fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

void raw_close(struct raw *raw)
{
	rx_map_close(&raw->s);
	rx_map_close(&raw->d);
	rx_closep(&raw->fd);
	rx_closep(&raw->s_fd);
	rx_closep(&raw->d_fd);
	rx_closep(&raw->doorbell);
	*raw = (struct raw){.fd = -1, .s_fd = -1, .d_fd = -1, .doorbell = -1};
}

bool raw_send(
	const struct raw *raw, const void *packet, size_t bytes, const int *fds, uint32_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * RAW_FDS_MAX)];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)packet, .iov_len = bytes};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
	}
	return sendmsg(raw->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

struct rx_frame_header raw_header(struct raw *raw, enum rx_msg_type type, size_t bytes)
{
	return (struct rx_frame_header){
		.magic = RX_FRAME_MAGIC,
		.type = (uint16_t)type,
		.bytes = (uint32_t)bytes,
		.serial = ++raw->serial,
	};
}

bool raw_post(struct raw *raw, struct rx_msg *msg)
{
	uint8_t packet[4096] = {0};
	size_t bytes = 0;

	if (rx_msg_pack(msg, packet + sizeof(struct rx_frame_header),
		    sizeof(packet) - sizeof(struct rx_frame_header), &bytes) != 0)
		return false;
	struct rx_frame_header header = raw_header(raw, msg->type, bytes);
	memcpy(packet, &header, sizeof(header));
	msg->serial = header.serial;
	return raw_send(raw, packet, sizeof(header) + bytes, NULL, 0);
}

void raw_drop(struct raw_reply *reply)
{
	rx_fdset_close(&reply->frame.fds);
}

enum raw_got raw_receive(const struct raw *raw, struct raw_reply *reply, uint64_t ms)
{
	struct pollfd pfd = {.fd = raw->fd, .events = POLLIN};
	const char *why = NULL;

	raw_drop(reply);
	if (poll(&pfd, 1, (int)(ms * test_slow())) <= 0)
		return RAW_TIMEOUT;
	int r = rx_frame_recv(raw->fd, &reply->frame, &why);
	if (r == RX_FRAME_E_AGAIN)
		return RAW_TIMEOUT;
	if (r != RX_FRAME_OK)
		return RAW_ENDED;
	rx_arena_reset(&reply->arena);
	r = rx_msg_unpack(reply->frame.header.type, reply->frame.header.serial,
		reply->frame.payload, reply->frame.header.bytes, &reply->arena, &reply->msg, &why);
	return r == 0 ? RAW_MESSAGE : RAW_ENDED;
}

bool raw_ask(struct raw *raw, struct rx_msg *msg, struct raw_reply *reply)
{
	if (!raw_post(raw, msg))
		return false;
	while (raw_receive(raw, reply, 5000) == RAW_MESSAGE)
		if (reply->msg.serial == msg->serial)
			return true;
	return false;
}

bool raw_hello(struct raw *raw, const char *path)
{
	static struct raw_reply reply;
	struct rx_msg hello = {.type = RX_MSG_HELLO,
		.hello = {.version_min = RX_PROTO_VERSION_MIN,
			.version_max = RX_PROTO_VERSION_MAX,
			.abi = RX_ABI_MAGIC,
			.program = "evil",
			.pid = 1}};

	if (!raw_connect(raw, path) || !raw_ask(raw, &hello, &reply) ||
		reply.msg.type != RX_MSG_HELLO_REPLY)
		return false;
	uint32_t entries = reply.msg.hello_reply.sq_entries;
	raw->s_fd = rx_fdset_take(&reply.frame.fds, 0);
	raw->d_fd = rx_fdset_take(&reply.frame.fds, 1);
	raw->doorbell = rx_fdset_take(&reply.frame.fds, 2);
	raw_drop(&reply);
	return rx_map_open(&raw->s, raw->s_fd, rx_ring_s_bytes(entries), RX_MAP_RW) == 0 &&
	       rx_map_open(&raw->d, raw->d_fd, rx_ring_d_bytes(entries), RX_MAP_RO) == 0 &&
	       rx_ring_init(&raw->ring, &raw->s, &raw->d, entries) == 0;
}

bool raw_ended(const struct raw *raw, uint64_t ms)
{
	static uint8_t junk[RX_FRAME_MAX];
	uint64_t end = test_now_ms() + ms * test_slow();

	for (uint64_t now = test_now_ms(); now < end; now = test_now_ms()) {
		struct pollfd pfd = {.fd = raw->fd, .events = POLLIN};

		if (poll(&pfd, 1, (int)(end - now)) <= 0)
			continue;
		/* Descriptors that come along are not asked for, so the kernel drops them. */
		if (recv(raw->fd, junk, sizeof(junk), MSG_DONTWAIT) <= 0)
			return true;
	}
	return false;
}

bool raw_alive(struct raw *raw)
{
	static struct raw_reply reply;
	struct rx_msg ping = {.type = RX_MSG_PING, .ping = {.token = 4711}};
	bool good = raw_ask(raw, &ping, &reply) && reply.msg.type == RX_MSG_PONG &&
		    reply.msg.pong.token == 4711;

	raw_drop(&reply);
	return good;
}
