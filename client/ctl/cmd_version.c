/* SPDX-License-Identifier: MIT */
#include "admin.h"
#include "print.h"
#include "../rcclx.h"

#include <string.h>

/* The daemon's version into @version; "" when none answers, which is no error here. */
static enum ctl_exit ask_daemon(const struct ctl_options *options, char version[PRINT_CELL])
{
	struct admin *admin = NULL;
	enum ctl_exit status = admin_open(options->socket, true, &admin);

	version[0] = '\0';
	if (status == CTL_EXIT_NO_DAEMON)
		return CTL_EXIT_OK;
	if (status == CTL_EXIT_OK)
		status = admin_ask(admin, RX_MSG_ADMIN_STATUS, 0, RX_MSG_ADMIN_STATUS_REPLY);
	if (status == CTL_EXIT_OK)
		(void)snprintf(version, PRINT_CELL, "%s", admin->reply.admin_status_reply.version);
	admin_close(admin);
	return status;
}

enum ctl_exit cmd_version(const struct ctl_options *options)
{
	char own[PRINT_CELL], daemon[PRINT_CELL];
	enum ctl_exit status = ask_daemon(options, daemon);

	(void)snprintf(own, sizeof(own), "%d.%d.%d", RCCLX_VERSION_MAJOR, RCCLX_VERSION_MINOR,
		RCCLX_VERSION_PATCH);
	if (options->json) {
		json_t *json = json_pack(
			"{s:s, s:s?}", "rcclxctl", own, "rcclxd", *daemon ? daemon : NULL);

		return json_print(json) ? status : CTL_EXIT_FAILED;
	}
	printf("rcclxctl %s\nrcclxd   %s\n", own, *daemon ? daemon : "not reached");
	return status;
}
