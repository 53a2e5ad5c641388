/* SPDX-License-Identifier: MIT */
/*
 * The node's memory for collectives in low precision: one piece for each thread that executes, made
 * when the first of them comes, and bounded. Its size does not depend on messages, ranks or
 * communicators.
 */
#ifndef DAEMON_SCRATCH_H
#define DAEMON_SCRATCH_H

#include "../shm/rx_base.h"

struct scratch;

/**
 * scratch_new() - nothing is allocated for the pieces yet
 * @n_threads: that may use it at the same time
 * @most_bytes: for all of them together
 */
RX_WARN_UNUSED int scratch_new(uint32_t n_threads, uint64_t most_bytes, struct scratch **scratch_p);

/** scratch_free() - returns NULL; NULL is allowed */
struct scratch *scratch_free(struct scratch *scratch);

/** scratch_ready() - allocate, if it has not been done yet. Loop thread. Return: 0 or -ENOMEM. */
RX_WARN_UNUSED int scratch_ready(struct scratch *scratch);

/** scratch_take() - a piece for this thread; scratch_ready() has succeeded. Any thread. */
void *scratch_take(struct scratch *scratch, uint64_t *bytes_p);

/** scratch_put() - give it back. Any thread. */
void scratch_put(struct scratch *scratch, void *piece);

/** scratch_bytes() - allocated so far */
uint64_t scratch_bytes(const struct scratch *scratch);

#endif
