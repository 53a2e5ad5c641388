/* SPDX-License-Identifier: MIT */
/*
 * One function per collective, in a table: some fold, some copy. Each works in pieces of at most
 * PIECE_BYTES per buffer, so that a cancelled operation ends soon, whatever its size.
 */
#include "host_coll.h"

#include "host_lowprec.h"
#include "reduce.h"

#include <errno.h>
#include <string.h>

#define PIECE_BYTES      (1u << 20)
#define STREAM_MIN_BYTES (16ull << 20)

typedef int (*coll_fn)(const struct host_coll_args *args);

bool host_coll_go_on(const struct host_coll_args *args)
{
	if (args->n_pieces)
		atomic_fetch_add_explicit(args->n_pieces, 1, memory_order_relaxed);
	return !args->cancel || !atomic_load_explicit(args->cancel, memory_order_relaxed);
}

static int barrier(const struct host_coll_args *args)
{
	return host_coll_go_on(args) ? 0 : -ECANCELED;
}

/* Is it so much that results are gone from the cache before anybody looks at them? */
static bool is_large(uint64_t bytes)
{
	return bytes >= STREAM_MIN_BYTES;
}

/* ---- reducing ---- */

/*
 * Elements @first and following of all inputs, as many as the call counts, into @n_out outputs.
 *
 * rx_reduce() reads a block of every input before it writes that block of any output, so buffers
 * that are the same for several ranks come out right.
 */
static int fold(const struct host_coll_args *args, uint64_t first, void *const *out, uint32_t n_out)
{
	uint32_t size = rx_dtype_size(args->dtype);
	const void *src[RX_MAX_RANKS];
	void *dst[RX_MAX_RANKS];
	struct rx_reduce_args reduce = {
		.src = src,
		.n_src = args->n_ranks,
		.dst = dst,
		.n_dst = n_out,
		.dtype = args->dtype,
		.op = args->op,
		.stream = is_large(args->count * size),
		.n_avg = args->n_ranks,
		.scalars = args->op == RX_PREMUL_SUM ? args->scalars : NULL,
	};

	for (uint64_t at = 0; at < args->count; at += reduce.count) {
		if (!host_coll_go_on(args))
			return -ECANCELED;
		reduce.count = rx_min_u64(args->count - at, PIECE_BYTES / size);
		for (uint32_t rank = 0; rank < args->n_ranks; rank++)
			src[rank] = (const uint8_t *)args->send[rank] + (first + at) * size;
		for (uint32_t i = 0; i < n_out; i++)
			dst[i] = (uint8_t *)out[i] + at * size;
		rx_reduce(&reduce);
	}
	return 0;
}

static int all_reduce(const struct host_coll_args *args)
{
	return fold(args, 0, args->recv, args->n_ranks);
}

static int reduce_to_root(const struct host_coll_args *args)
{
	return fold(args, 0, &args->recv[args->root], 1);
}

/* In place, an output lies where no other output's inputs are. */
static int reduce_scatter(const struct host_coll_args *args)
{
	int r = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && r == 0; rank++)
		r = fold(args, rank * args->count, &args->recv[rank], 1);
	return r;
}

/* ---- copying ---- */

static uint64_t bytes_of(const struct host_coll_args *args)
{
	return args->count * rx_dtype_size(args->dtype);
}

/* Block @index of a buffer that has one per rank. */
static const uint8_t *send_block(const struct host_coll_args *args, uint32_t rank, uint32_t index)
{
	return (const uint8_t *)args->send[rank] + index * bytes_of(args);
}

static uint8_t *recv_block(const struct host_coll_args *args, uint32_t rank, uint32_t index)
{
	return (uint8_t *)args->recv[rank] + index * bytes_of(args);
}

/* What the ranks say about their buffers is their word: buffers that overlap do no harm. */
static void copy_piece(uint8_t *dst, const uint8_t *src, uint64_t bytes, bool stream)
{
	uintptr_t to = (uintptr_t)dst;
	uintptr_t from = (uintptr_t)src;

	if (to < from + bytes && from < to + bytes)
		memmove(dst, src, bytes);
	else
		rx_copy(dst, src, bytes, stream);
}

/* One block, from one rank's buffer into another's; nothing to do where it is in place. */
static int copy_block(const struct host_coll_args *args, uint8_t *dst, const uint8_t *src)
{
	uint64_t bytes = bytes_of(args);
	uint64_t piece = 0;

	if (dst == src)
		return 0;
	for (uint64_t at = 0; at < bytes; at += piece) {
		if (!host_coll_go_on(args))
			return -ECANCELED;
		piece = rx_min_u64(bytes - at, PIECE_BYTES);
		copy_piece(dst + at, src + at, piece, is_large(bytes));
	}
	return 0;
}

/* One block into block @index of all ranks; each piece to all while it is in the cache. */
static int copy_to_all(const struct host_coll_args *args, const uint8_t *src, uint32_t index)
{
	uint64_t bytes = bytes_of(args);
	uint64_t piece = 0;

	for (uint64_t at = 0; at < bytes; at += piece) {
		piece = rx_min_u64(bytes - at, PIECE_BYTES);
		for (uint32_t rank = 0; rank < args->n_ranks; rank++) {
			uint8_t *dst = recv_block(args, rank, index);

			if (dst == src)
				continue;
			if (!host_coll_go_on(args))
				return -ECANCELED;
			copy_piece(dst + at, src + at, piece, is_large(bytes));
		}
	}
	return 0;
}

static int broadcast(const struct host_coll_args *args)
{
	return copy_to_all(args, send_block(args, args->root, 0), 0);
}

static int all_gather(const struct host_coll_args *args)
{
	int r = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && r == 0; rank++)
		r = copy_to_all(args, send_block(args, rank, 0), rank);
	return r;
}

static int gather(const struct host_coll_args *args)
{
	int r = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && r == 0; rank++)
		r = copy_block(args, recv_block(args, args->root, rank), send_block(args, rank, 0));
	return r;
}

static int scatter(const struct host_coll_args *args)
{
	int r = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && r == 0; rank++)
		r = copy_block(args, recv_block(args, rank, 0), send_block(args, args->root, rank));
	return r;
}

static int all_to_all(const struct host_coll_args *args)
{
	int r = 0;

	for (uint32_t to = 0; to < args->n_ranks && r == 0; to++)
		for (uint32_t from = 0; from < args->n_ranks && r == 0; from++)
			r = copy_block(
				args, recv_block(args, to, from), send_block(args, from, to));
	return r;
}

static const coll_fn colls[RX_COLL_N] = {
	[RX_BARRIER] = barrier,
	[RX_ALL_REDUCE] = all_reduce,
	[RX_ALL_GATHER] = all_gather,
	[RX_REDUCE_SCATTER] = reduce_scatter,
	[RX_ALL_TO_ALL] = all_to_all,
	[RX_BROADCAST] = broadcast,
	[RX_REDUCE] = reduce_to_root,
	[RX_GATHER] = gather,
	[RX_SCATTER] = scatter,
};

bool host_coll_supported(uint32_t coll)
{
	return coll < RX_COLL_N && colls[coll];
}

int host_coll_run(const struct host_coll_args *args)
{
	if (!host_coll_supported(args->coll))
		return -ENOTSUP;
	if (args->count == 0 && args->coll != RX_BARRIER)
		return 0;
	if (args->lowprec)
		return host_lowprec_run(args);
	return colls[args->coll](args);
}

int host_coll_transfer(void *dst, const void *src, uint64_t bytes, const _Atomic uint32_t *cancel,
	_Atomic uint64_t *n_pieces)
{
	struct host_coll_args args = {
		.dtype = RX_UINT8,
		.count = bytes,
		.cancel = cancel,
		.n_pieces = n_pieces,
	};

	return copy_block(&args, dst, src);
}
