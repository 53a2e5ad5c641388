/* SPDX-License-Identifier: MIT */
/* rcclxd: options, exit codes, the order of starting and stopping. */
#include "daemon.h"
#include "loop.h"
#include "options.h"
#include "sd.h"
#include "sockets.h"
#include "tuning.h"
#include "../shm/rx_cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define DEFAULT_CONFIG     SYSCONFDIR "/rcclx/rcclxd.conf"
#define DEFAULT_TUNING_DIR SYSCONFDIR "/rcclx/tuning.d"

enum { EXIT_USAGE = 2 };

/* Descriptors kept for libuv, listeners, systemd, the log; and the most that are made use of. */
#define RESERVED_FDS 64u
#define FDS_MAX      65536u

struct server {
	struct options options;
	uv_loop_t loop;
	struct daemon daemon;
	uv_signal_t signals[3];
	uint32_t n_signals;
	struct loop_poll *lifeline;
};

static int complain(int r)
{
	rx_err("rcclxd cannot start: %s", strerror(-r));
	return r;
}

static int read_config(
	const struct options *options, struct config *config_p, struct config_error *error)
{
	if (options->config)
		return config_load(options->config, true, config_p, error);
	if (options->private_mode) {
		*config_p = config_default();
		return 0;
	}
	return config_load(DEFAULT_CONFIG, false, config_p, error);
}

/* The option, else the key, else the mode's default. Only the last may be absent. */
static int read_tuning(const struct options *options, const struct config *config,
	struct tuning **tuning_p, struct config_error *error)
{
	const char *dir = options->tuning_dir ? options->tuning_dir : config->tuning_dir;

	if (dir)
		return tuning_load(dir, true, tuning_p, error);
	return tuning_load(
		options->private_mode ? NULL : DEFAULT_TUNING_DIR, false, tuning_p, error);
}

/* All files, or nothing of them. */
static int read_files(const struct options *options, struct config *config_p,
	struct tuning **tuning_p, struct config_error *error)
{
	struct config config;
	int r = read_config(options, &config, error);

	if (r)
		return r;
	r = read_tuning(options, &config, tuning_p, error);
	if (r) {
		config_deinit(&config);
		return r;
	}
	*config_p = config;
	return 0;
}

static void apply_log_level(const struct options *options, const struct config *config)
{
	rx_log_set_level(options->has_log_level ? options->log_level : config->log_level);
}

static void reload(struct server *server)
{
	struct config config;
	struct tuning *tuning = NULL;
	struct config_error error;

	sd_reloading(server->daemon.sd);
	if (read_files(&server->options, &config, &tuning, &error) == 0) {
		apply_log_level(&server->options, &config);
		daemon_reconfigure(&server->daemon, &config);
		daemon_set_tuning(&server->daemon, tuning);
		rx_info("configuration read again");
	} else {
		rx_err("configuration not changed: %s", error.text);
	}
	sd_ready(server->daemon.sd);
}

static void on_signal(uv_signal_t *handle, int signum)
{
	struct server *server = handle->data;

	if (signum == SIGHUP)
		reload(server);
	else
		daemon_stop(&server->daemon);
}

static int watch_signals(struct server *server)
{
	static const int signums[] = {SIGTERM, SIGINT, SIGHUP};

	for (size_t i = 0; i < RX_ARRAY_SIZE(signums); i++) {
		uv_signal_t *handle = &server->signals[i];
		int r = uv_signal_init(&server->loop, handle);

		if (r)
			return r;
		server->n_signals++;
		handle->data = server;
		r = uv_signal_start(handle, on_signal, signums[i]);
		if (r)
			return r;
	}
	return 0;
}

/* Whatever is written to it is ignored; its end is not. */
static void on_lifeline(void *owner, int events)
{
	struct server *server = owner;
	char rest[256];
	ssize_t n = read(server->options.lifeline_fd, rest, sizeof(rest));

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR) && !(events & UV_DISCONNECT)))
		return;
	rx_info("the process that started this daemon has gone");
	server->lifeline = loop_poll_free(server->lifeline);
	daemon_stop(&server->daemon);
}

static int watch_lifeline(struct server *server)
{
	int fd = server->options.lifeline_fd;
	int flags = 0;
	int r = 0;

	if (fd < 0)
		return 0;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return complain(-errno);
	r = loop_poll_new(&server->loop, fd, UV_READABLE | UV_DISCONNECT, on_lifeline, server,
		&server->lifeline);
	if (r)
		rx_err("--lifeline-fd: descriptor %d cannot be watched: %s", fd, strerror(-r));
	return r;
}

/* The daemon has stopped: close what is ours, so that the loop runs dry. */
static void on_stopped(void *owner)
{
	struct server *server = owner;

	server->lifeline = loop_poll_free(server->lifeline);
	server->daemon.sd = sd_free(server->daemon.sd);
	for (uint32_t i = 0; i < server->n_signals; i++)
		uv_close((uv_handle_t *)&server->signals[i], NULL);
}

/* Raise the limit as far as we may; the number of descriptors that there can be. */
static uint64_t most_descriptors(void)
{
	struct rlimit limit = {0};

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return FDS_MAX;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	return rx_min_u64(limit.rlim_cur, FDS_MAX);
}

/* What fails says so in the log. */
static int start(struct server *server)
{
	int r = 0;

	/* Never fails for lack of it: then sd stays NULL. */
	if (getenv("NOTIFY_SOCKET"))
		r = sd_new(&server->loop, server->daemon.exec, &server->daemon.sd);
	if (!r)
		r = watch_signals(server);
	if (r)
		return complain(r);
	r = watch_lifeline(server);
	if (!r && server->options.once) {
		r = daemon_serve_once(&server->daemon);
		if (r)
			return complain(r);
	}
	if (!r)
		r = sockets_open(&server->daemon, &server->options);
	if (r)
		return r;
	rx_info("rcclxd " RX_DAEMON_VERSION " serves at %s", server->daemon.socket_path);
	sd_ready(server->daemon.sd);
	daemon_show_status(&server->daemon);
	return 0;
}

static int init(struct server *server, struct config *config, struct tuning **tuning)
{
	struct policy policy = {
		.private_mode = server->options.private_mode,
		.own_uid = geteuid(),
	};
	uint64_t n_fds = most_descriptors();
	int r = loop_reserve(&server->loop, n_fds);

	if (r)
		return r;
	/* What clients can take together. */
	n_fds = n_fds > 2 * RESERVED_FDS ? n_fds - RESERVED_FDS : n_fds / 2;
	r = daemon_init(&server->daemon, &server->loop, config, &policy, n_fds);
	if (r)
		return r;
	daemon_set_tuning(&server->daemon, rx_steal(*tuning));
	server->daemon.owner = server;
	server->daemon.stopped = on_stopped;
	return 0;
}

static int serve(struct server *server, struct config *config, struct tuning **tuning)
{
	bool has_daemon = false;
	int r = uv_loop_init(&server->loop);

	if (r)
		return complain(r);
	r = init(server, config, tuning);
	if (r) {
		(void)complain(r);
	} else {
		has_daemon = true;
		r = start(server);
		if (r)
			daemon_stop(&server->daemon);
	}
	(void)uv_run(&server->loop, UV_RUN_DEFAULT);
	if (has_daemon)
		daemon_deinit(&server->daemon);
	if (uv_loop_close(&server->loop) != 0)
		rx_err("the event loop was not left empty");
	return r;
}

static int check_config(const struct options *options)
{
	struct config config;
	struct tuning *tuning = NULL;
	struct config_error error;

	if (read_files(options, &config, &tuning, &error) != 0) {
		(void)fprintf(stderr, "%s\n", error.text);
		return EXIT_FAILURE;
	}
	(void)tuning_free(tuning);
	config_deinit(&config);
	return EXIT_SUCCESS;
}

static int run(struct server *server)
{
	struct config config;
	struct tuning *tuning = NULL;
	struct config_error error;
	int r = 0;

	rx_log_open("rcclxd", STDERR_FILENO, RX_LOG_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	if (read_files(&server->options, &config, &tuning, &error) != 0) {
		rx_err("%s", error.text);
		return EXIT_FAILURE;
	}
	apply_log_level(&server->options, &config);
	r = serve(server, &config, &tuning);
	(void)tuning_free(tuning);
	config_deinit(&config);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static struct options options;
	struct server *server = NULL;
	int status = 0;
	int r = options_parse(argc, argv, &options);

	if (r)
		return r == OPTIONS_E_DONE ? EXIT_SUCCESS : EXIT_USAGE;
	if (options.check_config)
		return check_config(&options);
	server = calloc(1, sizeof(*server));
	if (!server) {
		(void)fprintf(stderr, "rcclxd: out of memory\n");
		return EXIT_FAILURE;
	}
	server->options = options;
	status = run(server);
	free(server);
	return status;
}
