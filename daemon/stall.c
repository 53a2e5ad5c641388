/* SPDX-License-Identifier: MIT */
/*
 * Inline ops do not pass the daemon, so it learns of a wait from whoever waits: the client library
 * sends a hint after a quarter of a second. The daemon then samples the lines in the arena. The
 * ranks that are furthest behind are late: nobody is behind them for whom they could be waiting.
 * While the hinter does not move, a timer looks again; nothing runs when nobody waits.
 *
 * What the lines say is the members' word, good for a report and for nothing else.
 */
#include "stall.h"

#include "daemon.h"
#include "entry.h"
#include "loop.h"
#include "op.h"
#include "../shm/rx_clock.h"

#include <inttypes.h>
#include <stdio.h>

/* How long the library waits before the first hint. */
#define HINT_AFTER_NS (250 * RX_NS_PER_MS)
#define LOOK_AGAIN_NS RX_NS_PER_SEC

static bool is_behind(const struct rx_line_view *a, const struct rx_line_view *b)
{
	if (a->seq != b->seq)
		return !rx_seq_reached(a->seq, b->seq);
	return a->step != b->step && !rx_seq_reached(a->step, b->step);
}

static bool is_same_place(const struct rx_line_view *a, const struct rx_line_view *b)
{
	return a->seq == b->seq && a->step == b->step;
}

/* Bitmap of the present ranks that are behind all others; 0: nobody is ahead of anybody. */
static uint64_t find_late(const struct comm *comm)
{
	struct rx_line_view views[RX_MAX_RANKS];
	uint32_t last = UINT32_MAX;
	uint64_t late = 0;
	bool spread = false;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		if (!comm->members[rank]->session)
			continue;
		views[rank] = rx_fabric_view(&comm->fabric, rank);
		if (last == UINT32_MAX || is_behind(&views[rank], &views[last]))
			last = rank;
	}
	for (uint32_t rank = 0; last != UINT32_MAX && rank < comm->n_ranks; rank++) {
		if (!comm->members[rank]->session)
			continue;
		if (is_same_place(&views[rank], &views[last]))
			late |= 1ull << rank;
		else
			spread = true;
	}
	return spread ? late : 0;
}

/* A late rank that has started an asynchronous op waits for the hinter there: neither will come. */
static bool executors_disagree(struct member *hinter, uint64_t late)
{
	struct comm *comm = hinter->comm;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		const struct op_part *part = NULL;
		struct rx_op_sig sig[2];

		if (!(late & 1ull << rank))
			continue;
		part = op_pending_of(comm, rank, hinter->rank);
		if (!part)
			continue;
		sig[0] = rx_fabric_view(&comm->fabric, hinter->rank).sig;
		sig[1] = part->sig;
		comm_abort(comm, RX_ABORT_MISMATCH, hinter->rank, rank, sig);
		return true;
	}
	return false;
}

void stall_clear(struct comm *comm)
{
	if (comm->stall.late && comm->stall.reported)
		stall_log_over(comm, rx_now_ns() - comm->stall.since_ns);
	comm->stall.late = 0;
	comm->stall.reported = false;
	loop_timer_stop(comm->stall.timer);
}

static bool hinter_moved(const struct comm *comm)
{
	struct rx_line_view view = rx_fabric_view(&comm->fabric, comm->stall.hinter);

	return view.seq != comm->stall.seq || view.step != comm->stall.step;
}

void stall_hint(struct member *member)
{
	struct comm *comm = member->comm;
	struct stall *stall = &comm->stall;
	struct rx_line_view view;
	uint64_t late = 0;
	uint64_t report_ns = comm->daemon->config.stall_report_ns;

	if (comm->state != COMM_READY)
		return;
	late = find_late(comm);
	if (!late || executors_disagree(member, late))
		return;
	if (stall->late && !hinter_moved(comm))
		return;
	stall_clear(comm);
	view = rx_fabric_view(&comm->fabric, member->rank);
	stall->hinter = member->rank;
	stall->since_ns = rx_now_ns() - HINT_AFTER_NS;
	stall->late = late;
	stall->seq = view.seq;
	stall->step = view.step;
	stall->sig = view.sig;
	loop_timer_set(stall->timer, report_ns > HINT_AFTER_NS ? report_ns - HINT_AFTER_NS : 0);
}

void stall_on_timer(void *owner)
{
	struct comm *comm = owner;
	struct stall *stall = &comm->stall;
	uint64_t late = 0;

	if (comm->state != COMM_READY)
		return;
	late = find_late(comm);
	if (!late || hinter_moved(comm)) {
		stall_clear(comm);
		return;
	}
	stall->late = late;
	if (!stall->reported)
		stall_log_late(comm, &stall->sig, rx_now_ns() - stall->since_ns, late);
	stall->reported = true;
	loop_timer_set(stall->timer, LOOK_AGAIN_NS);
}

/* "1 (pid 123), 5 (pid 456)", cut short when there are very many. */
static void list_ranks(const struct comm *comm, uint64_t ranks, char *text, size_t bytes)
{
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t rank = 0; rank < comm->n_ranks && at < bytes; rank++)
		if (ranks & 1ull << rank)
			at += (size_t)snprintf(text + at, bytes - at, "%s%u (pid %u)",
				at > 0 ? ", " : "", rank, comm_pid(comm, rank));
}

void stall_log_late(
	struct comm *comm, const struct rx_op_sig *sig, uint64_t waited_ns, uint64_t ranks)
{
	char late[640];
	char what[96];

	list_ranks(comm, ranks, late, sizeof(late));
	sig_describe(sig, what, sizeof(what));
	rx_log_limited(daemon_log_limit(comm->daemon, comm->members[0]->uid, "late"), RX_LOG_WARN,
		"comm=%" PRIu64 " name=\"%s\" op=\"%s\" waited_ms=%" PRIu64 " late ranks: %s",
		comm->id, comm->name, what, (uint64_t)(waited_ns / RX_NS_PER_MS), late);
}

void stall_log_over(struct comm *comm, uint64_t waited_ns)
{
	rx_log_limited(daemon_log_limit(comm->daemon, comm->members[0]->uid, "over"), RX_LOG_INFO,
		"comm=%" PRIu64 " name=\"%s\" waited_ms=%" PRIu64 " goes on", comm->id, comm->name,
		(uint64_t)(waited_ns / RX_NS_PER_MS));
}
