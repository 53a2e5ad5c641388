/* SPDX-License-Identifier: MIT */
/*
 * Submitted entries: whatever passes entry_check() stays inside its regions.
 *
 * Input: 64 bytes of entry, then the sizes of both regions, then which are known.
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
	bool known, uint64_t region, uint64_t offset, uint64_t count, uint32_t size)
{
	unsigned __int128 end = (unsigned __int128)count * size + offset;

	require(known);
	require(end <= region);
	require(offset % size == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rx_sqe sqe;
	struct entry_facts facts = {.n_ranks = 4};
	struct rx_op_sig sig;
	const char *why = NULL;
	char text[96];

	if (size < sizeof(sqe) + 17)
		return 0;
	memcpy(&sqe, data, sizeof(sqe));
	memcpy(&facts.send_bytes, data + sizeof(sqe), 8);
	memcpy(&facts.recv_bytes, data + sizeof(sqe) + 8, 8);
	facts.send_known = data[sizeof(sqe) + 16] & 1;
	facts.recv_known = data[sizeof(sqe) + 16] & 2;
	sig = entry_sig(&sqe);
	sig_describe(&sig, text, sizeof(text));
	require(strlen(text) > 0);
	if (entry_check(&sqe, &facts, &why) != 0) {
		require(why != NULL);
		return 0;
	}
	if (!entry_moves_data(&sqe))
		return 0;
	check_buffer(facts.send_known, facts.send_bytes, sqe.send_offset, sqe.count,
		rx_dtype_size(sqe.dtype));
	check_buffer(facts.recv_known, facts.recv_bytes, sqe.recv_offset, sqe.count,
		rx_dtype_size(sqe.dtype));
	return 0;
}
