/* SPDX-License-Identifier: MIT */
/*
 * Worker threads: they run jobs and know nothing else of the daemon. A job belongs to the loop
 * thread before exec_submit() and again from its callback on.
 */
#ifndef DAEMON_EXEC_H
#define DAEMON_EXEC_H

#include "../kernels/host/host_coll.h"
#include "../shm/rx_list.h"

#include <uv.h>

struct exec;

struct exec_job {
	struct rx_list link;
	struct host_coll_args args; /* cancel and n_pieces are filled by exec_submit() */
	_Atomic uint32_t cancelled; /* loop thread sets it, the worker looks */
	int result;                 /* of host_coll_run(), when done */
	void (*done)(struct exec_job *job);
};

/** exec_new() - start @n_workers threads */
RX_WARN_UNUSED int exec_new(uv_loop_t *loop, uint32_t n_workers, struct exec **exec_p);

/**
 * exec_submit() - queue @job; job->done() is called in the loop thread
 *
 * Never fails and never blocks for longer than a worker takes a job off the queue.
 */
void exec_submit(struct exec *exec, struct exec_job *job);

/** exec_cancel() - let @job end early, if it is not done yet; done() is called in any case */
void exec_cancel(struct exec_job *job);

/** exec_advances() - false when jobs run and none of them has moved since the last call */
bool exec_advances(struct exec *exec);

/**
 * exec_free() - join the workers; call when no job is queued or running
 *
 * Returns NULL; NULL is allowed. The memory goes when the loop has closed its handle.
 */
struct exec *exec_free(struct exec *exec);

#endif
