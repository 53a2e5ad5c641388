/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_wake.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>

struct loop_poll {
	uv_poll_t handle;
	loop_poll_fn fn;
	void *owner;
	int events;
};

struct loop_timer {
	uv_timer_t handle;
	loop_timer_fn fn;
	void *owner;
};

static void on_poll(uv_poll_t *handle, int status, int events)
{
	struct loop_poll *poll = rx_container_of(handle, struct loop_poll, handle);

	/* libuv stops a handle whose descriptor reports an error: the owner's read will say why. */
	if (status < 0) {
		poll->events = 0;
		events = UV_READABLE | UV_WRITABLE | UV_DISCONNECT;
	}
	poll->fn(poll->owner, events);
}

static void on_poll_closed(uv_handle_t *handle)
{
	free(rx_container_of((uv_poll_t *)handle, struct loop_poll, handle));
}

int loop_poll_new(uv_loop_t *loop, int fd, int events, loop_poll_fn fn, void *owner,
	struct loop_poll **poll_p)
{
	struct loop_poll *poll = calloc(1, sizeof(*poll));
	int r = 0;

	if (!poll)
		return -ENOMEM;
	/* libuv's errors are negative errno values. */
	r = uv_poll_init(loop, &poll->handle, fd);
	if (r) {
		free(poll);
		return r;
	}
	poll->fn = fn;
	poll->owner = owner;
	loop_poll_set(poll, events);
	*poll_p = poll;
	return 0;
}

void loop_poll_set(struct loop_poll *poll, int events)
{
	int r = 0;

	if (poll->events == events)
		return;
	poll->events = events;
	r = events ? uv_poll_start(&poll->handle, events, on_poll) : uv_poll_stop(&poll->handle);
	assert(r == 0);
	(void)r;
}

struct loop_poll *loop_poll_free(struct loop_poll *poll)
{
	if (poll)
		uv_close((uv_handle_t *)&poll->handle, on_poll_closed);
	return NULL;
}

static void ignore_poll(void *owner, int events)
{
	(void)owner;
	(void)events;
}

int loop_reserve(uv_loop_t *loop, uint64_t n_fds)
{
	RX_CLOSE int low = -1;
	RX_CLOSE int high = -1;
	struct loop_poll *poll = NULL;
	int r = rx_doorbell_new(&low);

	if (r)
		return r;
	high = fcntl(low, F_DUPFD_CLOEXEC, (int)n_fds - 1);
	if (high < 0)
		return -errno;
	r = loop_poll_new(loop, high, UV_READABLE, ignore_poll, NULL, &poll);
	if (r)
		return r;
	/* uv_poll_start() grows the table, the first turn of the loop tells the kernel. */
	(void)loop_poll_free(poll);
	return 0;
}

static void on_timer(uv_timer_t *handle)
{
	struct loop_timer *timer = rx_container_of(handle, struct loop_timer, handle);

	timer->fn(timer->owner);
}

static void on_timer_closed(uv_handle_t *handle)
{
	free(rx_container_of((uv_timer_t *)handle, struct loop_timer, handle));
}

int loop_timer_new(uv_loop_t *loop, loop_timer_fn fn, void *owner, struct loop_timer **timer_p)
{
	struct loop_timer *timer = calloc(1, sizeof(*timer));
	int r = 0;

	if (!timer)
		return -ENOMEM;
	r = uv_timer_init(loop, &timer->handle);
	if (r) {
		free(timer);
		return r;
	}
	timer->fn = fn;
	timer->owner = owner;
	*timer_p = timer;
	return 0;
}

void loop_timer_set(struct loop_timer *timer, uint64_t ns)
{
	uint64_t ms = ns / RX_NS_PER_MS + (ns % RX_NS_PER_MS != 0);
	int r = 0;

	/* The loop's clock may be as old as the last turn: without this, timers fire early. */
	uv_update_time(timer->handle.loop);
	r = uv_timer_start(&timer->handle, on_timer, ms, 0);
	assert(r == 0);
	(void)r;
}

void loop_timer_stop(struct loop_timer *timer)
{
	(void)uv_timer_stop(&timer->handle);
}

bool loop_timer_is_set(const struct loop_timer *timer)
{
	return uv_is_active((const uv_handle_t *)&timer->handle);
}

struct loop_timer *loop_timer_free(struct loop_timer *timer)
{
	if (timer)
		uv_close((uv_handle_t *)&timer->handle, on_timer_closed);
	return NULL;
}
