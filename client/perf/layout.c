/* SPDX-License-Identifier: MIT */
#include "layout.h"

#include "colls.h"
#include "../../kernels/coll_extent.h"

/* Where uneven block @i of @size elements starts; without size * i, which may overflow. */
static uint64_t uneven_start(uint64_t size, uint32_t n_ranks, uint32_t i)
{
	uint64_t parts = (uint64_t)n_ranks * (n_ranks + 1) / 2;
	uint64_t before = (uint64_t)i * (i + 1) / 2;

	return size / parts * before + size % parts * before / parts;
}

static uint64_t uneven_count(uint64_t size, uint32_t n_ranks, uint32_t i)
{
	return uneven_start(size, n_ranks, i + 1) - uneven_start(size, n_ranks, i);
}

/* All-to-all: which of the uneven blocks a pair exchanges. The same both ways, and each rank has
 * every one of them once. */
static uint32_t block_of_pair(const struct perf_layout *layout, uint32_t a, uint32_t b)
{
	return (a + b) % layout->n_ranks;
}

static void make_blocks(const struct perf_coll *coll, struct perf_layout *layout)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < layout->n_ranks; i++) {
		uint32_t block =
			coll->coll == RX_ALL_TO_ALL_V ? block_of_pair(layout, layout->rank, i) : i;

		layout->counts[i] = coll->shape == PERF_UNEVEN
					    ? uneven_count(layout->size, layout->n_ranks, block)
					    : layout->count;
		layout->displs[i] = at;
		at += layout->counts[i];
	}
}

static struct rx_extent extent_of(const struct perf_coll *coll, const struct perf_layout *layout)
{
	uint64_t mine = layout->counts[layout->rank], first = layout->displs[layout->rank];
	struct rx_extent extent = {0};

	switch (coll->coll) {
	case RX_SEND: /* and a receive */
		return (struct rx_extent){.send = layout->count, .recv = layout->count};
	case RX_ALL_GATHER_V:
		return (struct rx_extent){mine, layout->size, true, first, 0};
	case RX_REDUCE_SCATTER_V:
		return (struct rx_extent){layout->size, mine, true, 0, first};
	case RX_ALL_TO_ALL_V:
		return (struct rx_extent){.send = layout->size, .recv = layout->size};
	default:
		/* Cannot overflow: count * n_ranks is at most a number of elements given. */
		(void)!rx_coll_extent(coll->coll, layout->count, layout->n_ranks, layout->rank,
			layout->root, &extent);
		return extent;
	}
}

struct perf_layout perf_layout_make(const struct perf_coll *coll, uint64_t elements,
	uint32_t n_ranks, uint32_t rank, uint32_t root)
{
	struct perf_layout layout = {.n_ranks = n_ranks, .rank = rank, .root = root};
	struct rx_extent extent = {0};

	if (coll->shape == PERF_NONE)
		return layout;
	layout.count = coll->shape == PERF_WHOLE ? elements : elements / n_ranks;
	layout.size = coll->shape == PERF_BLOCKS ? layout.count * n_ranks : elements;
	layout.largest = coll->shape == PERF_UNEVEN
				 ? uneven_count(layout.size, n_ranks, n_ranks - 1)
				 : layout.count;
	if (coll->shape != PERF_WHOLE)
		make_blocks(coll, &layout);
	extent = extent_of(coll, &layout);
	layout.send = extent.send;
	layout.recv = extent.recv;
	/* Ranks other than the root may have only one of the two, which is then all there is. */
	if (extent.send > 0 && extent.recv > 0) {
		layout.send_at = extent.send_in_recv;
		layout.recv_at = extent.recv_in_send;
	}
	return layout;
}

uint64_t perf_layout_sent_at(
	const struct perf_coll *coll, const struct perf_layout *layout, uint32_t sender)
{
	uint64_t at = 0;

	if (coll->shape != PERF_UNEVEN)
		return layout->displs[layout->rank];
	for (uint32_t i = 0; i < layout->rank; i++)
		at += uneven_count(layout->size, layout->n_ranks, block_of_pair(layout, sender, i));
	return at;
}
