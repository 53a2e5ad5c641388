/* SPDX-License-Identifier: MIT */
#include "answer.h"

#include "daemon.h"
#include "session.h"

#include <errno.h>
#include <string.h>

struct outcome outcome_of_abort(const struct comm *comm)
{
	static const uint8_t results[RX_ABORT_N] = {
		[RX_ABORT_USER] = RX_ERR_ABORTED,
		[RX_ABORT_PEER_LOST] = RX_ERR_PEER_LOST,
		[RX_ABORT_MISMATCH] = RX_ERR_MISMATCH,
		[RX_ABORT_DEADLINE] = RX_ERR_TIMEOUT,
		[RX_ABORT_SHUTDOWN] = RX_ERR_DAEMON_LOST,
		[RX_ABORT_ERROR] = RX_ERR_ABORTED,
		[RX_ABORT_DEVICE] = RX_ERR_SYSTEM,
	};
	struct outcome outcome = {.result = RX_ERR_ABORTED, .peer_rank = comm->abort_rank};

	if (comm->reason != RX_ABORT_NONE)
		outcome.result = results[comm->reason];
	if (comm->reason == RX_ABORT_MISMATCH)
		outcome.sig = &comm->fabric.ctl->abort_sig[0];
	return outcome;
}

struct outcome outcome_of_run(const struct comm *comm, int run_result)
{
	if (run_result == -ECANCELED)
		return outcome_of_abort(comm);
	return (struct outcome){
		.result = run_result == 0      ? RX_OK
			  : run_result == -EIO ? RX_ERR_SYSTEM
					       : RX_ERR_INTERNAL,
		.peer_rank = UINT32_MAX,
	};
}

static void put_clash(struct rx_cqe *cqe, const struct rx_clash *clash)
{
	static_assert(RX_MAX_RANKS <= UINT8_MAX, "ranks fit a byte");
	cqe->clash = 1;
	cqe->clash_block = (uint8_t)clash->block;
	for (uint32_t i = 0; i < 2; i++) {
		cqe->clash_rank[i] = (uint8_t)clash->rank[i];
		cqe->clash_count[i] = clash->count[i];
	}
}

void answer(const struct member *member, uint64_t user_data, uint32_t opno, struct outcome outcome)
{
	const struct comm *comm = member->comm;
	struct session *session = rx_idmap_find(&comm->daemon->sessions, member->session_id);
	struct rx_cqe cqe = {
		.user_data = user_data,
		.result = (int32_t)outcome.result,
		.peer_rank = outcome.peer_rank,
		.opno = opno,
	};

	if (!session)
		return;
	if (outcome.peer_rank < comm->n_ranks)
		cqe.peer_pid = comm_pid(comm, outcome.peer_rank);
	if (outcome.sig) {
		memcpy(&cqe.peer_sig, outcome.sig, sizeof(cqe.peer_sig));
		cqe.peer_count = outcome.sig->count;
	}
	if (outcome.clash)
		put_clash(&cqe, outcome.clash);
	session_complete(session, &cqe);
}
