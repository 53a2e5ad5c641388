/* SPDX-License-Identifier: MIT */
#include "devices.h"
#include "late.h"
#include "print.h"

#include <inttypes.h>
#include <string.h>

static enum ctl_exit out_of_memory(void)
{
	fprintf(stderr, "rcclxctl: out of memory\n");
	return CTL_EXIT_FAILED;
}

static bool is_bytes(const char *limit_name)
{
	return strstr(limit_name, "bytes");
}

static bool print_limits(const struct rx_msg_admin_status_reply *status)
{
	static const char *const headings[] = {"LIMIT", ">USED", ">OF", NULL};
	struct table table;
	bool ok = false;

	table_init(&table, headings);
	for (size_t i = 0; i < status->n_limits; i++) {
		const struct rx_limit_info *limit = &status->limits[i];
		const char *(*format)(uint64_t, char *) =
			is_bytes(limit->name) ? print_bytes : print_count;
		char used[PRINT_CELL], most[PRINT_CELL];

		table_add(&table, (const char *[]){limit->name, format(limit->used, used),
					  format(limit->limit, most)});
	}
	ok = table_print(&table, "", stdout);
	table_deinit(&table);
	return ok;
}

static enum ctl_exit print_text(const struct rx_msg_admin_status_reply *status)
{
	char uptime[PRINT_CELL];

	printf("rcclxd %s, pid %" PRIu64 ": %s, up %s\n", status->version, status->pid,
		status->state, print_duration(status->uptime_ns, uptime));
	printf("socket         %s\n", status->socket);
	printf("backend        %s\n", status->backend);
	printf("sessions       %" PRIu64 " since start, %" PRIu64
	       " ended for breaking the protocol\n",
		status->sessions_total, status->violations);
	printf("communicators  %" PRIu64 " since start\n", status->comms_total);
	printf("operations     %" PRIu64 " done by the daemon, %" PRIu64 " failed\n",
		status->ops_done, status->ops_failed);
	if (status->log_dropped)
		printf("log            %" PRIu64 " lines dropped\n", status->log_dropped);
	if (status->reloads)
		printf("configuration  reloaded %" PRIu64 " times\n", status->reloads);
	printf("\n");
	return print_limits(status) ? CTL_EXIT_OK : out_of_memory();
}

static json_t *to_json(const struct rx_msg_admin_status_reply *status)
{
	json_t *limits = json_array();

	for (size_t i = 0; limits && i < status->n_limits; i++) {
		const struct rx_limit_info *limit = &status->limits[i];

		if (json_array_append_new(limits,
			    json_pack("{s:s, s:o, s:o}", "name", limit->name, "used",
				    json_count(limit->used), "limit", json_count(limit->limit)))) {
			json_decref(limits);
			limits = NULL;
		}
	}
	return json_pack("{s:s, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, "
			 "s:[], s:[]}",
		"version", status->version, "pid", (json_int_t)status->pid, "uptime_ns",
		(json_int_t)status->uptime_ns, "state", status->state, "socket", status->socket,
		"backend", status->backend, "sessions_total", (json_int_t)status->sessions_total,
		"comms_total", (json_int_t)status->comms_total, "ops_done",
		(json_int_t)status->ops_done, "ops_failed", (json_int_t)status->ops_failed,
		"violations", (json_int_t)status->violations, "log_dropped",
		(json_int_t)status->log_dropped, "reloads", (json_int_t)status->reloads, "limits",
		limits, "late", "devices");
}

static enum ctl_exit print_late(const struct rx_comm_info *comm, void *ctx RX_UNUSED)
{
	late_print(comm, "", stdout);
	return CTL_EXIT_OK;
}

/* Those that somebody uses, or cannot. */
static enum ctl_exit print_device(const struct rx_device_info *device, void *ctx RX_UNUSED)
{
	char bytes[PRINT_CELL], scratch[PRINT_CELL];

	if (strcmp(device->state, "closed") == 0)
		return CTL_EXIT_OK;
	printf("GPU %" PRIu32 ": %s, %" PRIu64 " operations with %s in %" PRIu64
	       " launches, %" PRIu64 " through host memory, %" PRIu64
	       " failures, scratch %s%s%s%s%s\n",
		device->index, device->state, device->n_ops, print_bytes(device->n_op_bytes, bytes),
		device->n_launches, device->n_staged_ops, device->n_failures,
		print_bytes(device->scratch_bytes, scratch), device->copied[0] ? ", copied: " : "",
		device->copied, device->direct[0] ? ", direct instead: " : "", device->direct);
	return CTL_EXIT_OK;
}

static enum ctl_exit append_late(const struct rx_comm_info *comm, void *array)
{
	return late_json(comm, array) ? CTL_EXIT_OK : out_of_memory();
}

static enum ctl_exit show_json(struct admin *admin)
{
	json_t *json = to_json(&admin->reply.admin_status_reply);
	enum ctl_exit status = CTL_EXIT_FAILED;

	if (!json)
		return out_of_memory();
	status = admin_each_comm(admin, append_late, json_object_get(json, "late"));
	if (status == CTL_EXIT_OK)
		status = devices_each(admin, devices_append_json, json_object_get(json, "devices"));
	if (status == CTL_EXIT_OK)
		return json_print(json) ? CTL_EXIT_OK : CTL_EXIT_FAILED;
	json_decref(json);
	return status;
}

static enum ctl_exit show_text(struct admin *admin)
{
	enum ctl_exit status = print_text(&admin->reply.admin_status_reply);

	if (status == CTL_EXIT_OK)
		status = devices_each(admin, print_device, NULL);
	return status == CTL_EXIT_OK ? admin_each_comm(admin, print_late, NULL) : status;
}

enum ctl_exit cmd_status(const struct ctl_options *options)
{
	struct admin *admin = NULL;
	enum ctl_exit status = admin_open(options->socket, false, &admin);

	if (status == CTL_EXIT_OK)
		status = admin_ask(admin, RX_MSG_ADMIN_STATUS, 0, RX_MSG_ADMIN_STATUS_REPLY);
	if (status == CTL_EXIT_OK)
		status = options->json ? show_json(admin) : show_text(admin);
	admin_close(admin);
	return status;
}
