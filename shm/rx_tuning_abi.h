/* SPDX-License-Identifier: MIT */
/*
 * Layout of the thresholds by which algorithms are chosen. Part of a communicator's control page:
 * written by the daemon when the communicator is formed, and the same for all ranks ever after.
 */
#ifndef RX_TUNING_ABI_H
#define RX_TUNING_ABI_H

#include "rx_base.h"

#include <assert.h>

#define RX_TUNING_COLLS   14u /* enum rx_coll */
#define RX_TUNING_CLASSES 5u  /* by number of ranks: up to 2, 4, 8, 16, 64 */

/* In bytes that one rank has for others. */
struct rx_tuning_entry {
	uint32_t flat_max;          /* largest message served flat, a core for each rank */
	uint32_t flat_max_shared;   /* the same when ranks share cores: barriers cost more there */
	uint32_t chunk;             /* staged: bytes in flight at a time */
	uint32_t low_precision_min; /* larger of the two buffers: from here on, where switched on */
	uint64_t direct_min;        /* registered memory: from here on without staging */
	uint64_t stream_min;        /* from here on results bypass the cache */
	uint32_t single_min; /* private memory that members may read: from here on one copy */
	uint32_t reserved;
};

struct rx_tuning {
	uint64_t epoch; /* of the daemon's tables: grows with every change */
	struct rx_tuning_entry entries[RX_TUNING_COLLS][RX_TUNING_CLASSES];
};

static_assert(sizeof(struct rx_tuning_entry) == 40, "shared layout");

#endif
