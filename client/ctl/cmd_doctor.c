/* SPDX-License-Identifier: MIT */
/* rcclxctl doctor: what GPUs need, what the daemon says of them, and what to do. */
#include "admin.h"
#include "doctor.h"
#include "print.h"

#include <string.h>

static void look_at_backends(struct doctor *doctor)
{
	static const char *const names[] = {"hip", "cuda"};
	bool any = false;

	for (size_t i = 0; i < RX_ARRAY_SIZE(names); i++) {
		char path[512];
		FILE *file = NULL;

		(void)snprintf(
			path, sizeof(path), "%s/rcclx_backend_%s.so", RCCLX_BACKENDDIR, names[i]);
		file = fopen(path, "re");
		if (!file)
			continue;
		(void)fclose(file);
		any = true;
		doctor_add(doctor, DOCTOR_OK, "backend", NULL, "%s", path);
	}
	if (!any)
		doctor_add(doctor, DOCTOR_NOTE, "backend", "configure --with-hip or --with-cuda",
			"no backend in %s: GPUs are not served", RCCLX_BACKENDDIR);
}

static void look_at_device(struct doctor *doctor, const struct rx_device_info *device, uint64_t all)
{
	uint64_t apart = all & ~device->peers & ~(1ull << device->index);

	if (device->error[0])
		doctor_add(doctor, strcmp(device->state, "failed") == 0 ? DOCTOR_BAD : DOCTOR_NOTE,
			"device", NULL, "GPU %u (%s, %s): %s", device->index, device->name,
			device->arch, device->error);
	else
		doctor_add(doctor, DOCTOR_OK, "device", NULL, "GPU %u: %s, %s, %s", device->index,
			device->name, device->arch, device->state);
	if (apart)
		doctor_add(doctor, DOCTOR_NOTE, "peers",
			"look at IOMMU and ACS settings, and at the links between them",
			"GPU %u does not reach the memory of %d others: operations with "
			"both go through host memory",
			device->index, __builtin_popcountll(apart));
	if (device->copied[0])
		doctor_add(doctor, DOCTOR_NOTE, "copies", NULL,
			"GPU %u: memory that was copied instead of used in place: %s",
			device->index, device->copied);
}

static void look_at_daemon(struct doctor *doctor, const struct ctl_options *options)
{
	struct admin *admin = NULL;
	struct rx_msg_admin_devices_reply *reply = NULL;
	uint64_t all = 0;
	uint64_t after = 0;

	if (admin_open(options->socket, true, &admin) != CTL_EXIT_OK) {
		doctor_add(doctor, DOCTOR_NOTE, "rcclxd",
			"systemctl start rcclxd, or rcclxd "
			"--private",
			"no daemon answers, or this user may not ask it");
		return;
	}
	reply = &admin->reply.admin_devices_reply;
	/* Twice: who is apart is known when all have been seen. */
	for (int round = 0; round < 2; round++) {
		bool more = true;

		for (after = 0; more; after += reply->n_devices) {
			if (admin_ask(admin, RX_MSG_ADMIN_DEVICES, after,
				    RX_MSG_ADMIN_DEVICES_REPLY) != CTL_EXIT_OK)
				break;
			for (size_t i = 0; i < reply->n_devices; i++) {
				if (round == 0)
					all |= 1ull << reply->devices[i].index;
				else
					look_at_device(doctor, &reply->devices[i], all);
			}
			more = reply->more && reply->n_devices > 0;
			if (round == 0 && after == 0)
				doctor_add(doctor,
					strcmp(reply->state, "ready") == 0 ? DOCTOR_OK
									   : DOCTOR_NOTE,
					"rcclxd", NULL, "GPUs: %s%s%s%s%s", reply->state,
					reply->backend[0] ? ", backend " : "", reply->backend,
					reply->reason[0] ? ": " : "", reply->reason);
		}
	}
	admin_close(admin);
}

static bool show_text(const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->n; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];

		printf("%-4s  %-11s  %s\n", doctor_level_name(finding->level), finding->topic,
			finding->text);
		if (finding->fix[0])
			printf("%-4s  %-11s  -> %s\n", "", "", finding->fix);
	}
	return fflush(stdout) == 0;
}

static bool show_json(const struct doctor *doctor)
{
	json_t *array = json_array();

	for (size_t i = 0; i < doctor->n; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];

		if (json_array_append_new(array,
			    json_pack("{s:s, s:s, s:s, s:s}", "level",
				    doctor_level_name(finding->level), "topic", finding->topic,
				    "text", finding->text, "fix", finding->fix)) != 0) {
			json_decref(array);
			return false;
		}
	}
	return json_print(json_pack("{s:o}", "findings", array));
}

enum ctl_exit cmd_doctor(const struct ctl_options *options)
{
	struct doctor doctor = {.root = ""};
	bool good = true;

	doctor_examine(&doctor);
	look_at_backends(&doctor);
	look_at_daemon(&doctor, options);
	if (!(options->json ? show_json(&doctor) : show_text(&doctor)) || doctor.failed) {
		fprintf(stderr, "rcclxctl: out of memory, or the output cannot be written\n");
		good = false;
	}
	for (size_t i = 0; i < doctor.n; i++)
		good &= doctor.findings[i].level != DOCTOR_BAD;
	doctor_deinit(&doctor);
	return good ? CTL_EXIT_OK : CTL_EXIT_FAILED;
}
