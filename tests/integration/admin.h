/* SPDX-License-Identifier: MIT */
/* What the daemon says on its admin socket. */
#ifndef TEST_ADMIN_H
#define TEST_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

struct admin_status {
	uint32_t n_sessions;
	uint32_t n_comms;
	uint64_t n_regions;
	uint64_t n_bytes;
	uint64_t violations;
	uint64_t ops_done;
	uint64_t scratch_bytes;
	uint64_t scratch_limit;
};

/* One communicator, and the newest op of its rank 0 in words. */
struct admin_comm {
	uint32_t n_ranks;
	uint64_t late; /* bitmap of ranks */
	uint64_t stalled_ns;
	char state[16];
	char op[128];
	char precision[256];
	bool over_budget;
	uint64_t precision_ops;
	uint64_t exact_bytes;
	uint64_t wire_bytes;
	uint64_t blocks;
	uint64_t saturated_blocks;
	uint64_t flushed_blocks;
	uint64_t special_blocks;
	uint64_t sampled_blocks;
	uint64_t worst_error_ppm;
};

/** admin_status() - lists counted, limits read; 0, or -1 when the daemon does not answer */
int admin_status(const char *path, struct admin_status *status_p);

/** admin_comm() - communicator number @index in order of ids; -1 when there is none */
int admin_comm(const char *path, uint32_t index, struct admin_comm *comm_p);

#endif
