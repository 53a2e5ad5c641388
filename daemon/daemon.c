/* SPDX-License-Identifier: MIT */
/*
 * Stopping, in order: nothing new is taken; ops in flight get a few seconds; communicators are
 * aborted, so that every member hears of it through its control page; sessions end, which marks
 * their rings as closed; the workers' last jobs come back; workers are joined; handles close and
 * the loop runs dry.
 */
#include "daemon.h"

#include "comm.h"
#include "exec.h"
#include "gpu.h"
#include "inline_kernels.h"
#include "listener.h"
#include "loop.h"
#include "peer.h"
#include "ringsrv.h"
#include "scratch.h"
#include "sd.h"
#include "slab.h"
#include "session.h"
#include "topology.h"
#include "tuning.h"
#include "../shm/rx_clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define STOP_TIMEOUT_NS (5 * RX_NS_PER_SEC)
#define CHORE_WORKERS   2u

/* With --once: for the first client to come, and after the last one has gone. */
#define FIRST_CLIENT_NS (30 * RX_NS_PER_SEC)
#define LAST_CLIENT_NS  (1 * RX_NS_PER_SEC)

static void apply_limits(struct daemon *daemon)
{
	const struct limits *limits = &daemon->config.limits;
	uint64_t *per_uid = daemon->accounts.limit_per_uid;

	per_uid[ACCOUNT_SESSIONS] = limits->sessions_per_uid;
	per_uid[ACCOUNT_COMMS] = limits->comms_per_uid;
	per_uid[ACCOUNT_REGIONS] = limits->regions_per_uid;
	per_uid[ACCOUNT_BYTES] = limits->bytes_per_uid;
}

static void on_settle(uv_prepare_t *prepare)
{
	daemon_settle(prepare->data);
}

static void on_stop_timer(void *owner);

static int make_handles(struct daemon *daemon)
{
	int r = loop_timer_new(daemon->loop, on_stop_timer, daemon, &daemon->stop_timer);

	if (!r)
		r = exec_new(daemon->loop, daemon->config.host_workers, &daemon->exec);
	if (!r)
		r = exec_new(daemon->loop, CHORE_WORKERS, &daemon->chores);
	if (!r)
		r = gpu_new(daemon->loop, &daemon->config, &daemon->gpu);
	if (r) {
		daemon->chores = exec_free(daemon->chores);
		daemon->exec = exec_free(daemon->exec);
		daemon->stop_timer = loop_timer_free(daemon->stop_timer);
		return r;
	}
	/* These two cannot fail. */
	(void)uv_idle_init(daemon->loop, &daemon->turn);
	(void)uv_prepare_init(daemon->loop, &daemon->settle);
	daemon->settle.data = daemon;
	(void)uv_prepare_start(&daemon->settle, on_settle);
	return 0;
}

static void free_node(struct daemon *daemon)
{
	daemon->scratch = scratch_free(daemon->scratch);
	daemon->slabs = slabs_free(daemon->slabs);
	daemon->tuning = tuning_free(daemon->tuning);
	daemon->topology = topology_free(daemon->topology);
}

/* The topology, and compiled thresholds until daemon_set_tuning(). */
static int read_node(struct daemon *daemon)
{
	struct config_error error;
	int r = topology_new(NULL, &daemon->topology);

	if (!r)
		r = tuning_load(NULL, false, &daemon->tuning, &error);
	/* Small jobs are done in the loop thread. */
	if (!r)
		r = scratch_new(daemon->config.host_workers + 1, daemon->config.scratch_bytes,
			&daemon->scratch);
	if (!r) {
		daemon->slabs = slabs_new();
		r = daemon->slabs ? 0 : -ENOMEM;
	}
	return r;
}

int daemon_init(struct daemon *daemon, uv_loop_t *loop, struct config *config,
	const struct policy *policy, uint64_t n_fds)
{
	int r = 0;

	memset(daemon, 0, sizeof(*daemon));
	daemon->loop = loop;
	daemon->start_ns = rx_now_ns();
	daemon->config = *config;
	daemon->policy = *policy;
	if (getrandom(daemon->instance, sizeof(daemon->instance), 0) != sizeof(daemon->instance))
		return -EIO;
	rx_list_init(&daemon->peers);
	rx_list_init(&daemon->ending);
	rx_list_init(&daemon->ready);
	rx_list_init(&daemon->announce);
	rx_list_init(&daemon->kernels_left);
	for (uint32_t i = 0; i < COMM_BUCKETS; i++)
		rx_list_init(&daemon->comm_buckets[i]);
	daemon->latency = LATENCY_INIT;
	rx_idmap_init(&daemon->sessions, RX_IDMAP_MAX_ENTRIES);
	rx_idmap_init(&daemon->regions, RX_IDMAP_MAX_ENTRIES);
	rx_idmap_init(&daemon->members, RX_IDMAP_MAX_ENTRIES);
	rx_idmap_init(&daemon->comms, RX_IDMAP_MAX_ENTRIES);
	accounts_init(&daemon->accounts);
	daemon->accounts.limit[ACCOUNT_FDS] = n_fds;
	/* One user may not take the last descriptors from the others. */
	daemon->accounts.limit_per_uid[ACCOUNT_FDS] =
		policy->private_mode ? n_fds : n_fds - n_fds / 4;
	apply_limits(daemon);
	r = read_node(daemon);
	if (!r)
		r = make_handles(daemon);
	if (r) {
		free_node(daemon);
		return r;
	}
	*config = (struct config){0};
	return 0;
}

void daemon_deinit(struct daemon *daemon)
{
	assert(rx_list_empty(&daemon->peers) && daemon->n_ops == 0 && !daemon->exec);
	rx_idmap_deinit(&daemon->comms);
	rx_idmap_deinit(&daemon->members);
	rx_idmap_deinit(&daemon->regions);
	rx_idmap_deinit(&daemon->sessions);
	accounts_deinit(&daemon->accounts);
	config_deinit(&daemon->config);
	free(daemon->socket_path);
	free_node(daemon);
}

static bool same_path(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

void daemon_reconfigure(struct daemon *daemon, struct config *config)
{
	struct config before = daemon->config;

	if (!same_path(before.socket, config->socket) ||
		!same_path(before.admin_socket, config->admin_socket) ||
		before.host_workers != config->host_workers ||
		before.scratch_bytes != config->scratch_bytes ||
		!same_path(before.gpu.backend, config->gpu.backend) ||
		!same_path(before.gpu.dir, config->gpu.dir) ||
		!same_path(before.gpu.library, config->gpu.library) ||
		!same_path(before.gpu.code, config->gpu.code))
		rx_info("socket, admin_socket, host_workers, low_precision_scratch_bytes and gpu "
			"take effect at the next start");
	daemon->config = *config;
	*config = (struct config){0};
	config_deinit(&before);
	apply_limits(daemon);
	daemon->latency.failed = false;
	daemon->stats.reloads++;
}

void daemon_set_tuning(struct daemon *daemon, struct tuning *tuning)
{
	uint64_t epoch = daemon->tuning->table.epoch;

	tuning->table.epoch = tuning_equal(daemon->tuning, tuning) ? epoch : epoch + 1;
	daemon->tuning = tuning_free(daemon->tuning);
	daemon->tuning = tuning;
}

struct rx_log_limit *daemon_log_limit(struct daemon *daemon, uid_t uid, const char *site)
{
	/* FNV-1a */
	uint32_t hash = (2166136261u ^ uid) * 16777619u;

	for (const char *c = site; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619u;
	return &daemon->log_limits[hash % LOG_LIMIT_SLOTS];
}

/* ---- stopping ---- */

void daemon_set_state(struct daemon *daemon, enum daemon_state state)
{
	assert(state > daemon->state);
	daemon->state = state;
	daemon_show_status(daemon);
}

const char *daemon_refuses(const struct daemon *daemon)
{
	static const char *const texts[_DAEMON_STATE_N] = {
		[DAEMON_DRAINING] = "rcclxd is draining: it takes no new sessions and "
				    "communicators, and stops when the present ones have ended",
		[DAEMON_STOPPING] = "rcclxd is stopping",
		[DAEMON_STOPPED] = "rcclxd is stopping",
	};

	return texts[daemon->state];
}

void daemon_show_status(struct daemon *daemon)
{
	static const char *const names[_DAEMON_STATE_N] = {
		[DAEMON_SERVING] = "serving",
		[DAEMON_DRAINING] = "draining",
		[DAEMON_STOPPING] = "stopping",
		[DAEMON_STOPPED] = "stopping",
	};

	sd_status(daemon->sd, "%s: %u sessions, %u communicators", names[daemon->state],
		daemon->sessions.n_used, daemon->comms.n_used);
}

static void shut_down_comms(struct daemon *daemon)
{
	for (uint32_t i = 0; i < COMM_BUCKETS; i++)
		rx_list_for_each_safe (pos, &daemon->comm_buckets[i])
			comm_shut_down(rx_list_entry(pos, struct comm, bucket_link));
}

/* Nothing more is waited for but the workers' running jobs, which are cancelled. */
static void finish(struct daemon *daemon)
{
	daemon_set_state(daemon, DAEMON_STOPPED);
	daemon->control = listener_free(daemon->control);
	daemon->admin = listener_free(daemon->admin);
	daemon->stop_timer = loop_timer_free(daemon->stop_timer);
	daemon->once_timer = loop_timer_free(daemon->once_timer);
	shut_down_comms(daemon);
	inline_kernels_end(daemon);
	gpu_give_up(daemon->gpu);
	rx_list_for_each (pos, &daemon->peers)
		peer_end(rx_list_entry(pos, struct peer, link));
}

/* The workers have come back: close what is left of ours. */
static void close_handles(struct daemon *daemon)
{
	daemon->exec = exec_free(daemon->exec);
	daemon->chores = exec_free(daemon->chores);
	daemon->gpu = gpu_free(daemon->gpu);
	daemon->slabs = slabs_free(daemon->slabs);
	uv_close((uv_handle_t *)&daemon->turn, NULL);
	uv_close((uv_handle_t *)&daemon->settle, NULL);
	daemon->stopped(daemon->owner);
}

static void on_stop_timer(void *owner)
{
	struct daemon *daemon = owner;

	rx_warn("%u operations did not end in time and are aborted", daemon->n_ops);
	finish(daemon);
}

void daemon_drain(struct daemon *daemon)
{
	if (daemon->state >= DAEMON_DRAINING)
		return;
	rx_info("draining: %u sessions are left", daemon->sessions.n_used);
	daemon_set_state(daemon, DAEMON_DRAINING);
}

void daemon_stop(struct daemon *daemon)
{
	if (daemon->state == DAEMON_STOPPED)
		return;
	if (daemon->state == DAEMON_STOPPING) {
		finish(daemon);
		return;
	}
	if (daemon->control)
		rx_info("stopping: %u sessions, %u operations in flight", daemon->sessions.n_used,
			daemon->n_ops);
	sd_stopping(daemon->sd);
	daemon_set_state(daemon, DAEMON_STOPPING);
	loop_timer_set(daemon->stop_timer, STOP_TIMEOUT_NS);
}

static void on_unused(void *owner)
{
	rx_info("nobody uses this daemon any more");
	daemon_stop(owner);
}

int daemon_serve_once(struct daemon *daemon)
{
	int r = loop_timer_new(daemon->loop, on_unused, daemon, &daemon->once_timer);

	if (!r)
		loop_timer_set(daemon->once_timer, FIRST_CLIENT_NS);
	return r;
}

/* The timer runs while there are no sessions. */
static void watch_use(struct daemon *daemon)
{
	bool used = daemon->sessions.n_used > 0;

	if (!daemon->once_timer || used == daemon->was_used)
		return;
	daemon->was_used = used;
	if (used)
		loop_timer_stop(daemon->once_timer);
	else
		loop_timer_set(daemon->once_timer, LAST_CLIENT_NS);
}

static void end_peers(struct daemon *daemon)
{
	while (!rx_list_empty(&daemon->ending))
		peer_free(rx_list_entry(daemon->ending.next, struct peer, ending_link));
}

void daemon_settle(struct daemon *daemon)
{
	latency_hold(&daemon->latency,
		daemon->config.waiting.cpu_dma_latency && daemon->comms.n_used > 0);
	end_peers(daemon);
	while (!rx_list_empty(&daemon->announce))
		session_announce(
			rx_list_entry(daemon->announce.next, struct session, announce_link));
	watch_use(daemon);
	if ((daemon->state == DAEMON_STOPPING && daemon->n_ops == 0) ||
		(daemon->state == DAEMON_DRAINING && daemon->sessions.n_used == 0)) {
		finish(daemon);
		end_peers(daemon);
	}
	if (daemon->state == DAEMON_STOPPED && daemon->n_ops == 0 && daemon->exec &&
		exec_is_idle(daemon->chores) && gpu_is_idle(daemon->gpu))
		close_handles(daemon);
}
