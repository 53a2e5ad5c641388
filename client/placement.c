/* SPDX-License-Identifier: MIT */
#include "placement.h"

#include "session.h"
#include "../kernels/coll_types.h"

#include <string.h>

static rcclx_result place_recv(struct rcclx_client *client, const struct op_request *request,
	struct placement *placement, struct mem_ref *ref)
{
	rcclx_result r = RCCLX_OK;

	if (mem_find(client, request->recv, request->recv_bytes, ref))
		return RCCLX_OK;
	r = bounce_get(client, request->recv_bytes, &placement->recv);
	if (r != RCCLX_OK)
		return r;
	*ref = (struct mem_ref){
		.handle = placement->recv.handle,
		.offset = placement->recv.offset,
	};
	placement->copy_to = request->recv;
	placement->copy_bytes = request->recv_bytes;
	return RCCLX_OK;
}

/* May what is sent lie where the result will come? Only where that is the in-place form. */
static bool send_may_lie_in_recv(const struct op_request *request)
{
	return request->sig.coll == RX_ALL_REDUCE && request->send_bytes == request->recv_bytes;
}

static rcclx_result place_send(struct rcclx_client *client, const struct op_request *request,
	struct placement *placement, const struct mem_ref *recv, struct mem_ref *ref)
{
	rcclx_result r = RCCLX_OK;

	if (mem_find(client, request->send, request->send_bytes, ref))
		return RCCLX_OK;
	if (send_may_lie_in_recv(request)) {
		void *to = placement->copy_bytes > 0 ? placement->recv.addr : request->recv;

		if (to != request->send)
			memcpy(to, request->send, request->send_bytes);
		*ref = *recv;
		return RCCLX_OK;
	}
	r = bounce_get(client, request->send_bytes, &placement->send);
	if (r != RCCLX_OK)
		return r;
	memcpy(placement->send.addr, request->send, request->send_bytes);
	*ref = (struct mem_ref){
		.handle = placement->send.handle,
		.offset = placement->send.offset,
	};
	return RCCLX_OK;
}

rcclx_result placement_begin(struct rcclx_client *client, const struct op_request *request,
	struct placement *placement, struct rx_sqe *sqe)
{
	struct mem_ref send = {0};
	struct mem_ref recv = {0};
	rcclx_result r = RCCLX_OK;

	if (request->recv_bytes > 0)
		r = place_recv(client, request, placement, &recv);
	if (r == RCCLX_OK && request->send_bytes > 0)
		r = place_send(client, request, placement, &recv, &send);
	sqe->send_region = send.handle;
	sqe->send_offset = send.offset;
	sqe->recv_region = recv.handle;
	sqe->recv_offset = recv.offset;
	return r;
}

void placement_collect(const struct placement *placement)
{
	if (placement->copy_bytes > 0)
		memcpy(placement->copy_to, placement->recv.addr, placement->copy_bytes);
}

void placement_end(struct rcclx_client *client, struct placement *placement)
{
	bounce_put(client, &placement->send);
	bounce_put(client, &placement->recv);
}
