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
 * @count elements from @first on of all inputs, into @n_out outputs.
 *
 * rx_reduce() reads a block of every input before it writes that block of any output, so buffers
 * that are the same for several ranks come out right.
 */
static int fold(const struct host_coll_args *args, uint64_t first, uint64_t count, void *const *out,
	uint32_t n_out)
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
		.stream = is_large(count * size),
		.n_avg = args->n_ranks,
		.scalars = args->op == RX_PREMUL_SUM ? args->scalars : NULL,
	};

	for (uint64_t at = 0; at < count; at += reduce.count) {
		if (!host_coll_go_on(args))
			return -ECANCELED;
		reduce.count = rx_min_u64(count - at, PIECE_BYTES / size);
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
	return fold(args, 0, args->count, args->recv, args->n_ranks);
}

static int reduce_to_root(const struct host_coll_args *args)
{
	return fold(args, 0, args->count, &args->recv[args->root], 1);
}

/* In place, an output lies where no other output's inputs are. */
static int reduce_scatter(const struct host_coll_args *args)
{
	int r = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && r == 0; rank++)
		r = fold(args, rank * args->count, args->count, &args->recv[rank], 1);
	return r;
}

static int reduce_scatter_v(const struct host_coll_args *args)
{
	const uint64_t *counts = args->counts[0].send_counts;
	uint64_t first = 0;
	int r = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && r == 0; rank++) {
		r = fold(args, first, counts[rank], &args->recv[rank], 1);
		first += counts[rank];
	}
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

/* From one rank's buffer into another's; nothing to do where it is in place. */
static int copy_block(
	const struct host_coll_args *args, uint8_t *dst, const uint8_t *src, uint64_t bytes)
{
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

/* To the same or different places of all ranks; each piece to all while it is in the cache. */
static int copy_to_all(
	const struct host_coll_args *args, uint8_t *const *dst, const uint8_t *src, uint64_t bytes)
{
	uint64_t piece = 0;

	for (uint64_t at = 0; at < bytes; at += piece) {
		piece = rx_min_u64(bytes - at, PIECE_BYTES);
		for (uint32_t rank = 0; rank < args->n_ranks; rank++) {
			if (dst[rank] == src)
				continue;
			if (!host_coll_go_on(args))
				return -ECANCELED;
			copy_piece(dst[rank] + at, src + at, piece, is_large(bytes));
		}
	}
	return 0;
}

/* The whole of a rank's input into block @index of all ranks. */
static int spread(const struct host_coll_args *args, uint32_t from, uint32_t index)
{
	uint8_t *dst[RX_MAX_RANKS];

	for (uint32_t rank = 0; rank < args->n_ranks; rank++)
		dst[rank] = recv_block(args, rank, index);
	return copy_to_all(args, dst, send_block(args, from, 0), bytes_of(args));
}

static int broadcast(const struct host_coll_args *args)
{
	return spread(args, args->root, 0);
}

static int all_gather(const struct host_coll_args *args)
{
	int r = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && r == 0; rank++)
		r = spread(args, rank, rank);
	return r;
}

static int gather(const struct host_coll_args *args)
{
	int r = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && r == 0; rank++)
		r = copy_block(args, recv_block(args, args->root, rank), send_block(args, rank, 0),
			bytes_of(args));
	return r;
}

static int scatter(const struct host_coll_args *args)
{
	int r = 0;

	for (uint32_t rank = 0; rank < args->n_ranks && r == 0; rank++)
		r = copy_block(args, recv_block(args, rank, 0), send_block(args, args->root, rank),
			bytes_of(args));
	return r;
}

static int all_to_all(const struct host_coll_args *args)
{
	int r = 0;

	for (uint32_t to = 0; to < args->n_ranks && r == 0; to++)
		for (uint32_t from = 0; from < args->n_ranks && r == 0; from++)
			r = copy_block(args, recv_block(args, to, from), send_block(args, from, to),
				bytes_of(args));
	return r;
}

/* Buffers without any element may be NULL, so empty blocks have no address. */

static int all_gather_v(const struct host_coll_args *args)
{
	uint32_t size = rx_dtype_size(args->dtype);
	uint8_t *dst[RX_MAX_RANKS];
	int r = 0;

	for (uint32_t from = 0; from < args->n_ranks && r == 0; from++) {
		uint64_t count = args->counts[0].recv_counts[from];

		if (count == 0)
			continue;
		for (uint32_t rank = 0; rank < args->n_ranks; rank++)
			dst[rank] = (uint8_t *)args->recv[rank] +
				    args->counts[rank].recv_displs[from] * size;
		r = copy_to_all(args, dst, args->send[from], count * size);
	}
	return r;
}

static int all_to_all_v(const struct host_coll_args *args)
{
	uint32_t size = rx_dtype_size(args->dtype);
	int r = 0;

	for (uint32_t to = 0; to < args->n_ranks; to++) {
		for (uint32_t from = 0; from < args->n_ranks && r == 0; from++) {
			const struct rx_counts *sender = &args->counts[from];
			uint64_t count = sender->send_counts[to];

			if (count == 0)
				continue;
			r = copy_block(args,
				(uint8_t *)args->recv[to] +
					args->counts[to].recv_displs[from] * size,
				(const uint8_t *)args->send[from] + sender->send_displs[to] * size,
				count * size);
		}
	}
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
	[RX_ALL_GATHER_V] = all_gather_v,
	[RX_REDUCE_SCATTER_V] = reduce_scatter_v,
	[RX_ALL_TO_ALL_V] = all_to_all_v,
};

bool host_coll_supported(uint32_t coll)
{
	return coll < RX_COLL_N && colls[coll];
}

int host_coll_run(const struct host_coll_args *args)
{
	if (!host_coll_supported(args->coll))
		return -ENOTSUP;
	if (args->count == 0 && args->coll != RX_BARRIER && !rx_coll_is_v(args->coll))
		return 0;
	if (args->lowprec)
		return host_lowprec_run(args);
	return colls[args->coll](args);
}

int host_coll_transfer(void *dst, const void *src, uint64_t bytes, const _Atomic uint32_t *cancel,
	_Atomic uint64_t *n_pieces)
{
	const struct host_coll_args args = {.cancel = cancel, .n_pieces = n_pieces};

	return copy_block(&args, dst, src, bytes);
}
