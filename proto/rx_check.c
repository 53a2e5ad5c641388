/* SPDX-License-Identifier: MIT */
#include "rx_check.h"

#include <string.h>

/* Length of the UTF-8 sequence at @s, or 0 when it is none. No surrogates, no overlong forms. */
static size_t utf8_sequence(const unsigned char *s)
{
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t n = 0;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	if (s[0] == 0xed)
		high = 0x9f;
	if (s[0] == 0xf0)
		low = 0x90;
	if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool rx_check_text(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);
	const unsigned char *s = (const unsigned char *)text;

	if (len > max)
		return false;
	while (*s) {
		size_t n = utf8_sequence(s);

		if (n == 0 || *s < 0x20 || *s == 0x7f)
			return false;
		s += n;
	}
	return true;
}

static const char *check_hello(const struct rx_msg_hello *m)
{
	if (!rx_check_text(m->program, RX_NAME_MAX))
		return "program name too long or not plain text";
	if (m->version_min > m->version_max)
		return "version window is empty";
	return NULL;
}

static const char *check_hello_reply(const struct rx_msg_hello_reply *m)
{
	if (m->instance.len != RX_INSTANCE_BYTES)
		return "daemon instance has the wrong length";
	if (!rx_check_text(m->daemon_version, RX_NAME_MAX))
		return "daemon version is not plain text";
	return NULL;
}

static const char *check_comm_join(const struct rx_msg_comm_join *m)
{
	if (m->id.len != RX_UNIQUE_ID_BYTES)
		return "unique id has the wrong length";
	if (m->n_ranks == 0 || m->n_ranks > RX_MAX_RANKS)
		return "number of ranks out of range";
	if (m->rank >= m->n_ranks)
		return "rank out of range";
	if (!rx_check_text(m->name, RX_NAME_MAX))
		return "communicator name too long or not plain text";
	return NULL;
}

static const char *check_comms(const struct rx_msg_admin_comms_reply *m)
{
	for (size_t i = 0; i < m->n_comms; i++)
		if (m->comms[i].n_ranks > RX_MAX_RANKS || m->comms[i].n_members > RX_MAX_RANKS)
			return "communicator with too many ranks";
	return NULL;
}

const char *rx_check_msg(const struct rx_msg *msg)
{
	switch (msg->type) {
	case RX_MSG_HELLO:
		return check_hello(&msg->hello);
	case RX_MSG_HELLO_REPLY:
		return check_hello_reply(&msg->hello_reply);
	case RX_MSG_ERROR:
		return rx_check_text(msg->error.text, RX_ERROR_TEXT_MAX)
			       ? NULL
			       : "error text too long or not plain text";
	case RX_MSG_UNIQUE_ID_REPLY:
		return msg->unique_id_reply.id.len == RX_UNIQUE_ID_BYTES
			       ? NULL
			       : "unique id has the wrong length";
	case RX_MSG_COMM_JOIN:
		return check_comm_join(&msg->comm_join);
	case RX_MSG_MEM_ALLOC:
		return msg->mem_alloc.bytes > 0 ? NULL : "allocation of 0 bytes";
	case RX_MSG_MEM_REGISTER:
		return msg->mem_register.bytes > 0 ? NULL : "registration of 0 bytes";
	case RX_MSG_ADMIN_COMMS_REPLY:
		return check_comms(&msg->admin_comms_reply);
	default:
		return NULL;
	}
}
