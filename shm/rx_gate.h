/* SPDX-License-Identifier: MIT */
/* Gates and bells: the only functions that touch them. */
#ifndef RX_GATE_H
#define RX_GATE_H

#include "rx_gate_abi.h"

/** rx_gate_is_open() - has the stream come to the call of number @value? */
static inline bool rx_gate_is_open(const struct rx_gate *gate, uint64_t value)
{
	/* Acquire: what the stream wrote to host memory before is seen afterwards. */
	return (int64_t)(atomic_load_explicit(&gate->ready, memory_order_acquire) - value) >= 0;
}

/** rx_gate_done() - number of the last call that is over */
static inline uint64_t rx_gate_done(const struct rx_gate *gate)
{
	return atomic_load_explicit(&gate->done, memory_order_relaxed);
}

/** rx_gate_release() - let the stream go on */
static inline void rx_gate_release(struct rx_gate *gate, uint64_t value)
{
	/* Release: after the results, where the processor wrote them. */
	atomic_store_explicit(&gate->done, value, memory_order_release);
}

/** rx_gate_bell() - number of the bell of a recorded call; anything, if the client is hostile */
static inline uint64_t rx_gate_bell(const struct rx_gate *gate)
{
	return atomic_load_explicit(&gate->ready, memory_order_relaxed);
}

/** rx_gate_prepare() - what a gate holds before the daemon hears of the call */
static inline void rx_gate_prepare(struct rx_gate *gate, uint64_t ready, uint64_t done)
{
	atomic_store_explicit(&gate->ready, ready, memory_order_relaxed);
	atomic_store_explicit(&gate->done, done, memory_order_relaxed);
}

/** rx_bell_take() - number of the gate that was rung for, 0: none; the bell is silent afterwards */
static inline uint64_t rx_bell_take(_Atomic uint64_t *bell)
{
	uint64_t number = atomic_load_explicit(bell, memory_order_acquire);

	/* Whoever rang waits for us: nobody else writes it now. */
	if (number != 0)
		atomic_store_explicit(bell, 0, memory_order_relaxed);
	return number;
}

/** rx_cell_abort() - kernels of the cell give up; @reason: not 0 */
static inline void rx_cell_abort(struct rx_cell *cell, uint32_t reason)
{
	atomic_store_explicit(&cell->abort, reason, memory_order_release);
}

/** rx_cell_status() - 0, or how a kernel of the cell has failed; written once */
static inline uint32_t rx_cell_status(const struct rx_cell *cell)
{
	return atomic_load_explicit(&cell->status, memory_order_acquire);
}

/** rx_cell_what(), rx_cell_count() - of the last operation that has begun */
static inline uint64_t rx_cell_what(const struct rx_cell *cell)
{
	return atomic_load_explicit(&cell->what, memory_order_acquire);
}

static inline uint64_t rx_cell_count(const struct rx_cell *cell)
{
	return atomic_load_explicit(&cell->count, memory_order_acquire);
}

#endif
