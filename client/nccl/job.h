/* SPDX-License-Identifier: MIT */
/* Which job this process belongs to: what its ranks can agree on without talking to each other. */
#ifndef NCCL_JOB_H
#define NCCL_JOB_H

#include <stdbool.h>
#include <stddef.h>

/**
 * job_name() - a text that all processes of the job have, and processes of other jobs do not
 *
 * From rcclxctl run, or from what started the job: torchrun, Slurm, PMIx, Open MPI. False: none of
 * them did; then @text names the session (setsid) of this process.
 */
bool job_name(char *text, size_t bytes);

#endif
