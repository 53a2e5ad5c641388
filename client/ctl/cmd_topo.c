/* SPDX-License-Identifier: MIT */
#include "admin.h"
#include "print.h"

#include <inttypes.h>

typedef enum ctl_exit (*object_fn)(const struct rx_topology_object *object, void *ctx);

/* @reply is the admin connection's: its numbers are those of the whole node, on every page. */
static enum ctl_exit each_object(struct admin *admin, object_fn fn, void *ctx)
{
	const struct rx_msg_admin_topology_reply *reply = &admin->reply.admin_topology_reply;
	uint64_t after = 0;
	bool more = true;

	while (more) {
		enum ctl_exit status =
			admin_ask(admin, RX_MSG_ADMIN_TOPOLOGY, after, RX_MSG_ADMIN_TOPOLOGY_REPLY);

		for (size_t i = 0; status == CTL_EXIT_OK && i < reply->n_objects; i++)
			status = fn(&reply->objects[i], ctx);
		if (status != CTL_EXIT_OK)
			return status;
		after += reply->n_objects;
		more = reply->more && reply->n_objects > 0;
	}
	return CTL_EXIT_OK;
}

static enum ctl_exit add_row(const struct rx_topology_object *object, void *table)
{
	char index[PRINT_CELL], cores[PRINT_CELL], bytes[PRINT_CELL];

	table_add(table,
		(const char *[]){object->kind, print_count(object->index, index),
			print_count(object->n_cores, cores),
			object->bytes ? print_bytes(object->bytes, bytes) : "-", object->cpus});
	return CTL_EXIT_OK;
}

static enum ctl_exit show_text(struct admin *admin)
{
	static const char *const headings[] = {"PART", ">INDEX", ">CORES", ">SIZE", "CPUS", NULL};
	const struct rx_msg_admin_topology_reply *node = &admin->reply.admin_topology_reply;
	struct table table;
	enum ctl_exit status = CTL_EXIT_FAILED;

	table_init(&table, headings);
	status = each_object(admin, add_row, &table);
	if (status == CTL_EXIT_OK) {
		printf("%u packages, %u NUMA nodes, %u L3 caches, %u L2 caches, %u cores, %u CPUs\n",
			node->n_packages, node->n_numa, node->n_l3, node->n_l2, node->n_cores,
			node->n_pus);
		if (!table_print(&table, "", stdout))
			status = CTL_EXIT_FAILED;
	}
	table_deinit(&table);
	return status;
}

static enum ctl_exit append_json(const struct rx_topology_object *object, void *array)
{
	json_t *json = json_pack("{s:s, s:i, s:i, s:I, s:s}", "part", object->kind, "index",
		(int)object->index, "cores", (int)object->n_cores, "bytes",
		(json_int_t)object->bytes, "cpus", object->cpus);

	if (json_array_append_new(array, json) == 0)
		return CTL_EXIT_OK;
	fprintf(stderr, "rcclxctl: out of memory\n");
	return CTL_EXIT_FAILED;
}

static enum ctl_exit show_json(struct admin *admin)
{
	const struct rx_msg_admin_topology_reply *node = &admin->reply.admin_topology_reply;
	json_t *objects = json_array();
	enum ctl_exit status = each_object(admin, append_json, objects);

	if (status != CTL_EXIT_OK) {
		json_decref(objects);
		return status;
	}
	return json_print(json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "packages",
		       (int)node->n_packages, "numa_nodes", (int)node->n_numa, "l3",
		       (int)node->n_l3, "l2", (int)node->n_l2, "cores", (int)node->n_cores, "cpus",
		       (int)node->n_pus, "parts", objects))
		       ? CTL_EXIT_OK
		       : CTL_EXIT_FAILED;
}

enum ctl_exit cmd_topo(const struct ctl_options *options)
{
	struct admin *admin = NULL;
	enum ctl_exit status = admin_open(options->socket, false, &admin);

	if (status == CTL_EXIT_OK)
		status = options->json ? show_json(admin) : show_text(admin);
	admin_close(admin);
	return status;
}
