/* SPDX-License-Identifier: MIT */
/*
 * libuv behind two small objects that may be freed at any time, also from their own callback: the
 * memory goes when libuv has let go of it, the owner's pointer at once. Loop thread only.
 */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include "../shm/rx_base.h"

#include <uv.h>

struct loop_poll;
struct loop_timer;

/** @events: UV_READABLE, UV_WRITABLE, UV_DISCONNECT; all three when polling failed */
typedef void (*loop_poll_fn)(void *owner, int events);
typedef void (*loop_timer_fn)(void *owner);

/**
 * loop_reserve() - let libuv allocate its table for descriptors below @n_fds now
 *
 * libuv aborts when it cannot grow that table, which must not depend on what clients do.
 * Return: 0 or -errno.
 */
RX_WARN_UNUSED int loop_reserve(uv_loop_t *loop, uint64_t n_fds);

/** loop_poll_new() - watch @fd, which stays the caller's, for @events (0: nothing yet) */
RX_WARN_UNUSED int loop_poll_new(uv_loop_t *loop, int fd, int events, loop_poll_fn fn, void *owner,
	struct loop_poll **poll_p);

/** loop_poll_set() - change what is watched for; 0: nothing */
void loop_poll_set(struct loop_poll *poll, int events);

/** loop_poll_free() - stop; afterwards the fd may be closed. NULL is allowed. Returns NULL. */
struct loop_poll *loop_poll_free(struct loop_poll *poll);

/** loop_timer_new() - a timer that does not run yet */
RX_WARN_UNUSED int loop_timer_new(
	uv_loop_t *loop, loop_timer_fn fn, void *owner, struct loop_timer **timer_p);

/** loop_timer_set() - fire once after @ns, not before; replaces what was set */
void loop_timer_set(struct loop_timer *timer, uint64_t ns);

/** loop_timer_stop() - do not fire */
void loop_timer_stop(struct loop_timer *timer);

/** loop_timer_is_set() - is it going to fire? */
bool loop_timer_is_set(const struct loop_timer *timer);

/** loop_timer_free() - NULL is allowed. Returns NULL. */
struct loop_timer *loop_timer_free(struct loop_timer *timer);

#endif
