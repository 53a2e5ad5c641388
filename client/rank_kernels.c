/* SPDX-License-Identifier: MIT */
/*
 * A kernel of one rank waits for those of the others, so who runs one is no rank's own choice. What
 * only concerns this process (memory that kernels do not reach) is staged by whoever calls us.
 *
 * Nothing that is mapped here is unmapped: a stream may hold a kernel, and a graph for ever.
 */
#include "rank_kernels.h"

#include "comm.h"
#include "err.h"
#include "gates.h"
#include "gpu_runtime.h"
#include "session.h"
#include "../kernels/coll_types.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_gate.h"

#include <stdio.h>
#include <string.h>

static_assert(sizeof(struct rx_inl_page) == offsetof(struct rx_cell, what), "a page, then a line");
static_assert(offsetof(struct rx_cell, wait_ticks) == offsetof(struct rx_inl_page, wait_ticks) &&
		      offsetof(struct rx_cell, status) - offsetof(struct rx_cell, what) ==
			      offsetof(struct rx_inl_line, status),
	"as kernels know it");

void rank_kernels_look(struct rank_kernels *kernels)
{
	*kernels = (struct rank_kernels){0};
	kernels->has_device = gpu_current(&kernels->device, kernels->uuid, &kernels->concurrent);
}

/* ---- setting up ---- */

static rcclx_result map_part(struct rcclx_comm *comm, uint32_t rank)
{
	struct conn_wait wait = {.deadline_ns = rx_deadline_ns(CONN_TIMEOUT_NS)};
	struct rx_msg request = {
		.type = RX_MSG_SLAB_GET,
		.slab_get = {.member = comm->member, .rank = rank},
	};
	const struct rx_msg_slab_reply *slab = NULL;
	struct rx_gpu_export shared = {0};
	struct conn_reply reply;
	uint64_t address = 0;
	rcclx_result r =
		conn_call(&comm->client->conn, &request, -1, RX_MSG_SLAB_REPLY, &wait, &reply);

	if (r != RCCLX_OK)
		return r;
	slab = &reply.msg.slab_reply;
	shared.memory = (struct rx_gpu_memory){
		.base = slab->start,
		.bytes = slab->bytes,
		.id = slab->id,
		.kind = RX_GPU_MEM_PLAIN,
	};
	memcpy(shared.memory.uuid, slab->uuid.data, sizeof(shared.memory.uuid));
	memcpy(shared.handle, slab->handle.data, sizeof(shared.handle));
	if (slab->part_bytes < RX_INL_MEM_BYTES(RX_INL_SLOT_DEFAULT) || slab->max_blocks == 0)
		r = err_set(RCCLX_ERR_VERSION,
			"the daemon's device memory is not laid out as this library knows it");
	else
		r = gpu_map_shared(comm->kernels.device, &shared, slab->rows.data,
			(uint32_t)slab->rows.len, &address);
	if (r == RCCLX_OK) {
		comm->kernels.mem[rank] = address + slab->part_offset;
		comm->kernels.max_blocks =
			(uint32_t)rx_min_u64(slab->max_blocks, RX_INL_MAX_BLOCKS);
	}
	conn_reply_deinit(&reply);
	return r;
}

static rcclx_result set_up(struct rcclx_comm *comm, struct cell_ref *cell)
{
	struct rank_kernels *kernels = &comm->kernels;
	rcclx_result r = gates_open(comm->client);

	if (r == RCCLX_OK && comm->n_ranks > RX_INL_MAX_RANKS)
		r = err_set(RCCLX_ERR_VERSION, "the daemon offers kernels for too many ranks");
	if (r == RCCLX_OK)
		r = gates_take_cell(comm, cell);
	for (uint32_t rank = 0; rank < comm->n_ranks && r == RCCLX_OK; rank++)
		r = map_part(comm, rank);
	if (r != RCCLX_OK)
		return r;
	kernels->slot_bytes = RX_INL_SLOT_DEFAULT;
	kernels->cell = cell->cell;
	kernels->cell_address = cell->address;
	kernels->cell->wait_ticks = gpu_ticks(kernels->device, comm->fabric.ctl->op_timeout_ns);
	return RCCLX_OK;
}

/* Whatever cannot be is no error: the daemon serves the calls then. */
void rank_kernels_open(struct rcclx_comm *comm)
{
	uint32_t state = atomic_load_explicit(&comm->fabric.ctl->kernels, memory_order_relaxed);
	struct conn_wait wait = {.deadline_ns = RX_FOREVER, .patient = true};
	struct rx_msg request = {
		.type = RX_MSG_KERNELS_READY,
		.kernels_ready = {.member = comm->member, .why = ""},
	};
	struct conn_reply reply;
	struct cell_ref cell = {0};
	char why[RX_DEVICE_TEXT_MAX];

	if (state != RX_KERNELS_OFFERED || !comm->kernels.has_device)
		return;
	if (set_up(comm, &cell) != RCCLX_OK) {
		(void)snprintf(why, sizeof(why), "%s", rcclx_last_error());
		request.kernels_ready.why = why[0] ? why : "unknown";
	}
	request.kernels_ready.cell = cell.number;
	if (conn_call(&comm->client->conn, &request, -1, RX_MSG_OK, &wait, &reply) != RCCLX_OK)
		return;
	conn_reply_deinit(&reply);
	comm->kernels.on = atomic_load_explicit(&comm->fabric.ctl->kernels, memory_order_relaxed) ==
			   RX_KERNELS_ON;
}
