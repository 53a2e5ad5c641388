/* SPDX-License-Identifier: MIT */
/* One valid message of every type with every field set, and what it looks like on the wire. */
#ifndef MSG_SAMPLES_H
#define MSG_SAMPLES_H

#include "../../proto/rx_msg.h"

struct msg_sample {
	struct rx_msg msg;
	const char *golden; /* payload, in hexadecimal digits */
};

extern const struct msg_sample msg_samples[];
extern const size_t n_msg_samples;

#endif
