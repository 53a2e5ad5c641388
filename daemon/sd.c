/* SPDX-License-Identifier: MIT */
#include "sd.h"

#include "exec.h"
#include "loop.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

/* Sending to systemd's socket could wait for it, so it is not done for every session. */
#define STATUS_AFTER_NS (500 * RX_NS_PER_MS)

struct sd {
	struct exec *exec;
	struct loop_timer *status_timer;
	struct loop_timer *watchdog_timer; /* NULL: no watchdog */
	uint64_t watchdog_ns;              /* half of what systemd waits */
	char status[128];
};

static int check_socket(int fd, const char *name)
{
	int flags = 0;

	if (sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 1) <= 0) {
		rx_err("the socket \"%s\" from systemd is not a listening SOCK_SEQPACKET socket",
			name);
		return -EINVAL;
	}
	/* NonBlocking=yes may be missing: a client that leaves early must not block accept(). */
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

/* The fd goes to its place by name, or is closed. */
static int sort_socket(int fd, const char *name, int *control_fd, int *admin_fd)
{
	RX_CLOSE int owned = fd;
	int *place = NULL;

	if (strcmp(name, "control") == 0)
		place = control_fd;
	else if (strcmp(name, "admin") == 0)
		place = admin_fd;
	if (!place || *place >= 0) {
		rx_warn("closed the socket \"%s\" from systemd: expected one \"control\" and one "
			"\"admin\" (FileDescriptorName=)",
			name);
		return 0;
	}
	if (check_socket(fd, name) != 0)
		return -EINVAL;
	*place = rx_steal_fd(&owned);
	return 0;
}

int sd_sockets(int *control_fd_p, int *admin_fd_p)
{
	char **names = NULL;
	int n_fds = sd_listen_fds_with_names(1, &names);
	RX_CLOSE int control_fd = -1;
	RX_CLOSE int admin_fd = -1;
	int r = 0;

	if (n_fds < 0) {
		rx_err("cannot take the sockets from systemd: %s", strerror(-n_fds));
		return n_fds;
	}
	for (int i = 0; i < n_fds; i++) {
		int failed = sort_socket(SD_LISTEN_FDS_START + i, names[i], &control_fd, &admin_fd);

		if (failed)
			r = failed;
		free(names[i]);
	}
	free(names);
	if (r)
		return r;
	if (control_fd < 0) {
		rx_err("systemd passed no socket named \"control\": start rcclxd.socket, or run "
		       "without --systemd");
		return -EINVAL;
	}
	*control_fd_p = rx_steal_fd(&control_fd);
	*admin_fd_p = rx_steal_fd(&admin_fd);
	return 0;
}

static void on_status(void *owner)
{
	struct sd *sd = owner;

	(void)sd_notifyf(0, "STATUS=%s", sd->status);
}

static void on_watchdog(void *owner)
{
	struct sd *sd = owner;

	if (exec_advances(sd->exec))
		(void)sd_notify(0, "WATCHDOG=1");
	else
		rx_err("a worker does not advance: the watchdog is not fed");
	loop_timer_set(sd->watchdog_timer, sd->watchdog_ns);
}

static int start_watchdog(struct sd *sd, uv_loop_t *loop)
{
	uint64_t usec = 0;
	int r = sd_watchdog_enabled(0, &usec);

	if (r <= 0)
		return 0;
	sd->watchdog_ns = usec * 1000 / 2;
	r = loop_timer_new(loop, on_watchdog, sd, &sd->watchdog_timer);
	if (r)
		return r;
	loop_timer_set(sd->watchdog_timer, sd->watchdog_ns);
	return 0;
}

int sd_new(uv_loop_t *loop, struct exec *exec, struct sd **sd_p)
{
	struct sd *sd = calloc(1, sizeof(*sd));
	int r = 0;

	if (!sd)
		return -ENOMEM;
	sd->exec = exec;
	r = loop_timer_new(loop, on_status, sd, &sd->status_timer);
	if (!r)
		r = start_watchdog(sd, loop);
	if (r) {
		(void)sd_free(sd);
		return r;
	}
	*sd_p = sd;
	return 0;
}

struct sd *sd_free(struct sd *sd)
{
	if (!sd)
		return NULL;
	sd->status_timer = loop_timer_free(sd->status_timer);
	sd->watchdog_timer = loop_timer_free(sd->watchdog_timer);
	free(sd);
	return NULL;
}

void sd_ready(struct sd *sd)
{
	if (sd)
		(void)sd_notify(0, "READY=1");
}

void sd_reloading(struct sd *sd)
{
	if (sd)
		(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, rx_now_ns() / 1000);
}

void sd_stopping(struct sd *sd)
{
	if (sd)
		(void)sd_notify(0, "STOPPING=1");
}

void sd_status(struct sd *sd, const char *format, ...)
{
	va_list args;

	if (!sd)
		return;
	va_start(args, format);
	(void)vsnprintf(sd->status, sizeof(sd->status), format, args);
	va_end(args);
	if (!loop_timer_is_set(sd->status_timer))
		loop_timer_set(sd->status_timer, STATUS_AFTER_NS);
}
