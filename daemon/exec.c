/* SPDX-License-Identifier: MIT */
/*
 * Two queues under one lock: jobs to do, and jobs done. The lock is held for list operations only,
 * so the loop thread never waits for a job.
 */
#include "exec.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct exec {
	uv_async_t async;
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	struct rx_list todo;
	struct rx_list done;
	bool stopping;
	uint32_t n_workers;
	uint32_t n_jobs;           /* loop thread: submitted and not yet handed back */
	_Atomic uint64_t n_pieces; /* workers: pieces done */
	uint64_t n_pieces_seen;    /* loop thread: at the last exec_advances() */
	pthread_t workers[];
};

static struct exec_job *take(struct rx_list *queue)
{
	struct exec_job *job = NULL;

	if (rx_list_empty(queue))
		return NULL;
	job = rx_list_entry(queue->next, struct exec_job, link);
	rx_list_unlink(&job->link);
	return job;
}

static void *worker(void *arg)
{
	struct exec *exec = arg;

	pthread_mutex_lock(&exec->lock);
	for (;;) {
		struct exec_job *job = take(&exec->todo);

		if (!job && exec->stopping)
			break;
		if (!job) {
			pthread_cond_wait(&exec->wanted, &exec->lock);
			continue;
		}
		pthread_mutex_unlock(&exec->lock);
		job->run(job);
		pthread_mutex_lock(&exec->lock);
		rx_list_push(&exec->done, &job->link);
		(void)uv_async_send(&exec->async);
	}
	pthread_mutex_unlock(&exec->lock);
	return NULL;
}

/* One lock for the whole batch: callbacks submit further jobs. */
static void on_done(uv_async_t *async)
{
	struct exec *exec = rx_container_of(async, struct exec, async);
	struct exec_job *job = NULL;
	uint32_t n_left = 0;

	pthread_mutex_lock(&exec->lock);
	rx_list_for_each (pos, &exec->done)
		n_left++;
	pthread_mutex_unlock(&exec->lock);
	for (; n_left > 0; n_left--) {
		pthread_mutex_lock(&exec->lock);
		job = take(&exec->done);
		pthread_mutex_unlock(&exec->lock);
		exec->n_jobs--;
		job->done(job);
	}
}

static void stop_workers(struct exec *exec)
{
	pthread_mutex_lock(&exec->lock);
	exec->stopping = true;
	pthread_cond_broadcast(&exec->wanted);
	pthread_mutex_unlock(&exec->lock);
	for (uint32_t i = 0; i < exec->n_workers; i++)
		(void)pthread_join(exec->workers[i], NULL);
	exec->n_workers = 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct exec *exec = rx_container_of((uv_async_t *)handle, struct exec, async);

	(void)pthread_cond_destroy(&exec->wanted);
	(void)pthread_mutex_destroy(&exec->lock);
	free(exec);
}

/* Signals are for the loop thread. */
static int start_workers(struct exec *exec, uint32_t n_workers)
{
	sigset_t all;
	sigset_t before;
	int r = 0;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	while (r == 0 && exec->n_workers < n_workers) {
		r = -pthread_create(&exec->workers[exec->n_workers], NULL, worker, exec);
		if (r == 0)
			exec->n_workers++;
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int exec_new(uv_loop_t *loop, uint32_t n_workers, struct exec **exec_p)
{
	struct exec *exec = calloc(1, sizeof(*exec) + n_workers * sizeof(exec->workers[0]));
	int r = 0;

	if (!exec)
		return -ENOMEM;
	rx_list_init(&exec->todo);
	rx_list_init(&exec->done);
	(void)pthread_mutex_init(&exec->lock, NULL);
	(void)pthread_cond_init(&exec->wanted, NULL);
	r = uv_async_init(loop, &exec->async, on_done);
	if (r) {
		on_closed((uv_handle_t *)&exec->async);
		return r;
	}
	r = start_workers(exec, n_workers);
	if (r) {
		(void)exec_free(exec);
		return r;
	}
	*exec_p = exec;
	return 0;
}

void exec_submit(struct exec *exec, struct exec_job *job, uint64_t bytes)
{
	bool here = bytes <= EXEC_HERE_BYTES;

	rx_list_init(&job->link);
	atomic_init(&job->cancelled, 0);
	exec->n_jobs++;
	if (here)
		job->run(job);
	pthread_mutex_lock(&exec->lock);
	rx_list_push(here ? &exec->done : &exec->todo, &job->link);
	if (!here)
		pthread_cond_signal(&exec->wanted);
	pthread_mutex_unlock(&exec->lock);
	if (here)
		(void)uv_async_send(&exec->async);
}

void exec_cancel(struct exec_job *job)
{
	atomic_store_explicit(&job->cancelled, 1, memory_order_relaxed);
}

_Atomic uint64_t *exec_pieces(struct exec *exec)
{
	return &exec->n_pieces;
}

bool exec_is_idle(const struct exec *exec)
{
	return exec->n_jobs == 0;
}

bool exec_advances(struct exec *exec)
{
	uint64_t now = atomic_load_explicit(&exec->n_pieces, memory_order_relaxed);
	bool advances = exec->n_jobs == 0 || now != exec->n_pieces_seen;

	exec->n_pieces_seen = now;
	return advances;
}

struct exec *exec_free(struct exec *exec)
{
	if (!exec)
		return NULL;
	stop_workers(exec);
	assert(rx_list_empty(&exec->todo) && exec->n_jobs == 0);
	uv_close((uv_handle_t *)&exec->async, on_closed);
	return NULL;
}
