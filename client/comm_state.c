/* SPDX-License-Identifier: MIT */
/*
 * What a communicator's calls look at while they work: is it still good, what has happened, and in
 * which words to say so. The public calls are in comm.c.
 */
#include "comm.h"

#include "err.h"
#include "session.h"
#include "../kernels/coll_extent.h"
#include "../kernels/precision.h"

#include <stdio.h>
#include <string.h>

#define DESCRIBE_BYTES 96u

/* Longest that an abort tries to get its message into a full socket, in ms. */
#define ABORT_SEND_MS 100u

void comm_describe(const struct rx_op_sig *sig, char *text, size_t bytes)
{
	char counts[40] = "";
	char reduction[24] = "";
	char root[24] = "";
	const char *low = rx_precision_words(sig->flags, sig->coll, sig->dtype, sig->op);

	if (sig->coll == RX_BARRIER) {
		(void)snprintf(text, bytes, "barrier");
		return;
	}
	/* Of several counts there is a checksum, where ranks compare by themselves. */
	if (!rx_coll_is_v(sig->coll))
		(void)snprintf(counts, sizeof(counts), "%llu ", (unsigned long long)sig->count);
	else if (sig->count != 0)
		(void)snprintf(
			counts, sizeof(counts), "counts #%llx ", (unsigned long long)sig->count);
	if (rx_coll_reduces(sig->coll))
		(void)snprintf(reduction, sizeof(reduction), ", %s", rx_redop_name(sig->op));
	if (rx_coll_has_root(sig->coll))
		(void)snprintf(root, sizeof(root), ", root %u", sig->root);
	(void)snprintf(text, bytes, "%s of %s%s%s%s%s", rx_coll_name(sig->coll), counts,
		rx_dtype_name(sig->dtype), reduction, root, low);
}

rcclx_result comm_mismatch(struct rcclx_comm *comm, const struct rx_op_sig *mine, uint32_t peer,
	const struct rx_op_sig *theirs)
{
	char here[DESCRIBE_BYTES];
	char there[DESCRIBE_BYTES];

	comm_describe(mine, here, sizeof(here));
	comm_describe(theirs, there, sizeof(there));
	return err_set(RCCLX_ERR_MISMATCH,
		"the ranks disagree: rank %u called %s, rank %u called %s; nothing was moved. All "
		"ranks must make the same calls in the same order",
		comm->rank, here, peer, there);
}

/* ---- the sticky failure ---- */

rcclx_result comm_fail(struct rcclx_comm *comm, rcclx_result result)
{
	uint32_t unclaimed = 0;

	/* The claim's winner alone writes the text, before it says that there is one. */
	if (!atomic_compare_exchange_strong(&comm->fail_claimed, &unclaimed, 1))
		return result;
	(void)snprintf(comm->fail_text, sizeof(comm->fail_text), "%s", rcclx_last_error());
	atomic_store_explicit(&comm->failed, result, memory_order_release);
	return result;
}

static rcclx_result sticky(struct rcclx_comm *comm)
{
	rcclx_result failed = atomic_load_explicit(&comm->failed, memory_order_acquire);

	if (rx_likely(failed == RCCLX_OK))
		return RCCLX_OK;
	return err_set(failed, "the communicator is unusable since an earlier failure: %s",
		comm->fail_text);
}

rcclx_result comm_usable(struct rcclx_comm *comm)
{
	rcclx_result r = session_usable(comm->client);

	if (r == RCCLX_OK)
		r = sticky(comm);
	/* What the ranks found themselves says more than that one of them gave up. */
	if (r == RCCLX_OK && rx_unlikely(comm->kernels.on))
		r = rank_kernels_fault(comm);
	return r != RCCLX_OK ? r : comm_fault(comm, UINT32_MAX, NULL);
}

/* ---- what the daemon wrote into the control page ---- */

/* " during all_reduce of ..." or nothing */
static void during(const struct rx_op_sig *sig, char *text, size_t bytes)
{
	char what[DESCRIBE_BYTES];

	text[0] = '\0';
	if (!sig)
		return;
	comm_describe(sig, what, sizeof(what));
	(void)snprintf(text, bytes, " during %s", what);
}

/* "rank 3 (pid 1234)" */
static void name_rank(const struct rcclx_comm *comm, uint32_t rank, char *text, size_t bytes)
{
	if (rank >= comm->n_ranks)
		(void)snprintf(text, bytes, "a rank");
	else if (comm->fabric.ctl->pid[rank] == 0)
		(void)snprintf(text, bytes, "rank %u", rank);
	else
		(void)snprintf(text, bytes, "rank %u (pid %u)", rank, comm->fabric.ctl->pid[rank]);
}

rcclx_result comm_peer_lost(
	struct rcclx_comm *comm, uint32_t peer, bool left, const struct rx_op_sig *sig)
{
	char where[DESCRIBE_BYTES + 16];
	char who[48];

	during(sig, where, sizeof(where));
	name_rank(comm, peer, who, sizeof(who));
	return err_set(RCCLX_ERR_PEER_LOST, "%s %s%s; create a new communicator without it", who,
		left ? "has left the communicator" : "died", where);
}

static rcclx_result abort_mismatch(struct rcclx_comm *comm, const struct rx_fabric_ctl *ctl)
{
	char sides[2][DESCRIBE_BYTES];

	comm_describe(&ctl->abort_sig[0], sides[0], sizeof(sides[0]));
	comm_describe(&ctl->abort_sig[1], sides[1], sizeof(sides[1]));
	return err_set(RCCLX_ERR_MISMATCH,
		"the ranks disagree: rank %u called %s, rank %u called %s%s; the communicator of "
		"%u ranks is aborted",
		ctl->abort_rank, sides[0], ctl->abort_other, sides[1],
		ctl->kernels == RX_KERNELS_ON &&
				!rx_sig_equal(&ctl->abort_sig[0], &ctl->abort_sig[1])
			? ""
			: ", one of them with another executor (a blocking call and a started one "
			  "do not match)",
		comm->n_ranks);
}

static rcclx_result aborted_for(
	struct rcclx_comm *comm, uint32_t reason, const struct rx_op_sig *sig)
{
	const struct rx_fabric_ctl *ctl = comm->fabric.ctl;
	char where[DESCRIBE_BYTES + 16];
	char who[48];

	during(sig, where, sizeof(where));
	name_rank(comm, ctl->abort_rank, who, sizeof(who));
	switch (reason) {
	case RX_ABORT_PEER_LOST:
		return comm_peer_lost(comm, ctl->abort_rank, false, sig);
	case RX_ABORT_MISMATCH:
		return abort_mismatch(comm, ctl);
	case RX_ABORT_DEADLINE:
		return err_set(RCCLX_ERR_TIMEOUT,
			"an operation took longer than allowed, as %s found; the communicator is "
			"aborted%s",
			who, where);
	case RX_ABORT_SHUTDOWN:
		return err_set(RCCLX_ERR_DAEMON_LOST,
			"the daemon is shutting down and aborted the communicator%s; connect "
			"again when it is back",
			where);
	case RX_ABORT_ERROR:
		return err_set(RCCLX_ERR_ABORTED,
			"%s could not go on and aborted the communicator%s; its own error says why",
			who, where);
	case RX_ABORT_DEVICE:
		return err_set(RCCLX_ERR_SYSTEM,
			"a GPU operation failed and the communicator is aborted%s; the log of "
			"rcclxd and rcclxctl devices say why",
			where);
	default:
		return err_set(RCCLX_ERR_ABORTED, "%s aborted the communicator%s", who, where);
	}
}

rcclx_result comm_fault(struct rcclx_comm *comm, uint32_t peer, const struct rx_op_sig *sig)
{
	const struct rx_fabric_ctl *ctl = comm->fabric.ctl;
	uint32_t reason = RX_ABORT_NONE;
	uint32_t status = RX_MEMBER_ALIVE;

	if (rx_unlikely(atomic_load_explicit(&comm->abort_called, memory_order_acquire) != 0))
		return err_set(RCCLX_ERR_ABORTED,
			"this process aborted the communicator (rank %u called "
			"rcclx_comm_abort())",
			comm->rank);
	/* Acquire: pairs with the store of rx_fabric_ctl_abort(), after the details. */
	reason = atomic_load_explicit(&ctl->abort, memory_order_acquire);
	if (rx_unlikely(reason != RX_ABORT_NONE))
		return aborted_for(comm, reason, sig);
	if (peer >= comm->n_ranks)
		return RCCLX_OK;
	status = atomic_load_explicit(&ctl->status[peer], memory_order_acquire);
	if (rx_unlikely(status != RX_MEMBER_ALIVE))
		return comm_peer_lost(comm, peer, status == RX_MEMBER_LEFT, sig);
	return RCCLX_OK;
}

/* ---- the daemon ---- */

bool comm_daemon_lost(struct rcclx_comm *comm)
{
	return session_lost(comm->client);
}

void comm_stall_hint(struct rcclx_comm *comm)
{
	struct rx_msg hint = {
		.type = RX_MSG_STALL_HINT,
		.stall_hint = {.member = comm->member},
	};

	/* Lost when the socket is full: the next one is due in a second. */
	(void)conn_post(&comm->client->conn, &hint, 0);
}

void comm_tell_over_budget(struct rcclx_comm *comm)
{
	struct rx_msg message = {
		.type = RX_MSG_OVER_BUDGET,
		.over_budget = {.member = comm->member},
	};

	/* If it is lost, the operators do not hear of it; the ranks do, from each other. */
	(void)conn_post(&comm->client->conn, &message, 0);
}

void comm_give_up(struct rcclx_comm *comm, enum rx_abort_reason reason)
{
	struct rx_msg message = {
		.type = RX_MSG_COMM_ABORT,
		.comm_abort = {.member = comm->member, .reason = (uint32_t)reason},
	};

	/* If it cannot be sent, leaving the communicator tells the peers later. */
	(void)conn_post(&comm->client->conn, &message, ABORT_SEND_MS);
}
