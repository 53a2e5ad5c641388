/* SPDX-License-Identifier: MIT */
/*
 * May this rank read the private memory of its peers (process_vm_readv), and does it pay?
 *
 * The kernel decides whether it may: the same user, or a capability, and nothing that forbids it
 * (PID namespaces, Yama, seccomp, no dumping). Each rank finds out for itself and says so in its
 * entries, so that all know of all, and use it together or not at all.
 */
#ifndef CLIENT_REACH_H
#define CLIENT_REACH_H

#include "rcclx.h"
#include "../shm/rx_fabric.h"

struct rcclx_comm;

struct reach {
	enum rx_reach_state state; /* what this rank announces */
	bool always;               /* RCCLX_SINGLE_COPY=on: do not ask whether it pays */
	uint64_t nonce[2];         /* peers read it here */
	struct rx_reach_proof peers[RX_MAX_RANKS]; /* copied when they were proven */
};

/** reach_init() - from the environment; a value that is not understood is RCCLX_ERR_INVALID */
rcclx_result reach_init(struct reach *reach);

/** reach_state() - what to announce; publishes the proof of this rank on first use */
enum rx_reach_state reach_state(struct rcclx_comm *comm);

/**
 * reach_meet() - after all ranks have announced an op that single copy might serve
 * @bufs: what each has announced
 *
 * The first time this rank tries to read all others. Return: may it be used for this op? The same
 * on all ranks.
 */
bool reach_meet(struct rcclx_comm *comm, const struct rx_entry_bufs bufs[]);

/** reach_give_up() - no single copy in this communicator from now on; all ranks do it together */
void reach_give_up(struct rcclx_comm *comm);

/**
 * reach_read() - copy [from, from + bytes) of @peer's memory to @to
 *
 * What is copied is @peer's for certain, also if it died and its pid was given to another process
 * meanwhile: that it is the right process is proven in the same system call.
 *
 * Return: false when not all could be read: the process has ended, the kernel does not permit it
 *         any more, or this is no ordinary memory.
 */
bool reach_read(
	const struct rcclx_comm *comm, uint32_t peer, void *to, uint64_t from, uint64_t bytes);

#endif
