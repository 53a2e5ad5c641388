/* SPDX-License-Identifier: MIT */
/*
 * Submitted entries: whatever passes entry_check() stays inside its regions.
 *
 * Input: 64 bytes of entry, then the sizes of both regions, then which are known, then the number
 * of ranks and whose entry it is; then the numbers of a variable collective, as far as they go.
 */
#include "../../daemon/entry.h"
#include "../../kernels/coll_types.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
	if (!good)
		abort();
}

static void check_buffer(
	bool known, uint64_t region, uint64_t offset, unsigned __int128 count, uint32_t size)
{
	if (count == 0)
		return;
	require(known);
	require(size > 0);
	require(count * size + offset <= region);
	require(offset % size == 0);
}

/* Every block by itself; @displs NULL: one behind the other. */
static void check_side(const uint64_t *counts, const uint64_t *displs, uint32_t n, bool known,
	uint64_t region, uint64_t offset, uint32_t size)
{
	unsigned __int128 next = 0;

	for (uint32_t i = 0; i < n; i++) {
		unsigned __int128 first = displs ? displs[i] : next;

		next = first + counts[i];
		if (counts[i] > 0)
			check_buffer(known, region, offset, next, size);
	}
}

static void check_blocks(const struct rx_sqe *sqe, const struct entry_facts *facts)
{
	const uint64_t *at = facts->words + 1;
	uint32_t size = rx_dtype_size(sqe->dtype);
	uint32_t n = facts->n_ranks;
	bool gathers = sqe->coll == RX_ALL_GATHER_V;
	bool exchanges = sqe->coll == RX_ALL_TO_ALL_V;
	const uint64_t *recv = exchanges ? at + 2 * n : at;

	require(sqe->count == 0);
	if (gathers)
		check_buffer(facts->send_known, facts->send_bytes, sqe->send_offset,
			at[facts->rank], size);
	else
		check_side(at, exchanges ? at + n : NULL, n, facts->send_known, facts->send_bytes,
			sqe->send_offset, size);
	if (gathers || exchanges)
		check_side(recv, recv + n, n, facts->recv_known, facts->recv_bytes,
			sqe->recv_offset, size);
	else
		check_buffer(facts->recv_known, facts->recv_bytes, sqe->recv_offset,
			at[facts->rank], size);
}

/* How many blocks of count elements each collective touches, said once more and shorter. */
static void check_extents(const struct rx_sqe *sqe, const struct entry_facts *facts)
{
	bool is_root = facts->rank == sqe->root;
	uint32_t n = facts->n_ranks;
	const uint32_t blocks[RX_COLL_N][2] = {
		[RX_ALL_REDUCE] = {1, 1},
		[RX_ALL_GATHER] = {1, n},
		[RX_REDUCE_SCATTER] = {n, 1},
		[RX_ALL_TO_ALL] = {n, n},
		[RX_BROADCAST] = {is_root, 1},
		[RX_REDUCE] = {1, is_root},
		[RX_GATHER] = {1, is_root ? n : 0},
		[RX_SCATTER] = {is_root ? n : 0, 1},
		[RX_SEND] = {1, 0},
		[RX_RECV] = {0, 1},
	};
	uint32_t size = rx_dtype_size(sqe->dtype);

	if (rx_coll_is_v(sqe->coll)) {
		check_blocks(sqe, facts);
		return;
	}
	require(sqe->coll < RX_ALL_GATHER_V);
	require(sqe->root < n);
	check_buffer(facts->send_known, facts->send_bytes, sqe->send_offset,
		(unsigned __int128)sqe->count * blocks[sqe->coll][0], size);
	check_buffer(facts->recv_known, facts->recv_bytes, sqe->recv_offset,
		(unsigned __int128)sqe->count * blocks[sqe->coll][1], size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rx_sqe sqe;
	struct entry_facts facts = {0};
	struct rx_extent extent;
	struct rx_op_sig sig;
	uint64_t words[RX_COUNTS_WORDS_MAX] = {0};
	size_t head = sizeof(sqe) + 19;
	uint32_t n_words = 0;
	const char *why = NULL;
	char text[96];

	if (size < head)
		return 0;
	memcpy(words, data + head, size - head < sizeof(words) ? size - head : sizeof(words));
	facts.words = words;
	memcpy(&sqe, data, sizeof(sqe));
	memcpy(&facts.send_bytes, data + sizeof(sqe), 8);
	memcpy(&facts.recv_bytes, data + sizeof(sqe) + 8, 8);
	facts.send_known = data[sizeof(sqe) + 16] & 1;
	facts.recv_known = data[sizeof(sqe) + 16] & 2;
	facts.n_ranks = data[sizeof(sqe) + 17] % RX_MAX_RANKS + 1;
	facts.rank = data[sizeof(sqe) + 18] % facts.n_ranks;
	sig = entry_sig(&sqe);
	sig_describe(&sig, text, sizeof(text));
	require(strlen(text) > 0);
	if (entry_check_words(&sqe, facts.n_ranks, data[sizeof(sqe) + 16] & 4, facts.send_bytes,
		    &n_words, &why) != 0) {
		require(why != NULL);
		return 0;
	}
	require(rx_coll_is_v(sqe.coll) == (n_words > 0));
	if (n_words > 0)
		require((unsigned __int128)sqe.imm + n_words * sizeof(words[0]) <=
			facts.send_bytes);
	if (entry_check(&sqe, &facts, &extent, &why) != 0)
		require(why != NULL);
	else
		check_extents(&sqe, &facts);
	return 0;
}
