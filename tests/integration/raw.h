/* SPDX-License-Identifier: MIT */
/*
 * A client that speaks the protocol by itself, or breaks it: nothing here is checked on the way
 * out. Used by ranks, who report failures with RANK_CHECK.
 */
#ifndef TEST_RAW_H
#define TEST_RAW_H

#include "../../proto/rx_frame.h"
#include "../../proto/rx_msg.h"
#include "../../shm/rx_map.h"
#include "../../shm/rx_ring.h"

struct raw {
	int fd;
	uint32_t serial;
	int s_fd;
	int d_fd;
	int doorbell;
	struct rx_map s;
	struct rx_map d;
	struct rx_ring ring;
};

/* Large: keep it static. */
struct raw_reply {
	struct rx_frame frame; /* owns the received descriptors */
	struct rx_arena arena;
	struct rx_msg msg;
};

/** raw_connect() - a connection without a Hello */
bool raw_connect(struct raw *raw, const char *path);

/** raw_hello() - raw_connect(), Hello, rings mapped */
bool raw_hello(struct raw *raw, const char *path);

/** raw_close() - give everything back */
void raw_close(struct raw *raw);

/** raw_send() - one packet as it is; false when it did not go out at once */
bool raw_send(
	const struct raw *raw, const void *packet, size_t bytes, const int *fds, uint32_t n_fds);

/** raw_header() - header for @bytes of payload, as it should be */
struct rx_frame_header raw_header(struct raw *raw, enum rx_msg_type type, size_t bytes);

/** raw_post() - a message as it should be, with a new serial */
bool raw_post(struct raw *raw, struct rx_msg *msg);

enum raw_got { RAW_TIMEOUT, RAW_MESSAGE, RAW_ENDED };

/** raw_receive() - next message; its descriptors are closed by the next call or raw_drop() */
enum raw_got raw_receive(const struct raw *raw, struct raw_reply *reply, uint64_t ms);
void raw_drop(struct raw_reply *reply);

/** raw_ask() - post and wait for the answer (5 s, scaled) */
bool raw_ask(struct raw *raw, struct rx_msg *msg, struct raw_reply *reply);

/** raw_ended() - does the daemon end the session within @ms (scaled)? Reads what comes before. */
bool raw_ended(const struct raw *raw, uint64_t ms);

/** raw_alive() - does the daemon answer a Ping? */
bool raw_alive(struct raw *raw);

#endif
