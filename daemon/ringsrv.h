/* SPDX-License-Identifier: MIT */
/* The daemon's end of the submission rings: take, check, hand on. Loop thread only. */
#ifndef DAEMON_RINGSRV_H
#define DAEMON_RINGSRV_H

#include <stdbool.h>

struct daemon;
struct session;

/** ringsrv_bell() - a session's doorbell is readable (a loop_poll_fn) */
void ringsrv_bell(void *session, int events);

/** ringsrv_look() - there may be entries */
void ringsrv_look(struct session *session);

/** ringsrv_resume() - completions made room: take what was left in the ring for lack of it */
void ringsrv_resume(struct session *session);

/**
 * ringsrv_stay_awake() - an entry of @session has come, or an operation of it is over: more is
 * about to happen
 */
void ringsrv_stay_awake(const struct session *session);

/** ringsrv_turn() - one turn over the sessions with entries; true when some are left */
bool ringsrv_turn(struct daemon *daemon);

#endif
