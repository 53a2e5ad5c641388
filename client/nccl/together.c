/* SPDX-License-Identifier: MIT */
#include "together.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Held until there is a thread for everybody: one that is missing would be waited for. */
struct gate {
	pthread_mutex_t closed;
	bool go;
};

struct lane {
	pthread_t thread;
	struct gate *gate;
	void (*run)(void *item);
	void *item;
};

int together_start_thread(pthread_t *thread_p, void *(*run)(void *arg), void *arg)
{
	sigset_t all;
	sigset_t before;
	int r = 0;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(thread_p, NULL, run, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void *run_lane(void *arg)
{
	struct lane *lane = arg;
	bool go = false;

	(void)pthread_mutex_lock(&lane->gate->closed);
	go = lane->gate->go;
	(void)pthread_mutex_unlock(&lane->gate->closed);
	if (go)
		lane->run(lane->item);
	return NULL;
}

static int run_lanes(struct lane *lanes, size_t n, struct gate *gate, struct lane *own)
{
	size_t n_threads = 0;
	int r = 0;

	(void)pthread_mutex_lock(&gate->closed);
	while (n_threads < n && r == 0) {
		r = together_start_thread(&lanes[n_threads].thread, run_lane, &lanes[n_threads]);
		n_threads += r == 0;
	}
	gate->go = r == 0;
	(void)pthread_mutex_unlock(&gate->closed);
	if (r == 0)
		own->run(own->item);
	for (size_t i = 0; i < n_threads; i++)
		(void)pthread_join(lanes[i].thread, NULL);
	return r;
}

int together_run(void (*run)(void *item), void *items, size_t bytes, size_t n)
{
	struct gate gate = {.closed = PTHREAD_MUTEX_INITIALIZER};
	struct lane *lanes = NULL;
	int r = 0;

	if (n == 0)
		return 0;
	if (n == 1) {
		run(items);
		return 0;
	}
	lanes = calloc(n, sizeof(*lanes));
	if (!lanes)
		return ENOMEM;
	for (size_t i = 0; i < n; i++)
		lanes[i] = (struct lane){
			.gate = &gate,
			.run = run,
			.item = (uint8_t *)items + i * bytes,
		};
	r = run_lanes(lanes, n - 1, &gate, &lanes[n - 1]);
	(void)pthread_mutex_destroy(&gate.closed);
	free(lanes);
	return r;
}
