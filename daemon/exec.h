/* SPDX-License-Identifier: MIT */
/*
 * Worker threads: they run jobs and know nothing else of the daemon. A job belongs to the loop
 * thread before exec_submit() and again from its callback on.
 */
#ifndef DAEMON_EXEC_H
#define DAEMON_EXEC_H

#include "../shm/rx_list.h"

#include <stdatomic.h>
#include <uv.h>

struct exec;

/* Embedded in what the job is about. */
struct exec_job {
	struct rx_list link;
	void (*run)(struct exec_job *job);  /* in a worker */
	void (*done)(struct exec_job *job); /* in the loop thread, afterwards */
	_Atomic uint32_t cancelled;         /* the loop thread sets it, run() looks */
};

/** exec_new() - start @n_workers threads */
RX_WARN_UNUSED int exec_new(uv_loop_t *loop, uint32_t n_workers, struct exec **exec_p);

/* Jobs that touch no more than this are done in the loop thread: waking a worker costs more. */
#define EXEC_HERE_BYTES (32u * 1024)

/**
 * exec_submit() - have @job done, whose functions are filled
 * @bytes: that it touches; a small job is run at once, here
 *
 * job->done() is called later in any case. Never fails and never blocks for longer than a worker
 * takes a job off the queue.
 */
void exec_submit(struct exec *exec, struct exec_job *job, uint64_t bytes);

/** exec_cancel() - let @job end early, if it is not done yet; done() is called in any case */
void exec_cancel(struct exec_job *job);

/** exec_pieces() - counter that run() raises as a sign of life */
_Atomic uint64_t *exec_pieces(struct exec *exec);

/** exec_is_idle() - no job is queued or running */
bool exec_is_idle(const struct exec *exec);

/** exec_advances() - false when jobs run and none of them has moved since the last call */
bool exec_advances(struct exec *exec);

/**
 * exec_free() - join the workers; call when no job is queued or running
 *
 * Returns NULL; NULL is allowed. The memory goes when the loop has closed its handle.
 */
struct exec *exec_free(struct exec *exec);

#endif
