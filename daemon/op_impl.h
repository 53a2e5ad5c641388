/* SPDX-License-Identifier: MIT */
/* Between op.c and op_run.c; recorded operations are made of some of it, too. */
#ifndef DAEMON_OP_IMPL_H
#define DAEMON_OP_IMPL_H

#include "op.h"

/** op_alloc() - an op that stands in no queue; NULL: no memory */
struct op *op_alloc(struct comm *comm, uint64_t number);

/** op_dispose() - free it with what it refers to */
void op_dispose(struct op *op);

/** op_keep_words() - copy the numbers of a variable collective; false: no memory */
RX_WARN_UNUSED bool op_keep_words(struct op *op, const struct member *member,
	const struct rx_sqe *sqe, const uint64_t *words);

/** op_put_part() - @member's side of it, with references to what it names */
void op_put_part(struct op *op, const struct member *member, const struct rx_sqe *sqe,
	struct region *send, struct region *recv, const struct gate *gate);

/** op_first_odd() - first rank whose call differs from rank 0's; n_ranks when all agree */
uint32_t op_first_odd(const struct op *op);

/* ---- op_run.c ---- */

/**
 * op_run() - do it; its state says already that it runs
 * Return: 0, op_over() will be called; -ENOMEM nothing was begun.
 */
RX_WARN_UNUSED int op_run(struct op *op);

/** op_over() - of op.c: it has ended with op->run_result; frees it, and begins the next one */
void op_over(struct op *op);

/** op_uses_devices() - is one of the buffers device memory? */
bool op_uses_devices(const struct op *op);

/** op_fill_run() - what devices have to do; the extents have been checked. Return: 0 or -errno. */
RX_WARN_UNUSED int op_fill_run(struct op *op, struct gpu_run *run);

#endif
