/* SPDX-License-Identifier: MIT */
/*
 * The entry goes to the daemon at once, with a gate: a word that the stream writes when it comes to
 * the call, and one that it waits for. Nobody holds the operation on the host; its completion only
 * gives back what it held, and makes a failure that of the communicator, as there is no one else to
 * tell.
 *
 * Memory that the daemon cannot use in place passes through memory of ours on the same device.
 * Setting that up, and registering memory, happens on first use, and may take a while.
 *
 * Where ranks run kernels themselves, the call is one in the stream, and the daemon does not hear
 * of it.
 */
#include "stream.h"

#include "comm.h"
#include "err.h"
#include "op_state.h"
#include "rank_kernels.h"
#include "session.h"
#include "stage.h"
#include "../kernels/coll_types.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_gate_abi.h"

#include <stdlib.h>
#include <string.h>

/* How long destroying a communicator waits for streams to come to its calls, then for the daemon */
#define DRAIN_NS  (10 * RX_NS_PER_SEC)
#define CANCEL_NS (1 * RX_NS_PER_SEC)

#define MODE_RELAXED 2

rcclx_result stream_check(const char *function, const struct rcclx_call_config *config)
{
	if (!gpu_is_there())
		return err_set(RCCLX_ERR_INVALID,
			"%s: RCCLX_CALL_IN_STREAM without a GPU runtime: this process had loaded "
			"none, or no backend for it was found, when it made a communicator",
			function);
	if (config->executor == RCCLX_EXECUTOR_INLINE)
		return err_set(RCCLX_ERR_INVALID,
			"%s: RCCLX_EXECUTOR_INLINE with RCCLX_CALL_IN_STREAM: such calls are "
			"executed by the daemon",
			function);
	if (config->timeout_ns != 0)
		return err_set(RCCLX_ERR_INVALID,
			"%s: timeout_ns with RCCLX_CALL_IN_STREAM: nothing is waited for; "
			"op_timeout_ns of the communicator is for such calls, too",
			function);
	return RCCLX_OK;
}

/* ---- memory ---- */

struct buffer {
	const void *address;
	uint64_t bytes;
	uint64_t staged; /* address of ours; 0: in place */
	struct mem_ref ref;
};

static rcclx_result place(const struct stream_call *sc, uint32_t slot, struct buffer *buffer)
{
	struct rcclx_client *client = sc->call->comm->client;
	rcclx_result r = RCCLX_OK;

	if (buffer->bytes == 0 || mem_find(client, buffer->address, buffer->bytes, &buffer->ref) ||
		gpu_mem_known(client, buffer->address, buffer->bytes, &buffer->ref))
		return RCCLX_OK;
	if (gpu_is_device(buffer->address))
		r = gpu_mem_find(client, buffer->address, buffer->bytes, false, &buffer->ref);
	if (r != RCCLX_OK || buffer->ref.handle != RX_REGION_NONE)
		return r;
	return stage_get(client, &sc->stream, slot, buffer->bytes, &buffer->staged, &buffer->ref);
}

/* For a kernel in the stream, which reaches what is on its device. */
static rcclx_result place_for_kernel(
	const struct stream_call *sc, uint32_t slot, struct buffer *buffer)
{
	struct rx_gpu_memory memory = {0};

	if (buffer->bytes == 0)
		return RCCLX_OK;
	if (gpu_describe(buffer->address, &memory) == RX_GPU_OK && memory.kind != RX_GPU_MEM_HOST &&
		(memory.kind == RX_GPU_MEM_MANAGED || memory.device == sc->stream.device))
		return RCCLX_OK;
	return stage_get(sc->call->comm->client, &sc->stream, slot, buffer->bytes, &buffer->staged,
		&buffer->ref);
}

static rcclx_result copy_in(const struct stream_call *sc, const struct buffer *buffer)
{
	if (!buffer->staged)
		return RCCLX_OK;
	return gpu_copy_in_stream(
		&sc->stream, buffer->staged, (uint64_t)(uintptr_t)buffer->address, buffer->bytes);
}

/* Only the blocks that it receives: what is between them is not the operation's. */
static rcclx_result copy_out(const struct stream_call *sc)
{
	const struct op_request *request = &sc->call->request;
	uint64_t to = (uint64_t)(uintptr_t)request->recv;
	uint32_t size = rx_dtype_size(request->sig.dtype);
	rcclx_result r = RCCLX_OK;

	if (!sc->staged)
		return RCCLX_OK;
	if (!request->v.recv_displs)
		return gpu_copy_in_stream(&sc->stream, to, sc->staged, request->recv_bytes);
	for (uint32_t i = 0; i < sc->call->comm->n_ranks && r == RCCLX_OK; i++) {
		uint64_t at = request->v.recv_displs[i] * size;

		r = gpu_copy_in_stream(
			&sc->stream, to + at, sc->staged + at, request->v.recv_counts[i] * size);
	}
	return r;
}

/* ---- handing it over ---- */

static rcclx_result take_gate(struct stream_call *sc, uint32_t position)
{
	if (!sc->stream.captured)
		return gates_take(sc->call->comm, &sc->gate);
	return gates_take_captured(
		sc->call->comm, sc->stream.capture, sc->stream.native, position, &sc->gate);
}

static rcclx_result post(
	struct stream_call *sc, const struct buffer *send, const struct buffer *recv)
{
	struct rcclx_comm *comm = sc->call->comm;
	struct op_in_stream what = {
		.gate = (uint16_t)sc->gate.number,
		.captured = sc->stream.captured,
		.send_region = send->ref.handle,
		.send_offset = send->ref.offset,
		.recv_region = recv->ref.handle,
		.recv_offset = recv->ref.offset,
	};
	rcclx_result r = op_start_in_stream(comm, &sc->call->request, &what);

	if (r != RCCLX_OK && !sc->stream.captured)
		gates_put(sc->gate.number);
	return r;
}

/* The daemon waits for a stream that will not come: there is no taking the entry back. */
static rcclx_result spoilt(struct rcclx_comm *comm, rcclx_result r)
{
	gates_release(comm);
	comm_give_up(comm, RX_ABORT_ERROR);
	return comm_fail(comm, r);
}

static rcclx_result begin_kernel(struct stream_call *sc, uint32_t position)
{
	const struct op_request *request = &sc->call->request;
	struct buffer send = {.address = request->send, .bytes = request->send_bytes};
	struct buffer recv = {.address = request->recv, .bytes = request->recv_bytes};
	rcclx_result r = rank_kernels_check(sc->call->comm, &sc->stream);

	if (r == RCCLX_OK)
		r = place_for_kernel(sc, 2 * position, &send);
	if (r == RCCLX_OK)
		r = place_for_kernel(sc, 2 * position + 1, &recv);
	if (r == RCCLX_OK)
		r = copy_in(sc, &send);
	sc->staged = recv.staged;
	sc->send = send.staged ? send.staged : (uint64_t)(uintptr_t)send.address;
	sc->recv = recv.staged ? recv.staged : (uint64_t)(uintptr_t)recv.address;
	return r;
}

static rcclx_result begin(struct stream_call *sc, uint32_t position)
{
	const struct op_request *request = &sc->call->request;
	struct buffer send = {.address = request->send, .bytes = request->send_bytes};
	struct buffer recv = {.address = request->recv, .bytes = request->recv_bytes};
	rcclx_result r = place(sc, 2 * position, &send);

	if (r == RCCLX_OK)
		r = place(sc, 2 * position + 1, &recv);
	if (r == RCCLX_OK)
		r = copy_in(sc, &send);
	if (r == RCCLX_OK)
		r = take_gate(sc, position);
	if (r == RCCLX_OK)
		r = post(sc, &send, &recv);
	if (r != RCCLX_OK)
		return r;
	sc->staged = recv.staged;
	r = gpu_stream_begin(&sc->stream, sc->stream.captured ? sc->gate.bell : sc->gate.ready,
		sc->stream.captured ? sc->gate.number : sc->gate.value);
	return r == RCCLX_OK ? r : spoilt(sc->call->comm, r);
}

rcclx_result stream_begin(const struct call *call, uint32_t position, struct stream_call *sc)
{
	struct rcclx_comm *comm = call->comm;
	int mode = MODE_RELAXED;
	rcclx_result r = comm_usable(comm);

	*sc = (struct stream_call){.call = call};
	if (r != RCCLX_OK)
		return r;
	sc->by_kernel = rank_kernels_serve(call);
	if (!sc->by_kernel)
		op_take_completions(comm->client);
	r = gpu_stream_look(call->config.stream, &sc->stream);
	if (r != RCCLX_OK)
		return r;
	if (sc->stream.captured)
		gpu_capture_mode(&mode);
	if (sc->by_kernel)
		r = begin_kernel(sc, position);
	else
		r = gates_open(comm->client);
	if (r == RCCLX_OK && !sc->by_kernel)
		r = begin(sc, position);
	if (sc->stream.captured)
		gpu_capture_mode(&mode);
	return r;
}

/* ---- kernels ---- */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* By communicator, in an order that all processes find. */
static int compare_comms(const struct rcclx_comm *a, const struct rcclx_comm *b)
{
	int order = compare_u64(a->comm_id, b->comm_id);

	/* Two daemons may have given the same number. */
	return order != 0 ? order : memcmp(&a->id, &b->id, sizeof(a->id));
}

static int by_rank(const void *a_p, const void *b_p)
{
	const struct stream_call *a = *(struct stream_call *const *)a_p;
	const struct stream_call *b = *(struct stream_call *const *)b_p;
	int order = compare_comms(a->call->comm, b->call->comm);

	if (order == 0)
		order = compare_u64(a->call->comm->rank, b->call->comm->rank);
	return order != 0 ? order : (a > b) - (a < b);
}

/* A communicator's calls in their order; ranks of one stream beside each other. */
static int by_turn(const void *a_p, const void *b_p)
{
	const struct stream_call *a = *(struct stream_call *const *)a_p;
	const struct stream_call *b = *(struct stream_call *const *)b_p;
	int order = compare_comms(a->call->comm, b->call->comm);

	if (order == 0)
		order = compare_u64(a->turn, b->turn);
	if (order == 0)
		order = compare_u64((uintptr_t)a->stream.native, (uintptr_t)b->stream.native);
	return order != 0 ? order : compare_u64(a->call->comm->rank, b->call->comm->rank);
}

/* Their peers wait for them. */
static rcclx_result spoilt_all(struct stream_call *const *calls, uint32_t n, rcclx_result r)
{
	for (uint32_t i = 0; i < n; i++)
		(void)spoilt(calls[i]->call->comm, r);
	return r;
}

static rcclx_result launch(struct stream_call *const *calls, uint32_t n)
{
	struct rank_launch ranks[RX_INL_MAX_RANKS] = {{0}};
	const struct rx_op_sig *sig = &calls[0]->call->request.sig;
	rcclx_result r = RCCLX_OK;

	for (uint32_t i = 0; i < n && r == RCCLX_OK; i++) {
		const struct call *call = calls[i]->call;

		ranks[i] = (struct rank_launch){
			.call = call, .send = calls[i]->send, .recv = calls[i]->recv};
		if (!rx_sig_equal(&call->request.sig, sig))
			r = comm_mismatch(
				calls[0]->call->comm, sig, call->comm->rank, &call->request.sig);
	}
	if (r == RCCLX_OK)
		r = rank_kernels_launch(&calls[0]->stream, ranks, n);
	return r == RCCLX_OK ? r : spoilt_all(calls, n, r);
}

/* How many of the first calls are one launch: ranks of a communicator that wait for each other. */
static uint32_t n_together(struct stream_call *const *calls, uint32_t n)
{
	uint32_t k = 1;

	while (k < n && k < RX_INL_MAX_RANKS &&
		compare_comms(calls[k]->call->comm, calls[0]->call->comm) == 0 &&
		calls[k]->turn == calls[0]->turn &&
		calls[k]->stream.native == calls[0]->stream.native)
		k++;
	return k;
}

static void number(struct stream_call **calls, uint32_t n)
{
	qsort(calls, n, sizeof(calls[0]), by_rank);
	for (uint32_t i = 0; i < n; i++)
		calls[i]->turn = i > 0 && calls[i - 1]->call->comm == calls[i]->call->comm
					 ? calls[i - 1]->turn + 1
					 : 0;
}

rcclx_result stream_launch(struct stream_call *calls, uint32_t n)
{
	struct err_first first = {0};
	struct stream_call **kernels = NULL;
	uint32_t n_kernels = 0;

	for (uint32_t i = 0; i < n; i++)
		n_kernels += calls[i].by_kernel;
	if (n_kernels == 0)
		return RCCLX_OK;
	kernels = calloc(n_kernels, sizeof(kernels[0]));
	if (!kernels) {
		(void)err_set(RCCLX_ERR_NO_MEMORY, "out of memory for a group");
		for (uint32_t i = 0; i < n; i++)
			if (calls[i].by_kernel)
				(void)spoilt(calls[i].call->comm, RCCLX_ERR_NO_MEMORY);
		return RCCLX_ERR_NO_MEMORY;
	}
	n_kernels = 0;
	for (uint32_t i = 0; i < n; i++)
		if (calls[i].by_kernel)
			kernels[n_kernels++] = &calls[i];
	number(kernels, n_kernels);
	qsort(kernels, n_kernels, sizeof(kernels[0]), by_turn);
	for (uint32_t i = 0, k = 0; i < n_kernels; i += k) {
		k = n_together(&kernels[i], n_kernels - i);
		err_first_note(&first, launch(&kernels[i], k));
	}
	free(kernels);
	return err_first_return(&first);
}

rcclx_result stream_end(const struct stream_call *sc)
{
	rcclx_result r = RCCLX_OK;

	if (!sc->by_kernel)
		r = gpu_stream_end(
			&sc->stream, sc->gate.done, sc->stream.captured ? 1 : sc->gate.value);
	if (r == RCCLX_OK)
		r = copy_out(sc);
	return r == RCCLX_OK ? r : spoilt(sc->call->comm, r);
}

rcclx_result stream_run(const struct call *call)
{
	struct stream_call sc;
	struct stream_call *alone = &sc;
	rcclx_result r = stream_begin(call, 0, &sc);

	if (r == RCCLX_OK && sc.by_kernel)
		r = launch(&alone, 1);
	return r == RCCLX_OK ? stream_end(&sc) : r;
}

/* ---- the end ---- */

static bool wait_for_calls(struct rcclx_comm *comm, uint64_t deadline_ns, bool while_good)
{
	const struct rx_ring *ring = &comm->client->ops.ring;

	for (;;) {
		uint32_t event = rx_ring_event(ring);
		uint64_t now = rx_now_ns();

		op_take_completions(comm->client);
		if (atomic_load(&comm->n_in_stream) == 0)
			return true;
		if (now >= deadline_ns || session_lost(comm->client) ||
			(while_good && comm_usable(comm) != RCCLX_OK))
			return false;
		rx_ring_sleep(ring, event, rx_min_u64(RX_SLEEP_NS, deadline_ns - now));
	}
}

void stream_drain(struct rcclx_comm *comm)
{
	if (atomic_load(&comm->n_in_stream) == 0 ||
		wait_for_calls(comm, rx_deadline_ns(DRAIN_NS), true))
		return;
	comm_give_up(comm, RX_ABORT_ERROR);
	gates_release(comm);
	(void)wait_for_calls(comm, rx_deadline_ns(CANCEL_NS), false);
}
