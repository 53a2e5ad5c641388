/* SPDX-License-Identifier: MIT */
/*
 * Payloads: whatever decodes passes its checks, and what we then send can be received.
 *
 * Input: one byte of type, then the payload.
 */
#include "../../proto/rx_check.h"
#include "../../proto/rx_msg.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PAYLOAD_MAX (RX_FRAME_MAX - sizeof(struct rx_frame_header))

static struct rx_arena arena;
static struct rx_arena arena_again;
static uint8_t packed[PAYLOAD_MAX];
static uint8_t packed_again[PAYLOAD_MAX];

static void require(bool good)
{
	if (!good)
		abort();
}

static void round_trip(const struct rx_msg *msg)
{
	struct rx_msg again;
	const char *why = NULL;
	size_t len = 0;
	size_t len_again = 0;

	/* Near the limits a message can be one that we take but would not send. */
	if (rx_msg_pack(msg, packed, sizeof(packed), &len) != 0)
		return;
	require(len == rx_msg_packed_size(msg));
	require(rx_msg_unpack(msg->type, msg->serial, packed, len, &arena_again, &again, &why) ==
		0);
	require(rx_msg_pack(&again, packed_again, sizeof(packed_again), &len_again) == 0);
	require(len == len_again && memcmp(packed, packed_again, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rx_msg msg = {.serial = 4711};
	const char *why = NULL;

	if (size < 1 || size - 1 > PAYLOAD_MAX)
		return 0;
	if (rx_msg_unpack((enum rx_msg_type)data[0], 7, data + 1, size - 1, &arena, &msg, &why)) {
		require(why != NULL && msg.serial == 4711);
		return 0;
	}
	require(rx_msg_info(data[0]) != NULL);
	require(msg.type == data[0] && msg.serial == 7);
	require(why == NULL && rx_check_msg(&msg) == NULL);
	round_trip(&msg);
	return 0;
}
