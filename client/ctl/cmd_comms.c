/* SPDX-License-Identifier: MIT */
#include "admin.h"
#include "late.h"
#include "print.h"

#include <inttypes.h>
#include <string.h>

struct text_ctx {
	size_t n_comms;
};

static bool print_ranks(const struct rx_comm_info *comm)
{
	static const char *const headings[] = {">RANK", "STATUS", ">SESSION", ">PID", ">UID",
		">OPS", ">QUEUED", "LAST OPERATION", NULL};
	struct table table;
	bool ok = false;

	table_init(&table, headings);
	for (size_t i = 0; i < comm->n_members; i++) {
		const struct rx_rank_info *rank = &comm->members[i];
		char number[PRINT_CELL], session[PRINT_CELL], pid[PRINT_CELL], uid[PRINT_CELL];
		char ops[PRINT_CELL], queued[PRINT_CELL], state[PRINT_CELL];

		(void)snprintf(
			state, sizeof(state), "%s%s", rank->status, rank->late ? ", late" : "");
		table_add(&table,
			(const char *[]){print_count(rank->rank, number), state,
				print_count(rank->session_id, session), print_count(rank->pid, pid),
				print_count(rank->uid, uid), print_count(rank->op_seq, ops),
				print_count(rank->queued_seq, queued), *rank->op ? rank->op : "-"});
	}
	ok = table_print(&table, "  ", stdout);
	table_deinit(&table);
	return ok;
}

/* Nothing where low precision is neither switched on nor was used. */
static void print_precision(const struct rx_comm_info *comm)
{
	char wire[PRINT_CELL], exact[PRINT_CELL];

	if (comm->precision_ops == 0 && strncmp(comm->precision, "off", 3) == 0)
		return;
	printf("  low precision: %s%s\n", comm->precision,
		comm->over_budget ? "; exact since errors were above the budget" : "");
	if (comm->precision_ops == 0)
		return;
	printf("  %" PRIu64 " operations, %s between ranks instead of %s; of %" PRIu64
	       " blocks %" PRIu64 " clipped, %" PRIu64 " with values that became zero, %" PRIu64
	       " with NaN or infinity\n",
		comm->precision_ops, print_bytes(comm->wire_bytes, wire),
		print_bytes(comm->exact_bytes, exact), comm->precision_blocks,
		comm->saturated_blocks, comm->flushed_blocks, comm->special_blocks);
	if (comm->sampled_blocks > 0)
		printf("  relative error in %" PRIu64 " checked blocks: %" PRIu64
		       " ppm in the last operation, %" PRIu64 " in the worst\n",
			comm->sampled_blocks, comm->error_ppm, comm->worst_error_ppm);
}

static enum ctl_exit print_comm(const struct rx_comm_info *comm, void *ctx)
{
	struct text_ctx *text = ctx;
	char arena[PRINT_CELL], age[PRINT_CELL];

	printf("%scommunicator %" PRIu64 "%s%s: %s%s%s%s, %u ranks, age %s, arena %s, %" PRIu64
	       " queued ops done, %u waiting\n",
		text->n_comms++ ? "\n" : "", comm->id, *comm->name ? " " : "", comm->name,
		comm->state, *comm->reason ? " (" : "", comm->reason, *comm->reason ? ")" : "",
		comm->n_ranks, print_duration(comm->age_ns, age),
		print_bytes(comm->arena_bytes, arena), comm->ops_done, comm->ops_queued);
	if (comm->n_cores > 0)
		printf("  ranks %s on %u cores of one %s, thresholds of epoch %" PRIu64 "\n",
			comm->cores_shared ? "without a core each" : "with a core each",
			comm->n_cores, comm->shares, comm->tuning_epoch);
	if (*comm->kernels)
		printf("  kernels in the ranks' own streams: %s\n", comm->kernels);
	print_precision(comm);
	late_print(comm, "  ", stdout);
	if (print_ranks(comm))
		return CTL_EXIT_OK;
	fprintf(stderr, "rcclxctl: out of memory\n");
	return CTL_EXIT_FAILED;
}

static json_t *ranks_json(const struct rx_comm_info *comm)
{
	json_t *ranks = json_array();

	for (size_t i = 0; ranks && i < comm->n_members; i++) {
		const struct rx_rank_info *rank = &comm->members[i];

		if (json_array_append_new(ranks,
			    json_pack("{s:i, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:s}", "rank",
				    (int)rank->rank, "status", rank->status, "late", rank->late,
				    "session", (json_int_t)rank->session_id, "pid",
				    (json_int_t)rank->pid, "uid", (json_int_t)rank->uid, "ops",
				    (json_int_t)rank->op_seq, "queued",
				    (json_int_t)rank->queued_seq, "op", rank->op))) {
			json_decref(ranks);
			ranks = NULL;
		}
	}
	return ranks;
}

static json_t *precision_json(const struct rx_comm_info *comm)
{
	return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "settings",
		comm->precision, "over_budget", comm->over_budget, "ops",
		json_count(comm->precision_ops), "exact_bytes", json_count(comm->exact_bytes),
		"wire_bytes", json_count(comm->wire_bytes), "blocks",
		json_count(comm->precision_blocks), "blocks_saturated",
		json_count(comm->saturated_blocks), "blocks_flushed",
		json_count(comm->flushed_blocks), "blocks_special",
		json_count(comm->special_blocks), "blocks_sampled",
		json_count(comm->sampled_blocks), "error_ppm", json_count(comm->error_ppm),
		"worst_error_ppm", json_count(comm->worst_error_ppm));
}

static enum ctl_exit append_comm(const struct rx_comm_info *comm, void *array)
{
	json_t *late = json_array();
	json_t *json = NULL;

	if (late && late_json(comm, late))
		json = json_pack(
			"{s:I, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:i, s:I, s:i, s:b, s:s, "
			"s:I, s:s, s:o, s:O, s:o}",
			"id", (json_int_t)comm->id, "name", comm->name, "state", comm->state,
			"reason", comm->reason, "n_ranks", (int)comm->n_ranks, "age_ns",
			(json_int_t)comm->age_ns, "arena_bytes", (json_int_t)comm->arena_bytes,
			"ops_done", (json_int_t)comm->ops_done, "ops_queued", (int)comm->ops_queued,
			"stalled_ns", (json_int_t)comm->stalled_ns, "cores", (int)comm->n_cores,
			"cores_shared", comm->cores_shared, "shares", comm->shares, "tuning_epoch",
			(json_int_t)comm->tuning_epoch, "kernels", comm->kernels, "low_precision",
			precision_json(comm), "late", late, "ranks", ranks_json(comm));
	json_decref(late);
	/* Takes the object; an absent one is an error. */
	if (json_array_append_new(array, json) == 0)
		return CTL_EXIT_OK;
	fprintf(stderr, "rcclxctl: out of memory\n");
	return CTL_EXIT_FAILED;
}

static enum ctl_exit show_json(struct admin *admin)
{
	json_t *array = json_array();
	enum ctl_exit status = admin_each_comm(admin, append_comm, array);

	if (status == CTL_EXIT_OK)
		return json_print(array) ? CTL_EXIT_OK : CTL_EXIT_FAILED;
	json_decref(array);
	return status;
}

static enum ctl_exit show_text(struct admin *admin)
{
	struct text_ctx text = {0};
	enum ctl_exit status = admin_each_comm(admin, print_comm, &text);

	if (status == CTL_EXIT_OK && text.n_comms == 0)
		printf("no communicators\n");
	return status;
}

enum ctl_exit cmd_comms(const struct ctl_options *options)
{
	struct admin *admin = NULL;
	enum ctl_exit status = admin_open(options->socket, false, &admin);

	if (status == CTL_EXIT_OK)
		status = options->json ? show_json(admin) : show_text(admin);
	admin_close(admin);
	return status;
}
