/* SPDX-License-Identifier: MIT */
/*
 * A rank publishes 16 random bytes and where they lie in its memory. Who finds them there, in the
 * process that the daemon says is the rank's, has the right process and the permission. Each later
 * read takes them along: a system call works on one address space from beginning to end, so that
 * data that comes with the right bytes cannot be from another process with the same pid.
 *
 * Only reads: a write to the wrong process could not be taken back. And always by the kernel, also
 * within one process: addresses come from the arena, where any member could have changed them. What
 * a member could do that way, have one rank read another's memory in a wrong place, it must be able
 * to do itself: hence all members have to be of one user.
 */
#include "reach.h"

#include "comm.h"
#include "err.h"
#include "../kernels/host/copy.h"
#include "../shm/rx_clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * Does it pay? Through the arena each byte is copied twice, and the second copy takes cache lines
 * that another core has just written: for 64 KiB that is some 6 us more than one copy needs. With
 * single copy the kernel looks up, pins and copies page by page, and what that takes depends on
 * the machine, mostly on its mitigations: 8 us more than a plain copy where it was measured to
 * lose.
 */
#define TRIAL_BYTES   RX_CHUNK_BYTES
#define TRIAL_TRIES   16
#define TRIAL_PAYS_NS 5000u

rcclx_result reach_init(struct reach *reach)
{
	const char *text = secure_getenv("RCCLX_SINGLE_COPY");

	*reach = (struct reach){.state = RX_REACH_OFFERED};
	if (!text || !text[0] || strcmp(text, "auto") == 0)
		return RCCLX_OK;
	if (strcmp(text, "off") == 0)
		reach->state = RX_REACH_NO;
	else if (strcmp(text, "on") == 0)
		reach->always = true;
	else
		return err_set(RCCLX_ERR_INVALID,
			"the environment variable RCCLX_SINGLE_COPY is \"%.40s\", expected auto, "
			"on or off",
			text);
	return RCCLX_OK;
}

enum rx_reach_state reach_state(struct rcclx_comm *comm)
{
	struct reach *reach = &comm->reach;
	struct rx_reach_proof *proof = &comm->fabric.lines[comm->rank].proof;

	if (reach->state != RX_REACH_OFFERED || proof->at != 0)
		return reach->state;
	/* An emulated link is in the copies through the arena. */
	if (comm->fabric.ctl->one_user != 1 || comm->fabric.ctl->precision.link_rate != 0 ||
		getrandom(reach->nonce, sizeof(reach->nonce), GRND_NONBLOCK) !=
			(ssize_t)sizeof(reach->nonce)) {
		reach->state = RX_REACH_NO;
		return reach->state;
	}
	memcpy(proof->nonce, reach->nonce, sizeof(proof->nonce));
	proof->at = (uintptr_t)reach->nonce;
	return reach->state;
}

static bool read_process(
	pid_t pid, const struct rx_reach_proof *proof, void *to, uint64_t from, uint64_t bytes)
{
	uint64_t found[2] = {0};
	struct iovec local[2] = {{to, bytes}, {found, sizeof(found)}};
	struct iovec remote[2] = {
		{(void *)(uintptr_t)from, bytes}, {(void *)(uintptr_t)proof->at, sizeof(found)}};
	ssize_t n = process_vm_readv(pid, local, 2, remote, 2, 0);

	return n == (ssize_t)(bytes + sizeof(found)) &&
	       memcmp(found, proof->nonce, sizeof(found)) == 0;
}

bool reach_read(
	const struct rcclx_comm *comm, uint32_t peer, void *to, uint64_t from, uint64_t bytes)
{
	return read_process(
		(pid_t)comm->fabric.ctl->pid[peer], &comm->reach.peers[peer], to, from, bytes);
}

/* Nobody reads the own chunks now: all ranks have announced the op, and none has a step to do. */
static uint64_t trial_ns(const struct rcclx_comm *comm, bool by_kernel)
{
	const struct rx_reach_proof own = {
		.nonce = {comm->reach.nonce[0], comm->reach.nonce[1]},
		.at = (uintptr_t)comm->reach.nonce,
	};
	uint8_t *to = rx_fabric_chunk(&comm->fabric, comm->rank, 0);
	const uint8_t *from = rx_fabric_chunk(&comm->fabric, comm->rank, 1);
	uint64_t best_ns = UINT64_MAX;

	/* The shortest of some: others may need the core, too. */
	for (int i = 0; i < TRIAL_TRIES; i++) {
		uint64_t start_ns = rx_now_ns();

		if (!by_kernel)
			rx_copy(to, from, TRIAL_BYTES, false);
		else if (!read_process(getpid(), &own, to, (uintptr_t)from, TRIAL_BYTES))
			return UINT64_MAX;
		best_ns = rx_min_u64(best_ns, rx_now_ns() - start_ns);
	}
	return best_ns;
}

static bool pays(const struct rcclx_comm *comm)
{
	uint64_t kernel_ns = trial_ns(comm, true);

	return kernel_ns != UINT64_MAX && kernel_ns < trial_ns(comm, false) + TRIAL_PAYS_NS;
}

static bool prove(struct rcclx_comm *comm, uint32_t peer)
{
	struct rx_reach_proof *proof = &comm->reach.peers[peer];
	uint64_t nothing = 0;

	*proof = comm->fabric.lines[peer].proof;
	return reach_read(comm, peer, &nothing, proof->at, sizeof(nothing));
}

static enum rx_reach_state try_all(struct rcclx_comm *comm)
{
	for (uint32_t peer = 0; peer < comm->n_ranks; peer++)
		if (peer != comm->rank && !prove(comm, peer))
			return RX_REACH_NO;
	return comm->reach.always || pays(comm) ? RX_REACH_PROVEN : RX_REACH_NO;
}

bool reach_meet(struct rcclx_comm *comm, const struct rx_entry_bufs bufs[])
{
	bool all_proven = true;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		/* Whatever else a broken peer says: all ranks take it for the same. */
		if (bufs[rank].reach == RX_REACH_NO) {
			reach_give_up(comm);
			return false;
		}
		all_proven = all_proven && bufs[rank].reach == RX_REACH_PROVEN;
	}
	if (comm->reach.state == RX_REACH_OFFERED)
		comm->reach.state = try_all(comm);
	return all_proven;
}

void reach_give_up(struct rcclx_comm *comm)
{
	comm->reach.state = RX_REACH_NO;
}
