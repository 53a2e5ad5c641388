/* SPDX-License-Identifier: MIT */
/*
 * Policy. A rank that has a core of its own spins for comm->spin_ns: the peer is most likely a
 * fraction of a microsecond away, and a sleeping rank costs it a wake-up of 20 us or more. Where
 * ranks outnumber cores a spinning rank would keep the awaited one from running: it gives the core
 * away instead (sched_yield). After that it sleeps on the peer's word and costs nothing.
 *
 * A sleep lasts at most RX_SLEEP_NS, since nobody wakes the waiters of a killed process; the
 * daemon sees the death and wakes them, and if the daemon is gone too, the poll of its socket says
 * so.
 */
#include "wait.h"

#include "../err.h"
#include "../../shm/rx_clock.h"
#include "../../shm/rx_wake.h"

#include <sched.h>

#define SPINS_PER_LOOK  64u
#define STALL_FIRST_NS  (250 * RX_NS_PER_MS)
#define STALL_AGAIN_NS  RX_NS_PER_SEC
#define YIELD_NS        (100ull * 1000)
#define YIELDS_PER_LOOK 4u

/*
 * With ranks that outnumber cores. The clock is read often: where other programs want the core,
 * too, a yield lets all of them have a turn, and many of them in a row would take a second.
 */
static bool yield(
	const struct wait_ctx *ctx, enum rx_wait_what what, uint32_t peer, uint32_t target)
{
	const struct rcclx_comm *comm = ctx->comm;
	uint64_t until = rx_deadline_ns(YIELD_NS);

	do {
		for (uint32_t i = 0; i < YIELDS_PER_LOOK; i++) {
			(void)sched_yield();
			if (rx_fabric_reached(&comm->fabric, what, peer, target))
				return true;
		}
		if (atomic_load_explicit(&comm->fabric.ctl->abort, memory_order_relaxed))
			return false;
	} while (rx_now_ns() < until);
	return false;
}

/* True once @peer is there; false after the time for spinning, or when something is wrong. */
static bool spin(const struct wait_ctx *ctx, enum rx_wait_what what, uint32_t peer, uint32_t target)
{
	const struct rcclx_comm *comm = ctx->comm;
	uint64_t until = 0;
	uint64_t now = 0;

	/* The first looks go before the clock is read, which takes as long as some of them. */
	do {
		for (uint32_t i = 0; i < SPINS_PER_LOOK; i++) {
			if (rx_fabric_reached(&comm->fabric, what, peer, target))
				return true;
			rx_cpu_relax();
		}
		if (atomic_load_explicit(&comm->fabric.ctl->abort, memory_order_relaxed))
			return false;
		now = rx_now_ns();
		if (until == 0)
			until = now + comm->spin_ns;
	} while (now < until);
	return false;
}

static rcclx_result timed_out(const struct wait_ctx *ctx, uint32_t peer)
{
	struct rcclx_comm *comm = ctx->comm;
	char what[96];

	comm_describe(ctx->sig, what, sizeof(what));
	err_set(RCCLX_ERR_TIMEOUT,
		"%s: rank %u (pid %u) did not come within the time given; the communicator is aborted",
		what, peer, comm->fabric.ctl->pid[peer]);
	comm_give_up(comm, RX_ABORT_DEADLINE);
	return comm_fail(comm, RCCLX_ERR_TIMEOUT);
}

/* Why waiting makes no sense any more; RCCLX_OK: it does. */
static rcclx_result look_around(const struct wait_ctx *ctx, uint32_t peer, uint64_t now)
{
	struct rcclx_comm *comm = ctx->comm;
	rcclx_result r = comm_fault(comm, peer, ctx->sig);

	if (r != RCCLX_OK)
		return r;
	if (now >= ctx->deadline_ns)
		return RCCLX_ERR_TIMEOUT;
	if (comm_daemon_lost(comm))
		return err_set(RCCLX_ERR_DAEMON_LOST,
			"the daemon ended the session or died during an operation; create a new "
			"connection and communicator");
	return RCCLX_OK;
}

static rcclx_result wait_asleep(
	const struct wait_ctx *ctx, enum rx_wait_what what, uint32_t peer, uint32_t target)
{
	struct rcclx_comm *comm = ctx->comm;
	uint64_t now = rx_now_ns();
	uint64_t hint_ns = now + STALL_FIRST_NS;

	for (;;) {
		rcclx_result r = look_around(ctx, peer, now);

		/* What the peer did before it left or died still counts. */
		if (rx_fabric_reached(&comm->fabric, what, peer, target))
			return RCCLX_OK;
		if (r == RCCLX_ERR_TIMEOUT && now >= ctx->deadline_ns)
			return timed_out(ctx, peer);
		if (r != RCCLX_OK)
			return comm_fail(comm, r);
		if (now >= hint_ns) {
			comm_stall_hint(comm);
			hint_ns = now + STALL_AGAIN_NS;
		}
		rx_fabric_sleep(&comm->fabric, comm->rank, what, peer, target,
			rx_min_u64(RX_SLEEP_NS, ctx->deadline_ns - now));
		if (rx_fabric_reached(&comm->fabric, what, peer, target))
			return RCCLX_OK;
		now = rx_now_ns();
	}
}

rcclx_result wait_peer(
	const struct wait_ctx *ctx, enum rx_wait_what what, uint32_t peer, uint32_t target)
{
	if (rx_fabric_reached(&ctx->comm->fabric, what, peer, target))
		return RCCLX_OK;
	if (ctx->comm->yield ? yield(ctx, what, peer, target) : spin(ctx, what, peer, target))
		return RCCLX_OK;
	return wait_asleep(ctx, what, peer, target);
}

rcclx_result wait_all(const struct wait_ctx *ctx, enum rx_wait_what what, uint32_t target)
{
	const struct rcclx_comm *comm = ctx->comm;

	for (uint32_t peer = 0; peer < comm->n_ranks; peer++) {
		rcclx_result r = RCCLX_OK;

		if (peer != comm->rank)
			r = wait_peer(ctx, what, peer, target);
		if (r != RCCLX_OK)
			return r;
	}
	return RCCLX_OK;
}
