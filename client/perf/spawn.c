/* SPDX-License-Identifier: MIT */
#include "spawn.h"

#include "private_daemon.h"
#include "../rcclx.h"
#include "../../shm/rx_cleanup.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct crew {
	uint32_t n_ranks;
	pid_t pids[RX_MAX_RANKS]; /* 0: reaped, or not started */
	uint32_t n_running;
	bool wrong;
	bool failed;
};

/* The ranks' unique id in a memory file that they inherit. Also the first to see no daemon. */
static int make_id(const char *socket)
{
	RX_CLOSE int fd = -1;
	struct rcclx_client *client = NULL;
	struct rcclx_unique_id id = {{0}};
	rcclx_result result = rcclx_connect(socket, NULL, &client);

	if (result == RCCLX_OK) {
		result = rcclx_unique_id_create(client, &id);
		if (result == RCCLX_OK)
			result = rcclx_disconnect(client);
	}
	if (result != RCCLX_OK) {
		fprintf(stderr, "rcclx-perf: %s: %s\n", rcclx_strerror(result), rcclx_last_error());
		return -1;
	}
	/* Not close-on-exec: the ranks read it after their exec. */
	fd = memfd_create("rcclx-perf-id", 0);
	if (fd < 0 || write(fd, id.bytes, sizeof(id.bytes)) != sizeof(id.bytes)) {
		fprintf(stderr, "rcclx-perf: memory file: %m\n");
		return -1;
	}
	return rx_steal_fd(&fd);
}

/* In the child: does not return. Own options go first, so that the user's need no parsing. */
static _Noreturn void become_rank(
	int argc, char **argv, char *socket, uint32_t rank, int id_fd, pid_t parent)
{
	static char spawned_option[] = "--spawned", socket_option[] = "--socket";
	char spawned[32] = "";
	char **args = calloc((size_t)argc + 5, sizeof(*args));
	size_t n = 0;
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)snprintf(spawned, sizeof(spawned), "%u:%d", rank, id_fd);
	if (!args || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(PERF_EXIT_FAILED);
	args[n++] = argv[0];
	args[n++] = spawned_option;
	args[n++] = spawned;
	if (socket) {
		args[n++] = socket_option;
		args[n++] = socket;
	}
	for (int i = 1; i < argc; i++)
		args[n++] = argv[i];
	(void)execv("/proc/self/exe", args);
	fprintf(stderr, "rcclx-perf: cannot execute itself: %m\n");
	_exit(PERF_EXIT_FAILED);
}

static void kill_all(const struct crew *crew)
{
	for (uint32_t r = 0; r < crew->n_ranks; r++)
		if (crew->pids[r] > 0)
			(void)kill(crew->pids[r], SIGKILL);
}

static void note_end(struct crew *crew, uint32_t rank, int status)
{
	bool first = !crew->failed;

	if (WIFSIGNALED(status)) {
		crew->failed = true;
		/* Those that were killed because of the first need no words. */
		if (first)
			fprintf(stderr,
				"rcclx-perf: rank %u (pid %d) was killed by signal %d (%s)\n", rank,
				(int)crew->pids[rank], WTERMSIG(status),
				strsignal(WTERMSIG(status)));
	} else if (WEXITSTATUS(status) == PERF_EXIT_WRONG) {
		crew->wrong = true;
	} else if (WEXITSTATUS(status) != PERF_EXIT_OK) {
		crew->failed = true;
		if (first)
			fprintf(stderr, "rcclx-perf: rank %u (pid %d) exited with status %d\n",
				rank, (int)crew->pids[rank], WEXITSTATUS(status));
	}
}

/* A rank that was killed is the cause; ranks that then report it are not: signals first. */
static void reap(struct crew *crew)
{
	int ends[RX_MAX_RANKS] = {0};
	bool ended[RX_MAX_RANKS] = {false};

	for (uint32_t r = 0; r < crew->n_ranks; r++)
		ended[r] = crew->pids[r] > 0 && waitpid(crew->pids[r], &ends[r], WNOHANG) > 0;
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t r = 0; r < crew->n_ranks; r++) {
			if (!ended[r] || WIFSIGNALED(ends[r]) != (pass == 0))
				continue;
			note_end(crew, r, ends[r]);
			crew->pids[r] = 0;
			crew->n_running--;
		}
	}
}

/* Until all ranks have ended. Return: 0, or the signal that ends the run. */
static int watch(struct crew *crew, const sigset_t *signals)
{
	int ended_by = 0;

	while (crew->n_running > 0) {
		int number = sigwaitinfo(signals, NULL);

		if (number > 0 && number != SIGCHLD) {
			ended_by = number;
			crew->failed = true;
			kill_all(crew);
		}
		reap(crew);
		if (crew->failed)
			kill_all(crew);
	}
	return ended_by;
}

static void start_ranks(struct crew *crew, int argc, char **argv, char *socket, int id_fd)
{
	pid_t parent = getpid();

	(void)fflush(NULL);
	for (uint32_t r = 0; r < crew->n_ranks; r++) {
		pid_t pid = fork();

		if (pid == 0)
			become_rank(argc, argv, socket, r, id_fd, parent);
		if (pid < 0) {
			fprintf(stderr, "rcclx-perf: cannot start rank %u: %m\n", r);
			crew->failed = true;
			kill_all(crew);
			return;
		}
		crew->pids[r] = pid;
		crew->n_running++;
	}
}

static int run_crew(int argc, char **argv, const struct perf_options *options, char *private_socket,
	const sigset_t *signals)
{
	struct crew crew = {.n_ranks = options->n_ranks};
	RX_CLOSE int id_fd = make_id(private_socket ? private_socket : options->socket);
	int ended_by = 0;

	if (id_fd < 0)
		return PERF_EXIT_FAILED;
	start_ranks(&crew, argc, argv, private_socket, id_fd);
	ended_by = watch(&crew, signals);
	if (ended_by)
		return 128 + ended_by;
	if (crew.failed)
		return PERF_EXIT_FAILED;
	return crew.wrong ? PERF_EXIT_WRONG : PERF_EXIT_OK;
}

int perf_spawn(int argc, char **argv, const struct perf_options *options)
{
	struct perf_daemon daemon = PERF_DAEMON_INIT;
	sigset_t signals;
	int status = PERF_EXIT_FAILED;

	/* Blocked and waited for in one place, so that nothing is left behind whenever they come.
	 */
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigaddset(&signals, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	if (options->private_daemon && !perf_daemon_start(&daemon, options->tuning_dir))
		return PERF_EXIT_FAILED;
	status = run_crew(
		argc, argv, options, options->private_daemon ? daemon.socket : NULL, &signals);
	perf_daemon_stop(&daemon, status != PERF_EXIT_OK);
	return status;
}
