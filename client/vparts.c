/* SPDX-License-Identifier: MIT */
#include "vparts.h"

#include "comm.h"
#include "err.h"

#include <string.h>

static const uint8_t *element(const void *base, uint64_t index, uint32_t size)
{
	return base ? (const uint8_t *)base + index * size : NULL;
}

static struct op_request part_of(
	const struct call *call, uint8_t coll, uint32_t root, uint64_t count)
{
	struct op_request part = {.sig = call->request.sig, .imm = call->request.imm};

	part.sig.flags = 0;
	part.sig.coll = coll;
	part.sig.root = root;
	part.sig.count = count;
	return part;
}

static void set_send(struct op_request *part, const uint8_t *at, uint64_t bytes)
{
	part->send = bytes > 0 ? at : NULL;
	part->send_bytes = bytes;
}

static void set_recv(struct op_request *part, const uint8_t *at, uint64_t bytes)
{
	part->recv = bytes > 0 ? (void *)(uintptr_t)at : NULL;
	part->recv_bytes = bytes;
}

/* Rank @root's elements, to everybody. */
static struct op_request gather_part(const struct call *call, uint32_t root)
{
	uint32_t size = rx_dtype_size(call->request.sig.dtype);
	uint64_t bytes = call->v.recv_counts[root] * size;
	struct op_request part = part_of(call, RX_BROADCAST, root, call->v.recv_counts[root]);

	if (root == call->comm->rank)
		set_send(&part, call->request.send, bytes);
	set_recv(&part, element(call->request.recv, call->v.recv_displs[root], size), bytes);
	return part;
}

/* Everybody's block for @root, folded there. */
static struct op_request scatter_part(const struct call *call, uint32_t root, uint64_t first)
{
	uint32_t size = rx_dtype_size(call->request.sig.dtype);
	uint64_t bytes = call->v.send_counts[root] * size;
	struct op_request part = part_of(call, RX_REDUCE, root, call->v.send_counts[root]);

	set_send(&part, element(call->request.send, first, size), bytes);
	if (root == call->comm->rank)
		set_recv(&part, call->request.recv, bytes);
	return part;
}

static struct op_request send_part(const struct call *call, uint32_t peer)
{
	uint32_t size = rx_dtype_size(call->request.sig.dtype);
	struct op_request part = part_of(call, RX_SEND, peer, call->v.send_counts[peer]);

	set_send(&part, element(call->request.send, call->v.send_displs[peer], size),
		call->v.send_counts[peer] * size);
	return part;
}

static struct op_request recv_part(const struct call *call, uint32_t peer)
{
	uint32_t size = rx_dtype_size(call->request.sig.dtype);
	struct op_request part = part_of(call, RX_RECV, peer, call->v.recv_counts[peer]);

	set_recv(&part, element(call->request.recv, call->v.recv_displs[peer], size),
		call->v.recv_counts[peer] * size);
	return part;
}

static rcclx_result start_part(
	const struct call *call, const struct op_request *part, struct op_parts *parts)
{
	struct rcclx_op *op = NULL;
	rcclx_result r = op_start(call->comm, part, &op);

	if (r == RCCLX_OK)
		op_parts_add(parts, op);
	return r;
}

/* Parts concerning @peer. */
static rcclx_result start_for(
	const struct call *call, uint32_t peer, uint64_t first, struct op_parts *parts)
{
	struct op_request part;
	rcclx_result r = RCCLX_OK;

	switch (call->request.sig.coll) {
	case RX_ALL_GATHER_V:
		part = gather_part(call, peer);
		return start_part(call, &part, parts);
	case RX_REDUCE_SCATTER_V:
		part = scatter_part(call, peer, first);
		return start_part(call, &part, parts);
	default:
		part = send_part(call, peer);
		r = start_part(call, &part, parts);
		if (r != RCCLX_OK)
			return r;
		part = recv_part(call, peer);
		return start_part(call, &part, parts);
	}
}

rcclx_result vparts_start(const struct call *call, struct rcclx_op **op_p)
{
	uint32_t n = call->comm->n_ranks;
	struct op_parts *parts = op_parts_new(2 * n);
	rcclx_result r = RCCLX_OK;
	uint64_t first = 0;

	if (!parts)
		return err_set(RCCLX_ERR_NO_MEMORY, "out of memory for an operation");
	for (uint32_t peer = 0; peer < n && r == RCCLX_OK; peer++) {
		r = start_for(call, peer, first, parts);
		if (call->request.sig.coll == RX_REDUCE_SCATTER_V)
			first += call->v.send_counts[peer];
	}
	return op_parts_join(parts, r, op_p);
}
