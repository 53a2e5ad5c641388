/* SPDX-License-Identifier: MIT */
/* A communicator's shared memory: made, told, given back. The only writer of control pages. */
#ifndef DAEMON_COMM_MEM_H
#define DAEMON_COMM_MEM_H

#include "comm.h"

/**
 * comm_mem_open() - make control page and arena, fill the page from @comm
 * @ctl_fd_p, @arena_fd_p: for the members; the caller closes them
 */
RX_WARN_UNUSED int comm_mem_open(struct comm *comm, int *ctl_fd_p, int *arena_fd_p);

/** comm_mem_close() - unmap; harmless when not open */
void comm_mem_close(struct comm *comm);

/** comm_mem_bytes() - control page and arena of @n_ranks */
uint64_t comm_mem_bytes(uint32_t n_ranks);

/** comm_mem_status() - publish a rank's status and wake everybody */
void comm_mem_status(struct comm *comm, uint32_t rank, enum rx_member_status status);

/** comm_mem_forget() - memory of a member was freed: members drop what they imported */
void comm_mem_forget(struct comm *comm);

/** comm_mem_over_budget() - no low precision any more */
void comm_mem_over_budget(struct comm *comm);

/** comm_mem_kernels() - what the ranks are to know of kernels that they run themselves */
void comm_mem_kernels(struct comm *comm, enum rx_kernels_state state);

/** comm_mem_abort() - set the abort word and wake everybody */
void comm_mem_abort(struct comm *comm, const struct rx_op_sig *sig);

#endif
