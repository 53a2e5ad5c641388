/* SPDX-License-Identifier: MIT */
/*
 * Layout of a process's gates: words through which calls in the order of a GPU stream meet the
 * daemon. No functions; see doc/gpu.md, rcclx-ring(7).
 *
 * The client makes the memory and lets its GPU runtime reach it; each of its sessions registers it.
 * The client's streams and the daemon write it. A client that spoils it spoils its own calls.
 *
 * A call that is made once: the stream writes @ready and waits until @done is not behind the same
 * number, which grows by one with every use of the gate. The daemon takes the number from @done.
 *
 * A call that is recorded in a graph is made with every replay, with the same values: the stream
 * writes the gate's number into a bell, waits until @done is 1 and sets it to 0. The daemon clears
 * the bell before it writes @done. One bell serves all calls of one stream in one graph, as each of
 * them ends before the next begins. @ready then holds the bell's number, from before the call.
 */
#ifndef RX_GATE_ABI_H
#define RX_GATE_ABI_H

#include "rx_base.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#define RX_GATE_NONE 0u
#define RX_GATES     32768u
#define RX_BELL_NONE 0u
#define RX_BELLS     2048u
#define RX_CELL_NONE 0u
#define RX_CELLS     2048u

struct rx_gate {
	_Atomic uint64_t ready;
	_Atomic uint64_t done;
};

/*
 * A rank whose process runs kernels itself has a cell for good. Its kernels look at the first half
 * while they wait, and write the second: the layouts of struct rx_inl_page and struct rx_inl_line.
 */
struct rx_cell {
	_Alignas(128) _Atomic uint32_t abort; /* not 0: kernels give up; daemon and library write */
	uint32_t epoch;                       /* 0 */
	uint64_t wait_ticks;                  /* of the device's clock; 0: no limit */
	uint64_t pad[6];
	_Atomic uint64_t what;
	_Atomic uint64_t count;
	_Atomic uint32_t status;
	uint32_t reserved[11];
};

struct rx_gates {
	_Atomic uint64_t bells[RX_BELLS]; /* 0, or the number of a gate */
	struct rx_gate gates[RX_GATES];
	struct rx_cell cells[RX_CELLS];
};

static_assert(sizeof(struct rx_gate) == 16, "shared layout");
static_assert(sizeof(struct rx_cell) == 128, "shared layout");
static_assert(offsetof(struct rx_cell, what) == 64, "shared layout");
static_assert(sizeof(struct rx_gates) % 4096 == 0, "whole pages");
static_assert(RX_GATES <= 1u << 16, "numbers of gates fit an entry");

#endif
