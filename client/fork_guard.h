/* SPDX-License-Identifier: MIT */
/* Am I still the process that made this object? */
#ifndef CLIENT_FORK_GUARD_H
#define CLIENT_FORK_GUARD_H

#include "../shm/rx_base.h"

/**
 * fork_guard_epoch() - number of this process among itself and its forked descendants
 * @epoch_p: receives it, never 0
 *
 * Return: 0 or -errno.
 */
RX_WARN_UNUSED int fork_guard_epoch(uint64_t *epoch_p);

/** fork_guard_same() - false in a child forked after fork_guard_epoch(). Two loads. */
bool fork_guard_same(uint64_t epoch);

#endif
