/* SPDX-License-Identifier: MIT */
/* Collectives in low precision over memory that one process has mapped; see host_coll.h. */
#ifndef RX_HOST_LOWPREC_H
#define RX_HOST_LOWPREC_H

#include "../codec/mxfp8.h"
#include "../precision_check.h"

struct host_coll_args;

/* Smallest scratch with which it works. */
#define HOST_LOWPREC_SCRATCH_MIN 4096u
/* More than this is not used: what is worked on has to stay in the cache. */
#define HOST_LOWPREC_SCRATCH_MAX (256u * 1024)

struct host_lowprec {
	void *scratch; /* aligned as by malloc() */
	uint64_t scratch_bytes;
	enum rx_mx_format format;
	bool bf16; /* allreduce: the sums travel so */
	/* Results, added to what is there. The caller sets up its check. */
	struct rx_precision_work work;
};

/**
 * host_lowprec_run() - as host_coll_run(), for args->lowprec, which is not NULL
 *
 * Return: 0; -ECANCELED; -ENOTSUP there is no such form, nothing was done.
 */
RX_WARN_UNUSED int host_lowprec_run(const struct host_coll_args *args);

#endif
