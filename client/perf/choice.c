/* SPDX-License-Identifier: MIT */
#include "choice.h"

#include "../ctl/thresholds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define PATH_BYTES sizeof(((struct sockaddr_un *)NULL)->sun_path)

/* A socket that may be used: to be refused is nothing to complain about here. */
static bool usable(const char *dir, size_t dir_bytes, const char *name, char path[PATH_BYTES])
{
	int n = snprintf(path, PATH_BYTES, "%.*s%s", (int)dir_bytes, dir, name);

	return n > 0 && (size_t)n < PATH_BYTES && access(path, R_OK | W_OK) == 0;
}

static bool find_admin(const char *socket, char path[PATH_BYTES])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	const char *slash = NULL;

	if (!socket)
		socket = getenv("RCCLX_SOCKET");
	if (socket) {
		slash = strrchr(socket, '/');
		return usable(socket, slash ? (size_t)(slash - socket) + 1 : 0, "admin.sock", path);
	}
	return usable("/run/rcclx/", strlen("/run/rcclx/"), "admin.sock", path) ||
	       (runtime && usable(runtime, strlen(runtime), "/rcclx/admin.sock", path));
}

/* Is it ours? Another daemon may answer than the one that librcclx has found. */
static enum ctl_exit look_at(const struct rx_comm_info *comm, void *ctx)
{
	struct perf_choice *choice = ctx;

	for (size_t i = 0; i < comm->n_members; i++) {
		if (comm->members[i].rank != 0 || comm->members[i].pid != (uint32_t)getpid())
			continue;
		choice->cores_shared = comm->cores_shared;
		choice->known = comm->tuning_epoch == choice->table.epoch;
	}
	return CTL_EXIT_OK;
}

void perf_choice_ask(const char *socket, struct perf_choice *choice_p)
{
	char path[PATH_BYTES];
	struct perf_choice choice = {.known = false};
	struct thresholds thresholds;
	struct admin *admin = NULL;

	*choice_p = choice;
	if (!find_admin(socket, path) || thresholds_get(path, &thresholds) != CTL_EXIT_OK)
		return;
	choice.table = thresholds.table;
	if (thresholds.of_daemon && admin_open(path, true, &admin) == CTL_EXIT_OK &&
		admin_each_comm(admin, look_at, &choice) == CTL_EXIT_OK)
		*choice_p = choice;
	admin_close(admin);
	thresholds_deinit(&thresholds);
}
