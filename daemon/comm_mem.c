/* SPDX-License-Identifier: MIT */
#include "comm_mem.h"

#include "daemon.h"
#include "tuning.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_memfd.h"

#include <string.h>

uint64_t comm_mem_bytes(uint32_t n_ranks)
{
	return sizeof(struct rx_fabric_ctl) + rx_fabric_arena_bytes(n_ranks);
}

static struct topology_place place_ranks(const struct comm *comm)
{
	struct cpu_mask masks[RX_MAX_RANKS];

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		masks[rank] = comm->members[rank]->cpus;
	return topology_place(comm->daemon->topology, masks, comm->n_ranks);
}

static bool one_user(const struct comm *comm)
{
	for (uint32_t rank = 1; rank < comm->n_ranks; rank++)
		if (comm->members[rank]->uid != comm->members[0]->uid)
			return false;
	return true;
}

/* Nobody else has the page yet. */
static void fill_ctl(struct comm *comm)
{
	struct rx_fabric_ctl *ctl = comm->ctl_map.addr;
	uint64_t timeout_ns = comm->members[0]->op_timeout_ns;

	ctl->abort_rank = UINT32_MAX;
	ctl->abort_other = UINT32_MAX;
	ctl->n_ranks = comm->n_ranks;
	ctl->op_timeout_ns = timeout_ns > 0 ? timeout_ns : RX_FOREVER;
	ctl->cores_shared = comm->place.cores_shared;
	ctl->one_user = one_user(comm);
	ctl->spin_us = comm->daemon->config.waiting.spin_us;
	ctl->tuning = comm->daemon->tuning->table;
	ctl->precision = comm->members[0]->precision;
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		ctl->pid[rank] = comm_pid(comm, rank);
		ctl->session[rank] = comm->members[rank]->session_id;
		ctl->gpu |= comm->members[rank]->gpu;
	}
}

int comm_mem_open(struct comm *comm, int *ctl_fd_p, int *arena_fd_p)
{
	uint64_t lines_bytes = rx_fabric_lines_bytes(comm->n_ranks);
	RX_CLOSE int ctl_fd = -1;
	RX_CLOSE int arena_fd = -1;
	int r = rx_memfd_new(
		"rcclx-ctl", sizeof(struct rx_fabric_ctl), RX_MEMFD_ONE_WRITER, &ctl_fd);

	if (!r)
		r = rx_memfd_new("rcclx-arena", rx_fabric_arena_bytes(comm->n_ranks),
			RX_MEMFD_SHARED, &arena_fd);
	if (!r)
		r = rx_map_open(&comm->ctl_map, ctl_fd, sizeof(struct rx_fabric_ctl),
			RX_MAP_RW | RX_MAP_DONTFORK);
	if (!r)
		r = rx_memfd_seal_writer(ctl_fd);
	if (!r)
		r = rx_map_open(
			&comm->lines_map, arena_fd, lines_bytes, RX_MAP_RO | RX_MAP_DONTFORK);
	if (!r)
		r = rx_fabric_init(&comm->fabric, &comm->ctl_map, &comm->lines_map, comm->n_ranks);
	if (r) {
		comm_mem_close(comm);
		return r;
	}
	comm->place = place_ranks(comm);
	fill_ctl(comm);
	*ctl_fd_p = rx_steal_fd(&ctl_fd);
	*arena_fd_p = rx_steal_fd(&arena_fd);
	return 0;
}

void comm_mem_close(struct comm *comm)
{
	rx_map_close(&comm->lines_map);
	rx_map_close(&comm->ctl_map);
	comm->fabric = (struct rx_fabric){0};
}

void comm_mem_status(struct comm *comm, uint32_t rank, enum rx_member_status status)
{
	struct rx_fabric_ctl *ctl = comm->ctl_map.addr;

	/* Pairs with the members' loads: what the rank published before is seen first. */
	atomic_store_explicit(&ctl->status[rank], status, memory_order_release);
	rx_fabric_wake_all(&comm->fabric);
}

void comm_mem_forget(struct comm *comm)
{
	struct rx_fabric_ctl *ctl = comm->ctl_map.addr;

	atomic_fetch_add_explicit(&ctl->mem_generation, 1, memory_order_release);
}

void comm_mem_over_budget(struct comm *comm)
{
	struct rx_fabric_ctl *ctl = comm->ctl_map.addr;

	/* No pair: a rank that sees it tells the others in its next entry. */
	atomic_store_explicit(&ctl->over_budget, 1, memory_order_relaxed);
}

void comm_mem_kernels(struct comm *comm, enum rx_kernels_state state)
{
	struct rx_fabric_ctl *ctl = comm->ctl_map.addr;

	/* No pair: members look at it when they have been told to, by a message. */
	atomic_store_explicit(&ctl->kernels, state, memory_order_relaxed);
}

void comm_mem_abort(struct comm *comm, const struct rx_op_sig *sig)
{
	static const struct rx_op_sig none[2];

	(void)rx_fabric_ctl_abort(comm->ctl_map.addr, comm->reason, comm->abort_rank,
		comm->abort_other, sig ? sig : none);
	rx_fabric_wake_all(&comm->fabric);
}
