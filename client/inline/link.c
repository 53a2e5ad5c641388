/* SPDX-License-Identifier: MIT */
#include "link.h"

#include "../../shm/rx_clock.h"
#include "../../shm/rx_wake.h"

#include <sched.h>

void link_begin(struct rcclx_comm *comm)
{
	comm->link_since_ns = rx_now_ns();
}

/* bytes / rate in ns; saturates. */
static uint64_t duration_ns(uint64_t bytes, uint64_t rate)
{
	double ns = (double)bytes * 1e9 / (double)rate;

	return ns < 1e18 ? (uint64_t)ns : RX_FOREVER / 4;
}

void link_wait(struct rcclx_comm *comm, uint64_t bytes)
{
	const struct rx_fabric_ctl *ctl = comm->fabric.ctl;
	uint64_t start_ns = rx_max_u64(comm->link_free_ns, comm->link_since_ns);

	comm->link_free_ns = start_ns + duration_ns(bytes, ctl->precision.link_rate);
	/* An abort must not wait for it; who asks for a result then finds out. */
	while (rx_now_ns() < comm->link_free_ns &&
		atomic_load_explicit(&ctl->abort, memory_order_relaxed) == RX_ABORT_NONE) {
		if (comm->yield)
			(void)sched_yield();
		else
			rx_cpu_relax();
	}
	comm->link_since_ns = rx_now_ns();
}
