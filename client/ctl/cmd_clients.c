/* SPDX-License-Identifier: MIT */
#include "admin.h"
#include "print.h"

static enum ctl_exit add_row(const struct rx_session_info *session, void *table)
{
	char id[PRINT_CELL], pid[PRINT_CELL], uid[PRINT_CELL], age[PRINT_CELL], ranks[PRINT_CELL];
	char regions[PRINT_CELL], memory[PRINT_CELL], rings[PRINT_CELL], flight[PRINT_CELL];
	char done[PRINT_CELL];

	table_add(table,
		(const char *[]){print_count(session->id, id), print_count(session->pid, pid),
			print_count(session->uid, uid), print_duration(session->connected_ns, age),
			print_count(session->n_members, ranks),
			print_count(session->n_regions, regions),
			print_bytes(session->region_bytes, memory),
			print_bytes(session->ring_bytes, rings),
			print_count(session->ops_in_flight, flight),
			print_count(session->ops_done, done), session->program});
	return CTL_EXIT_OK;
}

static enum ctl_exit append_json(const struct rx_session_info *session, void *array)
{
	json_t *json = json_pack("{s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		"id", (json_int_t)session->id, "pid", (json_int_t)session->pid, "uid",
		(json_int_t)session->uid, "gid", (json_int_t)session->gid, "program",
		session->program, "connected_ns", (json_int_t)session->connected_ns, "members",
		(json_int_t)session->n_members, "regions", (json_int_t)session->n_regions,
		"region_bytes", (json_int_t)session->region_bytes, "ring_bytes",
		(json_int_t)session->ring_bytes, "ops_in_flight",
		(json_int_t)session->ops_in_flight, "ops_done", (json_int_t)session->ops_done);

	if (json_array_append_new(array, json) == 0)
		return CTL_EXIT_OK;
	fprintf(stderr, "rcclxctl: out of memory\n");
	return CTL_EXIT_FAILED;
}

static enum ctl_exit show_json(struct admin *admin)
{
	json_t *array = json_array();
	enum ctl_exit status = admin_each_session(admin, append_json, array);

	if (status == CTL_EXIT_OK)
		return json_print(array) ? CTL_EXIT_OK : CTL_EXIT_FAILED;
	json_decref(array);
	return status;
}

static enum ctl_exit show_text(struct admin *admin)
{
	static const char *const headings[] = {">SESSION", ">PID", ">UID", ">CONNECTED", ">RANKS",
		">REGIONS", ">MEMORY", ">RINGS", ">IN FLIGHT", ">DONE", "PROGRAM", NULL};
	struct table table;
	enum ctl_exit status = CTL_EXIT_FAILED;

	table_init(&table, headings);
	status = admin_each_session(admin, add_row, &table);
	if (status == CTL_EXIT_OK && !table.failed && table.n_rows == 1)
		printf("no sessions\n");
	else if (status == CTL_EXIT_OK && !table_print(&table, "", stdout))
		status = CTL_EXIT_FAILED;
	table_deinit(&table);
	return status;
}

enum ctl_exit cmd_clients(const struct ctl_options *options)
{
	struct admin *admin = NULL;
	enum ctl_exit status = admin_open(options->socket, false, &admin);

	if (status == CTL_EXIT_OK)
		status = options->json ? show_json(admin) : show_text(admin);
	admin_close(admin);
	return status;
}
