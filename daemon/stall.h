/* SPDX-License-Identifier: MIT */
/* Who is late: found by hints of those who wait, reported once per stall. Loop thread only. */
#ifndef DAEMON_STALL_H
#define DAEMON_STALL_H

#include "comm.h"

/** stall_hint() - @member has slept for a while in an inline op */
void stall_hint(struct member *member);

/** stall_on_timer() - look again (a loop_timer_fn; @comm is the owner) */
void stall_on_timer(void *comm);

/** stall_clear() - nobody waits any more, or nobody is left to be told */
void stall_clear(struct comm *comm);

/** stall_log_late(), stall_log_over() - the two lines in the log */
void stall_log_late(
	struct comm *comm, const struct rx_op_sig *sig, uint64_t waited_ns, uint64_t ranks);
void stall_log_over(struct comm *comm, uint64_t waited_ns);

#endif
