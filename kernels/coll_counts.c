/* SPDX-License-Identifier: MIT */
#include "coll_counts.h"

#include <string.h>

/* Which arrays travel, in their order; false: it has none. */
struct arrays {
	bool send_counts;
	bool send_displs;
	bool recv_counts;
	bool recv_displs;
};

static struct arrays arrays_of(uint32_t coll)
{
	switch (coll) {
	case RX_ALL_GATHER_V:
		return (struct arrays){.recv_counts = true, .recv_displs = true};
	case RX_REDUCE_SCATTER_V:
		return (struct arrays){.send_counts = true};
	case RX_ALL_TO_ALL_V:
		return (struct arrays){true, true, true, true};
	default:
		return (struct arrays){0};
	}
}

uint32_t rx_counts_words(uint32_t coll, uint32_t n_ranks)
{
	struct arrays has = arrays_of(coll);
	uint32_t n =
		(uint32_t)has.send_counts + has.send_displs + has.recv_counts + has.recv_displs;

	return n > 0 ? 1 + n * n_ranks : 0;
}

static uint64_t *put(uint64_t *at, bool has, const uint64_t *numbers, uint32_t n)
{
	if (!has)
		return at;
	memcpy(at, numbers, n * sizeof(*at));
	return at + n;
}

void rx_counts_pack(uint32_t coll, uint32_t n_ranks, uint64_t scalar,
	const struct rx_counts *counts, uint64_t *words)
{
	struct arrays has = arrays_of(coll);

	words[0] = scalar;
	words = put(words + 1, has.send_counts, counts->send_counts, n_ranks);
	words = put(words, has.send_displs, counts->send_displs, n_ranks);
	words = put(words, has.recv_counts, counts->recv_counts, n_ranks);
	(void)put(words, has.recv_displs, counts->recv_displs, n_ranks);
}

static const uint64_t *get(const uint64_t **at, bool has, uint32_t n)
{
	const uint64_t *numbers = *at;

	if (!has)
		return NULL;
	*at += n;
	return numbers;
}

struct rx_counts rx_counts_of(uint32_t coll, uint32_t n_ranks, const uint64_t *words)
{
	struct arrays has = arrays_of(coll);
	struct rx_counts counts = {0};

	words++;
	counts.send_counts = get(&words, has.send_counts, n_ranks);
	counts.send_displs = get(&words, has.send_displs, n_ranks);
	counts.recv_counts = get(&words, has.recv_counts, n_ranks);
	counts.recv_displs = get(&words, has.recv_displs, n_ranks);
	return counts;
}

/* End of the last block that is not empty; @displs NULL: one behind the other. */
static bool end_of(const uint64_t *counts, const uint64_t *displs, uint32_t n, uint64_t *end_p)
{
	uint64_t next = 0;
	uint64_t last = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t first = displs ? displs[i] : next;

		if (counts[i] == 0)
			continue;
		if (!rx_add_u64(first, counts[i], &next))
			return false;
		last = rx_max_u64(last, next);
	}
	*end_p = last;
	return true;
}

bool rx_counts_extent(uint32_t coll, const struct rx_counts *counts, uint32_t n_ranks,
	uint32_t rank, struct rx_extent *extent_p)
{
	struct rx_extent extent = {0};
	bool good = true;

	if (counts->send_counts)
		good = end_of(counts->send_counts, counts->send_displs, n_ranks, &extent.send);
	else
		extent.send = counts->recv_counts[rank];
	if (good && coll == RX_REDUCE_SCATTER_V)
		extent.recv = counts->send_counts[rank];
	else if (good)
		good = end_of(counts->recv_counts, counts->recv_displs, n_ranks, &extent.recv);
	if (good)
		*extent_p = extent;
	return good;
}

uint64_t rx_counts_sum(const uint64_t *counts, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!rx_add_u64(sum, counts[i], &sum))
			return UINT64_MAX;
	return sum;
}

static bool pairs_agree(const struct rx_counts *counts, uint32_t n_ranks, struct rx_clash *clash_p)
{
	for (uint32_t from = 0; from < n_ranks; from++) {
		for (uint32_t to = 0; to < n_ranks; to++) {
			uint64_t sent = counts[from].send_counts[to];
			uint64_t expected = counts[to].recv_counts[from];

			if (sent == expected)
				continue;
			*clash_p = (struct rx_clash){
				.rank = {from, to},
				.count = {sent, expected},
			};
			return false;
		}
	}
	return true;
}

/* The array that has to be the same on all ranks. */
static const uint64_t *common(const struct rx_counts *counts)
{
	return counts->send_counts ? counts->send_counts : counts->recv_counts;
}

static bool same(
	const struct rx_counts *counts, uint32_t n_ranks, uint32_t a, uint32_t b, uint32_t *block_p)
{
	const uint64_t *x = common(&counts[a]);
	const uint64_t *y = common(&counts[b]);

	for (uint32_t i = 0; i < n_ranks; i++) {
		if (x[i] != y[i]) {
			*block_p = i;
			return false;
		}
	}
	return true;
}

bool rx_counts_agree(uint32_t coll, const struct rx_counts *counts, uint32_t n_ranks, uint32_t rank,
	struct rx_clash *clash_p)
{
	uint32_t other = 0;
	uint32_t block = 0;

	if (coll == RX_ALL_TO_ALL_V)
		return pairs_agree(counts, n_ranks, clash_p);
	if (same(counts, n_ranks, 0, rank, &block)) {
		while (other < n_ranks && same(counts, n_ranks, rank, other, &block))
			other++;
		if (other == n_ranks)
			return true;
	}
	*clash_p = (struct rx_clash){
		.rank = {rank, other},
		.block = block,
		.count = {common(&counts[rank])[block], common(&counts[other])[block]},
	};
	return false;
}
