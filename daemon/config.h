/* SPDX-License-Identifier: MIT */
/* rcclxd.conf: what the operator may set, with its defaults and bounds. See rcclxd.conf(5). */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include "config_error.h"
#include "../shm/rx_base.h"
#include "../shm/rx_log.h"

struct limits {
	uint64_t sessions_per_uid;
	uint64_t comms_per_uid; /* memberships: a rank of a communicator each */
	uint64_t regions_per_uid;
	uint64_t bytes_per_uid;
	uint64_t ops_in_flight_per_session; /* the session's ring bounds them too */
};

struct waiting {
	uint32_t spin_us;      /* of a rank that waits for another, before it sleeps */
	uint32_t busy_poll_us; /* of the daemon after an entry, before it sleeps; 0: not at all */
	bool cpu_dma_latency;  /* keep cores awake while communicators exist */
};

struct gpu_config {
	char *backend; /* "none", a backend's name; NULL: whatever is installed and finds a GPU */
	char *dir;     /* of the backends; NULL: where they are installed */
	char *library; /* the GPU runtime; NULL: the usual names */
	char *code;    /* kernels; NULL: those that are built in */
	bool inline_kernels;         /* ranks may run kernels on memory of ours */
	uint64_t slab_bytes;         /* of that memory, on each device, for each user */
	uint64_t exchange_bytes;     /* most on each device, for what devices exchange; 0: none */
	uint64_t slot_bytes;         /* of a block's half of a rank's slot there */
	uint64_t stage_bytes;        /* host memory between devices that do not reach each other */
	uint64_t barrier_timeout_ns; /* of a kernel that waits for those of other devices */
};

struct config {
	char *socket;       /* NULL: the default of the mode */
	char *admin_socket; /* NULL: beside the socket */
	char *tuning_dir;   /* NULL: the default of the mode */
	enum rx_log_level log_level;
	uint32_t ring_entries; /* submission entries of a session that asks for no number */
	uint32_t host_workers;
	uint64_t scratch_bytes; /* of collectives in low precision, at most */
	uint64_t form_timeout_ns;
	uint64_t stall_report_ns;
	struct limits limits;
	struct waiting waiting;
	struct gpu_config gpu;
};

/** config_default() - what holds without a file; nothing allocated yet */
struct config config_default(void);

/**
 * config_load() - read @path
 * @must_exist: an absent file is an error instead of the defaults
 *
 * Return: 0; -EINVAL the file is bad, -ENOENT, other -errno: @config_p untouched, text in @error.
 */
RX_WARN_UNUSED int config_load(
	const char *path, bool must_exist, struct config *config_p, struct config_error *error);

/** config_parse() - the same from a string; @path only names it in errors */
RX_WARN_UNUSED int config_parse(
	const char *text, const char *path, struct config *config_p, struct config_error *error);

/** config_deinit() - free what it owns */
void config_deinit(struct config *config);

#endif
