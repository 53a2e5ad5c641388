/* SPDX-License-Identifier: MIT */
#include "admin.h"
#include "print.h"

enum ctl_exit cmd_drain(const struct ctl_options *options)
{
	struct admin *admin = NULL;
	enum ctl_exit status = admin_open(options->socket, false, &admin);

	if (status == CTL_EXIT_OK)
		status = admin_ask(admin, RX_MSG_ADMIN_DRAIN, 0, RX_MSG_OK);
	admin_close(admin);
	if (status != CTL_EXIT_OK)
		return status;
	if (options->json)
		return json_print(json_pack("{s:s}", "state", "draining")) ? CTL_EXIT_OK
									   : CTL_EXIT_FAILED;
	printf("draining: no new sessions; the daemon ends when the last one has gone, see rcclxctl "
	       "clients\n");
	return CTL_EXIT_OK;
}
