/* SPDX-License-Identifier: MIT */
#include "devices.h"
#include "print.h"

#include <inttypes.h>
#include <string.h>

#define PEERS_TEXT (4 * RX_GPU_DEVICES_MAX)

enum ctl_exit devices_each(struct admin *admin, devices_fn fn, void *ctx)
{
	const struct rx_msg_admin_devices_reply *reply = &admin->reply.admin_devices_reply;
	uint64_t after = 0;
	bool more = true;

	while (more) {
		enum ctl_exit status =
			admin_ask(admin, RX_MSG_ADMIN_DEVICES, after, RX_MSG_ADMIN_DEVICES_REPLY);

		for (size_t i = 0; status == CTL_EXIT_OK && i < reply->n_devices; i++)
			status = fn(&reply->devices[i], ctx);
		if (status != CTL_EXIT_OK)
			return status;
		after += reply->n_devices;
		more = reply->more && reply->n_devices > 0;
	}
	return CTL_EXIT_OK;
}

/* "1-7", "0,2,3", "-" */
static const char *describe_peers(const struct rx_device_info *device, char text[PEERS_TEXT])
{
	uint64_t peers = device->peers & ~(1ull << device->index);
	size_t used = 0;

	(void)snprintf(text, PEERS_TEXT, "-");
	for (uint32_t i = 0; i < RX_GPU_DEVICES_MAX; i++) {
		uint32_t last = i;

		if (!(peers >> i & 1))
			continue;
		while (last + 1 < RX_GPU_DEVICES_MAX && peers >> (last + 1) & 1)
			last++;
		used += (size_t)snprintf(text + used, PEERS_TEXT - used,
			last > i + 1 ? "%s%u-%u" : "%s%u", used ? "," : "", i, last);
		i = last > i + 1 ? last : i;
	}
	return text;
}

static enum ctl_exit add_row(const struct rx_device_info *device, void *table)
{
	char index[PRINT_CELL], memory[PRINT_CELL], mapped[PRINT_CELL];
	char peers[PEERS_TEXT];
	char ops[PRINT_CELL], op_bytes[PRINT_CELL], failures[PRINT_CELL];
	const char *note = device->error[0] ? device->error : device->copied;

	table_add(table,
		(const char *[]){print_count(device->index, index), device->name, device->arch,
			device->pci, device->state, print_bytes(device->memory_bytes, memory),
			print_bytes(device->mapped_bytes, mapped), print_count(device->n_ops, ops),
			print_bytes(device->n_op_bytes, op_bytes),
			print_count(device->n_failures, failures), describe_peers(device, peers),
			note[0] ? note : "-"});
	return CTL_EXIT_OK;
}

static enum ctl_exit show_text(struct admin *admin)
{
	static const char *const headings[] = {">GPU", "NAME", "ARCH", "PCI", "STATE", ">MEMORY",
		">MAPPED", ">OPS", ">OF BYTES", ">FAILURES", "PEERS", "ERROR OR COPIED", NULL};
	const struct rx_msg_admin_devices_reply *reply = &admin->reply.admin_devices_reply;
	struct table table;
	enum ctl_exit status = CTL_EXIT_FAILED;

	table_init(&table, headings);
	status = devices_each(admin, add_row, &table);
	if (status == CTL_EXIT_OK && strcmp(reply->state, "ready") != 0)
		printf("no GPU is used (%s): %s\n", reply->state,
			reply->reason[0] ? reply->reason : "the runtime is starting");
	else if (status == CTL_EXIT_OK && !table_print(&table, "", stdout))
		status = CTL_EXIT_FAILED;
	table_deinit(&table);
	return status;
}

static json_t *json_peers(uint64_t peers, uint32_t own)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < RX_GPU_DEVICES_MAX; i++)
		if (i != own && peers >> i & 1)
			(void)json_array_append_new(array, json_integer(i));
	return array;
}

enum ctl_exit devices_append_json(const struct rx_device_info *device, void *array)
{
	char uuid[2 * RX_GPU_UUID_BYTES + 1];
	json_t *json = NULL;

	for (size_t i = 0; i < RX_GPU_UUID_BYTES; i++)
		(void)snprintf(uuid + 2 * i, 3, "%02x", device->uuid.data[i]);
	json = json_pack("{s:i, s:s, s:s, s:s, s:s, s:I, s:i, s:o, s:s, s:s, s:I, s:I, s:I, s:I, "
			 "s:i, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I}",
		"index", (int)device->index, "name", device->name, "arch", device->arch, "pci",
		device->pci, "uuid", uuid, "memory_bytes", (json_int_t)device->memory_bytes,
		"units", (int)device->n_units, "peers", json_peers(device->peers, device->index),
		"state", device->state, "error", device->error, "launches",
		(json_int_t)device->n_launches, "imports", (json_int_t)device->n_imports, "proofs",
		(json_int_t)device->n_proofs, "mapped_bytes", (json_int_t)device->mapped_bytes,
		"maps", (int)device->n_maps, "quarantined", (int)device->n_quarantined, "copied",
		device->copied, "operations", (json_int_t)device->n_ops, "operation_bytes",
		(json_int_t)device->n_op_bytes, "failures", (json_int_t)device->n_failures,
		"scratch_bytes", (json_int_t)device->scratch_bytes, "scratch_high_bytes",
		(json_int_t)device->scratch_high_bytes, "slab_bytes",
		(json_int_t)device->slab_bytes, "slab_used_bytes",
		(json_int_t)device->slab_used_bytes, "exchange_bytes",
		(json_int_t)device->exchange_bytes, "exchange_operations",
		(json_int_t)device->n_exchange_ops, "direct", device->direct, "staged_operations",
		(json_int_t)device->n_staged_ops);
	if (json_array_append_new(array, json) == 0)
		return CTL_EXIT_OK;
	fprintf(stderr, "rcclxctl: out of memory\n");
	return CTL_EXIT_FAILED;
}

static enum ctl_exit show_json(struct admin *admin)
{
	const struct rx_msg_admin_devices_reply *reply = &admin->reply.admin_devices_reply;
	json_t *devices = json_array();
	enum ctl_exit status = devices_each(admin, devices_append_json, devices);

	if (status != CTL_EXIT_OK) {
		json_decref(devices);
		return status;
	}
	return json_print(json_pack("{s:s, s:s, s:s, s:o}", "state", reply->state, "backend",
		       reply->backend, "reason", reply->reason, "devices", devices))
		       ? CTL_EXIT_OK
		       : CTL_EXIT_FAILED;
}

enum ctl_exit cmd_devices(const struct ctl_options *options)
{
	struct admin *admin = NULL;
	enum ctl_exit status = admin_open(options->socket, false, &admin);

	if (status == CTL_EXIT_OK)
		status = options->json ? show_json(admin) : show_text(admin);
	admin_close(admin);
	return status;
}
