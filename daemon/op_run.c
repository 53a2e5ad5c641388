/* SPDX-License-Identifier: MIT */
/*
 * An op that all ranks have posted, and that is the first of its communicator: on the processors,
 * or on devices where a buffer is a device's, with the same bits.
 */
#include "op_impl.h"

#include "daemon.h"
#include "gpu_mem.h"
#include "gpu_run.h"
#include "region.h"
#include "scratch.h"
#include "tuning.h"
#include "../kernels/precision.h"

#include <errno.h>
#include <inttypes.h>

bool op_uses_devices(const struct op *op)
{
	for (uint32_t rank = 0; rank < op->comm->n_ranks; rank++)
		if (gpu_mem_device(op->parts[rank].send) != UINT32_MAX ||
			gpu_mem_device(op->parts[rank].recv) != UINT32_MAX)
			return true;
	return false;
}

/* ---- low precision ---- */

/* all_to_all_v: the most that one rank sends, as the ranks themselves compare it. */
static bool is_large(const struct op *op)
{
	const struct rx_fabric_ctl *ctl = op->comm->fabric.ctl;
	const struct rx_op_sig *sig = &op->parts[0].sig;
	uint32_t n_ranks = op->comm->n_ranks;
	uint64_t most = 0;

	for (uint32_t rank = 0; rank < n_ranks; rank++)
		most = rx_max_u64(most, rx_counts_sum(op->counts[rank].send_counts, n_ranks));
	return rx_precision_large(most, sig->dtype,
		rx_precision_min(&ctl->precision, &ctl->tuning, sig->coll, n_ranks));
}

/* On devices an accuracy budget means exact, since nothing is checked there; and there is no INT8.
 */
static bool in_low_precision(const struct op *op)
{
	uint8_t flags = op->parts[0].sig.flags;

	if (op->comm->over_budget)
		return false;
	if (op_uses_devices(op) && (op->comm->fabric.ctl->precision.budget_ppm > 0 ||
					   rx_precision_format(flags) == RX_MX_INT8))
		return false;
	return flags != 0 && (!(flags & RX_SIG_IF_LARGE) || is_large(op));
}

static void prepare_lowprec(struct op *op)
{
	const struct rx_precision *precision = &op->comm->fabric.ctl->precision;

	op->lowprec = (struct host_lowprec){
		.format = rx_precision_format(op->parts[0].sig.flags),
		.bf16 = precision->flags & RX_PRECISION_GATHER_BF16,
	};
	rx_precision_check_init(&op->lowprec.work.check, precision->sample_every, op->number);
	op->args.lowprec = &op->lowprec;
}

static void account_lowprec(struct op *op)
{
	struct comm *comm = op->comm;
	uint32_t budget_ppm = comm->fabric.ctl->precision.budget_ppm;
	uint64_t ppm = rx_precision_account(&comm->precision, &op->lowprec.work);

	if (budget_ppm > 0 && ppm > budget_ppm)
		comm_over_budget(comm, UINT32_MAX, ppm);
}

static void finish(struct op *op)
{
	if (op->run_result == 0 && op->args.lowprec)
		account_lowprec(op);
	if (op->run_result == 0 && op->gpu)
		gpu_counts_account(&op->gpu->found, &op->gpu->work, &op->comm->precision);
	op_over(op);
}

/* ---- on processors ---- */

static void run_in_worker(struct exec_job *job)
{
	struct op *op = rx_container_of(job, struct op, job);

	if (op->args.lowprec)
		op->lowprec.scratch =
			scratch_take(op->comm->daemon->scratch, &op->lowprec.scratch_bytes);
	op->run_result = host_coll_run(&op->args);
	if (op->args.lowprec)
		scratch_put(op->comm->daemon->scratch, op->lowprec.scratch);
}

static void on_done(struct exec_job *job)
{
	finish(rx_container_of(job, struct op, job));
}

/* In a block for or from one rank; the mean of variable ones. */
static uint64_t elements_of(const struct op *op)
{
	const struct rx_op_sig *sig = &op->parts[0].sig;
	uint32_t n_ranks = op->comm->n_ranks;
	uint64_t most = 0;

	if (!rx_coll_is_v(sig->coll))
		return sig->count;
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		const struct rx_counts *counts = &op->counts[rank];

		most = rx_max_u64(most, rx_counts_sum(counts->send_counts ? counts->send_counts
									  : counts->recv_counts,
						n_ranks));
	}
	return most / n_ranks;
}

/* About; saturates. Each rank's data is read and written once or twice. */
static uint64_t bytes_touched(const struct op *op)
{
	uint32_t size = rx_dtype_size(op->parts[0].sig.dtype);
	uint64_t n_ranks = op->comm->n_ranks;
	uint64_t bytes = 0;

	if (!rx_mul_u64(elements_of(op), n_ranks * n_ranks * size, &bytes))
		return UINT64_MAX;
	return bytes;
}

static void run_on_host(struct op *op)
{
	const struct rx_op_sig *sig = &op->parts[0].sig;
	struct comm *comm = op->comm;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		const struct op_part *part = &op->parts[rank];

		if (part->send)
			op->send[rank] = region_at(part->send, part->send_offset);
		if (part->recv)
			op->recv[rank] = region_at(part->recv, part->recv_offset);
	}
	op->args = (struct host_coll_args){
		.coll = sig->coll,
		.dtype = sig->dtype,
		.op = sig->op,
		.n_ranks = comm->n_ranks,
		.root = sig->root,
		.count = sig->count,
		.counts = op->counts,
		.send = op->send,
		.recv = op->recv,
		.scalars = op->scalars,
		.cancel = &op->job.cancelled,
		.n_pieces = exec_pieces(comm->daemon->exec),
	};
	if (in_low_precision(op))
		prepare_lowprec(op);
	op->job.run = run_in_worker;
	op->job.done = on_done;
	exec_submit(comm->daemon->exec, &op->job, bytes_touched(op));
}

/* ---- on devices ---- */

static bool is_gated(const struct op *op)
{
	for (uint32_t rank = 0; rank < op->comm->n_ranks; rank++)
		if (op->parts[rank].gate.word)
			return true;
	return false;
}

static void on_gpu_over(struct gpu_run *run)
{
	struct op *op = run->owner;

	op->run_result = run->result;
	if (run->gone && comm_bury(op->comm))
		op->run_result = -ECANCELED;
	if (op->run_result == -EIO)
		rx_err("comm=%" PRIu64 " name=\"%s\" an operation failed: %s", op->comm->id,
			op->comm->name, run->error);
	/* It was only about the streams. */
	if (run->result == 0 && !op_uses_devices(op))
		run_on_host(op);
	else
		finish(op);
}

/* The ranks need not wait for the kernels that may still run; the memory does. */
static void on_gpu_trouble(struct gpu_run *run)
{
	struct op *op = run->owner;

	rx_err("comm=%" PRIu64 " name=\"%s\" an operation is failing: %s", op->comm->id,
		op->comm->name, run->error);
	comm_abort(op->comm, RX_ABORT_DEVICE, UINT32_MAX, UINT32_MAX, NULL);
}

static int set_buffer(
	struct gpu_buffer *buffer, struct region *region, uint64_t offset, uint64_t bytes)
{
	if (!region)
		return 0;
	*buffer = (struct gpu_buffer){.region = region, .offset = offset, .bytes = bytes};
	return gpu_mem_prepare(region);
}

static bool extent_of(const struct op *op, uint32_t rank, struct rx_extent *extent_p)
{
	const struct rx_op_sig *sig = &op->parts[0].sig;
	uint32_t n_ranks = op->comm->n_ranks;

	if (rx_coll_is_v(sig->coll))
		return rx_counts_extent(sig->coll, &op->counts[rank], n_ranks, rank, extent_p);
	return rx_coll_extent(sig->coll, sig->count, n_ranks, rank, sig->root, extent_p);
}

static void fill_lowprec(const struct op *op, struct gpu_run *run)
{
	run->low = in_low_precision(op);
	run->sums_bf16 = op->comm->fabric.ctl->precision.flags & RX_PRECISION_GATHER_BF16;
	if (run->low)
		rx_precision_traffic(&run->work, &(struct rx_precision_message){
							 .coll = run->coll,
							 .dtype = run->dtype,
							 .n_ranks = op->comm->n_ranks,
							 .count = run->count,
							 .counts = run->counts,
							 .bf16 = run->sums_bf16,
						 });
}

int op_fill_run(struct op *op, struct gpu_run *run)
{
	const struct rx_op_sig *sig = &op->parts[0].sig;
	uint64_t size = rx_dtype_size(sig->dtype);
	int r = 0;

	for (uint32_t rank = 0; rank < op->comm->n_ranks && !r; rank++) {
		const struct op_part *part = &op->parts[rank];
		struct rx_extent extent = {0};

		if (!extent_of(op, rank, &extent))
			return -EINVAL;
		r = set_buffer(&run->send[rank], part->send, part->send_offset, extent.send * size);
		if (!r)
			r = set_buffer(&run->recv[rank], part->recv, part->recv_offset,
				extent.recv * size);
		run->gates[rank] = part->gate;
	}
	run->streams = comm_streams(op->comm);
	run->coll = sig->coll;
	run->dtype = sig->dtype;
	run->op = sig->op;
	run->root = sig->root;
	run->count = sig->count;
	run->scalars = op->scalars;
	run->counts = rx_coll_is_v(sig->coll) ? op->counts : NULL;
	run->cancelled = &op->job.cancelled;
	run->thresholds = *rx_device_tuning_for(
		&op->comm->daemon->tuning->devices, sig->coll, op->comm->n_ranks);
	fill_lowprec(op, run);
	return r || run->streams ? r : -ENOMEM;
}

static int run_on_devices(struct op *op)
{
	op->gpu = gpu_run_new(op->comm->daemon->gpu, op->comm->n_ranks);
	if (!op->gpu || op_fill_run(op, op->gpu))
		return -ENOMEM;
	op->gpu->over = on_gpu_over;
	op->gpu->trouble = on_gpu_trouble;
	op->gpu->owner = op;
	gpu_run_submit(op->gpu);
	return 0;
}

int op_run(struct op *op)
{
	bool on_devices = op_uses_devices(op);

	if (!on_devices && in_low_precision(op) && scratch_ready(op->comm->daemon->scratch))
		return -ENOMEM;
	if (on_devices || is_gated(op))
		return run_on_devices(op);
	run_on_host(op);
	return 0;
}
