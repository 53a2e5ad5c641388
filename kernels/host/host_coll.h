/* SPDX-License-Identifier: MIT */
/*
 * Collectives over memory that one process has mapped: what a worker thread of the daemon runs.
 *
 * The results have the bits that the ranks would get by doing it themselves (doc/algorithms.md).
 */
#ifndef RX_HOST_COLL_H
#define RX_HOST_COLL_H

#include "../coll_counts.h"

#include <stdatomic.h>

struct host_lowprec;

struct host_coll_args {
	uint8_t coll;     /* enum rx_coll */
	uint8_t dtype;    /* enum rx_dtype */
	uint8_t op;       /* enum rx_redop, where the collective reduces */
	uint32_t n_ranks; /* 1 .. RX_MAX_RANKS */
	uint32_t root;    /* where there is one */
	uint64_t count;   /* elements, as the collective defines its count; variable ones: 0 */
	const struct rx_counts *counts; /* variable collectives: by rank; rx_counts_agree() */
	/*
	 * By rank, with the extents of coll_extent.h or rx_counts_extent(); NULL where the extent
	 * is 0. In place per rank as the collective defines it. Buffers of one extent may be the
	 * same for several ranks.
	 */
	const void *const *send;
	void *const *recv;
	const uint64_t *scalars;        /* by rank, RX_PREMUL_SUM */
	const _Atomic uint32_t *cancel; /* looked at between pieces; NULL: never cancelled */
	_Atomic uint64_t *n_pieces;     /* grows with every piece: a sign of life; NULL: none */
	struct host_lowprec *lowprec;   /* in low precision; NULL: exact */
};

/** host_coll_go_on() - between pieces: count it; false when the operation is to end */
bool host_coll_go_on(const struct host_coll_args *args);

/** host_coll_supported() - can host_coll_run() do it? All but send and recv. */
bool host_coll_supported(uint32_t coll);

/**
 * host_coll_run() - do the collective for all ranks
 *
 * Threads: reentrant. Nobody else may write the buffers meanwhile, or results are undefined (and
 * nothing worse).
 *
 * Return: 0; -ECANCELED: outputs are partly written; -ENOTSUP: nothing was done.
 */
RX_WARN_UNUSED int host_coll_run(const struct host_coll_args *args);

/**
 * host_coll_transfer() - a matched pair of send and receive
 * @cancel, @n_pieces: as in struct host_coll_args
 *
 * Threads: reentrant. @dst and @src may overlap: @dst gets what @src held then, if it is not larger
 * than a piece, and otherwise something.
 *
 * Return: 0; -ECANCELED: @dst is partly written.
 */
RX_WARN_UNUSED int host_coll_transfer(void *dst, const void *src, uint64_t bytes,
	const _Atomic uint32_t *cancel, _Atomic uint64_t *n_pieces);

#endif
