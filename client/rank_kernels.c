/* SPDX-License-Identifier: MIT */
/*
 * A kernel of one rank waits for those of the others, so who runs one is no rank's own choice. What
 * only concerns this process (memory that kernels do not reach) is staged by whoever calls us.
 *
 * Nothing that is mapped here is unmapped: a stream may hold a kernel, and a graph for ever.
 */
#include "rank_kernels.h"

#include "call.h"
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

/* All now: loading one later may wait for those that run, which may wait for it. */
static rcclx_result find_kernels(uint32_t device)
{
	char name[32];
	rcclx_result r = gpu_find_kernel(device, RX_INL_COPY_NAME);

	for (uint32_t dtype = 0; dtype < RX_DTYPE_N && r == RCCLX_OK; dtype++) {
		(void)snprintf(name, sizeof(name), RX_INL_PREFIX "%s", rx_dtype_suffix(dtype));
		r = gpu_find_kernel(device, name);
	}
	return r;
}

static rcclx_result set_up(struct rcclx_comm *comm, struct cell_ref *cell)
{
	struct rank_kernels *kernels = &comm->kernels;
	rcclx_result r = gates_open(comm->client);

	if (r == RCCLX_OK)
		r = find_kernels(kernels->device);
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

/* ---- calls ---- */

bool rank_kernels_serve(const struct call *call)
{
	const struct rcclx_comm *comm = call->comm;
	const struct rx_op_sig *sig = &call->request.sig;
	uint32_t size = rx_dtype_size(sig->dtype);
	uint32_t blocks =
		sig->coll == RX_ALL_REDUCE || sig->coll == RX_BROADCAST ? 1 : comm->n_ranks;

	/* Nothing that ranks need not agree about. */
	return comm->kernels.on && call->config.executor == RCCLX_EXECUTOR_AUTO &&
	       sig->flags == 0 && comm->fabric.ctl->precision.link_rate == 0 &&
	       rx_inl_serves(sig->coll, sig->count, size, comm->n_ranks) &&
	       sig->count * size * blocks <= comm->kernels.slot_bytes;
}

rcclx_result rank_kernels_check(const struct rcclx_comm *comm, const struct gpu_stream *stream)
{
	if (rx_likely(stream->device == comm->kernels.device))
		return RCCLX_OK;
	return err_set(RCCLX_ERR_INVALID,
		"the stream is one of device %u, but the communicator was made while device %u was "
		"current: make it with the device of its streams",
		stream->device, comm->kernels.device);
}

static void fill_ranks(struct rx_inl_args *args, const struct rank_launch *ranks, uint32_t n)
{
	const struct rcclx_comm *comm = ranks[0].call->comm;

	/* NOLINTBEGIN(performance-no-int-to-ptr): the device's addresses */
	args->page = (const struct rx_inl_page *)(uintptr_t)comm->kernels.cell_address;
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		args->mem[rank] = (struct rx_inl_mem *)(uintptr_t)comm->kernels.mem[rank];
	for (uint32_t i = 0; i < n; i++) {
		const struct rcclx_comm *own = ranks[i].call->comm;

		args->local |= 1u << own->rank;
		args->send[own->rank] = (const void *)(uintptr_t)ranks[i].send;
		args->recv[own->rank] = (void *)(uintptr_t)ranks[i].recv;
		args->scalar[own->rank] = ranks[i].call->request.imm;
		args->line[own->rank] =
			(struct rx_inl_line *)(uintptr_t)(own->kernels.cell_address +
							  offsetof(struct rx_cell, what));
	}
	/* NOLINTEND(performance-no-int-to-ptr) */
}

rcclx_result rank_kernels_launch(
	const struct gpu_stream *stream, const struct rank_launch *ranks, uint32_t n)
{
	const struct rcclx_comm *comm = ranks[0].call->comm;
	const struct rank_kernels *kernels = &comm->kernels;
	const struct rx_op_sig *sig = &ranks[0].call->request.sig;
	bool reduces = rx_coll_reduces(sig->coll);
	uint32_t size = rx_dtype_size(sig->dtype);
	const struct rx_inl_plan plan = rx_inl_plan(sig->coll, reduces ? sig->op : 0,
		(uint32_t)(sig->count * size), comm->n_ranks, kernels->max_blocks);
	struct rx_inl_args args = {
		.abi = RX_INL_ABI,
		.coll = sig->coll,
		.dtype = sig->dtype,
		.op = reduces ? sig->op : 0,
		.algorithm = (uint8_t)plan.algorithm,
		.n_ranks = comm->n_ranks,
		.root = sig->coll == RX_BROADCAST ? sig->root : 0,
		.count = (uint32_t)sig->count,
		.elem_bytes = size,
		.slot_bytes = kernels->slot_bytes,
	};
	char name[32] = RX_INL_COPY_NAME;
	const struct rx_gpu_launch launch = {
		.kernel = name,
		.args = &args,
		.args_bytes = sizeof(args),
		.n_blocks = plan.n_blocks,
		.n_threads = plan.n_threads,
	};

	if (reduces)
		(void)snprintf(name, sizeof(name), RX_INL_PREFIX "%s", rx_dtype_suffix(sig->dtype));
	fill_ranks(&args, ranks, n);
	return gpu_launch(stream, &launch);
}
