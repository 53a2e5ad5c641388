/* SPDX-License-Identifier: MIT */
/*
 * Small collectives in the order of a stream as one kernel of this process, in that stream, which
 * meets those of the other ranks in device memory of the daemon's. Whether a communicator has that
 * was decided when it was made, for all ranks alike; whether a call is served that way follows from
 * what the ranks have to agree about anyway.
 */
#ifndef CLIENT_RANK_KERNELS_H
#define CLIENT_RANK_KERNELS_H

#include "rcclx.h"
#include "../kernels/device/inline_abi.h"

struct call;
struct gpu_stream;
struct rx_cell;

/* A communicator's. */
struct rank_kernels {
	/* Known before it is joined: the caller's device. */
	bool has_device;
	bool concurrent; /* kernels of several processes run on it at the same time */
	uint32_t device;
	uint8_t uuid[16];
	/* Once it is made. */
	bool on;
	uint32_t slot_bytes;
	uint32_t max_blocks;
	struct rx_cell *cell;
	uint64_t cell_address;          /* for kernels */
	uint64_t mem[RX_INL_MAX_RANKS]; /* of each rank, for kernels of our device */
};

/** rank_kernels_look() - which device does the calling thread use? */
void rank_kernels_look(struct rank_kernels *kernels);

/** rank_kernels_open() - @comm was joined: map what is offered, and hear what was decided */
void rank_kernels_open(struct rcclx_comm *comm);

/** rank_kernels_fault() - RCCLX_OK, or how a kernel of @comm has failed, which is sticky then */
rcclx_result rank_kernels_fault(struct rcclx_comm *comm);

/** rank_kernels_serve() - is @call, in the order of a stream, served by a kernel of ours? */
bool rank_kernels_serve(const struct call *call);

/** rank_kernels_check() - may kernels of @comm be put into @stream? */
rcclx_result rank_kernels_check(const struct rcclx_comm *comm, const struct gpu_stream *stream);

/* One rank's part of a launch; addresses are the device's. */
struct rank_launch {
	const struct call *call;
	uint64_t send;
	uint64_t recv;
};

/** rank_kernels_launch() - of @n ranks of one communicator that make the same call in @stream */
rcclx_result rank_kernels_launch(
	const struct gpu_stream *stream, const struct rank_launch *ranks, uint32_t n);

#endif
