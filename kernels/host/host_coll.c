/* SPDX-License-Identifier: MIT */
/*
 * One function per collective, in a table. Each works in pieces of at most PIECE_BYTES per buffer,
 * so that a cancelled operation ends soon, whatever its size.
 */
#include "host_coll.h"

#include "reduce.h"

#include <errno.h>

#define PIECE_BYTES      (1u << 20)
#define STREAM_MIN_BYTES (16ull << 20)

typedef int (*coll_fn)(const struct host_coll_args *args);

/* Between pieces: count it; false when the operation is to end. */
static bool go_on(const struct host_coll_args *args)
{
	if (args->n_pieces)
		atomic_fetch_add_explicit(args->n_pieces, 1, memory_order_relaxed);
	return !args->cancel || !atomic_load_explicit(args->cancel, memory_order_relaxed);
}

static int barrier(const struct host_coll_args *args)
{
	return go_on(args) ? 0 : -ECANCELED;
}

/*
 * rx_reduce() reads a block of every input before it writes that block of any output, so buffers
 * that are the same for several ranks come out right.
 */
static int all_reduce(const struct host_coll_args *args)
{
	uint32_t size = rx_dtype_size(args->dtype);
	const void *src[RX_MAX_RANKS];
	void *dst[RX_MAX_RANKS];
	struct rx_reduce_args fold = {
		.src = src,
		.n_src = args->n_ranks,
		.dst = dst,
		.n_dst = args->n_ranks,
		.dtype = args->dtype,
		.op = args->op,
		.stream = args->count >= STREAM_MIN_BYTES / size,
		.n_avg = args->n_ranks,
		.scalars = args->op == RX_PREMUL_SUM ? args->scalars : NULL,
	};

	for (uint64_t first = 0; first < args->count; first += fold.count) {
		if (!go_on(args))
			return -ECANCELED;
		fold.count = rx_min_u64(args->count - first, PIECE_BYTES / size);
		for (uint32_t rank = 0; rank < args->n_ranks; rank++) {
			src[rank] = (const uint8_t *)args->send[rank] + first * size;
			dst[rank] = (uint8_t *)args->recv[rank] + first * size;
		}
		rx_reduce(&fold);
	}
	return 0;
}

static const coll_fn colls[RX_COLL_N] = {
	[RX_BARRIER] = barrier,
	[RX_ALL_REDUCE] = all_reduce,
};

bool host_coll_supported(uint32_t coll)
{
	return coll < RX_COLL_N && colls[coll];
}

int host_coll_run(const struct host_coll_args *args)
{
	if (!host_coll_supported(args->coll))
		return -ENOTSUP;
	return colls[args->coll](args);
}
