/* SPDX-License-Identifier: MIT */
/*
 * Blocks of a variable collective may lie far apart, and what is between them is not the
 * operation's. So they stand in bounce memory one behind the other, the daemon is told of
 * displacements that fit this, and only blocks are copied back.
 */
#include "placement.h"

#include "comm.h"
#include "session.h"
#include "../shm/rx_ring_abi.h"
#include "../kernels/coll_types.h"

#include <string.h>

/* Registered: of the host, or of a device. Else *ref_p has no handle, and the data is copied. */
static rcclx_result look_up(
	struct rcclx_client *client, const void *at, uint64_t bytes, struct mem_ref *ref_p)
{
	if (mem_find(client, at, bytes, ref_p))
		return RCCLX_OK;
	*ref_p = (struct mem_ref){.handle = RX_REGION_NONE};
	if (!gpu_is_there() || gpu_mem_known(client, at, bytes, ref_p))
		return RCCLX_OK;
	return gpu_is_device(at) ? gpu_mem_find(client, at, bytes, true, ref_p) : RCCLX_OK;
}

static rcclx_result copy(void *to, const void *from, uint64_t bytes)
{
	if (bytes == 0)
		return RCCLX_OK;
	if (gpu_is_there())
		return gpu_copy(to, from, bytes);
	memcpy(to, from, bytes);
	return RCCLX_OK;
}

/* Blocks in a buffer of @bytes. Those that are sent may overlap: then the whole is less. */
static bool packs(const struct rcclx_comm *comm, const struct op_request *request,
	const uint64_t *counts, const uint64_t *displs, uint64_t bytes)
{
	return displs &&
	       rx_counts_sum(counts, comm->n_ranks) <= bytes / rx_dtype_size(request->sig.dtype);
}

static bool packs_send(const struct rcclx_comm *comm, const struct op_request *request)
{
	const struct rx_counts *v = &request->v;

	return packs(comm, request, v->send_counts, v->send_displs, request->send_bytes);
}

static bool packs_recv(const struct rcclx_comm *comm, const struct op_request *request)
{
	const struct rx_counts *v = &request->v;

	return packs(comm, request, v->recv_counts, v->recv_displs, request->recv_bytes);
}

static uint64_t packed_bytes(
	const struct rcclx_comm *comm, const struct op_request *request, const uint64_t *counts)
{
	return rx_counts_sum(counts, comm->n_ranks) * rx_dtype_size(request->sig.dtype);
}

static rcclx_result place_recv(const struct rcclx_comm *comm, const struct op_request *request,
	struct placement *placement, struct mem_ref *ref)
{
	struct rcclx_client *client = comm->client;
	uint64_t bytes = request->recv_bytes;
	rcclx_result r = look_up(client, request->recv, bytes, ref);

	if (r != RCCLX_OK || ref->handle != RX_REGION_NONE)
		return r;
	if (packs_recv(comm, request)) {
		bytes = packed_bytes(comm, request, request->v.recv_counts);
		placement->n_blocks = comm->n_ranks;
	}
	r = bounce_get(client, bytes, &placement->recv);
	if (r != RCCLX_OK)
		return r;
	*ref = (struct mem_ref){
		.handle = placement->recv.handle,
		.offset = placement->recv.offset,
	};
	placement->copy_to = request->recv;
	placement->copy_bytes = bytes;
	return RCCLX_OK;
}

/* May what is sent lie where the result will come? Only where that is the in-place form. */
static bool send_may_lie_in_recv(const struct op_request *request)
{
	return request->sig.coll == RX_ALL_REDUCE && request->send_bytes == request->recv_bytes;
}

static rcclx_result copy_in(
	const struct rcclx_comm *comm, const struct op_request *request, uint8_t *dst, bool packed)
{
	uint32_t size = rx_dtype_size(request->sig.dtype);
	rcclx_result r = RCCLX_OK;

	if (!packed)
		return copy(dst, request->send, request->send_bytes);
	for (uint32_t rank = 0; rank < comm->n_ranks && r == RCCLX_OK; rank++) {
		uint64_t bytes = request->v.send_counts[rank] * size;

		r = copy(dst, (const uint8_t *)request->send + request->v.send_displs[rank] * size,
			bytes);
		dst += bytes;
	}
	return r;
}

static rcclx_result place_send(const struct rcclx_comm *comm, const struct op_request *request,
	struct placement *placement, const struct mem_ref *recv, struct mem_ref *ref)
{
	struct rcclx_client *client = comm->client;
	bool packed = packs_send(comm, request);
	rcclx_result r = look_up(client, request->send, request->send_bytes, ref);

	if (r != RCCLX_OK || ref->handle != RX_REGION_NONE)
		return r;
	if (send_may_lie_in_recv(request)) {
		void *to = placement->copy_bytes > 0 ? placement->recv.addr : request->recv;

		if (to != request->send)
			r = copy(to, request->send, request->send_bytes);
		*ref = *recv;
		return r;
	}
	r = bounce_get(client,
		packed ? packed_bytes(comm, request, request->v.send_counts) : request->send_bytes,
		&placement->send);
	if (r != RCCLX_OK)
		return r;
	*ref = (struct mem_ref){
		.handle = placement->send.handle,
		.offset = placement->send.offset,
	};
	return copy_in(comm, request, placement->send.addr, packed);
}

/* Displacements of blocks one behind the other. */
static const uint64_t *in_a_row(const uint64_t *counts, uint32_t n, uint64_t *displs)
{
	uint64_t next = 0;

	for (uint32_t i = 0; i < n; i++) {
		displs[i] = next;
		next += counts[i];
	}
	return displs;
}

/*
 * The numbers of a variable collective. Behind them stays what placement_collect() needs: the
 * caller's arrays may be gone by then.
 */
rcclx_result placement_words(const struct rcclx_comm *comm, const struct op_request *request,
	struct placement *placement, struct rx_sqe *sqe)
{
	uint32_t n_ranks = comm->n_ranks;
	uint32_t n_words = rx_counts_words(request->sig.coll, n_ranks);
	uint64_t displs[2][RX_MAX_RANKS];
	struct rx_counts v = request->v;
	uint64_t *words = NULL;
	rcclx_result r =
		bounce_get(comm->client, (n_words + n_ranks) * sizeof(*words), &placement->words);

	if (r != RCCLX_OK)
		return r;
	words = placement->words.addr;
	if (placement->send.slab && packs_send(comm, request))
		v.send_displs = in_a_row(v.send_counts, n_ranks, displs[0]);
	if (placement->n_blocks > 0) {
		memcpy(words + n_words, v.recv_displs, n_ranks * sizeof(*words));
		v.recv_displs = in_a_row(v.recv_counts, n_ranks, displs[1]);
	}
	rx_counts_pack(request->sig.coll, n_ranks, request->imm, &v, words);
	placement->copy_counts = rx_counts_of(request->sig.coll, n_ranks, words).recv_counts;
	placement->copy_displs = words + n_words;
	placement->size = rx_dtype_size(request->sig.dtype);
	sqe->root = placement->words.handle;
	sqe->imm = placement->words.offset;
	sqe->count = 0;
	return RCCLX_OK;
}

rcclx_result placement_begin(const struct rcclx_comm *comm, const struct op_request *request,
	struct placement *placement, struct rx_sqe *sqe)
{
	struct mem_ref send = {0};
	struct mem_ref recv = {0};
	rcclx_result r = RCCLX_OK;

	if (request->recv_bytes > 0)
		r = place_recv(comm, request, placement, &recv);
	if (r == RCCLX_OK && request->send_bytes > 0)
		r = place_send(comm, request, placement, &recv, &send);
	if (r == RCCLX_OK && rx_coll_is_v(request->sig.coll))
		r = placement_words(comm, request, placement, sqe);
	sqe->send_region = send.handle;
	sqe->send_offset = send.offset;
	sqe->recv_region = recv.handle;
	sqe->recv_offset = recv.offset;
	return r;
}

rcclx_result placement_collect(const struct placement *placement)
{
	const uint8_t *from = placement->recv.addr;
	rcclx_result r = RCCLX_OK;

	if (placement->n_blocks == 0)
		return copy(placement->copy_to, from, placement->copy_bytes);
	for (uint32_t i = 0; i < placement->n_blocks && r == RCCLX_OK; i++) {
		uint64_t bytes = placement->copy_counts[i] * placement->size;

		r = copy(
			(uint8_t *)placement->copy_to + placement->copy_displs[i] * placement->size,
			from, bytes);
		from += bytes;
	}
	return r;
}

void placement_end(struct rcclx_client *client, struct placement *placement)
{
	bounce_put(client, &placement->send);
	bounce_put(client, &placement->recv);
	bounce_put(client, &placement->words);
}
