/* SPDX-License-Identifier: MIT */
#include "late.h"

#include "print.h"

#include <inttypes.h>

const char *late_op(const struct rx_comm_info *comm)
{
	const struct rx_rank_info *first = NULL;

	/* A late rank's own last operation is one that is over. */
	for (size_t i = 0; i < comm->n_members; i++) {
		const struct rx_rank_info *rank = &comm->members[i];

		if (!rank->late && (!first || rank->op_seq > first->op_seq))
			first = rank;
	}
	return first ? first->op : "";
}

void late_print(const struct rx_comm_info *comm, const char *indent, FILE *out)
{
	const char *op = late_op(comm);
	char waited[PRINT_CELL];

	for (size_t i = 0; i < comm->n_members; i++) {
		const struct rx_rank_info *rank = &comm->members[i];

		if (!rank->late)
			continue;
		fprintf(out,
			"%slate: communicator %" PRIu64 "%s%s: rank %u (pid %u) at %s, others "
			"wait for %s\n",
			indent, comm->id, *comm->name ? " " : "", comm->name, rank->rank, rank->pid,
			*op ? op : "an operation", print_duration(comm->stalled_ns, waited));
	}
}

bool late_json(const struct rx_comm_info *comm, json_t *array)
{
	for (size_t i = 0; i < comm->n_members; i++) {
		const struct rx_rank_info *rank = &comm->members[i];

		if (!rank->late)
			continue;
		if (json_array_append_new(array,
			    json_pack("{s:I, s:s, s:i, s:i, s:s, s:I}", "comm",
				    (json_int_t)comm->id, "name", comm->name, "rank",
				    (int)rank->rank, "pid", (int)rank->pid, "op", late_op(comm),
				    "waited_ns", (json_int_t)comm->stalled_ns)))
			return false;
	}
	return true;
}
