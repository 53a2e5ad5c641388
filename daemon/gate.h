/* SPDX-License-Identifier: MIT */
/*
 * Where a call in the order of a GPU stream meets the daemon, which starts it when the gates of all
 * ranks are open, and lets the streams go on when it is over, however it ended.
 */
#ifndef DAEMON_GATE_H
#define DAEMON_GATE_H

#include "../shm/rx_gate.h"
#include "../shm/rx_ring_abi.h"

struct region;
struct session;

/* All 0: the call is in no stream. */
struct gate {
	struct region *area; /* a reference; the words below lie in it */
	struct rx_gate *word;
	_Atomic uint64_t *bell; /* of a recorded call, else NULL */
	uint64_t value;         /* of this call; of a recorded one: the gate's number */
};

enum {
	GATE_E_BAD = 1,
};

/**
 * gate_find() - the gate that an entry names, perhaps none
 *
 * Without a reference, so good as long as the session is. Return: 0, GATE_E_BAD.
 */
RX_WARN_UNUSED int gate_find(
	const struct session *session, const struct rx_sqe *sqe, struct gate *gate_p);

/** gate_keep() - the same with a reference */
struct gate gate_keep(const struct gate *gate);

/** gate_deinit() - give the reference back; harmless where there is none */
void gate_deinit(struct gate *gate);

/** gate_is_open() - of a call that is no recorded one */
static inline bool gate_is_open(const struct gate *gate)
{
	return !gate->word || rx_gate_is_open(gate->word, gate->value);
}

/** gate_release() - the call is over; any number of times until its gate is used again */
static inline void gate_release(const struct gate *gate)
{
	if (gate->word && !gate->bell)
		rx_gate_release(gate->word, gate->value);
}

/** gate_release_replay() - a replay of a recorded call is over; once, after its bell was taken */
static inline void gate_release_replay(const struct gate *gate)
{
	rx_gate_release(gate->word, 1);
}

#endif
