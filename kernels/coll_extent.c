/* SPDX-License-Identifier: MIT */
#include "coll_extent.h"

bool rx_coll_has_root(uint32_t coll)
{
	return coll == RX_BROADCAST || coll == RX_REDUCE || coll == RX_GATHER || coll == RX_SCATTER;
}

bool rx_coll_is_v(uint32_t coll)
{
	return coll == RX_ALL_GATHER_V || coll == RX_REDUCE_SCATTER_V || coll == RX_ALL_TO_ALL_V;
}

bool rx_coll_extent(uint32_t coll, uint64_t count, uint32_t n_ranks, uint32_t rank, uint32_t root,
	struct rx_extent *extent_p)
{
	struct rx_extent e = {0};
	uint64_t all = 0;
	bool is_root = rank == root;

	if (!rx_mul_u64(count, n_ranks, &all))
		return false;
	switch (coll) {
	case RX_BARRIER:
		break;
	case RX_ALL_REDUCE:
		e = (struct rx_extent){.send = count, .recv = count, .in_place_ok = true};
		break;
	case RX_ALL_GATHER:
		e = (struct rx_extent){count, all, true, rank * count, 0};
		break;
	case RX_REDUCE_SCATTER:
		e = (struct rx_extent){all, count, true, 0, rank * count};
		break;
	case RX_ALL_TO_ALL:
		e = (struct rx_extent){.send = all, .recv = all};
		break;
	case RX_BROADCAST:
		e = (struct rx_extent){is_root ? count : 0, count, true, 0, 0};
		break;
	case RX_REDUCE:
		e = (struct rx_extent){count, is_root ? count : 0, true, 0, 0};
		break;
	case RX_GATHER:
		e = (struct rx_extent){count, is_root ? all : 0, true, rank * count, 0};
		break;
	case RX_SCATTER:
		e = (struct rx_extent){is_root ? all : 0, count, true, 0, rank * count};
		break;
	case RX_SEND:
		e.send = count;
		break;
	case RX_RECV:
		e.recv = count;
		break;
	default:
		return false;
	}
	*extent_p = e;
	return true;
}
